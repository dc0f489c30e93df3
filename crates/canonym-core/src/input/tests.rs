use std::io::Write;

use expect_test::{Expect, expect};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

fn lines(mut input: Input) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    while let Some((number, line)) = input.next_line()? {
        lines.push(format!("{number} {line}"));
    }
    Ok(lines)
}

fn read(source: &Source) -> String {
    match source.open().and_then(lines) {
        Ok(lines) => lines.join("\n"),
        Err(error) => format!("{error} (hint: {})", error.hint().unwrap_or("none")),
    }
}

fn check(bytes: &[u8], expect: Expect) {
    expect.assert_eq(&read(&Source::from_bytes("input", bytes.to_vec())));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
    for (name, bytes) in members {
        writer.start_file(*name, options).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn lines_lose_mark_and_ends() {
    check(
        b"\xef\xbb\xbfa\r\nb\n\nc",
        expect![[r#"
        1 a
        2 b
        3 
        4 c"#]],
    );
    check(b"", expect![""]);
}

#[test]
fn bytes_that_are_not_utf8_are_named() {
    check(
        b"plain\nna\xefve",
        expect![
            "input:2: invalid UTF-8: byte 3 of the line (0xef) (hint: convert the file to UTF-8, for example with `iconv -f ISO-8859-1 -t UTF-8`)"
        ],
    );
    check(b"\xff\xfea\0", expect!["input:1: the text is UTF-16 (hint: convert the file to UTF-8)"]);
}

#[test]
fn latin1_lines_are_decoded() {
    let input = Input::from_bytes("input", b"na\xefve".to_vec()).unwrap().with_encoding(Encoding::Latin1);
    assert_eq!(lines(input).unwrap(), ["1 naïve"]);
}

#[test]
fn gzip_of_several_members_is_one_text() {
    let mut bytes = gzip("\u{feff}one\ntw".as_bytes());
    bytes.extend(gzip(b"o\nthree\n"));
    check(
        &bytes,
        expect![[r#"
        1 one
        2 two
        3 three"#]],
    );
    bytes.truncate(bytes.len() - 6);
    let text = read(&Source::from_bytes("input", bytes));
    assert!(text.contains("damaged or truncated"), "{text}");
}

#[test]
fn zstd_is_read() {
    check(
        &zstd::encode_all(&b"one\ntwo\n"[..], 1).unwrap(),
        expect![[r#"
        1 one
        2 two"#]],
    );
}

#[test]
fn members_of_an_archive_are_read_where_they_are() {
    let packed = gzip(b"inner\n");
    let bytes = archive(&[
        ("META/one.txt", b"one\n"),
        ("__MACOSX/META/._one.txt", b"x"),
        ("META/.DS_Store", b"x"),
        ("META/two.txt.gz", &packed),
    ]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.zip");
    std::fs::write(&path, &bytes).unwrap();
    for source in [Source::from_bytes("some.zip", bytes.clone()), Source::from_path(&path)] {
        let members = source.clone().members().unwrap();
        let texts: Vec<String> =
            members.iter().map(|member| format!("{} {}", member.file_name(), read(member))).collect();
        assert_eq!(texts, ["one.txt 1 one", "two.txt 1 inner"]);
        assert!(members[0].path().ends_with("some.zip/META/one.txt"));
        assert!(read(&source).contains("the archive contains 2 files (one.txt, two.txt"));
    }
}

#[test]
fn archive_of_one_file_opens_as_that_file() {
    check(&archive(&[("a.txt", b"x\n")]), expect!["1 x"]);
    check(&archive(&[]), expect!["cannot use input: the archive contains no data file (hint: none)"]);
}

#[test]
fn damaged_archive_is_an_error() {
    let good = archive(&[("a.txt", &b"some words, some words, some more words\n".repeat(9))]);
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x55;
        let _ = Source::from_bytes("a.zip", bytes).members().map(|members| members.iter().map(read).count());
    }
    let at = good.windows(2).position(|pair| pair == b"tx").unwrap() + 10;
    let mut bytes = good.clone();
    bytes[at] ^= 0x55;
    assert!(read(&Source::from_bytes("a.zip", bytes)).contains("damaged"));
}

#[test]
fn limits_are_kept() {
    let limits = Limits { line: 4, expansion: 10, expansion_free: 1000, ..Limits::DEFAULT };
    let long = Source::from_bytes("input", b"four\r\nfives\n".to_vec()).with_limits(limits);
    expect!["input: line 2 is longer than 4 bytes (hint: check that this is the right file; if it is, split it into smaller ones)"].assert_eq(&read(&long));
    let bomb = Source::from_bytes("input", gzip(&b"a\n".repeat(100_000))).with_limits(limits);
    assert!(read(&bomb).contains("more than 10-fold"), "{}", read(&bomb));
    let members = Limits { members: 1, ..Limits::DEFAULT };
    let many = Source::from_bytes("input", archive(&[("a", b""), ("b", b"")])).with_limits(members);
    expect!["input: the archive has 2 members; the limit is 1 (hint: check that this is the right file; if it is, split it into smaller ones)"]
        .assert_eq(&read(&many));
    let unpacked = Limits { unpacked: 7, ..Limits::DEFAULT };
    let large = Source::from_bytes("input", archive(&[("a", b"four"), ("b", b"four")])).with_limits(unpacked);
    assert!(read(&large).contains("the archive expands to 8 bytes; the limit is 7"), "{}", read(&large));
    let large = Source::from_bytes("input", gzip(b"more than seven")).with_limits(unpacked);
    assert!(read(&large).contains("expands to more than 7 bytes"), "{}", read(&large));
}

#[test]
fn whole_stream_is_read_and_json_errors_have_lines() {
    let mut input = Input::from_bytes("a.json", gzip(b"\xef\xbb\xbf{\"a\":\n 1}")).unwrap();
    let value: serde_json::Value = serde_json::from_reader(&mut input).unwrap();
    assert_eq!(value["a"], 1);
    let mut input = Input::from_bytes("a.json", b"{\"a\":\n x}".to_vec()).unwrap();
    let error = serde_json::from_reader::<_, serde_json::Value>(&mut input).unwrap_err();
    expect!["a.json:2: invalid JSON at column 2: expected value"].assert_eq(&input.json_error(error).to_string());
}

#[test]
fn head_stays_visible() {
    let mut input = Input::from_bytes("a", b"\xef\xbb\xbfone\ntwo\n".to_vec()).unwrap();
    input.next_line().unwrap();
    assert!(input.head().starts_with(b"one\n"));
}

#[test]
fn folder_is_not_a_file() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Input::open(folder.path()), Err(Error::Io { .. })));
    let missing = Input::open(&folder.path().join("none")).err().unwrap();
    assert!(missing.hint().is_some());
}

proptest::proptest! {
    #[test]
    fn changed_streams_never_panic(
        which in 0..3_usize,
        changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0..255_u8), 1..4),
    ) {
        let text = b"some words, some other words\n".repeat(9);
        let mut bytes = match which {
            0 => gzip(&text),
            1 => zstd::encode_all(&text[..], 1).unwrap(),
            _ => archive(&[("a.txt", &text), ("b.txt.gz", &gzip(&text))]),
        };
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(members) = Source::from_bytes("input", bytes).members() {
            members.iter().map(read).for_each(drop);
        }
    }
}

/// A member of a tar archive: ustar header, content, zeros up to the next block.
fn tar_member(name: &str, kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    header.extend_from_slice(bytes);
    header.resize(header.len().next_multiple_of(512), 0);
    header
}

fn tar(members: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = members.concat();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn members_of(bytes: Vec<u8>) -> String {
    match Source::from_bytes("some.tar", bytes).members() {
        Ok(members) => {
            members.iter().map(|member| format!("{}: {}\n", member.path().display(), read(member))).collect()
        }
        Err(error) => format!("{error}"),
    }
}

#[test]
fn members_of_a_tar_are_read_where_they_are() {
    let long = "l".repeat(150);
    let bytes = tar(&[
        tar_member("dump/", b'5', b""),
        tar_member("dump/one.dmp", b'0', &b"one\n".repeat(300)),
        tar_member("dump/._one.dmp", b'0', b"x"),
        tar_member("link", b'2', b""),
        tar_member("@LongLink", b'L', format!("dump/{long}\0").as_bytes()),
        tar_member("short", b'0', b"two"),
        tar_member("pax", b'x', b"26 path=../../etc/three.x\n"),
        tar_member("short", 0, &gzip(b"five\n")),
    ]);
    for bytes in [gzip(&bytes), bytes] {
        let text = members_of(bytes);
        assert!(text.starts_with("some.tar/dump/one.dmp: 1 one\n2 one\n"), "{text}");
        assert!(
            text.contains(&format!("300 one\nsome.tar/dump/{long}: 1 two\nsome.tar/../../etc/three.x: 1 five\n")),
            "{text}"
        );
    }
}

#[test]
fn damaged_tar_archives_are_refused() {
    let whole = tar(&[tar_member("one.txt", b'0', b"one\n"), tar_member("two.txt", b'0', &[b'x'; 600])]);
    expect!["cannot use some.tar: the archive is truncated"].assert_eq(&members_of(whole[..1700].to_vec()));
    let mut wrong = whole.clone();
    wrong[1024 + 150] ^= 1;
    expect!["cannot use some.tar: the archive is damaged (a header has a wrong checksum)"]
        .assert_eq(&members_of(wrong));
    expect!["cannot use some.tar: the archive contains 2 files (one.txt, two.txt, …); expected one (hint: extract the file that you need)"].assert_eq(&read(&Source::from_bytes("some.tar", whole)));
    let huge = [tar_member("x", b'x', &vec![b'1'; 70_000])];
    expect!["some.tar: a header of the archive has 70000 bytes; the limit is 65536"].assert_eq(&members_of(tar(&huge)));
}
