//! Spreads a concept to the unreviewed mentions of a text, as predictions that are reviewed like others: of a decision
//! to identical mentions, and of a proposed name to its occurrences.

use std::collections::BTreeMap;

use canonym_core::kb::KnowledgeBase;
use canonym_core::text::Span;
use canonym_core::text::normalise::fold;

use super::identical::find_words;
use super::{CandidateRow, Change, MarkState, Named, Source, State};
use crate::spans::overlap;
use crate::times::Millis;

/// In place of the model of predictions that come from decisions on identical mentions.
pub const IDENTICAL: &str = "identical mentions";

/// In place of the model of predictions that come from proposed names.
pub const PROPOSED: &str = "proposals";

/// What is spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    /// The text of the mentions.
    pub text: String,
    /// The concept.
    pub concept: Named,
    /// The semantic type.
    pub kind: String,
    /// The name in place of a model's.
    pub model: &'static str,
    /// The reviewed mark that it comes from; `None` for a proposed name.
    pub from: Option<i64>,
}

/// The changes in a document; new marks are numbered from `next_mark`. Reviewed mentions stay as they are, and so do predictions of other
/// spans unless they overlap and give way.
pub fn changes(
    kb: &KnowledgeBase,
    (text, marks): (&str, &BTreeMap<i64, MarkState>),
    spread: &Spread,
    at: Millis,
    next_mark: &mut i64,
) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for span in find_words(text, &spread.text) {
        let has_same_span = |mark: &MarkState| mark.spans == [(span.start, span.end)];
        let is_refused = |mark: &MarkState| mark.state == State::Rejected && !mark.is_deleted && has_same_span(mark);
        if marks.values().any(is_refused) {
            continue;
        }
        let is_gone = |id: i64| changes.iter().any(|change| change.id == id && change.after.is_none());
        let overlapping =
            marks.iter().filter(|(id, mark)| mark.is_listed() && overlap(&mark.spans(), &[span]) && !is_gone(**id));
        let (same, others): (Vec<_>, Vec<_>) = overlapping.partition(|(_, mark)| has_same_span(mark));
        if !others.iter().all(|(_, mark)| gives_way(kb, text, mark, (span, spread))) {
            continue;
        }
        match same.as_slice() {
            [] => {
                changes.push(Change { id: *next_mark, before: None, after: Some(added(text, span, spread, at)) });
                *next_mark += 1;
            }
            [(id, mark)] if mark.is_open() && !mark.is_unsure => {
                if mark.concept_id() != Some(spread.concept.id.as_str()) {
                    let after = Some(relinked(mark, spread, at));
                    changes.push(Change { id: **id, before: Some((*mark).clone()), after });
                }
            }
            _ => continue,
        }
        let removed = others.iter().map(|(id, mark)| Change { id: **id, before: Some((*mark).clone()), after: None });
        changes.extend(removed);
    }
    changes
}

/// Whether a mention of another span gives way to a spread concept where they overlap: an unreviewed prediction does if it is not longer.
/// A longer one of a model gives way to what people decided, unless it is a name of the terminology: *fever* leaves *Q fever* as it is.
fn gives_way(kb: &KnowledgeBase, text: &str, mark: &MarkState, (span, spread): (Span, &Spread)) -> bool {
    let [own] = mark.spans()[..] else { return false };
    if !mark.is_open() || mark.is_unsure {
        return false;
    }
    match is_spread(Some(mark)) {
        true => own.len() < span.len(),
        false => {
            let is_decided = spread.from.is_some();
            own.len() <= span.len() || (is_decided && kb.find_form(&fold(own.of(text))).is_none())
        }
    }
}

/// Whether a mark was made by spreading.
pub fn is_spread(mark: Option<&MarkState>) -> bool {
    mark.and_then(|mark| mark.model.as_deref()).is_some_and(|model| [IDENTICAL, PROPOSED].contains(&model))
}

fn added(text: &str, span: Span, spread: &Spread, at: Millis) -> MarkState {
    MarkState {
        spans: vec![(span.start, span.end)],
        text: span.of(text).to_owned(),
        kind: spread.kind.clone(),
        source: Source::Pred,
        state: State::Open,
        concept: Some(spread.concept.clone()),
        is_nil: false,
        is_unsure: false,
        contexts: Vec::new(),
        score: None,
        p_mention: Some(1.0),
        p_link: Some(1.0),
        candidates: vec![candidate(spread)],
        by: None,
        at,
        model: Some(spread.model.to_owned()),
        spread_from: spread.from,
        is_deleted: false,
        original: None,
    }
}

/// Somebody stands behind the link, so there is no score of a model.
fn relinked(mark: &MarkState, spread: &Spread, at: Millis) -> MarkState {
    let others = mark.candidates.iter().filter(|one| one.id != spread.concept.id).cloned();
    MarkState {
        concept: Some(spread.concept.clone()),
        is_nil: false,
        kind: if spread.kind.is_empty() { mark.kind.clone() } else { spread.kind.clone() },
        candidates: std::iter::once(candidate(spread)).chain(others).collect(),
        score: None,
        p_link: Some(1.0),
        at,
        model: Some(spread.model.to_owned()),
        spread_from: spread.from,
        ..mark.clone()
    }
}

fn candidate(spread: &Spread) -> CandidateRow {
    CandidateRow { id: spread.concept.id.clone(), name: spread.concept.name.clone(), score: 1.0, p_link: Some(1.0) }
}

