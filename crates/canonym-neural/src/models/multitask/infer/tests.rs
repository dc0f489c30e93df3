use canonym_core::text::analysis::Analysis;

use super::*;
use crate::layers::crf::bilou::{BEGIN, INSIDE, LAST, N_LABELS, OUTSIDE, UNIT};
use crate::models::multitask::LinkedSpans;
use crate::models::multitask::tests::{Drawn, drawn_tagger, drawn_tagger_with};
use crate::models::multitask::tokenized::words_of_sentences;

const TEXT: &str = "We saw a fever. The gout saw. A rash, the fever gout. We saw the rash fever.";

fn tagger(drawn: &Drawn) -> MultitaskTagger {
    MultitaskTagger::new(&drawn.model, &drawn.parameters, 3, drawn.splitter.clone()).unwrap()
}

fn close(found: &Matrix, expected: &Matrix) {
    assert_eq!((found.n_rows, found.n_cols), (expected.n_rows, expected.n_cols));
    for (found, expected) in found.values.iter().zip(&expected.values) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
}

#[test]
fn scores_are_those_of_the_training_graph() {
    let changes: [fn(&mut MultitaskConfig); 4] =
        [|_| {}, |model| model.lstm = None, |model| model.hidden_layer = true, |model| model.type_tags = true];
    for framing in [Framing::Token, Framing::Entity] {
        for change in changes {
            let drawn = drawn_tagger_with(framing, false, change);
            let (tagger, model) = (tagger(&drawn), &drawn.model);
            let text = drawn.splitter.read(&Analysis::of_text(TEXT), &[]);
            // Two mentions in the first window, one in the third.
            let spans = [vec![(3, 3), (1, 2)], vec![], vec![(9, 10)], vec![]];
            assert_eq!(text.windows.len(), spans.len());
            let each = text.windows.iter().zip(&spans).map(|(window, spans)| (&text, window, spans.as_slice()));
            let windows = drawn.splitter.pack(each);
            let mut trained = Tape::new(&drawn.parameters);
            let encoded = model.encode(&mut trained, &windows, None).unwrap();
            let rows = model.task_rows(&mut trained, encoded, &windows.segments, &model.tasks, None).unwrap();
            let encoded = tagger.encoder.encode(&windows.sequences).unwrap();
            let targets: Vec<f32> =
                windows.targets.iter().flat_map(|row| encoded.row(*row as usize)).copied().collect();
            let targets = Matrix::new(windows.targets.len(), encoded.n_cols, targets);
            let mut inferred = Tape::of_one_thread(&tagger.heads, &tagger.packs);
            let encoded = inferred.input(targets);
            let own = model.task_rows(&mut inferred, encoded, &windows.segments, &model.tasks, None).unwrap();
            for task in Task::ALL {
                let units = model.units(&mut trained, rows[&task], &windows, task);
                let expected = model.head(&mut trained, task, units, None).unwrap();
                let found = if framing == Framing::Entity && task != Task::Mentions {
                    let given = spans.concat();
                    let mut document = LabelledParts::new(model, &text, Some(&given));
                    let part = Part::new(&text, 0..text.windows.len());
                    let ended = document.ended_spans(&part);
                    let pooled = document.pooled(task, inferred.value(own[&task]), &part, &ended);
                    let pooled = inferred.input(pooled);
                    let head = model.head(&mut inferred, task, pooled, None).unwrap();
                    inferred.value(head).clone()
                } else {
                    tagger.scores(&mut inferred, task, own[&task], &windows).unwrap()
                };
                close(&found, trained.value(expected));
            }
        }
    }
}

#[test]
fn texts_together_are_labelled_like_each_alone() {
    for (framing, crf) in [(Framing::Token, false), (Framing::Token, true), (Framing::Entity, true)] {
        let drawn = drawn_tagger(framing, crf);
        let tagger = tagger(&drawn);
        let texts: Vec<TokenizedText> = ["", TEXT, " ", "gout", "。热", ""]
            .iter()
            .map(|text| drawn.splitter.read(&Analysis::of_text(text), &[]))
            .collect();
        let together = tagger.label(&texts, None).unwrap();
        for (text, found) in texts.iter().zip(&together) {
            let alone = tagger.label(std::slice::from_ref(text), None).unwrap();
            assert_eq!(format!("{found:?}"), format!("{:?}", alone[0]));
        }
        assert_eq!(format!("{:?}", together[0]), format!("{:?}", Labelled::default()));
        assert!(tagger.label(&[], None).unwrap().is_empty());
    }
}

