//! Recipe of the cross-encoder, which is trained to select the correct candidate of gold mentions.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use crate::bundle::FILE;
use crate::bundle::cross_encoder::{self, CrossBundle, FirstLinker, Retrieval};
use crate::bundle::dual_encoder::DualBundle;
use crate::checkpoint::read_bert;
use crate::models::cross_encoder::context::{N_PIECES, add_marks, marked_window};
use crate::models::cross_encoder::infer::PairScorer;
use crate::models::cross_encoder::{CrossEncoderConfig, SCOPE};
use crate::objectives::pairs::{Pairs, PairsConfig, Question, Questions};
use crate::system::dual_encoder::DualConfig;
use crate::tensor::matrix::Compute;
use crate::tensor::parameters::{Parameters, Precision};
use crate::tensor::random::for_step;
use crate::tokenizer::Tokenizer;
use crate::train::{RunConfig, Select};
use canonym_core::corpus::{AnnotatedDocument, Annotation, OnMismatch, Reader};
use canonym_core::error::Context;
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::learned::{Learned, Role::Trained, Role::Tuned, Seen};
use canonym_core::eval::ranking::Ranks;
use canonym_core::kb::compile::hash_file;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::link::bm25::Bm25Linker;
use canonym_core::link::lexical::{LexicalLinker, LinkConfig};
use canonym_core::link::model::LexicalModel;
use canonym_core::link::{Candidate, Link, LinkInput, Linker};
use canonym_core::text::Mention;
use canonym_core::text::analysis::Analysis;
use serde::{Deserialize, Serialize};

use super::TrainOptions;
use super::checkpoints::{checkpoint_folder, existing};
use super::data::held_apart;
use super::learned::{check_unseen, of_corpus, of_documents, source};
use super::run_folder::{REPORT, identity, provenance, to_json, write_run};
use super::settings::experiment_of;
use super::sources::{TerminologyConfig, compile_terminology};
use super::stage::{Stage, open_log, remove_kept};
use crate::status;
use crate::system::dual_encoder::model::dual_linker;

/// Name of its single training stage.
const STAGE: &str = "train";

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    system: String,
    seed: u64,
    data: DataConfig,
    #[serde(default)]
    retrieval: Retrieval,
    model: ModelConfig,
    #[serde(default)]
    batch: PairsConfig,
    #[serde(default)]
    run: RunConfig,
}

/// Input files, relative to the data root.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataConfig {
    /// The target terminology.
    terminology: TerminologyConfig,
    /// Training documents with mentions, in any corpus format.
    documents: PathBuf,
    /// Held-out documents for evaluation.
    dev_documents: PathBuf,
    /// If set, one in this many training documents, sampled by the seed, is split off to select a checkpoint; otherwise `dev_documents`
    /// select it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tune_share: Option<usize>,
    /// Run folder of the dual encoder that retrieves candidates, if `retrieval.linker` is one; relative to the current folder or the data
    /// root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    linker: Option<PathBuf>,
    /// Number of evaluated mentions, evenly spaced over all; 0 for all.
    #[serde(default)]
    n_dev_mentions: usize,
    /// Whether a missing correct concept replaces the last candidate: the cross-encoder † of Bhowmik et al. 2021. This leaks the answer, so
    /// the scores are not end-to-end linking scores.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    insert_gold: bool,
}

/// The model and its initialisation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelConfig {
    /// Folder of a BERT checkpoint, relative to the data root or to `CANONYM_MODELS`.
    bert: PathBuf,
    /// Maximum number of wordpieces of a mention with its context.
    #[serde(alias = "n_pieces", default = "n_wordpieces")]
    n_wordpieces: usize,
    /// Precision of matrix products.
    #[serde(default, skip_serializing_if = "Compute::is_f32")]
    compute: Compute,
}

fn n_wordpieces() -> usize {
    N_PIECES
}

/// Report of a run.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    n_parameters: usize,
    n_concepts: usize,
    insert_gold: bool,
    train: Retrieved,
    dev: Retrieved,
    /// The evaluated dev mentions: their number, and accuracy@1 before and after reranking.
    evaluated: Evaluated,
    /// Dev documents that a part of the system was trained or tuned on.
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    seconds: BTreeMap<&'static str, f64>,
}

