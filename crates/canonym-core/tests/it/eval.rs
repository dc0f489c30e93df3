//! Evaluation from the outside: laws of the measures, the report, and real corpora.

use std::collections::BTreeMap;
use std::path::PathBuf;

use canonym_core::corpus::{AnnotatedDocument, Annotation, CandidateRecord, CorpusFormat, Reader};
use canonym_core::eval::bootstrap::{BootstrapConfig, SplitMix64};
use canonym_core::eval::ids::{IdPolicy, known_ids};
use canonym_core::eval::matching::{MatchConfig, Measure, Score};
use canonym_core::eval::queries::{Answer, Answers, read_queries, to_mentions};
use canonym_core::eval::ranking::{Composite, RankUnit};
use canonym_core::eval::report::{EvalConfig, Report, evaluate, evaluate_ranking};
use canonym_core::input::Input;
use canonym_core::text::{Document, Span};
use expect_test::expect;
use proptest::prelude::*;

const TEXT: &str = "β-cell loss and ataxia in two made-up cases";

/// Code points of a text as bytes.
fn span(text: &str, start: usize, end: usize) -> Span {
    let byte = |point: usize| text.char_indices().nth(point).map_or(text.len(), |(byte, _)| byte);
    Span::new(byte(start), byte(end))
}

fn annotation(spans: &[(usize, usize)], ids: &str, kind: &str) -> Annotation {
    Annotation {
        spans: spans.iter().map(|&(start, end)| span(TEXT, start, end)).collect(),
        ids: vec![ids.to_owned()],
        semantic_type: kind.to_owned(),
        ..Annotation::default()
    }
}

fn document(id: &str, annotations: Vec<Annotation>) -> AnnotatedDocument {
    let document = Document { id: id.into(), text: TEXT.into(), sections: Vec::new() };
    AnnotatedDocument { document, annotations, ..AnnotatedDocument::default() }
}

fn config(ids: IdPolicy, n_resamples: usize) -> EvalConfig {
    EvalConfig {
        matching: MatchConfig { ids, resolve_overlaps: false },
        by_type: true,
        bootstrap: BootstrapConfig { n_resamples, ..BootstrapConfig::default() },
        ..EvalConfig::default()
    }
}

fn judged(gold: &[AnnotatedDocument], predicted: &[AnnotatedDocument], ids: IdPolicy) -> Report {
    evaluate(gold, predicted, &config(ids, 0), &mut SplitMix64::new(13)).expect("documents pair")
}

fn any_annotation() -> impl Strategy<Value = Annotation> {
    let ids = prop::sample::select(vec!["D1", "D2", "D3", "MESH:D1|D2", "D2+D3", "-1", ""]);
    let kinds = prop::sample::select(vec!["Disease", "Chemical", "", "T1,T2"]);
    (prop::collection::vec((0usize..12, 1usize..6), 1..3), ids, kinds).prop_map(|(ranges, ids, kind)| {
        let spans: Vec<(usize, usize)> = ranges.into_iter().map(|(start, len)| (start, start + len)).collect();
        annotation(&spans, ids, kind)
    })
}

fn any_documents() -> impl Strategy<Value = Vec<AnnotatedDocument>> {
    prop::collection::vec(prop::collection::vec(any_annotation(), 0..7), 3)
        .prop_map(|lists| lists.into_iter().enumerate().map(|(row, list)| document(&row.to_string(), list)).collect())
}

/// The same documents and annotations in another order.
fn shuffled(documents: Vec<AnnotatedDocument>) -> impl Strategy<Value = Vec<AnnotatedDocument>> {
    let lists: Vec<_> = documents
        .into_iter()
        .map(|mut read| {
            let annotations = std::mem::take(&mut read.annotations);
            Just(annotations)
                .prop_shuffle()
                .prop_map(move |annotations| AnnotatedDocument { annotations, ..read.clone() })
        })
        .collect();
    lists.prop_flat_map(|documents| Just(documents).prop_shuffle())
}

fn any_policy() -> impl Strategy<Value = IdPolicy> {
    prop::sample::select(vec![IdPolicy::Any, IdPolicy::First, IdPolicy::Exact])
}

fn same(left: &BTreeMap<Measure, Score>, right: &BTreeMap<Measure, Score>) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
    left.len() == right.len()
        && left.iter().all(|(measure, a)| {
            let b = right[measure];
            near(a.precision, b.precision) && near(a.recall, b.recall) && near(a.f1, b.f1)
        })
}

