//! Corpora as they come: the traps of real files in made-up ones, repairs, and conversions of real files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use canonym_core::Result;
use canonym_core::corpus::folder::FolderWriter;
use canonym_core::corpus::losses::losses;
use canonym_core::corpus::repair::FixKind;
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, OnMismatch, Reader, Writer};
use canonym_core::input::{Encoding, Input};

fn reader(bytes: &[u8], format: Option<CorpusFormat>) -> Reader {
    Reader::from_input(Input::from_bytes("in", bytes.to_vec()).unwrap(), format).unwrap()
}

fn read(text: &str, format: Option<CorpusFormat>) -> Vec<AnnotatedDocument> {
    reader(text.as_bytes(), format).collect::<Result<_>>().unwrap()
}

fn written(documents: &[AnnotatedDocument], format: CorpusFormat) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Path::new("out"), format).unwrap();
    for document in documents {
        writer.write(document).unwrap();
    }
    writer.finish().unwrap()
}

/// A PubTator text, through every format that can hold it, is what it was.
fn check_stays(text: &str) {
    let documents = read(text, Some(CorpusFormat::Pubtator));
    assert_eq!(String::from_utf8(written(&documents, CorpusFormat::Pubtator)).unwrap(), text);
    let lines = written(&documents, CorpusFormat::Jsonl);
    let back = read(std::str::from_utf8(&lines).unwrap(), Some(CorpusFormat::Jsonl));
    assert_eq!(back, documents);
    assert_eq!(String::from_utf8(written(&back, CorpusFormat::Pubtator)).unwrap(), text);
}

#[test]
fn ids_stay_as_their_source_writes_them() {
    check_stays(concat!(
        "7|t|Breast and skin cancer.\n7|a|\n",
        "7\t0\t22\tBreast and skin cancer\tDisease\tD001943|D012878\tbreast cancer|skin cancer\n",
        "7\t11\t22\tskin cancer\tDisease\tD004829+D003294\n",
        "7\t0\t6\tBreast\tGene\t7037,7036\n",
        "7\t11\t15\tskin\tDisease\t-1\n",
        "7\t16\t22\tcancer\tDisease\tOMIM:217000 \n\n",
    ));
}

#[test]
fn relations_follow_annotations() {
    check_stays("7|t|A drug.\n7|a|It hurts.\n7\t2\t6\tdrug\tChemical\tD1\n7\tCID\tD1\tD2\n\n");
}

#[test]
fn offsets_count_code_points() {
    check_stays(
        "7|t|😀 β title.\n7|a|Sjögren’s pain.\n7\t11\t20\tSjögren’s\tDisease\tD1\n7\t21\t25\tpain\tDisease\tD2\n\n",
    );
}

#[test]
fn documents_and_ids_may_repeat() {
    let block = "7|t|Pain.\n7|a|\n7\t0\t4\tPain\tFinding\tD1\n\n";
    check_stays(&[block, "8|t|Gout.\n8|a|\n\n", "7|t|More pain.\n7|a|\n\n", block].concat());
}

#[test]
fn text_of_another_encoding_is_refused_or_named() {
    let bytes = b"7|t|Caf\xe9.\n";
    let error = reader(bytes, Some(CorpusFormat::Pubtator)).next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "in:1: invalid UTF-8: byte 8 of the line (0xe9)");
    assert_eq!(error.hint(), Some("convert the file to UTF-8, for example with `iconv -f ISO-8859-1 -t UTF-8`"));
    let input = Input::from_bytes("in", bytes.to_vec()).unwrap().with_encoding(Encoding::Latin1);
    let read = Reader::from_input(input, Some(CorpusFormat::Pubtator)).unwrap().next().unwrap().unwrap();
    assert_eq!(read.document.text, "Café.");
}