/// Retrieval metrics.
#[derive(Debug, Default, Serialize)]
struct Retrieved {
    n_documents: usize,
    n_mentions: usize,
    /// Annotations left out because they are composite or have no id or no span.
    n_left_out: usize,
    /// Mentions whose concept the terminology lacks.
    n_unknown: usize,
    accuracy_at_1: f64,
    /// Recall: fraction of mentions whose concept is among the candidates.
    recall: f64,
}

#[derive(Debug, Serialize)]
struct Evaluated {
    n_mentions: usize,
    first_linker: f64,
    cross_encoder: f64,
}

/// Runs an experiment.
pub fn run(arguments: &TrainOptions, table: toml::Table) -> canonym_core::Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment = experiment_of(arguments, table, "cross-encoder")?;
    let Experiment { seed, data, retrieval, .. } = &experiment;
    retrieval.bm25.check().with_context(|| format!("cannot train {path}"))?;
    if retrieval.n_candidates < 2 {
        let error = canonym_core::Error::config("reranking needs at least 2 candidates");
        return Err(error.with_hint("the default of `retrieval.n_candidates` is 10"));
    }
    let root = arguments.root();
    let started = Instant::now();
    let mut seconds = BTreeMap::new();
    let first = first_model(data, retrieval, root)?;
    let folder = checkpoint_folder(&experiment.model.bert, arguments)?;
    let mut parameters = Parameters::default();
    let (mut bert, mut tokenizer) = read_bert(&folder, SCOPE, &mut parameters)?;
    let mut rng = for_step(*seed, u64::MAX);
    add_marks(&mut bert, &mut tokenizer, SCOPE, &mut parameters, &mut rng)?;
    bert.compute = experiment.model.compute;
    let model = CrossEncoderConfig { bert, n_wordpieces: experiment.model.n_wordpieces };
    model.init(&mut parameters, &mut rng);
    model.check(&parameters).with_context(|| format!("cannot train {path}"))?;

    status::say("reading terminology and documents …");
    let kb = compile_terminology(&data.terminology, root, &arguments.out.join("terminology.kb"))?;
    let linker = first_linker(&kb, retrieval, first.as_ref())?;
    let asked = CorpusQuery { kb: &kb, linker: linker.as_ref(), model: &model, tokenizer: &tokenizer, data, retrieval };
    let (train_documents, tune_documents) = held_apart(read(&root.join(&data.documents))?, data.tune_share, *seed)?;
    let dev_documents = read(&root.join(&data.dev_documents))?;
    let mut record = learned(&experiment, root)?;
    if let Some(first) = &first {
        record.join("candidates", first.learned.as_ref());
    }
    let seen = check_unseen(&record, &dev_documents, ("held-out documents", arguments.allow_seen))?;
    let (questions, train) = asked.questions(&train_documents, 0)?;
    let (dev_questions, dev) = asked.questions(&dev_documents, data.n_dev_mentions)?;
    let tune_questions = match tune_documents.is_empty() {
        true => None,
        false => Some(asked.questions(&tune_documents, data.n_dev_mentions)?.0),
    };
    let said = |what: &str, found: &Retrieved| {
        let (accuracy, recall) = (100.0 * found.accuracy_at_1, 100.0 * found.recall);
        format!("{what}: {} mentions, accuracy@1 {accuracy:.1}, recall {recall:.1}", found.n_mentions)
    };
    status::say(&said("train", &train));
    status::say(&said("dev", &dev));
    seconds.insert("prepare", started.elapsed().as_secs_f64());

    let paths = [&data.documents, &data.dev_documents, &data.terminology.path];
    let mut provenance = provenance(paths.into(), root)?;
    let weights = format!("{}/{FILE}", experiment.model.bert.display());
    provenance.data_xxh3.insert(weights, hash_file(&folder.join(FILE))?);
    if let (Some(path), Some(first)) = (&data.linker, &first) {
        provenance.data_xxh3.insert(format!("{}/{FILE}", path.display()), format!("{:032x}", first.fingerprint));
    }
    let of = identity(&experiment, &provenance)?;
    let mut objective = Pairs::new(&model, experiment.batch, &questions, *seed)
        .with_held_out(Some((tune_questions.as_ref().unwrap_or(&dev_questions), &tokenizer)));
    if objective.n_taught() == 0 {
        let error = canonym_core::Error::no_data("no mention has the gold concept among its candidates");
        return Err(error.with_hint("documents and terminology must use the same kind of ids"));
    }
    let train_started = Instant::now();
    let n_parameters = parameters.counts().1;
    let stage = Stage { name: STAGE, config: experiment.run, seed: *seed, out: &arguments.out, of: &of };
    let n_taught = objective.n_taught();
    let parameters = stage.train(parameters, &mut objective, n_taught, &mut open_log(&arguments.out, &[STAGE])?)?;
    seconds.insert("train", train_started.elapsed().as_secs_f64());

    let evaluation_started = Instant::now();
    let first = dev_questions.mentions.iter().filter(|question| question.right == Some(0)).count();
    let n_mentions = dev_questions.mentions.len();
    let scorer = PairScorer::new(&model, &parameters, &tokenizer)?;
    let evaluated = Evaluated {
        n_mentions,
        first_linker: first as f64 / n_mentions.max(1) as f64,
        cross_encoder: dev_questions.accuracy(&scorer)?,
    };
    let (before, after) = (100.0 * evaluated.first_linker, 100.0 * evaluated.cross_encoder);
    status::say(&format!("dev accuracy@1 of {n_mentions} mentions: {before:.1}, reranked {after:.1}"));
    seconds.insert("evaluate", evaluation_started.elapsed().as_secs_f64());
    let learned = Some(learned(&experiment, root)?);
    let bundle = CrossBundle { learned, ..CrossBundle::of_model(&model, *retrieval, parameters, tokenizer) };
    let (n_concepts, insert_gold) = (kb.n_concepts(), data.insert_gold);
    let report = Report { seed: *seed, n_parameters, n_concepts, insert_gold, train, dev, evaluated, seen, seconds };
    let (bytes, report) = (bundle.to_bytes(Precision::Single)?, to_json(&report)?);
    write_run(&arguments.out, &experiment, &provenance, &[(FILE, &bytes), (REPORT, report.as_bytes())])?;
    remove_kept(&arguments.out, &[STAGE])
}

