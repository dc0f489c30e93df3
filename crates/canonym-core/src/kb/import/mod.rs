//! Importers: one file per format, each streams records from an [`Input`] to a sink.
//!
//! An importer never holds the whole file. It counts dropped content in a [`Report`] by kind and reason, and reports a
//! malformed row as [`Error::Parse`] with path and line. The builder merges records with the same id and drops
//! duplicate names.
//!
//! ```
//! use canonym_core::input::Source;
//! use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import_sources};
//!
//! let sources = [Source::from_bytes("shapes.tsv", b"S1\tcircle\tround|ring\n".to_vec())];
//! let config = ImportConfig { prefix: Some("SHAPE".to_owned()), ..ImportConfig::default() };
//! let mut report = Report::default();
//! let mut ids = Vec::new();
//! import_sources(SourceFormat::Tsv, &sources, &config, &mut report, &mut |record| {
//!     ids.push(record.id);
//!     Ok(())
//! })?;
//! assert_eq!(ids, ["SHAPE:S1"]);
//! assert_eq!(report.n_read, 1);
//! # Ok::<(), canonym_core::Error>(())
//! ```

pub mod biosyn;
pub mod ctd;
mod ctd_rows;
pub mod detect;
pub mod gene_info;
pub mod jsonl;
pub mod mesh_ascii;
mod mesh_relations;
pub mod mesh_xml;
pub mod obo;
mod obo_syntax;
pub mod obographs;
pub mod owl;
mod owl_guard;
pub mod rf2;
mod rf2_tables;
pub mod rrf;
mod rrf_rows;
pub mod sssom;
pub mod taxonomy;
pub mod tsv;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::input::{Input, Source};
use crate::kb::{ConceptRecord, NameRecord, Scope};
use crate::{Error, Result};

/// The source formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFormat {
    /// Tab-separated id, name, synonyms (by `|`), types (by `|`) and definition; id and name are required, no header
    /// line.
    Tsv,
    /// One JSON object per line with the fields of [`ConceptRecord`].
    Jsonl,
    /// Lines `ids||name|name…`, several ids separated by `|`.
    Biosyn,
    /// OBO 1.2 and 1.4.
    Obo,
    /// OBO Graphs JSON.
    Obographs,
    /// UMLS Rich Release Format: a folder or its files.
    Rrf,
    /// CTD and MEDIC vocabularies as TSV or CSV.
    Ctd,
    /// NCBI Gene `gene_info` tables.
    GeneInfo,
    /// MeSH in ASCII format.
    MeshAscii,
    /// MeSH descriptors and supplementary records as XML.
    MeshXml,
    /// OWL ontologies as RDF/XML or Turtle.
    Owl,
    /// SNOMED CT Release Format 2.
    Rf2,
    /// NCBI taxonomy dumps.
    Taxonomy,
}

/// Import settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportConfig {
    /// Prefix for ids without one, without colon: `MESH`.
    pub prefix: Option<String>,
    /// Sources to import (RRF `SAB`, OBO namespaces, taxa of NCBI Gene); all if empty.
    pub sources: Vec<String>,
    /// Languages to import, as two- or three-letter codes: `en` equals `ENG`; English if empty.
    pub languages: Vec<String>,
    /// Semantic types to import (`T047`); all if empty.
    pub semantic_types: Vec<String>,
    /// Term types to import (RRF `TTY`); all if empty.
    pub term_types: Vec<String>,
    /// Whether to import obsolete and suppressible entries.
    pub keep_obsolete: bool,
    /// Whether cross-references are alternative ids, too, by which concepts are found and merged.
    pub xrefs: bool,
}

/// Reason for merging a record with an earlier one.
const SAME_ID: &str = "duplicate id";

