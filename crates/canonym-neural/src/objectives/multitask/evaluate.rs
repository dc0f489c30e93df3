//! Strict scores of the multi-task tagger on held-out texts.

use std::collections::{BTreeMap, BTreeSet};

use canonym_core::Result;
use canonym_core::eval::matching::Counts;

use super::TextLabels;
use crate::models::multitask::Task;
use crate::models::multitask::infer::{FoundSpan, Labelled, LinkedSpan, MultitaskTagger};
use crate::models::multitask::tokenized::TokenizedText;

/// Class of a type or concept that the training documents lack.
pub const UNKNOWN: u32 = u32::MAX;

/// Number of thresholds that are tried.
const N_THRESHOLDS: usize = 200;

/// A held-out text.
#[derive(Debug, Clone, Default)]
pub struct HeldOut {
    /// The text, tokenised without gold boundaries unless the spans are given.
    pub text: TokenizedText,
    /// Gold mentions whose boundaries are word boundaries.
    pub spans: Vec<HeldOutSpan>,
    /// Gold labels of its words.
    pub labels: TextLabels,
    /// Number of gold annotations of each task with other boundaries, which cannot be found.
    pub n_unreachable: BTreeMap<Task, usize>,
}

/// A gold mention of a held-out text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldOutSpan {
    /// First word.
    pub first: usize,
    /// Last word.
    pub last: usize,
    /// Type from 1, or [`UNKNOWN`]; `None` if it has none.
    pub class: Option<u32>,
    /// Concepts from 1, or [`UNKNOWN`], each of which is correct; empty if it is unlinked.
    pub concepts: Vec<u32>,
}

/// Scores of each task.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluation {
    /// Strict counts: span for mentions, span and type, span and concept.
    pub counts: BTreeMap<Task, Counts>,
    /// Fraction of words with the correct label, for each task that labels words; words whose label is not known are left out.
    pub token_accuracy: BTreeMap<Task, f64>,
}

/// The gold mentions of texts, as first and last words.
pub fn gold_spans(held_out: &[HeldOut]) -> Vec<Vec<(usize, usize)>> {
    held_out.iter().map(|text| text.spans.iter().map(|span| (span.first, span.last)).collect()).collect()
}

/// Scores of each task on held-out texts, with types and concepts assigned to `given` pairs of first and last word if there are any.
///
/// # Errors
/// If a weight is missing.
pub fn evaluate(
    tagger: &MultitaskTagger,
    held_out: &[HeldOut],
    given: Option<&[Vec<(usize, usize)>]>,
) -> Result<Evaluation> {
    let found = label(tagger, held_out, given)?;
    Ok(evaluation(&tagger.config.tasks, held_out, &found, given.is_some()))
}

/// Labels held-out texts; see [`MultitaskTagger::label`].
///
/// # Errors
/// If a weight is missing.
pub fn label(
    tagger: &MultitaskTagger,
    held_out: &[HeldOut],
    given: Option<&[Vec<(usize, usize)>]>,
) -> Result<Vec<Labelled>> {
    let texts: Vec<TokenizedText> = held_out.iter().map(|held_out| held_out.text.clone()).collect();
    tagger.label(&texts, given)
}

/// Scores of `tasks` from the labels of each text, of which mentions are not scored if they were given.
pub fn evaluation(tasks: &[Task], held_out: &[HeldOut], found: &[Labelled], given: bool) -> Evaluation {
    let mut evaluation = Evaluation::default();
    for task in tasks {
        if *task != Task::Mentions || !given {
            let counts = held_out.iter().zip(found).map(|(text, found)| strict(*task, text, found)).sum();
            evaluation.counts.insert(*task, counts);
        }
        let (n_words, n_right) = held_out
            .iter()
            .zip(found)
            .map(|(text, found)| words(*task, text, found))
            .fold((0, 0), |(n_words, n_right), (n, right)| (n_words + n, n_right + right));
        if n_words > 0 {
            evaluation.token_accuracy.insert(*task, n_right as f64 / n_words as f64);
        }
    }
    evaluation
}

