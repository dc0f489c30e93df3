//! Evaluates a dual encoder on held-out documents and selects its settings.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::bundle::dual_encoder::DualBundle;
use crate::models::fusion::Evidence;
use crate::models::fusion::Fusion;
use crate::system::consistency::one_sense_per_discourse;
use crate::system::dual_encoder::{DualConfig, DualLinker};
use crate::system::hybrid::{self, LabelledQuery};
use crate::tensor::matrix::Matrix;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::eval::bootstrap::{BootstrapConfig, SplitMix64};
use canonym_core::eval::matching::Counts;
use canonym_core::eval::matching::{Measure, Score};
use canonym_core::eval::ranking::Ranks;
use canonym_core::eval::report::{EvalConfig, Report as EvalReport};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::{Link, LinkInput, Linker};
use canonym_core::text::analysis::Analysis;
use canonym_core::text::{Mention, Span};
use serde::Serialize;

use super::Report;
use super::data::{Labels, concepts_of, ids_of};
use super::joint::{DetectedSpan, JointReport, compared, evaluate_joint, gold_of, matched};
use crate::system::detect_then_link::DetectThenLink;
use crate::system::dual_encoder::model::{DualModel, name_evidence};
use crate::system::linked::{MentionSource, System, SystemConfig};
use crate::system::{LinkingModel, Models, Target};
use canonym_core::link::recognise::{Nested, RecogniseConfig};

/// Candidate values of the minimum span probability.
pub const SPAN_THRESHOLDS: [f32; 19] =
    [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// Candidate values of the dense weight; the lexical weight is 1.
const DENSE_WEIGHTS: [f32; 13] = [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0];

/// Weight under conditional independence of name and context.
const DEFAULT_DENSE_WEIGHT: f32 = 1.0;

/// Candidate values of the one-sense-per-discourse weight.
const ONE_SENSE_WEIGHTS: [f32; 4] = [0.0, 0.25, 0.5, 1.0];

/// Strict scores: span and concept have to be correct.
#[derive(Debug, Serialize)]
pub struct SearchReport {
    pub min_span: f32,
    pub spans_f1: f64,
    pub precision: f64,
    pub recall: f64,
    pub f1: f64,
    /// F1 when gold mention boundaries leak into the tokenisation, as published.
    pub leaky_f1: f64,
    /// F1 by minimum span probability.
    pub by_min_span: Vec<(f32, f64)>,
    pub joint: JointReport,
}

/// What settings are selected on.
pub struct Tuning<'a> {
    /// Held-out documents.
    pub documents: &'a [AnnotatedDocument],
    /// Concept numbers by bare id.
    pub labels: &'a Labels,
    /// Whether lexical and dense scores are combined.
    pub lexical_fusion: bool,
    /// Mention detector for a model that detects none.
    pub detector: Option<&'a dyn LinkingModel>,
}

