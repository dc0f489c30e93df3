//! A mapped file that gets shorter while the program uses it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};

use canonym_core::artifact::{ArtifactKind, Container, ContainerWriter, IN_MEMORY};
use canonym_core::kb::format::KIND;
use expect_test::expect;

use crate::support::Workplace;

/// Writes zeros as a hole.
struct Sparse(File);

impl Write for Sparse {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match bytes.iter().all(|byte| *byte == 0) {
            true => self.0.seek(SeekFrom::Current(bytes.len() as i64)).map(|_| bytes.len()),
            false => self.0.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Seek for Sparse {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn a_mapped_file_that_is_truncated_ends_the_program_with_a_message() {
    let place = Workplace::with_shapes();
    // Larger than what is read into memory, almost all of it a hole.
    let small = Container::open(&place.path("shapes.kb"), KIND).unwrap();
    let out = Sparse(File::create(place.path("large.kb")).unwrap());
    let mut writer = ContainerWriter::new(ArtifactKind { format: small.format(), ..KIND }, out).unwrap();
    let hole = vec![0; 1 << 20];
    writer.section("padding", std::iter::repeat_n(hole.as_slice(), (IN_MEMORY >> 20) as usize)).unwrap();
    for (name, _) in small.sections() {
        writer.section(&name, [&small.bytes()[small.range(&name).unwrap()]]).unwrap();
    }
    writer.finish().unwrap();

    let mut command = place.command(&["link", "-v", "--model", "lexical", "--kb", "large.kb", "--format", "text", "-"]);
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("opened shapes") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "the knowledge base is not opened");
    }
    OpenOptions::new().write(true).open(place.path("large.kb")).unwrap().set_len(0).unwrap();
    // It may have ended before it read this.
    child.stdin.take().unwrap().write_all(b"A ring shape in a square.").ok();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    expect![[r#"
        error: large.kb: the file was truncated while it was in use, or its disk failed
        hint: replace files with `kb build` or `index build`, which rename the new file into place; then run this again
    "#]]
    .assert_eq(&rest[rest.find("error: ").unwrap_or(0)..]);
}
