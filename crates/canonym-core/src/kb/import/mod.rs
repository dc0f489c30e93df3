//! Importers: one file a source, each streams records from an [`Input`] to a sink.
//!
//! An importer never holds the file. It counts what it drops in a [`Report`], by kind and reason, and turns a
//! malformed row into an [`Error::Parse`] with path and line. Merging records of one id, and dropping repeated names,
//! is the work of the builder.
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

/// The sources that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceFormat {
    /// `id\tname\tsynonyms by |\ttypes by |\tdefinition`, the first two needed, no header line.
    Tsv,
    /// One JSON object a line with the fields of [`ConceptRecord`].
    Jsonl,
    /// `ids||name|name…` lines, `|` joins the ids of one name.
    Biosyn,
    /// OBO 1.2 and 1.4.
    Obo,
    /// OBO graphs as JSON.
    Obographs,
    /// UMLS rich release format: a folder or the files themselves.
    Rrf,
    /// CTD and MEDIC vocabularies as TSV or CSV.
    Ctd,
    /// NCBI Gene `gene_info` tables.
    GeneInfo,
    /// MeSH in its ASCII format.
    MeshAscii,
    /// MeSH descriptors and supplementary records as XML.
    MeshXml,
    /// OWL ontologies as RDF/XML or Turtle.
    Owl,
    /// SNOMED CT release format 2.
    Rf2,
    /// NCBI taxonomy dumps.
    Taxonomy,
}

/// What to keep of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportConfig {
    /// A prefix for ids that have none, without the colon: `MESH`.
    pub prefix: Option<String>,
    /// Source vocabularies to keep (RRF `SAB`, OBO namespaces, taxa of NCBI genes); all where empty.
    pub sources: Vec<String>,
    /// Languages to keep, as two or three letters: `en` and `ENG` mean the same; English where empty.
    pub languages: Vec<String>,
    /// Semantic types to keep (`T047`); all where empty.
    pub semantic_types: Vec<String>,
    /// Term types to keep (RRF `TTY`); all where empty.
    pub term_types: Vec<String>,
    /// Whether obsolete and suppressible entries are kept.
    pub keep_obsolete: bool,
    /// Whether cross-references to other terminologies become alternative ids.
    pub xrefs: bool,
}

/// Why a record is merged with an earlier one.
const SAME_ID: &str = "duplicate id";

/// What was read, and what was dropped and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows, stanzas or nodes that were read.
    pub n_read: u64,
    /// How many were dropped, by kind and reason, such as `("term", "obsolete")`.
    pub dropped: BTreeMap<(String, String), u64>,
    /// Concepts that mappings made a part of another one.
    pub n_joined: u64,
    /// Concepts that got further names from a second list.
    pub n_supplemented: u64,
    /// The names that they got.
    pub n_added_names: u64,
    /// Records that became a part of an earlier one of the same file, by kind and reason.
    pub merged: BTreeMap<(String, String), u64>,
    /// Where the first of each kind and reason stands that was dropped or merged, where the importer tells lines.
    pub first: BTreeMap<(String, String), String>,
    /// The file and line that is being read; line 0 is none.
    place: (PathBuf, u64),
    /// Hashes of the ids that the file had so far.
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
            self.tell_first(kind, reason);
        }
    }

    /// Counts a record of `kind` whose id an earlier one of the file has.
    fn meet_id(&mut self, kind: &str, id: &str) {
        if !self.ids.insert(xxh3_64(id.as_bytes())) {
            *self.merged.entry((kind.to_owned(), SAME_ID.to_owned())).or_insert(0) += 1;
            self.tell_first(kind, SAME_ID);
        }
    }

    /// Says which line is being read.
    fn stand_at(&mut self, line: u64) {
        self.place.1 = line;
    }

    /// Says which file is being read.
    fn begin_file(&mut self, path: &Path) {
        self.place = (path.to_path_buf(), 0);
        self.ids.clear();
    }

    fn tell_first(&mut self, kind: &str, reason: &str) {
        let (path, line) = &self.place;
        if *line > 0 {
            let place = || format!("{}:{line}", path.display());
            self.first.entry((kind.to_owned(), reason.to_owned())).or_insert_with(place);
        }
    }

    /// Where the first of a kind and reason stands, in brackets behind a blank; nothing where no importer told.
    pub fn place_of(&self, what: &(String, String)) -> String {
        self.first.get(what).map(|place| format!(" (first: {place})")).unwrap_or_default()
    }

    /// How many items of `kind` were dropped for `reason`.
    pub fn n_dropped(&self, kind: &str, reason: &str) -> u64 {
        self.dropped.get(&(kind.to_owned(), reason.to_owned())).copied().unwrap_or(0)
    }
}

