//! `canonym health`: whether a server on this machine is ready.

use std::io::Write;
use std::net::SocketAddr;

use anyhow::Context;

/// Arguments of `canonym health`.
#[derive(Debug, clap::Args)]
pub struct HealthArguments {
    /// Address of the server, on this machine.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    address: SocketAddr,
}

/// Runs the command.
pub fn run(arguments: &HealthArguments) -> anyhow::Result<()> {
    canonym_serve::health::ask(arguments.address)?;
    writeln!(std::io::stdout(), "ready").context("cannot write the result")
}
