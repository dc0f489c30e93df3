//! New predictions in the place of old ones.
//!
//! What people made, confirmed or rejected stays. An old prediction that the model still makes keeps its id. A new one that says of a place what a
//! person said there, or what a person rejected there, is left out; one that says otherwise is kept as a disagreement.

use std::collections::BTreeMap;

use super::{Change, MarkState, Source, State};
use crate::spans::overlap;

/// What changes when `predicted` takes the place of the open predictions among `marks`; new marks are counted from `next_mark`.
pub fn replace(marks: &BTreeMap<i64, MarkState>, predicted: Vec<MarkState>, next_mark: &mut i64) -> Vec<Change> {
    // Where somebody has said that they are not sure, a person has had a hand in it.
    let is_old = |mark: &MarkState| mark.is_open() && !mark.is_unsure;
    let mut old: BTreeMap<i64, &MarkState> =
        marks.iter().filter(|(_, mark)| is_old(mark)).map(|(id, mark)| (*id, mark)).collect();
    let kept: Vec<&MarkState> = marks.values().filter(|mark| !is_old(mark)).collect();
    let mut changes = Vec::new();
    for mark in predicted {
        if kept.iter().any(|kept| says_the_same(kept, &mark)) {
            continue;
        }
        let same_place = old.iter().find(|(_, before)| before.spans == mark.spans).map(|(id, _)| *id);
        let (id, before) = match same_place {
            Some(id) => (id, old.remove(&id).cloned()),
            None => {
                *next_mark += 1;
                (*next_mark - 1, None)
            }
        };
        changes.push(Change { id, before, after: Some(mark) });
    }
    changes.extend(old.into_iter().map(|(id, mark)| Change { id, before: Some(mark.clone()), after: None }));
    changes
}

/// Whether a mark that stays makes a prediction needless.
pub fn says_the_same(kept: &MarkState, mark: &MarkState) -> bool {
    if kept.is_deleted {
        return false;
    }
    let same_concept = kept.concept_id() == mark.concept_id();
    if kept.state == State::Rejected || kept.source == Source::Pred {
        return kept.spans == mark.spans && same_concept;
    }
    same_concept && overlap(&kept.spans(), &mark.spans())
}

/// Whether a prediction stands across what a person said and says otherwise.
pub fn disagrees(human: &MarkState, predicted: &MarkState) -> bool {
    human.is_human()
        && predicted.is_open()
        && human.concept_id() != predicted.concept_id()
        && overlap(&human.spans(), &predicted.spans())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marks::Named;

    fn mark(source: Source, state: State, span: (u32, u32), concept: &str) -> MarkState {
        MarkState {
            spans: vec![span],
            text: String::new(),
            kind: String::new(),
            source,
            state,
            concept: Some(Named { id: concept.to_owned(), name: String::new() }),
            is_nil: false,
            is_unsure: false,
            score: None,
            candidates: Vec::new(),
            by: None,
            at: 0,
            model: None,
            is_deleted: false,
            original: None,
        }
    }

    #[test]
    fn human_marks_stay_and_disagreements_are_kept() {
        let pred = |span, concept| mark(Source::Pred, State::Open, span, concept);
        let marks = BTreeMap::from([
            (1, mark(Source::Gold, State::Accepted, (0, 5), "A")),
            (2, mark(Source::User, State::Accepted, (10, 15), "B")),
            (3, mark(Source::Pred, State::Rejected, (20, 25), "C")),
            (4, pred((30, 35), "D")),
            (5, pred((40, 45), "E")),
        ]);
        let new = vec![
            pred((0, 3), "A"),   // a person said so
            pred((10, 15), "X"), // a person said otherwise
            pred((20, 25), "C"), // a person refused it
            pred((30, 35), "Y"), // another concept than before
            pred((50, 55), "Z"), // new
        ];
        let mut next = 6;
        let changes = replace(&marks, new, &mut next);
        let shown: Vec<String> = changes
            .iter()
            .map(|change| {
                let concept = |mark: &Option<MarkState>| {
                    mark.as_ref().and_then(|mark| mark.concept_id()).unwrap_or("-").to_owned()
                };
                format!("{} {}>{}", change.id, concept(&change.before), concept(&change.after))
            })
            .collect();
        assert_eq!(shown, ["6 ->X", "4 D>Y", "7 ->Z", "5 E>-"]);
        assert_eq!(next, 8);
        assert!(disagrees(&marks[&2], changes[0].after.as_ref().unwrap()));
    }
}