/// Record of the training documents, including dev documents if they select the checkpoint.
pub fn learned(experiment: &Experiment, root: &Path) -> canonym_core::Result<Learned> {
    let Experiment { seed, data, run, .. } = experiment;
    let mut all = Learned::default();
    let (train, tune) = held_apart(read(&root.join(&data.documents))?, data.tune_share, *seed)?;
    all.add(source(cross_encoder::SYSTEM, Trained, &data.documents, of_documents(&train)));
    if run.select == Select::Best || run.patience > 0 {
        all.add(match data.tune_share {
            Some(_) => source(cross_encoder::SYSTEM, Tuned, &data.documents, of_documents(&tune)),
            None => of_corpus(cross_encoder::SYSTEM, Tuned, &data.dev_documents, root)?,
        });
    }
    Ok(all)
}

/// The dual encoder that retrieves candidates, if the experiment has one.
fn first_model(data: &DataConfig, retrieval: &Retrieval, root: &Path) -> canonym_core::Result<Option<DualBundle>> {
    match (retrieval.linker, &data.linker) {
        (FirstLinker::DualEncoder, Some(path)) => Ok(Some(DualBundle::open(&existing(path, root))?)),
        (FirstLinker::Bm25 | FirstLinker::Lexical, None) => Ok(None),
        _ => {
            let error = canonym_core::Error::config("`retrieval.linker` and `data.linker` do not match");
            let hint = "`data.linker`, the folder of a dual encoder, requires `retrieval.linker = \"dual-encoder\"`";
            Err(error.with_hint(hint))
        }
    }
}

fn first_linker(
    kb: &Arc<KnowledgeBase>,
    retrieval: &Retrieval,
    first: Option<&DualBundle>,
) -> canonym_core::Result<Box<dyn Linker>> {
    let config = LinkConfig { top_k: retrieval.n_candidates, min_score: 0.0 };
    Ok(match (first, retrieval.linker) {
        (Some(bundle), _) => {
            let config = DualConfig { link: config, min_span: None, nested: false };
            Box::new(dual_linker(kb, bundle, config, None)?)
        }
        (None, FirstLinker::Bm25) => Box::new(Bm25Linker::new(kb.clone(), &retrieval.bm25, config)),
        (None, _) => Box::new(LexicalLinker::new(kb.clone(), LexicalModel::embedded(), config)),
    })
}

fn read(path: &Path) -> canonym_core::Result<Vec<AnnotatedDocument>> {
    let documents: canonym_core::Result<Vec<AnnotatedDocument>> =
        Reader::open(path, None)?.with_on_mismatch(OnMismatch::Drop).collect();
    documents
}

