//! Conversion of annotations of files and models to marks, and back.
//!
//! What files have no field for is written as attributes: JSONL, BioC (infons) and brat (attributes and notes) hold
//! all of them, TeXoo only `source`.

use std::collections::HashMap;

use canonym_core::corpus::{Annotation, Attribute, CandidateRecord};
use canonym_core::kb::KnowledgeBase;
use canonym_core::numbers::rounded;

use super::review::Remark;
use super::{CandidateRow, MarkState, Named, Original, Source, State, context, span_pairs};
use crate::times::{Millis, parse_rfc3339, rfc3339};

/// Attribute: `GOLD`, `USER`, `SILVER` or `PRED`.
pub const SOURCE: &str = "source";

/// Attribute: the annotator.
pub const ANNOTATOR: &str = "annotator";

/// Attribute: the time of the decision.
const UPDATED_AT: &str = "updated_at";

/// Attribute: the model that predicted the mention.
const MODEL: &str = "model";

/// Attribute: `true` if marked as unsure.
const UNSURE: &str = "unsure";

/// Attribute: the type of the mention, where the format cannot hold it; empty if it has none.
const TYPE: &str = "semantic_type";

/// Attribute: comments on the mention.
const COMMENT: &str = "comment";

/// How annotations without a recorded source are imported. Those of a system are predictions either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultSource {
    /// As unreviewed predictions.
    Pred,
    /// As gold annotations.
    Gold,
}

/// Whether an annotation has a recorded source, or signs of a system.
pub fn has_recorded_source(annotation: &Annotation) -> bool {
    annotation.is_linked() || recorded_source(&annotation.attributes).is_some()
}

fn recorded_source(attributes: &[Attribute]) -> Option<&Attribute> {
    attributes.iter().find(|one| one.name == SOURCE && ["GOLD", "USER", "SILVER", "PRED"].contains(&one.value.as_str()))
}

fn value<'a>(attributes: &'a [Attribute], name: &str) -> Option<&'a str> {
    attributes.iter().find(|one| one.name == name).map(|one| one.value.as_str()).filter(|value| !value.is_empty())
}

/// The recorded time of the last change.
fn recorded_at(attributes: &[Attribute]) -> Option<Millis> {
    parse_rfc3339(value(attributes, UPDATED_AT)?)
}

fn pairs(attributes: &[Attribute]) -> impl Iterator<Item = (&str, &str)> {
    attributes.iter().map(|one| (one.name.as_str(), one.value.as_str()))
}

/// Whether [`write_origin`] writes attributes of this name.
pub fn is_origin(name: &str) -> bool {
    [SOURCE, ANNOTATOR, UPDATED_AT, MODEL, UNSURE, TYPE, COMMENT].contains(&name)
}

/// Replaces the type of a mention by a word that brat accepts, and keeps it as an attribute. Nothing changes if brat accepts it.
pub fn set_brat_type(annotation: &mut Annotation) {
    let word = brat_type(&annotation.semantic_type);
    if word != annotation.semantic_type {
        let kind = std::mem::replace(&mut annotation.semantic_type, word);
        annotation.attributes.push(Attribute { name: TYPE.to_owned(), value: kind });
    }
}

/// The word that stands for a type in brat.
fn brat_type(kind: &str) -> String {
    let is_valid = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-');
    match kind.is_empty() {
        true => UNTYPED.to_owned(),
        false => kind.chars().map(|sign| if is_valid(sign) { sign } else { '_' }).collect(),
    }
}

/// Written as the type of a mention without one where the format requires a type.
const UNTYPED: &str = "Mention";

/// Restores the type that [`set_brat_type`] replaced, unless somebody has changed the type since.
pub fn restore_type(annotation: &mut Annotation) {
    let is_replaced = |one: &Attribute| one.name == TYPE && brat_type(&one.value) == annotation.semantic_type;
    if let Some(at) = annotation.attributes.iter().position(is_replaced) {
        annotation.semantic_type = annotation.attributes.remove(at).value;
    }
}

