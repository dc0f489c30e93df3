//! Converts BioC to a document: one text, sections, annotations with byte offsets.

use std::path::Path;

use serde_json::Value;

use super::model::{BiocAnnotation, BiocDocument, BiocRelation, Infons, Kept, Passage, value_text};
use crate::Result;
use crate::corpus::check::{Checker, Located};
use crate::corpus::{
    AnnotatedDocument, Annotation, Argument, Attribute, CorpusFormat, MAX_DOCUMENT_BYTES, Relation, Residue,
};
use crate::text::offsets::OffsetMap;
use crate::text::{Document, Section, Span};

/// Maximum gap between passages that is filled with spaces, in code points.
pub(super) const MAX_GAP: u64 = 1000;

/// Infons that contain the concept id, in lower case.
const ID_KEYS: [&str; 17] = [
    "mesh",
    "omim",
    "ncbi gene",
    "gene",
    "gene_id",
    "ncbi taxonomy",
    "taxonomy",
    "species",
    "cui",
    "umls",
    "chebi",
    "hpo",
    "cellosaurus",
    "cvcl",
    "concept_id",
    "conceptid",
    "go",
];

/// The infon for the concept id when writing, if the source has one with this name.
pub(super) const IDENTIFIER: &str = "identifier";

/// A container of annotations and relations: the document, a passage, or a sentence of a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    pub passage: Option<usize>,
    pub sentence: Option<usize>,
    /// Its offset in the source.
    pub offset: u64,
    /// Its start in the text, in code points.
    pub start: u64,
    /// Its length in code points.
    pub length: u64,
}

/// The text of a document and its sites, in the order in which annotations are read.
pub(super) struct Joined {
    pub document: Document,
    pub sites: Vec<Site>,
}

/// Joins the passages to one text.
///
/// If annotations do not match the text, passage offsets may be wrong and annotation offsets right: some corpora count
/// XML entities in a title as written, but not in annotations. Passages are then joined by one space if fewer
/// annotations mismatch that way.
pub(super) fn join(bioc: &BiocDocument) -> Joined {
    let joined = join_by(bioc, Gaps::Offsets);
    let n_wrong = joined.n_wrong(bioc);
    if n_wrong == 0 {
        return joined;
    }
    let spaced = join_by(bioc, Gaps::Space);
    if spaced.n_wrong(bioc) < n_wrong { spaced } else { joined }
}

fn join_by(bioc: &BiocDocument, gaps: Gaps) -> Joined {
    let mut joined = Joined { document: Document { id: bioc.id.clone(), ..Document::default() }, sites: Vec::new() };
    let mut n_chars = 0;
    for (at, passage) in bioc.passages.iter().enumerate() {
        let text = &mut joined.document.text;
        pad(text, &mut n_chars, gaps.wanted(passage.offset), at == 0);
        let (from, start) = (text.len(), n_chars);
        let sentences = passage.sentences.as_deref().unwrap_or_default();
        if let Some(own) = &passage.text {
            text.push_str(own);
            n_chars += own.chars().count() as u64;
        }
        for (number, sentence) in sentences.iter().enumerate() {
            let own = sentence.text.as_deref().unwrap_or_default();
            let length = own.chars().count() as u64;
            let first = match &passage.text {
                Some(_) => start.saturating_add(sentence.offset.saturating_sub(passage.offset)),
                None => {
                    // Sentence offsets are relative to the intended start of the passage.
                    let wanted = start.saturating_add(sentence.offset.saturating_sub(passage.offset));
                    pad(text, &mut n_chars, gaps.wanted(wanted), number == 0);
                    text.push_str(own);
                    n_chars += length;
                    n_chars - length
                }
            };
            let offset = gaps.offset(sentence.offset, first);
            let sentence = Site { passage: Some(at), sentence: Some(number), offset, start: first, length };
            joined.sites.push(sentence);
        }
        let kind = section_kind(&passage.infons);
        joined.document.sections.push(Section { kind, span: Span::new(from, text.len()) });
        let length = n_chars - start;
        let offset = gaps.offset(passage.offset, start);
        joined.sites.push(Site { passage: Some(at), sentence: None, offset, start, length });
    }
    joined.sites.push(Site { passage: None, sentence: None, offset: 0, start: 0, length: n_chars });
    joined
}

/// How passages are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gaps {
    /// By their offsets.
    Offsets,
    /// By one space; annotation offsets count from the start of the text.
    Space,
}