/// Strict counts of concepts, without links below `threshold`.
pub fn linked_above(held_out: &[HeldOut], found: &[Labelled], threshold: f32) -> Counts {
    let each = held_out.iter().zip(found).map(|(text, found)| {
        let mut above = Labelled { concept_spans: found.concept_spans.clone(), ..Labelled::default() };
        above.concept_spans.retain(|span| p_both(span) >= threshold);
        strict(Task::Concepts, text, &above)
    });
    each.sum()
}

/// The threshold of links with the highest strict F1 of concepts on held-out texts; 0 without links.
pub fn best_threshold(held_out: &[HeldOut], found: &[Labelled]) -> f32 {
    let mut p_links: Vec<f32> = found.iter().flat_map(|found| &found.concept_spans).map(p_both).collect();
    p_links.sort_by(f32::total_cmp);
    p_links.dedup();
    // Quantiles suffice: neighbours differ by one link.
    let step = p_links.len().div_ceil(N_THRESHOLDS).max(1);
    let scored = std::iter::once(0.0).chain(p_links.into_iter().step_by(step)).map(|threshold| {
        let f1 = linked_above(held_out, found, threshold).score().f1;
        (f1, threshold)
    });
    let best = scored.fold((f64::NEG_INFINITY, 0.0), |best, one| if one.0 > best.0 { one } else { best });
    best.1
}

/// Probability that a span is a mention of its best concept.
fn p_both(span: &LinkedSpan) -> f32 {
    span.p_mention * span.classes.first().map_or(0.0, |(_, p_link)| *p_link)
}

/// Strict counts of a text.
fn strict(task: Task, text: &HeldOut, found: &Labelled) -> Counts {
    let plain = |found: &FoundSpan| (found.span.first, found.span.last, found.span.class as u32);
    let linked = |span: &LinkedSpan| Some((span.first, span.last, span.classes.first()?.0 as u32));
    let found: BTreeSet<(usize, usize, u32)> = match task {
        Task::Mentions => found.mention_spans.iter().map(plain).collect(),
        Task::Types => found.type_spans.iter().map(plain).collect(),
        Task::Concepts => found.concept_spans.iter().filter_map(linked).collect(),
    };
    let classes = |span: &HeldOutSpan| match task {
        Task::Mentions => vec![0],
        Task::Types => span.class.into_iter().collect(),
        Task::Concepts => span.concepts.clone(),
    };
    let gold: BTreeSet<(usize, usize, Vec<u32>)> =
        text.spans.iter().map(|span| (span.first, span.last, classes(span))).filter(|one| !one.2.is_empty()).collect();
    let is_right = |(first, last, class): &&(usize, usize, u32)| {
        gold.iter().any(|gold| (gold.0, gold.1) == (*first, *last) && gold.2.contains(class))
    };
    let n_right = found.iter().filter(is_right).count();
    let n_unreachable = text.n_unreachable.get(&task).copied().unwrap_or(0);
    Counts::one_to_one(gold.len() + n_unreachable, found.len(), n_right)
}

