//! Spreads a concept to the unreviewed mentions of a text, as predictions that are reviewed like others: of a decision
//! to identical mentions, and of a proposed name to its occurrences.

use std::collections::BTreeMap;

use canonym_core::text::Span;

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

/// The changes in a document; new marks are numbered from `next_mark`. Reviewed mentions, and predictions of other spans, stay as they are.
pub fn changes(
    text: &str,
    marks: &BTreeMap<i64, MarkState>,
    spread: &Spread,
    at: Millis,
    next_mark: &mut i64,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for span in find_words(text, &spread.text) {
        let has_same_span = |mark: &MarkState| mark.spans == [(span.start, span.end)];
        let is_other = |mark: &MarkState| mark.is_listed() && overlap(&mark.spans(), &[span]);
        let is_refused = |mark: &MarkState| mark.state == State::Rejected && !mark.is_deleted && has_same_span(mark);
        if marks.values().any(is_refused) {
            continue;
        }
        let mut others = marks.iter().filter(|(_, mark)| is_other(mark));
        match (others.next(), others.next()) {
            (None, _) => {
                changes.push(Change { id: *next_mark, before: None, after: Some(added(text, span, spread, at)) });
                *next_mark += 1;
            }
            (Some((id, mark)), None)
                if mark.is_open()
                    && !mark.is_unsure
                    && has_same_span(mark)
                    && mark.concept_id() != Some(spread.concept.id.as_str()) =>
            {
                changes.push(Change { id: *id, before: Some(mark.clone()), after: Some(relinked(mark, spread, at)) });
            }
            _ => {}
        }
    }
    changes
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
            (5, mark("PRED", "open", (at(4).0 - 4, at(4).1), "B")),
        ]);
        let concept = Named { id: "A".to_owned(), name: "Amyloid".to_owned() };
        let spread =
            Spread { text: "CAA".to_owned(), concept, kind: "Disorder".to_owned(), model: "identical", from: Some(1) };
        let mut next = 6;
        let changes = changes(text, &marks, &spread, 0, &mut next);
        let shown: Vec<(i64, u32, Option<f64>)> = changes
            .iter()
            .map(|change| (change.id, change.after.as_ref().unwrap().spans[0].0, change.after.as_ref().unwrap().score))
            .collect();
        assert_eq!((shown, next), (vec![(2, at(1).0, None), (6, at(5).0, None)], 7));
        assert!(changes.iter().all(|change| change.after.as_ref().unwrap().concept_id() == Some("A")));
    }
}
