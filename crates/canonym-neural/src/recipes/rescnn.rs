//! Trains the ResCNN name encoder: pre-training on terminologies, training on queries, fusion with the lexical linker.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::bundle::{FILE, FORMAT, NameEncoderBundle, NameManifest};
use crate::checkpoint::{self, read_embeddings};
use crate::index::FlatIndex;
use crate::index::forms::FormVectors;
use crate::models::fusion::Fusion;
use crate::models::rescnn::ResCnnConfig;
use crate::models::rescnn::names::NameEncoder;
use crate::objectives::Names;
use crate::objectives::candidates::{CandidateConfig, Candidates, SPARSE_WEIGHT};
use crate::objectives::synonyms::{SynonymConfig, Synonyms};
use crate::system::hybrid::{self, HybridLinker, LabelledQuery};
use crate::tensor::parameters::{Parameters, Precision};
use crate::tensor::random::for_step;
use crate::tokenizer::Tokenizer;
use crate::train::RunConfig;
use canonym_core::error::Context;
use canonym_core::eval::learned::{Learned, Role::Trained, Role::Tuned, Seen};
use canonym_core::kb::{FormId, KnowledgeBase};
use canonym_core::link::fit::Labelled;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::model::LexicalModel;
use canonym_core::text::normalise::fold;
use serde::{Deserialize, Serialize};

use super::checkpoints::checkpoint_folder;
use super::learned::{check_prints, of_queries, source};
use super::log::Log;
use super::run_folder::{REPORT, identity, provenance, to_json, write_run};
use super::settings::experiment_of;
use super::sources::{DataConfig, Queries, compile_main, compile_terminology, read_queries};
use super::{TrainOptions, stage, tell_unknown};
use crate::recipes::queries::MentionQuery;
use crate::status;
use crate::system::lexical::{LEXICAL_PART, lexical_learned};
use crate::system::terminology::bare;

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    system: String,
    seed: u64,
    /// Value of `{fold}` in paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fold: Option<u64>,
    data: DataConfig,
    vocabulary: VocabularyConfig,
    #[serde(default)]
    model: ResCnnConfig,
    /// Pre-training on synonyms of the terminologies.
    pretrain: Option<StageConfig>,
    /// Training on the queries.
    train: StageConfig,
}

/// Source of wordpieces and embeddings.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, try_from = "VocabularyFields")]
enum VocabularyConfig {
    /// Wordpieces learned from names and queries; embeddings trained with the model.
    Learned {
        /// Maximum number of wordpieces.
        size: usize,
        /// Width of the embeddings.
        dim: usize,
    },
    /// Wordpieces and embeddings of a BERT checkpoint.
    Checkpoint {
        /// Folder of the checkpoint, relative to the data root.
        bert: PathBuf,
        /// Whether the embeddings are fine-tuned; frozen in the paper.
        trained: bool,
    },
}

/// The fields of both variants, so that serde can report unknown ones.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VocabularyFields {
    size: Option<usize>,
    dim: Option<usize>,
    bert: Option<PathBuf>,
    trained: Option<bool>,
}

impl TryFrom<VocabularyFields> for VocabularyConfig {
    type Error = &'static str;

    fn try_from(fields: VocabularyFields) -> Result<VocabularyConfig, &'static str> {
        match fields {
            VocabularyFields { size: Some(size), dim: Some(dim), bert: None, trained: None } => {
                Ok(VocabularyConfig::Learned { size, dim })
            }
            VocabularyFields { size: None, dim: None, bert: Some(bert), trained } => {
                Ok(VocabularyConfig::Checkpoint { bert, trained: trained.unwrap_or_default() })
            }
            _ => Err("a vocabulary has `size` and `dim`, where it is learned, or `bert` and perhaps `trained`"),
        }
    }
}

/// Settings of a training stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StageConfig {
    #[serde(default, skip_serializing_if = "ObjectiveKind::is_default")]
    objective: ObjectiveKind,
    /// Candidates, and thereby batch sizes, of the marginal likelihood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    candidates: Option<CandidateConfig>,
    #[serde(default)]
    batch: SynonymConfig,
    #[serde(default)]
    run: RunConfig,
}

