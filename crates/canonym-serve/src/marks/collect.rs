//! Takes the answers of annotators who worked blind over into the document that they worked on copies of.
//!
//! Each answer becomes a decision of its annotator, so that conflicts, agreement and history are those of people who
//! worked on the document itself. An annotator who finished a copy without a mention that another one has rejected it,
//! unless a mention of their own overlaps it: then the two mentions conflict.

use std::collections::BTreeMap;

use super::{Change, MarkState, Source, State};
use crate::spans::overlap;
use crate::times::Millis;

/// The finished copy of an annotator.
#[derive(Debug, Clone)]
pub struct Answers {
    /// The annotator.
    pub person: i64,
    /// The mentions that the annotator kept, with their numbers in the copy.
    pub marks: Vec<(i64, MarkState)>,
}

/// A decision that follows from an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Collected {
    /// The annotator; `None` if a prediction is removed that nobody decided on.
    pub person: Option<i64>,
    /// The kind of the event.
    pub kind: &'static str,
    /// The change.
    pub change: Change,
    /// The mark of the copy.
    pub from: Option<i64>,
}

/// Spans, and the how manyth mark with these spans it is.
type Place = (Vec<(u32, u32)>, usize);

/// The decisions that take over `answers` into a document with the marks `now`; new marks are numbered from `next_mark`.
pub fn collect(now: &BTreeMap<i64, MarkState>, answers: &[Answers], at: Millis, next_mark: &mut i64) -> Vec<Collected> {
    let listed = now.iter().filter(|(_, mark)| mark.is_listed());
    let mut ids: BTreeMap<Place, i64> =
        places(listed.map(|(id, mark)| (*id, mark))).map(|(place, id, _)| (place, id)).collect();
    let mut given: BTreeMap<Place, Vec<Option<(i64, &MarkState)>>> =
        ids.keys().map(|place| (place.clone(), vec![None; answers.len()])).collect();
    for (row, of) in answers.iter().enumerate() {
        for (place, id, mark) in places(of.marks.iter().map(|(id, mark)| (*id, mark))) {
            ids.entry(place.clone()).or_insert_with(|| {
                *next_mark += 1;
                *next_mark - 1
            });
            given.entry(place).or_insert_with(|| vec![None; answers.len()])[row] = Some((id, mark));
        }
    }
    let mut collected = Vec::new();
    for (place, given) in &given {
        let id = ids[place];
        let mut current = now.get(&id).cloned();
        let is_untouched = |mark: &MarkState| mark.source == Source::Gold;
        if given.iter().all(|one| one.is_some_and(|(_, mark)| is_untouched(mark))) {
            continue;
        }
        for row in order(place, given, answers) {
            let person = answers[row].person;
            let (kind, after) = match given[row] {
                Some((_, mark)) => {
                    let before = current.as_ref().filter(|_| now.contains_key(&id));
                    (kind_of(before, mark), kept(before, mark))
                }
                None => {
                    let other = given.iter().flatten().next().map(|(_, mark)| (*mark).clone());
                    let Some(mark) = current.clone().or(other) else { continue };
                    ("reject", MarkState { state: State::Rejected, ..mark })
                }
            };
            let after = MarkState { by: Some(person), at, ..after };
            let change = Change { id, before: current.take(), after: Some(after.clone()) };
            current = Some(after);
            let from = given[row].map(|(from, _)| from);
            collected.push(Collected { person: Some(person), kind, change, from });
        }
        if let Some(mark) = current.filter(MarkState::is_open) {
            let change = Change { id, before: Some(mark), after: None };
            collected.push(Collected { person: None, kind: "predict", change, from: None });
        }
    }
    collected
}

fn places<'a>(marks: impl Iterator<Item = (i64, &'a MarkState)>) -> impl Iterator<Item = (Place, i64, &'a MarkState)> {
    let mut seen: BTreeMap<&'a [(u32, u32)], usize> = BTreeMap::new();
    marks.map(move |(id, mark)| {
        let n = seen.entry(&mark.spans).or_default();
        *n += 1;
        ((mark.spans.clone(), *n), id, mark)
    })
}

