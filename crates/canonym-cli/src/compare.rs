//! `canonym compare`: differences between two prediction files, with significance tests.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Context;
use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::bootstrap::{BootstrapConfig, SplitMix64};
use canonym_core::eval::compare::{Change, ChangeKind, Comparison, SystemAnswer, compare_documents, compare_rankings};
use canonym_core::eval::ids::IdPolicy;
use canonym_core::eval::matching::{MatchConfig, Measure};
use canonym_core::eval::ranking::{Composite, RankUnit, RankingConfig};
use canonym_core::eval::significance::{Difference, SignificanceConfig};
use canonym_core::eval::table::percent;
use canonym_neural::status::Stage;

use crate::errors;
use crate::eval::inputs::{self, EvalFormat, Gold, Predictions, ReadAs, parse_format};
use crate::eval::seen;
use crate::output::{self, counted};
use crate::reading::ReadArguments;

/// Characters of context on either side of a mention.
const CONTEXT: usize = 40;

/// Compare two prediction files on the same gold annotations.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Predictions of system A, as for `canonym eval --pred`.
    #[arg(value_name = "A")]
    first: PathBuf,
    /// Predictions of system B.
    #[arg(value_name = "B")]
    second: PathBuf,
    /// Gold annotations: a corpus, or BioSyn queries with `--format biosyn`.
    #[arg(long, visible_alias = "data", value_name = "FILE")]
    gold: PathBuf,
    /// Format of all files: auto, a corpus format, or biosyn.
    #[arg(long, value_name = "F", default_value = "auto", value_parser = parse_format)]
    format: EvalFormat,
    /// Format of the predictions, if different.
    #[arg(long, value_name = "F", value_parser = parse_format)]
    pred_format: Option<EvalFormat>,
    /// When ids match: any in common, the first gold id, or exactly the same set.
    #[arg(long, value_name = "any|first|exact", default_value = "any", value_parser = errors::parse::<IdPolicy>)]
    ids: IdPolicy,
    /// Measures to test, comma-separated.
    #[arg(
        long = "match",
        value_name = "MEASURE",
        value_delimiter = ',',
        default_value = "strict,mention-recognition,partial-binary,partial-maxmax",
        value_parser = errors::parse::<Measure>
    )]
    measures: Vec<Measure>,
    /// How composite queries are scored: all parts correct, first part only, or dropped.
    #[arg(long, value_name = "all|first|drop", default_value = "all", value_parser = errors::parse::<Composite>)]
    composite: Composite,
    /// Changes to show per kind.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Rounds of approximate randomisation.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    rounds: usize,
    /// Bootstrap resamples of documents for 95% confidence intervals; 0 for none.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    resamples: usize,
    /// Seed of the randomisation and the bootstrap.
    #[arg(long, value_name = "N", default_value_t = 13)]
    seed: u64,
    #[command(flatten)]
    reading: ReadArguments,
    /// Print as JSON, with every change.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let stage = Stage::start();
    let read_as = |format| ReadAs { format, reading: args.reading };
    let gold = Gold::read(&args.gold, read_as(args.format)).context("cannot read gold annotations")?;
    let pred_format = args.pred_format.unwrap_or(args.format);
    let [first, second] = [&args.first, &args.second].map(|path| Predictions::File(path, read_as(pred_format)));
    let config = SignificanceConfig {
        bootstrap: BootstrapConfig { n_resamples: args.resamples, ..BootstrapConfig::default() },
        n_rounds: args.rounds,
    };
    stage.done("read the gold annotations");
    let mut rng = SplitMix64::new(args.seed);
    let (comparison, texts) = match &gold {
        Gold::Documents(documents) => {
            let (first, second) = (inputs::paired(documents, &first)?.1, inputs::paired(documents, &second)?.1);
            let matching = MatchConfig { ids: args.ids, resolve_overlaps: false };
            let found = compare_documents(&first, &second, &args.measures, matching, &config, &mut rng)?;
            (found, texts_of(documents))
        }
        Gold::Queries(queries) => {
            let first = inputs::ranked(queries, &first, args.composite)?;
            let second = inputs::ranked(queries, &second, args.composite)?;
            let ranking = RankingConfig {
                ids: args.ids,
                composite: args.composite,
                unit: RankUnit::Names,
                ..RankingConfig::default()
            };
            (compare_rankings(&first, &second, &ranking, &config, &mut rng)?, HashMap::new())
        }
    };
    seen::of_files();
    if args.json {
        return output::print_json(&comparison);
    }
    output::print(&table(&comparison, &texts, args.limit))
}

