//! `canonym eval`: scores predictions, of a file or of a model that is run here, against gold annotations.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use canonym::corpus::{AnnotatedDocument, CorpusFormat, OnMismatch, Reader};
use canonym::eval::bootstrap::{BootstrapConfig, SplitMix64};
use canonym::eval::ids::{IdPolicy, IdSet, known_ids};
use canonym::eval::matching::{MatchConfig, Measure};
use canonym::eval::pairing::{Paired, pair};
use canonym::eval::queries::{Answer, Answers, Query, read_answers, read_queries, to_mentions};
use canonym::eval::ranking::{Composite, RankUnit};
use canonym::eval::report::{EvalConfig, Report, evaluate_pairs, evaluate_ranking};
use canonym::input::Input;
use canonym::kb::KnowledgeBase;
use canonym::kb::subset::Subset;
use canonym::link::lexical::{LexicalLinker, LinkConfig};

use crate::errors::wrong_usage;
use crate::filter::FilterArguments;
use crate::knowledge::Models;
use crate::system::{Mentions, System, SystemConfig};
use crate::{knowledge, output, progress};

/// The most document ids that a warning names.
const MAX_NAMED: usize = 3;

/// Score predictions against gold annotations.
#[derive(Debug, clap::Args)]
pub struct EvalArgs {
    /// The gold annotations: a corpus, or BioSyn queries under `--format biosyn`.
    #[arg(long, visible_alias = "data", value_name = "FILE")]
    pub gold: PathBuf,
    /// The predictions: the output of `canonym link`, or of `canonym map` under `--format biosyn`.
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub pred: Option<PathBuf>,
    /// Run this model on the texts of the gold file and score what it says, where no predictions are given: `default`,
    /// `lexical`, or a bundle.
    #[arg(long, value_name = "BUNDLE")]
    pub model: Option<String>,
    /// Whether the model finds the mentions or links those of the gold file.
    #[arg(long, value_enum, default_value = "detect")]
    pub mentions: Mentions,
    /// The format of both files: auto, a corpus format, or biosyn.
    #[arg(long, value_name = "F", default_value = "auto", value_parser = parse_format)]
    pub format: EvalFormat,
    /// The format of the predictions, where it is another one.
    #[arg(long, value_name = "F", value_parser = parse_format)]
    pub pred_format: Option<EvalFormat>,
    /// When ids agree: any in common, the first gold id, or exactly the same.
    #[arg(long, value_name = "any|first|exact", default_value = "any")]
    pub ids: IdPolicy,
    /// Measures to report, separated by commas; all of them where not given.
    #[arg(long = "match", value_name = "MEASURE", value_delimiter = ',')]
    pub measures: Vec<Measure>,
    /// How mentions of several parts are ranked: all parts right, the first part, or left out.
    #[arg(long, value_name = "all|first|drop", default_value = "all")]
    pub composite: Composite,
    /// What takes a place in a ranking.
    #[arg(long, value_name = "names|entities", default_value = "names")]
    pub unit: RankUnit,
    /// Resolve overlapping predictions before the weak measure: the longest, then the most confident, stay.
    #[arg(long)]
    pub bat: bool,
    /// Report each semantic type on its own, too.
    #[arg(long)]
    pub by_type: bool,
    /// Annotations that training saw; what it did not see is reported as zero-shot. May be given several times.
    #[arg(long, value_name = "FILE")]
    pub train_gold: Vec<PathBuf>,
    /// Resamples of documents for the 95% intervals; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub resamples: usize,
    /// The seed of the resamples.
    #[arg(long, value_name = "N", default_value_t = 13)]
    pub seed: u64,
    /// The knowledge base of the predictions, for the share of gold that it can reach; `starter` is the embedded one.
    #[arg(long, value_name = "FILE.kb")]
    pub kb: Option<PathBuf>,
    /// What the report calls the system.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub system: String,
    /// What the report calls the corpus.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub dataset: String,
    /// What the report calls the part of the corpus.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub split: String,
    #[command(flatten)]
    pub filter: FilterArguments,
    /// Leave out annotations whose offsets do not fit their text.
    #[arg(long)]
    pub skip_bad_offsets: bool,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
}

/// How the files of an evaluation are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalFormat {
    /// Each file shows its format.
    Auto,
    /// A corpus format.
    Corpus(CorpusFormat),
    /// BioSyn queries, and answers of `canonym map`.
    Biosyn,
}