#[cfg(test)]
mod tests {
    use canonym_core::kb::format::Meta;
    use canonym_core::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};
    use serde_json::json;

    use super::*;

    fn mark(source: &str, state: &str, (start, end): (u32, u32), concept: &str) -> MarkState {
        serde_json::from_value(json!({
            "spans": [[start, end]], "text": "", "kind": "", "source": source, "state": state,
            "concept": {"id": concept, "name": ""}, "is_nil": false, "is_unsure": false, "score": 0.5, "candidates": [],
            "by": null, "at": 0, "model": null, "is_deleted": false, "original": null
        }))
        .unwrap()
    }

    /// A terminology with the name `old CAA`.
    fn kb() -> KnowledgeBase {
        let mut builder = KnowledgeBaseBuilder::new();
        let names = vec![NameRecord { text: "Old CAA".to_owned(), scope: Scope::Preferred }];
        builder.add(ConceptRecord { id: "B".to_owned(), names, ..ConceptRecord::default() }).unwrap();
        KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap()
    }

    /// The spans of `marks` after a decision on `words` is spread, or after a proposal of it.
    fn spans_after(text: &str, marks: &[MarkState], words: &str, is_decided: bool) -> Vec<(u32, u32)> {
        let mut marks: BTreeMap<i64, MarkState> = (1..).zip(marks.iter().cloned()).collect();
        let concept = Named { id: "A".to_owned(), name: "Amyloid".to_owned() };
        let (model, from) = if is_decided { (IDENTICAL, Some(9)) } else { (PROPOSED, None) };
        let spread = Spread { text: words.to_owned(), concept, kind: String::new(), model, from };
        let mut next = 100;
        // A second time nothing changes.
        for _ in 0..2 {
            for change in changes(&kb(), (text, &marks), &spread, 0, &mut next) {
                match change.after {
                    Some(mark) => marks.insert(change.id, mark),
                    None => marks.remove(&change.id),
                };
            }
        }
        let mut spans: Vec<(u32, u32)> = marks.values().map(|mark| mark.spans[0]).collect();
        spans.sort_unstable();
        spans
    }

    #[test]
    fn overlapping_predictions_give_way_to_longer_texts_and_to_decisions() {
        let text = "old CAA now";
        let pred = |span| mark("PRED", "open", span, "B");
        let spread =
            |span, words: &str| MarkState { model: Some(IDENTICAL.to_owned()), ..mark("PRED", "open", span, words) };
        for (marks, words, decided, proposed) in [
            // A shorter prediction, and two of them.
            (vec![pred((4, 7))], "CAA now", vec![(4, 11)], vec![(4, 11)]),
            (vec![pred((4, 7)), pred((8, 11))], "old CAA now", vec![(0, 11)], vec![(0, 11)]),
            // One of the same length.
            (vec![pred((4, 11))], "old CAA", vec![(0, 7)], vec![(0, 7)]),
            // A longer one gives way to a decision, but not if it is a name.
            (vec![pred((4, 11))], "CAA", vec![(4, 7)], vec![(4, 11)]),
            (vec![pred((0, 7))], "CAA", vec![(0, 7)], vec![(0, 7)]),
            // What people reviewed stays, and so does a longer text that was spread.
            (vec![mark("USER", "accepted", (4, 7), "B")], "CAA now", vec![(4, 7)], vec![(4, 7)]),
            (vec![spread((4, 11), "B")], "CAA", vec![(4, 11)], vec![(4, 11)]),
            (vec![spread((4, 7), "B")], "CAA now", vec![(4, 11)], vec![(4, 11)]),
        ] {
            assert_eq!(spans_after(text, &marks, words, true), decided, "{words}");
            assert_eq!(spans_after(text, &marks, words, false), proposed, "{words}, proposed");
        }
    }

    #[test]
    fn only_unreviewed_mentions_change() {
        let text = "CAA and CAA, CAA or CAA; old CAA, a CAA, CAAs";
        let starts: Vec<u32> = text.match_indices("CAA").map(|(at, _)| at as u32).collect();
        let at = |row: usize| (starts[row], starts[row] + 3);
        let marks = BTreeMap::from([
            (1, mark("USER", "accepted", at(0), "A")),
            (2, mark("PRED", "open", at(1), "B")),
            (3, mark("PRED", "rejected", at(2), "B")),
            (4, mark("PRED", "open", at(3), "A")),
            // It is longer, and a name of the terminology.
            (5, mark("PRED", "open", (at(4).0 - 4, at(4).1), "B")),
        ]);
        let concept = Named { id: "A".to_owned(), name: "Amyloid".to_owned() };
        let spread =
            Spread { text: "CAA".to_owned(), concept, kind: "Disorder".to_owned(), model: "identical", from: Some(1) };
        let mut next = 6;
        let changes = changes(&kb(), (text, &marks), &spread, 0, &mut next);
        let shown: Vec<(i64, u32, Option<f64>)> = changes
            .iter()
            .map(|change| (change.id, change.after.as_ref().unwrap().spans[0].0, change.after.as_ref().unwrap().score))
            .collect();
        assert_eq!((shown, next), (vec![(2, at(1).0, None), (6, at(5).0, None)], 7));
        assert!(changes.iter().all(|change| change.after.as_ref().unwrap().concept_id() == Some("A")));
    }
}