impl Gaps {
    /// The intended start of a passage with that offset; `None` for one space after the previous.
    fn wanted(self, offset: u64) -> Option<u64> {
        Some(offset).filter(|_| self == Gaps::Offsets)
    }

    /// The offset of a passage from which annotations count.
    fn offset(self, offset: u64, start: u64) -> u64 {
        if self == Gaps::Offsets { offset } else { start }
    }
}

/// Appends spaces up to `wanted`; if that is not possible, one space between texts. Gaps are not filled beyond the
/// maximum document size.
fn pad(text: &mut String, n_chars: &mut u64, wanted: Option<u64>, first: bool) {
    let gap = match wanted.and_then(|wanted| wanted.checked_sub(*n_chars)) {
        Some(gap) if gap <= MAX_GAP && text.len() < MAX_DOCUMENT_BYTES => gap,
        _ => u64::from(!first),
    };
    text.extend(std::iter::repeat_n(' ', gap as usize));
    *n_chars += gap;
}

fn section_kind(infons: &Infons) -> String {
    match (infons.text("type"), infons.text("section_type")) {
        (Some("front"), _) => "title".to_owned(),
        (Some(kind), _) => kind.to_owned(),
        (None, Some(kind)) => kind.to_lowercase(),
        (None, None) => String::new(),
    }
}

impl Joined {
    /// The position in the text, in code points, of the source offset `offset` of an annotation at `site`.
    fn code_point(&self, site: &Site, offset: u64) -> u64 {
        let inside = |site: &&Site| (site.offset..=site.offset.saturating_add(site.length)).contains(&offset);
        let passages = || self.sites.iter().filter(|site| site.passage.is_some() && site.sentence.is_none());
        let own = Some(site).filter(|site| site.passage.is_some() && offset >= site.offset);
        let found = own.filter(inside).or_else(|| passages().find(inside)).or(own);
        found.map_or(offset, |site| site.start.saturating_add(offset - site.offset))
    }

    /// Number of contiguous annotations whose text differs from the text at their span.
    fn n_wrong(&self, bioc: &BiocDocument) -> usize {
        let map = OffsetMap::new(&self.document.text);
        let byte = |offset: u64| map.char_to_byte(usize::try_from(offset).ok()?);
        let is_wrong = |site: &Site, annotation: &BiocAnnotation| {
            let (Some(wanted), &[(start, end)]) = (&annotation.text, &self.spans(site, annotation)[..]) else {
                return false;
            };
            let found = byte(start).zip(byte(end)).and_then(|(start, end)| self.document.text.get(start..end));
            found.is_none_or(|found| found != wanted)
        };
        let lists = bioc.passages.iter().flat_map(|passage| {
            let sentences = passage.sentences.iter().flatten().map(|sentence| &sentence.annotations);
            sentences.chain([&passage.annotations])
        });
        let sites = self.sites.iter().zip(lists.chain([&bioc.annotations]));
        sites.map(|(site, list)| list.iter().filter(|one| is_wrong(site, one)).count()).sum()
    }

    /// Spans of an annotation in code points, in text order; empty if it has no location.
    pub fn spans(&self, site: &Site, annotation: &BiocAnnotation) -> Vec<(u64, u64)> {
        let is_label = annotation.text.as_deref().is_none_or(str::is_empty)
            && annotation.locations.iter().all(|location| location.length == 0);
        if is_label {
            return Vec::new();
        }
        let mut spans: Vec<(u64, u64)> = Vec::with_capacity(annotation.locations.len());
        for location in &annotation.locations {
            let start = self.code_point(site, location.offset);
            spans.push((start, start.saturating_add(location.length)));
        }
        spans.sort_unstable();
        spans
    }
}

/// The annotations of a site.
pub(super) fn annotations_at<'a>(bioc: &'a mut BiocDocument, site: &Site) -> &'a mut Vec<BiocAnnotation> {
    match container(&mut bioc.passages, site) {
        Some(passage) => &mut passage.annotations,
        None => &mut bioc.annotations,
    }
}

/// The relations of a site.
pub(super) fn relations_at<'a>(bioc: &'a mut BiocDocument, site: &Site) -> &'a mut Vec<BiocRelation> {
    match container(&mut bioc.passages, site) {
        Some(passage) => &mut passage.relations,
        None => &mut bioc.relations,
    }
}

fn container<'a>(passages: &'a mut [Passage], site: &Site) -> Option<&'a mut Passage> {
    let passage = &mut passages[site.passage?];
    match site.sentence {
        Some(sentence) => passage.sentences.as_mut()?.get_mut(sentence),
        None => Some(passage),
    }
}

