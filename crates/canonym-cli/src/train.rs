//! `canonym train`: fit a model from an experiment file.

mod data;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use canonym::eval::bootstrap::SplitMix64;
use canonym::link::fit::{Example, FitConfig, examples, fit_calibration, fit_weights, judge};
use canonym::link::model::{Features, LexicalModel};
use data::{Role, SetConfig};
use serde::{Deserialize, Serialize};

/// Arguments of `canonym train`.
#[derive(Debug, clap::Args)]
pub struct TrainArguments {
    /// The experiment.
    config: PathBuf,
    /// Where its data lie; the variable CANONYM_DATA, then ../shared/data where not given.
    #[arg(long, value_name = "DIR", env = "CANONYM_DATA", default_value = "../shared/data")]
    data_root: PathBuf,
    /// The folder to write.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Override an entry of the experiment, such as `fit.penalty=0.01`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// An experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    seed: u64,
    fit: FitConfig,
    set: Vec<SetConfig>,
}

/// A set with its examples, one a part, and for each mention the places of its parts.
struct Prepared {
    config: SetConfig,
    examples: Vec<Example>,
    mentions: Vec<(String, std::ops::Range<usize>)>,
    names: Vec<(String, BTreeSet<String>)>,
}

/// Runs the command.
pub fn run(arguments: &TrainArguments) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&arguments.config).with_context(|| format!("cannot read {}", arguments.config.display()))?;
    let experiment: Experiment = toml::from_str(&text)?;
    std::fs::create_dir_all(&arguments.out)?;
    let mut sets = Vec::new();
    for set in &experiment.set {
        sets.push(prepare(set, &arguments.data_root, &arguments.out, experiment.seed)?);
    }
    let mut fit: Vec<Example> = Vec::new();
    for set in sets.iter().filter(|set| set.config.role == Role::Fit) {
        let mut seen = BTreeSet::new();
        for (example, name) in set.examples.iter().zip(&set.names) {
            if seen.insert(name) {
                fit.push(Example { weight: set.config.weight, ..example.clone() });
            }
        }
    }
    let weights = fit_weights(&fit, &experiment.fit);
    let mut points = Vec::new();
    for set in &sets {
        let acc = accuracy(set, &weights);
        let mut ngram: Features = [0.0; canonym::link::model::N];
        ngram[canonym::link::features::COSINE] = 1.0;
        let ceiling = set.examples.iter().filter(|example| example.candidates.iter().any(|(_, right)| *right)).count();
        eprintln!("{:40} acc {:.2}  n-gram {:.2} ceiling {:.2} n {}", set.config.name, 100.0 * acc, 100.0 * accuracy(set, &ngram), 100.0 * ceiling as f64 / set.examples.len() as f64, set.mentions.len());
        if set.config.role == Role::Dev {
            points.extend(judge(&set.examples, &weights).points);
        }
    }
    if std::env::var("ABLATE").is_ok() {
        for row in 0..weights.len() {
            let w = canonym::link::fit::fit_weights_without(&fit, &experiment.fit, &[row]);
            let deltas: Vec<String> = sets.iter().filter(|set| set.config.role == Role::Dev).map(|set| format!("{:+.2}", 100.0 * (accuracy(set, &weights) - accuracy(set, &w)))).collect();
            eprintln!("{row:3} {:40} {}", canonym::link::model::feature_name(row), deltas.join(" "));
        }
    }
    let model = LexicalModel { weights, calibration: fit_calibration(&points) };
    std::fs::write(arguments.out.join("model.json"), model.to_json())?;
    Ok(())
}

fn accuracy(set: &Prepared, weights: &Features) -> f64 {
    let right = judge(&set.examples, weights).right;
    let n = set.mentions.iter().filter(|(_, parts)| right[parts.clone()].iter().all(|right| *right)).count();
    n as f64 / set.mentions.len().max(1) as f64
}

fn prepare(config: &SetConfig, root: &Path, work: &Path, seed: u64) -> anyhow::Result<Prepared> {
    let mut prepared = Prepared { config: config.clone(), examples: Vec::new(), mentions: Vec::new(), names: Vec::new() };
    for fold in data::read(config, root, work, &mut SplitMix64::new(seed))? {
        let parts: Vec<_> = fold.asked.iter().flat_map(|asked| asked.parts.clone()).collect();
        let mut at = prepared.examples.len();
        prepared.examples.extend(examples(&fold.kb, &LexicalModel::zero(), &parts));
        prepared.names.extend(parts.into_iter().map(|part| (part.query, part.ids)));
        for asked in fold.asked {
            prepared.mentions.push((asked.document, at..at + asked.parts.len()));
            at += asked.parts.len();
        }
    }
    Ok(prepared)
}
