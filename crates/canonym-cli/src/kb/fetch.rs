//! `canonym kb fetch`: downloads open terminologies from their publishers.

mod catalogue;

use std::io::Write;
use std::path::{Path, PathBuf};

use canonym_core::artifact::AtomicFile;
use serde::Serialize;

use self::catalogue::{Terminology, file_name, find};
use crate::download::{Expected, Facts, Request, agent, download, is_digest, read_checksum, with_suffix};
use crate::errors::usage;
use crate::output::{self, Sheet, bytes};
use crate::progress;

/// Arguments of `canonym kb fetch`.
#[derive(Debug, clap::Args)]
pub struct FetchArguments {
    /// Terminology to download; see `--list`.
    #[arg(required_unless_present_any = ["list", "url"])]
    name: Option<String>,
    /// List available terminologies with source and licence.
    #[arg(long)]
    list: bool,
    /// Output file or folder [default: the current folder]. An existing file is replaced once the new one is complete.
    #[arg(long, short, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Download from this address instead, such as that of another release.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Expected SHA-256 of the file.
    #[arg(long, value_name = "HEX", value_parser = parse_sha256)]
    sha256: Option<String>,
    /// Maximum size of the file in bytes.
    #[arg(long, value_name = "N", default_value_t = 16 << 30)]
    max_bytes: u64,
}

/// Provenance written beside the downloaded file.
#[derive(Serialize)]
struct Sidecar<'a> {
    name: &'a str,
    licence: &'a str,
    #[serde(flatten)]
    facts: &'a Facts,
}

fn parse_sha256(text: &str) -> Result<String, String> {
    match is_digest(text) && text.len() == 64 {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("expected 64 hexadecimal digits".to_owned()),
    }
}

/// Runs the command.
pub fn run(arguments: &FetchArguments) -> anyhow::Result<()> {
    if arguments.list {
        return output::print(&list());
    }
    let known = match &arguments.name {
        Some(name) => match find(name) {
            None if arguments.url.is_none() => {
                let message = format!("unknown terminology `{name}`");
                return Err(usage(
                    message,
                    "list terminologies with `canonym kb fetch --list`, or specify an address with `--url`",
                ));
            }
            found => found,
        },
        None => None,
    };
    let url = match (&arguments.url, known) {
        (Some(url), _) => url.as_str(),
        (None, known) => known.map(|known| known.url).unwrap_or_default(),
    };
    let out = destination(arguments.out.as_deref(), url)?;
    let build = build_command(known, &out);
    let hint = format!("without network access, copy {url} here from another machine and run `{build}`");
    let agent = agent(url);
    let expected = expected(arguments, known, url, &agent);
    let request = Request { url, out: &out, max_bytes: arguments.max_bytes, expected, hint: &hint };
    let facts = download(&agent, &request)?;
    let licence = known.map(|known| known.licence).unwrap_or_default();
    let name = known.map(|known| known.name).unwrap_or_default();
    write_sidecar(&out, &Sidecar { name, licence, facts: &facts })?;
    let mut sheet = Sheet::default();
    sheet.line("fetched", format!("{} ({})", out.display(), bytes(facts.size)));
    sheet.line("changed", facts.last_modified.clone());
    let checked = if facts.verified { "verified" } else { "not verified (no published checksum)" };
    sheet.line("sha256", format!("{}, {checked}", facts.sha256));
    sheet.line("licence", licence);
    sheet.line("next", build);
    progress::say(sheet.text().trim_end());
    Ok(())
}

/// The digest given by the user, or else that of the publisher.
fn expected(
    arguments: &FetchArguments,
    known: Option<&Terminology>,
    url: &str,
    agent: &ureq::Agent,
) -> Option<Expected> {
    if let Some(digest) = &arguments.sha256 {
        return Some(Expected { digest: digest.clone(), from: "`--sha256`".to_owned() });
    }
    let ending = known.filter(|known| !known.checksum.is_empty() && known.url == url)?.checksum;
    let from = format!("{url}{ending}");
    let digest = read_checksum(agent, &from);
    if digest.is_none() {
        progress::say(&format!("warning: no checksum found at {from}"));
    }
    Some(Expected { digest: digest?, from })
}

fn destination(out: Option<&Path>, url: &str) -> anyhow::Result<PathBuf> {
    let folder = match out {
        Some(path) if !path.is_dir() => return Ok(path.to_path_buf()),
        folder => folder.unwrap_or(Path::new("")),
    };
    match file_name(url) {
        Some(name) => Ok(folder.join(name)),
        None => Err(usage(format!("`{url}` does not name a file"), "specify the output file with `--out`")),
    }
}

fn build_command(known: Option<&Terminology>, out: &Path) -> String {
    let options = known.map_or(String::new(), |known| {
        let prefix = if known.prefix.is_empty() { String::new() } else { format!(" --prefix {}", known.prefix) };
        format!(" --format {}{prefix}", known.format)
    });
    let name = known.map_or("terminology", |known| known.name);
    format!("canonym kb build {}{options} --out {name}.kb", out.display())
}

fn write_sidecar(out: &Path, sidecar: &Sidecar<'_>) -> anyhow::Result<()> {
    let path = with_suffix(out, ".json");
    let mut file = AtomicFile::create(&path)?;
    let text = serde_json::to_string_pretty(sidecar)? + "\n";
    file.write_all(text.as_bytes()).map_err(|error| canonym_core::Error::io("write", &path, error))?;
    Ok(file.commit()?)
}

fn list() -> String {
    let width = catalogue::ALL.iter().map(|one| one.name.len()).max().unwrap_or_default();
    let row = |one: &Terminology| {
        let Terminology { name, title, url, format, licence, .. } = one;
        format!("{name:width$}  {title}\n{:width$}  {url}\n{:width$}  format {format}; {licence}\n", "", "")
    };
    catalogue::ALL.iter().map(row).collect()
}
