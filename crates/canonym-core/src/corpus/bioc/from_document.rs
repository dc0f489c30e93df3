//! Converts a document to BioC, restoring unchanged parts from its source.

use std::collections::HashSet;

use super::model::{BiocAnnotation, BiocDocument, BiocRelation, Infons, Kept, Location, Node, Passage};
use super::to_document::{
    IDENTIFIER, Joined, MAX_GAP, Site, annotations_at, attributes_of, interpret, interpret_relation, join, relations_at,
};
use crate::corpus::{AnnotatedDocument, Annotation, CorpusFormat, Relation};
use crate::text::offsets::OffsetMap;
use crate::text::{Document, Span};

/// Number of decimals of scores.
const SCORE_DIGITS: usize = 4;

/// An annotation or relation of the source with its site, and the result of reading it; `None` without a location.
struct Original<T, R> {
    site: usize,
    source: T,
    read: Option<R>,
    taken: bool,
}

/// The source of a document, if it was BioC.
pub(in crate::corpus) fn kept_of(annotated: &AnnotatedDocument) -> Option<Kept> {
    let residue = annotated.residue.as_ref()?;
    let is_bioc = matches!(residue.format, CorpusFormat::BiocXml | CorpusFormat::BiocJson);
    serde_json::from_str(residue.content.as_str().filter(|_| is_bioc)?).ok()
}

/// Converts a document to BioC; `kept` is its source.
pub(in crate::corpus) fn to_bioc(annotated: &AnnotatedDocument, kept: Option<BiocDocument>) -> BiocDocument {
    let with_text = |bioc: BiocDocument| {
        let joined = join(&bioc);
        (joined.document == annotated.document).then_some((bioc, joined))
    };
    let (mut bioc, joined) = kept.and_then(with_text).unwrap_or_else(|| {
        let bioc = passages_of(&annotated.document);
        let joined = join(&bioc);
        (bioc, joined)
    });
    if attributes_of(&bioc.infons) != annotated.attributes {
        bioc.infons = Infons::default();
        annotated.attributes.iter().for_each(|one| bioc.infons.push(&one.name, &one.value));
    }
    put_annotations(annotated, &mut bioc, &joined);
    put_relations(annotated, &mut bioc, &joined);
    bioc
}

/// A passage for each section, and for each text between sections.
fn passages_of(document: &Document) -> BiocDocument {
    let mut sections: Vec<(Span, &str)> =
        document.sections.iter().map(|section| (section.span, section.kind.as_str())).collect();
    sections.sort_by_key(|(span, _)| span.start);
    let map = OffsetMap::new(&document.text);
    let mut bioc = BiocDocument { id: document.id.clone(), ..BiocDocument::default() };
    let mut add = |span: Span, kind: &str| {
        let mut infons = Infons::default();
        if !kind.is_empty() {
            infons.push("type", kind);
        }
        let text = Some(span.of(&document.text).to_owned());
        let offset = code_point(&map, span.start);
        let sentences = Some(Vec::new());
        bioc.passages.push(Passage { offset, infons, text, sentences, ..Passage::default() });
    };
    if document.text.is_empty() && sections.is_empty() {
        add(Span::new(0, 0), "");
    }
    let mut end = 0;
    let rest = (Span::new(document.text.len(), document.text.len()), "");
    for (span, kind) in sections.into_iter().chain([rest]) {
        // Of nested sections only the outer one becomes a passage.
        if span.start < end {
            continue;
        }
        let gap = Span { start: end, end: span.start };
        // Readers fill gaps with spaces, but do not add spaces after the last passage.
        let text = gap.of(&document.text);
        let is_last = span == rest.0 && !text.is_empty();
        if is_last || text.len() > MAX_GAP as usize || text.bytes().any(|byte| byte != b' ') {
            add(gap, "");
        }
        if !kind.is_empty() || !span.is_empty() {
            add(span, kind);
        }
        end = span.end;
    }
    bioc
}

fn code_point(map: &OffsetMap<'_>, byte: u32) -> u64 {
    map.byte_to_char(byte as usize).expect("spans lie on character boundaries of the text") as u64
}

fn put_annotations(annotated: &AnnotatedDocument, bioc: &mut BiocDocument, joined: &Joined) {
    let text = &annotated.document.text;
    let map = OffsetMap::new(text);
    let mut originals = Vec::new();
    for (number, site) in joined.sites.iter().enumerate() {
        for source in std::mem::take(annotations_at(bioc, site)) {
            let spans = joined.spans(site, &source);
            let is_label = spans.is_empty();
            let byte = |offset: u64| map.char_to_byte(usize::try_from(offset).ok()?);
            let span =
                |&(start, end): &(u64, u64)| byte(start).zip(byte(end)).map(|(start, end)| Span::new(start, end));
            // Annotations past the end of the text were repaired or dropped by the reader.
            let Some(spans) = spans.iter().map(span).collect::<Option<Vec<Span>>>() else { continue };
            let read = (!is_label).then(|| interpret(&source, spans, text));
            originals.push(Original { site: number, source, read, taken: false });
        }
    }
    let mut used: HashSet<&str> = annotated.annotations.iter().map(|one| one.key.as_str()).collect();
    used.extend(annotated.relations.iter().map(|one| one.key.as_str()));
    let mut numbers = (0_u64..).map(|number| number.to_string()).filter(|number| !used.contains(number.as_str()));
    // Annotations with their site and their position in the source.
    let mut put: Vec<(usize, usize, BiocAnnotation)> = Vec::new();
    let mut next = 0;
    for annotation in &annotated.annotations {
        let same = |read: &Annotation| {
            read.key == annotation.key && read.spans == annotation.spans && read.text == annotation.text
        };
        let found = find(&originals, next, same);
        let Some(at) = found else {
            let site = site_of(joined, code_point(&map, annotation.spans[0].start));
            let id = if annotation.key.is_empty() { numbers.next() } else { None };
            let id = id.unwrap_or_else(|| annotation.key.clone());
            put.push((site, usize::MAX, fresh(annotation, id, &joined.sites[site], &map, text)));
            continue;
        };
        next = at + 1;
        let original = &mut originals[at];
        original.taken = true;
        let mut source = original.source.clone();
        if original.read.as_ref() != Some(annotation) {
            source.infons = infons_of(annotation);
        }
        put.push((original.site, at, source));
    }
    let labels = originals.into_iter().enumerate().filter(|(_, original)| original.read.is_none());
    put.extend(labels.map(|(at, original)| (original.site, at, original.source)));
    put.sort_by_key(|&(_, at, _)| at);
    for (site, _, annotation) in put {
        annotations_at(bioc, &joined.sites[site]).push(annotation);
    }
}