/// Training objective.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ObjectiveKind {
    /// Multi-similarity loss over synonyms, as in ResCNN.
    #[default]
    MultiSimilarity,
    /// Marginal likelihood of the correct candidates of a query, as in BioSyn.
    MarginalLikelihood,
}

impl ObjectiveKind {
    fn is_default(&self) -> bool {
        *self == ObjectiveKind::default()
    }
}

/// The training stages of this system.
const STAGES: [&str; 3] = ["pretrain", "train", "refit"];

/// Integer labels of concept ids, shared by all terminologies of a run.
#[derive(Debug, Default)]
struct Labels {
    number_of: HashMap<String, u32>,
}

impl Labels {
    fn of(&mut self, id: &str) -> u32 {
        let next = self.number_of.len() as u32;
        *self.number_of.entry(id.to_owned()).or_insert(next)
    }
}

/// A terminology and its tokenised forms.
struct Prepared {
    kb: Arc<KnowledgeBase>,
    names: Names,
}

/// Report of a run.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    n_wordpieces: usize,
    n_trained: usize,
    n_parameters: usize,
    n_queries: usize,
    n_dev_mentions: usize,
    n_concepts: usize,
    n_names: usize,
    /// Fraction of dev mentions whose concepts the terminology contains: an upper bound of accuracy.
    dev_coverage: f64,
    /// Number of lines per file that are not UTF-8 and were read as Windows-1252.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    n_decoded: BTreeMap<String, u64>,
    /// Accuracy@1 of dev mentions before the refit: lexical, dense and hybrid.
    dev: BTreeMap<&'static str, f64>,
    /// The same with the terminology without training mentions as names.
    dev_clean: Option<BTreeMap<&'static str, f64>>,
    /// Learned weight of the sparse scores, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    sparse_weight: Option<f32>,
    cosine_weight: f32,
    /// Accuracy on parts of dev mentions for each cosine weight.
    by_cosine_weight: Vec<(f32, f64)>,
    /// Held-out queries that a part was trained on, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    seconds: BTreeMap<&'static str, f64>,
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment = experiment_of(arguments, table, "ResCNN")?;
    experiment.model.check_sizes().with_context(|| format!("{path} cannot be trained"))?;
    if let VocabularyConfig::Learned { size: 0 | 1, .. } | VocabularyConfig::Learned { dim: 0, .. } =
        experiment.vocabulary
    {
        let error =
            canonym_core::Error::config(format!("{path}: vocabulary size and embedding dimension must be positive"));
        return Err(error.with_hint("`vocabulary` has a `size` of 2 or more, such as 8000, and a `dim` such as 128"));
    }
    let root = arguments.root();
    let started = Instant::now();
    let mut seconds = BTreeMap::new();
    let data = &experiment.data;
    status::say("reading terminologies and queries …");
    let Queries { train: queries, dev: dev_queries, n_decoded } = read_queries(data, root)?;
    let of_train = source(NAMES_PART, Trained, &data.queries, of_queries(&data.queries, root, &queries)?);
    let dev_file = data.dev_queries.as_ref().unwrap_or(&data.queries);
    let dev_prints = of_queries(dev_file, root, &dev_queries)?;
    let mut trained_on = lexical_learned()?.unwrap_or_default().only(Trained);
    trained_on.add(of_train);
    let seen = check_prints(&trained_on, &dev_prints, ("held-out queries", arguments.allow_seen))?;
    let (terminology, clean) = compile_main(data, root, &arguments.out, &queries)?;
    let dev_terminology = match &data.dev_terminology {
        Some(config) => compile_terminology(config, root, &arguments.out.join("dev.kb"))?,
        None => terminology.clone(),
    };
    let synonyms: Vec<Arc<KnowledgeBase>> = data
        .synonyms
        .iter()
        .map(|config| compile_terminology(config, root, &arguments.out.join("synonyms.kb")))
        .collect::<canonym_core::Result<_>>()?;

    let trained_names = single_part(&queries).map(|one| one.query.as_str());
    let kbs: Vec<&Arc<KnowledgeBase>> = std::iter::once(&terminology).chain(&synonyms).collect();
    let texts: Vec<String> = trained_names.map(fold).chain(kbs.iter().flat_map(|kb| forms(kb))).collect();
    let mut parameters = Parameters::default();
    let (tokenizer, dim) = match &experiment.vocabulary {
        VocabularyConfig::Learned { size, dim } => (Tokenizer::learn(texts.iter().map(String::as_str), *size), *dim),
        VocabularyConfig::Checkpoint { bert, trained } => {
            let tokenizer =
                read_embeddings(&checkpoint_folder(bert, arguments)?, experiment.model.max_length, &mut parameters)?;
            if !trained {
                checkpoint::names().try_for_each(|name| parameters.freeze(name))?;
            }
            (tokenizer, parameters.get("embedding.word")?.n_cols)
        }
    };

    let mut labels = Labels::default();
    let mut prepare =
        |kb: &Arc<KnowledgeBase>| Prepared { kb: kb.clone(), names: names_of(kb, &tokenizer, &mut labels) };
    let terminology = prepare(&terminology);
    let dev_terminology = prepare(&dev_terminology);
    let mut synonyms: Vec<Names> = synonyms.iter().map(|kb| prepare(kb).names).collect();
    synonyms.push(terminology.names.clone());
    let anchors = known(anchors_of(single_part(&queries), &tokenizer, &mut labels), &terminology.names);
    if anchors.input_ids.is_empty() {
        let error = canonym_core::Error::no_data("no query has a concept of the terminology");
        return Err(error.with_hint("write the ids of the queries as the terminology writes them"));
    }
    let dev_anchors = anchors_of(single_part(&dev_queries), &tokenizer, &mut labels);
    let dev_parts: Vec<Labelled> = dev_queries.iter().flat_map(|mention| mention.parts.iter().cloned()).collect();
    let dev_each = each(&dev_parts, &tokenizer, &mut labels);
    tell_unknown("held-out queries", &dev_parts, &dev_terminology.kb);
    seconds.insert("prepare", started.elapsed().as_secs_f64());

    let provenance = provenance(data.paths().collect(), root)?;
    let of = identity(&experiment, &provenance)?;
    let mut log = stage::open_log(&arguments.out, &STAGES)?;
    experiment.model.init(&mut parameters, tokenizer.len(), dim, &mut for_step(experiment.seed, u64::MAX));
    let (n_trained, n_parameters) = parameters.counts();
    status::say(&format!(
        "{} wordpieces, {n_trained} weights; {} names, {} queries",
        tokenizer.len(),
        terminology.names.input_ids.len(),
        anchors.input_ids.len()
    ));
    let held_out = Some((&dev_each, &dev_terminology.names));
    let all_stages = Stage {
        name: "train",
        model: &experiment.model,
        config: &experiment.train,
        seed: experiment.seed,
        tokenizer: &tokenizer,
        out: &arguments.out,
        of: &of,
    };
    if let Some(stage) = &experiment.pretrain {
        let started = Instant::now();
        let names = with_synonym(synonyms);
        if names.input_ids.is_empty() && stage.run.n_steps > 0 {
            let error = canonym_core::Error::no_data("no pre-training data: no concept has two names");
            return Err(error.with_hint("leave `pretrain` out, or give `synonyms`, or `query_names = true`"));
        }
        let stage = Stage { name: "pretrain", config: stage, ..all_stages };
        parameters = stage.run(parameters, &names, &names, held_out, &mut log)?;
        seconds.insert("pretrain", started.elapsed().as_secs_f64());
    }
    let train_started = Instant::now();
    let stage = all_stages;
    let chosen = stage.run(parameters.clone(), &anchors, &terminology.names, held_out, &mut log)?;
    seconds.insert("train", train_started.elapsed().as_secs_f64());

    let sparse_weight = chosen.get(SPARSE_WEIGHT).ok().map(|weight| weight.values[0]);
    let lexical = LexicalModel::embedded();
    let manifest = |fusion| -> canonym_core::Result<NameManifest> {
        Ok(NameManifest {
            format: FORMAT,
            rescnn: experiment.model.clone(),
            fusion,
            lexical: lexical.to_value(),
            tagger: None,
            card: String::new(),
        })
    };
    let learned = Some(learned(&experiment, root)?);
    let mut bundle = NameEncoderBundle {
        manifest: manifest(Fusion::DENSE)?,
        parameters: chosen.without(SPARSE_WEIGHT),
        tokenizer: tokenizer.clone(),
        fingerprint: 0,
        learned,
    };
    let labelled = collect_evidence(&bundle, &dev_terminology.kb, &dev_parts)?;
    let fusion = hybrid::calibrated(
        &labelled,
        hybrid::fit_fusion(&labelled, &hybrid::COSINE_WEIGHTS, hybrid::DEFAULT_COSINE_WEIGHT),
    );
    let dev = accuracies(&labelled, &dev_queries, fusion);
    let clean = clean.or_else(|| data.dev_terminology.is_some().then(|| terminology.kb.clone()));
    let dev_clean = match clean {
        Some(kb) => Some(accuracies(&collect_evidence(&bundle, &kb, &dev_parts)?, &dev_queries, fusion)),
        None => None,
    };
    let by_cosine_weight: Vec<(f32, f64)> =
        hybrid::COSINE_WEIGHTS.into_iter().zip(hybrid::accuracies(&labelled, &hybrid::COSINE_WEIGHTS)).collect();
    status::say(&format!("dev accuracy@1: {}; cosine weight {}", shown(&dev), fusion.cosine));
    if let Some(clean) = &dev_clean {
        status::say(&format!("dev accuracy@1 with the dev terminology: {}", shown(clean)));
    }
    if data.refit {
        let started = Instant::now();
        let mut all = anchors;
        all.input_ids.extend(dev_anchors.input_ids);
        all.concepts.extend(dev_anchors.concepts);
        let all = known(without_repeats(all), &terminology.names);
        let stage = Stage { name: "refit", ..stage };
        let again = stage.run(parameters, &all, &terminology.names, None, &mut log)?;
        bundle.parameters = again.without(SPARSE_WEIGHT);
        seconds.insert("refit", started.elapsed().as_secs_f64());
    }
    bundle.manifest = manifest(fusion)?;
    let report = Report {
        seed: experiment.seed,
        n_wordpieces: tokenizer.len(),
        n_trained,
        n_parameters,
        n_queries: single_part(&queries).count(),
        n_dev_mentions: dev_queries.len(),
        n_concepts: dev_terminology.kb.n_concepts(),
        n_names: dev_terminology.kb.n_names(),
        dev_coverage: coverage(&dev_queries, &dev_each, &dev_terminology.names),
        n_decoded,
        dev,
        dev_clean,
        sparse_weight,
        cosine_weight: fusion.cosine,
        by_cosine_weight,
        seen,
        seconds,
    };
    let (bytes, report) = (bundle.to_bytes(Precision::Single)?, to_json(&report)?);
    write_run(&arguments.out, &experiment, &provenance, &[(FILE, &bytes), (REPORT, report.as_bytes())])?;
    // Remove the files kept for resuming.
    for name in ["clean.kb", "dev.kb", "synonyms.kb"] {
        let path = arguments.out.join(name);
        if path.exists() {
            std::fs::remove_file(&path).map_err(|error| canonym_core::Error::io("remove", &path, error))?;
        }
    }
    stage::remove_kept(&arguments.out, &STAGES)
}