/// Converts a document of a source that starts on `line`. Annotations dropped because of wrong offsets are removed from
/// the residue too.
pub(in crate::corpus) fn to_annotated(
    mut kept: Kept,
    path: &Path,
    line: u64,
    format: CorpusFormat,
    checker: &mut Checker,
) -> Result<AnnotatedDocument> {
    let joined = join(&kept.document);
    let map = OffsetMap::new(&joined.document.text);
    let mut annotations = Vec::new();
    let mut relations = Vec::new();
    for site in &joined.sites {
        let mut here = std::mem::take(annotations_at(&mut kept.document, site));
        let mut failure = None;
        here.retain(|annotation| {
            let spans = joined.spans(site, annotation);
            if failure.is_some() || spans.is_empty() {
                return true;
            }
            let line = if annotation.line == 0 { line } else { annotation.line };
            let located = Located { line, spans: &spans, text: annotation.text.as_deref() };
            match checker.locate(path, &joined.document, &map, &located) {
                Ok(Some(spans)) => annotations.push(interpret(annotation, spans, &joined.document.text)),
                Ok(None) => return false,
                Err(error) => failure = Some(error),
            }
            true
        });
        if let Some(error) = failure {
            return Err(error);
        }
        *annotations_at(&mut kept.document, site) = here;
        relations.extend(relations_at(&mut kept.document, site).iter().map(interpret_relation));
    }
    let attributes = attributes_of(&kept.document.infons);
    let content = serde_json::to_string(&kept).expect("strings and numbers in memory are always JSON");
    // As a string, because an object of `serde_json` would sort the infons.
    let residue = Some(Box::new(Residue { format, content: Value::String(content) }));
    Ok(AnnotatedDocument { document: joined.document, annotations, relations, attributes, residue })
}

/// Converts infons to attributes.
pub(super) fn attributes_of(infons: &Infons) -> Vec<Attribute> {
    let attribute =
        |(name, value): &(String, Value)| value_text(value).map(|value| Attribute { name: name.clone(), value });
    infons.0.iter().filter_map(attribute).collect()
}

/// Converts an annotation.
pub(super) fn interpret(annotation: &BiocAnnotation, spans: Vec<Span>, text: &str) -> Annotation {
    let covered = || spans.iter().map(|span| span.of(text)).collect::<Vec<&str>>().join(" ");
    let infons = &annotation.infons;
    let mut read = Annotation {
        key: annotation.id.clone(),
        text: annotation.text.clone().unwrap_or_else(covered),
        spans,
        ..Annotation::default()
    };
    let identified = infons.0.iter().any(|(key, _)| key == IDENTIFIER);
    let score = infons.text("nil").and(infons.text("score")).and_then(|score| score.parse().ok());
    let mut typed = false;
    for (key, value) in &infons.0 {
        let Some(value) = value_text(value) else { continue };
        let is_id = if identified { key == IDENTIFIER } else { ID_KEYS.contains(&key.to_lowercase().as_str()) };
        match key.as_str() {
            "type" if !typed => {
                read.semantic_type = value;
                typed = true;
            }
            "score" | "nil" if score.is_some() => {
                read.score = score;
                read.nil |= key == "nil" && value == "true";
            }
            "parts" => read.parts = value.split('|').map(str::to_owned).collect(),
            _ if is_id => read.ids.push(value),
            _ => read.attributes.push(Attribute { name: key.clone(), value }),
        }
    }
    read
}

/// Converts a relation. Without nodes, the concepts in its infons are the arguments.
pub(super) fn interpret_relation(relation: &BiocRelation) -> Relation {
    let kind_key = ["relation", "type"].into_iter().find(|key| relation.infons.text(key).is_some());
    let mut others = attributes_of(&relation.infons);
    let mut read = Relation { key: relation.id.clone(), ..Relation::default() };
    if let Some(at) = others.iter().position(|one| Some(one.name.as_str()) == kind_key) {
        read.kind = others.remove(at).value;
    }
    let argument = |role: &str, target: &str| Argument { role: role.to_owned(), target: target.to_owned() };
    if relation.nodes.is_empty() {
        let role = |name: &str| name.strip_prefix("entity").is_none_or(|rest| rest.parse::<u32>().is_err());
        let given = |one: &Attribute| argument(if role(&one.name) { &one.name } else { "" }, &one.value);
        read.arguments = others.iter().map(given).collect();
    } else {
        read.arguments = relation.nodes.iter().map(|node| argument(&node.role, &node.refid)).collect();
        read.attributes = others;
    }
    read
}