/// Removes the comments from attributes.
pub fn take_comment(attributes: &mut Vec<Attribute>) -> Option<String> {
    let at = attributes.iter().position(|one| one.name == COMMENT && !one.value.trim().is_empty())?;
    Some(attributes.remove(at).value)
}

/// Comments as an attribute.
pub fn comment(comments: &[String]) -> Attribute {
    Attribute { name: COMMENT.to_owned(), value: comments.join(" | ") }
}

/// IDs that stand for "no concept" in files.
const NO_CONCEPT: [&str; 5] = ["-1", "-", "NIL", "None", "CUI-less"];

/// Converts an annotation of a file to a mark: gold or user if recorded so, a prediction if a system made it, otherwise by `default_source`.
/// Its time is the recorded one, otherwise `at`.
pub fn from_file(kb: &KnowledgeBase, annotation: &Annotation, default_source: DefaultSource, at: Millis) -> MarkState {
    let source = match recorded_source(&annotation.attributes).map(|source| source.value.as_str()) {
        Some("GOLD") => Source::Gold,
        Some("USER") => Source::User,
        None if !annotation.is_linked() && default_source == DefaultSource::Gold => Source::Gold,
        _ => Source::Pred,
    };
    let ids: Vec<&str> = annotation.ids.iter().map(String::as_str).filter(|id| !id.is_empty()).collect();
    let concept = concept_of(kb, &ids);
    let is_marked_nil = annotation.nil || (!ids.is_empty() && ids.iter().all(|id| NO_CONCEPT.contains(id)));
    let original = Original {
        concept: concept.as_ref().map(|concept| concept.id.clone()),
        ids: annotation.ids.clone(),
        text: annotation.text.clone(),
        key: annotation.key.clone(),
        parts: annotation.parts.clone(),
        attributes: annotation.attributes.iter().map(|one| (one.name.clone(), one.value.clone())).collect(),
        source,
    };
    let is_pred = source == Source::Pred;
    MarkState {
        source,
        state: if is_pred { State::Open } else { State::Accepted },
        is_nil: concept.is_none() && is_marked_nil,
        concept,
        is_unsure: value(&annotation.attributes, UNSURE) == Some("true"),
        model: value(&annotation.attributes, MODEL).map(str::to_owned),
        original: Some(original),
        ..open_mark(annotation, recorded_at(&annotation.attributes).map_or(at, |recorded| recorded.min(at)))
    }
}

/// Converts a rejected mention of a file to a mark; see [`from_file`].
pub fn rejected_from_file(kb: &KnowledgeBase, annotation: &Annotation, at: Millis) -> MarkState {
    MarkState { state: State::Rejected, ..from_file(kb, annotation, DefaultSource::Pred, at) }
}

/// An unreviewed mark with the spans and scores of an annotation, without concept.
fn open_mark(annotation: &Annotation, at: Millis) -> MarkState {
    MarkState {
        spans: span_pairs(&annotation.spans),
        text: annotation.text.clone(),
        kind: annotation.semantic_type.clone(),
        source: Source::Pred,
        state: State::Open,
        concept: None,
        is_nil: false,
        is_unsure: false,
        contexts: context::from_attributes(pairs(&annotation.attributes)),
        score: annotation.score.map(rounded),
        p_mention: annotation.p_mention.map(rounded),
        p_link: annotation.p_link.map(rounded),
        candidates: annotation.candidates.iter().map(CandidateRow::new).collect(),
        by: None,
        at,
        model: None,
        spread_from: None,
        is_deleted: false,
        original: None,
    }
}

