//! Inputs of `canonym eval` and `canonym compare`: gold, predictions, training annotations, names of a terminology.

use canonym_neural::system::terminology;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat};
use canonym_core::eval::ids::{IdSet, known_ids};
use canonym_core::eval::pairing::{Paired, pair};
use canonym_core::eval::queries::{Answer, Answers, Query, read_answers, read_queries, to_mentions};
use canonym_core::eval::ranking::{Composite, RankedMention};
use canonym_core::eval::strata::training_name;
use canonym_core::eval::warnings;
use canonym_core::input::Input;
use canonym_core::kb::subset::Subset;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::recognise::Nested;
use canonym_core::text::normalise::fold;

use crate::progress;
use crate::reading::ReadArguments;
use crate::system::Mentions;
use canonym_neural::system::linked::{System, SystemConfig};
use canonym_neural::system::{Models, NameLinker};

/// Maximum number of document ids in a warning.
const MAX_NAMED: usize = 3;

/// Candidates per mention if a model is run.
const TOP_K: usize = 20;

/// Format of a file of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalFormat {
    /// Detect the format.
    Auto,
    /// A corpus format.
    Corpus(CorpusFormat),
    /// BioSyn queries, or answers of `canonym map`.
    Biosyn,
}

/// Parses the name of a format.
pub fn parse_format(name: &str) -> Result<EvalFormat, String> {
    match name {
        "auto" => Ok(EvalFormat::Auto),
        "biosyn" => Ok(EvalFormat::Biosyn),
        _ => name.parse().map(EvalFormat::Corpus).map_err(|error: canonym_core::Error| {
            let hint = error.hint().map(|hint| format!("; {hint}, auto, biosyn")).unwrap_or_default();
            format!("{error}{hint}")
        }),
    }
}

/// How to read an annotation file.
#[derive(Debug, Clone, Copy)]
pub struct ReadAs {
    /// Format of the file.
    pub format: EvalFormat,
    /// How to handle faulty input.
    pub reading: ReadArguments,
}

/// Gold annotations.
pub enum Gold {
    /// Annotated documents.
    Documents(Vec<AnnotatedDocument>),
    /// BioSyn queries.
    Queries(Vec<Query>),
}

impl Gold {
    /// Reads documents, or queries if the format is BioSyn.
    pub fn read(path: &Path, read_as: ReadAs) -> canonym_core::Result<Gold> {
        match read_as.format {
            EvalFormat::Biosyn => read_queries(&mut Input::open(path)?).map(Gold::Queries),
            _ => documents(path, read_as).map(Gold::Documents),
        }
    }

    /// Whether the texts consist of mentions only and so give a mention detector no context.
    pub fn is_mentions_only(&self) -> bool {
        let Gold::Documents(documents) = self else { return false };
        let is_covered = |document: &AnnotatedDocument| {
            let spans = || document.annotations.iter().flat_map(|annotation| &annotation.spans);
            let inside = |at: usize| spans().any(|span| (span.start as usize..span.end as usize).contains(&at));
            document.document.text.char_indices().all(|(at, letter)| !letter.is_alphanumeric() || inside(at))
        };
        documents.iter().any(|document| !document.annotations.is_empty()) && documents.iter().all(is_covered)
    }

    /// The text and ids of every gold mention.
    fn mentions(&self) -> Vec<(String, IdSet)> {
        match self {
            Gold::Documents(documents) => {
                let annotations = documents.iter().flat_map(|document| &document.annotations);
                annotations.map(|annotation| (annotation.text.clone(), IdSet::parse(&annotation.ids))).collect()
            }
            Gold::Queries(queries) => queries.iter().map(|query| (query.parts.join("|"), query.ids.clone())).collect(),
        }
    }
}

/// Reads all documents of a file.
pub fn documents(path: &Path, read_as: ReadAs) -> canonym_core::Result<Vec<AnnotatedDocument>> {
    let format = match read_as.format {
        EvalFormat::Corpus(format) => Some(format),
        EvalFormat::Auto | EvalFormat::Biosyn => None,
    };
    read_as.reading.open(path, format)?.collect()
}