impl EvalFormat {
    fn corpus(self) -> Option<CorpusFormat> {
        match self {
            EvalFormat::Corpus(format) => Some(format),
            EvalFormat::Auto | EvalFormat::Biosyn => None,
        }
    }
}

/// The terminology of an evaluation, for the share of gold that it can reach.
#[derive(Debug, Clone, Default)]
pub struct KnownConcepts {
    /// What the report calls it.
    pub name: String,
    /// Its ids, as `canonym::eval::ids::known_ids` writes them.
    pub ids: HashSet<String>,
}

impl KnownConcepts {
    fn of(kb: &KnowledgeBase) -> KnownConcepts {
        let ids = kb.concepts().flat_map(|concept| kb.alternative_ids(concept).chain([kb.id(concept)]));
        KnownConcepts { name: kb.meta().name.clone(), ids: known_ids(ids) }
    }
}

/// Scores two files and prints the report.
pub fn run(args: &EvalArgs) -> anyhow::Result<()> {
    check(args).map_err(wrong_usage)?;
    let kb = args.kb.as_deref().map(|path| knowledge::open(Some(path))).transpose()?;
    let report = judge(args, kb)?;
    if args.json { output::print_json(&report) } else { output::print(&report.table()) }
}

fn judge(args: &EvalArgs, kb: Option<Arc<KnowledgeBase>>) -> anyhow::Result<Report> {
    let predictions = match (&args.pred, &args.model) {
        (Some(path), _) => Predictions::File(path),
        (None, model) => {
            let models = knowledge::models(model.as_deref().unwrap_or("default"))?;
            Predictions::Run(kb.clone().map_or_else(|| knowledge::open(None), Ok)?, Box::new(models))
        }
    };
    let kb = kb.map(|kb| KnownConcepts::of(&kb));
    let (kb_name, kb_ids) = kb.map_or_else(Default::default, |kb| (kb.name, Some(kb.ids)));
    let config = EvalConfig {
        matching: MatchConfig { ids: args.ids, resolve_overlaps: args.bat },
        measures: args.measures.clone(),
        unit: args.unit,
        composite: args.composite,
        by_type: args.by_type,
        kb_ids,
        training_ids: training_ids(args)?,
        bootstrap: BootstrapConfig { n_resamples: args.resamples, ..BootstrapConfig::default() },
    };
    let mut rng = SplitMix64::new(args.seed);
    let mut report = if args.format == EvalFormat::Biosyn {
        judge_queries(args, &predictions, &config, &mut rng)?
    } else {
        let paired = read_pairs(args, &predictions)?;
        warn_of(&paired);
        evaluate_pairs(&paired, &config, &mut rng)
    };
    report.system = args.system.clone();
    report.dataset = args.dataset.clone();
    report.split = args.split.clone();
    if let Some(kb) = &mut report.kb {
        kb.name = kb_name;
    }
    Ok(report)
}

/// Refuses options that would be passed over.
fn check(args: &EvalArgs) -> canonym::Result<()> {
    if args.gold == Path::new("-") && args.pred.as_deref() == Some(Path::new("-")) {
        return Err(canonym::Error::invalid("gold and predictions cannot both come from standard input"));
    }
    if args.pred.is_some() && args.filter.is_given() {
        let error = canonym::Error::invalid("filters of concepts have no meaning for predictions of a file");
        return Err(error.with_hint("leave `--pred` out to run a model, or filter where the predictions are made"));
    }
    let of_queries = [("--composite", args.composite != Composite::All)];
    let of_spans = [
        ("--pred-format", args.pred_format.is_some()),
        ("--match", !args.measures.is_empty()),
        ("--bat", args.bat),
        ("--by-type", args.by_type),
    ];
    let biosyn = args.format == EvalFormat::Biosyn;
    let refused: &[(&str, bool)] = if biosyn { &of_spans } else { &of_queries };
    if let Some((option, _)) = refused.iter().find(|(_, given)| *given) {
        let files =
            if biosyn { "BioSyn queries, which have no spans" } else { "annotated documents, only for queries" };
        let error = canonym::Error::invalid(format!("`{option}` has no meaning for {files}"));
        return Err(error.with_hint(if biosyn {
            "leave it out"
        } else {
            "give `--format biosyn`, or choose by `--ids`"
        }));
    }
    if args.pred_format == Some(EvalFormat::Biosyn) {
        return Err(canonym::Error::invalid("predictions cannot be BioSyn queries").with_hint("give `--format biosyn`"));
    }
    Ok(())
}