/// The training record: training queries, held-out queries (tuning, or training if refitted), and that of the lexical model.
pub fn learned(experiment: &Experiment, root: &Path) -> canonym_core::Result<Learned> {
    let data = &experiment.data;
    let Queries { train, dev, .. } = read_queries(data, root)?;
    let mut all = Learned::default();
    all.add(source(NAMES_PART, Trained, &data.queries, of_queries(&data.queries, root, &train)?));
    let of_dev = data.dev_queries.as_ref().unwrap_or(&data.queries);
    let role = if data.refit { Trained } else { Tuned };
    all.add(source(NAMES_PART, role, of_dev, of_queries(of_dev, root, &dev)?));
    all.join(LEXICAL_PART, lexical_learned()?.as_ref());
    Ok(all)
}

/// Name of the model in training records.
pub const NAMES_PART: &str = "name encoder";

/// The mentions of one part; the protocol trains only on these.
fn single_part(mentions: &[MentionQuery]) -> impl Iterator<Item = &Labelled> {
    mentions.iter().filter(|mention| mention.parts.len() == 1).map(|mention| &mention.parts[0])
}

fn forms(kb: &KnowledgeBase) -> Vec<String> {
    (0..kb.n_forms()).map(|form| kb.forms().get(form).into_owned()).collect()
}

