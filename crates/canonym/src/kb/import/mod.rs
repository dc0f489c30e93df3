//! Importers: one file a source, each streams records from an [`Input`](crate::input::Input) to a sink.
//!
//! An importer never holds the file. It counts what it drops in a [`Report`], by kind and reason, and turns a
//! malformed row into an [`Error::Parse`](crate::Error::Parse) with path and line.

pub mod biosyn;
pub mod jsonl;
pub mod obo;
pub mod obographs;
pub mod rrf;
pub mod tsv;

use std::collections::BTreeMap;

use crate::kb::ConceptRecord;

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
}

/// What to keep of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportConfig {
    /// A prefix for ids that have none, without the colon: `MESH`.
    pub prefix: Option<String>,
    /// Source vocabularies to keep (RRF `SAB`); all where empty.
    pub sources: Vec<String>,
    /// Languages to keep, as two or three letters: `en` and `ENG` mean the same; English where empty.
    pub languages: Vec<String>,
    /// Semantic types to keep (`T047`); all where empty.
    pub semantic_types: Vec<String>,
    /// Term types to keep (RRF `TTY`); all where empty.
    pub term_types: Vec<String>,
    /// Whether obsolete and suppressible entries are kept.
    pub keep_obsolete: bool,
}

/// What was read, and what was dropped and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows, stanzas or nodes that were read.
    pub n_read: u64,
    /// How many were dropped, by kind and reason, such as `("term", "obsolete")`.
    pub dropped: BTreeMap<(String, String), u64>,
}

impl Report {
    /// Counts one dropped item of `kind` for `reason`.
    pub fn drop_one(&mut self, kind: &str, reason: &str) {
        *self.dropped.entry((kind.to_owned(), reason.to_owned())).or_insert(0) += 1;
    }
}

/// Takes the records of an importer.
pub type Sink<'a> = dyn FnMut(ConceptRecord) -> crate::Result<()> + 'a;
