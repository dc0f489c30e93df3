//! Corpus formats from the outside: files, folders, round trips and real corpora.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use canonym_core::corpus::{
    AnnotatedDocument, Annotation, CandidateRecord, CorpusFormat, OnMismatch, ReadCounts, Reader, Relation, Writer,
};
use canonym_core::input::Input;
use canonym_core::text::{Document, Section, Span};
use canonym_core::{Error, Result};
use proptest::prelude::*;

pub(crate) fn read(bytes: &[u8], format: Option<CorpusFormat>) -> Result<Vec<AnnotatedDocument>> {
    Reader::from_input(Input::from_bytes("in", bytes.to_vec())?, format)?.collect()
}

pub(crate) fn written(documents: &[AnnotatedDocument], format: CorpusFormat) -> Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), Path::new("out"), format)?;
    for document in documents {
        writer.write(document)?;
    }
    writer.finish()
}

fn ids(reader: Reader) -> Vec<String> {
    reader.map(|item| item.map_or_else(|error| error.to_string(), |read| read.document.id)).collect()
}

#[test]
fn folder_is_read_file_by_file_in_order_of_paths() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("b")).unwrap();
    write("c.txt", b"A note.");
    write("a.jsonl", b"{\"id\":\"a1\",\"text\":\"\"}\n{\"id\":\"a2\",\"text\":\"\"}\n");
    write("b/one.txt", b"b1|t|A title.\n");
    write("b.txt", &zstd::encode_all(&b"packed text"[..], 3).unwrap());
    write(".hidden", b"\xff");
    assert_eq!(ids(Reader::open(folder.path(), None).unwrap()), ["a1", "a2", "b1", "b", "c"]);
    assert_eq!(ids(Reader::open(folder.path(), Some(CorpusFormat::Text)).unwrap()), ["a", "one", "b", "c"]);
}

#[test]
fn members_of_an_archive_are_read_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.zip");
    let mut archive = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    for name in ["one.txt", "two.txt"] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut archive, b"No pain.").unwrap();
    }
    archive.finish().unwrap();
    assert_eq!(ids(Reader::open(&path, None).unwrap()), ["one", "two"]);
}

#[test]
fn missing_paths_and_empty_folders_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Reader::open(&folder.path().join("none"), None), Err(Error::Io { .. })));
    assert!(matches!(Reader::open(folder.path(), None), Err(Error::NoData { .. })));
}

#[test]
fn broken_file_ends_and_the_next_one_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut packed = zstd::encode_all("1|t|A title.\n\n".repeat(50_000).as_bytes(), 3).unwrap();
    packed.truncate(packed.len() / 2);
    fs::write(folder.path().join("a.pubtator.zst"), packed).unwrap();
    fs::write(folder.path().join("b.txt"), b"bad \xff").unwrap();
    fs::write(folder.path().join("c.txt"), b"good").unwrap();
    let items: Vec<Result<AnnotatedDocument>> = Reader::open(folder.path(), None).unwrap().collect();
    assert_eq!(items.iter().filter(|item| item.is_err()).count(), 2);
    assert_eq!(items.last().unwrap().as_ref().unwrap().document.id, "c");
}

#[test]
fn files_named_xml_that_are_not_xml_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("a.xml", &b""[..]),
        ("b.xml.gz", b"not gzip at all"),
        ("c.xml.zst", &zstd::encode_all(&b""[..], 3).unwrap()),
        ("d.nxml", b"<html><body>Bad Gateway</body></html>"),
        ("e.txt", b"<html>"),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let place = format!("{}/", folder.path().display());
    let items: Vec<String> = ids(Reader::open(folder.path(), None).unwrap());
    let items: Vec<String> = items.iter().map(|item| item.replace(&place, "")).collect();
    assert_eq!(
        items,
        [
            "a.xml:1: no XML element found",
            "b.xml.gz:1: no XML element found",
            "c.xml.zst:1: no XML element found",
            "d.nxml:1: this is a web page (HTML), not a document",
            "e"
        ]
    );
}

