//! Counts what a format cannot represent of a document.
//!
//! A table lists what each format can represent; a few cases depend on the document and are decided by the writers.
//! Documents are not changed.
//!
//! ```
//! use canonym_core::corpus::losses::losses;
//! use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, Relation};
//!
//! let mut document = AnnotatedDocument::default();
//! document.relations.push(Relation::plain("CID", &["D1", "D2"]));
//! assert_eq!(losses(&document, CorpusFormat::Pubtator).lines().count(), 0);
//! let lost = losses(&document, CorpusFormat::Brat);
//! assert_eq!(lost.lines().next().as_deref(), Some("1 relation was dropped (first in document ``)"));
//! ```

use std::collections::BTreeMap;

use crate::corpus::CorpusFormat::{BiocJson, BiocXml, Biosyn, Brat, Conll, Jsonl, Pubtator, Texoo};
use crate::corpus::check::quote;
use crate::corpus::{AnnotatedDocument, Annotation, CorpusFormat, biosyn, brat, conll};

/// A kind of loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Loss {
    /// Texts; only the mentions remain.
    Text,
    /// Line breaks and other white space, which are replaced.
    WhiteSpace,
    /// Line breaks added between sentences.
    LineBreak,
    /// Sections.
    Section,
    /// All annotations.
    Annotation,
    /// Discontinuous mentions, written as their hull.
    Hull,
    /// Discontinuous mentions, dropped.
    Discontinuous,
    /// Mentions that overlap a longer one, dropped.
    Overlapping,
    /// Mentions across a line break, written in fragments.
    Split,
    /// Types that are missing or not a single word, replaced.
    Type,
    /// Separation of several ids of a mention.
    IdList,
    /// Names of the parts of composite mentions.
    Parts,
    /// Keys of annotations.
    Key,
    /// Attributes of annotations.
    Attribute,
    /// Relations, dropped.
    Relation,
    /// Keys, roles or attributes of relations.
    RelationDetail,
    /// Attributes of documents.
    DocumentAttribute,
    /// Scores.
    Score,
    /// Candidates after the first, and names and scores of all.
    Candidate,
    /// Codes in another code system.
    Code,
    /// Mentions without a concept of the common data model.
    Unmapped,
    /// Mentions of types that no resource holds.
    ResourceType,
    /// Findings in a possible future, which no resource holds.
    Hypothetical,
    /// What no resource holds of relatives: drugs, observations, and what they do not have.
    Relative,
    /// Substances that the patient does not tolerate, which are not taken.
    Allergen,
    /// Documents that are dropped.
    Document,
    /// Content that only the source format can represent.
    Residue,
}

/// What each format can represent. Other kinds depend on the document.
const SUPPORTED: [(Loss, &[CorpusFormat]); 11] = [
    (Loss::Section, &[Jsonl, BiocXml, BiocJson, CorpusFormat::PubmedXml, Pubtator]),
    (Loss::Annotation, &[Jsonl, Pubtator, BiocXml, BiocJson, Brat, Conll, Texoo, Biosyn]),
    (Loss::Discontinuous, &[Jsonl, BiocXml, BiocJson, Brat]),
    (Loss::IdList, &[Jsonl, BiocXml, BiocJson, Brat]),
    (Loss::Parts, &[Jsonl, Pubtator, BiocXml, BiocJson, Biosyn]),
    (Loss::Key, &[Jsonl, BiocXml, BiocJson, Brat]),
    (Loss::Attribute, &[Jsonl, BiocXml, BiocJson, Brat]),
    (Loss::DocumentAttribute, &[Jsonl, BiocXml, BiocJson]),
    (Loss::Score, &[Jsonl, BiocXml, BiocJson, Texoo]),
    (Loss::Candidate, &[Jsonl]),
    (Loss::Code, &[Jsonl]),
];

/// Whether `format` can represent attributes of mentions.
pub fn supports_attributes(format: CorpusFormat) -> bool {
    supports(format, Loss::Attribute)
}

