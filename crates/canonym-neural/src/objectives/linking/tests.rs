use super::*;
use crate::models::dual_encoder::tests::{KINDS, drawn};
use crate::models::dual_encoder::{MentionVector, NameVector, SpanSearch};
use crate::train::objective::tests::check_gradients;
use crate::train::optimise::{AdamConfig, Schedule};
use crate::train::{Progress, Run, RunConfig};

/// Eight concepts with two names each: a name is `[concept, other]`, a mention is the wordpiece of the concept.
fn names() -> Names {
    let mut names = Names::default();
    for concept in 0..8u32 {
        for other in [8, 9] {
            names.input_ids.push(vec![10, concept, other, 10]);
            names.concepts.push(vec![concept]);
        }
    }
    names
}

fn texts() -> Vec<TrainingText> {
    let mut rng = SplitMix64::new(5);
    let one = |_| {
        let (left, right) = (rng.below(8) as u32, rng.below(8) as u32);
        let target = |at: usize, concept: u32| Target { first: at, last: at, concepts: vec![concept], is_linked: true };
        TrainingText {
            rows: vec![10, 9, left, 9, 9, right, 8, 10],
            mentions: vec![target(2, left), target(5, right)],
            begins_word: vec![true; 8],
            ..TrainingText::default()
        }
    };
    (0..24).map(one).collect()
}

fn config(shared: bool) -> LinkingConfig {
    LinkingConfig { batch: 4, n_random: 3, n_hard: 2, n_searched: 4, shared, ..Default::default() }
}

fn begin(parameters: Parameters, n_steps: u64) -> Run {
    let adam = AdamConfig { learning_rate: 5e-3, schedule: Schedule::Constant, ..Default::default() };
    let config =
        RunConfig { n_steps, mining_interval: 6, evaluate_every: 2, patience: 0, adam, ..RunConfig::default() };
    Run::new(config, 11, parameters)
}

#[test]
fn candidates_are_a_name_of_the_concept_what_it_was_confused_with_and_random_ones() {
    let (model, parameters) = drawn(MentionVector::BoundaryTokens, NameVector::Pooler, None);
    let (names, mut texts) = (names(), texts());
    texts[0].mentions[1].concepts.clear();
    texts[1].mentions[0].concepts = vec![77];
    for shared in [false, true] {
        let mut objective = Linking::new(&model, config(shared), &texts, &names, 11);
        objective.begin_interval(&parameters, 0).unwrap();
        let n_confused: usize = objective.hard_negatives.iter().map(Vec::len).sum();
        assert!(n_confused > 0 && objective.hard_negatives.iter().all(|names| names.len() <= 4));
        objective.begin_interval(&parameters, 1).unwrap();
        // Mining again finds nothing new.
        assert_eq!(objective.hard_negatives.iter().map(Vec::len).sum::<usize>(), n_confused);
        let mut n_asked = 0;
        for step in 0..6 {
            let batch = objective.batch(step, &mut SplitMix64::new(step));
            n_asked += batch.asked.len();
            let sizes = batch.asked.iter().map(|(_, candidates)| candidates.len());
            let most = if shared { names.input_ids.len() } else { 1 + 2 + 3 };
            assert!(sizes.clone().all(|n| n > 1 && n <= most), "{sizes:?}");
        }
        // An epoch contains every mention once, except for those whose concept has no name.
        assert_eq!(n_asked, 46);
        let memory = objective.save_state();
        let mut other = Linking::new(&model, config(shared), &texts, &names, 11);
        other.load_state(&memory).unwrap();
        assert_eq!(other.hard_negatives, objective.hard_negatives);
        assert!(other.load_state(b"1 2\n").is_err() && other.load_state(&[0xff]).is_err());
    }
}

#[test]
fn the_gradient_of_vectors_is_that_of_differences() {
    let (names, texts) = (names(), texts());
    for (mention, name, search) in KINDS {
        for shared in [false, true] {
            let (model, parameters) = drawn(mention, name, search);
            let config = LinkingConfig { batch: 2, scale: 0.5, name_replay: 3, ..config(shared) };
            let config = LinkingConfig { all_names: search.is_some(), ..config };
            let mut objective = Linking::new(&model, config, &texts, &names, 11);
            objective.begin_interval(&parameters, 0).unwrap();
            let batch = objective.batch(1, &mut SplitMix64::new(1));
            let mut values = Values::default();
            for part in 0..objective.n_parts(&batch) {
                let mut tape = Tape::new(&parameters);
                let outputs = objective.forward(&mut tape, &batch, part, &mut SplitMix64::new(3)).unwrap();
                outputs.iter().for_each(|(name, output)| values.push(name, tape.value(output)));
            }
            check_gradients(|values| objective.losses(&batch, values), &values, 7, (1e-2, 2e-3));
        }
    }
}

#[test]
fn training_links_and_finds_mentions() {
    let (names, texts) = (names(), texts());
    for (mention, name, search) in &KINDS[..2] {
        let (mut model, parameters) = drawn(*mention, *name, *search);
        (model.bert.hidden_dropout_prob, model.bert.attention_probs_dropout_prob) = (0.0, 0.0);
        let mut objective = Linking::new(&model, config(true), &texts, &names, 11).with_held_out(&texts);
        let before = objective.evaluate(&parameters).unwrap().unwrap();
        let mut run = begin(parameters, 180);
        run.train(&mut objective, &mut |_, _| Ok(())).unwrap();
        let after = objective.evaluate(&run.parameters).unwrap().unwrap();
        assert!(after > before && after > 0.8, "{mention:?}: {before} {after}");
    }
}