#[test]
fn wrong_offsets_are_dropped_and_counted_on_request() {
    let text = b"1|t|No pain.\n1\t3\t7\tpain\tFinding\tX\n1\t3\t7\tgain\tFinding\tX\n";
    let input = Input::from_bytes("in", text.to_vec()).unwrap();
    let mut reader = Reader::from_input(input, None).unwrap().with_on_mismatch(OnMismatch::Drop);
    assert_eq!(reader.next().unwrap().unwrap().annotations.len(), 1);
    assert!(reader.next().is_none());
    assert_eq!(
        reader.counts(),
        ReadCounts { n_documents: 1, n_annotations: 1, n_bad_offsets: 1, ..ReadCounts::default() }
    );
}

#[test]
fn long_lines_are_refused() {
    let mut text = b"1|t|".to_vec();
    text.resize(canonym_core::corpus::MAX_DOCUMENT_BYTES + 10, b'a');
    for format in [CorpusFormat::Text, CorpusFormat::Jsonl, CorpusFormat::Pubtator] {
        assert!(matches!(read(&text, Some(format)), Err(Error::Limit { .. })), "{format}");
    }
}

/// Text of every kind that breaks offsets: letters of one to four bytes, line ends, blanks of other widths.
fn any_text() -> impl Strategy<Value = String> {
    "([a-z |.]|[α-ω]|😀|\u{a0}|\u{2028}|e\u{301}|\t|\r\n|\n|\\PC){0,60}"
}

fn line_text() -> impl Strategy<Value = String> {
    any_text().prop_map(|text| text.replace(['\r', '\n'], "\u{b}"))
}

fn word() -> impl Strategy<Value = String> {
    "[A-Za-z0-9:|+,; -]{0,12}"
}

/// Up to `n` spans in text order, as the caller's numbers choose them.
fn spans_of(text: &str, choices: &[prop::sample::Index]) -> Vec<Span> {
    let mut offsets: Vec<usize> = text.char_indices().map(|(byte, _)| byte).collect();
    offsets.push(text.len());
    let chosen: BTreeSet<usize> = choices.iter().map(|choice| offsets[choice.index(offsets.len())]).collect();
    let chosen: Vec<usize> = chosen.into_iter().collect();
    chosen.chunks_exact(2).map(|pair| Span::new(pair[0], pair[1])).collect()
}

pub(crate) fn surface(text: &str, spans: &[Span]) -> String {
    spans.iter().map(|span| span.of(text)).collect::<Vec<&str>>().join(" ")
}

prop_compose! {
    /// A document as a PubTator file holds it.
    fn pubtator_document()(
        id in "[A-Za-z0-9 .-]{1,8}",
        title in line_text(),
        summary in line_text(),
        choices in prop::collection::vec((any::<[prop::sample::Index; 2]>(), word(), prop::option::of(word()), any::<bool>()), 0..5),
        relations in prop::collection::vec(("[A-Z]{1,4}", word()).prop_map(|(kind, id)| Relation::plain(&kind, &[&id])), 0..3),
    ) -> AnnotatedDocument {
        let text = if summary.is_empty() { title.clone() } else { format!("{title} {summary}") };
        let sections = vec![
            Section { kind: "title".to_owned(), span: Span::new(0, title.len()) },
            Section { kind: "abstract".to_owned(), span: Span::new(text.len() - summary.len(), text.len()) },
        ];
        let annotations = choices.into_iter().filter_map(|(choice, semantic_type, ids, composite)| {
            let spans = spans_of(&text, &choice);
            let parts = if composite && ids.is_some() { vec!["a".to_owned(), "b c".to_owned()] } else { Vec::new() };
            (!spans.is_empty()).then(|| Annotation {
                text: surface(&text, &spans).replace('\t', " "), spans, semantic_type,
                ids: ids.into_iter().collect(), parts, ..Annotation::default()
            })
        }).collect();
        AnnotatedDocument { document: Document { id, text, sections }, annotations, relations, ..AnnotatedDocument::default() }
    }
}