/// Whether `format` can represent a kind of content at all.
fn supports(format: CorpusFormat, loss: Loss) -> bool {
    SUPPORTED.iter().any(|(supported, formats)| *supported == loss && formats.contains(&format))
}

/// Number of losses of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LossCount {
    /// Number of items.
    pub n: u64,
    /// Id of the first document with such a loss.
    pub first: String,
    /// The source format of lost residue; `None` for other kinds.
    pub format: Option<CorpusFormat>,
}

/// Losses by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// The kinds with a loss.
    pub counts: BTreeMap<Loss, LossCount>,
}

impl Losses {
    /// Adds the losses of a later document.
    pub fn add(&mut self, later: Losses) {
        for (loss, count) in later.counts {
            let sum = self.counts.entry(loss).or_insert_with(|| LossCount { n: 0, ..count.clone() });
            sum.n += count.n;
        }
    }

    /// Whether there are no losses.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// One message per kind, in the past tense.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.messages("was", "were")
    }

    /// One message per kind, in the future tense.
    pub fn forecast(&self) -> impl Iterator<Item = String> {
        self.messages("will be", "will be")
    }

    fn messages(&self, is: &'static str, are: &'static str) -> impl Iterator<Item = String> {
        self.counts.iter().map(move |(loss, count)| {
            let (one, many, done) = words(*loss);
            let (what, was) = if count.n == 1 { (one, is) } else { (many, are) };
            let of = count.format.map(|format| format!(" of {format}")).unwrap_or_default();
            format!("{} {what}{of} {was} {done} (first in document {})", count.n, quote(&count.first))
        })
    }

    /// Adds `n` losses of a kind in `document`, if there are any.
    pub(crate) fn count(&mut self, loss: Loss, n: usize, document: &AnnotatedDocument) {
        if n > 0 {
            let first = document.document.id.clone();
            self.counts.insert(loss, LossCount { n: n as u64, first, format: None });
        }
    }
}

/// Name of the lost item in singular and plural, and what happened to it.
fn words(loss: Loss) -> (&'static str, &'static str, &'static str) {
    let left_out = "dropped";
    match loss {
        Loss::Text => ("text", "texts", "dropped, except for the mentions"),
        Loss::WhiteSpace => (
            "text with line breaks, tabs or repeated spaces",
            "texts with line breaks, tabs or repeated spaces",
            "written with normalised whitespace",
        ),
        Loss::LineBreak => ("line break", "line breaks", "added between sentences"),
        Loss::Section => ("text section", "text sections", left_out),
        Loss::Annotation => ("annotation", "annotations", left_out),
        Loss::Hull => ("discontinuous mention", "discontinuous mentions", "written as one span"),
        Loss::Discontinuous => ("discontinuous mention", "discontinuous mentions", left_out),
        Loss::Overlapping => ("nested or overlapping mention", "nested or overlapping mentions", left_out),
        Loss::Split => ("mention across a line break", "mentions across line breaks", "split"),
        Loss::Type => ("type with spaces", "types with spaces", "changed"),
        Loss::IdList => ("list of ids", "lists of ids", "joined by `|`"),
        Loss::Parts => ("list of part names", "lists of part names", left_out),
        Loss::Key => ("annotation key", "annotation keys", left_out),
        Loss::Attribute => ("mention attribute", "mention attributes", left_out),
        Loss::Relation => ("relation", "relations", left_out),
        Loss::RelationDetail => ("relation", "relations", "written without key, roles or attributes"),
        Loss::DocumentAttribute => ("document attribute", "document attributes", left_out),
        Loss::Score => ("score", "scores", left_out),
        Loss::Candidate => ("list of candidates", "lists of candidates", "reduced to the first id"),
        Loss::Code => ("list of codes", "lists of codes", left_out),
        Loss::Unmapped => ("mention", "mentions", "written with the concept id 0"),
        Loss::ResourceType => {
            ("mention of a type without a resource", "mentions of types without a resource", left_out)
        }
        Loss::Hypothetical => ("hypothetical mention", "hypothetical mentions", left_out),
        Loss::Relative => ("mention about a relative", "mentions about relatives", left_out),
        Loss::Allergen => ("drug in an allergy", "drugs in allergies", left_out),
        Loss::Document => ("document without mentions", "documents without mentions", left_out),
        Loss::Residue => ("format-specific element", "format-specific elements", "dropped"),
    }
}