proptest! {
    #[test]
    fn order_does_not_matter(
        (gold, other_gold, predicted, other_predicted) in (any_documents(), any_documents()).prop_flat_map(
            |(gold, predicted)| (Just(gold.clone()), shuffled(gold), Just(predicted.clone()), shuffled(predicted))
        ),
        ids in any_policy(),
    ) {
        let left = judged(&gold, &predicted, ids);
        let right = judged(&other_gold, &other_predicted, ids);
        prop_assert!(same(&left.metrics, &right.metrics), "{:?}\n{:?}", left.metrics, right.metrics);
        for (kind, slice) in &left.by_type {
            let other = &right.by_type[kind];
            // Which of two equally near types an untyped prediction takes may depend on order.
            let untyped = |documents: &[AnnotatedDocument]| {
                documents.iter().flat_map(|read| &read.annotations).any(|made| made.semantic_type.is_empty())
            };
            prop_assert!(untyped(&predicted) || same(&slice.metrics, &other.metrics), "{kind}");
        }
    }

    #[test]
    fn swapping_both_sides_swaps_precision_and_recall(
        gold in any_documents(),
        predicted in any_documents(),
        ids in prop::sample::select(vec![IdPolicy::Any, IdPolicy::Exact]),
    ) {
        let forth = judged(&gold, &predicted, ids).metrics;
        let back = judged(&predicted, &gold, ids).metrics;
        for measure in [
            Measure::Strict,
            Measure::MentionRecognition,
            Measure::PartialBinary,
            Measure::PartialOneToOne,
            Measure::PartialMaxMax,
            Measure::Weak,
        ] {
            let (forth, back) = (forth[&measure], back[&measure]);
            prop_assert_eq!((forth.precision, forth.recall), (back.recall, back.precision));
        }
    }

    #[test]
    fn perfect_predictions_score_one(gold in any_documents(), ids in any_policy()) {
        let report = judged(&gold, &gold, ids);
        for (measure, counts) in &report.counts {
            if counts.n_gold > 0 && *measure != Measure::Strict {
                prop_assert_eq!(counts.score().recall, 1.0, "{}", measure.name());
            }
        }
        // Under `first`, gold annotations of one first id are one, while the predictions stay apart.
        let strict = report.counts[&Measure::Strict];
        if strict.n_gold > 0 {
            prop_assert_eq!(strict.score().recall, 1.0);
            prop_assert!(ids == IdPolicy::First || strict.score().f1 == 1.0);
        }
    }

    #[test]
    fn stricter_measures_find_less(gold in any_documents(), predicted in any_documents(), ids in any_policy()) {
        let counts = judged(&gold, &predicted, ids).counts;
        let [strict, one, binary] =
            [Measure::Strict, Measure::PartialOneToOne, Measure::PartialBinary].map(|measure| counts[&measure]);
        prop_assert!(strict.tp_pred <= one.tp_pred);
        prop_assert!(one.tp_pred <= binary.tp_pred && one.tp_gold <= binary.tp_gold);
        prop_assert_eq!(binary, counts[&Measure::Weak]);
        for (measure, counts) in counts {
            let score = counts.score();
            prop_assert!((0.0..=1.0).contains(&score.f1), "{}", measure.name());
            prop_assert!(counts.tp_pred <= counts.n_pred as f64 && counts.tp_gold <= counts.n_gold as f64);
        }
    }

    #[test]
    fn a_report_survives_json(gold in any_documents(), predicted in any_documents()) {
        let report = evaluate(&gold, &predicted, &config(IdPolicy::Any, 5), &mut SplitMix64::new(1)).expect("documents pair");
        let text = serde_json::to_string(&report).expect("a report is JSON");
        let again: Report = serde_json::from_str(&text).expect("it was just written");
        // The JSON reader may miss the last bit of a number.
        prop_assert!(same(&again.metrics, &report.metrics) && same(&again.macro_metrics, &report.macro_metrics));
        prop_assert_eq!((again.n_gold, again.n_pred, again.policy), (report.n_gold, report.n_pred, report.policy));
        prop_assert_eq!(again.by_type.len(), report.by_type.len());
    }
}

