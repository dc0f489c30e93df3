//! Downloads a file over HTTP: interrupted downloads resume, and the file gets its name when it is complete.
//!
//! `FILE.part` holds the bytes received so far, `FILE.part.json` the validators sent by the server. The next run requests
//! the rest with `If-Range`; if the file has changed meanwhile, the server sends it from the start.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use canonym_core::Error;
use md5::Md5;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::output::bytes;
use crate::progress;

/// Timeout for connecting, for the response and for each read.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of redirects.
const MAX_REDIRECTS: u32 = 8;

/// Maximum bytes read of a published checksum.
const MAX_CHECKSUM: u64 = 1 << 16;

/// What to download.
#[derive(Debug)]
pub struct Request<'a> {
    /// URL of the file.
    pub url: &'a str,
    /// Path of the downloaded file.
    pub out: &'a Path,
    /// Larger files are rejected.
    pub max_bytes: u64,
    /// Expected digest, if known.
    pub expected: Option<Expected>,
    /// Hint if the server cannot be reached.
    pub hint: &'a str,
}

/// A digest in hexadecimal and its source.
#[derive(Debug, Clone)]
pub struct Expected {
    /// MD5 (32 digits) or SHA-256 (64 digits).
    pub digest: String,
    /// Name of the source in messages.
    pub from: String,
}

/// Provenance of a downloaded file, written beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Requested URL.
    pub url: String,
    /// `Date` header.
    pub date: String,
    /// `Last-Modified` header.
    pub last_modified: String,
    /// `ETag` header.
    pub etag: String,
    /// Size in bytes.
    pub size: u64,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
    /// Whether the digest was compared with an expected one.
    pub verified: bool,
}

impl Facts {
    fn new(url: &str, headers: &HeaderMap) -> Facts {
        let header =
            |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let [date, last_modified, etag] = ["date", "last-modified", "etag"].map(header);
        Facts { url: url.to_owned(), date, last_modified, etag, ..Facts::default() }
    }

    /// Value for `If-Range`: a strong ETag, or else the modification date.
    fn validator(&self) -> Option<&str> {
        let strong = |etag: &&str| etag.starts_with('"');
        Some(self.etag.as_str()).filter(strong).or(Some(self.last_modified.as_str())).filter(|text| !text.is_empty())
    }
}

/// Appends `ending` to the file name of `path`.
pub fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(name + ending)
}