/// Tokenised forms of a terminology with the labels of their concepts.
fn names_of(kb: &KnowledgeBase, tokenizer: &Tokenizer, labels: &mut Labels) -> Names {
    let mut names = Names::default();
    for form in 0..kb.n_forms() {
        let mut concepts: Vec<u32> = Vec::new();
        for name in kb.names_of_form(FormId(form as u32)) {
            // A concept may have several ids, separated by `|`.
            concepts.extend(kb.id(kb.concept_of(name)).split('|').map(|id| labels.of(bare(id))));
        }
        concepts.sort_unstable();
        concepts.dedup();
        names.input_ids.push(tokenizer.input_ids(&kb.forms().get(form)));
        names.concepts.push(concepts);
    }
    names
}

/// Tokenised queries with the labels of their concepts, in order.
fn each(queries: &[Labelled], tokenizer: &Tokenizer, labels: &mut Labels) -> Names {
    let mut names = Names::default();
    for query in queries {
        names.input_ids.push(tokenizer.input_ids(&fold(&query.query)));
        names.concepts.push(query.ids.iter().map(|id| labels.of(id)).collect());
    }
    names
}

/// As [`each`], without duplicates.
fn anchors_of<'a>(queries: impl Iterator<Item = &'a Labelled>, tokenizer: &Tokenizer, labels: &mut Labels) -> Names {
    let queries: Vec<Labelled> = queries.cloned().collect();
    without_repeats(each(&queries, tokenizer, labels))
}