/// Counts of imported and dropped content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of rows, stanzas or nodes read.
    pub n_read: u64,
    /// Numbers of dropped items by kind and reason, such as `("term", "obsolete")`.
    pub dropped: BTreeMap<(String, String), u64>,
    /// Number of concepts merged into another because of mappings.
    pub n_joined: u64,
    /// Number of concepts with names added from a second list.
    pub n_supplemented: u64,
    /// Number of names added.
    pub n_added_names: u64,
    /// Number of variants of names added.
    pub n_variants: u64,
    /// Numbers of records merged into an earlier one of the same file, by kind and reason.
    pub merged: BTreeMap<(String, String), u64>,
    /// Location of the first item dropped or merged for each kind and reason, if the importer tracks lines.
    pub first: BTreeMap<(String, String), String>,
    /// The release that the header of the source gives, if it does.
    pub release: Option<String>,
    /// Current file and line; line 0 is unknown.
    location: (PathBuf, u64),
    /// Hashes of the ids in the current file.
    ids: HashSet<u64>,
}

impl Report {
    /// Counts one dropped item of `kind` for `reason`.
    pub fn drop_one(&mut self, kind: &str, reason: &str) {
        self.drop_many(kind, reason, 1);
    }

    /// Counts `n` dropped items of `kind` for `reason`.
    pub fn drop_many(&mut self, kind: &str, reason: &str, n: u64) {
        if n > 0 {
            *self.dropped.entry((kind.to_owned(), reason.to_owned())).or_insert(0) += n;
            self.record_first(kind, reason);
        }
    }

    /// Counts a record of `kind` if its id occurred earlier in the file.
    fn register_id(&mut self, kind: &str, id: &str) {
        if !self.ids.insert(xxh3_64(id.as_bytes())) {
            *self.merged.entry((kind.to_owned(), SAME_ID.to_owned())).or_insert(0) += 1;
            self.record_first(kind, SAME_ID);
        }
    }

    /// Sets the current line.
    fn set_line(&mut self, line: u64) {
        self.location.1 = line;
    }

    /// Sets the current file.
    fn begin_file(&mut self, path: &Path) {
        self.location = (path.to_path_buf(), 0);
        self.ids.clear();
    }

    fn record_first(&mut self, kind: &str, reason: &str) {
        let (path, line) = &self.location;
        if *line > 0 {
            let location = || format!("{}:{line}", path.display());
            self.first.entry((kind.to_owned(), reason.to_owned())).or_insert_with(location);
        }
    }

    /// Location of the first item of a kind and reason, as ` (…)`; empty if unknown.
    pub fn first_of(&self, what: &(String, String)) -> String {
        self.first.get(what).map(|location| format!(" (first: {location})")).unwrap_or_default()
    }

    /// Number of items of `kind` dropped for `reason`.
    pub fn n_dropped(&self, kind: &str, reason: &str) -> u64 {
        self.dropped.get(&(kind.to_owned(), reason.to_owned())).copied().unwrap_or(0)
    }
}

/// Receives the records of an importer.
pub type Sink<'a> = dyn FnMut(ConceptRecord) -> Result<()> + 'a;

/// Imports files, archives and (RRF, RF2 and NCBI taxonomy) folders.
///
/// From an archive, reads the members whose names match the format, or all members if none match.
pub fn import(
    format: SourceFormat,
    sources: &[PathBuf],
    config: &ImportConfig,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    let mut opened = Vec::new();
    for path in sources {
        if path.is_dir() {
            match format {
                SourceFormat::Rrf => opened.extend(rrf::folder(path)?),
                SourceFormat::Rf2 => opened.extend(rf2::folder(path)?),
                SourceFormat::Taxonomy => opened.extend(taxonomy::folder(path)?),
                _ => opened.extend(Input::members(path)?),
            }
            continue;
        }
        let members = Input::members(path)?;
        let suits = |source: &Source| detect::suits_name(format, source.file_name());
        if members.len() > 1 && members.iter().any(suits) {
            let (kept, left): (Vec<Source>, Vec<Source>) = members.into_iter().partition(suits);
            report.drop_many("file", "file file name of another format", left.len() as u64);
            opened.extend(kept);
        } else {
            opened.extend(members);
        }
    }
    if let (true, Some(path)) = (opened.is_empty(), sources.first()) {
        let message = format!("{} contains no files", path.display());
        return Err(Error::no_data(message).with_hint("check the archive or the folder"));
    }
    import_sources(format, &opened, config, report, sink)
}