/// Selects dense weight, calibration and minimum span probability on held-out documents, and fills in the report.
pub fn evaluate(
    bundle: &mut DualBundle,
    kb: &Arc<KnowledgeBase>,
    vectors: &Matrix,
    tuning: &Tuning<'_>,
    report: &mut Report,
) -> canonym_core::Result<()> {
    let Tuning { documents, labels, lexical_fusion, detector } = *tuning;
    let config = DualConfig { link: LinkConfig::default(), min_span: None, nested: true };
    let evidence_of_names = name_evidence(kb, bundle, None)?;
    let linker = |bundle: &DualBundle| -> canonym_core::Result<DualLinker> {
        Ok(DualLinker::new(kb.clone(), bundle, vectors.clone(), config, None)?
            .with_name_evidence(evidence_of_names.clone()))
    };
    let texts = Analysis::all(documents.iter().map(|document| &document.document));
    let has_concept = |annotation: &&Annotation| !ids_of(annotation).is_empty();
    let gold: Vec<Vec<&Annotation>> =
        documents.iter().map(|document| document.annotations.iter().filter(has_concept).collect()).collect();
    let mention = |annotation: &&Annotation| annotation.mention();
    let mentions: Vec<Vec<Mention>> = gold.iter().map(|gold| gold.iter().map(mention).collect()).collect();
    let marked = LinkInput::all(&texts, &mentions);
    let concepts = |annotation: &&Annotation| concepts_of(annotation, labels);
    let right: Vec<Vec<u32>> = gold.iter().flatten().map(concepts).collect();
    let labelled = |evidence: &[Vec<Vec<Evidence>>]| -> Vec<LabelledQuery> {
        let each = evidence.iter().flatten().zip(&right);
        let label = |(evidence, right): (&Vec<Evidence>, &Vec<u32>)| {
            evidence.iter().map(|one| (*one, right.contains(&one.scored.concept.0))).collect()
        };
        each.map(label).collect()
    };
    let dense_evidence = linker(bundle)?.evidence(&marked)?;
    let dense_fusion = hybrid::calibrated(&labelled(&dense_evidence), Fusion::DENSE);
    bundle.manifest.fusion = Fusion { lexical: 1.0, ..Fusion::DENSE };
    let hybrid_evidence = linker(bundle)?.evidence(&marked)?;
    let candidates = labelled(&hybrid_evidence);
    report.by_weight = DENSE_WEIGHTS.into_iter().zip(hybrid::accuracies(&candidates, &DENSE_WEIGHTS)).collect();
    let mut fusion = hybrid::fit_fusion(&candidates, &DENSE_WEIGHTS, DEFAULT_DENSE_WEIGHT);
    let accuracy = |fusion: &Fusion| hybrid::accuracy(&candidates, fusion);
    report.fused = BTreeMap::from([
        ("lexical", accuracy(&Fusion::LEXICAL)),
        ("dense", accuracy(&Fusion::DENSE)),
        ("hybrid", accuracy(&fusion)),
    ]);
    if evidence_of_names.names.is_some() {
        (fusion, report.by_name_weight) = hybrid::fit_name_weight(&candidates, fusion);
        report.fused.insert("names", accuracy(&Fusion { lexical: 0.0, name: 1.0, ..Fusion::LEXICAL }));
        report.fused.insert("all", accuracy(&fusion));
    }
    let fusion = hybrid::calibrated(&candidates, fusion);
    let (evidence, fusion) = if lexical_fusion { (hybrid_evidence, fusion) } else { (dense_evidence, dense_fusion) };
    for one_sense_weight in ONE_SENSE_WEIGHTS {
        let mut voted = evidence.clone();
        for (mentions, marked) in voted.iter_mut().zip(&marked) {
            let words: Vec<String> =
                marked.mentions.iter().map(|mention| mention.surface(marked.document.text)).collect();
            one_sense_per_discourse(&words, mentions, one_sense_weight);
        }
        report.by_one_sense_weight.push((one_sense_weight, hybrid::accuracy(&labelled(&voted), &fusion)));
    }
    bundle.manifest.fusion = fusion;
    if !evidence_of_names.prior.is_empty() {
        let links = linker(bundle)?.link(&marked)?;
        let rank = |(link, right): (&Link, &Vec<u32>)| {
            link.candidates.iter().position(|candidate| right.contains(&candidate.concept.0))
        };
        let ranks: Vec<Option<usize>> = links.iter().flatten().zip(&right).map(rank).collect();
        report.fused.insert("mention_prior", Ranks::of(&ranks).accuracy_at(1));
    }
    if bundle.manifest.model.search.is_some() {
        report.search = Some(search(bundle, &linker(bundle)?, &texts, documents, labels)?);
    } else if let Some(detector) = detector {
        let (on, config) =
            (Target::new(kb, None), RecogniseConfig { top_k: 1, nested: Nested::None, ..RecogniseConfig::default() });
        let (found, links) =
            DetectThenLink::new(&on, detector, Box::new(linker(bundle)?), None, config)?.link(&texts)?;
        let gold = gold_of(documents, labels);
        let joint = evaluate_joint(&compared(&found, &links, &gold), &gold);
        bundle.manifest.joint = Some(joint.weights);
        report.search_by_default_model = Some(joint);
    }
    Ok(())
}

/// Scores on documents that nothing was selected on, as computed by `canonym eval`.
#[derive(Debug, Serialize)]
pub struct Measured {
    pub n_documents: usize,
    /// Accuracy@1 on given linked mentions.
    pub accuracy: f64,
    /// Strict scores of detected mentions; `None` if detection is not evaluated.
    pub found: Option<Score>,
}

