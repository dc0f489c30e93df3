//! Annotations of files and models to marks, and marks to annotations.

use canonym::corpus::{Annotation, Attribute, CandidateRecord};
use canonym::kb::KnowledgeBase;

use super::{CandidateRow, MarkState, Named, Original, Source, State, rounded, stored};
use crate::times::Millis;

/// Ids by which files say that no concept is meant.
const NO_CONCEPT: [&str; 5] = ["-1", "-", "NIL", "None", "CUI-less"];

/// An annotation of a file as a GOLD mark.
pub fn of_file(kb: &KnowledgeBase, annotation: &Annotation, at: Millis) -> MarkState {
    let ids: Vec<&str> = annotation.ids.iter().map(String::as_str).filter(|id| !id.is_empty()).collect();
    let concept = concept_of(kb, &ids);
    let says_none = annotation.nil || (!ids.is_empty() && ids.iter().all(|id| NO_CONCEPT.contains(id)));
    let original = Original {
        concept: concept.as_ref().map(|concept| concept.id.clone()),
        ids: annotation.ids.clone(),
        text: annotation.text.clone(),
        key: annotation.key.clone(),
        parts: annotation.parts.clone(),
        attributes: annotation.attributes.iter().map(|one| (one.name.clone(), one.value.clone())).collect(),
    };
    MarkState {
        spans: stored(&annotation.spans),
        text: annotation.text.clone(),
        kind: annotation.semantic_type.clone(),
        source: Source::Gold,
        state: State::Accepted,
        is_nil: concept.is_none() && says_none,
        concept,
        is_unsure: false,
        score: annotation.score.map(rounded),
        candidates: annotation.candidates.iter().map(CandidateRow::of).collect(),
        by: None,
        at,
        model: None,
        is_deleted: false,
        original: Some(original),
    }
}

/// The concept that ids name: the first that the knowledge base has, else the first as it is written.
fn concept_of(kb: &KnowledgeBase, ids: &[&str]) -> Option<Named> {
    let named: Vec<&str> = ids.iter().copied().filter(|id| !NO_CONCEPT.contains(id)).collect();
    let parts = named.iter().flat_map(|id| std::iter::once(*id).chain(id.split(['|', '+', ','])));
    let known = parts.map(str::trim).filter(|id| !id.is_empty()).find_map(|id| kb.find(id));
    match known {
        Some(concept) => Some(Named { id: kb.id(concept).to_owned(), name: kb.preferred_name(concept).to_owned() }),
        None => named.first().map(|id| Named { id: (*id).to_owned(), name: String::new() }),
    }
}

/// An annotation of a model as an open PRED mark.
pub fn of_model(annotation: &Annotation, model: &str, at: Millis) -> MarkState {
    let best = annotation.candidates.first().filter(|_| !annotation.nil);
    MarkState {
        spans: stored(&annotation.spans),
        text: annotation.text.clone(),
        kind: annotation.semantic_type.clone(),
        source: Source::Pred,
        state: State::Open,
        concept: best.map(|best| Named { id: best.id.clone(), name: best.name.clone() }),
        is_nil: annotation.nil,
        is_unsure: false,
        score: annotation.score.map(rounded),
        candidates: annotation.candidates.iter().map(CandidateRow::of).collect(),
        by: None,
        at,
        model: Some(model.to_owned()),
        is_deleted: false,
        original: None,
    }
}

/// Whether the ids of a file leave out the prefix that the knowledge base adds: `D003693` for `MESH:D003693`. `None` where no mark shows it.
pub fn has_raw_ids<'a>(kb: &KnowledgeBase, marks: impl IntoIterator<Item = &'a MarkState>) -> Option<bool> {
    let is_raw = |mark: &MarkState| {
        let original = mark.original.as_ref()?;
        let (id, concept) = (original.ids.first()?, kb.find(original.concept.as_deref()?)?);
        let (is_whole, is_raw) = (id == kb.id(concept), id == &kb.raw_id(concept));
        (is_whole || is_raw).then_some(!is_whole)
    };
    marks.into_iter().find_map(is_raw)
}

/// Writes the ids of an annotation as [`has_raw_ids`] has them.
pub fn strip_ids(kb: &KnowledgeBase, annotation: &mut Annotation) {
    let raw = |id: &mut String| {
        if let Some(concept) = kb.find(id).filter(|concept| kb.id(*concept) == id) {
            *id = kb.raw_id(concept);
        }
    };
    annotation.ids.iter_mut().for_each(raw);
    annotation.candidates.iter_mut().for_each(|candidate| raw(&mut candidate.id));
}

/// A mark as files have it. Only open predictions carry scores and candidates: what people decided is gold.
pub fn to_file(mark: &MarkState) -> Annotation {
    let original = mark.original.clone().unwrap_or_default();
    let is_as_read = mark.original.is_some() && original.concept.as_deref() == mark.concept_id();
    let is_open = mark.is_open();
    let ids = match &mark.concept {
        _ if is_as_read && !(mark.is_nil && mark.source == Source::User) => original.ids,
        Some(concept) => vec![concept.id.clone()],
        None => original.ids.iter().filter(|id| NO_CONCEPT.contains(&id.as_str())).cloned().collect(),
    };
    let record =
        |row: &CandidateRow| CandidateRecord { id: row.id.clone(), name: row.name.clone(), score: row.score as f32 };
    Annotation {
        spans: mark.spans(),
        text: mark.text.clone(),
        semantic_type: mark.kind.clone(),
        ids,
        key: original.key,
        parts: if is_as_read { original.parts } else { Vec::new() },
        attributes: original.attributes.into_iter().map(|(name, value)| Attribute { name, value }).collect(),
        score: mark.score.filter(|_| is_open).map(|score| score as f32),
        nil: is_open && mark.is_nil,
        candidates: if is_open { mark.candidates.iter().map(record).collect() } else { Vec::new() },
    }
}