/// Imports open sources: files, members of archives, or bytes in memory.
///
/// Sources without any row, stanza or node are an error, because the format is probably another one.
pub fn import_sources(
    format: SourceFormat,
    sources: &[Source],
    config: &ImportConfig,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    check_config(format, config)?;
    let n_before = report.n_read;
    read_all(format, sources, config, report, sink).map_err(|error| cause_of(error, sources))?;
    if report.n_read == n_before {
        let path = sources.first().map_or(Path::new("-"), Source::path);
        let error = Error::parse(path, 1, format!("no concepts in {} format found", format.name()));
        return Err(cause_of(error.with_hint("check the file and its format (option `--format`)"), sources));
    }
    Ok(())
}

/// `error`, or the damage of the compressed file that it is about.
fn cause_of(error: Error, sources: &[Source]) -> Error {
    let is_content = matches!(error.root(), Error::Parse { .. });
    let about = sources.iter().find(|source| is_content && error.path() == Some(source.path()));
    about.and_then(|source| source.verify().err()).unwrap_or(error)
}

/// Reads all sources of a format.
fn read_all(
    format: SourceFormat,
    sources: &[Source],
    config: &ImportConfig,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    match format {
        // The files of these formats refer to each other and are read together.
        SourceFormat::Rrf => rrf::read(sources, config, report, sink)?,
        SourceFormat::Rf2 => rf2::read(sources, config, report, sink)?,
        SourceFormat::MeshXml => mesh_xml::read(sources, config, report, sink)?,
        SourceFormat::MeshAscii => mesh_ascii::read(sources, config, report, sink)?,
        SourceFormat::Taxonomy => taxonomy::read(sources, config, report, sink)?,
        _ => {
            for source in sources {
                let mut input = source.open()?;
                detect::refuse_foreign(&input, Some(format))?;
                report.begin_file(input.path());
                read_one(format, &mut input, config, report, sink)?;
            }
            report.begin_file(Path::new(""));
        }
    }
    Ok(())
}

/// Reads a file of a format with self-contained files.
fn read_one(
    format: SourceFormat,
    input: &mut Input,
    config: &ImportConfig,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    match format {
        SourceFormat::Tsv => tsv::read(input, config, report, sink),
        SourceFormat::Jsonl => jsonl::read(input, config, report, sink),
        SourceFormat::Biosyn => biosyn::read(input, config, report, sink),
        SourceFormat::Obo => obo::read(input, config, report, sink),
        SourceFormat::Obographs => obographs::read(input, config, report, sink),
        SourceFormat::Ctd => ctd::read(input, config, report, sink),
        SourceFormat::GeneInfo => gene_info::read(input, config, report, sink),
        SourceFormat::Owl => owl::read(input, config, report, sink),
        SourceFormat::Rrf
        | SourceFormat::Rf2
        | SourceFormat::MeshXml
        | SourceFormat::MeshAscii
        | SourceFormat::Taxonomy => Ok(()),
    }
}

/// The displayed id: trimmed, with the prefix of `config` if it has none.
///
/// Each of several ids joined by `|` gets the prefix.
pub fn with_prefix(id: &str, config: &ImportConfig) -> String {
    map_parts(id, &['|'], |part| match &config.prefix {
        Some(prefix) if !part.is_empty() && !part.contains(':') => format!("{prefix}:{part}"),
        _ => part.to_owned(),
    })
}

/// An error if a release contains a table twice.
fn check_unique<'a>(mut tables: impl Iterator<Item = &'a Source>) -> Result<()> {
    let (Some(one), Some(other)) = (tables.next(), tables.next()) else { return Ok(()) };
    let message = format!("{} and {} are the same table", one.path().display(), other.path().display());
    Err(Error::usage(message, "specify each table once, compressed or not"))
}

/// `config` with a default prefix.
fn with_default_prefix(config: &ImportConfig, prefix: &str) -> ImportConfig {
    let prefix = config.prefix.clone().unwrap_or_else(|| prefix.to_owned());
    ImportConfig { prefix: Some(prefix), ..config.clone() }
}

/// Default prefixes that an importer adds to ids without one.
pub(super) fn default_prefixes(format: SourceFormat) -> &'static [&'static str] {
    match format {
        SourceFormat::Biosyn => &["MESH", "OMIM"],
        SourceFormat::Rrf => &["UMLS"],
        SourceFormat::Rf2 => &["SNOMEDCT"],
        SourceFormat::MeshXml | SourceFormat::MeshAscii => &[mesh_relations::PREFIX],
        SourceFormat::Ctd | SourceFormat::GeneInfo => &[gene_info::PREFIX],
        SourceFormat::Taxonomy => &[taxonomy::PREFIX],
        _ => &[],
    }
}

