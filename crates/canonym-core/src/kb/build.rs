//! Builds a knowledge base from the sources and settings of a user, as `canonym kb build` does.

use std::path::{Path, PathBuf};

use super::builder::BuildProgress;
use super::compile::{CompileConfig, CompileSource, compile};
use super::format::{CodeSystemRecord, Meta};
use super::import::{ImportConfig, Report, SourceFormat};
use super::sources::{SourceArgument, resolve};
use crate::{Error, Result};

/// The setting as recorded in the knowledge base.
pub const WITH_STARTER: &str = "--with-starter";

/// The setting as recorded in the knowledge base.
const NAMES_AS_WRITTEN: &str = "--names-as-written";

/// What a knowledge base is built from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildConfig {
    /// Files, archives or folders; for equal ids, the first provides the preferred name and the definition.
    pub sources: Vec<SourceArgument>,
    /// Format of sources that do not name theirs; detected if `None`.
    pub format: Option<SourceFormat>,
    /// Import settings for all sources.
    pub import: ImportConfig,
    /// SSSOM files whose mappings merge concepts of different sources.
    pub mappings: Vec<PathBuf>,
    /// Predicates that merge concepts; `skos:exactMatch` if empty.
    pub predicates: Vec<String>,
    /// The starter table, whose names become synonyms of concepts with the same ids.
    pub starter: Option<Vec<u8>>,
    /// Short name; `None` uses the name of the first source.
    pub name: Option<String>,
    /// Licence of the content, shown to users.
    pub licence: String,
    /// Release of the source.
    pub version: String,
    /// SSSOM files whose mappings become cross-references of the concepts.
    pub xrefs_from: Vec<PathBuf>,
    /// URIs and releases of code systems.
    pub code_systems: Vec<CodeSystemRecord>,
    /// Whether names stay as written: no variants without remarks in brackets and words such as `unspecified` are added.
    pub names_as_written: bool,
}

/// Parses a code system: `PREFIX=URI`, or `PREFIX=URI|VERSION`.
pub fn code_system(text: &str) -> Result<CodeSystemRecord> {
    let wrong =
        |what: &str| Error::usage(format!("`{text}`: {what}"), "write it as CLINIC=https://clinic.example/codes|2026");
    let (prefix, rest) = text.split_once('=').ok_or_else(|| wrong("there is no `=`"))?;
    let (uri, version) = rest.split_once('|').unwrap_or((rest, ""));
    let (prefix, uri, version) = (prefix.trim().trim_end_matches(':'), uri.trim(), version.trim());
    if prefix.contains([':', '|']) || uri.contains(char::is_whitespace) || !uri.contains(':') {
        return Err(wrong("not a prefix and a URI"));
    }
    Ok(CodeSystemRecord { prefix: prefix.to_owned(), uri: uri.to_owned(), version: version.to_owned() })
}

/// Writes the knowledge base to `out`; `progress` is called while records are read and when a step begins; its error ends the build.
///
/// # Errors
/// If a source cannot be read, or `out` cannot be written or is one of the sources.
pub fn build(config: &BuildConfig, out: &Path, progress: &mut BuildProgress<'_>) -> Result<(Meta, Report)> {
    check_out(config, out)?;
    let sources = resolve(&config.sources, config.format, &config.import)?;
    let compiled = CompileConfig {
        name: config.name.clone(),
        version: config.version.clone(),
        licence: config.licence.clone(),
        options: options(config, &sources),
        mappings: config.mappings.clone(),
        predicates: config.predicates.clone(),
        starter: config.starter.clone(),
        xrefs_from: config.xrefs_from.clone(),
        code_systems: config.code_systems.clone(),
        names_as_written: config.names_as_written,
    };
    compile(&sources, &compiled, out, progress)
}

/// Rejects an output path that cannot be written, before any work is done.
fn check_out(config: &BuildConfig, out: &Path) -> Result<()> {
    if std::fs::metadata(out).is_ok_and(|metadata| !metadata.is_file()) {
        let message = format!("{} exists and is not a regular file", out.display());
        return Err(Error::usage(message, "choose another name for `--out`"));
    }
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(Error::usage(
            format!("no such folder: {}", folder.display()),
            "create it, or choose another folder",
        ));
    }
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let mut inputs = config.sources.iter().map(|source| &source.path).chain(&config.mappings).chain(&config.xrefs_from);
    if real(out).is_some_and(|written| inputs.any(|source| real(source).as_ref() == Some(&written))) {
        let message = format!("output would overwrite the source {}", out.display());
        return Err(Error::usage(message, "choose another name for `--out`"));
    }
    Ok(())
}

/// The options that affect the content, as written on the command line; paths are reduced to file names.
fn options(config: &BuildConfig, sources: &[CompileSource]) -> Vec<String> {
    let all = &config.import;
    let last = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut options = Vec::new();
    match sources {
        [only] if only.name.is_empty() => {
            options.push(format!("--format {}", only.format.name()));
            options.extend(only.import.prefix.as_ref().map(|prefix| format!("--prefix {prefix}")));
        }
        _ => {
            for source in sources {
                let prefix =
                    source.import.prefix.as_ref().map(|prefix| format!("prefix={prefix},")).unwrap_or_default();
                let settings = format!("format={},{prefix}name={}", source.format.name(), source.name);
                options.extend(source.paths.iter().map(|path| format!("{settings}@{}", last(path))));
            }
        }
    }
    let lists = [
        ("--sources", &all.sources),
        ("--languages", &all.languages),
        ("--semantic-types", &all.semantic_types),
        ("--term-types", &all.term_types),
        ("--join-predicates", &config.predicates),
    ];
    let given = lists.iter().filter(|(_, list)| !list.is_empty());
    options.extend(given.map(|(option, list)| format!("{option} {}", list.join(","))));
    let flags = [("--keep-obsolete", all.keep_obsolete), ("--xrefs", all.xrefs)];
    options.extend(flags.iter().filter(|(_, given)| *given).map(|(option, _)| (*option).to_owned()));
    options.extend(config.mappings.iter().map(|path| format!("--join {}", last(path))));
    options.extend(config.xrefs_from.iter().map(|path| format!("--xrefs-from {}", last(path))));
    options.extend(config.starter.is_some().then(|| WITH_STARTER.to_owned()));
    options.extend(config.names_as_written.then(|| NAMES_AS_WRITTEN.to_owned()));
    options
}
