//! The dual encoder: mentions in their text beside the names of concepts, on a BERT checkpoint.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use canonym::corpus::{AnnotatedDocument, Annotation, OnMismatch, Reader};
use canonym::kb::KnowledgeBase;
use canonym::link::Marked;
use canonym::link::lexical::LinkConfig;
use canonym::link::model::LexicalModel;
use canonym::text::{Document, Mention, Span};
use canonym_neural::bundle::FILE;
use canonym_neural::checkpoint::read_bert;
use canonym_neural::context::add_marks;
use canonym_neural::dual::bundle::{ConceptNames, DualBundle, DualManifest, FORMAT, SYSTEM};
use canonym_neural::dual::linker::{ConceptRows, DualConfig, DualLinker, begins_word};
use canonym_neural::dual::windows::{WindowConfig, Windower};
use canonym_neural::hybrid::{self, Fusion, Judged};
use canonym_neural::matrix::Matrix;
use canonym_neural::models::dual_encoder::{
    DualEncoderConfig, ENDS, MentionVector, NAME, NameVector, SPANS, SpanSearch, TEXT,
};
use canonym_neural::parameters::{Parameters, Precision};
use canonym_neural::random::for_step;
use canonym_neural::train::linking::{Linking, LinkingConfig, Reading, Target};
use canonym_neural::train::ranks::{Ranks, ranks};
use canonym_neural::train::{Names, RunConfig};
use serde::{Deserialize, Serialize};

use super::sources::{TerminologyConfig, compile_terminology};
use super::stage::{Stage, open_log, remove_kept};
use super::{TrainArguments, checkpoint_folder, provenance, write_bytes, write_text};
use crate::knowledge::TERMINOLOGY;
use crate::progress;
use crate::queries::bare;

/// An experiment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    system: String,
    seed: u64,
    data: DataConfig,
    encoder: EncoderConfig,
    #[serde(default)]
    model: ModelConfig,
    #[serde(default)]
    windows: WindowConfig,
    #[serde(default)]
    batch: LinkingConfig,
    #[serde(default)]
    run: RunConfig,
}

/// What is read, relative to the data root.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataConfig {
    terminology: TerminologyConfig,
    /// What stands for a concept.
    #[serde(default)]
    concepts: ConceptNames,
    /// Corpora that are trained on.
    train: Vec<PathBuf>,
    /// Corpora that are held out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dev: Vec<PathBuf>,
    /// In the place of held-out corpora: every document of this number, such as every tenth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold_out: Option<usize>,
    /// Whether the model weighs words beside vectors when it links; the weight is chosen on the held-out documents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    with_words: bool,
    /// Documents of the held-out corpora that evaluations while training look at; all where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n_dev_in_training: Option<usize>,
}

/// Where both encoders begin.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EncoderConfig {
    /// A checkpoint of BERT: a folder, relative to the data root or to the one in `CANONYM_MODELS`.
    bert: PathBuf,
    /// Whether the embeddings of pieces are trained, too.
    #[serde(default = "yes")]
    train_embeddings: bool,
    /// Whether the encoder of names is trained, too. Where it is not, `batch.all_names` costs little.
    #[serde(default = "yes")]
    train_names: bool,
    /// Dropout; that of the checkpoint where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropout: Option<f32>,
    /// What the steps of layers that no checkpoint has are multiplied with.
    #[serde(default = "one")]
    head_pace: f32,
    /// What the steps of a layer are multiplied with, compared with the layer above it.
    #[serde(default = "one")]
    layer_decay: f32,
}

fn yes() -> bool {
    true
}