/// The text of each document id; different texts of one id are joined, matching their offsets.
fn texts_of(documents: &[AnnotatedDocument]) -> HashMap<&str, String> {
    let mut parts: HashMap<&str, Vec<&str>> = HashMap::new();
    for document in documents {
        let known = parts.entry(&document.document.id).or_default();
        if !known.contains(&document.document.text.as_str()) {
            known.push(&document.document.text);
        }
    }
    parts.into_iter().map(|(id, parts)| (id, parts.join("\n"))).collect()
}

fn table(comparison: &Comparison, texts: &HashMap<&str, String>, limit: usize) -> String {
    let mut out = String::new();
    let mut line = |text: String| writeln!(out, "{}", text.trim_end()).expect("a string takes every write");
    let documents = counted(comparison.n_documents, "document");
    line(format!("{documents}, {} with a concept", counted(comparison.n_gold, "gold mention")));
    line(String::new());
    line(format!(
        "{:<30} {:>7} {:>7} {:>10} {:>16} {:>11} {:>11}",
        "", "A", "B", "B - A", "95% of B - A", "bootstrap p", "random. p"
    ));
    for (name, difference) in &comparison.measures {
        line(row(name, difference));
    }
    line(String::new());
    line(format!(
        "McNemar test on correct mentions: {} won, {} lost, {}",
        comparison.mcnemar.n_won,
        comparison.mcnemar.n_lost,
        p_value(comparison.mcnemar.p)
    ));
    line(format!("both correct: {}; same error: {}", comparison.n_both_right, comparison.n_same_wrong));
    for kind in ChangeKind::ALL {
        let n = comparison.n_changes.get(&kind).copied().unwrap_or_default();
        if n == 0 {
            continue;
        }
        line(String::new());
        let shown = comparison.changes.iter().filter(|change| change.kind == kind).take(limit);
        let hidden = if n > limit as u64 { format!(", first {limit} shown") } else { String::new() };
        line(format!("{}: {n}{hidden}", kind.name()));
        for change in shown {
            line(format!("  {}  {}", change.document, context(change, texts)));
            let predictions = [("A", &change.first), ("B", &change.second)]
                .map(|(label, prediction)| format!("{label}: {}", describe(prediction)));
            let gold = if change.gold.is_empty() { String::new() } else { format!("gold: {}   ", change.gold) };
            line(format!("      {gold}{}", predictions.join("   ")));
        }
    }
    out
}

fn row(name: &str, one: &Difference) -> String {
    let signed = |fraction: f64| format!("{}{}", if fraction < 0.0 { "-" } else { "+" }, percent(fraction.abs()));
    let interval = one.ci.map_or_else(String::new, |ci| format!("{} {}", signed(ci.0), signed(ci.1)));
    let p = |value: Option<f64>| value.map_or_else(String::new, |p| format!("{p:.4}"));
    format!(
        "{name:<30} {:>7} {:>7} {:>10} {interval:>16} {:>11} {:>11}",
        percent(one.first),
        percent(one.second),
        signed(one.difference),
        p(one.p_bootstrap),
        p(one.p_randomisation)
    )
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {p:.4}") }
}

fn describe(prediction: &SystemAnswer) -> String {
    if prediction.ids.is_empty() {
        return "no link".to_owned();
    }
    let name = if prediction.name.is_empty() { String::new() } else { format!(" ({})", prediction.name) };
    let place = if prediction.text.is_empty() { String::new() } else { format!(" on \"{}\"", prediction.text) };
    format!("{}{name}{place}", prediction.ids)
}

/// The mention in brackets, with context.
fn context(change: &Change, texts: &HashMap<&str, String>) -> String {
    let text = texts.get(change.document.as_str());
    let (Some(text), Some(first), Some(last)) = (text, change.spans.first(), change.spans.last()) else {
        return format!("[{}]", change.text);
    };
    let (start, end) = (first.0 as usize, last.1 as usize);
    let part = |from: usize, to: usize| -> String {
        let letters = text.chars().skip(from).take(to.saturating_sub(from));
        letters.map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
    };
    let (before, after) = (part(start.saturating_sub(CONTEXT), start), part(end, end + CONTEXT));
    format!("{}[{}]{}", before.trim_start(), part(start, end), after.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_puts_the_mention_in_brackets() {
        let text = "Résumé: a β-cell tumour\nin two cases.".to_owned();
        let texts = HashMap::from([("7", text)]);
        let change = Change {
            kind: ChangeKind::Won,
            document: "7".to_owned(),
            spans: vec![(10, 23)],
            text: "β-cell tumour".to_owned(),
            gold: "D1".to_owned(),
            first: SystemAnswer::default(),
            second: SystemAnswer::default(),
        };
        assert_eq!(context(&change, &texts), "Résumé: a [β-cell tumour] in two cases.");
        assert_eq!(context(&change, &HashMap::new()), "[β-cell tumour]");
    }
}