prop_compose! {
    /// A document as a JSON line holds it, gold or linked.
    pub(crate) fn json_document()(
        id in any_text(),
        text in any_text(),
        choices in prop::collection::vec((any::<[prop::sample::Index; 6]>(), word(), any::<bool>(), 0u32..=10_000, 0usize..3), 0..5),
    ) -> AnnotatedDocument {
        let annotations = choices.into_iter().filter_map(|(choice, word, nil, score, n_candidates)| {
            let spans = spans_of(&text, &choice);
            let score = score as f32 / 10_000.0;
            let candidate = CandidateRecord { id: word.clone(), name: text.clone(), p_link: score, p_both: None };
            let gold = n_candidates == 0 && !nil;
            let known = if nil { Vec::new() } else { vec![word.clone()] };
            (!spans.is_empty()).then(|| Annotation {
                text: surface(&text, &spans), spans, semantic_type: word, ids: known,
                score: (!gold).then_some(score), nil, candidates: vec![candidate; n_candidates], ..Annotation::default()
            })
        }).collect();
        AnnotatedDocument { document: Document { id, text, sections: Vec::new() }, annotations, ..AnnotatedDocument::default() }
    }
}

/// Start and end of every span in code points.
pub(crate) fn code_points(documents: &[AnnotatedDocument]) -> Vec<(usize, usize)> {
    let count = |read: &AnnotatedDocument, byte: u32| read.document.text[..byte as usize].chars().count();
    let spans = documents.iter().flat_map(|read| {
        let first_and_last = |found: &Annotation| (found.spans[0].start, found.spans[found.spans.len() - 1].end);
        read.annotations.iter().map(first_and_last).map(|(start, end)| (count(read, start), count(read, end)))
    });
    spans.collect()
}

