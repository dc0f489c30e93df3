//! Compiles source files into a knowledge base in one call.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::builder::{BuildProgress, BuildStep, KnowledgeBaseBuilder};
use super::code_system::canonical_prefix;
use super::format::{CodeSystemRecord, Meta, SourceFile};
use super::import::{ImportConfig, Report, SourceFormat, default_prefixes, import, import_sources, sssom};
use super::join::Mappings;
use super::record::ConceptRecord;
use super::xref::{Predicate, XrefRecord};
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
    /// Release given by the user for this source, or empty.
    pub version: String,
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
    /// SSSOM files whose mappings become cross-references of the concepts.
    pub xrefs_from: Vec<PathBuf>,
    /// URIs and releases of code systems given by the user.
    pub code_systems: Vec<CodeSystemRecord>,
    /// Whether no variants of names are added.
    pub names_as_written: bool,
}

/// Prefixes counted per source, to bound memory.
const MAX_PREFIXES: usize = 1000;

/// Name of the starter table in reports.
const STARTER: &str = "starter";

/// Imports `sources` and writes the knowledge base to `out`; `progress` is called while records are read and when a step
/// begins; its error ends the compilation.
pub fn compile(
    sources: &[CompileSource],
    config: &CompileConfig,
    out: &Path,
    progress: &mut BuildProgress<'_>,
) -> Result<(Meta, Report)> {
    let mut builder = KnowledgeBaseBuilder::new();
    let mut report = Report::default();
    let mut n_records = 0u64;
    let mappings = read_mappings(config, &mut report)?;
    let mut code_systems = config.code_systems.clone();
    for source in sources {
        builder.begin_source(&source.name)?;
        let mut prefixes: BTreeMap<String, u64> = BTreeMap::new();
        import(source.format, &source.paths, &source.import, &mut report, &mut |record| {
            n_records += 1;
            if n_records.is_multiple_of(4096) {
                progress(BuildStep::Read(n_records))?;
            }
            if !record.names.is_empty() {
                let prefix = record.id.split_once(':').map_or("", |(prefix, _)| prefix);
                let is_full = prefixes.len() >= MAX_PREFIXES;
                match prefixes.get_mut(prefix) {
                    Some(n) => *n += 1,
                    None if !is_full => drop(prefixes.insert(prefix.to_owned(), 1)),
                    None => {}
                }
            }
            let record = if source.name_wins { ConceptRecord { source: String::new(), ..record } } else { record };
            builder.add(record)
        })?;
        let release = report.release.take().unwrap_or_default();
        let given =
            [&source.version, if sources.len() == 1 { &config.version } else { &release }, &release, &config.version];
        let version = given.into_iter().find(|version| !version.is_empty()).cloned();
        let main = prefixes.into_iter().max_by_key(|(_, n)| *n).map(|(prefix, _)| prefix);
        if let Some((prefix, version)) = main.zip(version) {
            match code_systems.iter_mut().find(|known| known.prefix == prefix) {
                Some(known) if known.version.is_empty() => known.version = version,
                Some(_) => {}
                None => code_systems.push(CodeSystemRecord { prefix, version, ..CodeSystemRecord::default() }),
            }
        }
    }
    progress(BuildStep::Read(n_records))?;
    if builder.n_names() == 0 {
        return Err(nothing_left(&report));
    }
    if !config.mappings.is_empty() {
        report.n_joined = builder.join(&mappings, &mut report)?;
    }
    if let Some(starter) = &config.starter {
        builder.supplement(&read_starter(starter)?, &mut report)?;
    }
    if !config.names_as_written {
        builder.add_variants(&mut report)?;
    }
    for path in &config.xrefs_from {
        add_mappings(&mut Input::open(path)?, &mut builder, &mut report)?;
    }
    code_systems.sort_by(|one, other| one.prefix.cmp(&other.prefix));
    let (meta, built) = builder.write_with(Meta { code_systems, ..describe(sources, config)? }, out, progress)?;
    for ((kind, reason), n) in built.dropped {
        report.drop_many(&kind, &reason, n);
    }
    Ok((meta, report))
}

/// Adds the mappings of an SSSOM file to the cross-references of the concepts that they are about.
fn add_mappings(input: &mut Input, builder: &mut KnowledgeBaseBuilder, report: &mut Report) -> Result<()> {
    sssom::each(input, report, &mut |mapping| {
        let Some(predicate) = Predicate::from_name(mapping.predicate) else { return Ok(Some("another predicate")) };
        let (subject, object) = (mapping.subject_id(), mapping.object_id());
        let pairs = [(&subject, &object, predicate), (&object, &subject, predicate.inverse())];
        let mut is_known = false;
        for (id, other, predicate) in pairs {
            let xref = XrefRecord { id: other.clone().into_owned(), predicate };
            // Mappings may spell a prefix in lower case.
            let upper = id.split_once(':').map(|(prefix, code)| format!("{}:{code}", prefix.to_ascii_uppercase()));
            let spelled = [Some(id.clone().into_owned()), upper, known_id(id)];
            is_known |= spelled
                .iter()
                .flatten()
                .map(|id| builder.add_xref(id, &xref))
                .find_map(|added| match added {
                    Ok(false) => None,
                    other => Some(other),
                })
                .transpose()?
                .unwrap_or_default();
        }
        Ok((!is_known).then_some("of no concept"))
    })
}

/// The id with the canonical prefix of its code system.
fn known_id(id: &str) -> Option<String> {
    let (prefix, code) = id.split_once(':')?;
    Some(format!("{}:{code}", canonical_prefix(prefix)))
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
    let error = Error::no_data("no concepts to compile: none has a name");
    match drops.is_empty() {
        true => error.with_hint("check the source format and the filters"),
        false => error.with_hint(format!("check the source format and the filters; dropped: {}", drops.join(", "))),
    }
}

fn describe(sources: &[CompileSource], config: &CompileConfig) -> Result<Meta> {
    let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let paths = || sources.iter().flat_map(|source| &source.paths);
    let mut files = Vec::new();
    for path in paths()
        .chain(&config.mappings)
        .chain(&config.xrefs_from)
        .filter(|path| path.as_os_str() != "-" && path.is_file())
    {
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
