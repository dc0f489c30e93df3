//! Pairs gold and predicted documents for evaluation.
//!
//! Documents are paired by id, and offsets are converted to code points. Several gold documents with the same id are
//! concatenated; a repeated text contributes only its annotations.

use std::collections::HashMap;

use super::ids::IdSet;
use super::{DocumentPair, Entry};
use crate::corpus::{AnnotatedDocument, Annotation};
use crate::text::Span;
use crate::text::offsets::OffsetMap;
use crate::{Error, Result};

/// Maximum number of overlapping pairs of annotations in a document, which bounds memory and time.
const MAX_PAIRS: u64 = 4_000_000;

/// Paired documents, and irregularities found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Paired {
    /// One pair per gold id, in gold order.
    pub documents: Vec<DocumentPair>,
    /// Gold ids without a predicted document; evaluated as documents without predictions.
    pub missing: Vec<String>,
    /// Ids of documents whose predicted text differs from the gold text, so offsets may not match.
    pub different_texts: Vec<String>,
}

/// Pairs `gold` and `predicted` by document id.
///
/// A gold document without predictions is kept and listed; a predicted document without gold is an error.
pub fn pair(gold: &[AnnotatedDocument], predicted: &[AnnotatedDocument]) -> Result<Paired> {
    let mut rows: HashMap<&str, usize> = HashMap::new();
    let mut paired = Paired::default();
    let mut texts: Vec<Texts<'_>> = Vec::new();
    for annotated in gold {
        let id = annotated.document.id.as_str();
        let row = *rows.entry(id).or_insert_with(|| {
            paired.documents.push(DocumentPair { id: id.to_owned(), ..DocumentPair::default() });
            texts.push(Texts::default());
            texts.len() - 1
        });
        let converter = texts[row].add(&annotated.document.text);
        let entries = annotated.annotations.iter().map(|annotation| converter.entry(annotation, gold_ids(annotation)));
        paired.documents[row].gold.extend(entries);
    }
    let mut n_blocks = vec![0; paired.documents.len()];
    let mut different = vec![false; paired.documents.len()];
    for annotated in predicted {
        let id = annotated.document.id.as_str();
        let Some(&row) = rows.get(id) else {
            let message = format!("predicted document `{id}` is not one of the {} gold documents", rows.len());
            return Err(Error::mismatch(message).with_hint("use the gold file of the same documents and split"));
        };
        let text = annotated.document.text.as_str();
        let shift = texts[row].shift_of(text, n_blocks[row]);
        different[row] |= shift.is_err();
        n_blocks[row] += 1;
        let converter =
            OffsetConverter { text, points: OffsetMap::new(text), shift: shift.unwrap_or_else(|nearest| nearest) };
        let entries = annotated.annotations.iter().map(|annotation| converter.predicted_entry(annotation));
        paired.documents[row].predicted.extend(entries);
    }
    for document in &paired.documents {
        check_size(document)?;
    }
    let ids_of = |chosen: &dyn Fn(usize) -> bool| {
        let rows = (0..paired.documents.len()).filter(|&row| chosen(row));
        rows.map(|row| paired.documents[row].id.clone()).collect()
    };
    paired.missing = ids_of(&|row| n_blocks[row] == 0);
    paired.different_texts = ids_of(&|row| different[row]);
    Ok(paired)
}

/// The text of each pair returned by [`pair`] for `gold`, to which the spans of its entries refer.
pub fn texts(gold: &[AnnotatedDocument]) -> Vec<String> {
    let mut rows: HashMap<&str, usize> = HashMap::new();
    let mut texts: Vec<Texts<'_>> = Vec::new();
    for annotated in gold {
        let row = *rows.entry(annotated.document.id.as_str()).or_insert_with(|| {
            texts.push(Texts::default());
            texts.len() - 1
        });
        texts[row].add(&annotated.document.text);
    }
    let joined = |texts: Texts<'_>| texts.parts.iter().map(|(text, _)| *text).collect::<Vec<&str>>().join("\n");
    texts.into_iter().map(joined).collect()
}