#[test]
fn probabilities_of_mentions_are_those_of_their_labels() {
    let drawn = drawn_tagger_with(Framing::Token, true, |model| {
        model.lenient = true;
        model.tasks = vec![Task::Mentions, Task::Types];
    });
    let tagger = tagger(&drawn);
    let text = drawn.splitter.read(&Analysis::of_text(TEXT), &[]);
    let labelled = tagger.label(std::slice::from_ref(&text), None).unwrap().remove(0);
    assert!(labelled.labels[&Task::Mentions].iter().any(|label| *label != OUTSIDE));
    assert!(!labelled.mention_spans.is_empty() && !labelled.type_spans.is_empty());
    for found in labelled.mention_spans.iter().chain(&labelled.type_spans) {
        assert!(found.p_mention > 0.0 && found.p_mention < 1.0, "{found:?}");
    }
    // Marginals of a CRF, not a softmax over the scores of a word.
    let scores = Matrix::new(4, N_LABELS, (0..4 * N_LABELS).map(|at| (at % 7) as f32 * 0.3).collect());
    let mut parameters = drawn.parameters.clone();
    let row = parameters.find("mentions.transitions").unwrap();
    parameters.at_mut(row).row_mut(OUTSIDE)[UNIT] = 2.0;
    let tagger = MultitaskTagger::new(&drawn.model, &parameters, 3, drawn.splitter.clone()).unwrap();
    let found = tagger.probabilities(Task::Mentions, scores.clone(), &[1, 3]).unwrap();
    let crf = Crf::new(tagger.transitions(Task::Mentions).unwrap());
    let of_windows = [crf.marginals(&scores.values[..N_LABELS]), crf.marginals(&scores.values[N_LABELS..])].concat();
    assert_eq!(found.values, of_windows);
    let mut of_words = scores.clone();
    of_words.values.chunks_exact_mut(N_LABELS).for_each(softmax);
    assert_ne!(found.values, of_words.values);
}

#[test]
fn a_span_of_a_model_without_detection_is_a_mention() {
    let drawn = drawn_tagger_with(Framing::Entity, false, |model| model.tasks = vec![Task::Types, Task::Concepts]);
    let text = drawn.splitter.read(&Analysis::of_text(TEXT), &[]);
    let given = [vec![(3, 3), (2, 6)]];
    let labelled = tagger(&drawn).label(std::slice::from_ref(&text), Some(&given)).unwrap().remove(0);
    assert_eq!(labelled.type_spans.iter().map(|found| found.p_mention).collect::<Vec<_>>(), [1.0, 1.0]);
    assert_eq!(labelled.concept_spans.len(), 2);
    assert!(labelled.concept_spans.iter().all(|span| span.p_mention == 1.0 && span.classes.len() == 3));
}

#[test]
fn a_crf_decodes_the_parts_of_a_sentence_that_was_cut_together() {
    let mut drawn = drawn_tagger_with(Framing::Token, true, |model| {
        model.tasks = vec![Task::Mentions];
        model.max_wordpieces = 16;
    });
    drawn.splitter =
        crate::models::multitask::tokenized::Splitter::new(drawn.splitter.tokenizer().clone(), 16).unwrap();
    // Nothing is ever open at the end of a sentence.
    let row = drawn.parameters.find("mentions.transitions").unwrap();
    let transitions = drawn.parameters.at_mut(row);
    [BEGIN, INSIDE].into_iter().for_each(|label| transitions.row_mut(N_LABELS + 1)[label] = -50.0);
    let tagger = tagger(&drawn);
    let text = drawn.splitter.read(&Analysis::of_text(&"we saw a fever gout rash ".repeat(4)), &[]);
    let cut = text.windows[0].words.end;
    assert!(text.n_cut() == 1 && text.windows.len() == 2 && words_of_sentences(&text.windows) == [24]);
    // The scores of a mention of the two words around the cut.
    let mut scores = Matrix::zeros(24, N_LABELS);
    (0..24).for_each(|word| scores.row_mut(word)[OUTSIDE] = 5.0);
    scores.row_mut(cut - 1)[BEGIN] = 10.0;
    scores.row_mut(cut)[LAST] = 10.0;
    let labels = tagger.labels(Task::Mentions, &scores, &words_of_sentences(&text.windows)).unwrap();
    assert_eq!((labels[cut - 1], labels[cut]), (BEGIN, LAST));
    let probabilities = tagger.probabilities(Task::Mentions, scores, &words_of_sentences(&text.windows)).unwrap();
    assert!(probabilities.row(cut - 1)[BEGIN] > 0.9, "{:?}", probabilities.row(cut - 1));
}

