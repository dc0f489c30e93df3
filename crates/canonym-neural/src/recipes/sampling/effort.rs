//! Annotation effort: the decisions needed to correct the predictions in a document.

use std::collections::BTreeMap;
use std::ops::Add;

use canonym_core::corpus::{AnnotatedDocument, Annotation, CandidateRecord};
use canonym_core::eval::Entry;
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::matching::{Counts, MatchConfig, Measure, count_entries};
use canonym_core::text::Span;
use serde::{Deserialize, Serialize};

/// Seconds of an annotator for each kind of decision.
///
/// The defaults are estimates of the keystroke-level model (Card, Moran and Newell 1980) for the keys of the application: 1.35 s to decide,
/// 0.28 s a key, 1.1 s to point. They contain no time of reading; measured times of a project are on its statistics page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Costs {
    /// Accept a prediction: decide, one key.
    pub accept: f64,
    /// Correct the concept or the boundaries: decide, open the picker, type four letters, decide, confirm.
    pub correct: f64,
    /// Add a mention: point at both ends, then as `correct`.
    pub add: f64,
    /// Reject a prediction: decide, one key.
    pub reject: f64,
    /// Read a thousand characters.
    pub read: f64,
}

impl Default for Costs {
    fn default() -> Costs {
        Costs { accept: 1.6, correct: 4.4, add: 6.6, reject: 1.6, read: 0.0 }
    }
}

/// Decisions by kind. Each prediction is reviewed once.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Effort {
    /// Predictions with correct boundaries and concept.
    pub accepted: usize,
    /// Predictions with correct boundaries and another concept.
    pub relinked: usize,
    /// Predictions that overlap a mention with other boundaries, which are corrected.
    pub moved: usize,
    /// Those of `moved` that also need another concept.
    pub moved_and_relinked: usize,
    /// Other predictions, which are rejected.
    pub rejected: usize,
    /// Mentions without a matching prediction, which are added.
    pub added: usize,
    /// Characters of the documents.
    pub n_characters: usize,
    /// Counts of mentions and of linked mentions, for F1 as computed by `canonym eval`.
    pub mentions: Counts,
    pub links: Counts,
}

impl Add for Effort {
    type Output = Effort;

    fn add(self, other: Effort) -> Effort {
        Effort {
            accepted: self.accepted + other.accepted,
            relinked: self.relinked + other.relinked,
            moved: self.moved + other.moved,
            moved_and_relinked: self.moved_and_relinked + other.moved_and_relinked,
            rejected: self.rejected + other.rejected,
            added: self.added + other.added,
            n_characters: self.n_characters + other.n_characters,
            mentions: self.mentions + other.mentions,
            links: self.links + other.links,
        }
    }
}

impl Effort {
    /// Decisions that turn predictions into the gold annotations. Several annotations of the same span count as one mention, correct with
    /// any of their concepts.
    pub fn of(document: &AnnotatedDocument, predicted: &[Annotation]) -> Effort {
        let mut ids_of: BTreeMap<&[Span], Vec<String>> = BTreeMap::new();
        for annotation in &document.annotations {
            ids_of.entry(&annotation.spans).or_default().extend_from_slice(&annotation.ids);
        }
        let mut golds: Vec<(&[Span], IdSet, bool)> =
            ids_of.into_iter().map(|(spans, ids)| (spans, IdSet::parse(&ids), false)).collect();
        let n_characters = document.document.text.chars().count();
        let mut effort = Effort { n_characters, ..Effort::default() };
        (effort.mentions, effort.links) = counts(document, predicted);
        let mut elsewhere = Vec::new();
        for one in predicted {
            match golds.iter_mut().find(|(spans, _, is_taken)| !is_taken && *spans == one.spans.as_slice()) {
                Some((_, ids, is_taken)) => {
                    *is_taken = true;
                    let kind = if is_right(ids, one) { &mut effort.accepted } else { &mut effort.relinked };
                    *kind += 1;
                }
                None => elsewhere.push(one),
            }
        }
        for one in elsewhere {
            match golds.iter_mut().find(|(spans, _, is_taken)| !is_taken && overlap(spans, &one.spans)) {
                Some((_, ids, is_taken)) => {
                    *is_taken = true;
                    effort.moved += 1;
                    effort.moved_and_relinked += usize::from(!is_right(ids, one));
                }
                None => effort.rejected += 1,
            }
        }
        effort.added = golds.iter().filter(|(.., is_taken)| !is_taken).count();
        effort
    }

    /// All decisions; accepting a correct prediction is one.
    pub fn decisions(self) -> usize {
        self.accepted + self.corrections()
    }

    /// Decisions that change something.
    pub fn corrections(self) -> usize {
        self.relinked + self.moved + self.moved_and_relinked + self.rejected + self.added
    }