fn without_repeats(names: Names) -> Names {
    let mut seen = BTreeSet::new();
    let mut kept = Names::default();
    for (input_ids, concepts) in names.input_ids.into_iter().zip(names.concepts) {
        if seen.insert((input_ids.clone(), concepts.clone())) {
            kept.input_ids.push(input_ids);
            kept.concepts.push(concepts);
        }
    }
    kept
}

/// Keeps the queries with a concept in `names`.
fn known(queries: Names, names: &Names) -> Names {
    let named: BTreeSet<u32> = names.concepts.iter().flatten().copied().collect();
    let mut kept = Names::default();
    for (input_ids, concepts) in queries.input_ids.into_iter().zip(queries.concepts) {
        if concepts.iter().any(|concept| named.contains(concept)) {
            kept.input_ids.push(input_ids);
            kept.concepts.push(concepts);
        }
    }
    kept
}

/// Merges tables; keeps the names that have a synonym.
fn with_synonym(tables: Vec<Names>) -> Names {
    let mut all = Names::default();
    for table in tables {
        all.input_ids.extend(table.input_ids);
        all.concepts.extend(table.concepts);
    }
    let all = without_repeats(all);
    let mut n_names: HashMap<u32, usize> = HashMap::new();
    all.concepts.iter().flatten().for_each(|concept| *n_names.entry(*concept).or_default() += 1);
    let mut kept = Names::default();
    for (input_ids, concepts) in all.input_ids.into_iter().zip(all.concepts) {
        if concepts.iter().any(|concept| n_names[concept] > 1) {
            kept.input_ids.push(input_ids);
            kept.concepts.push(concepts);
        }
    }
    kept
}

#[derive(Clone, Copy)]
struct Stage<'a> {
    name: &'static str,
    model: &'a ResCnnConfig,
    config: &'a StageConfig,
    seed: u64,
    tokenizer: &'a Tokenizer,
    out: &'a Path,
    /// Identity of configuration and data, which a checkpoint must match.
    of: &'a str,
}

