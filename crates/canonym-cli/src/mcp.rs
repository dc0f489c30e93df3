//! `canonym mcp`: the tools for language models, on standard input and output.

use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use canonym::serve;
use canonym_serve::mcp::{Lines, McpServer};

use crate::{options, progress};

/// Arguments of `canonym mcp`.
#[derive(Debug, clap::Args)]
pub struct McpArguments {
    /// Compiled knowledge base [default: the embedded `starter`].
    #[arg(long, value_name = "FILE.kb")]
    kb: Option<PathBuf>,
    /// Model: `default`, `lexical`, or a bundle.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Runs the command.
pub fn run(arguments: &McpArguments) -> anyhow::Result<()> {
    options::use_threads(arguments.threads)?;
    let engine = serve::open(arguments.kb.as_deref(), &arguments.model)?;
    progress::say("waiting for messages of the Model Context Protocol on standard input");
    let lines = || Lines::new(BufReader::new(std::io::stdin()), std::io::stdout());
    McpServer::new(Arc::new(engine)).run(lines).context("cannot write the answers")
}