/// Number of words of a text with a known label, and of those with the correct one.
fn words(task: Task, text: &HeldOut, found: &Labelled) -> (usize, usize) {
    let Some(labels) = found.labels.get(&task) else { return (0, 0) };
    let gold = |word: usize| match task {
        Task::Mentions => text.labels.mentions.get(word).map(|label| u32::from(*label)),
        Task::Types => text.labels.types.get(word).copied().flatten(),
        Task::Concepts => text.labels.concepts.get(word).copied().flatten(),
    };
    let is_other_id = |word: usize, label: u32| {
        let mut around = text.spans.iter().filter(|span| span.first <= word && word <= span.last);
        task == Task::Concepts && around.any(|span| span.concepts.contains(&label))
    };
    let known = labels.iter().enumerate().filter_map(|(word, label)| Some((word, *label as u32, gold(word)?)));
    known.fold((0, 0), |(n, n_right), (word, label, gold)| {
        (n + 1, n_right + usize::from(label == gold || is_other_id(word, label)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::multitask::decode::WordSpan;

    fn held_out() -> HeldOut {
        let span =
            |first, last, class, concepts: &[u32]| HeldOutSpan { first, last, class, concepts: concepts.to_vec() };
        HeldOut {
            text: TokenizedText::default(),
            spans: vec![span(0, 1, Some(1), &[4, 5]), span(3, 3, Some(UNKNOWN), &[UNKNOWN]), span(5, 5, None, &[])],
            labels: TextLabels {
                mentions: vec![1, 3, 0, 4, 0, 4],
                types: vec![Some(1), Some(1), Some(0), Some(UNKNOWN), Some(0), None],
                concepts: vec![Some(4), Some(4), Some(0), Some(UNKNOWN), Some(0), None],
                spans: Vec::new(),
            },
            n_unreachable: BTreeMap::from([(Task::Mentions, 3), (Task::Types, 2)]),
        }
    }

    fn counts(task: Task, found: &Labelled) -> (u64, u64, f64) {
        let Counts { n_gold, n_pred, tp_pred, .. } = strict(task, &held_out(), found);
        (n_gold, n_pred, tp_pred)
    }

    #[test]
    fn annotations_inside_words_count_for_the_tasks_that_they_belong_to() {
        let nothing = Labelled::default();
        let all = Task::ALL.map(|task| counts(task, &nothing));
        // A mention without type or id counts for the mention task only.
        assert_eq!(all, [(6, 0, 0.0), (4, 0, 0.0), (2, 0, 0.0)]);
    }

    #[test]
    fn each_of_several_ids_is_correct() {
        let span = |first, last, class| LinkedSpan { first, last, p_mention: 1.0, classes: vec![(class, 1.0)] };
        for (class, n_right) in [(4, 1.0), (5, 1.0), (3, 0.0)] {
            let found = Labelled { concept_spans: vec![span(0, 1, class), span(2, 2, 4)], ..Labelled::default() };
            assert_eq!(counts(Task::Concepts, &found), (2, 2, n_right));
        }
    }

    #[test]
    fn the_threshold_with_the_highest_f1_leaves_out_wrong_links() {
        let span = |first, last, class, p_mention, p| LinkedSpan { first, last, p_mention, classes: vec![(class, p)] };
        // The only correct link has 0.72; below it are wrong ones, whose mention or concept is uncertain.
        let concept_spans =
            vec![span(0, 1, 4, 0.9, 0.8), span(2, 2, 4, 0.5, 0.9), span(3, 3, 1, 0.9, 0.3), span(5, 5, 2, 1.0, 0.1)];
        let found = [Labelled { concept_spans, ..Labelled::default() }];
        let held_out = [held_out()];
        let threshold = best_threshold(&held_out, &found);
        assert!((threshold - 0.72).abs() < 1e-6, "{threshold}");
        let counts = |threshold| {
            let Counts { n_gold, n_pred, tp_pred, .. } = linked_above(&held_out, &found, threshold);
            (n_gold, n_pred, tp_pred)
        };
        assert_eq!((counts(0.0), counts(threshold), counts(1.1)), ((2, 4, 1.0), (2, 1, 1.0), (2, 0, 0.0)));
        assert_eq!(best_threshold(&held_out, &[Labelled::default()]), 0.0);
    }

    #[test]
    fn types_that_training_lacks_are_misses() {
        let found = |first, last, class| FoundSpan { span: WordSpan { first, last, class }, p_mention: 1.0 };
        let labelled = Labelled { type_spans: vec![found(0, 1, 1), found(3, 3, 1)], ..Labelled::default() };
        assert_eq!(counts(Task::Types, &labelled), (4, 2, 1.0));
    }

    #[test]
    fn accuracy_of_words_leaves_out_unknown_labels_and_takes_each_id() {
        let of = |task, labels: &[usize]| {
            let found = Labelled { labels: BTreeMap::from([(task, labels.to_vec())]), ..Labelled::default() };
            words(task, &held_out(), &found)
        };
        assert_eq!(of(Task::Mentions, &[1, 3, 0, 4, 0, 0]), (6, 5));
        assert_eq!(of(Task::Types, &[1, 1, 0, 1, 1, 1]), (5, 3));
        assert_eq!(of(Task::Concepts, &[5, 4, 0, 0, 0, 1]), (5, 4));
        assert_eq!(words(Task::Concepts, &held_out(), &Labelled::default()), (0, 0));
    }
}