#[test]
fn the_spans_of_the_mention_task_are_linked_if_the_model_says_so() {
    let drawn = |linked_spans| {
        let mut drawn = drawn_tagger_with(Framing::Token, false, |model| {
            model.lenient = true;
            model.linked_spans = linked_spans;
        });
        let row = drawn.parameters.find("mentions.bias").unwrap();
        drawn.parameters.at_mut(row).values[OUTSIDE] = -1.0;
        drawn
    };
    let label = |linked_spans, given: Option<&[Vec<(usize, usize)>]>| {
        let drawn = drawn(linked_spans);
        let text = drawn.splitter.read(&Analysis::of_text(TEXT), &[]);
        tagger(&drawn).label(std::slice::from_ref(&text), given).unwrap().remove(0)
    };
    let (runs, found) = (label(LinkedSpans::Runs, None), label(LinkedSpans::Mentions, None));
    assert_eq!(runs.mention_spans, found.mention_spans);
    assert!(!found.mention_spans.is_empty());
    let places = |labelled: &Labelled| {
        labelled.concept_spans.iter().map(|span| (span.first, span.last)).collect::<Vec<(usize, usize)>>()
    };
    let mentions: Vec<(usize, usize)> =
        found.mention_spans.iter().map(|found| (found.span.first, found.span.last)).collect();
    assert_eq!(places(&found), mentions);
    // The same concepts as those of given spans, with the probability of the mention by the mention task.
    let given = label(LinkedSpans::Runs, Some(&[mentions]));
    for ((span, expected), mention) in found.concept_spans.iter().zip(&given.concept_spans).zip(&found.mention_spans) {
        assert_eq!(span.p_mention, mention.p_mention);
        for (own, other) in span.classes.iter().zip(&expected.classes) {
            assert!(own.0 == other.0 && (own.1 - other.1 * expected.p_mention).abs() < 1e-5);
        }
    }
    // Given spans are linked as before.
    let some = [vec![(3, 3), (2, 6)]];
    assert_eq!(
        label(LinkedSpans::Mentions, Some(&some)).concept_spans,
        label(LinkedSpans::Runs, Some(&some)).concept_spans
    );
    let entity = |model: &mut MultitaskConfig| model.framing = Framing::Entity;
    let concepts_alone = |model: &mut MultitaskConfig| model.tasks = vec![Task::Concepts];
    for change in [entity as fn(&mut MultitaskConfig), concepts_alone] {
        let Drawn { mut model, parameters, .. } = drawn(LinkedSpans::Mentions);
        change(&mut model);
        let error = model.check(&parameters, 3).unwrap_err();
        assert!(error.to_string().contains("linked_spans") && error.hint().is_some(), "{error}");
    }
}

#[test]
fn as_many_concepts_are_kept_as_are_asked_for() {
    let drawn = drawn_tagger(Framing::Token, false);
    let mut tagger = tagger(&drawn);
    let text = drawn.splitter.read(&Analysis::of_text(TEXT), &[]);
    let n = |tagger: &MultitaskTagger| {
        let labelled = tagger.label(std::slice::from_ref(&text), Some(&[vec![(3, 3)]])).unwrap().remove(0);
        labelled.concept_spans[0].classes.len()
    };
    tagger.n_kept = 1;
    assert_eq!(n(&tagger), 1);
    let tagger = tagger.keeping(2);
    assert_eq!((n(&tagger), tagger.keeping(1).n_kept), (2, 2));
}

