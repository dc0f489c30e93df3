//! Conflicts between the annotators of a document.
//!
//! The last decision of each annotator on each mark is read from the events; undone decisions do not count. Two annotators conflict if they decided
//! differently on one mark, or if each has overlapping mentions that the other has not. A settle event overrides earlier decisions; later decisions
//! reopen the conflict. All original decisions stay in the history.

use std::collections::{BTreeMap, BTreeSet};

use canonym_core::text::Span;

use super::{Event, MarkState, Named, State};
use crate::spans::overlap;
use crate::times::Millis;

/// The kind of settle events.
pub const SETTLE: &str = "settle";

/// Kinds of events that are not decisions on a mark.
const NOT_DECISIONS: [&str; 6] = ["import", "predict", "comment", "undo", "redo", "unsure"];

/// A mention that an annotator decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The mark.
    pub mark: i64,
    /// Spans in bytes.
    pub spans: Vec<Span>,
    /// The text of the spans.
    pub text: String,
    /// The concept; `None` if there is none.
    pub concept: Option<Named>,
}

type Key<'a> = (&'a [Span], Option<&'a str>);

impl Claim {
    fn key(&self) -> Key<'_> {
        (&self.spans, self.concept.as_ref().map(|concept| concept.id.as_str()))
    }
}

/// The last decision of an annotator on a mark.
#[derive(Debug, Clone)]
struct LastDecision {
    claim: Claim,
    /// Whether it is kept as a mention.
    is_kept: bool,
    at: Millis,
    is_settled: bool,
    /// Who decided: the annotator, or whoever settled the conflict.
    by: i64,
}

/// An answer in a conflict, and the annotators who gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The annotators, and when they decided.
    pub people: Vec<(i64, Millis)>,
    /// The mentions; empty for "not a mention".
    pub claims: Vec<Claim>,
}

/// A conflict between annotators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The marks involved, in order.
    pub marks: Vec<i64>,
    /// The span from the first to the last byte of them.
    pub extent: Span,
    /// The answers, most frequent first.
    pub answers: Vec<Answer>,
    /// Whether it was settled and reopened by a later decision.
    pub is_reopened: bool,
}

/// The conflicts of a document, in text order.
pub fn conflicts(events: &[Event]) -> Vec<Conflict> {
    let decisions = last_decisions(events);
    let kept: BTreeMap<i64, BTreeSet<Key<'_>>> = decisions
        .iter()
        .map(|(person, of)| (*person, of.values().filter(|one| one.is_kept).map(|one| one.claim.key()).collect()))
        .collect();
    let mut parents: BTreeMap<i64, i64> = BTreeMap::new();
    let people: Vec<i64> = decisions.keys().copied().collect();
    for (row, one) in people.iter().enumerate() {
        for other in &people[row + 1..] {
            for (a, b) in overlapping_pairs(&decisions[one], &decisions[other]) {
                if differ(a, b, &kept[one], &kept[other]) {
                    unite(&mut parents, a.claim.mark, b.claim.mark);
                }
            }
        }
    }
    let marks: Vec<i64> = parents.keys().copied().collect();
    let mut groups: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for mark in marks {
        groups.entry(root(&parents, mark)).or_default().push(mark);
    }
    let mut conflicts: Vec<Conflict> = groups.into_values().map(|marks| conflict(&decisions, marks)).collect();
    conflicts.sort_by_key(|conflict| (conflict.extent.start, conflict.marks[0]));
    conflicts
}

/// The last decision of each annotator on each mark.
fn last_decisions(events: &[Event]) -> BTreeMap<i64, BTreeMap<i64, LastDecision>> {
    let mut undone = BTreeSet::new();
    for event in events {
        match (event.kind.as_str(), event.undoes) {
            ("undo", Some(batch)) => undone.insert(batch),
            ("redo", Some(batch)) => undone.remove(&batch),
            _ => false,
        };
    }
    let mut decisions: BTreeMap<i64, BTreeMap<i64, LastDecision>> = BTreeMap::new();
    let counts = |event: &&Event| !NOT_DECISIONS.contains(&event.kind.as_str()) && !undone.contains(&event.batch);
    for event in events.iter().filter(counts) {
        let Some(person) = event.person else { continue };
        let is_settled = event.kind == SETTLE;
        // Reopening a document restores the predictions that finishing accepted.
        for change in event.changes.marks.iter().filter(|change| change.is_open_again()) {
            decisions.values_mut().for_each(|of| {
                of.remove(&change.id);
            });
        }
        let made: Vec<LastDecision> = event
            .changes
            .marks
            .iter()
            .filter(|change| !change.is_open_again())
            .filter_map(|change| Some((change.id, change.after.as_ref()?)))
            .map(|(id, mark)| LastDecision {
                claim: claim(id, mark),
                is_kept: mark.is_listed(),
                at: event.at,
                is_settled,
                by: person,
            })
            .collect();
        if is_settled {
            let has_decided =
                |of: &BTreeMap<i64, LastDecision>| made.iter().any(|one| of.contains_key(&one.claim.mark));
            for others in decisions.values_mut().filter(|of| has_decided(of)) {
                others.extend(made.iter().map(|one| (one.claim.mark, one.clone())));
            }
        }
        decisions.entry(person).or_default().extend(made.into_iter().map(|one| (one.claim.mark, one)));
    }
    decisions
}

