//! `canonym mcp`: the tools for language models, on standard input and output or over HTTP.

use std::io::BufReader;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use canonym::serve;
use canonym_serve::mcp::{Lines, McpServer};

use crate::errors::usage;
use crate::serve::{address, listen_error};
use crate::{interrupt, options, progress};

/// Arguments of `canonym mcp`.
#[derive(Debug, clap::Args)]
pub struct McpArguments {
    /// Compiled knowledge base [default: the embedded `starter`].
    #[arg(long, value_name = "FILE.kb")]
    kb: Option<PathBuf>,
    /// Model: `default`, `lexical`, or a bundle.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
    /// Serve HTTP at this loopback address, path `/mcp`, in place of standard input and output.
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<String>,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Runs the command.
pub fn run(arguments: &McpArguments) -> anyhow::Result<()> {
    options::use_threads(arguments.threads)?;
    let address = arguments.bind.as_deref().map(loopback).transpose()?;
    let engine = serve::open(arguments.kb.as_deref(), &arguments.model)?;
    if let Some(address) = address {
        return listen(McpServer::new(Arc::new(engine)), address);
    }
    progress::say("waiting for messages of the Model Context Protocol on standard input");
    let lines = || Lines::new(BufReader::new(std::io::stdin()), std::io::stdout());
    McpServer::new(Arc::new(engine)).run(lines).context("cannot write the answers")
}

fn listen(server: McpServer, address: SocketAddr) -> anyhow::Result<()> {
    let listening = |address, stop| {
        interrupt::instead(stop);
        progress::say(&format!("serving the Model Context Protocol at http://{address}/mcp"));
    };
    canonym_serve::run_mcp(server, address, listening).map_err(|error| listen_error(address, &error))
}

/// A loopback address; the tools are for programs of this machine.
fn loopback(text: &str) -> anyhow::Result<SocketAddr> {
    let address = address(text)?;
    if address.ip().is_loopback() {
        return Ok(address);
    }
    let hint = "use 127.0.0.1; `canonym serve` offers the same tools to other machines, with accounts";
    Err(usage(format!("{address} is reachable from other machines"), hint))
}