impl Stage<'_> {
    fn run(
        &self,
        mut parameters: Parameters,
        anchors: &Names,
        names: &Names,
        held_out: Option<(&Names, &Names)>,
        log: &mut Log,
    ) -> canonym_core::Result<Parameters> {
        let StageConfig { objective, candidates, batch, run: config } = self.config;
        let mut candidates = (*objective == ObjectiveKind::MarginalLikelihood).then(|| {
            let config = candidates.unwrap_or_default();
            Candidates::new(self.model, config, anchors, names, self.tokenizer, self.seed).with_held_out(held_out)
        });
        if let Some(candidates) = &candidates {
            candidates.add_weight(&mut parameters, config.adam.learning_rate)?;
        }
        let of = format!("{} {}", self.name, self.of);
        let stage = stage::Stage { name: self.name, config: *config, seed: self.seed, out: self.out, of: &of };
        let n_anchors = anchors.input_ids.len();
        match &mut candidates {
            Some(candidates) => stage.train(parameters, candidates, n_anchors, log),
            None => {
                let unknown = self.tokenizer.unknown;
                let synonyms = Synonyms::new(self.model, *batch, (anchors, names), unknown, self.seed);
                stage.train(parameters, &mut synonyms.with_held_out(held_out), n_anchors, log)
            }
        }
    }
}

/// The evidence for each part of the held-out queries: candidates, and whether each is correct.
fn collect_evidence(
    bundle: &NameEncoderBundle,
    kb: &Arc<KnowledgeBase>,
    parts: &[Labelled],
) -> canonym_core::Result<Vec<LabelledQuery>> {
    let names: Arc<NameEncoder> = Arc::new(bundle.name_encoder()?);
    let vectors = Arc::new(FormVectors::Indexed(FlatIndex::new(names.encode_forms(kb))));
    let linker = HybridLinker::new(kb.clone(), names, vectors, bundle.lexical()?, Fusion::DENSE, LinkConfig::default());
    let queries: Vec<&str> = parts.iter().map(|part| part.query.as_str()).collect();
    let is_right = |concept, part: &Labelled| kb.id(concept).split('|').any(|id| part.ids.contains(bare(id)));
    let evidence = linker.evidence(&queries).into_iter().zip(parts);
    let labelled = evidence
        .map(|(evidence, part)| evidence.into_iter().map(|one| (one, is_right(one.scored.concept, part))).collect());
    Ok(labelled.collect())
}

/// Fraction of mentions each of whose parts has a concept with a name.
fn coverage(mentions: &[MentionQuery], parts: &Names, names: &Names) -> f64 {
    let named: BTreeSet<u32> = names.concepts.iter().flatten().copied().collect();
    let known: Vec<bool> = parts.concepts.iter().map(|ids| ids.iter().any(|id| named.contains(id))).collect();
    fraction_of_mentions(mentions, &known)
}

/// Fraction of mentions for which `parts` is true in all parts.
fn fraction_of_mentions(mentions: &[MentionQuery], parts: &[bool]) -> f64 {
    let mut at = 0;
    let whole = mentions.iter().filter(|mention| {
        let own = &parts[at..at + mention.parts.len()];
        at += mention.parts.len();
        own.iter().all(|one| *one)
    });
    whole.count() as f64 / mentions.len().max(1) as f64
}

/// Accuracies by name, in percent.
fn shown(accuracies: &BTreeMap<&'static str, f64>) -> String {
    let one = |(name, accuracy): (&&str, &f64)| format!("{name} {:.1}", 100.0 * accuracy);
    accuracies.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Accuracy of lexical, dense and hybrid linking.
fn accuracies(labelled: &[LabelledQuery], mentions: &[MentionQuery], hybrid: Fusion) -> BTreeMap<&'static str, f64> {
    let modes = [("lexical", Fusion::LEXICAL), ("dense", Fusion::DENSE), ("hybrid", hybrid)];
    modes.into_iter().map(|(name, fusion)| (name, accuracy(labelled, mentions, &fusion))).collect()
}

/// Fraction of mentions all of whose parts are linked correctly.
fn accuracy(labelled: &[LabelledQuery], mentions: &[MentionQuery], fusion: &Fusion) -> f64 {
    let best = hybrid::best_rows(labelled, fusion);
    let right: Vec<bool> =
        labelled.iter().zip(best).map(|(query, best)| best.is_some_and(|row| query[row].1)).collect();
    fraction_of_mentions(mentions, &right)
}
