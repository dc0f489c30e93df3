use canonym_core::text::analysis::Analysis;

use super::*;
use crate::models::multitask::ENCODER;
use crate::models::multitask::tests::{Drawn, drawn_tagger, drawn_tagger_with};
use crate::train::objective::tests::check_gradients;
use crate::train::optimise::AdamConfig;
use crate::train::{Progress, Run, RunConfig};

#[test]
fn the_loss_is_that_of_the_specification() {
    // Scores of Nil, A and B.
    let scores = Matrix::new(2, 3, vec![2.0, 1.0, 0.0, 2.0, 1.0, 0.0]);
    let loss = |labels: &[Option<u32>], weight| present_loss(&scores, labels, &[0, 1, 2], weight).0;
    assert!((loss(&[Some(1), None], 1.0) - 1.4076).abs() < 1e-4);
    assert!((loss(&[Some(0), None], 0.125) - 0.0509).abs() < 1e-4);
    assert!((loss(&[Some(1), Some(0)], 0.125) - 0.7293).abs() < 1e-4);
}

#[test]
fn absent_labels_get_no_gradient() {
    let scores = Matrix::new(1, 4, vec![0.3, 0.1, -0.2, 3.0]);
    let (_, gradient) = present_loss(&scores, &[Some(1)], &[0, 1], 1.0);
    assert_eq!(gradient.values[2..], [0.0, 0.0]);
    assert!((gradient.values[0] + gradient.values[1]).abs() < 1e-6 && gradient.values[1] < 0.0);
}

/// A model of two types and three concepts, and a text of four sentences.
struct Small {
    model: MultitaskConfig,
    parameters: Parameters,
    splitter: Splitter,
    examples: Vec<Example>,
}

fn small(framing: Framing, crf: bool) -> Small {
    small_of(drawn_tagger(framing, crf))
}

fn small_of(drawn: Drawn) -> Small {
    let Drawn { model, parameters, splitter } = drawn;
    let crf = model.type_tags;
    let text = "We saw a fever. The gout saw. A rash. We saw the rash fever.";
    let text = splitter.read(&Analysis::of_text(text), &[]);
    let n = text.words.len();
    let mut labels =
        TextLabels { mentions: vec![0; n], types: vec![Some(0); n], concepts: vec![Some(0); n], spans: Vec::new() };
    let unit = crate::layers::crf::bilou::UNIT;
    for (word, class) in [(3, 1), (6, 2), (10, 3), (15, 3)] {
        let kind = if class == 1 { 1 } else { 2 };
        labels.mentions[word] = unit as u8;
        let tag = crate::models::multitask::decode::tag_of(unit, kind) as u32;
        labels.types[word] = Some(if crf { tag } else { kind as u32 });
        // A mention without a known concept is not learned from.
        labels.concepts[word] = (word != 10).then_some(class);
        let concept = labels.concepts[word];
        labels.spans.push(GoldSpan { first: word, last: word, class: Some(kind as u32), concept });
    }
    Small { model, parameters, splitter, examples: vec![Example { text, labels }] }
}

fn config(schedule: Schedule, encoder_gradient: EncoderGradient) -> MultitaskBatchConfig {
    MultitaskBatchConfig { batch: 10, schedule, encoder_gradient, nil_weight: 0.125 }
}

/// The outputs of all parts of a batch.
fn values_of(objective: &Multitask, parameters: &Parameters, batch: &MultitaskBatch) -> Values {
    let mut values = Values::default();
    for part in 0..objective.n_parts(batch) {
        let mut tape = Tape::new(parameters);
        let outputs = objective.forward(&mut tape, batch, part, &mut SplitMix64::new(5)).unwrap();
        outputs.iter().for_each(|(name, output)| values.push(name, tape.value(output)));
    }
    values
}

#[test]
fn losses_have_the_gradients_of_their_differences() {
    let with_hidden_layer = small_of(drawn_tagger_with(Framing::Token, false, |model| model.hidden_layer = true));
    let cases =
        [small(Framing::Token, false), small(Framing::Token, true), small(Framing::Entity, false), with_hidden_layer];
    for Small { model, parameters, splitter, examples } in cases {
        let config = config(Schedule::Summed, EncoderGradient::All);
        let objective = Multitask::new(&model, config, &splitter, &examples, 3);
        let batch = objective.batch(0, &mut SplitMix64::new(4));
        let values = values_of(&objective, &parameters, &batch);
        assert_eq!(objective.losses(&batch, &values).terms.len(), 3);
        check_gradients(|values| objective.losses(&batch, values), &values, 7, (1e-2, 2e-3));
    }
}

#[test]
fn only_the_highest_task_changes_the_encoder_unless_all_do() {
    let Small { model, parameters, splitter, examples } = small(Framing::Token, false);
    for (encoder_gradient, tasks) in [(EncoderGradient::Main, 1), (EncoderGradient::All, 3)] {
        let config = config(Schedule::Sampled, encoder_gradient);
        let objective = Multitask::new(&model, config, &splitter, &examples, 3);
        let mut reached = BTreeSet::new();
        for step in 0..20 {
            let batch = objective.batch(step, &mut SplitMix64::new(step));
            assert_eq!(batch.tasks.len(), 1);
            let mut tape = Tape::new(&parameters);
            let outputs = objective.forward(&mut tape, &batch, 0, &mut SplitMix64::new(5)).unwrap();
            let ones = outputs.iter().map(|(_, output)| {
                let value = tape.value(output);
                (output, Matrix::new(value.n_rows, value.n_cols, vec![1.0; value.values.len()]))
            });
            let ones: Vec<_> = ones.collect();
            let gradients = tape.backward(ones);
            let row = parameters.find(&format!("{ENCODER}embedding.norm.gain")).unwrap();
            if gradients.of(row).is_some() {
                reached.insert(batch.tasks[0]);
            }
        }
        assert_eq!(reached.len(), tasks, "{reached:?}");
        assert!(reached.contains(&Task::Concepts));
    }
}