/// Links documents with the settings of the model and evaluates the result.
pub fn measure(
    bundle: &DualBundle,
    kb: &Arc<KnowledgeBase>,
    documents: &[AnnotatedDocument],
    detector: Option<Arc<dyn LinkingModel>>,
) -> canonym_core::Result<Measured> {
    let finds = bundle.manifest.model.search.is_some() || detector.is_some();
    let models = Models::of(DualModel::new(Arc::new(bundle.clone())).with_detector(detector));
    let evaluated = |mentions: MentionSource| -> canonym_core::Result<EvalReport> {
        let config = SystemConfig { mentions, top_k: 1, ..SystemConfig::default() };
        let linked = System::new(kb, models.clone(), &config)?.link(documents.to_vec())?;
        let bootstrap = BootstrapConfig { n_resamples: 0, ..BootstrapConfig::default() };
        let config = EvalConfig { bootstrap, ..EvalConfig::default() };
        canonym_core::eval::report::evaluate(documents, &linked, &config, &mut SplitMix64::new(0))
    };
    let given = evaluated(MentionSource::Given)?;
    let accuracy = given.ranking.and_then(|ranking| ranking.all.accuracy.get(&1).copied()).unwrap_or_default();
    let found = finds.then(|| evaluated(MentionSource::Detect)).transpose()?;
    let found = found.and_then(|report| report.metrics.get(&Measure::Strict).copied());
    Ok(Measured { n_documents: documents.len(), accuracy, found })
}

/// Detects and links mentions for each minimum span probability, and keeps the best.
fn search(
    bundle: &mut DualBundle,
    linker: &DualLinker,
    texts: &[Analysis<'_>],
    documents: &[AnnotatedDocument],
    labels: &Labels,
) -> canonym_core::Result<SearchReport> {
    let gold = gold_of(documents, labels);
    let linked = |borders: &[Vec<Span>]| -> canonym_core::Result<Vec<Vec<DetectedSpan>>> {
        let found = linker.find(texts, borders, SPAN_THRESHOLDS[0])?;
        let mention = |(span, p_mention): &(Span, f32)| Mention { p_mention: *p_mention, ..Mention::contiguous(*span) };
        let mentions: Vec<Vec<Mention>> = found.iter().map(|found| found.iter().map(mention).collect()).collect();
        let links = canonym_core::link::Linker::link(linker, &LinkInput::all(texts, &mentions))?;
        Ok(compared(&mentions, &links, &gold))
    };
    // Counts of links and mentions by minimum span probability.
    let by_span = |all: &[Vec<DetectedSpan>]| -> Vec<(f32, Counts, Counts)> {
        let of = |threshold: f32| {
            let likely = all.iter().map(|found| found.iter().filter(|one| one.of_span >= threshold).collect());
            let counts = |measure| matched(measure, likely.clone(), gold.iter());
            (threshold, counts(Measure::Strict), counts(Measure::MentionRecognition))
        };
        SPAN_THRESHOLDS.into_iter().map(of).collect()
    };
    let f1 = |(_, links, _): &(f32, Counts, Counts)| links.score().f1;
    let all = linked(&[])?;
    let rows = by_span(&all);
    let best = rows.iter().max_by(|left, right| f1(left).total_cmp(&f1(right)));
    let (min_span, links, mentions) = *best.expect("some were tried");
    let score = links.score();
    bundle.manifest.min_span = min_span;
    let borders: Vec<Vec<Span>> =
        documents.iter().map(|document| document.annotations.iter().map(Annotation::hull).collect()).collect();
    let leaky = by_span(&linked(&borders)?);
    let joint = evaluate_joint(&all, &gold);
    // The joint model is kept only if it also helps under cross-validation.
    bundle.manifest.joint = Some(joint.weights).filter(|_| joint.f1_by_halves >= score.f1);
    Ok(SearchReport {
        min_span,
        spans_f1: mentions.score().f1,
        precision: score.precision,
        recall: score.recall,
        f1: score.f1,
        leaky_f1: leaky.iter().map(f1).fold(0.0, f64::max),
        by_min_span: rows.iter().map(|row| (row.0, f1(row))).collect(),
        joint,
    })
}
