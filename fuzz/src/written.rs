//! What each corpus format promises of documents that are written in it and read again.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use canonym_core::corpus::folder::FolderWriter;
use canonym_core::corpus::losses::{Loss, losses};
use canonym_core::corpus::{AnnotatedDocument, Annotation, CorpusFormat, Reader, Writer};
use canonym_core::input::Input;
use canonym_core::text::Span;

/// Documents of one input that are written into one stream, at most.
const MAX_STREAM: usize = 8;

/// Of the inputs of other formats every n-th goes through a folder of brat, because files take time.
const BRAT_STRIDE: usize = 16;

/// Every format can read what it writes, and gives back what [`losses`] does not count.
pub fn check(read: &AnnotatedDocument, from: CorpusFormat) {
    for format in CorpusFormat::ALL {
        let again = match format {
            CorpusFormat::Brat if from == format || read.document.text.len().is_multiple_of(BRAT_STRIDE) => {
                through_folder(read)
            }
            _ => through_stream(&[read], format),
        };
        let Some(again) = again else { continue };
        if format == CorpusFormat::Biosyn && read.annotations.is_empty() {
            assert!(again.is_empty(), "{format}: without queries there is no document");
            continue;
        }
        assert_eq!(again.len(), 1, "{format}: one document written is one read");
        compare(read, &again[0], format, from);
    }
}

/// Documents that are written one behind the other stay apart.
pub fn check_stream(documents: &[AnnotatedDocument]) {
    let twice: Vec<&AnnotatedDocument> =
        documents.iter().take(MAX_STREAM).chain(documents.iter().take(MAX_STREAM)).collect();
    // Neighbouring queries of one document are one document.
    for format in CorpusFormat::ALL.into_iter().filter(|&format| format != CorpusFormat::Biosyn) {
        if let Some(again) = through_stream(&twice, format) {
            assert_eq!(again.len(), twice.len(), "{format}: as many documents are read as were written");
        }
    }
}

/// What is read of documents that were written into memory; `None` where the format cannot carry one of them.
fn through_stream(documents: &[&AnnotatedDocument], format: CorpusFormat) -> Option<Vec<AnnotatedDocument>> {
    let mut writer = Writer::new(Vec::new(), Path::new("output"), format).ok()?;
    for document in documents {
        writer.write(document).ok()?;
    }
    let bytes = writer.finish().expect("memory can be written");
    let again = Input::from_bytes("output", bytes).and_then(|input| Reader::from_input(input, Some(format)));
    Some(read_all(again, format))
}

/// What is read of a document whose two files were written; `None` where brat cannot carry it.
fn through_folder(document: &AnnotatedDocument) -> Option<Vec<AnnotatedDocument>> {
    in_folder(|folder| {
        FolderWriter::new(folder).write(document).ok()?;
        Some(read_all(Reader::open(folder, Some(CorpusFormat::Brat)), CorpusFormat::Brat))
    })
}

fn read_all(reader: canonym_core::Result<Reader>, format: CorpusFormat) -> Vec<AnnotatedDocument> {
    let documents = reader.and_then(Iterator::collect::<canonym_core::Result<Vec<AnnotatedDocument>>>);
    documents.unwrap_or_else(|error| panic!("{format}: written text cannot be read: {error}"))
}

/// Runs something in a new folder, which is removed.
pub fn in_folder<T>(run: impl FnOnce(&Path) -> T) -> T {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("canonym-fuzz-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for temporary files can be made");
    // A panic is a finding, and its folder goes as well.
    struct Removed<'a>(&'a Path);
    impl Drop for Removed<'_> {
        fn drop(&mut self) {
            std::fs::remove_dir_all(self.0).ok();
        }
    }
    let _removed = Removed(&folder);
    run(&folder)
}

fn compare(before: &AnnotatedDocument, after: &AnnotatedDocument, format: CorpusFormat, from: CorpusFormat) {
    use CorpusFormat::{BiocJson, BiocXml, Biosyn, Brat, Conll, Jsonl, PubmedXml, Pubtator, Texoo};
    let text = |read: &AnnotatedDocument| blank(&read.document.text);
    if matches!(format, Jsonl | Texoo | BiocJson | BiocXml | Pubtator | Brat) {
        assert_eq!(text(before), text(after), "{format}: the text comes back");
    }
    // brat and tokens without an id are called like their file.
    if matches!(format, Jsonl | BiocJson | Pubtator) || format == from && !matches!(format, Brat | Conll | Texoo) {
        assert_eq!(blank(&before.document.id), blank(&after.document.id), "{format}: the id comes back");
    }
    let lost = losses(before, format);
    let n_lost = |loss: Loss| lost.counts.get(&loss).map_or(0, |count| count.n as usize);
    let n_kept = before.annotations.len() - n_lost(Loss::Annotation);
    match format {
        PubmedXml => {}
        Conll => {
            let n_kept = n_kept - n_lost(Loss::Discontinuous) - n_lost(Loss::Overlapping);
            assert!(after.annotations.len() <= n_kept, "{format}: no annotation is made up");
        }
        _ => assert_eq!(after.annotations.len(), n_kept, "{format}: as many annotations as before"),
    }
    if matches!(format, Jsonl | BiocJson | BiocXml) || format == Brat && n_lost(Loss::Split) == 0 {
        assert_eq!(spans(before), spans(after), "{format}: the spans come back");
    }
    if matches!(format, Pubtator | Texoo) {
        assert_eq!(hulls(before), hulls(after), "{format}: mentions start and end where they did");
    }
    if format == from && n_lost(Loss::IdList) + n_lost(Loss::Candidate) == 0 && !matches!(format, Conll | Biosyn) {
        assert_eq!(ids(before), ids(after), "{format}: the ids come back");
    }
    // A carriage return inside of a line is a space in a query.
    let is_same = matches!(format, Jsonl | Brat) || format == Biosyn && !before.document.text.contains('\r');
    if format == from && is_same {
        assert_eq!(before.annotations, after.annotations, "{format}: the annotations come back");
        assert_eq!(before.document.text, after.document.text, "{format}: the text comes back as it was");
    }
    if format == from && matches!(format, Jsonl | Brat | BiocJson) && n_lost(Loss::Relation) == 0 {
        assert_eq!(before.relations, after.relations, "{format}: the relations come back");
    }
}

/// `text` with a space for whatever XML or PubTator writes as one.
fn blank(text: &str) -> String {
    text.replace(|c: char| c <= '\u{1f}' || matches!(c, '\u{fffe}' | '\u{ffff}'), " ")
}

fn spans(read: &AnnotatedDocument) -> Vec<&[Span]> {
    // BioC writes annotations where they stand.
    let mut spans: Vec<&[Span]> = read.annotations.iter().map(|one| &one.spans[..]).collect();
    spans.sort();
    spans
}

fn hulls(read: &AnnotatedDocument) -> Vec<(u32, u32)> {
    let hull = |one: &Annotation| (one.spans[0].start, one.spans[one.spans.len() - 1].end);
    // A tab or a line break has as many bytes as the space that PubTator writes for it.
    read.annotations.iter().map(hull).collect()
}

fn ids(read: &AnnotatedDocument) -> Vec<&[String]> {
    read.annotations.iter().map(|one| &one.ids[..]).collect()
}
