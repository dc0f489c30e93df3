//! `canonym train`: fit a model from an experiment file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use canonym::kb::KnowledgeBase;
use canonym::link::fit::{FitConfig, Labelled, examples, fit_calibration, fit_weights, judge};
use canonym::link::model::LexicalModel;

/// Arguments of `canonym train`.
#[derive(Debug, clap::Args)]
pub struct TrainArguments {
    kb: PathBuf,
    data: Vec<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &TrainArguments) -> anyhow::Result<()> {
    let mut sets = Vec::new();
    for path in &arguments.data {
        let (kb, path) = path.to_str().unwrap_or_default().split_once('=').unwrap_or_default();
        let mut rows: Vec<Labelled> = Vec::new();
        for line in std::fs::read_to_string(path)?.lines() {
            let fields: Vec<&str> = line.split("||").collect();
            let ids: BTreeSet<String> = fields[fields.len() - 1].split(['|', '+']).map(str::to_owned).collect();
            for part in fields[fields.len() - 2].split('|') {
                rows.push(Labelled { query: part.to_owned(), ids: ids.clone() });
            }
        }
        let kb = KnowledgeBase::open(std::path::Path::new(kb))?;
        sets.push((path.to_owned(), examples(&kb, &LexicalModel::embedded(), &rows), rows));
    }
    let _ = &arguments.kb;
    let mut train = Vec::new();
    for (path, set, rows) in &sets {
        if path.contains("train.") {
            let mut seen = BTreeSet::new();
            train.extend(set.iter().zip(rows).filter(|(_, row)| seen.insert(*row)).map(|(one, _)| one.clone()));
        }
    }
    let weights = fit_weights(&train, &FitConfig::default());
    let mut points = Vec::new();
    for (path, set, rows) in &sets {
        let judged = judge(set, &weights);
        let ceiling = set.iter().filter(|example| example.candidates.iter().any(|(_, right)| *right)).count();
        eprintln!("{path}: {:.4} of {} (ceiling {:.4})", judged.accuracy, set.len(), ceiling as f64 / set.len() as f64);
        if std::env::var("SHOW").is_ok_and(|show| path.contains(&show)) {
            for (one, row) in set.iter().zip(rows) {
                let j = judge(std::slice::from_ref(one), &weights);
                if j.accuracy < 0.5 {
                    eprintln!("MISS {} {:?} found={}", row.query, row.ids, one.candidates.iter().any(|c| c.1));
                }
            }
        }
        if !path.contains("train.") {
            points.extend(judged.points);
        }
    }
    let model = LexicalModel { weights, calibration: fit_calibration(&points) };
    print!("{}", model.to_json());
    Ok(())
}
