//! Compiles source files into a knowledge base in one call.

use std::io::Read;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::builder::KnowledgeBaseBuilder;
use super::format::{Meta, SourceFile};
use super::import::{ImportConfig, Report, SourceFormat, default_prefixes, import, import_sources, sssom};
use super::join::Mappings;
use super::record::ConceptRecord;
use crate::input::{Input, Source};
use crate::{Error, Result};

/// Files of one format, imported with the same settings. Earlier sources have priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileSource {
    /// Files, archives, or a folder.
    pub paths: Vec<PathBuf>,
    /// The source format.
    pub format: SourceFormat,
    /// Import settings.
    pub import: ImportConfig,
    /// Source of concepts if the format does not provide one; may be empty.
    pub name: String,
    /// Whether `name` also replaces sources provided by the format, such as namespaces.
    pub name_wins: bool,
}

/// Metadata, and mappings that merge concepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompileConfig {
    /// Short name; `None` uses the stem of the first file.
    pub name: Option<String>,
    /// Release given by the user, or empty.
    pub version: String,
    /// Licence note shown to users.
    pub licence: String,
    /// Options as given by the user.
    pub options: Vec<String>,
    /// SSSOM files with mappings between concepts of different sources.
    pub mappings: Vec<PathBuf>,
    /// Predicates that merge concepts; `skos:exactMatch` if empty.
    pub predicates: Vec<String>,
    /// The starter table, whose names become synonyms of concepts with the same ids.
    pub starter: Option<Vec<u8>>,
}

/// Name of the starter table in reports.
const STARTER: &str = "starter";

/// Imports `sources` and writes the knowledge base to `out`; `progress` is called with the number of records at
/// intervals; its error ends the compilation.
pub fn compile(
    sources: &[CompileSource],
    config: &CompileConfig,
    out: &Path,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<(Meta, Report)> {
    let mut builder = KnowledgeBaseBuilder::new();
    let mut report = Report::default();
    let mut n_records = 0u64;
    let mappings = read_mappings(config, &mut report)?;
    for source in sources {
        builder.begin_source(&source.name)?;
        import(source.format, &source.paths, &source.import, &mut report, &mut |record| {
            n_records += 1;
            if n_records.is_multiple_of(4096) {
                progress(n_records)?;
            }
            let record = if source.name_wins { ConceptRecord { source: String::new(), ..record } } else { record };
            builder.add(record)
        })?;
    }
    progress(n_records)?;
    if builder.n_names() == 0 {
        return Err(nothing_left(&report));
    }
    if !config.mappings.is_empty() {
        report.n_joined = builder.join(&mappings, &mut report)?;
    }
    if let Some(starter) = &config.starter {
        builder.supplement(&read_starter(starter)?, &mut report)?;
    }
    let (meta, built) = builder.write(describe(sources, config)?, out)?;
    for ((kind, reason), n) in built.dropped {
        report.drop_many(&kind, &reason, n);
    }
    Ok((meta, report))
}

fn read_starter(table: &[u8]) -> Result<Vec<ConceptRecord>> {
    let (config, mut report, mut records) = (ImportConfig::default(), Report::default(), Vec::new());
    let source = Source::from_bytes(STARTER, table.to_vec());
    import_sources(SourceFormat::Tsv, &[source], &config, &mut report, &mut |record| {
        records.push(record);
        Ok(())
    })?;
    Ok(records)
}

fn read_mappings(config: &CompileConfig, report: &mut Report) -> Result<Mappings> {
    let exact = [sssom::EXACT_MATCH.to_owned()];
    let predicates = if config.predicates.is_empty() { &exact[..] } else { &config.predicates };
    let mut mappings = Mappings::default();
    for path in &config.mappings {
        sssom::read(&mut Input::open(path)?, predicates, &mut mappings, report)?;
    }
    Ok(mappings)
}

/// The error for an empty result, which lists what was dropped.
fn nothing_left(report: &Report) -> Error {
    let drops: Vec<String> = report
        .dropped
        .iter()
        .map(|(what, n)| format!("{n} × {}: {}{}", what.0, what.1, report.first_of(what)))
        .collect();
    let error = Error::invalid("no concepts to compile: none has a name");
    match drops.is_empty() {
        true => error.with_hint("check the source format and the filters"),
        false => error.with_hint(format!("check the source format and the filters; dropped: {}", drops.join(", "))),
    }
}

fn describe(sources: &[CompileSource], config: &CompileConfig) -> Result<Meta> {
    let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let paths = || sources.iter().flat_map(|source| &source.paths);
    let mut files = Vec::new();
    for path in paths().chain(&config.mappings).filter(|path| path.as_os_str() != "-" && path.is_file()) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        files.push(SourceFile { name, xxh3: hash_file(path)? });
    }
    if let Some(starter) = &config.starter {
        files.push(SourceFile { name: STARTER.to_owned(), xxh3: format!("{:032x}", xxh3_128(starter)) });
    }
    let mut formats: Vec<&str> = Vec::new();
    let mut added_prefixes: Vec<String> = Vec::new();
    for source in sources {
        let prefixes = added_prefixes_of(source);
        let new = prefixes.into_iter().filter(|prefix| !added_prefixes.contains(prefix)).collect::<Vec<_>>();
        added_prefixes.extend(new);
        if !formats.contains(&source.format.name()) {
            formats.push(source.format.name());
        }
    }
    Ok(Meta {
        name: config.name.clone().or_else(|| paths().next().and_then(stem)).unwrap_or_default(),
        source_format: formats.join(", "),
        files,
        version: config.version.clone(),
        licence: config.licence.clone(),
        added_prefixes,
        options: config.options.clone(),
        ..Meta::default()
    })
}

/// Prefixes that a source adds to ids without one.
fn added_prefixes_of(source: &CompileSource) -> Vec<String> {
    match &source.import.prefix {
        Some(prefix) => vec![prefix.clone()],
        None => default_prefixes(source.format).iter().map(|&prefix| prefix.to_owned()).collect(),
    }
}

/// XXH3-128 of a file, in hexadecimal.
pub fn hash_file(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).map_err(|source| Error::io("open", path, source))?;
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(|source| Error::io("read", path, source))? {
            0 => return Ok(format!("{:032x}", hasher.digest128())),
            n => hasher.update(&buffer[..n]),
        }
    }
}