/// The first untaken original for which `same` holds, searching from `next` and then from the start.
fn find<T, R>(originals: &[Original<T, R>], next: usize, same: impl Fn(&R) -> bool) -> Option<usize> {
    let fits = |at: &usize| !originals[*at].taken && originals[*at].read.as_ref().is_some_and(&same);
    (next..originals.len()).find(fits).or_else(|| (0..next).find(fits))
}

/// The site of a code point: the first sentence that contains it, else passage, else the document.
fn site_of(joined: &Joined, at: u64) -> usize {
    let inside = |site: &Site| (site.start..site.start.saturating_add(site.length)).contains(&at);
    joined.sites.iter().position(inside).unwrap_or(joined.sites.len() - 1)
}

fn fresh(annotation: &Annotation, id: String, site: &Site, map: &OffsetMap<'_>, text: &str) -> BiocAnnotation {
    let location = |span: &Span| {
        let (start, end) = (code_point(map, span.start), code_point(map, span.end));
        // Relative to the site, because the offset of a passage may differ from its position in the text.
        let offset = site.offset.saturating_add(start).saturating_sub(site.start);
        Location { offset, length: end - start }
    };
    let covered = || annotation.spans.iter().map(|span| span.of(text)).collect::<Vec<&str>>().join(" ");
    let own = (!annotation.text.is_empty()).then(|| annotation.text.clone());
    BiocAnnotation {
        id,
        infons: infons_of(annotation),
        text: Some(own.unwrap_or_else(covered)),
        locations: annotation.spans.iter().map(location).collect(),
        ..BiocAnnotation::default()
    }
}

fn infons_of(annotation: &Annotation) -> Infons {
    let mut infons = Infons::default();
    if !annotation.semantic_type.is_empty() {
        infons.push("type", &annotation.semantic_type);
    }
    let best = annotation.candidates.first().map(|best| best.id.clone());
    let ids = best.or_else(|| (!annotation.ids.is_empty()).then(|| annotation.ids.join("|")));
    if let Some(ids) = ids.filter(|_| !annotation.nil) {
        infons.push(IDENTIFIER, &ids);
    }
    if annotation.is_linked() {
        infons.push("score", &score(annotation.score.unwrap_or_default()));
        infons.push("nil", if annotation.nil { "true" } else { "false" });
    }
    if !annotation.parts.is_empty() {
        infons.push("parts", &annotation.parts.join("|"));
    }
    annotation.attributes.iter().for_each(|one| infons.push(&one.name, &one.value));
    infons
}

/// A score without trailing zeros.
fn score(score: f32) -> String {
    let digits = format!("{score:.SCORE_DIGITS$}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn put_relations(annotated: &AnnotatedDocument, bioc: &mut BiocDocument, joined: &Joined) {
    let mut originals = Vec::new();
    for (number, site) in joined.sites.iter().enumerate() {
        for source in std::mem::take(relations_at(bioc, site)) {
            let read = Some(interpret_relation(&source));
            originals.push(Original { site: number, source, read, taken: false });
        }
    }
    let keys: HashSet<&str> = annotated.annotations.iter().map(|one| one.key.as_str()).collect();
    let mut next = 0;
    for relation in &annotated.relations {
        match find(&originals, next, |read| read == relation) {
            Some(at) => {
                next = at + 1;
                originals[at].taken = true;
                relations_at(bioc, &joined.sites[originals[at].site]).push(originals[at].source.clone());
            }
            None => bioc.relations.push(fresh_relation(relation, &keys)),
        }
    }
}

/// With nodes if the targets are annotations, else with infons, as in corpora of concept-level relations.
fn fresh_relation(relation: &Relation, keys: &HashSet<&str>) -> BiocRelation {
    let mut written = BiocRelation { id: relation.key.clone(), ..BiocRelation::default() };
    if !relation.kind.is_empty() {
        written.infons.push("type", &relation.kind);
    }
    let names_annotation = relation.arguments.iter().any(|one| keys.contains(one.target.as_str()));
    let plain_roles = relation.arguments.iter().all(|one| !["relation", "type"].contains(&one.role.as_str()));
    if names_annotation || !relation.attributes.is_empty() || relation.kind.is_empty() || !plain_roles {
        relation.attributes.iter().for_each(|one| written.infons.push(&one.name, &one.value));
        let node = |one: &crate::corpus::Argument| Node { refid: one.target.clone(), role: one.role.clone() };
        written.nodes = relation.arguments.iter().map(node).collect();
        return written;
    }
    for (number, one) in relation.arguments.iter().enumerate() {
        let entity = format!("entity{}", number + 1);
        written.infons.push(if one.role.is_empty() { &entity } else { &one.role }, &one.target);
    }
    written
}
