//! Adapts the linker of a pipeline: the name encoder learns the names of annotated mentions, and fusion, calibration and evidence weights are
//! fitted to decisions that nothing was trained on.
//!
//! Every part is kept as it was unless the new one is better on such decisions, by two-fold cross-fitting where it is fitted to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::bundle::NameEncoderBundle;
use crate::models::fusion::Fusion;
use crate::objectives::Names;
use crate::objectives::synonyms::{SynonymConfig, Synonyms};
use crate::system::hybrid::{COSINE_WEIGHTS, LabelledQuery, accuracy, calibrated, fit_fusion};
use crate::system::pipeline::Pipeline;
use crate::system::pipeline::fit::refit_decision;
use crate::tensor::random::{for_step, shuffle};
use crate::train::optimise::{AdamConfig, Schedule};
use crate::train::{Objective, RunConfig};
use canonym_core::corpus::AnnotatedDocument;
use canonym_core::kb::{ConceptId, FormId, KnowledgeBase};
use serde::{Deserialize, Serialize};

use super::super::log::Log;
use super::super::pipeline::{labelled_proposals, pipeline_on};
use super::super::stage::{Stage, remove_kept};
use super::count_uses;

/// Fine-tuning of the name encoder.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NamesConfig {
    /// Names of the terminology per annotated name that are trained, too, so that the encoder does not forget them.
    pub replay: usize,
    /// Other concepts per annotated name: the candidates of the linker, among which hard negatives are mined.
    pub n_candidates: usize,
    /// Batches.
    pub batch: SynonymConfig,
    /// Steps and learning rate.
    pub run: RunConfig,
}

impl Default for NamesConfig {
    fn default() -> NamesConfig {
        let adam =
            AdamConfig { learning_rate: 1e-4, warm_up: 0.1, schedule: Schedule::Linear, ..AdamConfig::default() };
        NamesConfig {
            replay: 2,
            n_candidates: 10,
            batch: SynonymConfig { batch: 64, n_hard: 2, ..SynonymConfig::default() },
            run: RunConfig { n_steps: 60, mining_interval: 30, evaluate_every: 1, adam, ..RunConfig::default() },
        }
    }
}

/// Fewest annotated names that fusion and calibration are fitted to.
const MIN_QUERIES: usize = 30;

/// The training stage of the name encoder.
const STAGE: &str = "names";

/// What was done to the linker.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkerReport {
    /// Documents that fusion, calibration and evidence weights were fitted to, and that decided whether a part is used.
    pub n_documents: usize,
    /// Distinct linked names in them.
    pub n_queries: usize,
    /// The name encoder, if it was trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<Change>,
    /// Fusion and calibration, if fitted: log loss of the best candidate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion: Option<Change>,
    /// Evidence weights, if fitted: log loss of mention and link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Change>,
}

/// A measure before and after, and whether the new part is used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Of the part as it was: accuracy@1 of the name encoder, log loss of the others.
    pub before: f64,
    /// Of the new part.
    pub after: f64,
    /// Whether the new part is better, and used.
    pub is_used: bool,
}

/// The data of an adaptation of the linker.
#[derive(Debug, Clone, Copy)]
pub struct Decisions<'a> {
    /// Documents to learn from.
    pub train: &'a [AnnotatedDocument],
    /// Completely annotated documents that no part was trained on.
    pub tune: &'a [AnnotatedDocument],
}

/// Adapts the linker of a bundle with a tagger. Without `tune` documents nothing is changed, since nothing could tell whether it helps.
pub fn refine(
    config: Option<&NamesConfig>,
    seed: u64,
    kb: &Arc<KnowledgeBase>,
    mut bundle: NameEncoderBundle,
    decisions: Decisions<'_>,
    out: &Path,
) -> canonym_core::Result<(NameEncoderBundle, LinkerReport)> {
    let queries = linked_names(kb, decisions.tune);
    let mut report =
        LinkerReport { n_documents: decisions.tune.len(), n_queries: queries.len(), ..LinkerReport::default() };
    if decisions.tune.is_empty() {
        return Ok((bundle, report));
    }
    let mut pipeline = pipeline_on(kb, &bundle)?;
    if let Some(config) = config.filter(|_| !queries.is_empty()) {
        let anchors = linked_names(kb, decisions.train);
        if !anchors.is_empty() {
            let change = train_names(config, seed, &pipeline, &mut bundle, (&anchors, &queries), out)?;
            report.names = Some(change);
            if change.is_used {
                pipeline = pipeline_on(kb, &bundle)?;
            }
        }
    }
    if queries.len() >= MIN_QUERIES {
        let (fusion, change) = refit_fusion(&labelled_queries(&pipeline, &queries), bundle.manifest.fusion);
        report.fusion = Some(change);
        if change.is_used {
            bundle.manifest.fusion = fusion;
            pipeline = pipeline_on(kb, &bundle)?;
        }
    }
    let labelled = labelled_proposals(&pipeline, kb, decisions.tune);
    if let Some(tagger) = &mut bundle.manifest.tagger {
        let (decision, [before, after]) = refit_decision(&tagger.decision, &labelled);
        let is_used = after < before;
        report.decision = Some(Change { before, after, is_used });
        if is_used {
            tagger.decision = decision;
        }
    }
    Ok((bundle, report))
}