fn judge_queries(
    args: &EvalArgs,
    predictions: &Predictions<'_>,
    config: &EvalConfig,
    rng: &mut SplitMix64,
) -> anyhow::Result<Report> {
    let queries = Input::open(&args.gold).and_then(|mut input| read_queries(&mut input)).context("cannot read gold")?;
    let answers = match predictions {
        Predictions::File(path) => {
            Input::open(path).and_then(|mut input| read_answers(&mut input)).context("cannot read predictions")?
        }
        Predictions::Run(kb, models) => answer(kb, models, args.filter.choose(kb)?, &queries),
    };
    let mentions = to_mentions(&queries, &answers, args.composite).context("cannot pair queries and answers")?;
    Ok(evaluate_ranking(&mentions, config, rng))
}

/// Where predictions come from.
enum Predictions<'a> {
    /// A file.
    File(&'a Path),
    /// A system that is run here.
    Run(Arc<KnowledgeBase>, Box<Models>),
}

/// Candidates that are ranked, where the model runs here.
const TOP_K: usize = 20;

/// What the model says of every part of every query.
fn answer(kb: &Arc<KnowledgeBase>, models: &Models, subset: Option<Arc<Subset>>, queries: &[Query]) -> Answers {
    let names: Vec<&String> = queries.iter().flat_map(|query| &query.parts).collect();
    let config = LinkConfig { top_k: TOP_K, ..LinkConfig::default() };
    let links = LexicalLinker::new(kb.clone(), models.ranking.clone(), config).within(subset).link_names(&names);
    let rows = names.into_iter().zip(links).zip(1..).map(|((name, link), line)| Answer {
        query: name.clone(),
        candidates: link.candidates.iter().map(|candidate| IdSet::parse_one(kb.id(candidate.concept))).collect(),
        line,
    });
    Answers { path: PathBuf::from("the model"), rows: rows.collect() }
}

fn read_pairs(args: &EvalArgs, predictions: &Predictions<'_>) -> anyhow::Result<Paired> {
    let gold = read_documents(&args.gold, args.format, args).context("cannot read gold")?;
    let predicted = match predictions {
        Predictions::File(path) => {
            read_documents(path, args.pred_format.unwrap_or(args.format), args).context("cannot read predictions")?
        }
        Predictions::Run(kb, models) => {
            let subset = args.filter.choose(kb)?;
            let config = SystemConfig {
                mentions: args.mentions,
                top_k: TOP_K,
                min_score: None,
                nested: false,
                raw_ids: false,
                subset,
            };
            System::new(kb, Models::clone(models), &config).link(gold.clone())?
        }
    };
    pair(&gold, &predicted).context("cannot pair gold and predictions")
}

fn read_documents(path: &Path, format: EvalFormat, args: &EvalArgs) -> canonym::Result<Vec<AnnotatedDocument>> {
    let on_mismatch = if args.skip_bad_offsets { OnMismatch::Drop } else { OnMismatch::Error };
    let mut reader = Reader::open(path, format.corpus())?.with_on_mismatch(on_mismatch);
    let documents = reader.by_ref().collect::<canonym::Result<Vec<AnnotatedDocument>>>()?;
    let n_bad = reader.counts().n_bad_offsets;
    if n_bad > 0 {
        progress::say(&format!("left out {n_bad} annotations of {} with wrong offsets", path.display()));
    }
    Ok(documents)
}

/// The ids in the annotations that training saw.
fn training_ids(args: &EvalArgs) -> anyhow::Result<Option<HashSet<String>>> {
    if args.train_gold.is_empty() {
        return Ok(None);
    }
    let mut ids = HashSet::new();
    for path in &args.train_gold {
        let context = || format!("cannot read training annotations of {}", path.display());
        if args.format == EvalFormat::Biosyn {
            let queries = Input::open(path).and_then(|mut input| read_queries(&mut input)).with_context(context)?;
            ids.extend(queries.iter().flat_map(|query| query.ids.iter().map(str::to_owned)));
            continue;
        }
        let documents = read_documents(path, args.format, args).with_context(context)?;
        let annotations = documents.iter().flat_map(|document| &document.annotations);
        ids.extend(known_ids(annotations.flat_map(|annotation| annotation.ids.iter().map(String::as_str))));
    }
    Ok(Some(ids))
}

