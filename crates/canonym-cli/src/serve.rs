//! `canonym serve`: the HTTP API, annotation projects and the web application.

use crate::options;
use std::io::Read;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use canonym::serve::{self, ProcessTrainer};
use canonym_serve::tls::{Tls, TlsFiles};
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
    /// Certificate of the server and of its issuers in PEM, to speak TLS without a proxy. Reloaded when the file changes.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    #[command(flatten)]
    limits: Limits,
    /// Add an admin, or reset the password of one, and exit. The password is read from CANONYM_PASSWORD or standard
    /// input.
    #[arg(long, value_name = "NAME")]
    add_admin: Option<String>,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Limits of requests; more than they allow is answered with 413 or 429.
#[derive(Debug, clap::Args)]
struct Limits {
    /// Maximum number of queued linking requests; further ones get status 429.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    max_queue: u32,
    /// Size of a linking request, in MiB.
    #[arg(long, value_name = "MIB", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_body: u32,
    /// Size of a text to link or import, in MiB.
    #[arg(long, value_name = "MIB", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=64))]
    max_text: u32,
    /// Size of a file to import, in MiB; unpacked, it may have four times as much.
    #[arg(long, value_name = "MIB", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_upload: u32,
}

impl Limits {
    fn set(&self, config: &mut ServeConfig) {
        let bytes = |mib: u32| (mib as usize) << 20;
        config.batcher.max_requests = self.max_queue as usize;
        config.batcher.max_bytes = config.batcher.max_bytes.max(bytes(self.max_body));
        config.max_link_bytes = bytes(self.max_body);
        config.max_text_bytes = bytes(self.max_text);
        config.max_upload_bytes = bytes(self.max_upload);
        config.max_unpacked_bytes = 4 * bytes(self.max_upload) as u64;
    }
}

/// Runs the command.
pub fn run(arguments: &ServeArguments) -> anyhow::Result<()> {
    options::use_threads(arguments.threads)?;
    let address = address(&arguments.bind)?;
    let mut config = ServeConfig::new(&arguments.data);
    config.is_loopback = address.ip().is_loopback();
    config.public_url = arguments.public_url.clone();
    if let Some((certificate, key)) = arguments.tls_cert.clone().zip(arguments.tls_key.clone()) {
        config.tls = Some(Arc::new(Tls::open(TlsFiles { certificate, key })?));
    }
    arguments.limits.set(&mut config);
    let scheme = if config.tls.is_some() { "https" } else { "http" };
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
            "Serving canonym at {scheme}://{address}/; projects are stored in {}",
            arguments.data.display()
        ));
    };
    canonym_serve::run(&app, address, listening).map_err(|error| listen_error(address, &error))
}

/// The error of an address that cannot be listened on.
pub fn listen_error(address: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    let hint = "the port may be in use; try another one with `--bind`";
    canonym_core::Error::unavailable(format!("cannot listen on {address}: {error}")).with_hint(hint).into()
}

fn public_url(text: &str) -> Result<PublicUrl, String> {
    text.parse().map_err(|error: ApiError| format!("{}; {}", error.message, error.hint.unwrap_or_default()))
}

/// The address that a text names.
pub fn address(text: &str) -> anyhow::Result<SocketAddr> {
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