#[test]
fn no_predictions_score_zero() {
    for (gold, predicted) in [
        (vec![], vec![]),
        (vec![document("1", vec![])], vec![]),
        (vec![document("1", vec![])], vec![document("1", vec![])]),
        (vec![document("1", vec![])], vec![document("1", vec![annotation(&[(0, 3)], "D1", "")])]),
        (vec![document("1", vec![annotation(&[(3, 3)], "D1", "")])], vec![document("1", vec![])]),
    ] {
        let mut config = config(IdPolicy::Any, 10);
        config.training_ids = Some(known_ids([]));
        config.kb_ids = Some(known_ids([]));
        let report = evaluate(&gold, &predicted, &config, &mut SplitMix64::new(13)).expect("documents pair");
        assert!(report.metrics.values().all(|score| score.f1 == 0.0));
        assert!(report.table().is_ascii());
    }
    let report = evaluate_ranking(&[], &config(IdPolicy::Any, 10), &mut SplitMix64::new(13));
    assert!(report.table().contains("0 documents"));
}

/// Two documents, one of them without predictions; one link is right, one mention is nil on one side only.
fn small() -> (Vec<AnnotatedDocument>, Vec<AnnotatedDocument>) {
    let candidates = |ids: &[&str]| {
        let record =
            |id: &&str| CandidateRecord { id: (*id).to_owned(), name: String::new(), p_link: 0.5, p_both: None };
        ids.iter().map(record).collect()
    };
    let link = |spans: &[(usize, usize)], ids: &[&str]| Annotation {
        candidates: candidates(ids),
        score: Some(0.5),
        ..annotation(spans, "", "")
    };
    let gold = vec![
        document("1", vec![annotation(&[(0, 6)], "D1|D2", "Cell"), annotation(&[(16, 22)], "D3", "Disease")]),
        document("2", vec![annotation(&[(0, 6)], "-1", "Cell"), annotation(&[(7, 11)], "D4", "Disease")]),
    ];
    let predicted = vec![document("1", vec![link(&[(0, 6)], &["MESH:D2", "D9"]), link(&[(12, 22)], &["D9", "D3"])])];
    (gold, predicted)
}