/// Checks that two outputs are the same. Products of other numbers of rows differ in their last bit.
fn same(found: &Labelled, expected: &Labelled) {
    assert_eq!(found.labels, expected.labels);
    let is_close = |one: f32, other: f32| assert!((one - other).abs() < 1e-5, "{one} {other}");
    for (found, expected) in
        [(&found.mention_spans, &expected.mention_spans), (&found.type_spans, &expected.type_spans)]
    {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.span, expected.span);
            is_close(found.p_mention, expected.p_mention);
        }
    }
    assert_eq!(found.concept_spans.len(), expected.concept_spans.len());
    for (found, expected) in found.concept_spans.iter().zip(&expected.concept_spans) {
        assert_eq!((found.first, found.last), (expected.first, expected.last));
        is_close(found.p_mention, expected.p_mention);
        let by_class = |span: &LinkedSpan| span.classes.iter().copied().collect::<BTreeMap<usize, f32>>();
        let (found, expected) = (by_class(found), by_class(expected));
        assert!(found.keys().eq(expected.keys()));
        found.values().zip(expected.values()).for_each(|(one, other)| is_close(*one, *other));
    }
}

#[test]
fn a_document_in_parts_is_labelled_as_in_one() {
    let changes: [fn(&mut MultitaskConfig); 5] = [
        |_| {},
        |model| model.lenient = true,
        |model| model.type_tags = true,
        |model| model.linked_spans = LinkedSpans::Mentions,
        |model| model.tasks = vec![Task::Types, Task::Concepts],
    ];
    for (framing, crf) in
        [(Framing::Token, false), (Framing::Token, true), (Framing::Entity, false), (Framing::Entity, true)]
    {
        for change in changes {
            let mut drawn = drawn_tagger_with(framing, crf, |model| {
                change(model);
                model.linked_spans = if framing == Framing::Entity { LinkedSpans::Runs } else { model.linked_spans };
            });
            // Few words are outside of mentions, so that mentions cross from one sentence into the next.
            if let Ok(row) = drawn.parameters.find("mentions.bias") {
                drawn.parameters.at_mut(row).values[OUTSIDE] = -0.5;
            }
            let tagger = tagger(&drawn);
            let texts =
                [format!("{TEXT} ").repeat(6), String::new(), "We saw gout. ".repeat(9), "fever gout ".repeat(3)];
            let texts: Vec<TokenizedText> =
                texts.iter().map(|text| drawn.splitter.read(&Analysis::of_text(text), &[])).collect();
            // Nested, out of order, across some sentences, and over the whole document.
            let long = texts[0].words.len() - 1;
            let given = [vec![(9, 40), (0, 0), (9, 11), (0, long), (30, 30), (9, 40)], vec![], vec![(2, 5)], vec![]];
            for given in [None, Some(given.as_slice())] {
                let whole = tagger.label_in_parts(&texts, given, usize::MAX).unwrap();
                for max_wordpieces in [1, 24, 40, 70, 200] {
                    // A CRF decodes whole sentences.
                    let parts = tagger.label_in_parts(&texts, given, max_wordpieces).unwrap();
                    parts.iter().zip(&whole).for_each(|(parts, whole)| same(parts, whole));
                    assert_eq!(parts.len(), texts.len());
                }
                if let Some(given) = given {
                    assert_eq!(whole[0].concept_spans.len(), given[0].len());
                }
            }
        }
    }
}

#[test]
fn a_found_mention_crosses_parts() {
    for framing in [Framing::Token, Framing::Entity] {
        let mut drawn = drawn_tagger_with(framing, false, |model| {
            model.lenient = true;
            model.linked_spans = if framing == Framing::Token { LinkedSpans::Mentions } else { LinkedSpans::Runs };
        });
        // Each word continues a mention, so all of them are one.
        let row = drawn.parameters.find("mentions.bias").unwrap();
        drawn.parameters.at_mut(row).values[INSIDE] = 50.0;
        let tagger = tagger(&drawn);
        let text = drawn.splitter.read(&Analysis::of_text(TEXT), &[]);
        assert!(text.parts(24).len() > 2);
        let parts = tagger.label_in_parts(std::slice::from_ref(&text), None, 24).unwrap().remove(0);
        assert_eq!((parts.mention_spans.len(), parts.concept_spans.len()), (1, 1));
        assert_eq!((parts.concept_spans[0].first, parts.concept_spans[0].last), (0, text.words.len() - 1));
        let whole = tagger.label(std::slice::from_ref(&text), None).unwrap().remove(0);
        same(&parts, &whole);
    }
}