#[test]
fn mentions_come_near_names_that_are_kept_as_they_are() {
    let (names, mut texts) = (names(), texts());
    texts[0].mentions[1].concepts.clear();
    // A mention with two concepts.
    let other = (texts[1].mentions[0].concepts[0] + 1) % 8;
    texts[1].mentions[0].concepts.push(other);
    let (mut model, mut parameters) = drawn(MentionVector::BoundaryTokens, NameVector::Mean, None);
    (model.bert.hidden_dropout_prob, model.bert.attention_probs_dropout_prob) = (0.0, 0.0);
    let of_names: Vec<String> =
        parameters.iter().map(|(name, _)| name.to_owned()).filter(|name| name.starts_with(NAME)).collect();
    of_names.iter().for_each(|name| parameters.freeze(name).unwrap());
    let config = LinkingConfig { n_random: 0, n_hard: 0, all_names: true, name_replay: 4, ..config(false) };
    let mut objective = Linking::new(&model, config, &texts, &names, 11).with_held_out(&texts[2..]);
    let mut run = begin(parameters.clone(), 300);
    run.train(&mut objective, &mut |_, _| Ok(())).unwrap();
    let after = objective.evaluate(&run.parameters).unwrap().unwrap();
    assert!(after > 0.9, "{after}");
    for name in of_names {
        assert_eq!(run.parameters.get(&name).unwrap(), parameters.get(&name).unwrap());
    }
    let parts = objective.batch(0, &mut SplitMix64::new(1)).parts;
    assert!(!parts.iter().any(|part| matches!(part, Part::Names(_))));
}

#[test]
fn a_run_that_was_killed_and_resumed_ends_with_the_same_weights_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let (names, texts) = (names(), texts());
    let (mention, name, search) = KINDS[1];
    let (model, parameters) = drawn(mention, name, search);
    let new = || Linking::new(&model, config(false), &texts, &names, 11);
    let mut whole = begin(parameters.clone(), 24);
    whole.train(&mut new(), &mut |_, _| Ok(())).unwrap();

    let mut killed = begin(parameters.clone(), 24);
    let stopped = killed.train(&mut new(), &mut |run, progress| match progress {
        Progress::Round { .. } => run.save(&path, "this"),
        // Inside a mining interval.
        Progress::Step { step: 15, .. } => Err(canonym_core::Error::cancelled("killed")),
        Progress::Step { .. } => Ok(()),
    });
    assert_eq!(stopped.unwrap_err().to_string(), "killed");
    let mut resumed = begin(parameters, 24);
    resumed.resume(&path, "this").unwrap();
    assert_eq!(resumed.n_made, 12);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| resumed.train(&mut new(), &mut |_, _| Ok(()))).unwrap();
    assert_eq!(resumed, whole);
}

#[test]
fn a_mention_that_is_linked_in_another_window_is_no_negative_here() {
    let text = TrainingText { elsewhere: vec![(5, 6)], ..texts().remove(0) };
    assert_eq!(spans_of(&text).collect::<Vec<_>>(), [(2, 2), (5, 5), (5, 6)]);
    let (model, _) = drawn(MentionVector::Mean, NameVector::Mean, Some(SpanSearch::Exhaustive { longest: 3 }));
    let (names, texts) = (names(), [text]);
    let linking = Linking::new(&model, LinkingConfig { batch: 1, ..config(false) }, &texts, &names, 3);
    let batch = linking.batch(0, &mut SplitMix64::new(1));
    assert_eq!(batch.windows[0].mentions, [(1, 1), (4, 4), (4, 5)]);
    // It is linked only in the window with the most context.
    let Part::Windows(_, mentions) = &batch.parts[0] else { panic!("no window") };
    assert_eq!(mentions.len(), 2);
}

#[test]
fn in_batch_negatives_are_the_concepts_of_the_other_mentions() {
    let (model, _) = drawn(MentionVector::First, NameVector::First, None);
    let (names, mut texts) = (names(), texts());
    texts.truncate(4);
    for (text, concept) in texts.iter_mut().zip([3, 5, 3, 6]) {
        text.mentions.truncate(1);
        text.mentions[0].concepts = vec![concept];
    }
    let candidates = |false_negatives: bool| {
        let config =
            LinkingConfig { n_random: 0, n_hard: 0, shared: true, in_batch: true, false_negatives, ..config(true) };
        let objective = Linking::new(&model, config, &texts, &names, 11);
        let batch = objective.batch(0, &mut SplitMix64::new(2));
        let mut counts: Vec<usize> = batch.asked.iter().map(|(_, candidates)| candidates.len()).collect();
        counts.sort_unstable();
        counts
    };
    // As published, each mention has four candidates, whatever they are; else the concept of two mentions is none of their negatives, though
    // two of its names may be in the batch.
    assert_eq!(candidates(true), [4; 4]);
    let masked = candidates(false);
    assert!(masked[..2] == [3, 3] && masked[2..].iter().all(|n| (3..=4).contains(n)), "{masked:?}");
}

#[test]
fn the_loss_in_a_batch_is_the_cross_entropy_of_the_diagonal() {
    // The inner products are 2, 0 and 1, 1: losses .1269 and .6931.
    let values = Values::of([
        (MENTIONS, Matrix::new(2, 2, vec![2.0, 0.0, 1.0, 1.0])),
        (NAMES, Matrix::new(2, 2, vec![1.0, 0.0, 0.0, 1.0])),
    ]);
    let asked = vec![(0, vec![0, 1]), (1, vec![1, 0])];
    let batch = LinkingBatch { parts: Vec::new(), windows: Vec::new(), asked, concepts: Vec::new() };
    let mut losses = Losses::default();
    linking_loss(&batch, 1.0, &values, &mut losses);
    assert!((losses.terms[0].1 - 0.4100).abs() < 5e-5, "{losses:?}");
}