proptest! {
    #[test]
    fn pubtator_written_and_read_is_the_same(documents in prop::collection::vec(pubtator_document(), 0..4)) {
        let bytes = written(&documents, CorpusFormat::Pubtator).unwrap();
        prop_assert_eq!(&read(&bytes, Some(CorpusFormat::Pubtator)).unwrap(), &documents);
        let windows = String::from_utf8(bytes).unwrap().replace('\n', "\r\n");
        prop_assert_eq!(read(windows.as_bytes(), Some(CorpusFormat::Pubtator)).unwrap(), documents);
    }

    #[test]
    fn json_written_and_read_is_the_same(documents in prop::collection::vec(json_document(), 0..4)) {
        let bytes = written(&documents, CorpusFormat::Jsonl).unwrap();
        prop_assert_eq!(read(&bytes, Some(CorpusFormat::Jsonl)).unwrap(), documents);
    }

    #[test]
    fn any_text_keeps_its_offsets_in_pubtator(mut document in json_document()) {
        document.document.id = "1".to_owned();
        let documents = vec![document];
        let bytes = written(&documents, CorpusFormat::Pubtator).unwrap();
        let back = read(&bytes, Some(CorpusFormat::Pubtator)).unwrap();
        prop_assert_eq!(code_points(&back), code_points(&documents));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for format in CorpusFormat::ALL {
            let _ = read(&bytes, Some(format));
        }
        let _ = read(&bytes, None);
    }

    #[test]
    fn mutated_files_never_panic(
        document in pubtator_document(),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..8),
    ) {
        let formats =
            [CorpusFormat::Jsonl, CorpusFormat::Pubtator, CorpusFormat::BiocXml, CorpusFormat::BiocJson, CorpusFormat::Texoo];
        for format in formats {
            let mut bytes = written(&[document.clone(), document.clone()], format).unwrap();
            for (at, byte, kind) in &mutations {
                let at = at.index(bytes.len());
                match kind {
                    0 => bytes[at] = *byte,
                    1 => bytes.insert(at, *byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            let input = Input::from_bytes("in", bytes);
            let Ok(reader) = input.and_then(|input| Reader::from_input(input, Some(format))) else { continue };
            for item in reader.with_on_mismatch(OnMismatch::Drop).flatten() {
                for annotation in item.annotations {
                    prop_assert!(annotation.spans.iter().all(|span| !span.of(&item.document.text).is_empty()));
                }
            }
        }
    }
}

/// The folder of real corpora, or `None` with a message where `name` is not in it.
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("CANONYM_DATA").map_or_else(beside, PathBuf::from).join(name);
    if !path.exists() {
        println!("skipped: {} is missing", path.display());
        return None;
    }
    Some(path)
}

#[test]
fn real_corpora_have_the_wrong_offsets_that_are_known() {
    let known = [
        ("ncbi-disease/train.pubtator.txt", [593, 5145, 0]),
        ("ncbi-disease/dev.pubtator.txt", [100, 787, 0]),
        ("bc5cdr/train.pubtator.txt", [500, 9385, 0]),
        ("bc5cdr/dev.pubtator.txt", [500, 9591, 0]),
        ("medmentions-st21pv/train.pubtator.txt", [2635, 122_001, 0]),
        ("other-corpora/BioRED_TrainDev.pubtator.txt", [404, 13_244, 0]),
        ("other-corpora/Linnaeus_Train.pubtator.txt", [80, 2321, 0]),
        ("other-corpora/BioID_Train_revision.pubtator.txt", [9704, 4136, 1]),
        ("other-corpora/tmVar3_Train.pubtator.txt", [318, 7246, 21]),
        ("other-corpora/SPECIES_Train.pubtator.txt", [639, 3053, 0]),
        ("other-corpora/NLMgene_Train.pubtator.txt", [429, 13_185, 11]),
        ("other-corpora/GNormPlus_Train.pubtator.txt", [427, 5668, 35]),
        ("craft/uberon.train.jsonl", [60, 10_771, 0]),
        ("craft/uberon.dev.jsonl", [7, 1498, 0]),
        ("craft/cl.train.jsonl", [60, 3462, 0]),
        ("craft/cl.dev.jsonl", [7, 581, 0]),
        ("formats/pubmed-abstracts-1000.jsonl", [1000, 0, 0]),
    ];
    for (name, [n_documents, n_annotations, n_bad_offsets]) in known {
        let Some(path) = data(name) else { continue };
        let mut reader = Reader::open(&path, None).unwrap().with_on_mismatch(OnMismatch::Drop);
        for item in &mut reader {
            item.unwrap();
        }
        assert_eq!(
            reader.counts(),
            ReadCounts { n_documents, n_annotations, n_bad_offsets, ..ReadCounts::default() },
            "{name}"
        );
    }
}

#[test]
fn first_wrong_offset_of_a_real_corpus_is_named() {
    let Some(path) = data("other-corpora/BioID_Train_revision.pubtator.txt") else { return };
    let error = Reader::open(&path, None).unwrap().find_map(|item| item.err()).unwrap();
    let message = error.to_string();
    assert!(message.contains(".txt:8199: document `"), "{message}");
    assert!(message.contains("the text there is `Jurkat T`"), "{message}");
}

/// The lines by tab of a PubTator file: annotations and relations.
fn tab_lines(bytes: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(bytes).expect("corpora are UTF-8");
    let is_passage = |line: &&str| line.split('\t').next().is_some_and(|id| id.contains('|'));
    text.split('\n').filter(|line| !line.is_empty() && !is_passage(line)).map(str::to_owned).collect()
}

#[test]
fn real_pubtator_files_are_written_as_they_were() {
    for name in [
        "ncbi-disease/train.pubtator.txt",
        "ncbi-disease/dev.pubtator.txt",
        "bc5cdr/train.pubtator.txt",
        "bc5cdr/dev.pubtator.txt",
        "other-corpora/BioRED_TrainDev.pubtator.txt",
        "other-corpora/Linnaeus_Train.pubtator.txt",
        "medmentions-st21pv/train.pubtator.txt",
    ] {
        let Some(path) = data(name) else { continue };
        let documents: Vec<AnnotatedDocument> = Reader::open(&path, None).unwrap().collect::<Result<_>>().unwrap();
        let bytes = written(&documents, CorpusFormat::Pubtator).unwrap();
        let original = fs::read(&path).unwrap();
        assert!(tab_lines(&bytes) == tab_lines(&original), "{name}");
        assert!(bytes.trim_ascii() == original.trim_ascii(), "{name}");
        let lines = written(&documents, CorpusFormat::Jsonl).unwrap();
        let back = read(&lines, Some(CorpusFormat::Jsonl)).unwrap();
        assert!(back == documents, "{name}");
    }
}
