//! `canonym kb info`: contents and integrity of a compiled file.

use canonym_neural::system::terminology;
use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context;
use canonym_core::kb::counts::Counts;
use canonym_core::kb::format::SourceFile;
use canonym_core::kb::{KnowledgeBase, Scope, code_system};
use serde::Serialize;

use crate::output::{self, Sheet, bytes, singular_if_one, thousands};

/// Arguments of `canonym kb info`.
#[derive(Debug, clap::Args)]
pub struct InfoArguments {
    /// Knowledge base file; `starter` is the embedded one.
    #[arg(value_name = "FILE.kb")]
    file: PathBuf,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
    /// Also list the sections of the file with their sizes; JSON always includes them.
    #[arg(long)]
    sections: bool,
    /// Verify the checksum of every section, even in large files.
    #[arg(long)]
    verify: bool,
}

#[derive(Serialize)]
struct CodeSystem {
    prefix: String,
    uri: String,
    version: String,
}

#[derive(Serialize)]
struct Info<'a> {
    name: &'a str,
    source_format: &'a str,
    files: &'a [SourceFile],
    version: &'a str,
    licence: &'a str,
    added_prefixes: &'a [String],
    options: &'a [String],
    n_concepts: u64,
    n_names: u64,
    n_forms: u64,
    #[serde(flatten)]
    counts: Counts,
    n_xrefs: u64,
    code_systems: Vec<CodeSystem>,
    format: u32,
    n_bytes: u64,
    fingerprint: String,
    verified: bool,
    sections: BTreeMap<String, u64>,
}

/// Runs the command.
pub fn run(arguments: &InfoArguments) -> anyhow::Result<()> {
    let kb = terminology::open(Some(&arguments.file))?;
    if arguments.verify {
        kb.container().verify().context("the knowledge base is damaged")?;
    }
    let info = collect(&kb, arguments.verify);
    if arguments.json {
        return output::print_json(&info);
    }
    let mut sheet = sheet(&info);
    if arguments.sections {
        let filled = info.sections.iter().filter(|(_, len)| **len > 0);
        sheet.counts("section bytes", &filled.map(|(name, len)| (*len, name.clone())).collect::<Vec<_>>());
    }
    output::print(&sheet.text())
}

fn collect(kb: &KnowledgeBase, verified: bool) -> Info<'_> {
    let meta = kb.meta();
    Info {
        name: &meta.name,
        source_format: &meta.source_format,
        files: &meta.files,
        version: &meta.version,
        licence: &meta.licence,
        added_prefixes: &meta.added_prefixes,
        options: &meta.options,
        n_concepts: kb.n_concepts() as u64,
        n_names: kb.n_names() as u64,
        n_forms: kb.n_forms() as u64,
        counts: Counts::of(kb),
        n_xrefs: kb.n_xrefs() as u64,
        code_systems: code_systems(kb),
        format: kb.container().format(),
        n_bytes: kb.container().bytes().len() as u64,
        fingerprint: format!("{:032x}", kb.container().fingerprint()),
        verified,
        sections: kb.container().sections().into_iter().map(|(name, len)| (name, len as u64)).collect(),
    }
}

/// Code systems with a registered or recorded URI, or a known release.
fn code_systems(kb: &KnowledgeBase) -> Vec<CodeSystem> {
    let prefixes = code_system::prefixes(kb).into_iter();
    let systems = prefixes.map(|prefix| {
        let (uri, version) = (code_system::uri(kb, &prefix), code_system::version(kb, &prefix).to_owned());
        CodeSystem { prefix, uri, version }
    });
    systems.filter(|one| !code_system::is_made_up(&one.uri) || !one.version.is_empty()).collect()
}

fn sheet(info: &Info<'_>) -> Sheet {
    let mut sheet = Sheet::default();
    sheet.line("name", info.name);
    sheet.line("version", info.version);
    sheet.line("licence", info.licence);
    let files = info.files.iter().map(|file| format!("{} (xxh3 {})", file.name, file.xxh3));
    sheet.lines("files", files);
    sheet.line("options", info.options.join(" "));
    sheet.line("added prefixes", info.added_prefixes.join(", "));
    let systems = info.code_systems.iter();
    let systems = systems.map(|one| format!("{}  {} {}", one.prefix, one.uri, one.version).trim_end().to_owned());
    sheet.lines("code systems", systems);
    let Counts { scopes, types, sources, .. } = &info.counts;
    let counts = [
        (info.n_concepts, "concepts"),
        (info.n_names, "names"),
        (info.n_forms, "distinct names, ignoring case and punctuation"),
        (info.counts.n_shared_forms, "names shared by several concepts"),
        (info.counts.n_definitions, "concepts with a definition"),
        (info.counts.n_with_parents, "concepts with a parent"),
        (info.counts.n_alternative_ids, "alternative ids"),
        (info.n_xrefs, "cross-references"),
    ];
    sheet.counts("counts", &counts.map(|(n, what)| (n, singular_if_one(n, what))));
    let order = [Scope::Preferred, Scope::Exact, Scope::Narrow, Scope::Broad, Scope::Related].map(Scope::name);
    let scopes = order.iter().filter_map(|word| scopes.get(*word).map(|n| (*n, (*word).to_owned())));
    sheet.counts("names", &scopes.collect::<Vec<_>>());
    sheet.counts("types", &by_count(types));
    sheet.counts("sources", &by_count(sources));
    sheet.line("file", format!("{}, format {}", bytes(info.n_bytes), info.format));
    sheet.line("fingerprint", info.fingerprint.clone());
    if info.verified {
        sheet.line("checksums", format!("all {} sections match", thousands(info.sections.len() as u64)));
    }
    sheet
}

/// Sorts by descending count, then by name.
fn by_count(counts: &BTreeMap<String, u64>) -> Vec<(u64, String)> {
    let mut rows: Vec<(u64, String)> = counts.iter().map(|(name, n)| (*n, name.clone())).collect();
    rows.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    rows
}
