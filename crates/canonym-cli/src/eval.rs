//! `canonym eval`: scores predictions, from a file or of a model, against gold annotations.

pub mod inputs;
pub mod seen;

use crate::options;
use crate::progress;
use canonym_neural::status::Stage;
use canonym_neural::system::Models;
use canonym_neural::system::linked::MentionSource;
use canonym_neural::system::terminology;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use canonym_core::eval::bootstrap::{BootstrapConfig, SplitMix64};
use canonym_core::eval::curves::CurveConfig;
use canonym_core::eval::folds::over_reports;
use canonym_core::eval::ids::IdPolicy;
use canonym_core::eval::matching::{MatchConfig, Measure};
use canonym_core::eval::protocol::{self, Protocol};
use canonym_core::eval::ranking::{Composite, RankUnit};
use canonym_core::eval::report::{EvalConfig, Report, evaluate_pairs, evaluate_ranking};
use canonym_core::eval::strata::Background;
use canonym_core::eval::warnings;
use canonym_core::kb::KnowledgeBase;

use self::inputs::{EvalFormat, Gold, KnownConcepts, Predictions, ReadAs, Training, parse_format};
use crate::errors::{parse, usage, wrong_usage};
use crate::eval_report::{Evaluated, ReportArgs, Terms};
use crate::filter::FilterArguments;
use crate::reading::ReadArguments;
use crate::system::Mentions;
use crate::{eval_report, output};

/// Score predictions against gold annotations.
#[derive(Debug, clap::Args)]
pub struct EvalArgs {
    /// Gold annotations: a corpus, or BioSyn queries with `--format biosyn`.
    #[arg(long, visible_alias = "data", value_name = "FILE", required_unless_present_any = ["folds", "protocol"])]
    pub gold: Option<PathBuf>,
    /// Predictions: the output of `canonym link`, or of `canonym map` with `--format biosyn`.
    #[arg(long, value_name = "FILE", conflicts_with = "model")]
    pub pred: Option<PathBuf>,
    /// Model to run on the gold texts if no predictions are given: `default`, `lexical`, `bm25` (gold mentions and
    /// queries only), or a bundle.
    #[arg(long, value_name = "BUNDLE")]
    pub model: Option<String>,
    /// Rerank candidates of gold mentions in context with this cross-encoder.
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["pred", "folds"])]
    pub rerank: Option<PathBuf>,
    /// Where mentions come from [default: detect, or gold if the texts contain only mentions].
    #[arg(long, value_enum)]
    pub mentions: Option<Mentions>,
    /// Format of both files: auto, a corpus format, or biosyn.
    #[arg(long, value_name = "F", default_value = "auto", value_parser = parse_format)]
    pub format: EvalFormat,
    /// Format of the predictions, if different.
    #[arg(long, value_name = "F", value_parser = parse_format)]
    pub pred_format: Option<EvalFormat>,
    /// Score by the protocol of a paper and report its main figure first; `list` shows all protocols. Other options
    /// override it.
    #[arg(long, value_name = "NAME|list", value_parser = parse_protocol)]
    pub protocol: Option<Chosen>,
    /// When ids match: any in common, the first gold id, or exactly the same set [default: any].
    #[arg(long, value_name = "any|first|exact", value_parser = parse::<IdPolicy>)]
    pub ids: Option<IdPolicy>,
    /// Measures to report, comma-separated [default: all].
    #[arg(long = "match", value_name = "MEASURE", value_delimiter = ',', value_parser = parse::<Measure>)]
    pub measures: Vec<Measure>,
    /// How composite mentions are scored: all parts correct, first part only, or dropped [default: all].
    #[arg(long, value_name = "all|first|drop", value_parser = parse::<Composite>)]
    pub composite: Option<Composite>,
    /// Unit of the ranking [default: names].
    #[arg(long, value_name = "names|entities", value_parser = parse::<RankUnit>)]
    pub unit: Option<RankUnit>,
    /// Resolve overlapping predictions before the weak measure: keep the longest, then the most confident.
    #[arg(long)]
    pub bat: bool,
    /// Also report each semantic type.
    #[arg(long)]
    pub by_type: bool,
    /// Report strata of gold mentions: number of words, type, composite, discontinuous, abbreviation; with `--kb` also
    /// homonyms and exact names; with `--train-gold` also seen concepts and names.
    #[arg(long)]
    pub slices: bool,
    /// Report risk-coverage curves and calibration of the scores.
    #[arg(long)]
    pub curves: bool,
    /// Find the lowest threshold that reaches this precision; implies `--curves`.
    #[arg(long, value_name = "P", value_parser = options::parse_probability)]
    pub want_precision: Option<f32>,
    /// Number of bins of the reliability diagram.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub bins: u16,
    /// Training annotations; concepts not in them are reported as zero-shot. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub train_gold: Vec<PathBuf>,
    /// Bootstrap resamples of documents for 95% confidence intervals; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub resamples: usize,
    /// Seed of the bootstrap.
    #[arg(long, value_name = "N", default_value_t = 13)]
    pub seed: u64,
    /// Knowledge base of the predictions, to report how many gold concepts it contains; `starter` is the embedded one.
    #[arg(long, value_name = "FILE.kb")]
    pub kb: Option<PathBuf>,
    /// Use ids of the model and of `--kb` as written in the source, without the prefix added by `kb build`.
    #[arg(long)]
    pub raw_ids: bool,
    /// Dictionary enriched with names from the corpus, as some papers use. The model also runs with it; both results
    /// are reported.
    #[arg(long, value_name = "FILE.kb", requires = "kb", conflicts_with = "pred")]
    pub leaky_kb: Option<PathBuf>,
    /// Let gold mention boundaries leak into the tokenisation of a dual encoder, as in its published evaluation.
    #[arg(long, conflicts_with = "pred")]
    pub leaky_tokenisation: bool,
    /// Combine the JSON reports of cross-validation folds; reports their mean.
    #[arg(long, value_name = "REPORT.json", num_args = 1.., conflicts_with_all = ["gold", "pred", "model", "protocol"])]
    pub folds: Vec<PathBuf>,
    /// Name of the system in the report.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub system: String,
    /// Name of the corpus in the report.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub dataset: String,
    /// Name of the split in the report.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    pub split: String,
    /// Published figure to compare with, from 0 to 1.
    #[arg(long, value_name = "P", value_parser = options::parse_probability)]
    pub paper_value: Option<f32>,
    /// Note for readers of the report.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub note: String,
    #[command(flatten)]
    pub reading: ReadArguments,
    /// Include documents that the model was trained or tuned on; they are counted and scored separately.
    #[arg(long, conflicts_with = "pred")]
    pub allow_seen: bool,
    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub filter: FilterArguments,
    /// Report files.
    #[command(flatten)]
    pub files: ReportArgs,
}

