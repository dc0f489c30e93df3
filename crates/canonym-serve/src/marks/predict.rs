//! Replaces old predictions with new ones.
//!
//! Reviewed annotations stay as they are. A prediction that the model makes again keeps its number. A new one that repeats an annotation or a
//! rejection of a person is dropped; one that contradicts an annotation is kept as a conflict.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Change, MarkState, Source, State};
use crate::spans::overlap;

/// The changes that replace the unreviewed predictions in `marks` with `predicted`; new marks are numbered from `next_mark`.
pub fn replace(marks: &BTreeMap<i64, MarkState>, predicted: Vec<MarkState>, next_mark: &mut i64) -> Vec<Change> {
    // A prediction marked as unsure has been reviewed in part.
    // So has one that was spread from a decision.
    let is_old = |mark: &MarkState| mark.is_open() && !mark.is_unsure && mark.spread_from.is_none();
    let mut old: BTreeMap<i64, &MarkState> =
        marks.iter().filter(|(_, mark)| is_old(mark)).map(|(id, mark)| (*id, mark)).collect();
    let mut by_spans: HashMap<&[(u32, u32)], Vec<i64>> = HashMap::new();
    for (id, mark) in old.iter().rev() {
        by_spans.entry(&mark.spans).or_default().push(*id);
    }
    let reviewed = Reviewed::new(marks.values().filter(|mark| !is_old(mark)));
    let mut changes = Vec::new();
    for mark in predicted {
        if reviewed.cover(&mark) {
            continue;
        }
        let same_spans = by_spans.get_mut(mark.spans.as_slice()).and_then(Vec::pop);
        let (id, before) = match same_spans {
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

/// Spans and concept.
type Key<'a> = (&'a [(u32, u32)], Option<&'a str>);

/// The annotations and rejections that stay, by concept; predictions that repeat them are dropped.
pub struct Reviewed<'a> {
    /// Spans where a person rejected a concept or is unsure: matched exactly.
    exact: HashSet<Key<'a>>,
    /// Spans with a concept that was spread from a decision: no other prediction takes them.
    spread: HashSet<&'a [(u32, u32)]>,
    /// Spans where a person annotated a concept: matched by overlap. Sorted and disjoint.
    by_overlap: HashMap<Option<&'a str>, Vec<(u32, u32)>>,
}

impl<'a> Reviewed<'a> {
    /// Collects the marks.
    pub fn new(marks: impl Iterator<Item = &'a MarkState>) -> Reviewed<'a> {
        let mut reviewed = Reviewed { exact: HashSet::new(), spread: HashSet::new(), by_overlap: HashMap::new() };
        for mark in marks.filter(|mark| !mark.is_deleted) {
            if mark.spread_from.is_some() && mark.is_open() {
                reviewed.spread.insert(&mark.spans);
            } else if mark.state == State::Rejected || mark.source == Source::Pred {
                reviewed.exact.insert((&mark.spans, mark.concept_id()));
            } else {
                reviewed.by_overlap.entry(mark.concept_id()).or_default().extend(&mark.spans);
            }
        }
        for spans in reviewed.by_overlap.values_mut() {
            spans.sort_unstable();
            spans.dedup_by(|next, before| {
                let is_overlapping = next.0 < before.1;
                if is_overlapping {
                    before.1 = before.1.max(next.1);
                }
                is_overlapping
            });
        }
        reviewed
    }

    /// Whether a prediction repeats one of them.
    pub fn cover(&self, mark: &MarkState) -> bool {
        let is_overlapping = |spans: &Vec<(u32, u32)>| {
            mark.spans.iter().any(|(start, end)| {
                let next = spans.partition_point(|(_, other_end)| other_end <= start);
                spans.get(next).is_some_and(|(other_start, _)| other_start < end)
            })
        };
        self.spread.contains(mark.spans.as_slice())
            || self.exact.contains(&(mark.spans.as_slice(), mark.concept_id()))
            || self.by_overlap.get(&mark.concept_id()).is_some_and(is_overlapping)
    }
}

/// What people annotated, by start.
pub struct Annotations<'a> {
    /// Begin and end, from the first to the last character.
    marks: Vec<((u32, u32), &'a MarkState)>,
    longest: u32,
}

impl<'a> Annotations<'a> {
    /// Collects the annotations.
    pub fn of(marks: impl Iterator<Item = &'a MarkState>) -> Annotations<'a> {
        let mut marks: Vec<((u32, u32), &MarkState)> = marks.filter_map(|mark| Some((hull(mark)?, mark))).collect();
        marks.sort_by_key(|(hull, _)| *hull);
        let longest = marks.iter().map(|((start, end), _)| end - start).max().unwrap_or_default();
        Annotations { marks, longest }
    }

    /// Whether one of them says something else than a prediction where they overlap. Of two that are linked and have different types, one may
    /// be nested in the other; an annotation that is not linked contradicts a link only if no concept matches it.
    pub fn contradict(&self, predicted: &MarkState) -> bool {
        let Some(inner) = hull(predicted) else { return false };
        let from = self.marks.partition_point(|(outer, _)| outer.0 + self.longest < inner.0);
        self.marks[from..].iter().take_while(|(outer, _)| outer.0 < inner.1).any(|(outer, mark)| {
            let has = |one: (u32, u32), other: (u32, u32)| one.0 <= other.0 && other.1 <= one.1 && one != other;
            let is_linked = mark.concept.is_some() && predicted.concept.is_some();
            let is_nested = is_linked && mark.kind != predicted.kind && (has(*outer, inner) || has(inner, *outer));
            let is_left_open = mark.concept.is_none() && !mark.is_nil && predicted.concept.is_some();
            contradicts(mark, predicted) && !is_nested && !is_left_open
        })
    }
}

/// From the first to the last character.
fn hull(mark: &MarkState) -> Option<(u32, u32)> {
    Some((mark.spans.first()?.0, mark.spans.last()?.1))
}

/// Whether a prediction overlaps an annotation and contradicts it.
pub fn contradicts(human: &MarkState, predicted: &MarkState) -> bool {
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
            contexts: Vec::new(),
            score: None,
            p_mention: None,
            p_link: None,
            candidates: Vec::new(),
            by: None,
            at: 0,
            model: None,
            spread_from: None,
            is_deleted: false,
            original: None,
        }
    }

    #[test]
    fn reviewed_marks_stay_and_conflicts_are_kept() {
        let pred = |span, concept| mark(Source::Pred, State::Open, span, concept);
        let marks = BTreeMap::from([
            (1, mark(Source::Gold, State::Accepted, (0, 5), "A")),
            (2, mark(Source::User, State::Accepted, (10, 15), "B")),
            (3, mark(Source::Pred, State::Rejected, (20, 25), "C")),
            (4, pred((30, 35), "D")),
            (5, pred((40, 45), "E")),
        ]);
        let new = vec![
            pred((0, 3), "A"),   // repeats an annotation
            pred((10, 15), "X"), // contradicts an annotation
            pred((20, 25), "C"), // repeats a rejection
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
        assert!(contradicts(&marks[&2], changes[0].after.as_ref().unwrap()));
    }

    #[test]
    fn many_marks_are_replaced_in_linear_time() {
        // Each comparison with all others would be ten thousand million of them.
        let n = 100_000;
        let row = |id: u32, source, state, concept| (i64::from(id), mark(source, state, (4 * id, 4 * id + 3), concept));
        let marks: BTreeMap<i64, MarkState> = (0..n)
            .map(|id| match id % 2 {
                0 => row(id, Source::Gold, State::Accepted, "A"),
                _ => row(id, Source::Pred, State::Open, "B"),
            })
            .collect();
        let predicted = (0..n).map(|id| row(id, Source::Pred, State::Open, "A").1).collect();
        let mut next = 0;
        let changes = replace(&marks, predicted, &mut next);
        assert_eq!((changes.len(), next), (n as usize / 2, 0));
    }

    #[test]
    fn overlapping_prediction_of_the_same_concept_repeats_an_annotation() {
        let human = |span, concept| mark(Source::User, State::Accepted, span, concept);
        let marks = [human((0, 10), "A"), human((2, 4), "A"), human((20, 30), "A"), human((12, 18), "B")];
        let reviewed = Reviewed::new(marks.iter());
        let cover = |span, concept| reviewed.cover(&mark(Source::Pred, State::Open, span, concept));
        assert!(cover((9, 12), "A") && cover((5, 6), "A") && cover((29, 40), "A") && cover((17, 19), "B"));
        assert!(!cover((10, 20), "A") && !cover((12, 18), "A") && !cover((0, 12), "B") && !cover((0, 40), "C"));
    }
}