    /// Minutes of the annotator.
    pub fn minutes(self, costs: &Costs) -> f64 {
        let seconds = costs.accept * self.accepted as f64
            + costs.correct * (self.relinked + self.moved + self.moved_and_relinked) as f64
            + costs.add * self.added as f64
            + costs.reject * self.rejected as f64
            + costs.read * self.n_characters as f64 / 1000.0;
        seconds / 60.0
    }

    /// Strict F1 of spans, and of spans with concepts.
    pub fn f1(self) -> (f64, f64) {
        (self.mentions.score().f1, self.links.score().f1)
    }
}

/// Counts of mentions and of linked mentions.
fn counts(document: &AnnotatedDocument, predicted: &[Annotation]) -> (Counts, Counts) {
    let gold = document.annotations.iter().map(|one| Entry::new(one.spans.clone(), IdSet::parse(&one.ids)));
    let ids = |one: &Annotation| best(one).map_or_else(IdSet::default, |best| IdSet::parse_one(&best.id));
    let predicted = predicted.iter().map(|one| Entry::new(one.spans.clone(), ids(one)));
    let (gold, predicted): (Vec<Entry>, Vec<Entry>) = (gold.collect(), predicted.collect());
    let total = |measure: Measure| count_entries(measure, &gold, &predicted, MatchConfig::default());
    (total(Measure::MentionRecognition), total(Measure::Strict))
}

fn best(predicted: &Annotation) -> Option<&CandidateRecord> {
    predicted.candidates.first().filter(|_| !predicted.nil)
}

fn is_right(ids: &IdSet, predicted: &Annotation) -> bool {
    match best(predicted) {
        Some(best) => ids.intersects(&IdSet::parse_one(&best.id)),
        None => ids.is_nil(),
    }
}

fn overlap(some: &[Span], others: &[Span]) -> bool {
    some.iter().any(|one| others.iter().any(|other| one.start < other.end && other.start < one.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation(start: u32, end: u32, id: &str) -> Annotation {
        let candidate = CandidateRecord { id: id.to_owned(), name: String::new(), p_link: 0.9, p_both: None };
        Annotation {
            spans: vec![Span { start: start as _, end: end as _ }],
            ids: vec![id.to_owned()],
            candidates: vec![candidate],
            ..Annotation::default()
        }
    }

    #[test]
    fn each_mention_is_decided_once() {
        let gold = [(0, 5, "A"), (10, 15, "B"), (20, 25, "C"), (30, 35, "D"), (40, 45, "E")];
        let document = AnnotatedDocument {
            annotations: gold.map(|(start, end, id)| annotation(start, end, id)).to_vec(),
            ..AnnotatedDocument::default()
        };
        let predicted = [(0, 5, "A"), (10, 15, "X"), (20, 23, "C"), (31, 35, "X"), (50, 55, "Y")];
        let effort = Effort::of(&document, &predicted.map(|(start, end, id)| annotation(start, end, id)));
        let expected = Effort {
            accepted: 1,
            relinked: 1,
            moved: 2,
            moved_and_relinked: 1,
            rejected: 1,
            added: 1,
            n_characters: 0,
            mentions: Counts::one_to_one(5, 5, 2),
            links: Counts::one_to_one(5, 5, 1),
        };
        assert_eq!(effort, expected);
        assert_eq!((effort.decisions(), effort.corrections()), (7, 6));
        let costs = Costs { accept: 1.0, correct: 10.0, add: 100.0, reject: 1000.0, read: 10_000.0 };
        let effort = Effort { n_characters: 2000, ..effort };
        assert!((60.0 * effort.minutes(&costs) - 21_141.0).abs() < 1e-6);
        // Two of five spans, one of five links.
        let (spans, links) = effort.f1();
        assert!((spans - 0.4).abs() < 1e-9 && (links - 0.2).abs() < 1e-9);
    }

    #[test]
    fn unlinked_predictions_are_right_for_nil_mentions() {
        let document = AnnotatedDocument { annotations: vec![annotation(0, 5, "-1")], ..AnnotatedDocument::default() };
        let none = Annotation { nil: true, ..annotation(0, 5, "A") };
        let effort = Effort::of(&document, &[none]);
        assert_eq!((effort.accepted, effort.links), (1, Counts::default()));
        assert_eq!(Effort::of(&document, &[]).added, 1);
    }
    #[test]
    fn a_span_with_several_annotations_is_one_decision_and_correct_with_any_of_their_concepts() {
        let gold = vec![annotation(0, 5, "A"), annotation(0, 5, "B"), annotation(10, 15, "C"), annotation(10, 15, "C")];
        let document = AnnotatedDocument { annotations: gold, ..AnnotatedDocument::default() };
        let effort = Effort::of(&document, &[annotation(0, 5, "B"), annotation(10, 15, "C")]);
        assert_eq!((effort.accepted, effort.corrections()), (2, 0));
        // As in `canonym eval`: two spans, three links, since a repeated annotation counts once.
        assert_eq!(effort.mentions, Counts::one_to_one(2, 2, 2));
        assert_eq!(effort.links, Counts::one_to_one(3, 2, 2));
    }
}