/// Value of `--protocol`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Chosen {
    /// List the protocols.
    List,
    /// Score by this protocol.
    Named(&'static Protocol),
}

fn parse_protocol(name: &str) -> Result<Chosen, String> {
    if name == "list" {
        return Ok(Chosen::List);
    }
    parse(name).map(Chosen::Named)
}

/// Runs the command.
pub fn run(args: &EvalArgs) -> anyhow::Result<()> {
    if args.protocol == Some(Chosen::List) {
        return output::print(&protocol::list());
    }
    if !args.folds.is_empty() {
        return combine_folds(args);
    }
    check(args).map_err(wrong_usage)?;
    let open = |path: &Option<PathBuf>| path.as_deref().map(|path| terminology::open(Some(path))).transpose();
    // A model with its own terminology is scored with it, as in `link`.
    let own =
        args.model.as_ref().filter(|_| args.kb.is_none()).map(|model| Path::new(model).join(terminology::TERMINOLOGY));
    let (kb, leaky) = (open(&args.kb.clone().or(own.filter(|own| own.exists())))?, open(&args.leaky_kb)?);
    let stage = Stage::start();
    let gold = read_gold(args)?;
    stage.done("read the gold annotations");
    let stage = Stage::start();
    let (report, evaluated) = evaluate(args, &gold, kb.clone(), leaky)?;
    stage.done("linked and evaluated");
    if args.pred.is_some() {
        seen::of_files();
    }
    let terms = kb.as_deref().map(|kb| Terms { kb, raw_ids: args.raw_ids });
    eval_report::write(&args.files, &report, evaluated.as_ref(), terms, &facts(args, &gold))?;
    let report = if args.by_type { report } else { Report { by_type: Default::default(), ..report } };
    if args.json { output::print_json(&report) } else { output::print(&report.table()) }
}

fn combine_folds(args: &EvalArgs) -> anyhow::Result<()> {
    let read = |path: &PathBuf| -> anyhow::Result<Report> {
        let text = std::fs::read_to_string(path).map_err(|error| canonym_core::Error::io("read", path, error))?;
        let parsed: Result<Report, serde_json::Error> = serde_json::from_str(&text);
        let not_a_report = |error: serde_json::Error| {
            let message = format!("not a report of `canonym eval --json`: {error}");
            canonym_core::Error::parse(path, error.line() as u64, message)
                .with_hint("evaluate each fold with `--json` first")
        };
        Ok(parsed.map_err(not_a_report)?)
    };
    let reports = args.folds.iter().map(read).collect::<anyhow::Result<Vec<Report>>>()?;
    let folds = over_reports(&reports).context("cannot combine the folds")?;
    if args.json { output::print_json(&folds) } else { output::print(&folds.table()) }
}

