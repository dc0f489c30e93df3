//! Compressed corpora in which one bit differs: the damage is an error, never other documents.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use canonym_core::corpus::conll::Tags;
use canonym_core::corpus::csv::CsvColumns;
use canonym_core::corpus::documents::{Documents, Purpose, ReadConfig};
use canonym_core::corpus::{CorpusFormat, Reader};
use canonym_core::input::Input;
use canonym_core::text::tags::Repair;

const CONFIG: ReadConfig = ReadConfig {
    fix_offsets: false,
    skip_bad_offsets: false,
    tags: Tags { scheme: None, repair: Repair::Lenient },
    columns: CsvColumns { id: None, text: None, keeps_others: false },
    purpose: Purpose::Texts,
    on_notice: |_| {},
};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn citations() -> String {
    let mut xml = "<PubmedArticleSet>\n".to_owned();
    for (number, title) in ["Fever of a child", "Pain in the knee", "Asthma at night", "Cough"].iter().enumerate() {
        writeln!(
            xml,
            "<PubmedArticle><MedlineCitation><PMID>{number}</PMID><Article><ArticleTitle>{title}</ArticleTitle>\
             </Article></MedlineCitation></PubmedArticle>"
        )
        .unwrap();
    }
    xml + "</PubmedArticleSet>\n"
}

/// Ids and texts, and the errors.
fn read(documents: Documents) -> (Vec<String>, Vec<String>) {
    let (mut read, mut errors) = (Vec::new(), Vec::new());
    for document in documents {
        match document {
            Ok(annotated) => read.push(format!("{} {}", annotated.document.id, annotated.document.text)),
            Err(error) => errors.push(format!("{error} (hint: {})", error.hint().unwrap_or_default())),
        }
    }
    (read, errors)
}

/// Flips a bit of every byte of `packed` in turn, and calls `check` with the path of the damaged file, the position, and
/// whether it is in the data, after the header.
fn flip_each(packed: &[u8], mut check: impl FnMut(&Path, usize, bool)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.xml.gz");
    for at in 0..packed.len() {
        let mut damaged = packed.to_vec();
        damaged[at] ^= 1 << (at % 8);
        std::fs::write(&path, damaged).unwrap();
        check(&path, at, at >= 10);
    }
}

#[test]
fn a_flipped_bit_is_reported_as_damage_of_the_file() {
    let text = citations();
    let whole = Reader::from_input(Input::from_bytes("set.xml", text.clone().into_bytes()).unwrap(), None).unwrap();
    let whole: Vec<String> =
        whole.map(|one| one.unwrap().document).map(|document| format!("{} {}", document.id, document.text)).collect();
    assert_eq!(whole.len(), 4);
    let (mut n_equal, mut n_damaged) = (0, 0);
    flip_each(&gzip(text.as_bytes()), |path, at, is_data| {
        let open = || CONFIG.open(path, Some(CorpusFormat::PubmedXml));
        let check = |errors: &[String]| {
            let [error] = errors else { panic!("byte {at}: {errors:?}") };
            assert!(error.contains("set.xml.gz"), "byte {at}: {error}");
            let is_named = error.contains("the compressed data is damaged or truncated")
                && error.ends_with("(hint: download or compress the file again)");
            assert!(is_named || !is_data, "byte {at}: {error}");
        };
        // The first error ends the run, and its output is not kept.
        let (documents, errors) = match open() {
            Ok(documents) => read(documents),
            Err(error) => (Vec::new(), vec![format!("{error} (hint: {})", error.hint().unwrap_or_default())]),
        };
        if errors.is_empty() {
            // Bits of the header, and those that fill the last byte of the data, mean nothing.
            assert_eq!(documents, whole, "byte {at}");
            n_equal += 1;
        } else {
            check(&errors[..1]);
            n_damaged += 1;
        }
        // Nothing of a damaged file is kept where a run goes on.
        if let Ok(strict) = open().map(Documents::strict) {
            let (documents, errors) = read(strict);
            match errors.is_empty() {
                true => assert_eq!(documents, whole, "byte {at}"),
                false => {
                    check(&errors);
                    assert!(documents.is_empty(), "byte {at}: {documents:?}");
                }
            }
        }
    });
    assert!((5..12).contains(&n_equal) && n_damaged > 100, "{n_equal} {n_damaged}");
}

#[test]
fn damage_behind_malformed_content_is_found_in_a_stream() {
    let text = citations();
    let packed = gzip(text.as_bytes());
    // All but the last byte of the data, whose last bits mean nothing.
    for at in (10..packed.len() - 9).chain(packed.len() - 8..packed.len()) {
        let mut damaged = packed.clone();
        damaged[at] ^= 1 << (at % 8);
        let input = Input::from_bytes("-", damaged);
        let result = input.and_then(|input| Reader::from_input(input, Some(CorpusFormat::PubmedXml)));
        let error = match result {
            Ok(mut reader) => loop {
                match reader.next() {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break reader.cause_of(error),
                    None => panic!("byte {at} is not noticed"),
                }
            },
            Err(error) => error,
        };
        assert!(error.to_string().contains("the compressed data is damaged"), "byte {at}: {error}");
    }
}

#[test]
fn malformed_content_of_a_whole_file_stays_an_error_of_the_content() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.xml.gz");
    std::fs::write(&path, gzip(citations().replace("</PMID>", "</PMI>").as_bytes())).unwrap();
    let (_, errors) = read(CONFIG.open(&path, None).unwrap());
    assert!(errors[0].contains("set.xml.gz:2: ") && !errors[0].contains("compressed"), "{errors:?}");
}

#[test]
fn a_damaged_member_of_an_archive_costs_this_member() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("set.tar");
    let mut damaged = gzip(b"{\"id\":\"1\",\"text\":\"Fever.\"}\n");
    let n_bytes = damaged.len();
    damaged[n_bytes - 8] ^= 1;
    let mut archive = Vec::new();
    for (name, bytes) in [("a.jsonl.gz", damaged.as_slice()), ("b.jsonl", b"{\"id\":\"2\",\"text\":\"Pain.\"}\n")] {
        archive.extend(tar_header(name, bytes.len()));
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.resize(archive.len() + 1024, 0);
    std::fs::write(&path, archive).unwrap();
    let (documents, errors) = read(CONFIG.open(&path, None).unwrap().strict());
    assert_eq!(documents, ["2 Pain."]);
    assert!(errors.len() == 1 && errors[0].contains("set.tar/a.jsonl.gz:2: the compressed data"), "{errors:?}");
}

fn tar_header(name: &str, n_bytes: usize) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name.as_bytes());
    header[124..136].copy_from_slice(format!("{n_bytes:011o}\0").as_bytes());
    header[148..156].fill(b' ');
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}