/// Training annotations.
#[derive(Debug, Clone, Default)]
pub struct Training {
    /// Concept ids.
    pub ids: HashSet<String>,
    /// Pairs of a name and an id.
    pub names: HashSet<(String, String)>,
}

/// Reads training annotations; `None` without files.
pub fn training(paths: &[PathBuf], read_as: ReadAs) -> anyhow::Result<Option<Training>> {
    let mut training = Training::default();
    for path in paths {
        let gold = Gold::read(path, read_as)
            .with_context(|| format!("cannot read training annotations from {}", path.display()))?;
        for (text, ids) in gold.mentions() {
            training.ids.extend(ids.iter().map(str::to_owned));
            training.names.extend(ids.iter().map(|id| training_name(&text, id)));
        }
    }
    Ok((!paths.is_empty()).then_some(training))
}

/// The ids of a terminology, to compute how many gold concepts it contains.
#[derive(Debug, Clone, Default)]
pub struct KnownConcepts {
    /// Name in the report.
    pub name: String,
    /// Ids as written by `canonym_core::eval::ids::known_ids`.
    pub ids: HashSet<String>,
}

impl KnownConcepts {
    /// The ids of a knowledge base; as written in the source if `raw_ids`.
    pub fn of(kb: &KnowledgeBase, raw_ids: bool) -> KnownConcepts {
        let ids: Vec<String> = kb.concepts().flat_map(|concept| terminology::all_ids(kb, concept, raw_ids)).collect();
        KnownConcepts { name: kb.meta().name.clone(), ids: known_ids(ids.iter().map(String::as_str)) }
    }
}

/// For each gold mention text, the ids of concepts with that name, ignoring case and punctuation.
pub fn names_of(gold: &Gold, kb: &KnowledgeBase, raw_ids: bool) -> HashMap<String, Vec<IdSet>> {
    let mut found = HashMap::new();
    for (text, _) in gold.mentions() {
        if found.contains_key(&text) {
            continue;
        }
        let Some(form) = kb.find_form(&fold(&text)) else { continue };
        let mut concepts: Vec<_> = kb.names_of_form(form).map(|name| kb.concept_of(name)).collect();
        concepts.sort_unstable();
        concepts.dedup();
        let ids = |concept| IdSet::parse(&terminology::all_ids(kb, concept, raw_ids));
        found.insert(text, concepts.into_iter().map(ids).collect());
    }
    found
}

/// Reports how many gold mentions cannot be linked because the terminology lacks their ids.
pub fn tell_unknown(gold: &Gold, predictions: &Predictions<'_>) {
    if let Predictions::Run { kb, raw_ids, .. } = predictions {
        let sets: Vec<IdSet> = gold.mentions().into_iter().map(|(_, ids)| ids).collect();
        let known = KnownConcepts::of(kb, *raw_ids);
        let unknown = canonym_core::eval::unknown::unknown("gold mentions", sets.iter(), &known.ids);
        // If the prefixes differ, the comparison with the predictions reports it with a hint.
        if let Some(unknown) = unknown.filter(|unknown| !unknown.is_of_prefixes()) {
            unknown.lines(&known.name).iter().for_each(|line| progress::say(line));
        }
    }
}

/// Where predictions come from.
pub enum Predictions<'a> {
    /// A file.
    File(&'a Path, ReadAs),
    /// A system to run.
    Run {
        /// Target terminology.
        kb: Arc<KnowledgeBase>,
        /// Trained parts.
        models: Box<Models>,
        /// Where mentions come from.
        mentions: Mentions,
        /// Concept filter; `None` for all concepts.
        subset: Option<Arc<Subset>>,
        /// Whether gold mention boundaries leak into the tokenisation.
        leaky_tokenisation: bool,
        /// Whether ids are written as in the source.
        raw_ids: bool,
    },
}