/// What is lost when `document` is written in `format`.
pub fn losses(document: &AnnotatedDocument, format: CorpusFormat) -> Losses {
    let mut losses = Losses::default();
    let annotations = &document.annotations;
    if !supports(format, Loss::Annotation) {
        losses.count(Loss::Annotation, annotations.len(), document);
        losses.count(Loss::Relation, document.relations.len(), document);
    } else {
        count_texts(&mut losses, document, format);
        count_mentions(&mut losses, document, format);
        count_relations(&mut losses, document, format);
    }
    if !supports(format, Loss::Section) {
        losses.count(Loss::Section, document.document.sections.len(), document);
    } else if format == Pubtator {
        let is_other = |kind: &str| kind != "title" && kind != "abstract";
        let n_other = document.document.sections.iter().filter(|section| is_other(&section.kind)).count();
        losses.count(Loss::Section, n_other, document);
    }
    if !supports(format, Loss::DocumentAttribute) {
        losses.count(Loss::DocumentAttribute, document.attributes.len(), document);
    }
    // The residue of brat and CoNLL contains nothing beyond the document.
    let residue = document.residue.as_ref().filter(|residue| ![format, Brat, Conll].contains(&residue.format));
    if let Some(residue) = residue {
        let first = document.document.id.clone();
        losses.counts.insert(Loss::Residue, LossCount { n: 1, first, format: Some(residue.format) });
    }
    losses
}

fn count_texts(losses: &mut Losses, document: &AnnotatedDocument, format: CorpusFormat) {
    let text = &document.document.text;
    match format {
        Biosyn => {
            losses.count(Loss::Document, usize::from(document.annotations.is_empty()), document);
            let has_text = document.annotations.iter().any(|one| !has_offsets(one));
            losses.count(Loss::Text, usize::from(has_text), document);
        }
        Pubtator => losses.count(Loss::WhiteSpace, usize::from(text.contains(['\n', '\r'])), document),
        Conll => {
            let is_plain = |pair: &[char]| !(pair[0].is_whitespace() && pair[1].is_whitespace());
            let letters: Vec<char> = text.chars().collect();
            let changes = text.contains(['\n', '\r', '\t']) || !letters.windows(2).all(is_plain);
            if !conll::is_unchanged(document) {
                losses.count(Loss::WhiteSpace, usize::from(changes), document);
                losses.count(Loss::LineBreak, conll::n_added_line_breaks(document), document);
            }
        }
        _ => {}
    }
}

fn has_offsets(annotation: &Annotation) -> bool {
    annotation.attributes.iter().any(|attribute| attribute.name == biosyn::OFFSETS)
}

fn count_mentions(losses: &mut Losses, document: &AnnotatedDocument, format: CorpusFormat) {
    let annotations = &document.annotations;
    let count = |is_lost: &dyn Fn(&Annotation) -> bool| annotations.iter().filter(|one| is_lost(one)).count();
    if !supports(format, Loss::Discontinuous) {
        let loss = if format == Conll { Loss::Discontinuous } else { Loss::Hull };
        losses.count(loss, count(&|one| one.spans.len() > 1), document);
    }
    if format == Conll {
        let n_whole = count(&|one| one.spans.len() == 1);
        losses.count(Loss::Overlapping, n_whole - conll::kept(annotations).len(), document);
        losses.count(Loss::Type, count(&|one| !conll::supports_type(&one.semantic_type)), document);
    }
    if format == Brat {
        losses.count(Loss::Split, count(&|one| brat::is_split(one, &document.document.text)), document);
        losses.count(Loss::Type, count(&|one| !brat::supports_type(&one.semantic_type)), document);
    }
    let n_attributes = |one: &Annotation| match format {
        Biosyn => one.attributes.iter().filter(|attribute| attribute.name != biosyn::OFFSETS).count(),
        Texoo => one.attributes.iter().filter(|one| !["source", "class"].contains(&one.name.as_str())).count(),
        _ => one.attributes.len(),
    };
    let n_attributes = annotations.iter().map(n_attributes).sum();
    let rows: [(Loss, usize); 7] = [
        (Loss::IdList, count(&|one| one.ids.len() > 1 && one.candidates.is_empty())),
        (Loss::Parts, count(&|one| !one.parts.is_empty())),
        (Loss::Key, count(&|one| !one.key.is_empty())),
        (Loss::Attribute, n_attributes),
        (Loss::Score, count(&|one| one.score.is_some())),
        (Loss::Candidate, count(&|one| !one.candidates.is_empty())),
        (Loss::Code, count(&|one| !one.codes.is_empty())),
    ];
    for (loss, n) in rows {
        if !supports(format, loss) {
            losses.count(loss, n, document);
        }
    }
}