/// The concept of a list of IDs: the first one in the knowledge base, otherwise the first as written.
fn concept_of(kb: &KnowledgeBase, ids: &[&str]) -> Option<Named> {
    let named: Vec<&str> = ids.iter().copied().filter(|id| !NO_CONCEPT.contains(id)).collect();
    let parts = named.iter().flat_map(|id| std::iter::once(*id).chain(id.split(['|', '+', ','])));
    let known = parts.map(str::trim).filter(|id| !id.is_empty()).find_map(|id| kb.find(id));
    match known {
        Some(concept) => Some(Named { id: kb.id(concept).to_owned(), name: kb.preferred_name(concept).to_owned() }),
        None => named.first().map(|id| Named { id: (*id).to_owned(), name: String::new() }),
    }
}

/// Converts an annotation of a model to an unreviewed prediction.
pub fn from_model(annotation: &Annotation, model: &str, at: Millis) -> MarkState {
    let best = annotation.candidates.first().filter(|_| !annotation.nil);
    MarkState {
        concept: best.map(|best| Named { id: best.id.clone(), name: best.name.clone() }),
        is_nil: annotation.nil,
        model: Some(model.to_owned()),
        ..open_mark(annotation, at)
    }
}

/// Whether the IDs of a file omit the prefix of the knowledge base: `D003693` for `MESH:D003693`. `None` if no mark shows it.
pub fn has_raw_ids<'a>(kb: &KnowledgeBase, marks: impl IntoIterator<Item = &'a MarkState>) -> Option<bool> {
    let is_raw = |mark: &MarkState| {
        let original = mark.original.as_ref()?;
        let (id, concept) = (original.ids.first()?, kb.find(original.concept.as_deref()?)?);
        let (is_whole, is_raw) = (id == kb.id(concept), id == &kb.raw_id(concept));
        (is_whole || is_raw).then_some(!is_whole)
    };
    marks.into_iter().find_map(is_raw)
}

/// Removes the prefix from the IDs of an annotation.
pub fn strip_ids(kb: &KnowledgeBase, annotation: &mut Annotation) {
    let raw = |id: &mut String| {
        if let Some(concept) = kb.find(id).filter(|concept| kb.id(*concept) == id) {
            *id = kb.raw_id(concept);
        }
    };
    annotation.ids.iter_mut().for_each(raw);
    annotation.candidates.iter_mut().for_each(|candidate| raw(&mut candidate.id));
}

/// Converts a mark to an annotation of a file. Only unreviewed predictions have scores and candidates.
pub fn to_file(mark: &MarkState) -> Annotation {
    let original = mark.original.clone().unwrap_or_default();
    let is_as_read = mark.original.is_some() && original.concept.as_deref() == mark.concept_id();
    let is_open = mark.is_open();
    let ids = match &mark.concept {
        _ if is_as_read && !(mark.is_nil && mark.source == Source::User) => original.ids,
        Some(concept) => vec![concept.id.clone()],
        None => {
            let none = original.ids.iter().find(|id| NO_CONCEPT.contains(&id.as_str())).cloned();
            let needed = || (mark.is_nil && !is_open).then(|| NO_CONCEPT[0].to_owned());
            none.or_else(needed).into_iter().collect()
        }
    };
    let model = |value: Option<f64>| value.filter(|_| is_open).map(|value| value as f32);
    let record = |(row, p_link): (&CandidateRow, f64)| CandidateRecord {
        id: row.id.clone(),
        name: row.name.clone(),
        p_link: p_link as f32,
        p_both: mark.p_mention.map(|_| row.score as f32),
    };
    let candidates = mark.candidates.iter().zip(mark.candidate_p_links()).filter(|_| is_open);
    let attribute = |(name, value)| Attribute { name, value };
    let mut attributes: Vec<Attribute> = original.attributes.into_iter().map(attribute).collect();
    context::set_attributes(&mut attributes, &mark.contexts);
    Annotation {
        spans: mark.spans(),
        text: mark.text.clone(),
        semantic_type: mark.kind.clone(),
        ids,
        key: original.key,
        parts: if is_as_read { original.parts } else { Vec::new() },
        attributes,
        score: model(mark.score),
        p_mention: model(mark.p_mention),
        p_link: model(mark.p_link),
        nil: is_open && mark.is_nil,
        candidates: candidates.map(record).collect(),
        codes: Vec::new(),
    }
}