/// The distinct linked names of documents, abbreviations expanded, with their concepts.
fn linked_names(kb: &KnowledgeBase, documents: &[AnnotatedDocument]) -> Vec<(String, BTreeSet<ConceptId>)> {
    let mut concepts_of: BTreeMap<String, BTreeSet<ConceptId>> = BTreeMap::new();
    for document in documents {
        count_uses(document, &mut |name, id| {
            if let Some(concept) = id.and_then(|id| kb.find(id)) {
                concepts_of.entry(name.to_owned()).or_default().insert(concept);
            }
        });
    }
    concepts_of.into_iter().collect()
}

/// Annotated names with their concepts.
type NamedConcepts<'a> = &'a [(String, BTreeSet<ConceptId>)];

/// Trains the name encoder of a bundle on `anchors` and names of the terminology; keeps it if it links more of `queries`.
fn train_names(
    config: &NamesConfig,
    seed: u64,
    pipeline: &Pipeline,
    bundle: &mut NameEncoderBundle,
    (anchors, queries): (NamedConcepts<'_>, NamedConcepts<'_>),
    out: &Path,
) -> canonym_core::Result<Change> {
    let kb = pipeline.linker().kb();
    let texts: Vec<&str> = anchors.iter().chain(queries).map(|(name, _)| name.as_str()).collect();
    let mut concepts: BTreeSet<ConceptId> =
        anchors.iter().chain(queries).flat_map(|(_, concepts)| concepts.iter().copied()).collect();
    for evidence in pipeline.linker().evidence(&texts) {
        let mut scored: Vec<(f32, ConceptId)> =
            evidence.iter().map(|one| (bundle.manifest.fusion.score(one), one.scored.concept)).collect();
        scored.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
        concepts.extend(scored.iter().take(config.n_candidates).map(|(_, concept)| *concept));
    }
    let replayed = replayed(kb, config.replay * anchors.len(), seed);
    concepts.extend(&replayed);
    let forms: BTreeSet<FormId> =
        concepts.iter().flat_map(|concept| kb.names(*concept)).map(|name| kb.form_of(name)).collect();
    let encoder = bundle.name_encoder()?;
    let rows = |text: &str| encoder.tokenizer.input_ids(&canonym_core::text::normalise::fold(text));
    let mut table = Names::default();
    for form in forms {
        let of_form: BTreeSet<u32> = kb.names_of_form(form).map(|name| kb.concept_of(name).0).collect();
        table.input_ids.push(encoder.tokenizer.input_ids(&kb.forms().get(form.0 as usize)));
        table.concepts.push(of_form.into_iter().collect());
    }
    let named = |names: NamedConcepts<'_>| Names {
        input_ids: names.iter().map(|(name, _)| rows(name)).collect(),
        concepts: names.iter().map(|(_, concepts)| concepts.iter().map(|concept| concept.0).collect()).collect(),
    };
    let (mut to_fit, held_out) = (named(anchors), named(queries));
    for concept in replayed {
        let names: Vec<_> = kb.names(concept).collect();
        let name = names[for_step(seed, u64::from(concept.0)).below(names.len())];
        to_fit.input_ids.push(rows(kb.name(name)));
        to_fit.concepts.push(vec![concept.0]);
    }
    let unknown = bundle.tokenizer.unknown;
    let rescnn = bundle.manifest.rescnn.clone();
    let mut objective =
        Synonyms::new(&rescnn, config.batch, (&to_fit, &table), unknown, seed).with_held_out(Some((&held_out, &table)));
    let parameters = bundle.without_tagger().parameters;
    let before = objective.evaluate(&parameters)?.unwrap_or(0.0);
    // A folder of its own: its log is not that of the tagger.
    let folder = out.join(STAGE);
    std::fs::create_dir_all(&folder).map_err(|error| canonym_core::Error::io("create", &folder, error))?;
    remove_kept(&folder, &[STAGE])?;
    let mut log = Log::create(&folder)?;
    let of = format!("{seed} {} {}", to_fit.input_ids.len(), table.input_ids.len());
    let stage = Stage { name: STAGE, config: config.run, seed, out: &folder, of: &of };
    let trained = stage.train(parameters, &mut objective, to_fit.input_ids.len(), &mut log)?;
    remove_kept(&folder, &[STAGE])?;
    let after = objective.evaluate(&trained)?.unwrap_or(0.0);
    let is_used = after > before;
    if is_used {
        trained.iter().for_each(|(name, value)| bundle.parameters.add(name, value.clone()));
    }
    Ok(Change { before, after, is_used })
}