/// Takes the records of an importer.
pub type Sink<'a> = dyn FnMut(ConceptRecord) -> Result<()> + 'a;

/// Imports files, archives and, for RRF, RF2 and NCBI taxonomy, folders.
///
/// Of an archive the members whose names suit the format are read, or all where none does.
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
        return Err(Error::invalid(message).with_hint("check the archive or the folder"));
    }
    import_sources(format, &opened, config, report, sink)
}

/// Imports sources that stand ready: files, members of archives, or bytes in memory.
///
/// Sources without a single row, stanza or node are an error: the format is most likely another one.
pub fn import_sources(
    format: SourceFormat,
    sources: &[Source],
    config: &ImportConfig,
    report: &mut Report,
    sink: &mut Sink<'_>,
) -> Result<()> {
    check_config(format, config)?;
    let n_before = report.n_read;
    match format {
        // These take their files together, because one refers to another.
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
    if report.n_read == n_before {
        let path = sources.first().map_or(Path::new("-"), Source::path);
        let error = Error::parse(path, 1, format!("no concepts in {} format found", format.name()));
        return Err(error.with_hint("check the file and `--format`"));
    }
    Ok(())
}

/// Reads one file of a format whose files stand alone.
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

/// The id as it is shown: trimmed, and with the prefix of `config` where it has none.
///
/// Ids joined by `|` get the prefix one by one.
pub fn with_prefix(id: &str, config: &ImportConfig) -> String {
    map_parts(id, &['|'], |part| match &config.prefix {
        Some(prefix) if !part.is_empty() && !part.contains(':') => format!("{prefix}:{part}"),
        _ => part.to_owned(),
    })
}

/// The same settings with `prefix` where they have none.
fn with_default_prefix(config: &ImportConfig, prefix: &str) -> ImportConfig {
    let prefix = config.prefix.clone().unwrap_or_else(|| prefix.to_owned());
    ImportConfig { prefix: Some(prefix), ..config.clone() }
}

/// The prefixes that an importer adds to bare ids where the user gives none.
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

/// Rewrites every id of those that one of the (ASCII) `signs` joins, blanks around them removed.
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

/// Every text once, where it stands first.
fn distinct(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut known = HashSet::new();
    texts.into_iter().filter(|text| known.insert(text.clone())).collect()
}

/// Adds a name, white space trimmed; an empty one is counted and left out.
fn push_name(names: &mut Vec<NameRecord>, text: &str, scope: Scope, report: &mut Report) {
    match text.trim() {
        "" => report.drop_one("name", "empty"),
        text => names.push(NameRecord { text: text.to_owned(), scope }),
    }
}

/// Hands a record on unless it has no name, or a type or source that is not wanted; whether it did.
fn keep(record: ConceptRecord, config: &ImportConfig, report: &mut Report, sink: &mut Sink<'_>) -> Result<bool> {
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

/// Refuses a filter on what the format does not have, so that it is never ignored in silence.
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
            Err(Error::invalid(message).with_hint("omit the filter"))
        }
        None => Ok(()),
    }
}