fn claim(mark: i64, state: &MarkState) -> Claim {
    Claim { mark, spans: state.spans(), text: state.text.clone(), concept: state.concept.clone() }
}

/// Decisions of two annotators on one mark, or on overlapping marks that only one of them has.
fn overlapping_pairs<'a>(
    one: &'a BTreeMap<i64, LastDecision>,
    other: &'a BTreeMap<i64, LastDecision>,
) -> Vec<(&'a LastDecision, &'a LastDecision)> {
    let mut pairs: Vec<(&LastDecision, &LastDecision)> =
        one.iter().filter_map(|(mark, decision)| Some((decision, other.get(mark)?))).collect();
    let alone =
        |of: &'a BTreeMap<i64, LastDecision>, other: &'a BTreeMap<i64, LastDecision>| -> Vec<&'a LastDecision> {
            of.iter().filter(|(mark, _)| !other.contains_key(mark)).map(|(_, decision)| decision).collect()
        };
    let others = alone(other, one);
    for decision in alone(one, other) {
        let overlapping = others.iter().filter(|other| overlap(&decision.claim.spans, &other.claim.spans));
        pairs.extend(overlapping.map(|other| (decision, *other)));
    }
    pairs
}

/// Whether two decisions conflict, given all mentions that each of the two annotators keeps.
fn differ(
    one: &LastDecision,
    other: &LastDecision,
    kept_by_one: &BTreeSet<Key<'_>>,
    kept_by_other: &BTreeSet<Key<'_>>,
) -> bool {
    let (a, b) = (one.claim.key(), other.claim.key());
    let is_same_mark = one.claim.mark == other.claim.mark;
    match (one.is_kept, other.is_kept) {
        (true, true) => a != b && !kept_by_other.contains(&a) && !kept_by_one.contains(&b),
        (true, false) => (is_same_mark || a == b) && !kept_by_other.contains(&a),
        (false, true) => (is_same_mark || a == b) && !kept_by_one.contains(&b),
        (false, false) => false,
    }
}

/// The first mark of the group of a mark (union-find).
fn root(parents: &BTreeMap<i64, i64>, mut mark: i64) -> i64 {
    while let Some(above) = parents.get(&mark).filter(|above| **above != mark) {
        mark = *above;
    }
    mark
}

fn unite(parents: &mut BTreeMap<i64, i64>, one: i64, other: i64) {
    parents.entry(one).or_insert(one);
    parents.entry(other).or_insert(other);
    let (a, b) = (root(parents, one), root(parents, other));
    parents.insert(a.max(b), a.min(b));
}

fn conflict(decisions: &BTreeMap<i64, BTreeMap<i64, LastDecision>>, marks: Vec<i64>) -> Conflict {
    let mut answers: Vec<Answer> = Vec::new();
    let (mut is_reopened, mut extent): (bool, Option<Span>) = (false, None);
    for (person, of) in decisions {
        let latest: Vec<&LastDecision> =
            marks.iter().filter_map(|mark| of.get(mark)).filter(|one| one.by == *person).collect();
        let Some(at) = latest.iter().map(|one| one.at).max() else { continue };
        let mut claims: Vec<Claim> = Vec::new();
        for decision in latest {
            is_reopened |= decision.is_settled;
            for span in &decision.claim.spans {
                let before = extent.unwrap_or(*span);
                extent = Some(Span { start: before.start.min(span.start), end: before.end.max(span.end) });
            }
            if decision.is_kept && claims.iter().all(|claim| claim.key() != decision.claim.key()) {
                claims.push(decision.claim.clone());
            }
        }
        claims.sort_by(|a, b| a.key().cmp(&b.key()));
        let is_same = |answer: &&mut Answer| answer.claims.iter().map(Claim::key).eq(claims.iter().map(Claim::key));
        match answers.iter_mut().find(is_same) {
            Some(answer) => answer.people.push((*person, at)),
            None => answers.push(Answer { people: vec![(*person, at)], claims }),
        }
    }
    answers.sort_by_key(|answer| (std::cmp::Reverse(answer.people.len()), answer.claims.is_empty()));
    Conflict { marks, extent: extent.unwrap_or(Span { start: 0, end: 0 }), answers, is_reopened }
}