/// Ranked predictions for the queries; warns if the kinds of ids differ.
pub fn ranked(
    queries: &[Query],
    predictions: &Predictions<'_>,
    composite: Composite,
) -> anyhow::Result<Vec<RankedMention>> {
    let answers = match predictions {
        Predictions::File(path, _) => {
            Input::open(path).and_then(|mut input| read_answers(&mut input)).context("cannot read predictions")?
        }
        Predictions::Run { kb, models, subset, raw_ids, .. } => {
            let shown = |concept| terminology::shown_id(kb, concept, *raw_ids);
            answer(kb, models, subset.clone(), queries, &shown)?
        }
    };
    let ranked = to_mentions(queries, &answers, composite).context("cannot match predictions to queries")?;
    let first = |mention: &RankedMention| mention.parts.iter().filter_map(|part| part.first()).cloned().collect();
    let (gold, predicted): (Vec<IdSet>, Vec<Vec<IdSet>>) =
        ranked.iter().map(|mention| (mention.gold.clone(), first(mention))).unzip();
    warnings::of_ids(gold.iter(), predicted.iter().flatten()).iter().for_each(|line| progress::say(line));
    Ok(ranked)
}

/// Runs the model on every part of every query.
fn answer(
    kb: &Arc<KnowledgeBase>,
    models: &Models,
    subset: Option<Arc<Subset>>,
    queries: &[Query],
    shown_id: &dyn Fn(ConceptId) -> String,
) -> anyhow::Result<Answers> {
    let names: Vec<&String> = queries.iter().flat_map(|query| &query.parts).collect();
    let config = LinkConfig { top_k: TOP_K, ..LinkConfig::default() };
    let links = NameLinker::new(kb, models, config, subset)?.link_names(&names)?;
    let rows = names.into_iter().zip(links).zip(1..).map(|((name, link), line)| Answer {
        query: name.clone(),
        candidates: link.candidates.iter().map(|candidate| IdSet::parse_one(&shown_id(candidate.concept))).collect(),
        line,
        score: link.candidates.first().map(|best| best.p_link),
        name: link.candidates.first().map_or_else(String::new, |best| kb.preferred_name(best.concept).to_owned()),
    });
    Ok(Answers { path: PathBuf::from("the model"), rows: rows.collect() })
}

/// Predictions for the documents, paired with gold; warns of mismatches.
pub fn paired(
    gold: &[AnnotatedDocument],
    predictions: &Predictions<'_>,
) -> anyhow::Result<(Vec<AnnotatedDocument>, Paired)> {
    let predicted = match predictions {
        Predictions::File(path, read_as) => documents(path, *read_as).context("cannot read predictions")?,
        Predictions::Run { kb, models, mentions, subset, raw_ids, leaky_tokenisation } => {
            let config = SystemConfig {
                mentions: (*mentions).into(),
                top_k: TOP_K,
                min_score: None,
                nested: Nested::default(),
                raw_ids: *raw_ids,
                subset: subset.clone(),
                leaky_tokenisation: *leaky_tokenisation,
            };
            System::new(kb, Models::clone(models), &config)?.link(gold.to_vec())?
        }
    };
    let paired = pair(gold, &predicted).context("cannot match predictions to gold")?;
    warn_about(&paired);
    Ok((predicted, paired))
}

fn warn_about(paired: &Paired) {
    let warn = |ids: &[String], what: &str| {
        if !ids.is_empty() {
            let rest = if ids.len() > MAX_NAMED { ", …" } else { "" };
            let named = ids[..ids.len().min(MAX_NAMED)].join(", ");
            progress::say(&format!("warning: {what}: {} ({named}{rest})", ids.len()));
        }
    };
    if paired.documents.iter().all(|document| document.gold.is_empty()) {
        progress::say("warning: the gold file has no annotations; if it should, specify its format with `--format`");
    }
    let gold = || paired.documents.iter().flat_map(|document| &document.gold);
    let predicted = paired.documents.iter().flat_map(|document| &document.predicted);
    if gold().next().is_some() {
        let lines = warnings::of_ids(gold().map(|entry| &entry.ids), predicted.map(|entry| &entry.ids));
        lines.iter().for_each(|line| progress::say(line));
    }
    warn(&paired.missing, "gold documents without predictions");
    warn(&paired.different_texts, "predicted documents whose text differs from gold (offsets may not match)");
}