fn count_relations(losses: &mut Losses, document: &AnnotatedDocument, format: CorpusFormat) {
    let relations = &document.relations;
    match format {
        Jsonl | BiocXml | BiocJson => {}
        Pubtator => {
            let n_detailed = relations.iter().filter(|relation| !relation.is_plain()).count();
            losses.count(Loss::RelationDetail, n_detailed, document);
        }
        Brat => {
            losses.count(Loss::Relation, relations.len() - brat::supported_relations(document).len(), document);
        }
        _ => losses.count(Loss::Relation, relations.len(), document),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::{Expect, expect};

    use super::*;
    use crate::corpus::{Attribute, CandidateRecord, Reader, Relation, Residue, Writer};
    use crate::input::Input;
    use crate::text::{Document, Section, Span};

    fn check(format: CorpusFormat, expect: Expect) {
        let annotation = |spans: &[(usize, usize)]| Annotation {
            spans: spans.iter().map(|&(start, end)| Span::new(start, end)).collect(),
            ..Annotation::default()
        };
        let rich = Annotation {
            key: "T1".to_owned(),
            semantic_type: "two words".to_owned(),
            ids: vec!["D1".to_owned(), "D2".to_owned()],
            parts: vec!["a".to_owned(), "b".to_owned()],
            attributes: vec![Attribute::default(); 2],
            ..annotation(&[(0, 6)])
        };
        let candidate = CandidateRecord { id: "D1".to_owned(), name: "x".to_owned(), p_link: 0.5, p_both: None };
        let linked = Annotation { score: Some(0.5), candidates: vec![candidate], ..annotation(&[(7, 19)]) };
        let document = AnnotatedDocument {
            document: Document {
                id: "7".to_owned(),
                text: "breast\nand  ovarian cancer".to_owned(),
                sections: vec![Section { kind: "methods".to_owned(), span: Span::new(0, 6) }],
            },
            annotations: vec![
                rich,
                linked,
                annotation(&[(0, 6), (20, 26)]),
                annotation(&[(12, 26)]),
                annotation(&[(0, 10)]),
            ],
            relations: vec![
                Relation::plain("CID", &["D1", "D2"]),
                Relation { key: "R1".to_owned(), ..Relation::plain("Cause", &["T1", "T1"]) },
            ],
            attributes: vec![Attribute::default()],
            residue: Some(Box::new(Residue { format: BiocXml, content: serde_json::Value::Null })),
        };
        let mut all = Losses::default();
        all.add(losses(&document, format));
        all.add(losses(&AnnotatedDocument::default(), format));
        all.add(losses(&document, format));
        expect.assert_eq(&all.lines().collect::<Vec<String>>().join("\n"));
    }

    #[test]
    fn scores_that_cannot_be_written_are_reported() {
        let linked = Annotation {
            spans: vec![Span::new(0, 5)],
            text: "Fever".to_owned(),
            semantic_type: "Disease".to_owned(),
            ids: vec!["D1".to_owned()],
            score: Some(0.75),
            ..Annotation::default()
        };
        let document = AnnotatedDocument {
            document: Document { id: "7".to_owned(), text: "Fever.".to_owned(), sections: Vec::new() },
            annotations: vec![linked],
            ..AnnotatedDocument::default()
        };
        for format in [Jsonl, Pubtator, BiocXml, BiocJson, Conll, Texoo, Biosyn] {
            let mut writer = Writer::new(Vec::new(), Path::new("made"), format).unwrap();
            writer.write(&document).unwrap();
            let input = Input::from_bytes("made", writer.finish().unwrap()).unwrap();
            let read = Reader::from_input(input, Some(format)).unwrap().next().unwrap().unwrap();
            let is_lost = losses(&document, format).counts.contains_key(&Loss::Score);
            assert_eq!(read.annotations[0].score.is_none(), is_lost, "{format}");
        }
    }

    #[test]
    fn every_format_reports_its_losses() {
        check(Jsonl, expect!["2 format-specific elements of bioc-xml were dropped (first in document `7`)"]);
        check(BiocXml, expect!["2 lists of candidates were reduced to the first id (first in document `7`)"]);
        check(
            Pubtator,
            expect![[r#"
            2 texts with line breaks, tabs or repeated spaces were written with normalised whitespace (first in document `7`)
            2 text sections were dropped (first in document `7`)
            2 discontinuous mentions were written as one span (first in document `7`)
            2 lists of ids were joined by `|` (first in document `7`)
            2 annotation keys were dropped (first in document `7`)
            4 mention attributes were dropped (first in document `7`)
            2 relations were written without key, roles or attributes (first in document `7`)
            2 document attributes were dropped (first in document `7`)
            2 scores were dropped (first in document `7`)
            2 lists of candidates were reduced to the first id (first in document `7`)
            2 format-specific elements of bioc-xml were dropped (first in document `7`)"#]],
        );
        check(
            Brat,
            expect![[r#"
            2 text sections were dropped (first in document `7`)
            2 mentions across line breaks were split (first in document `7`)
            10 types with spaces were changed (first in document `7`)
            2 lists of part names were dropped (first in document `7`)
            2 relations were dropped (first in document `7`)
            2 document attributes were dropped (first in document `7`)
            2 scores were dropped (first in document `7`)
            2 lists of candidates were reduced to the first id (first in document `7`)
            2 format-specific elements of bioc-xml were dropped (first in document `7`)"#]],
        );
        check(
            Conll,
            expect![[r#"
            2 texts with line breaks, tabs or repeated spaces were written with normalised whitespace (first in document `7`)
            2 text sections were dropped (first in document `7`)
            2 discontinuous mentions were dropped (first in document `7`)
            4 nested or overlapping mentions were dropped (first in document `7`)
            2 lists of ids were joined by `|` (first in document `7`)
            2 lists of part names were dropped (first in document `7`)
            2 annotation keys were dropped (first in document `7`)
            4 mention attributes were dropped (first in document `7`)
            4 relations were dropped (first in document `7`)
            2 document attributes were dropped (first in document `7`)
            2 scores were dropped (first in document `7`)
            2 lists of candidates were reduced to the first id (first in document `7`)
            2 format-specific elements of bioc-xml were dropped (first in document `7`)"#]],
        );
        check(
            Biosyn,
            expect![[r#"
            2 texts were dropped, except for the mentions (first in document `7`)
            2 text sections were dropped (first in document `7`)
            2 discontinuous mentions were written as one span (first in document `7`)
            2 lists of ids were joined by `|` (first in document `7`)
            2 annotation keys were dropped (first in document `7`)
            4 mention attributes were dropped (first in document `7`)
            4 relations were dropped (first in document `7`)
            2 document attributes were dropped (first in document `7`)
            2 scores were dropped (first in document `7`)
            2 lists of candidates were reduced to the first id (first in document `7`)
            1 document without mentions was dropped (first in document ``)
            2 format-specific elements of bioc-xml were dropped (first in document `7`)"#]],
        );
        check(
            CorpusFormat::PubmedXml,
            expect![[r#"
            10 annotations were dropped (first in document `7`)
            4 relations were dropped (first in document `7`)
            2 document attributes were dropped (first in document `7`)
            2 format-specific elements of bioc-xml were dropped (first in document `7`)"#]],
        );
    }
}
