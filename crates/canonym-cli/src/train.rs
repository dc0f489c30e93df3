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
    /// The knowledge bases, and the first example of each.
    kbs: Vec<(usize, canonym::kb::KnowledgeBase)>,
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
    if let Ok(path) = std::env::var("DUMP") {
        use std::io::Write;
        let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
        for (number, set) in sets.iter().enumerate() {
            let mention_of = |row: usize| set.mentions.iter().position(|(_, parts)| parts.contains(&row)).unwrap_or(0);
            for (row, example) in set.examples.iter().enumerate() {
                let mention = mention_of(row);
                for (one, right) in &example.candidates {
                    for value in [number as f32, row as f32, mention as f32, one.concept.0 as f32, f32::from(u8::from(*right))] { out.write_all(&value.to_le_bytes())?; }
                    for value in one.features { out.write_all(&value.to_le_bytes())?; }
                }
            }
        }
    }
    let mut fit: Vec<Example> = Vec::new();
    for set in sets.iter().filter(|set| set.config.role == Role::Fit) {
        let mut seen = BTreeSet::new();
        for (example, name) in set.examples.iter().zip(&set.names) {
            if seen.insert(name) || std::env::var("DUP").is_ok() {
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
    let mut errors = String::new();
    for set in &sets {
        for (row, example) in set.examples.iter().enumerate() {
            let kb = &set.kbs.iter().find(|(end, _)| row < *end).expect("every example has a kb").1;
            let score = |one: &canonym::link::lexical::Scored| -> f32 { one.features.iter().zip(&weights).map(|(a, b)| a * b).sum() };
            let best = |want: bool| example.candidates.iter().filter(|(_, right)| *right == want).map(|(one, _)| (score(one), one)).max_by(|a, b| a.0.total_cmp(&b.0));
            let (wrong, right) = (best(false), best(true));
            if let Some((score, one)) = wrong && right.as_ref().is_none_or(|right| right.0 <= score) {
                let show = |one: &canonym::link::lexical::Scored| format!("{}={}", kb.id(one.concept).replace("MESH:", ""), kb.name(one.name));
                let why = right.as_ref().map(|(_, other)| {
                    let mut parts: Vec<(f32, String)> = (0..weights.len()).map(|row| (weights[row] * (one.features[row] - other.features[row]), canonym::link::model::feature_name(row).to_owned())).filter(|part| part.0.abs() > 0.15).collect();
                    parts.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
                    parts.iter().take(6).map(|(part, name)| format!("{part:+.2} {name}")).collect::<Vec<_>>().join(", ")
                });
                errors += &format!("{}\t{}\t{}\t{}\t{:.2} {}\t{:.2} {}\t{}\n", set.config.name, example.candidates.len(), set.names[row].0, set.names[row].1.iter().cloned().collect::<Vec<_>>().join("|"), score, show(one), right.as_ref().map_or(0.0, |r| r.0), right.as_ref().map_or("-".to_owned(), |r| show(r.1)), why.unwrap_or_default());
            }
        }
    }
    std::fs::write(arguments.out.join("errors.tsv"), errors)?;
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
    let mut prepared = Prepared { config: config.clone(), examples: Vec::new(), mentions: Vec::new(), names: Vec::new(), kbs: Vec::new() };
    for fold in data::read(config, root, work, &mut SplitMix64::new(seed))? {
        let parts: Vec<_> = fold.asked.iter().flat_map(|asked| asked.parts.clone()).collect();
        let mut at = prepared.examples.len();
        prepared.examples.extend(examples(&fold.kb, &LexicalModel::zero(), &parts));
        prepared.names.extend(parts.into_iter().map(|part| (part.query, part.ids)));
        for asked in fold.asked {
            prepared.mentions.push((asked.document, at..at + asked.parts.len()));
            at += asked.parts.len();
        }
        prepared.kbs.push((at, fold.kb));
    }
    Ok(prepared)
}