/// The default model: that of `link` for documents, that of `map` for names.
fn default_model(format: EvalFormat) -> &'static str {
    match format {
        EvalFormat::Biosyn => "lexical",
        _ => "default",
    }
}

/// Labels and values for the head of the HTML report: gold file, predictions or model.
fn facts(args: &EvalArgs, gold: &Gold) -> Vec<(String, String)> {
    let source = match (&args.pred, &args.model) {
        (Some(path), _) => ("Predictions", path.display().to_string()),
        (None, model) => {
            let mode = if mentions(args, gold) == Mentions::Gold { "links gold mentions" } else { "detects mentions" };
            let note = args.rerank.as_ref().map(|path| format!(", reranked by {}", path.display())).unwrap_or_default();
            ("Model", format!("{}{note}, {mode}", model.as_deref().unwrap_or(default_model(args.format))))
        }
    };
    let gold = args.gold.as_ref().map(|path| ("Gold file", path.display().to_string()));
    gold.into_iter().chain([source]).map(|(label, value)| (label.to_owned(), value)).collect()
}

/// Where the mentions come from if a model is run.
fn mentions(args: &EvalArgs, gold: &Gold) -> Mentions {
    let detect_unless_mentions_only = || if gold.is_mentions_only() { Mentions::Gold } else { Mentions::Detect };
    args.mentions.unwrap_or_else(detect_unless_mentions_only)
}

fn read_gold(args: &EvalArgs) -> anyhow::Result<Gold> {
    let Some(path) = &args.gold else {
        return Err(usage("no gold annotations given", "specify them with `--gold`"));
    };
    Gold::read(path, read_as(args)).context("cannot read gold annotations")
}

fn read_as(args: &EvalArgs) -> ReadAs {
    ReadAs { format: args.format, reading: args.reading }
}

/// The report and, for annotated documents, the scored documents.
fn evaluate<'a>(
    args: &EvalArgs,
    gold: &'a Gold,
    kb: Option<Arc<KnowledgeBase>>,
    leaky: Option<Arc<KnowledgeBase>>,
) -> anyhow::Result<(Report, Option<Evaluated<'a>>)> {
    let training = inputs::training(&args.train_gold, read_as(args))?;
    let (mut report, evaluated) = evaluate_with(args, gold, training.as_ref(), kb)?;
    if let Some(leaky) = leaky {
        report.leaky = Some(Box::new(evaluate_with(args, gold, training.as_ref(), Some(leaky))?.0));
    }
    Ok((report, evaluated))
}