#[test]
fn the_table_reads_well() {
    let (gold, predicted) = small();
    let mut config = config(IdPolicy::Any, 50);
    config.training_ids = Some(known_ids(["D1"]));
    config.kb_ids = Some(known_ids(["D1", "D3"]));
    config.unit = RankUnit::Entities;
    config.measures = vec![Measure::Strict, Measure::PartialMaxMax];
    let mut report = evaluate(&gold, &predicted, &config, &mut SplitMix64::new(13)).expect("documents pair");
    report.system = "lexical".into();
    expect![[r#"
        lexical
        2 documents, 4 gold (1 without a concept), 2 predicted; ids match by `any`

                                    P       R      F1      95% of F1  macro F1     right/pred     found/gold
        strict                  50.00   33.33   40.00     0.00-50.00     25.00            1/2            1/3
        partial-maxmax          50.00   33.33   40.00     0.00-50.00     25.00            1/2            1/3

        type Cell                   P       R      F1     right/pred     found/gold
        strict                 100.00  100.00  100.00            1/1            1/1
        partial-maxmax         100.00  100.00  100.00            1/1            1/1

        type Disease                P       R      F1     right/pred     found/gold
        strict                   0.00    0.00    0.00            0/1            0/2
        partial-maxmax           0.00    0.00    0.00            0/1            0/2

        zero-shot                   P       R      F1     right/pred     found/gold
        strict                   0.00    0.00    0.00            0/1            0/2
        partial-maxmax           0.00    0.00    0.00            0/1            0/2

        ranking of entities    mentions          acc@1          acc@5         acc@10         acc@20            MRR            MAP
        all                           3          33.33          33.33          33.33          33.33          33.33          16.67
          95%                               0.00-50.00     0.00-50.00     0.00-50.00     0.00-50.00     0.00-50.00     0.00-25.00
        normalised                    1         100.00         100.00         100.00         100.00         100.00          50.00
        linkable                      2          50.00          50.00          50.00          50.00          50.00          25.00
        zero-shot                     2           0.00           0.00           0.00           0.00           0.00           0.00

        the knowledge base (2 ids) covers 66.67% of gold
        mentions without candidates, counted as wrong: 2
        gold documents without predictions: 1
    "#]].assert_eq(&report.table());
}

#[test]
fn the_json_names_its_contents() {
    let (gold, predicted) = small();
    let mut config = config(IdPolicy::Any, 50);
    config.by_type = false;
    config.measures = vec![Measure::Strict];
    let report = evaluate(&gold, &predicted, &config, &mut SplitMix64::new(13)).expect("documents pair");
    expect![[r#"
        {
          "system": "",
          "commit": "",
          "dataset": "",
          "split": "",
          "kb": null,
          "policy": {
            "ids": "any",
            "unit": "names",
            "composite": "all",
            "partial": "characters",
            "bat": false,
            "bootstrap": {
              "n_resamples": 50,
              "level": 0.95
            }
          },
          "n_documents": 2,
          "n_missing_documents": 1,
          "n_different_texts": 0,
          "n_gold": 4,
          "n_gold_nil": 1,
          "n_pred": 2,
          "counts": {
            "strict": {
              "n_gold": 3,
              "n_pred": 2,
              "tp_gold": 1.0,
              "tp_pred": 1.0
            }
          },
          "metrics": {
            "strict": {
              "precision": 0.5,
              "recall": 0.3333333333333333,
              "f1": 0.4
            }
          },
          "macro_metrics": {
            "strict": {
              "precision": 0.25,
              "recall": 0.25,
              "f1": 0.25
            }
          },
          "ci": {
            "strict": {
              "precision": [
                0.0,
                0.5
              ],
              "recall": [
                0.0,
                0.5
              ],
              "f1": [
                0.0,
                0.5
              ]
            }
          },
          "ranking": {
            "n_nil": 1,
            "n_dropped": 0,
            "n_unanswered": 2,
            "kb_coverage": null,
            "all": {
              "n_mentions": 3,
              "accuracy": {
                "1": 0.3333333333333333,
                "5": 0.3333333333333333,
                "10": 0.3333333333333333,
                "20": 0.3333333333333333
              },
              "mrr": 0.3333333333333333,
              "map": 0.16666666666666666,
              "accuracy_ci": {
                "1": [
                  0.0,
                  0.5
                ],
                "5": [
                  0.0,
                  0.5
                ],
                "10": [
                  0.0,
                  0.5
                ],
                "20": [
                  0.0,
                  0.5
                ]
              },
              "mrr_ci": [
                0.0,
                0.5
              ],
              "map_ci": [
                0.0,
                0.25
              ]
            },
            "normalised": {
              "n_mentions": 1,
              "accuracy": {
                "1": 1.0,
                "5": 1.0,
                "10": 1.0,
                "20": 1.0
              },
              "mrr": 1.0,
              "map": 0.5,
              "accuracy_ci": {
                "1": [
                  1.0,
                  1.0
                ],
                "5": [
                  1.0,
                  1.0
                ],
                "10": [
                  1.0,
                  1.0
                ],
                "20": [
                  1.0,
                  1.0
                ]
              },
              "mrr_ci": [
                1.0,
                1.0
              ],
              "map_ci": [
                0.5,
                0.5
              ]
            },
            "linkable": null,
            "zero_shot": null
          },
          "paper_value": null,
          "note": ""
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&report).expect("a report is JSON"));
}

/// The path of real data, or `None` and a message where it is absent.
fn real(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CANONYM_DATA").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} is missing", path.display());
    None
}

#[test]
fn a_real_corpus_agrees_with_itself() {
    let Some(path) = real("bc5cdr/dev.pubtator.txt") else { return };
    let gold: Vec<_> = Reader::open(&path, Some(CorpusFormat::Pubtator))
        .expect("the data can be read")
        .collect::<Result<_, _>>()
        .expect("the data can be read");
    let report = judged(&gold, &gold, IdPolicy::Any);
    assert_eq!((report.n_documents, report.n_gold, report.n_gold_nil), (500, 9591, 59));
    for (measure, score) in &report.metrics {
        assert_eq!((score.precision, score.recall), (1.0, 1.0), "{}", measure.name());
    }
    assert_eq!(report.by_type.keys().collect::<Vec<_>>(), ["Chemical", "Disease"]);
}

#[test]
fn real_queries_are_read_with_their_parts() {
    for (name, n_queries) in [("biosyn-ncbi-disease", 787), ("biosyn-bc5cdr-disease", 4178)] {
        let Some(path) = real(&format!("{name}/dev.concept")) else { continue };
        let queries =
            read_queries(&mut Input::open(&path).expect("the data can be read")).expect("the data can be read");
        assert_eq!(queries.len(), n_queries);
        let answer =
            |(query, candidates): (&String, _)| Answer { query: query.clone(), candidates, ..Answer::default() };
        let asked = queries.iter().flat_map(|query| query.parts.iter().zip(std::iter::repeat(vec![query.ids.clone()])));
        let answers = Answers { path, rows: asked.map(answer).collect() };
        let mentions = to_mentions(&queries, &answers, Composite::All).expect("the data can be read");
        let report = evaluate_ranking(&mentions, &config(IdPolicy::Any, 0), &mut SplitMix64::new(13));
        let ranking = report.ranking.expect("the data can be read");
        assert_eq!((ranking.all.accuracy[&1], ranking.n_nil), (1.0, 0));
    }
}