/// Rejects a document with an implausible number of overlapping annotations.
fn check_size(document: &DocumentPair) -> Result<()> {
    let ends_of = |end: fn(&Entry) -> Option<u32>| {
        let mut ends: Vec<u32> = document.gold.iter().filter_map(end).collect();
        ends.sort_unstable();
        ends
    };
    let starts = ends_of(|entry| entry.spans.first().map(|span| span.start));
    let ends = ends_of(|entry| entry.spans.last().map(|span| span.end));
    let n_near = |entry: &Entry| -> u64 {
        let (Some(first), Some(last)) = (entry.spans.first(), entry.spans.last()) else { return 0 };
        let n_started = starts.partition_point(|&start| start < last.end);
        n_started.saturating_sub(ends.partition_point(|&end| end <= first.start)) as u64
    };
    let n_pairs: u64 = document.predicted.iter().map(n_near).sum();
    if n_pairs > MAX_PAIRS {
        let message =
            format!("{n_pairs} pairs of annotations overlap in document `{}`; the limit is {MAX_PAIRS}", document.id);
        return Err(Error::too_many(message).with_hint("use one document, with its own id, per text"));
    }
    Ok(())
}

/// The distinct texts of an id, concatenated.
#[derive(Default)]
struct Texts<'a> {
    /// The texts with the positions of their first code point.
    parts: Vec<(&'a str, u32)>,
    n_points: u32,
}

impl<'a> Texts<'a> {
    fn add(&mut self, text: &'a str) -> OffsetConverter<'a> {
        let points = OffsetMap::new(text);
        if let Some(&(_, shift)) = self.parts.iter().find(|(known, _)| *known == text) {
            return OffsetConverter { text, points, shift };
        }
        let shift = self.n_points;
        self.parts.push((text, shift));
        self.n_points = shift.saturating_add(points.n_chars() as u32).saturating_add(1);
        OffsetConverter { text, points, shift }
    }

    /// Start of the predicted `text`, the `block`th of its id; the most likely start as an error if the text is
    /// unknown.
    fn shift_of(&self, text: &str, block: usize) -> std::result::Result<u32, u32> {
        if let Some(&(_, shift)) = self.parts.iter().find(|(known, _)| *known == text) {
            return Ok(shift);
        }
        let nearest = self.parts.get(block).or(self.parts.last()).map_or(0, |&(_, shift)| shift);
        // Without texts there is nothing to compare, and with a single text the position is certain.
        let unknown = text.is_empty() || self.parts.iter().all(|(known, _)| known.is_empty());
        if unknown { Ok(nearest) } else { Err(nearest) }
    }
}

/// Conversion of the byte offsets of a document to code points of its pair.
struct OffsetConverter<'a> {
    text: &'a str,
    points: OffsetMap<'a>,
    shift: u32,
}

impl OffsetConverter<'_> {
    fn entry(&self, annotation: &Annotation, ids: IdSet) -> Entry {
        let point = |byte: u32| code_point(self.text, &self.points, byte).saturating_add(self.shift);
        let spans = annotation.spans.iter().map(|span| {
            let start = point(span.start);
            Span { start, end: point(span.end).max(start) }
        });
        let mut entry = Entry::new(spans.collect(), ids);
        entry.types = IdSet::parse_types(&annotation.semantic_type);
        entry.score = annotation.score.unwrap_or(1.0);
        entry.text.clone_from(&annotation.text);
        entry
    }

    fn predicted_entry(&self, annotation: &Annotation) -> Entry {
        let mut entry = self.entry(annotation, predicted_ids(annotation));
        entry.candidates = annotation.candidates.iter().map(|candidate| IdSet::parse_one(&candidate.id)).collect();
        entry.name = annotation.candidates.first().map_or_else(String::new, |best| best.name.clone());
        entry
    }
}

/// Number of code points before `byte`; bytes past the end count one each, so that offsets without a text are kept.
fn code_point(text: &str, points: &OffsetMap<'_>, byte: u32) -> u32 {
    let byte = byte as usize;
    let inside = points.byte_to_char(byte);
    let point = inside.unwrap_or_else(|| points.n_chars() + byte.saturating_sub(text.len()));
    u32::try_from(point).unwrap_or(u32::MAX)
}

/// The gold ids: those of the annotation, or of its best candidate if the gold file comes from a linker.
fn gold_ids(annotation: &Annotation) -> IdSet {
    match annotation.candidates.first() {
        _ if annotation.nil => IdSet::default(),
        Some(best) if annotation.ids.is_empty() => IdSet::parse_one(&best.id),
        _ => IdSet::parse(&annotation.ids),
    }
}