#[test]
fn repairs_are_listed_and_counted() {
    let text = "7|t|A title.\n7|a|Fever and gout.\n7\t10\t15\tFever\tD\tX\n7\t20\t24\tgout\tD\tX\n7\t0\t7\tA tail!\tD\tX\n7\t2\t7\tTITLE\tD\tX\n";
    let mut wrong = reader(text.as_bytes(), None).with_repairs(true).with_on_mismatch(OnMismatch::Drop);
    let document = wrong.next().unwrap().unwrap();
    let texts: Vec<&str> = document.annotations.iter().map(|one| one.spans[0].of(&document.document.text)).collect();
    assert_eq!(texts, ["Fever", "gout", "title"]);
    let listed: Vec<String> = wrong.fixes().iter().map(ToString::to_string).collect();
    assert_eq!(
        listed,
        [
            "in:3 document 7: \"Fever\" 10..15 -> 9..14 (shifted by one)",
            "in:4 document 7: \"gout\" 20..24 -> 19..23 (shifted by one)",
            "in:6 document 7: \"TITLE\" 2..7 (spelling differs)",
        ]
    );
    assert_eq!((wrong.counts().n_fixed, wrong.counts().n_bad_offsets), (3, 1));
    assert!(wrong.next().is_none());
    assert!(wrong.fixes().is_empty());
    assert!(reader(text.as_bytes(), None).with_repairs(true).next().unwrap().is_err());
}

/// The folder of real corpora, or `None` with a message where `name` is not in it.
fn data(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("CANONYM_DATA").map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        println!("skipped: {} is missing", path.display());
        return None;
    }
    Some(path)
}

fn documents(path: &Path) -> Vec<AnnotatedDocument> {
    Reader::open(path, None).unwrap().with_on_mismatch(OnMismatch::Drop).collect::<Result<_>>().unwrap()
}