/// Maps each of several ids joined by one of the (ASCII) `signs`, without the white space around them.
fn map_parts(ids: &str, signs: &[char], rewrite: impl Fn(&str) -> String) -> String {
    let mut whole = String::with_capacity(ids.len() + 8);
    for piece in ids.split_inclusive(signs) {
        let joined = piece.ends_with(signs);
        let part = if joined { &piece[..piece.len() - 1] } else { piece };
        whole.push_str(&rewrite(part.trim()));
        if joined {
            whole.push_str(&piece[piece.len() - 1..]);
        }
    }
    whole
}

/// Removes duplicates; the first occurrence stays.
fn distinct(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut known = HashSet::new();
    texts.into_iter().filter(|text| known.insert(text.clone())).collect()
}

/// Adds a trimmed name; empty names are counted and dropped.
fn push_name(names: &mut Vec<NameRecord>, text: &str, scope: Scope, report: &mut Report) {
    match text.trim() {
        "" => report.drop_one("name", "empty"),
        text => names.push(NameRecord { text: text.to_owned(), scope }),
    }
}

/// Adds the cross-references to the alternative ids, if the settings say so.
fn xrefs_as_ids(record: &mut ConceptRecord, config: &ImportConfig) {
    if config.xrefs {
        record.alternative_ids.extend(record.xrefs.iter().map(|xref| xref.id.clone()));
    }
}

/// The release in the version of an ontology: `hp/releases/2025-01-16` and `…/2025-01-16/hp.obo` give `2025-01-16`.
fn release_of(version: &str) -> Option<String> {
    let version = version.trim();
    let is_date = |part: &str| {
        part.len() == 10
            && part
                .bytes()
                .enumerate()
                .all(|(at, byte)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() })
    };
    let release = version.split('/').find(|part| is_date(part)).unwrap_or(version);
    let is_plain = !release.is_empty() && release.len() <= 100 && !release.chars().any(char::is_control);
    is_plain.then(|| release.to_owned())
}

/// Emits a record if it has a name and passes the filters on types and sources. Returns whether it did.
fn keep(mut record: ConceptRecord, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<bool> {
    xrefs_as_ids(&mut record, config);
    let typed = || record.types.iter().any(|own| config.semantic_types.contains(own));
    let unwanted = if record.names.is_empty() {
        Some("no name")
    } else if !config.semantic_types.is_empty() && !typed() {
        Some("semantic type")
    } else if !config.sources.is_empty() && !config.sources.contains(&record.source) {
        Some("source")
    } else {
        None
    };
    match unwanted {
        Some(reason) => report.drop_one("concept", reason),
        None => sink(record)?,
    }
    Ok(unwanted.is_none())
}

/// Rejects filters that the format does not support, rather than ignoring them.
pub fn check_config(format: SourceFormat, config: &ImportConfig) -> Result<()> {
    use SourceFormat::{Biosyn, Ctd, GeneInfo, Jsonl, MeshAscii, MeshXml, Owl, Rf2, Rrf, Taxonomy, Tsv};
    let typed = matches!(format, Tsv | Jsonl | Rrf | Rf2 | MeshXml | MeshAscii | Ctd | GeneInfo | Taxonomy);
    let sourced = !matches!(format, Tsv | Biosyn | Rf2 | MeshXml | MeshAscii | Ctd | Taxonomy);
    let unusable = [
        (!config.semantic_types.is_empty() && !typed, "semantic types"),
        (!config.sources.is_empty() && !sourced, "source vocabularies"),
        (!config.term_types.is_empty() && format != Rrf, "term types"),
        (!config.languages.is_empty() && !matches!(format, Rrf | Rf2 | Owl), "languages"),
    ];
    match unusable.iter().find(|(unusable, _)| *unusable) {
        Some((_, what)) => {
            let message = format!("{} has no {what} to filter by", format.name());
            Err(Error::unsupported(message).with_hint("omit the filter"))
        }
        None => Ok(()),
    }
}