/// The predicted ids: empty if not linked, else those of the best candidate, else those of the annotation.
fn predicted_ids(annotation: &Annotation) -> IdSet {
    match annotation.candidates.first() {
        _ if annotation.nil => IdSet::default(),
        Some(best) => IdSet::parse_one(&best.id),
        None => IdSet::parse(&annotation.ids),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::CandidateRecord;
    use crate::text::Document;

    fn document(id: &str, text: &str, annotations: Vec<Annotation>) -> AnnotatedDocument {
        let document = Document { id: id.into(), text: text.into(), sections: Vec::new() };
        AnnotatedDocument { document, annotations, ..AnnotatedDocument::default() }
    }

    fn annotation(start: usize, end: usize, id: &str) -> Annotation {
        Annotation { spans: vec![Span::new(start, end)], ids: vec![id.into()], ..Annotation::default() }
    }

    #[test]
    fn offsets_are_code_points() -> Result<()> {
        let gold = [document("1", "β-cell loss", vec![annotation(0, 7, "D1")])];
        let pairs = pair(&gold, &[])?;
        assert_eq!(pairs.documents[0].gold[0].spans, [Span::new(0, 6)]);
        assert_eq!(pairs.missing, ["1"]);
        Ok(())
    }

    #[test]
    fn repeats_of_one_text_share_their_offsets() -> Result<()> {
        let gold = [document("1", "fever", vec![annotation(0, 5, "D1")]), document("1", "fever", Vec::new())];
        let predicted = [document("1", "fever", Vec::new()), document("1", "fever", vec![annotation(0, 5, "D1")])];
        let pairs = pair(&gold, &predicted)?;
        assert_eq!(pairs.documents.len(), 1);
        assert_eq!(pairs.documents[0].gold, pairs.documents[0].predicted);
        Ok(())
    }

    #[test]
    fn blocks_of_one_id_do_not_mix() -> Result<()> {
        let gold = [document("1", "fever", vec![annotation(0, 5, "D1")]), document("1", "cough", Vec::new())];
        let predicted = [document("1", "cough", vec![annotation(0, 5, "D1")])];
        let pairs = pair(&gold, &predicted)?;
        assert_eq!(pairs.documents[0].gold[0].spans, [Span::new(0, 5)]);
        assert_eq!(pairs.documents[0].predicted[0].spans, [Span::new(6, 11)]);
        assert!(pairs.different_texts.is_empty());
        Ok(())
    }

    #[test]
    fn another_text_is_reported() -> Result<()> {
        let gold = [document("1", "fever ", vec![annotation(0, 5, "D1")])];
        let pairs = pair(&gold, &[document("1", "fever\n", vec![annotation(0, 5, "D1")])])?;
        assert_eq!(pairs.different_texts, ["1"]);
        assert_eq!(pairs.documents[0].predicted[0].spans, [Span::new(0, 5)]);
        Ok(())
    }

    #[test]
    fn an_unknown_predicted_document_is_an_error() {
        let error = pair(&[document("1", "", Vec::new())], &[document("2", "", Vec::new())]).expect_err("no such gold");
        assert_eq!(error.to_string(), "predicted document `2` is not one of the 1 gold documents");
        assert!(error.hint().is_some());
    }

    #[test]
    fn too_many_overlaps_are_refused() {
        let heap = [document("1", "fever", vec![annotation(0, 5, "D1"); 2001])];
        let error = pair(&heap, &heap).expect_err("too many");
        assert_eq!(error.to_string(), "4004001 pairs of annotations overlap in document `1`; the limit is 4000000");
    }

    #[test]
    fn the_best_candidate_is_the_prediction() -> Result<()> {
        let candidate = |id: &str| CandidateRecord { id: id.into(), name: String::new(), p_link: 0.5, p_both: None };
        let mut link = annotation(0, 5, "GOLD");
        link.candidates = vec![candidate("MESH:D1|OMIM:2"), candidate("D3")];
        let mut nil = link.clone();
        nil.nil = true;
        let gold = [document("1", "fever", Vec::new())];
        let pairs = pair(&gold, &[document("1", "fever", vec![link, nil])])?;
        let predicted = &pairs.documents[0].predicted;
        assert_eq!(predicted[0].ids, IdSet::parse_one("D1|2"));
        assert!(predicted[1].ids.is_nil());
        assert_eq!(predicted[1].candidates.len(), 2);
        Ok(())
    }

    #[test]
    fn offsets_beyond_a_missing_text_are_kept() -> Result<()> {
        let gold = [document("1", "", vec![annotation(3, 7, "D1")])];
        assert_eq!(pair(&gold, &gold)?.documents[0].gold[0].spans, [Span::new(3, 7)]);
        Ok(())
    }
}
