//! Containers: written, damaged, and changed while in use.

use std::io::Cursor;

use super::*;

const KIND: ArtifactKind = ArtifactKind { tag: *b"TEST", name: "sample", format: 3, oldest: 2, command: "make" };

fn sample() -> Vec<u8> {
    let mut writer = ContainerWriter::new(KIND, Cursor::new(Vec::new())).unwrap();
    writer.section("letters", [&b"abc"[..], b"def"]).unwrap();
    writer.section_u32("numbers", &[1, 2, 3]).unwrap();
    writer.finish().unwrap().into_inner()
}

fn open(bytes: Vec<u8>) -> Result<Container> {
    Container::from_vec(bytes, Path::new("sample"), KIND)
}

#[test]
fn sections_round_trip() {
    let container = open(sample()).unwrap();
    assert_eq!(&container.bytes()[container.range("letters").unwrap()], b"abcdef");
    assert_eq!(container.range("numbers").unwrap().len(), 12);
    assert!(container.range("absent").is_err());
}

#[test]
fn every_flipped_byte_and_every_truncation_is_an_error() {
    let bytes = sample();
    let container = open(bytes.clone()).unwrap();
    let used: Vec<usize> = (0..bytes.len()).filter(|at| !is_padding(&container, *at)).collect();
    for at in used {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        assert!(open(damaged).is_err(), "byte {at}");
    }
    for len in 0..bytes.len() {
        assert!(open(bytes[..len].to_vec()).is_err(), "length {len}");
    }
}

#[test]
fn mapped_files_are_checked_as_those_in_memory_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample");
    let bytes = sample();
    std::fs::write(&path, &bytes).unwrap();
    let whole = Container::open_up_to(0, &path, KIND).unwrap();
    assert_eq!(whole.bytes(), Container::open(&path, KIND).unwrap().bytes());
    for at in (0..bytes.len()).filter(|at| !is_padding(&whole, *at)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        // Under another name, because the mapped file must not change.
        let other = folder.path().join(format!("damaged-{at}"));
        std::fs::write(&other, damaged).unwrap();
        assert!(Container::open_up_to(0, &other, KIND).is_err(), "byte {at}");
    }
}

#[test]
fn changes_of_a_mapped_file_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample");
    std::fs::write(&path, sample()).unwrap();
    let [mapped, in_memory] = [0, IN_MEMORY].map(|limit| Container::open_up_to(limit, &path, KIND).unwrap());
    // Replacing by rename leaves the old file intact.
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(&sample()).unwrap();
    file.commit().unwrap();
    mapped.check_unchanged().unwrap();
    let mapped = Container::open_up_to(0, &path, KIND).unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let other = std::fs::metadata(std::env::current_exe().unwrap()).unwrap();
    file.set_modified(other.modified().unwrap()).unwrap();
    let error = mapped.check_unchanged().unwrap_err();
    assert!(error.to_string().contains("it was modified while in use"), "{error}");
    assert!(error.hint().is_some());
    let mapped = Container::open_up_to(0, &path, KIND).unwrap();
    file.set_len(100).unwrap();
    assert!(mapped.check_unchanged().is_err() && mapped.verify().is_err());
    assert!(in_memory.check_unchanged().is_ok() && in_memory.verify().is_ok());
}

fn is_padding(container: &Container, at: usize) -> bool {
    let table = container.bytes().len() - 2 * ENTRY_LEN;
    let in_section = container.sections.values().any(|(range, _)| range.contains(&at));
    at >= HEADER_LEN && at < table && !in_section
}

#[test]
fn a_newer_format_says_so() {
    let mut writer = ContainerWriter::new(ArtifactKind { format: 4, ..KIND }, Cursor::new(Vec::new())).unwrap();
    writer.section("letters", [&b"abc"[..]]).unwrap();
    let error = open(writer.finish().unwrap().into_inner()).unwrap_err();
    assert_eq!(error.to_string(), "cannot use sample: it has format 4; this version reads up to 3");
}