#[test]
fn a_run_of_several_optimisers_that_was_resumed_ends_with_the_same_weights() {
    let Small { model, parameters, splitter, examples } = small(Framing::Token, false);
    let run = || {
        let adam = AdamConfig { learning_rate: 1e-2, weight_decay: 1e-3, lazy: true, ..AdamConfig::default() };
        let config = RunConfig { n_steps: 24, mining_interval: 6, adam, ..RunConfig::default() };
        Run::new(config, 3, parameters.clone())
    };
    let train = |run: &mut Run, observe: &mut dyn FnMut(&Run, Progress<'_>) -> Result<()>| {
        let config = config(Schedule::Sampled, EncoderGradient::Main);
        run.train(&mut Multitask::new(&model, config, &splitter, &examples, 3), observe)
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let mut whole = run();
    train(&mut whole, &mut |run, progress| match progress {
        Progress::Round { step: 12, .. } => run.save(&path, "this"),
        _ => Ok(()),
    })
    .unwrap();
    assert_eq!(whole.optimisers.len(), 3);
    assert_eq!(whole.optimisers.iter().map(|adam| adam.n_made).sum::<u64>(), 24);
    let mut resumed = run();
    resumed.resume(&path, "this").unwrap();
    train(&mut resumed, &mut |_, _| Ok(())).unwrap();
    assert_eq!(resumed, whole);
}

#[test]
fn nil_is_always_among_the_labels() {
    // All words of the batch have the type `A`.
    let Small { model, parameters, splitter, mut examples } = small(Framing::Token, false);
    let labels = &mut examples[0].labels;
    labels.types.fill(Some(1));
    labels.concepts.fill(Some(1));
    labels.mentions.fill(crate::layers::crf::bilou::UNIT as u8);
    let config = config(Schedule::Summed, EncoderGradient::All);
    let objective = Multitask::new(&model, config, &splitter, &examples, 3);
    let batch = objective.batch(0, &mut SplitMix64::new(4));
    let values = values_of(&objective, &parameters, &batch);
    let losses = objective.losses(&batch, &values);
    assert_eq!(losses.terms.len(), 3);
    assert!(losses.terms.iter().all(|(_, loss)| *loss > 0.0), "{:?}", losses.terms);
}

#[test]
fn a_mention_across_windows_is_learned_from_the_window_with_most_of_its_words() {
    let Small { model, splitter, mut examples, .. } = small(Framing::Entity, false);
    let Example { text, labels } = &mut examples[0];
    let second = text.windows[1].words.clone();
    labels.spans = vec![GoldSpan { first: second.start - 1, last: second.start + 1, class: Some(1), concept: Some(2) }];
    let config = config(Schedule::Summed, EncoderGradient::All);
    let objective = Multitask::new(&model, config, &splitter, &examples, 3);
    let part = objective.part(&[(0, 0), (0, 1), (0, 2)]);
    assert_eq!((part.types.clone(), part.concepts.clone()), (vec![Some(1)], vec![Some(2)]));
    let row = |word: usize| part.windows.words[word];
    assert_eq!(part.windows.spans, [(row(second.start), row(second.start + 1))]);
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let config = config(Schedule::Summed, EncoderGradient::All);
    config.check().unwrap();
    for (config, key) in [
        (MultitaskBatchConfig { batch: 0, ..config }, "`batch.batch`"),
        (MultitaskBatchConfig { nil_weight: 0.0, ..config }, "`batch.nil_weight`"),
        (MultitaskBatchConfig { nil_weight: -0.5, ..config }, "`batch.nil_weight`"),
        (MultitaskBatchConfig { nil_weight: 1.5, ..config }, "`batch.nil_weight`"),
        (MultitaskBatchConfig { nil_weight: f32::NAN, ..config }, "`batch.nil_weight`"),
    ] {
        let error = config.check().unwrap_err();
        assert!(error.to_string().contains(key) && error.hint().is_some(), "{error}");
    }
}

#[test]
fn a_crf_learns_nothing_from_sentences_with_an_unknown_label() {
    let values = |n: usize, step: usize| (0..n).map(|at| ((at * step) % 7) as f32 * 0.2).collect::<Vec<f32>>();
    let (scores, transitions) = (Matrix::new(4, 3, values(12, 3)), Matrix::new(5, 3, values(15, 5)));
    let known = [Some(1), Some(0)];
    let (loss, of_scores, of_transitions) =
        sequence_loss(&scores, &transitions, &[known[0], known[1], None, Some(2)], &[2, 0, 2]);
    let first = Matrix::new(2, 3, scores.values[..6].to_vec());
    let (expected, of_first, of_its_transitions) = sequence_loss(&first, &transitions, &known, &[2]);
    assert!((loss - expected).abs() < 1e-9);
    assert_eq!((&of_scores[..6], &of_scores[6..]), (of_first.as_slice(), [0.0; 6].as_slice()));
    assert_eq!(of_transitions, of_its_transitions);
    let (loss, of_scores, of_transitions) = sequence_loss(&first, &transitions, &[None, None], &[2]);
    assert!(loss == 0.0 && of_scores.iter().chain(&of_transitions).all(|slope| *slope == 0.0));
}