/// As [`evaluate`], with one knowledge base.
fn evaluate_with<'a>(
    args: &EvalArgs,
    gold: &'a Gold,
    training: Option<&Training>,
    kb: Option<Arc<KnowledgeBase>>,
) -> anyhow::Result<(Report, Option<Evaluated<'a>>)> {
    let mut seen = None;
    let predictions = match (&args.pred, &args.model) {
        (Some(path), _) => {
            let format = args.pred_format.unwrap_or(args.format);
            Predictions::File(path, ReadAs { format, reading: args.reading })
        }
        (None, model) => {
            let model = model.as_deref().unwrap_or(default_model(args.format));
            let mut models = Models::named(model)?;
            models.rerank = args.rerank.as_deref().map(canonym_neural::system::rerank::open).transpose()?;
            if let Some(path) = &args.gold {
                let is_queries = matches!(gold, Gold::Queries(_));
                let learned =
                    models.learned(if is_queries { MentionSource::Given } else { mentions(args, gold).into() })?;
                let known = seen::look_up(gold, path, &learned);
                seen::check(&known.seen, path, model, args.allow_seen)?;
                seen = Some(known);
            }
            let kb = kb.clone().map_or_else(|| terminology::open(None), Ok)?;
            let subset = args.filter.choose(&kb)?;
            let (mentions, raw_ids) = (mentions(args, gold), args.raw_ids);
            let leaky_tokenisation = args.leaky_tokenisation;
            Predictions::Run { kb, models: Box::new(models), mentions, subset, raw_ids, leaky_tokenisation }
        }
    };
    if matches!(predictions, Predictions::Run { .. }) {
        tell_mention_source(args.mentions, gold);
    }
    inputs::tell_unknown(gold, &predictions);
    let mut config = configure(args, training);
    if let (Some(strata), Some(kb)) = (&mut config.strata, &kb) {
        strata.names = Some(inputs::names_of(gold, kb, args.raw_ids));
    }
    let kb = kb.map(|kb| KnownConcepts::of(&kb, args.raw_ids));
    let (kb_name, kb_ids) = kb.map_or_else(Default::default, |kb| (kb.name, Some(kb.ids)));
    config.kb_ids = kb_ids;
    let mut rng = SplitMix64::new(args.seed);
    let (mut report, evaluated) = match gold {
        Gold::Queries(queries) => {
            let ranked = inputs::ranked(queries, &predictions, config.composite)?;
            let mut report = evaluate_ranking(&ranked, &config, &mut rng);
            report.seen = seen.map(|seen| seen.of_mentions(&ranked, &config, &mut SplitMix64::new(args.seed)));
            let has_scores = ranked.iter().any(|mention| mention.score.is_some());
            warnings::of_curves(&config, &report, has_scores).iter().for_each(|line| progress::say(line));
            (report, None)
        }
        Gold::Documents(gold) => {
            let (predicted, paired) = inputs::paired(gold, &predictions)?;
            let mut report = evaluate_pairs(&paired, &config, &mut rng);
            report.seen = seen.map(|seen| seen.of_documents(&paired, &config, &mut SplitMix64::new(args.seed)));
            let type_warnings = warnings::of_types(&paired.documents, &report);
            let curve_warnings = warnings::of_curves(&config, &report, eval_report::has_scores(&predicted));
            type_warnings.iter().chain(&curve_warnings).for_each(|line| progress::say(line));
            (report, Some(Evaluated { gold, predicted, paired }))
        }
    };
    report.system = args.system.clone();
    report.dataset = args.dataset.clone();
    report.split = args.split.clone();
    report.paper_value = args.paper_value.map(decimal);
    report.note = args.note.clone();
    if let Some(kb) = &mut report.kb {
        kb.name = kb_name;
    }
    if let Some(Chosen::Named(protocol)) = args.protocol {
        protocol.mark(&mut report).map_err(wrong_usage)?;
    }
    Ok((report, evaluated))
}

/// The options, else those of the protocol, else the defaults.
fn configure(args: &EvalArgs, training: Option<&Training>) -> EvalConfig {
    let protocol = match args.protocol {
        Some(Chosen::Named(protocol)) => Some(protocol),
        Some(Chosen::List) | None => None,
    };
    let measures = match protocol {
        Some(protocol) if args.measures.is_empty() => protocol.measures.to_vec(),
        _ => args.measures.clone(),
    };
    let ids = args.ids.or(protocol.map(|protocol| protocol.ids)).unwrap_or_default();
    let training_ids = training.map(|training| training.ids.clone());
    let strata = args.slices.then(|| Background {
        names: None,
        training_ids: training_ids.clone(),
        training_names: training.map(|training| training.names.clone()),
    });
    let curves = (args.curves || args.want_precision.is_some()).then(|| CurveConfig {
        n_bins: usize::from(args.bins),
        wanted_precision: args.want_precision.map(decimal),
        ..CurveConfig::default()
    });
    EvalConfig {
        matching: MatchConfig { ids, resolve_overlaps: args.bat },
        measures,
        unit: args.unit.or(protocol.map(|protocol| protocol.unit)).unwrap_or_default(),
        composite: args.composite.or(protocol.map(|protocol| protocol.composite)).unwrap_or_default(),
        by_type: args.by_type || args.files.report.is_some(),
        kb_ids: None,
        training_ids,
        bootstrap: BootstrapConfig { n_resamples: args.resamples, ..BootstrapConfig::default() },
        curves,
        strata,
    }
}

/// Widens a fraction to `f64`, rounded to six decimals so that 0.95 stays 0.95.
fn decimal(fraction: f32) -> f64 {
    (f64::from(fraction) * 1e6).round() / 1e6
}