/// Who decides on a mention, the most frequent answer last, so that it stands until the conflict is resolved.
fn order(place: &Place, given: &[Option<(i64, &MarkState)>], answers: &[Answers]) -> Vec<usize> {
    let label = |row: usize| given[row].map(|(_, mark)| mark.concept_id());
    let decides = |row: &usize| {
        let spans: Vec<_> = place.0.iter().map(|&(start, end)| canonym_core::text::Span { start, end }).collect();
        given[*row].is_some() || !answers[*row].marks.iter().any(|(_, mark)| overlap(&mark.spans(), &spans))
    };
    let mut rows: Vec<usize> = (0..given.len()).filter(decides).collect();
    let n_same = |row: usize| rows.iter().filter(|other| label(**other) == label(row)).count();
    let counts: Vec<usize> = (0..given.len()).map(|row| if rows.contains(&row) { n_same(row) } else { 0 }).collect();
    rows.sort_by_key(|row| (counts[*row], std::cmp::Reverse(*row)));
    rows
}

fn kind_of(before: Option<&MarkState>, mark: &MarkState) -> &'static str {
    match before {
        None => "add",
        Some(before) if before.concept_id() == mark.concept_id() && before.is_nil == mark.is_nil => "accept",
        Some(_) if mark.concept.is_some() => "concept",
        Some(_) => "nil",
    }
}

fn kept(before: Option<&MarkState>, mark: &MarkState) -> MarkState {
    let original = before.and_then(|before| before.original.clone());
    MarkState { source: Source::User, state: State::Accepted, original, ..mark.clone() }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn mark(source: &str, (start, end): (u32, u32), concept: &str) -> MarkState {
        let state = if source == "PRED" { "open" } else { "accepted" };
        serde_json::from_value(json!({
            "spans": [[start, end]], "text": "", "kind": "", "source": source, "state": state,
            "concept": {"id": concept, "name": ""}, "is_nil": false, "is_unsure": false, "score": null, "candidates": [],
            "by": null, "at": 0, "model": null, "is_deleted": false, "original": null
        }))
        .unwrap()
    }

    fn check(now: &[MarkState], answers: &[&[MarkState]], expected: Expect) {
        let numbered = |marks: &[MarkState]| (1..).zip(marks.to_vec()).collect::<Vec<(i64, MarkState)>>();
        let now: BTreeMap<i64, MarkState> = numbered(now).into_iter().collect();
        let answers: Vec<Answers> =
            (1..).zip(answers).map(|(person, marks)| Answers { person, marks: numbered(marks) }).collect();
        let mut text = String::new();
        for one in collect(&now, &answers, 0, &mut 10) {
            let shown = |mark: &Option<MarkState>| match mark {
                Some(mark) if mark.state == State::Rejected => "x".to_owned(),
                Some(mark) => mark.concept_id().unwrap_or("-").to_owned(),
                None => String::new(),
            };
            let Change { id, before, after } = &one.change;
            text += &format!("{:?} {} {id}: {}>{}\n", one.person, one.kind, shown(before), shown(after));
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn answers_become_decisions_of_their_annotators() {
        let [pred, kept] = [mark("PRED", (0, 5), "A"), mark("USER", (0, 5), "A")];
        check(
            std::slice::from_ref(&pred),
            &[std::slice::from_ref(&kept), &[mark("USER", (0, 5), "B")], std::slice::from_ref(&kept)],
            expect![[r#"
                Some(2) concept 1: A>B
                Some(3) concept 1: B>A
                Some(1) accept 1: A>A
            "#]],
        );
    }

    #[test]
    fn missing_mention_is_rejected_unless_another_one_overlaps_it() {
        check(
            &[],
            &[
                &[mark("USER", (0, 9), "A"), mark("USER", (20, 25), "C")],
                &[mark("USER", (4, 9), "A")],
                &[mark("USER", (20, 25), "C")],
            ],
            expect![[r#"
                Some(3) reject 10: >x
                Some(1) add 10: x>A
                Some(3) reject 12: >x
                Some(2) add 12: x>A
                Some(2) reject 11: >x
                Some(3) add 11: x>C
                Some(1) add 11: C>C
            "#]],
        );
    }

    #[test]
    fn gold_that_nobody_touched_stays_and_open_predictions_go() {
        let gold = mark("GOLD", (0, 5), "A");
        let marks = [gold.clone(), mark("PRED", (10, 19), "B")];
        let longer = mark("USER", (10, 15), "B");
        check(
            &marks,
            &[&[gold.clone(), longer.clone()], &[gold, longer]],
            expect![[r#"
                Some(2) add 10: >B
                Some(1) add 10: B>B
                None predict 2: B>
            "#]],
        );
    }
}