/// How close a mark is to a wanted mention; the greatest is best.
pub fn fitness(mark: &MarkState, spans: &[(u32, u32)], concept: Option<&str>) -> (bool, bool, bool) {
    (mark.spans == spans, mark.concept_id() == concept, mark.state != State::Rejected)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::marks::{Change, Changes, Source};

    /// Rows of person, kind, mark, first and last byte, concept (`-` for none, `x` where it is refused), and the batch that is taken back.
    type Row = (i64, &'static str, i64, (u32, u32), &'static str);

    fn event(row: usize, (person, kind, id, span, concept): Row) -> Event {
        let mark = MarkState {
            spans: vec![span],
            text: String::new(),
            kind: String::new(),
            source: Source::User,
            state: if concept == "x" { State::Rejected } else { State::Accepted },
            concept: (!["x", "-"].contains(&concept)).then(|| Named { id: concept.to_owned(), name: String::new() }),
            is_nil: concept == "-",
            is_unsure: false,
            contexts: Vec::new(),
            score: None,
            p_mention: None,
            p_link: None,
            candidates: Vec::new(),
            by: Some(person),
            at: 0,
            model: None,
            spread_from: None,
            is_deleted: false,
            original: None,
        };
        let row = row as i64;
        let undoes = matches!(kind, "undo" | "redo").then_some(id);
        let marks = vec![Change { id, before: None, after: Some(mark) }];
        let changes = Changes { marks, finished: None };
        Event {
            id: row,
            batch: row,
            person: Some(person),
            at: row,
            kind: kind.to_owned(),
            model: None,
            undoes,
            changes,
        }
    }

    fn check(rows: &[Row], expected: Expect) {
        let events: Vec<Event> = rows.iter().enumerate().map(|(row, one)| event(row, *one)).collect();
        let mut text = String::new();
        for conflict in conflicts(&events) {
            text += &format!("{:?}{}", conflict.marks, if conflict.is_reopened { " again" } else { "" });
            for answer in &conflict.answers {
                let people: Vec<String> = answer.people.iter().map(|(person, _)| person.to_string()).collect();
                let claim = |claim: &Claim| {
                    let concept = claim.concept.as_ref().map_or("-", |concept| concept.id.as_str());
                    format!("{}..{} {concept}", claim.spans[0].start, claim.spans[0].end)
                };
                let claims: Vec<String> = answer.claims.iter().map(claim).collect();
                text += &format!(" | {}: {}", people.join("+"), claims.join(", "));
            }
            text += "\n";
        }
        expected.assert_eq(&text);
    }

    #[test]
    fn different_decisions_on_one_mark_conflict() {
        check(
            &[
                (1, "accept", 7, (0, 5), "A"),
                (2, "concept", 7, (0, 5), "B"),
                (3, "accept", 7, (0, 5), "B"),
                (1, "accept", 8, (10, 15), "A"),
                (2, "reject", 8, (10, 15), "x"),
                (1, "nil", 9, (20, 25), "-"),
                (2, "accept", 9, (20, 25), "-"),
            ],
            expect![[r#"
                [7] | 2+3: 0..5 B | 1: 0..5 A
                [8] | 1: 10..15 A | 2: 
            "#]],
        );
    }

    #[test]
    fn overlapping_marks_conflict_unless_one_annotator_has_both() {
        check(
            &[
                (1, "add", 1, (0, 10), "A"),
                (2, "add", 2, (4, 10), "B"),
                // Both nested marks are accepted by one, one of them by the other.
                (1, "accept", 3, (20, 30), "A"),
                (1, "accept", 4, (24, 30), "B"),
                (2, "accept", 3, (20, 30), "A"),
                // Equal annotations with marks of their own agree.
                (1, "add", 5, (40, 50), "A"),
                (2, "add", 6, (40, 50), "A"),
            ],
            expect![[r#"
                [1, 2] | 1: 0..10 A | 2: 4..10 B
            "#]],
        );
    }

    #[test]
    fn undone_decisions_do_not_count() {
        let rows = [
            (1, "accept", 7, (0, 5), "A"),
            (2, "reject", 7, (0, 5), "x"),
            (2, "undo", 1, (0, 5), "A"),
            (2, "redo", 1, (0, 5), "x"),
        ];
        check(&rows[..3], expect![""]);
        check(&rows, expect![["[7] | 1: 0..5 A | 2: \n"]]);
    }

    #[test]
    fn later_decision_reopens_a_settled_conflict() {
        let rows = [
            (1, "accept", 7, (0, 9), "A"),
            (1, "accept", 6, (2, 5), "N"),
            (2, "concept", 7, (0, 9), "B"),
            (3, "settle", 7, (0, 9), "C"),
            (1, "concept", 7, (0, 9), "A"),
            (3, "undo", 3, (0, 9), "B"),
        ];
        check(&rows[..3], expect![["[7] | 1: 0..9 A | 2: 0..9 B\n"]]);
        check(&rows[..4], expect![""]);
        check(&rows[..5], expect![["[7] again | 1: 0..9 A | 3: 0..9 C\n"]]);
        check(&rows, expect![["[7] | 1: 0..9 A | 2: 0..9 B\n"]]);
    }
}