/// Rejects options that would have no effect.
fn check(args: &EvalArgs) -> canonym_core::Result<()> {
    if args.gold.as_deref() == Some(Path::new("-")) && args.pred.as_deref() == Some(Path::new("-")) {
        return Err(canonym_core::Error::invalid(
            "gold annotations and predictions cannot both be read from standard input",
        ));
    }
    if args.pred.is_some() && args.filter.is_given() {
        let error = canonym_core::Error::invalid("concept filters do not apply to a prediction file");
        return Err(error.with_hint("use them with `canonym link`, or omit `--pred` to run a model"));
    }
    if args.pred.is_some() && args.raw_ids && args.kb.is_none() {
        let error = canonym_core::Error::invalid("`--raw-ids` does not apply to a prediction file");
        return Err(error.with_hint("use it with `canonym link`, or omit `--pred` to run a model"));
    }
    let query_options = [("--composite", args.composite.is_some_and(|composite| composite != Composite::All))];
    let span_options = [
        ("--pred-format", args.pred_format.is_some()),
        ("--match", !args.measures.is_empty()),
        ("--bat", args.bat),
        ("--by-type", args.by_type),
        ("--errors", args.files.errors.is_some()),
        ("--rerank", args.rerank.is_some()),
    ];
    let biosyn = args.format == EvalFormat::Biosyn;
    let refused: &[(&str, bool)] = if biosyn { &span_options } else { &query_options };
    if let Some((option, _)) = refused.iter().find(|(_, given)| *given) {
        let files = if biosyn { "BioSyn queries, which have no spans" } else { "annotated documents, only to queries" };
        let error = canonym_core::Error::invalid(format!("`{option}` does not apply to {files}"));
        return Err(error.with_hint(if biosyn { "omit it" } else { "use `--format biosyn`, or `--ids`" }));
    }
    if args.pred_format == Some(EvalFormat::Biosyn) {
        return Err(
            canonym_core::Error::unsupported("predictions cannot be BioSyn queries").with_hint("use `--format biosyn`")
        );
    }
    Ok(())
}

/// Notes where the mentions come from unless `--mentions` is given, since scores depend on it.
fn tell_mention_source(requested: Option<Mentions>, gold: &Gold) {
    if requested.is_some() || !matches!(gold, Gold::Documents(_)) {
        return;
    }
    progress::say(match gold.is_mentions_only() {
        true => {
            "the texts contain only mentions, so they are linked as given; use `--mentions detect` to detect mentions"
        }
        false => "mentions are detected by the model; use `--mentions gold` to link the gold mentions",
    });
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

    /// The report on a gold and a prediction file, each given by name and content.
    fn evaluated(gold: (&str, &str), pred: (&str, &str), options: &[&str]) -> anyhow::Result<Report> {
        let folder = tempfile::tempdir()?;
        let (gold_path, pred_path) = (folder.path().join(gold.0), folder.path().join(pred.0));
        fs::write(&gold_path, gold.1)?;
        fs::write(&pred_path, pred.1)?;
        let (gold_path, pred_path) = (gold_path.display().to_string(), pred_path.display().to_string());
        let mut words = vec!["eval", "--gold", gold_path.as_str(), "--pred", pred_path.as_str()];
        words.extend(options);
        let args = Cli::try_parse_from(words)?.args;
        check(&args)?;
        let gold = read_gold(&args)?;
        evaluate(&args, &gold, None, None).map(|(report, _)| report)
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
    fn links_are_scored_as_spans_and_as_rankings() -> anyhow::Result<()> {
        let report = evaluated(GOLD, LINKS, &["--by-type"])?;
        assert_eq!((report.metrics[&Measure::Strict].precision, report.metrics[&Measure::Strict].recall), (1.0, 0.5));
        assert_eq!(report.metrics[&Measure::MentionRecognition].f1, 1.0);
        assert_eq!(report.ranking.expect("links carry candidates").all.accuracy[&1], 1.0);
        assert_eq!(report.by_type["Disease"].counts[&Measure::Strict].n_pred, 1);
        Ok(())
    }

    #[test]
    fn queries_are_scored_by_their_parts() -> anyhow::Result<()> {
        let accuracy = |options: &[&str]| -> anyhow::Result<f64> {
            let report = evaluated(QUERIES, ANSWERS, options)?;
            Ok(report.ranking.expect("queries are ranked").all.accuracy[&1])
        };
        assert_eq!(accuracy(&["--format", "biosyn"])?, 0.0);
        assert_eq!(accuracy(&["--format", "biosyn", "--composite", "first"])?, 1.0);
        Ok(())
    }

    #[test]
    fn options_without_effect_are_rejected() {
        let message = |result: anyhow::Result<Report>| result.expect_err("refused").to_string();
        assert!(message(evaluated(GOLD, LINKS, &["--composite", "first"])).contains("--composite"));
        assert!(message(evaluated(QUERIES, ANSWERS, &["--format", "biosyn", "--bat"])).contains("--bat"));
        assert!(message(evaluated(GOLD, LINKS, &["--match", "loose"])).contains("unknown measure `loose`"));
        assert!(message(evaluated(GOLD, LINKS, &["--format", "xls"])).contains("biosyn"));
    }
}
