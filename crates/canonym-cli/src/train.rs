//! `canonym train`: trains a model from an experiment file.

use std::path::PathBuf;

use canonym::serve::ENDS_WITH_INPUT;
use canonym_core::error::Context;
use canonym_neural::recipes::checkpoints::Request;
use canonym_neural::recipes::{self, TrainOptions};

use crate::download::{self, agent, download};

/// Arguments of `canonym train`.
#[derive(Debug, Clone, clap::Args)]
pub struct TrainArguments {
    /// Experiment file.
    config: PathBuf,
    /// Data folder [default: the folder of the experiment, or `../shared/data` if only that has the files that the
    /// experiment names].
    #[arg(long, value_name = "DIR", env = "CANONYM_DATA")]
    data_root: Option<PathBuf>,
    /// Output folder.
    #[arg(long = "out", value_name = "DIR", required_unless_present = "record_onto")]
    folder: Option<PathBuf>,
    /// Do not train; record the training documents of this experiment in an existing model.
    #[arg(long, value_name = "MODEL", conflicts_with = "folder")]
    record_onto: Option<PathBuf>,
    /// Also evaluate on documents that a part was trained on; the report marks them.
    #[arg(long)]
    allow_seen: bool,
    /// Override a value of the experiment, such as `fit.penalty=0.01`. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
}

/// Exits when standard input closes, that is when the parent process has ended for whatever reason.
fn exit_with_parent() {
    std::thread::spawn(|| {
        // End of input and a read error both mean that the parent has ended.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        canonym_core::artifact::remove_unfinished();
        std::process::exit(130);
    });
}

/// Runs the command.
pub fn run(arguments: &TrainArguments) -> anyhow::Result<()> {
    if std::env::var_os(ENDS_WITH_INPUT).is_some() {
        exit_with_parent();
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

/// Downloads a checkpoint file.
fn fetch(request: &Request<'_>) -> canonym_core::Result<()> {
    let Request { url, out, max_bytes, hint } = *request;
    match download(&agent(url), &download::Request { url, out, max_bytes, expected: None, hint }) {
        Ok(_) => Ok(()),
        Err(error) => match error.downcast::<canonym_core::Error>() {
            Ok(error) => Err(error),
            Err(error) => Err(std::io::Error::other(error)).context(format!("cannot download {url}")),
        },
    }
}
