//! `canonym serve`: the HTTP API, annotation projects and the web application.

use crate::options;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use canonym::serve::{self, ProcessTrainer};
use canonym_serve::{ApiError, PublicUrl, ServeConfig};

use crate::errors::usage;
use crate::{interrupt, progress};

/// The variable that holds the password of `--add-admin`.
const PASSWORD: &str = "CANONYM_PASSWORD";

/// Arguments of `canonym serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArguments {
    /// Compiled knowledge base [default: the embedded `starter`].
    #[arg(long, value_name = "FILE.kb")]
    kb: Option<PathBuf>,
    /// Model: `default`, `lexical`, or a bundle.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
    /// Data folder of the projects; created if missing.
    #[arg(long, value_name = "DIR", default_value = "canonym-data")]
    data: PathBuf,
    /// Address to listen on. Access from other machines requires an account.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7878")]
    bind: String,
    /// Public URL if the server runs behind a TLS proxy, such as https://links.example.org.
    #[arg(long, value_name = "URL", value_parser = public_url)]
    public_url: Option<PublicUrl>,
    /// Address of a proxy whose `X-Forwarded-For` header is trusted. May be repeated.
    #[arg(long, value_name = "ADDRESS")]
    trusted_proxy: Vec<IpAddr>,
    /// Add an admin, or reset the password of one, and exit. The password is read from CANONYM_PASSWORD or standard
    /// input.
    #[arg(long, value_name = "NAME")]
    add_admin: Option<String>,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Runs the command.
pub fn run(arguments: &ServeArguments) -> anyhow::Result<()> {
    options::use_threads(arguments.threads)?;
    let address = address(&arguments.bind)?;
    let mut config = ServeConfig::new(&arguments.data);
    config.is_loopback = address.ip().is_loopback();
    config.public_url = arguments.public_url.clone();
    config.trusted_proxies = arguments.trusted_proxy.iter().map(IpAddr::to_canonical).collect();
    (config.runs_jobs, config.owns_jobs) = (arguments.add_admin.is_none(), arguments.add_admin.is_none());
    // Adding an account needs no large model.
    let model = if arguments.add_admin.is_some() { "lexical" } else { &arguments.model };
    let engine = serve::open(arguments.kb.as_deref(), model)?;
    let trainer =
        ProcessTrainer { kb: arguments.kb.clone(), model: arguments.model.clone(), context: engine.context_model()? };
    let app =
        canonym_serve::open(Arc::new(engine), Some(Arc::new(trainer)), config).context("cannot use the data folder")?;
    if let Some(name) = &arguments.add_admin {
        app.put_admin(name, &password()?).map_err(usage_error)?;
        progress::say(&format!("{name} is now an admin in {}", arguments.data.display()));
        return Ok(());
    }
    if (!address.ip().is_loopback() || arguments.public_url.is_some()) && !app.has_admin() {
        let message = format!("{address} is reachable from other machines, and there are no accounts");
        let hint = "add an admin with `canonym serve --add-admin NAME`, or omit `--bind` and `--public-url`";
        return Err(usage(message, hint));
    }
    let stopping = Arc::downgrade(&app);
    interrupt::instead(move || {
        progress::say("shutting down; press Ctrl+C again to force");
        if let Some(app) = stopping.upgrade() {
            app.stop();
        }
    });
    let listening = |address: SocketAddr| {
        progress::say(&format!(
            "Serving canonym at http://{address}/; projects are stored in {}",
            arguments.data.display()
        ));
    };
    canonym_serve::run(&app, address, listening).map_err(|error| {
        let hint = "the port may be in use; try another one with `--bind`";
        canonym_core::Error::invalid(format!("cannot listen on {address}: {error}")).with_hint(hint).into()
    })
}

fn public_url(text: &str) -> Result<PublicUrl, String> {
    text.parse().map_err(|error: ApiError| format!("{}; {}", error.message, error.hint.unwrap_or_default()))
}

fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let hint = "use an address and a port, such as 127.0.0.1:7878";
    let mut found =
        text.to_socket_addrs().map_err(|error| usage(format!("invalid address `{text}`: {error}"), hint))?;
    found.next().ok_or_else(|| usage(format!("invalid address `{text}`"), hint))
}

fn password() -> anyhow::Result<String> {
    if let Some(password) = std::env::var(PASSWORD).ok().filter(|password| !password.is_empty()) {
        return Ok(password);
    }
    let mut text = String::new();
    std::io::stdin().take(4096).read_to_string(&mut text).context("cannot read the password")?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn usage_error(error: ApiError) -> anyhow::Error {
    let hint = error.hint.unwrap_or_else(|| "correct it and try again".to_owned());
    usage(error.message, &hint)
}
