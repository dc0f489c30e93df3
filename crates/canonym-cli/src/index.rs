//! `canonym index`: embeddings of all names of a knowledge base.

use std::path::PathBuf;

use anyhow::Context;
use canonym_neural::status::Stage;
use canonym_neural::system::{Models, terminology};

use crate::output::{self, Sheet, bytes, thousands};

/// The subcommands of `canonym index`.
#[derive(Debug, clap::Subcommand)]
pub enum IndexCommand {
    /// Embed all names of a knowledge base once, so that they are also found by embedding.
    ///
    /// Knowledge bases of up to a million distinct names are embedded when a model first uses them. In larger ones, a
    /// model compares a mention only with the best candidates by name, unless this command was run before.
    Build(BuildArguments),
}

/// Arguments of `canonym index build`.
#[derive(Debug, clap::Args)]
pub struct BuildArguments {
    /// Knowledge base.
    #[arg(long, value_name = "FILE.kb")]
    kb: PathBuf,
    /// Bundle or training folder of a name encoder, or `default`.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
}

/// Runs the command.
pub fn run(command: &IndexCommand) -> anyhow::Result<()> {
    let IndexCommand::Build(arguments) = command;
    let models = Models::named(&arguments.model)?;
    let Some(names) = models.names() else {
        let error = canonym_core::Error::invalid(format!("the model `{}` has no name encoder", arguments.model));
        return Err(error.with_hint("use `default` or a ResCNN bundle").into());
    };
    let kb = terminology::open(Some(&arguments.kb))?;
    let stage = Stage::start();
    let file = names.build_index(&kb).context("cannot build the index")?;
    stage.done("index built");
    let n_bytes = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
    let mut sheet = Sheet::default();
    sheet.line("names", thousands(kb.n_forms() as u64));
    sheet.line("size", bytes(n_bytes));
    sheet.line("file", file.display().to_string());
    output::print(&sheet.text())
}
