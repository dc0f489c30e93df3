//! `canonym health`: whether a server on this machine is ready.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;

/// Arguments of `canonym health`.
#[derive(Debug, clap::Args)]
pub struct HealthArguments {
    /// Address of the server, on this machine.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    address: SocketAddr,
    /// Certificate of a server that speaks TLS, the file of `canonym serve --tls-cert`.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
}

/// Runs the command.
pub fn run(arguments: &HealthArguments) -> anyhow::Result<()> {
    canonym_serve::health::ask(arguments.address, arguments.tls_cert.as_deref())?;
    writeln!(std::io::stdout(), "ready").context("cannot write the result")
}