/// Converts mentions to training questions.
struct CorpusQuery<'a> {
    kb: &'a KnowledgeBase,
    linker: &'a dyn Linker,
    model: &'a CrossEncoderConfig,
    tokenizer: &'a Tokenizer,
    data: &'a DataConfig,
    retrieval: &'a Retrieval,
}

impl CorpusQuery<'_> {
    /// Mentions with their candidates, `n` evenly spaced ones or all if 0, and retrieval metrics over all.
    fn questions(&self, documents: &[AnnotatedDocument], n: usize) -> canonym_core::Result<(Questions, Retrieved)> {
        let mut found = Retrieved { n_documents: documents.len(), ..Retrieved::default() };
        let mut gold = Vec::with_capacity(documents.len());
        for document in documents {
            let kept: Vec<(Mention, Option<ConceptId>)> =
                document.annotations.iter().filter_map(|annotation| self.gold(annotation)).collect();
            found.n_left_out += document.annotations.len() - kept.len();
            found.n_mentions += kept.len();
            gold.push(kept);
        }
        let mentions: Vec<Vec<Mention>> =
            gold.iter().map(|kept| kept.iter().map(|(mention, _)| mention.clone()).collect()).collect();
        let analysed = Analysis::all(documents.iter().map(|document| &document.document));
        let links = self.linker.link(&LinkInput::all(&analysed, &mentions))?;
        let mut questions = Questions::default();
        let mut rows: HashMap<String, u32> = HashMap::new();
        let (mut at, mut ranks) = (0, Vec::with_capacity(found.n_mentions));
        for ((document, gold), links) in documents.iter().zip(&gold).zip(links) {
            for ((mention, gold), mut link) in gold.iter().zip(links) {
                let right = self.right(&mut link, *gold);
                found.n_unknown += usize::from(gold.is_none());
                ranks.push(right);
                let (total, next) = (found.n_mentions, at + 1);
                if n == 0 || at * n / total != next * n / total {
                    let text = &document.document.text;
                    questions.mentions.push(self.question(
                        text,
                        mention,
                        &link,
                        right,
                        &mut questions.names,
                        &mut rows,
                    )?);
                }
                at = next;
            }
        }
        let ranks = Ranks::of(&ranks);
        (found.accuracy_at_1, found.recall) = (ranks.accuracy_at(1), ranks.recall());
        Ok((questions, found))
    }

    /// Mention and gold concept of an annotation, by its first id. `None` without an id or for composite mentions.
    fn gold(&self, annotation: &Annotation) -> Option<(Mention, Option<ConceptId>)> {
        let ids = IdSet::parse(&annotation.ids);
        let id = ids.first().filter(|_| annotation.parts.is_empty() && !annotation.spans.is_empty())?;
        Some((annotation.mention(), self.kb.find(id)))
    }

    /// Index of the correct candidate, which is inserted if the experiment says so.
    fn right(&self, link: &mut Link, gold: Option<ConceptId>) -> Option<usize> {
        let concept = gold?;
        let place = link.candidates.iter().position(|candidate| candidate.concept == concept);
        if place.is_some() || !self.data.insert_gold {
            return place;
        }
        link.candidates.truncate(self.retrieval.n_candidates - 1);
        link.candidates.push(Candidate { concept, name: None, p_link: 0.0 });
        Some(link.candidates.len() - 1)
    }

    fn question(
        &self,
        text: &str,
        mention: &Mention,
        link: &Link,
        right: Option<usize>,
        names: &mut Vec<Vec<u32>>,
        rows: &mut HashMap<String, u32>,
    ) -> canonym_core::Result<Question> {
        let hull = mention.hull();
        let window =
            marked_window(self.tokenizer, text, hull.start as usize..hull.end as usize, self.model.n_wordpieces)?;
        let mut candidates = Vec::with_capacity(link.candidates.len());
        for candidate in &link.candidates {
            let name =
                candidate.name.map_or_else(|| self.kb.preferred_name(candidate.concept), |name| self.kb.name(name));
            let row = match rows.get(name) {
                Some(row) => *row,
                None => {
                    names.push(self.model.name_rows(self.tokenizer, name)?);
                    *rows.entry(name.to_owned()).or_insert(names.len() as u32 - 1)
                }
            };
            candidates.push(row);
        }
        Ok(Question { window: window.rows, candidates, right })
    }
}