fn warn_of(paired: &Paired) {
    let warn = |ids: &[String], what: &str| {
        if !ids.is_empty() {
            let rest = if ids.len() > MAX_NAMED { ", …" } else { "" };
            let named = ids[..ids.len().min(MAX_NAMED)].join(", ");
            progress::say(&format!("warning: {what}: {} ({named}{rest})", ids.len()));
        }
    };
    if paired.documents.iter().all(|document| document.gold.is_empty()) {
        progress::say("warning: gold has no annotations; name its format with `--format` if it has");
    }
    warn(&paired.missing, "gold documents without predictions");
    warn(&paired.different_texts, "predicted documents with another text, of which offsets may not agree");
}

fn parse_format(name: &str) -> Result<EvalFormat, String> {
    match name {
        "auto" => Ok(EvalFormat::Auto),
        "biosyn" => Ok(EvalFormat::Biosyn),
        _ => name.parse().map(EvalFormat::Corpus).map_err(|error: canonym::Error| {
            let hint = error.hint().map(|hint| format!("; {hint}, auto, biosyn")).unwrap_or_default();
            format!("{error}{hint}")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::fs;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: EvalArgs,
    }

    /// The report on two files with the given names and texts.
    fn judged(gold: (&str, &str), pred: (&str, &str), options: &[&str]) -> anyhow::Result<Report> {
        let folder = tempfile::tempdir()?;
        let (gold_path, pred_path) = (folder.path().join(gold.0), folder.path().join(pred.0));
        fs::write(&gold_path, gold.1)?;
        fs::write(&pred_path, pred.1)?;
        let (gold_path, pred_path) = (gold_path.display().to_string(), pred_path.display().to_string());
        let mut words = vec!["eval", "--gold", gold_path.as_str(), "--pred", pred_path.as_str()];
        words.extend(options);
        let args = Cli::try_parse_from(words)?.args;
        check(&args)?;
        judge(&args, None)
    }

    const GOLD: (&str, &str) =
        ("gold.pubtator", "7|t|Fever and cough.\n7\t0\t5\tFever\tDisease\tD1\n7\t10\t15\tcough\tDisease\tD2\n");
    const LINKS: (&str, &str) = (
        "pred.jsonl",
        concat!(
            r#"{"id":"7","text":"Fever and cough.","annotations":[{"spans":[[0,5]],"text":"Fever","score":0.9,"nil":false,"#,
            r#""candidates":[{"id":"MESH:D1","name":"Fever","score":0.9}]},{"spans":[[10,15]],"text":"cough","score":0.4,"#,
            r#""nil":true,"candidates":[{"id":"MESH:D2","name":"Cough","score":0.4}]}]}"#
        ),
    );
    const QUERIES: (&str, &str) = ("dev.concept", "7||0|5||Disease||fever|ague||D1|D2\n");
    const ANSWERS: (&str, &str) = (
        "map.jsonl",
        "{\"query\":\"fever\",\"candidates\":[{\"id\":\"D1\"}]}\n{\"query\":\"ague\",\"candidates\":[]}\n",
    );

    #[test]
    fn links_are_judged_as_spans_and_as_rankings() -> anyhow::Result<()> {
        let report = judged(GOLD, LINKS, &["--by-type"])?;
        assert_eq!((report.metrics[&Measure::Strict].precision, report.metrics[&Measure::Strict].recall), (1.0, 0.5));
        assert_eq!(report.metrics[&Measure::MentionRecognition].f1, 1.0);
        assert_eq!(report.ranking.expect("links carry candidates").all.accuracy[&1], 1.0);
        assert_eq!(report.by_type["Disease"].counts[&Measure::Strict].n_pred, 1);
        Ok(())
    }

    #[test]
    fn queries_are_judged_by_their_parts() -> anyhow::Result<()> {
        let accuracy = |options: &[&str]| -> anyhow::Result<f64> {
            let report = judged(QUERIES, ANSWERS, options)?;
            Ok(report.ranking.expect("queries are ranked").all.accuracy[&1])
        };
        assert_eq!(accuracy(&["--format", "biosyn"])?, 0.0);
        assert_eq!(accuracy(&["--format", "biosyn", "--composite", "first"])?, 1.0);
        Ok(())
    }

    #[test]
    fn options_that_would_be_passed_over_are_refused() {
        let message = |result: anyhow::Result<Report>| result.expect_err("refused").to_string();
        assert!(message(judged(GOLD, LINKS, &["--composite", "first"])).contains("--composite"));
        assert!(message(judged(QUERIES, ANSWERS, &["--format", "biosyn", "--bat"])).contains("--bat"));
        assert!(message(judged(GOLD, LINKS, &["--match", "loose"])).contains("unknown measure `loose`"));
        assert!(message(judged(GOLD, LINKS, &["--format", "csv"])).contains("biosyn"));
    }
}
