//! `canonym compare`: differences between two prediction files, with significance tests.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::Context;
use canonym_core::eval::bootstrap::{BootstrapConfig, SplitMix64};
use canonym_core::eval::compare::{compare_documents, compare_rankings};
use canonym_core::eval::compare_table::texts_of;
use canonym_core::eval::ids::IdPolicy;
use canonym_core::eval::matching::{MatchConfig, Measure};
use canonym_core::eval::ranking::{Composite, RankUnit, RankingConfig};
use canonym_core::eval::significance::SignificanceConfig;
use canonym_neural::status::Stage;

use crate::eval::inputs::{self, EvalFormat, Gold, Predictions, ReadAs, parse_format};
use crate::eval::seen;
use crate::reading::ReadArguments;
use crate::{errors, output};

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
    let stage = Stage::start();
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
    stage.done("read and compared the predictions");
    seen::of_files();
    if args.json {
        return output::print_json(&comparison);
    }
    output::print(&comparison.table(&texts, args.limit))
}