#[test]
fn older_formats_are_read_down_to_the_oldest() {
    let written = |format: u32| {
        let mut writer = ContainerWriter::new(ArtifactKind { format, ..KIND }, Cursor::new(Vec::new())).unwrap();
        writer.section("letters", [&b"abc"[..]]).unwrap();
        open(writer.finish().unwrap().into_inner())
    };
    assert_eq!(written(2).unwrap().format(), 2);
    let error = written(1).unwrap_err();
    assert_eq!(error.to_string(), "cannot use sample: it has format 1; this version reads from 2 on");
    assert_eq!(error.hint(), Some("rebuild it with `make`"));
}

#[cfg(unix)]
#[test]
fn temporary_names_are_not_known_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    // A planted link under the predictable temporary name must not be written to.
    let (planted, victim) = (format!(".out.{}.tmp", std::process::id()), folder.path().join("victim"));
    std::fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, folder.path().join(planted)).unwrap();
    let (mut one, two) = (AtomicFile::create(&path).unwrap(), AtomicFile::create(&path).unwrap());
    assert_ne!(one.temporary, two.temporary);
    one.write_all(b"new").unwrap();
    one.commit().unwrap();
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn an_abandoned_file_keeps_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    std::fs::write(&path, "old").unwrap();
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    drop(file);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let mut file = AtomicFile::create(&path).unwrap();
    file.write_all(b"new").unwrap();
    file.commit().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_mapped_file_is_verified_once_until_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (path, notes) = (folder.path().join("sample"), folder.path().join("notes"));
    let open = |notes: Option<&Path>| Container::open_verified_once(0, &path, KIND, notes);
    std::fs::write(&path, sample()).unwrap();
    open(Some(&notes)).unwrap();
    assert_eq!(std::fs::read_dir(&notes).unwrap().count(), 1);
    open(Some(&notes)).unwrap();
    // The same header and table, but another content: the file was modified.
    let mut damaged = sample();
    damaged[64] ^= 1;
    let modified = || std::fs::metadata(&path).unwrap().modified().unwrap();
    // Clocks of file systems are coarse.
    let write = |bytes: &[u8]| {
        let before = modified();
        while modified() == before {
            std::fs::write(&path, bytes).unwrap();
        }
    };
    write(&damaged);
    assert!(open(Some(&notes)).is_err());
    assert!(open(None).is_err());
    // A note is about one state of the file: without a change, damage is not looked for again.
    write(&sample());
    open(Some(&notes)).unwrap();
    let noted = modified();
    std::fs::write(&path, &damaged).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(noted).unwrap();
    open(Some(&notes)).unwrap();
    assert!(open(None).is_err());
    // Files that are read into memory are always verified.
    assert!(Container::open_verified_once(IN_MEMORY, &path, KIND, Some(&notes)).is_err());
}

#[test]
fn what_killed_processes_left_is_removed_and_what_is_being_written_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sample");
    let left = [".sample.77-0123456789abcdef.tmp", ".folder.77-0123456789abcdef.tmp", ".other.77-0123456789abcdef.tmp"];
    let [file, whole_folder, other] = left.map(|name| folder.path().join(name));
    std::fs::write(&file, "half").unwrap();
    std::fs::create_dir(&whole_folder).unwrap();
    std::fs::write(whole_folder.join("a"), "half").unwrap();
    std::fs::write(&other, "half").unwrap();
    let mut first = AtomicFile::create(&path).unwrap();
    assert!(!file.exists() && whole_folder.exists() && other.exists());
    // A second writer of the same file.
    remove_temporaries_of(&path).unwrap();
    let second = AtomicFile::create(&path).unwrap();
    assert!(first.temporary.exists() && second.temporary.exists());
    first.write_all(b"whole").unwrap();
    first.commit().unwrap();
    drop(second);
    assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    let made = AtomicFolder::create(&folder.path().join("folder")).unwrap();
    assert!(!whole_folder.exists() && other.exists());
    remove_temporaries_of(&folder.path().join("folder")).unwrap();
    std::fs::write(made.temporary().join("a"), "whole").unwrap();
    made.commit().unwrap();
    assert!(folder.path().join("folder/a").exists());
}