/// An HTTP agent that trusts the system certificates; HTTPS only if `url` is.
pub fn agent(url: &str) -> Agent {
    let certificates = rustls_native_certs::load_native_certs().certs;
    let certificates: Vec<Certificate<'static>> =
        certificates.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build();
    Agent::config_builder()
        .tls_config(tls)
        // A redirect must not leave HTTPS.
        .https_only(url.starts_with("https://"))
        .http_status_as_error(false)
        .max_redirects(MAX_REDIRECTS)
        .user_agent(concat!("canonym/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity")
        .timeout_connect(Some(TIMEOUT))
        .timeout_recv_response(Some(TIMEOUT))
        .timeout_per_read(Some(TIMEOUT))
        .build()
        .into()
}

/// Downloads a file or the rest of it. Fails on HTTP errors, a wrong digest, or more than `max_bytes`.
pub fn download(agent: &Agent, request: &Request<'_>) -> anyhow::Result<Facts> {
    let part = with_suffix(request.out, ".part");
    let notes = with_suffix(request.out, ".part.json");
    let mut n_have = std::fs::metadata(&part).map_or(0, |metadata| metadata.len());
    let known = read_notes(&notes).filter(|facts| n_have > 0 && facts.url == request.url);
    let validator = known.as_ref().and_then(Facts::validator).map(str::to_owned);
    let mut response = send_request(agent, request, validator.as_deref().map(|validator| (n_have, validator)))?;
    if response.status() == 416 {
        // The range starts beyond the end: our part is either complete or of an older version.
        if content_range(response.headers()).is_some_and(|(_, total)| total == Some(n_have)) {
            return finish(request, open_part(&part)?, known.unwrap_or_default());
        }
        response = send_request(agent, request, None)?;
    }
    let facts = match response.status().as_u16() {
        206 if content_range(response.headers()).is_some_and(|(start, _)| start == Some(n_have)) => {
            progress::say(&format!("resuming after {}", bytes(n_have)));
            known.unwrap_or_default()
        }
        200 => {
            if n_have > 0 {
                progress::say(
                    "restarting: the file has changed on the server, or the server does not support resuming",
                );
            }
            n_have = 0;
            Facts::new(request.url, response.headers())
        }
        status => return Err(status_error(request, status)),
    };
    let len = response.headers().get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let range_total = content_range(response.headers()).and_then(|(_, total)| total);
    let total = len.map(|len| n_have.saturating_add(len)).or(range_total);
    if total.is_some_and(|total| total > request.max_bytes) {
        remove_partial(request.out);
        return Err(too_large(request));
    }
    let mut file = open_part(&part)?;
    file.set_len(n_have).and_then(|()| file.seek(SeekFrom::Start(n_have))).map_err(|e| Error::io("write", &part, e))?;
    std::fs::write(&notes, serde_json::to_vec(&facts)?).map_err(|error| Error::io("write", &notes, error))?;
    copy(request, response.into_body(), &mut file, n_have, total)?;
    finish(request, file, facts)
}

/// Requests the file; with `rest`, only the bytes from `n_have` on if the validator still matches.
fn send_request(agent: &Agent, request: &Request<'_>, rest: Option<(u64, &str)>) -> anyhow::Result<Response<Body>> {
    let mut call = agent.get(request.url);
    if let Some((n_have, validator)) = rest {
        call = call.header("range", format!("bytes={n_have}-")).header("if-range", validator);
    }
    call.call().map_err(|error| connection_error(request, error))
}

fn connection_error(request: &Request<'_>, error: ureq::Error) -> anyhow::Error {
    let url = request.url;
    let (message, hint) = match &error {
        ureq::Error::TooManyRedirects => (
            format!("{url} redirects more than {MAX_REDIRECTS} times"),
            "the file may have moved; specify its address with `--url`",
        ),
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
            (format!("invalid URL `{url}`"), "the URL must start with https://")
        }
        ureq::Error::RequireHttpsOnly(_) => (
            format!("{url} redirects to an unencrypted address"),
            "specify that address with `--url`, and its `--sha256`",
        ),
        _ => (format!("cannot get {url}: {error}"), request.hint),
    };
    Error::unavailable(message).with_hint(hint).into()
}

fn status_error(request: &Request<'_>, status: u16) -> anyhow::Error {
    let hint = match status {
        404 | 410 => {
            "the file may have moved; find its new address on the publisher's site and specify it with `--url`"
        }
        401 | 403 => {
            "the publisher requires a login or a browser; download the file there, then run `canonym kb build`"
        }
        206 | 416 => "the server cannot resume this download; remove the `.part` file and try again",
        _ => "try again later; the partial download is kept",
    };
    Error::unavailable(format!("{} returned HTTP status {status}", request.url)).with_hint(hint).into()
}

fn too_large(request: &Request<'_>) -> anyhow::Error {
    let message = format!("{} is larger than {}", request.url, bytes(request.max_bytes));
    Error::too_many(message).with_hint("check the address; if it is correct, raise `--max-bytes`").into()
}

