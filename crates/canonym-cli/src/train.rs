//! `canonym train`: train a model from an experiment file.

use std::path::PathBuf;

use canonym_core::error::Context;
use canonym_neural::recipes::checkpoints::Request;
use canonym_neural::recipes::{self, TrainOptions};

use crate::download::{self, agent, download};

/// Arguments of `canonym train`.
#[derive(Debug, Clone, clap::Args)]
pub struct TrainArguments {
    /// The experiment.
    config: PathBuf,
    /// Where its data lie. Where neither this nor the variable is given: the folder of the experiment, or `../shared/data` where that holds what
    /// the experiment names and its own folder does not.
    #[arg(long, value_name = "DIR", env = "CANONYM_DATA")]
    data_root: Option<PathBuf>,
    /// The folder to write.
    #[arg(long = "out", value_name = "DIR", required_unless_present = "record_onto")]
    folder: Option<PathBuf>,
    /// Train nothing: write what this experiment learns from into a model that it made before.
    #[arg(long, value_name = "MODEL", conflicts_with = "folder")]
    record_onto: Option<PathBuf>,
    /// Judge also on documents that a part was trained on, and say so in the report.
    #[arg(long)]
    allow_seen: bool,
    /// Override an entry of the experiment, such as `fit.penalty=0.01`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// The variable by which a program that starts a training says that it must not outlive it.
pub const ENDS_WITH_INPUT: &str = "CANONYM_ENDS_WITH_INPUT";

/// Ends this program where standard input ends, which it does when the program at its other side is gone, however that went.
fn end_with_input() {
    std::thread::spawn(|| {
        // Whether it ended or cannot be read, nobody is there.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        canonym_core::artifact::remove_unfinished();
        std::process::exit(130);
    });
}

/// Runs the command.
pub fn run(arguments: &TrainArguments) -> anyhow::Result<()> {
    if std::env::var_os(ENDS_WITH_INPUT).is_some() {
        end_with_input();
    }
    let arguments = arguments.clone();
    Ok(recipes::train(&TrainOptions {
        config: arguments.config,
        data_root: arguments.data_root,
        out: arguments.folder.unwrap_or_default(),
        record_onto: arguments.record_onto,
        allow_seen: arguments.allow_seen,
        overrides: arguments.overrides,
        fetch: Some(fetch),
    })?)
}

/// Downloads a file of a checkpoint.
fn fetch(request: &Request<'_>) -> canonym_core::Result<()> {
    let Request { url, out, max_bytes, hint } = *request;
    match download(&agent(url), &download::Request { url, out, max_bytes, expected: None, hint }) {
        Ok(_) => Ok(()),
        Err(error) => match error.downcast::<canonym_core::Error>() {
            Ok(error) => Err(error),
            Err(error) => Err(std::io::Error::other(error)).context(format!("cannot fetch {url}")),
        },
    }
}