fn one() -> f32 {
    1.0
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ModelConfig {
    mention: MentionVector,
    name: NameVector,
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<SpanSearch>,
}

/// The figures of a run.
#[derive(Debug, Serialize)]
struct Report {
    seed: u64,
    n_weights: usize,
    n_concepts: usize,
    n_names: usize,
    train: CorpusReport,
    dev: CorpusReport,
    /// Held-out mentions that are given, among all concepts, by vectors alone.
    linking: Option<Ranks>,
    /// The share of them whose best concept is right, by words alone and by words and vectors.
    fused: BTreeMap<&'static str, f64>,
    /// The weight of the logarithm of shares beside the lexical score, and the accuracy of each.
    by_weight: Vec<(f32, f64)>,
    /// Held-out mentions that are searched for.
    search: Option<SearchReport>,
    seconds: BTreeMap<&'static str, f64>,
}

#[derive(Debug, Default, Serialize)]
struct CorpusReport {
    n_documents: usize,
    n_windows: usize,
    n_mentions: usize,
    /// Mentions that mean no concept.
    n_nil: usize,
    /// Mentions whose concept has no name in the terminology.
    n_unknown: usize,
    /// Mentions of more pieces than are searched for.
    n_too_long: usize,
}

/// Strict scores: places and concepts have to be right.
#[derive(Debug, Serialize)]
struct SearchReport {
    least_span: f32,
    spans_f1: f64,
    precision: f64,
    recall: f64,
    f1: f64,
    /// The same where ends of gold mentions leak into the division of the text, as published.
    leaky_f1: f64,
    /// For each least probability of a span.
    by_least_span: Vec<(f32, f64)>,
}

/// A corpus as it was read.
struct Corpus {
    documents: Vec<AnnotatedDocument>,
    readings: Vec<Reading>,
    report: CorpusReport,
}

/// The one training of this system.
const STAGE: &str = "train";

/// Least probabilities of spans that are tried.
const LEAST_SPANS: [f32; 19] =
    [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];

/// Weights of the logarithm of shares that are tried beside a lexical weight of 1.
const SHARE_WEIGHTS: [f32; 13] = [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 13.0];

/// Runs an experiment.
pub fn run(arguments: &TrainArguments, table: toml::Table) -> anyhow::Result<()> {
    let path = arguments.config.display();
    let experiment: Experiment =
        table.try_into().with_context(|| format!("{path} is no experiment of the dual encoder"))?;
    let (root, out) = (arguments.data_root.as_path(), arguments.out.as_path());
    std::fs::create_dir_all(out).map_err(|error| canonym::Error::io("create", out, error))?;
    let started = Instant::now();
    let mut seconds = BTreeMap::new();
    progress::say("reading checkpoint, terminology and corpora …");
    let kb = compile_terminology(&experiment.data.terminology, root, &out.join(TERMINOLOGY))?;
    let (model, windower, parameters) = begin(&experiment, root)?;
    let rows = ConceptRows::of(&kb, experiment.data.concepts);
    let labels = labels_of(&kb);
    let names = Names {
        pieces: rows.texts(&kb, experiment.data.concepts, &windower),
        concepts: rows.concepts.iter().map(|concept| vec![concept.0]).collect(),
    };
    let (train, dev) = read_corpora(&experiment.data, root)?;
    let longest = match model.search {
        Some(SpanSearch::Exhaustive { longest }) => longest,
        Some(SpanSearch::Tags) | None => usize::MAX,
    };
    let train = prepare(train, &windower, &labels, longest)?;
    let dev = prepare(dev, &windower, &labels, longest)?;
    if train.report.n_mentions == 0 {
        let error = canonym::Error::invalid("the corpora that are trained on have no mentions");
        return Err(error.with_hint("check `data.train`").into());
    }
    if train.report.n_nil + train.report.n_unknown == train.report.n_mentions {
        let error = canonym::Error::invalid("no mention has a concept of the terminology");
        return Err(error.with_hint("ids of corpora and terminology have to be written alike").into());
    }
    seconds.insert("prepare", started.elapsed().as_secs_f64());
    progress::say(&format!(
        "{} weights; {} names; {} windows with {} mentions",
        parameters.counts().0,
        names.pieces.len(),
        train.readings.len(),
        train.report.n_mentions
    ));

    let paths: BTreeSet<&PathBuf> =
        experiment.data.train.iter().chain(&experiment.data.dev).chain([&experiment.data.terminology.path]).collect();
    let provenance = provenance(paths, root)?;
    let config = toml::to_string(&experiment)?;
    let n_watched = match experiment.data.n_dev_in_training {
        Some(n) => n.min(dev.readings.len()),
        None => dev.readings.len(),
    };
    let watched = &dev.readings[..n_watched];
    let mut objective =
        Linking::new(&model, experiment.batch, (&train.readings, &names), experiment.seed).with_held_out(watched);
    let of = format!("{config}{}", serde_json::to_string(&provenance.data_xxh3)?);
    let stage = Stage { name: STAGE, config: experiment.run, seed: experiment.seed, out, of: &of };
    let mut log = open_log(out, &[STAGE])?;
    let train_started = Instant::now();
    let parameters = stage.train(parameters, &mut objective, train.readings.len(), &mut log)?;
    seconds.insert("train", train_started.elapsed().as_secs_f64());

    let n_weights = parameters.counts().0;
    let mut bundle = DualBundle {
        manifest: DualManifest {
            system: SYSTEM.to_owned(),
            format: FORMAT,
            model,
            windows: experiment.windows,
            concepts: experiment.data.concepts,
            normalizer: windower.pieces.normalizer,
            longest_word: windower.pieces.longest_word,
            fusion: Fusion::DENSE,
            lexical: serde_json::from_str(&LexicalModel::embedded().to_json())?,
            least_span: 0.5,
            card: String::new(),
        },
        parameters,
        pieces: windower.pieces.clone(),
        fingerprint: 0,
    };
    let judge_started = Instant::now();
    let mut report = Report {
        seed: experiment.seed,
        n_weights,
        n_concepts: kb.n_concepts(),
        n_names: names.pieces.len(),
        linking: None,
        fused: BTreeMap::new(),
        by_weight: Vec::new(),
        search: None,
        train: train.report,
        dev: dev.report,
        seconds,
    };
    if !dev.readings.is_empty() {
        progress::say("held-out documents …");
        let encoder = bundle.encoder()?;
        let vectors = encoder.encode_names(&names.pieces)?;
        report.linking = Some(ranks(&encoder, &vectors, &dev.readings, &names)?);
        let documents = (dev.documents.as_slice(), experiment.data.with_words);
        judge(&mut bundle, &kb, (&vectors, &labels), documents, &mut report)?;
    }
    report.seconds.insert("judge", judge_started.elapsed().as_secs_f64());
    write_text(out, "config.toml", &config)?;
    write_text(out, "report.json", &(serde_json::to_string_pretty(&report)? + "\n"))?;
    write_text(out, "provenance.json", &(serde_json::to_string_pretty(&provenance)? + "\n"))?;
    write_bytes(out, FILE, &bundle.to_bytes(Precision::Single)?)?;
    remove_kept(out, &[STAGE])
}

/// The model, what divides texts for it, and the weights of the checkpoint in both encoders.
fn begin(experiment: &Experiment, root: &Path) -> anyhow::Result<(DualEncoderConfig, Windower, Parameters)> {
    let EncoderConfig { bert, train_embeddings, train_names, dropout, head_pace, layer_decay } = &experiment.encoder;
    let folder = checkpoint_folder(bert, root)?;
    let mut parameters = Parameters::default();
    let mut rng = for_step(experiment.seed, u64::MAX);
    let (mut config, mut pieces) = read_bert(&folder, TEXT, &mut parameters)?;
    read_bert(&folder, NAME, &mut parameters)?;
    if experiment.windows.marked {
        let (mut of_names, mut same) = (config.clone(), pieces.clone());
        add_marks((&mut of_names, &mut same), NAME, &mut parameters, &mut rng)?;
        add_marks((&mut config, &mut pieces), TEXT, &mut parameters, &mut rng)?;
    }
    if let Some(dropout) = dropout {
        (config.hidden_dropout_prob, config.attention_probs_dropout_prob) = (*dropout, *dropout);
    }
    if experiment.windows.pieces > config.max_position_embeddings {
        let message = format!(
            "windows of {} pieces are longer than the {} that the checkpoint has places for",
            experiment.windows.pieces, config.max_position_embeddings
        );
        return Err(canonym::Error::invalid(message).with_hint("set `windows.pieces`").into());
    }
    let ModelConfig { mention, name, search } = experiment.model;
    if experiment.windows.marked != (mention == MentionVector::First) || (experiment.windows.marked && search.is_some())
    {
        let error = canonym::Error::invalid("marked windows and the vector of a mention do not go together");
        let hint = "`windows.marked` belongs to `model.mention = \"first\"` without `model.search`, and only to it";
        return Err(error.with_hint(hint).into());
    }
    let n_layers = config.num_hidden_layers;
    let model = DualEncoderConfig { bert: config, mention, name, search };
    model.init(&mut parameters, &mut rng);
    model.check(&parameters)?;
    let all: Vec<String> = parameters.iter().map(|(name, _)| name.to_owned()).collect();
    for name in all {
        let inner = name.strip_prefix(TEXT).or_else(|| name.strip_prefix(NAME));
        let below = match inner.map(|inner| (inner, inner.strip_prefix("layer."))) {
            Some((_, Some(rest))) => {
                let layer: usize = rest.split('.').next().and_then(|layer| layer.parse().ok()).unwrap_or(0);
                n_layers - 1 - layer
            }
            Some((inner, None)) if inner.starts_with("embedding.") => n_layers,
            _ => 0,
        };
        let is_head = [ENDS, SPANS].iter().any(|head| name.starts_with(&format!("{head}.")));
        let pace = if is_head { *head_pace } else { layer_decay.powi(below as i32) };
        parameters.pace(&name, pace)?;
        let is_embedding = inner.is_some_and(|inner| inner.starts_with("embedding."));
        if (!train_embeddings && is_embedding) || (!train_names && name.starts_with(NAME)) {
            parameters.freeze(&name)?;
        }
    }
    Ok((model, Windower::new(pieces, experiment.windows)?, parameters))
}

/// The number of the concept of each id, its source left out.
fn labels_of(kb: &KnowledgeBase) -> HashMap<String, u32> {
    let mut labels = HashMap::new();
    for concept in kb.concepts() {
        let raw = kb.raw_id(concept);
        for id in kb.id(concept).split('|').chain(kb.alternative_ids(concept)).chain([raw.as_str()]) {
            labels.entry(bare(id).to_owned()).or_insert(concept.0);
        }
    }
    labels
}

fn read_corpora(data: &DataConfig, root: &Path) -> anyhow::Result<(Vec<AnnotatedDocument>, Vec<AnnotatedDocument>)> {
    let read = |paths: &[PathBuf]| -> canonym::Result<Vec<AnnotatedDocument>> {
        let mut all = Vec::new();
        for path in paths {
            let reader = Reader::open(&root.join(path), None)?.with_on_mismatch(OnMismatch::Drop).with_repairs(true);
            for document in reader {
                all.push(document?);
            }
        }
        Ok(all)
    };
    let (train, dev) = (read(&data.train)?, read(&data.dev)?);
    match data.hold_out {
        None => Ok((train, dev)),
        Some(n) if n > 1 && dev.is_empty() => {
            let mut place = 0;
            Ok(train.into_iter().partition(|_| {
                place += 1;
                place % n != 0
            }))
        }
        Some(_) => {
            let error = canonym::Error::invalid("documents cannot be held out so");
            Err(error.with_hint("give `data.dev`, or `data.hold_out = 10` without it").into())
        }
    }
}

/// The ids of an annotation, in the order in which they stand.
fn ids_of(annotation: &Annotation) -> Vec<&str> {
    let ids = annotation.ids.iter().flat_map(|ids| ids.split(['|', '+'])).map(|id| bare(id.trim()));
    ids.filter(|id| !id.is_empty() && *id != "-1" && *id != "-").collect()
}

fn hull(annotation: &Annotation) -> Span {
    Span { start: annotation.spans[0].start, end: annotation.spans[annotation.spans.len() - 1].end }
}

fn prepare(
    documents: Vec<AnnotatedDocument>,
    windower: &Windower,
    labels: &HashMap<String, u32>,
    longest: usize,
) -> anyhow::Result<Corpus> {
    let mut report = CorpusReport { n_documents: documents.len(), ..CorpusReport::default() };
    let mut readings = Vec::new();
    for document in &documents {
        let spans: Vec<Span> = document.annotations.iter().map(hull).collect();
        let windows = windower.with_mentions(&document.document.text, &spans)?;
        let first = readings.len();
        for (window, rows) in windows.rows.iter().enumerate() {
            let mut words = vec![false];
            if let Some(range) = windows.ranges.get(window) {
                words.extend(begins_word(&document.document.text, &windows.pieces[range.clone()]));
            }
            words.resize(rows.len(), false);
            readings.push(Reading { rows: rows.clone(), mentions: Vec::new(), begins_word: words });
        }
        for (annotation, place) in document.annotations.iter().zip(&windows.places) {
            report.n_mentions += 1;
            let ids = ids_of(annotation);
            let concepts: Vec<u32> = ids.iter().filter_map(|id| labels.get(bare(id)).copied()).collect();
            report.n_nil += usize::from(ids.is_empty());
            report.n_unknown += usize::from(!ids.is_empty() && concepts.is_empty());
            if let Some(place) = place {
                report.n_too_long += usize::from(place.last + 1 - place.first > longest);
                let means_something = !ids.is_empty();
                let target = Target { first: place.first, last: place.last, concepts, means_something };
                readings[first + place.window].mentions.push(target);
            }
        }
    }
    report.n_windows = readings.len();
    Ok(Corpus { documents, readings, report })
}

/// Sets what is set on held-out documents: the weight of vectors beside words, the calibration, the least probability of spans.
fn judge(
    bundle: &mut DualBundle,
    kb: &Arc<KnowledgeBase>,
    (vectors, labels): (&Matrix, &HashMap<String, u32>),
    (documents, with_words): (&[AnnotatedDocument], bool),
    report: &mut Report,
) -> anyhow::Result<()> {
    let config = DualConfig { link: LinkConfig::default(), least_span: None, nested: true };
    let linker = |bundle: &DualBundle| DualLinker::new(kb.clone(), bundle, vectors.clone(), config, None);
    let texts: Vec<Document> = documents.iter().map(|document| document.document.clone()).collect();
    let has_concept = |annotation: &&Annotation| !ids_of(annotation).is_empty();
    let gold: Vec<Vec<&Annotation>> =
        documents.iter().map(|document| document.annotations.iter().filter(has_concept).collect()).collect();
    let mention =
        |annotation: &&Annotation| Mention { spans: annotation.spans.clone(), semantic_type: None, score: 1.0 };
    let mentions: Vec<Vec<Mention>> = gold.iter().map(|gold| gold.iter().map(mention).collect()).collect();
    let marked: Vec<Marked<'_>> =
        texts.iter().zip(&mentions).map(|(document, mentions)| Marked { document, mentions }).collect();
    let concepts = |annotation: &&Annotation| -> Vec<u32> {
        ids_of(annotation).iter().filter_map(|id| labels.get(bare(id)).copied()).collect()
    };
    let right: Vec<Vec<u32>> = gold.iter().flatten().map(concepts).collect();
    let judged = |linker: &DualLinker| -> anyhow::Result<Vec<Judged>> {
        let each = linker.evidence(&marked)?.into_iter().flatten().zip(&right);
        let judge = |(evidence, right): (Vec<hybrid::Evidence>, &Vec<u32>)| {
            evidence.into_iter().map(|one| (one, right.contains(&one.scored.concept.0))).collect()
        };
        Ok(each.map(judge).collect())
    };
    let alone = hybrid::calibrated(&judged(&linker(bundle)?)?, Fusion::DENSE);
    bundle.manifest.fusion = Fusion { lexical: 1.0, ..Fusion::DENSE };
    let both = judged(&linker(bundle)?)?;
    report.by_weight = SHARE_WEIGHTS.into_iter().zip(hybrid::accuracies(&both, &SHARE_WEIGHTS)).collect();
    let fusion = hybrid::calibrated(&both, hybrid::fit_fusion(&both, &SHARE_WEIGHTS));
    let accuracy = |fusion: &Fusion| hybrid::accuracy(&both, fusion);
    report.fused = BTreeMap::from([
        ("lexical", accuracy(&Fusion::LEXICAL)),
        ("vectors", accuracy(&Fusion::DENSE)),
        ("both", accuracy(&fusion)),
    ]);
    bundle.manifest.fusion = if with_words { fusion } else { alone };
    if bundle.manifest.model.search.is_some() {
        report.search = Some(search(bundle, &linker(bundle)?, &texts, documents, labels)?);
    }
    Ok(())
}

/// Finds and links mentions for each least probability of spans, and keeps the best.
fn search(
    bundle: &mut DualBundle,
    linker: &DualLinker,
    texts: &[Document],
    documents: &[AnnotatedDocument],
    labels: &HashMap<String, u32>,
) -> anyhow::Result<SearchReport> {
    let gold: Vec<Vec<(Span, Vec<u32>)>> = documents
        .iter()
        .map(|document| {
            let one = |annotation: &Annotation| {
                let concepts = ids_of(annotation).iter().filter_map(|id| labels.get(bare(id)).copied()).collect();
                (hull(annotation), concepts)
            };
            let known = |annotation: &&Annotation| !ids_of(annotation).is_empty();
            document.annotations.iter().filter(known).map(one).collect()
        })
        .collect();
    let n_gold: usize = gold.iter().map(Vec::len).sum();
    let scored = |borders: &[Vec<Span>]| -> anyhow::Result<Vec<(f32, usize, usize, usize)>> {
        let found = linker.find(texts, borders, LEAST_SPANS[0])?;
        let mention = |(span, _): &(Span, f32)| Mention::contiguous(*span);
        let mentions: Vec<Vec<Mention>> = found.iter().map(|found| found.iter().map(mention).collect()).collect();
        let marked: Vec<Marked<'_>> =
            texts.iter().zip(&mentions).map(|(document, mentions)| Marked { document, mentions }).collect();
        let links = canonym::link::Linker::link(linker, &marked)?;
        let mut rows = Vec::new();
        for least in LEAST_SPANS {
            let (mut n_found, mut n_spans, mut n_right) = (0, 0, 0);
            for ((found, links), gold) in found.iter().zip(&links).zip(&gold) {
                for ((span, probability), link) in found.iter().zip(links) {
                    if *probability < least {
                        continue;
                    }
                    n_found += 1;
                    let known = gold.iter().find(|(own, _)| own == span);
                    n_spans += usize::from(known.is_some());
                    let best = link.candidates.first().map(|best| best.concept.0);
                    n_right +=
                        usize::from(known.is_some_and(|(_, right)| best.is_some_and(|best| right.contains(&best))));
                }
            }
            rows.push((least, n_found, n_spans, n_right));
        }
        Ok(rows)
    };
    let f1 = |n_right: usize, n_found: usize| 2.0 * n_right as f64 / (n_found + n_gold).max(1) as f64;
    let rows = scored(&[])?;
    let best = rows.iter().copied().max_by(|left, right| f1(left.3, left.1).total_cmp(&f1(right.3, right.1)));
    let (least_span, n_found, n_spans, n_right) = best.expect("some were tried");
    bundle.manifest.least_span = least_span;
    let borders: Vec<Vec<Span>> =
        documents.iter().map(|document| document.annotations.iter().map(hull).collect()).collect();
    let leaky = scored(&borders)?.into_iter().map(|(_, n_found, _, n_right)| f1(n_right, n_found));
    Ok(SearchReport {
        least_span,
        spans_f1: f1(n_spans, n_found),
        precision: n_right as f64 / n_found.max(1) as f64,
        recall: n_right as f64 / n_gold.max(1) as f64,
        f1: f1(n_right, n_found),
        leaky_f1: leaky.fold(0.0, f64::max),
        by_least_span: rows.iter().map(|(least, n_found, _, n_right)| (*least, f1(*n_right, *n_found))).collect(),
    })
}