/// Appends the body to `file`, which keeps the received bytes if the connection is lost.
fn copy(request: &Request<'_>, body: Body, file: &mut File, n_have: u64, total: Option<u64>) -> anyhow::Result<()> {
    let part = with_suffix(request.out, ".part");
    let bar = progress::counter("bytes", total);
    let mut reader = body.into_with_config().limit(u64::MAX).reader();
    let mut buffer = vec![0; 1 << 16];
    let mut n_bytes = n_have;
    let cut = |n_bytes: u64| {
        let of = total.map(|total| format!(" of {}", bytes(total))).unwrap_or_default();
        let message = format!("download of {} interrupted after {}{of}", request.url, bytes(n_bytes));
        Error::unavailable(message).with_hint("run the same command again to resume")
    };
    loop {
        let n = match reader.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(error) => {
                tracing::info!("connection lost: {error}");
                return Err(cut(n_bytes).into());
            }
        };
        n_bytes += n as u64;
        if n_bytes > request.max_bytes {
            remove_partial(request.out);
            return Err(too_large(request));
        }
        file.write_all(&buffer[..n]).map_err(|error| Error::io("write", &part, error))?;
        bar.set_position(n_bytes);
    }
    bar.finish_and_clear();
    match total {
        Some(total) if n_bytes < total => Err(cut(n_bytes).into()),
        _ => Ok(()),
    }
}

/// Checks the digest and renames the file.
fn finish(request: &Request<'_>, mut file: File, mut facts: Facts) -> anyhow::Result<Facts> {
    let part = with_suffix(request.out, ".part");
    let on_part = |action| move |error| Error::io(action, &with_suffix(request.out, ".part"), error);
    file.seek(SeekFrom::Start(0)).map_err(on_part("read"))?;
    let (mut md5, mut sha256) = (Md5::new(), Sha256::new());
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(on_part("read"))? {
            0 => break,
            n => {
                facts.size += n as u64;
                md5.update(&buffer[..n]);
                sha256.update(&buffer[..n]);
            }
        }
    }
    facts.sha256 = hexadecimal(&sha256.finalize());
    if let Some(expected) = &request.expected {
        let own = if expected.digest.len() == 32 { hexadecimal(&md5.finalize()) } else { facts.sha256.clone() };
        if !own.eq_ignore_ascii_case(&expected.digest) {
            remove_partial(request.out);
            let message = format!(
                "checksum mismatch for {}: got {own}, but {} says {}",
                request.url, expected.from, expected.digest
            );
            return Err(Error::mismatch(message)
                .with_hint("the download was deleted; try again, or check the expected checksum")
                .into());
        }
        facts.verified = true;
    }
    file.sync_all().map_err(on_part("write"))?;
    drop(file);
    std::fs::rename(&part, request.out).map_err(|error| Error::io("rename", request.out, error))?;
    remove_partial(request.out);
    Ok(facts)
}

/// Fetches a published digest from a text such as `6bd0…  taxdmp.zip`.
pub fn read_checksum(agent: &Agent, url: &str) -> Option<String> {
    let response = agent.get(url).call().ok().filter(|response| response.status() == 200)?;
    let mut text = String::new();
    response.into_body().into_with_config().limit(MAX_CHECKSUM).reader().read_to_string(&mut text).ok()?;
    text.split_whitespace().find(|word| is_digest(word)).map(str::to_owned)
}

/// Whether a word is a hexadecimal MD5 or SHA-256.
pub fn is_digest(word: &str) -> bool {
    matches!(word.len(), 32 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hexadecimal(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// First byte and total size of a `Content-Range` such as `bytes 5-9/10` or `bytes */10`.
fn content_range(headers: &HeaderMap) -> Option<(Option<u64>, Option<u64>)> {
    let (range, total) = headers.get("content-range")?.to_str().ok()?.trim().strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split('-').next()?.parse().ok(), total.parse().ok()))
}

fn open_part(path: &Path) -> canonym_core::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(|error| Error::io("create", path, error))
}

/// Notes of an earlier run; without them, the download starts over.
fn read_notes(path: &Path) -> Option<Facts> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Removes the partial download and its notes.
fn remove_partial(out: &Path) {
    for ending in [".part", ".part.json"] {
        std::fs::remove_file(with_suffix(out, ending)).ok();
    }
}