/// Up to `n` random concepts that have synonyms.
fn replayed(kb: &KnowledgeBase, n: usize, seed: u64) -> Vec<ConceptId> {
    let mut all: Vec<ConceptId> = kb.concepts().filter(|concept| kb.names(*concept).nth(1).is_some()).collect();
    shuffle(&mut all, &mut for_step(seed, u64::MAX));
    all.truncate(n);
    all
}

/// The candidates of each name, and whether they are right.
fn labelled_queries(pipeline: &Pipeline, queries: NamedConcepts<'_>) -> Vec<LabelledQuery> {
    let names: Vec<&str> = queries.iter().map(|(name, _)| name.as_str()).collect();
    let evidence = pipeline.linker().evidence(&names).into_iter().zip(queries);
    evidence
        .map(|(evidence, (_, concepts))| {
            evidence.into_iter().map(|one| (one, concepts.contains(&one.scored.concept))).collect()
        })
        .collect()
}

/// Fits cosine weight and calibration; the change is the log loss of the best candidate by two-fold cross-fitting.
fn refit_fusion(queries: &[LabelledQuery], usual: Fusion) -> (Fusion, Change) {
    // The lexical weight stays that of the model; weights of the cosine are relative to a lexical weight of one.
    let fit = |queries: &[LabelledQuery]| match usual.lexical == 1.0 {
        true => {
            let mut weights = COSINE_WEIGHTS.to_vec();
            weights.push(usual.cosine);
            let fitted = fit_fusion(queries, &weights, usual.cosine);
            // A weight that is no better than that of the model is not taken.
            let better = accuracy(queries, &fitted) > accuracy(queries, &usual);
            calibrated(queries, Fusion { cosine: if better { fitted.cosine } else { usual.cosine }, ..usual })
        }
        false => calibrated(queries, usual),
    };
    let half = |half: usize| -> Vec<LabelledQuery> { queries.iter().skip(half).step_by(2).cloned().collect() };
    let halves = [half(0), half(1)];
    let after = log_loss(&halves[0], &fit(&halves[1])) + log_loss(&halves[1], &fit(&halves[0]));
    let before = log_loss(&halves[0], &usual) + log_loss(&halves[1], &usual);
    let n = queries.len().max(1) as f64;
    (fit(queries), Change { before: before / n, after: after / n, is_used: after < before })
}

/// Sum over queries of the log loss of the probability of the best candidate.
fn log_loss(queries: &[LabelledQuery], fusion: &Fusion) -> f64 {
    let loss = |query: &LabelledQuery| {
        let mut ranked: Vec<(f32, bool)> = query.iter().map(|(one, right)| (fusion.score(one), *right)).collect();
        ranked.sort_by(|left, right| right.0.total_cmp(&left.0));
        let Some((score, is_right)) = ranked.first().copied() else { return 0.0 };
        let next = ranked.get(1).map_or(score - 10.0, |second| second.0);
        let p = f64::from(fusion.calibration.probability(score, score - next)).clamp(1e-6, 1.0 - 1e-6);
        -(if is_right { p } else { 1.0 - p }).ln()
    };
    queries.iter().map(loss).sum()
}

#[cfg(test)]
mod tests {
    use canonym_core::kb::NameId;
    use canonym_core::link::lexical::Scored;
    use canonym_core::link::model::{Calibration, LexicalModel};

    use super::*;
    use crate::models::fusion::Evidence;

    /// A query whose best candidate leads by `lead`, and whether that one is right.
    fn query(lead: f32, is_right: bool) -> LabelledQuery {
        let candidate = |concept: u32, score: f32| {
            let features = LexicalModel::zero().weights;
            let scored = Scored { concept: ConceptId(concept), name: NameId(concept), features, score };
            Evidence { scored, dense_score: 0.0, name_score: 0.0 }
        };
        vec![(candidate(0, lead), is_right), (candidate(1, 0.0), !is_right)]
    }

    #[test]
    fn calibration_is_fitted_anew_where_the_model_is_too_sure() {
        let sure = Fusion { calibration: Calibration { score: 0.0, margin: 0.0, offset: 4.0 }, ..Fusion::LEXICAL };
        let queries: Vec<LabelledQuery> =
            (0..80).map(|row| query(1.0 + (row % 7) as f32 / 10.0, row % 4 > 1)).collect();
        let (fitted, change) = refit_fusion(&queries, sure);
        assert!(change.is_used && change.after < 0.8 && change.before > 1.5, "{change:?}");
        let p = fitted.calibration.probability(1.3, 1.3);
        assert!((p - 0.5).abs() < 0.1, "{p}");
        // One that is right already is kept.
        let fair = Fusion { calibration: fitted.calibration, ..sure };
        let (_, change) = refit_fusion(&queries, fair);
        assert!((change.after - change.before).abs() < 0.02, "{change:?}");
    }
}
