//! Fits the recognition model.
use std::path::{Path, PathBuf};
use canonym::corpus::format::Reader;
use canonym::link::recognise::accept::{AcceptModel, NAMES};
use canonym::link::recognise::fit::{best_threshold, examples, fit, score};
use canonym::link::recognise::{DictionaryAnnotator, RecogniseConfig};
/// Arguments.
#[derive(Debug, clap::Args)]
pub struct FitArguments { data: Vec<String>, #[arg(long, default_value_t = 1e-4)] penalty: f64, #[arg(long)] out: Option<PathBuf> }
/// Runs.
pub fn run(arguments: &FitArguments) -> anyhow::Result<()> {
    let mut sets = Vec::new();
    for item in &arguments.data {
        let (kb, path) = item.split_once('=').unwrap_or_default();
        let kb = crate::knowledge::open(Some(Path::new(kb)))?;
        sets.push((kb, path, Reader::open(Path::new(path), None)?.collect::<Result<Vec<_>, _>>()?));
    }
    let all = |model: &AcceptModel, nested: bool, train: bool| -> Vec<_> {
        let config = RecogniseConfig { nested, min_score: nested.then_some(0.0), ..RecogniseConfig::default() };
        sets.iter().filter(|(_, path, _)| path.contains("train") == train).map(|(kb, path, corpus)| {
            examples(kb, &DictionaryAnnotator::new(kb.clone(), model.clone(), config), path, corpus)
        }).collect()
    };
    let mut model = AcceptModel::embedded();
    for _ in 0..3 {
        model.weights = fit(&all(&model, true, true), arguments.penalty);
    }
    for _ in 0..2 {
        model.threshold = 0.1;
        model.weights = fit(&all(&model, false, true), arguments.penalty);
    }
    model.threshold = 0.3;
    let mut train = all(&model, false, true);
    model.threshold = best_threshold(&train, &model);
    train = all(&model, false, true);
    let dev = all(&model, false, false);
    let dev_threshold = best_threshold(&dev, &model);
    for set in train.iter().chain(&dev) {
        let n_right = set.places.iter().filter(|p| p.1).count();
        let (p, r, f) = score(set, &model, model.threshold);
        let own = best_threshold(std::slice::from_ref(set), &model);
        println!("{}: ceiling R {:.3}; P {:.3} R {:.3} F {:.4}; best own {:.2} F {:.4}", set.name, n_right as f64 / set.n_gold as f64, p, r, f, own, score(set, &model, own).2);
    }
    println!("threshold {} dev {}", model.threshold, dev_threshold);
    let mut rows: Vec<_> = NAMES.iter().zip(model.weights).collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (n, w) in rows { print!("{n} {w:.2}; "); }
    println!();
    if let Some(out) = &arguments.out { std::fs::write(out, model.to_json())?; }
    Ok(())
}