#[test]
fn wrong_offsets_of_real_corpora_are_repaired_where_that_is_certain() {
    /// How many are repaired, how many stay wrong, and what was wrong with those that are repaired.
    type Known = (&'static str, u64, u64, &'static [(&'static str, usize)]);
    let known: [Known; 4] = [
        ("BioID_Train_revision", 0, 1, &[]),
        ("tmVar3_Train", 21, 0, &[("shifted", 21)]),
        ("NLMgene_Train", 11, 0, &[("shifted", 10), ("spelling", 1)]),
        ("GNormPlus_Train", 34, 1, &[("bytes", 30), ("shifted", 3), ("spelling", 1)]),
    ];
    for (name, n_fixed, n_bad, kinds) in known {
        let Some(path) = data(&format!("other-corpora/{name}.pubtator.txt")) else { continue };
        let mut reader = Reader::open(&path, None).unwrap().with_repairs(true).with_on_mismatch(OnMismatch::Drop);
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        while let Some(item) = reader.next() {
            item.unwrap();
            for fix in reader.fixes() {
                let kind = match fix.kind {
                    FixKind::Shifted(_) => "shifted",
                    FixKind::Utf16 => "utf-16",
                    FixKind::Utf8 => "bytes",
                    FixKind::Cut => "cut",
                    FixKind::Spelling => "spelling",
                };
                *found.entry(kind).or_default() += 1;
            }
        }
        let found: Vec<(&str, usize)> = found.into_iter().collect();
        assert_eq!(
            (reader.counts().n_fixed, reader.counts().n_bad_offsets, &found[..]),
            (n_fixed, n_bad, kinds),
            "{name}"
        );
    }
}

#[test]
fn real_corpora_pass_through_json_unchanged() {
    for name in [
        "ncbi-disease/train.pubtator.txt",
        "ncbi-disease/dev.pubtator.txt",
        "bc5cdr/train.pubtator.txt",
        "bc5cdr/dev.pubtator.txt",
        "medmentions-st21pv/train.pubtator.txt",
        "other-corpora/BioRED_TrainDev.pubtator.txt",
        "other-corpora/Linnaeus_Train.pubtator.txt",
        "other-corpora/SPECIES_Train.pubtator.txt",
    ] {
        let Some(path) = data(name) else { continue };
        let documents = documents(&path);
        let lines = written(&documents, CorpusFormat::Jsonl);
        let back = read(std::str::from_utf8(&lines).unwrap(), Some(CorpusFormat::Jsonl));
        assert!(back == documents, "{name}");
        assert!(written(&back, CorpusFormat::Pubtator).trim_ascii() == fs::read(&path).unwrap().trim_ascii(), "{name}");
        assert!(documents.iter().all(|document| losses(document, CorpusFormat::Jsonl).is_empty()), "{name}");
    }
}

#[test]
fn real_articles_in_json_are_written_as_they_were() {
    for name in ["uberon.train", "uberon.dev", "cl.train", "cl.dev"] {
        let Some(path) = data(&format!("craft/{name}.jsonl")) else { continue };
        let values = |bytes: &[u8]| -> Vec<serde_json::Value> {
            serde_json::Deserializer::from_slice(bytes).into_iter().collect::<serde_json::Result<_>>().unwrap()
        };
        let bytes = written(&documents(&path), CorpusFormat::Jsonl);
        assert!(values(&bytes) == values(&fs::read(&path).unwrap()), "{name}");
    }
}

#[test]
fn real_queries_are_written_as_they_were() {
    for (name, n_mentions) in [
        ("biosyn-ncbi-disease/train.concept", 5134),
        ("biosyn-ncbi-disease/dev.concept", 787),
        ("biosyn-ncbi-disease/traindev.concept", 5921),
        ("biosyn-bc5cdr-disease/train.concept", 4131),
        ("biosyn-bc5cdr-disease/dev.concept", 4178),
        ("biosyn-bc5cdr-disease/traindev.concept", 8309),
    ] {
        let Some(path) = data(name) else { continue };
        let documents = documents(&path);
        assert_eq!(documents.iter().map(|document| document.annotations.len()).sum::<usize>(), n_mentions, "{name}");
        assert!(written(&documents, CorpusFormat::Biosyn) == fs::read(&path).unwrap(), "{name}");
    }
}

#[test]
fn real_brat_folder_is_written_as_it_was() {
    let Some(path) = data("formats/brat") else { return };
    let documents = documents(&path);
    assert_eq!(documents.len(), 18);
    let folder = tempfile::tempdir().unwrap();
    let mut writer = FolderWriter::new(folder.path());
    for document in &documents {
        writer.write(document).unwrap();
    }
    let mut n_files = 0;
    for entry in folder.path().read_dir().unwrap() {
        let name = entry.unwrap().file_name();
        assert!(fs::read(folder.path().join(&name)).unwrap() == fs::read(path.join(&name)).unwrap(), "{name:?}");
        n_files += 1;
    }
    assert_eq!(n_files, 36);
    let lines = written(&documents, CorpusFormat::Jsonl);
    let back = read(std::str::from_utf8(&lines).unwrap(), Some(CorpusFormat::Jsonl));
    for (back, document) in back.iter().zip(&documents) {
        assert_eq!((&back.annotations, &back.relations), (&document.annotations, &document.relations));
    }
}

#[test]
fn real_mentions_survive_tokens_and_tags() {
    for name in
        ["ncbi-disease/dev.pubtator.txt", "bc5cdr/dev.pubtator.txt", "other-corpora/BioRED_TrainDev.pubtator.txt"]
    {
        let Some(path) = data(name) else { continue };
        let documents = documents(&path);
        let bytes = written(&documents, CorpusFormat::Conll);
        let back = read(std::str::from_utf8(&bytes).unwrap(), Some(CorpusFormat::Conll));
        assert_eq!(back.len(), documents.len(), "{name}");
        for (back, document) in back.iter().zip(&documents) {
            let n_lost: u64 = losses(document, CorpusFormat::Conll)
                .counts
                .iter()
                .filter(|(loss, _)| matches!(loss, canonym_core::corpus::losses::Loss::Overlapping))
                .map(|(_, count)| count.n)
                .sum();
            assert_eq!(back.annotations.len() as u64 + n_lost, document.annotations.len() as u64, "{name}");
            let mut rest = document.annotations.iter();
            let is_known = back.annotations.iter().filter(|one| one.ids.iter().any(|id| !id.is_empty()));
            for annotation in is_known.take(1) {
                assert!(rest.any(|one| one.ids == annotation.ids), "{name}");
            }
        }
        assert!(written(&back, CorpusFormat::Conll) == bytes, "{name}");
    }
}