/// Adds source, annotator, time, unsure flag and comments of a mark as attributes.
pub fn write_origin(annotation: &mut Annotation, mark: &MarkState, by: Option<&str>, comments: &[String]) {
    let recorded = recorded_source(&annotation.attributes).map(|source| source.value.clone());
    // Predictions that were spread from decisions are SILVER, and imported SILVER ones stay so.
    let is_silver = |source: &String| source == "SILVER" && mark.is_open();
    let spread = (mark.spread_from.is_some() && mark.is_open()).then(|| "SILVER".to_owned());
    let source = recorded.clone().filter(is_silver).or(spread);
    let source = source.unwrap_or_else(|| mark.source.name().to_owned());
    match recorded {
        Some(recorded) => replace(&mut annotation.attributes, SOURCE, &recorded, &source),
        None => annotation.attributes.push(Attribute { name: SOURCE.to_owned(), value: source }),
    }
    let mut set = |name: &str, value: &str| match annotation.attributes.iter_mut().find(|one| one.name == name) {
        Some(one) => one.value = value.to_owned(),
        None => annotation.attributes.push(Attribute { name: name.to_owned(), value: value.to_owned() }),
    };
    if let Some(by) = by {
        set(ANNOTATOR, by);
    }
    if let Some(model) = mark.model.as_deref() {
        set(MODEL, model);
    }
    if mark.by.is_some() || mark.original.is_none() {
        set(UPDATED_AT, &rfc3339(mark.at));
    }
    if mark.is_unsure {
        set(UNSURE, "true");
    }
    if !comments.is_empty() {
        set(COMMENT, &comments.join(" | "));
    }
    if !mark.is_unsure {
        annotation.attributes.retain(|one| one.name != UNSURE);
    }
}

fn replace(attributes: &mut [Attribute], name: &str, before: &str, after: &str) {
    if let Some(one) = attributes.iter_mut().find(|one| one.name == name && one.value == before) {
        one.value = after.to_owned();
    }
}

/// A comment on one line, with author and time.
pub fn comment_line(remark: &Remark) -> String {
    let text = remark.text.split_whitespace().collect::<Vec<&str>>().join(" ");
    match remark.by.is_empty() {
        // Imported from a file that has no authors.
        true => text,
        false => format!("[{}, {}] {text}", remark.by, remark.at),
    }
}

/// A stored comment as it is written: what was imported has its author and time in the text.
pub fn remark(by: &str, at: &str, text: &str) -> Remark {
    let stored = Remark { by: by.to_owned(), at: at.to_owned(), text: text.to_owned() };
    let origin = || {
        let (origin, rest) = text.strip_prefix('[')?.split_once("] ")?;
        let (by, at) = origin.rsplit_once(", ")?;
        parse_rfc3339(at)?;
        Some(Remark { by: by.to_owned(), at: at.to_owned(), text: rest.to_owned() })
    };
    origin().unwrap_or(stored)
}

/// The text of a comment from a file, stored in the name of whoever imports it: with its author and time, if known.
pub fn imported_comment(remark: &Remark) -> String {
    match remark.by.is_empty() || parse_rfc3339(&remark.at).is_none() {
        true => remark.text.clone(),
        false => format!("[{}, {}] {}", remark.by, remark.at, remark.text),
    }
}

/// The annotator recorded in the file of a mark.
pub fn annotator(original: &Original) -> Option<&str> {
    original.attributes.iter().find(|(name, _)| name == ANNOTATOR).map(|(_, value)| value.as_str())
}

/// The annotator of a mark, here or recorded in its file.
pub fn decided_by(mark: &MarkState, names: &HashMap<i64, String>) -> Option<String> {
    match mark.by {
        Some(by) => names.get(&by).cloned(),
        None => mark.original.as_ref().and_then(annotator).map(str::to_owned),
    }
}
