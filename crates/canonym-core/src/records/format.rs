//! Formats of linked documents: rows, tables, health records, or a corpus format that can hold links.

use std::fmt;
use std::path::Path;

use super::fhir::Layout;
use super::omop;
use crate::artifact::is_packed;
use crate::corpus::CorpusFormat::{BiocJson, BiocXml, Brat, Jsonl};
use crate::corpus::format::{Frame, frame};
use crate::corpus::{AnnotatedDocument, CorpusFormat, table};
use crate::{Error, Result};

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFormat {
    /// Aligned columns.
    Table,
    /// Tab-separated values, one line per mention.
    Tsv,
    /// Comma-separated values with a header, one record per mention.
    Csv,
    /// Apache Parquet, one row per mention.
    Parquet,
    /// Rows of the table NOTE_NLP of the OMOP common data model.
    OmopNoteNlp,
    /// Resources of FHIR.
    Fhir(Layout),
    /// A corpus format.
    Corpus(CorpusFormat),
}

impl ResultFormat {
    /// All output formats.
    fn all() -> impl Iterator<Item = ResultFormat> {
        let formats = CorpusFormat::ALL.into_iter();
        let holds_links = |format: &CorpusFormat| format.is_written() && *format != CorpusFormat::PubmedXml;
        [
            ResultFormat::Table,
            ResultFormat::Tsv,
            ResultFormat::Csv,
            ResultFormat::Parquet,
            ResultFormat::OmopNoteNlp,
            ResultFormat::Fhir(Layout::Bundles),
            ResultFormat::Fhir(Layout::Resources),
        ]
        .into_iter()
        .chain(formats.filter(holds_links).map(ResultFormat::Corpus))
    }

    /// Parses the name of an output format.
    ///
    /// # Errors
    /// [`Error::Usage`] with a similar name, or all names, as hint.
    pub fn parse(name: &str) -> Result<ResultFormat> {
        if name == "parquet" && cfg!(not(feature = "parquet")) {
            let message = "this program was built without Parquet";
            return Err(Error::usage(message, "use csv, or build it with the feature `parquet`"));
        }
        ResultFormat::all().find(|to| to.to_string() == name).ok_or_else(|| {
            let names: Vec<String> = ResultFormat::all().map(|to| to.to_string()).collect();
            let message = match name.parse::<CorpusFormat>() {
                Ok(format) => format!("`{format}` cannot hold linked mentions"),
                Err(_) => format!("unknown output format `{name}`"),
            };
            let hint = match names.iter().find(|known| known.starts_with(name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use one of {}", names.join(", ")),
            };
            Error::usage(message, hint)
        })
    }

    /// The format that the name of an output file asks for: `.csv`, `.tsv` or `.parquet`, and compressed `.csv.gz` and the like.
    ///
    /// # Errors
    /// Those of [`ResultFormat::parse`].
    pub fn of_file(path: &Path) -> Result<Option<ResultFormat>> {
        let inner = if is_packed(path) { path.with_extension("") } else { path.to_path_buf() };
        let ending = inner.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        ending
            .filter(|ending| ["csv", "tsv", "parquet"].contains(&ending.as_str()))
            .map(|name| ResultFormat::parse(&name))
            .transpose()
    }

    /// Whether contexts are always part of the format.
    pub fn has_contexts(self) -> bool {
        !matches!(self, ResultFormat::Table | ResultFormat::Tsv | ResultFormat::Corpus(_))
    }

    /// Whether the format can hold contexts.
    pub fn can_hold_contexts(self) -> bool {
        self.has_contexts()
            || matches!(self, ResultFormat::Table | ResultFormat::Corpus(BiocJson | BiocXml | Brat | Jsonl))
    }

    /// Whether the format can hold explanations.
    pub fn can_hold_explanations(self) -> bool {
        matches!(self, ResultFormat::Table | ResultFormat::Corpus(Jsonl))
    }

    /// The extension of file names.
    pub fn extension(self) -> &'static str {
        match self {
            ResultFormat::Table => "txt",
            ResultFormat::Tsv => "tsv",
            ResultFormat::Csv => "csv",
            ResultFormat::Parquet => "parquet",
            ResultFormat::OmopNoteNlp => "note_nlp.csv",
            ResultFormat::Fhir(_) => "fhir.ndjson",
            ResultFormat::Corpus(BiocXml) => "bioc.xml",
            ResultFormat::Corpus(BiocJson) => "bioc.json",
            ResultFormat::Corpus(CorpusFormat::Texoo) => "texoo.json",
            ResultFormat::Corpus(CorpusFormat::Biosyn) => "concept",
            ResultFormat::Corpus(format) => format.name(),
        }
    }

    /// What is written around the documents; the `first` one may contain the header of its collection.
    pub fn frame(self, first: Option<&AnnotatedDocument>) -> Frame {
        let header = |text: String| Frame { before: text.into_bytes(), ..Frame::default() };
        match self {
            ResultFormat::Corpus(format) => frame(format, first),
            ResultFormat::Csv => header(table::csv_header()),
            ResultFormat::OmopNoteNlp => header(omop::header()),
            ResultFormat::Table | ResultFormat::Tsv | ResultFormat::Parquet | ResultFormat::Fhir(_) => Frame::default(),
        }
    }
}

impl fmt::Display for ResultFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ResultFormat::Table => "table",
            ResultFormat::Tsv => "tsv",
            ResultFormat::Csv => "csv",
            ResultFormat::Parquet => "parquet",
            ResultFormat::OmopNoteNlp => "omop-note-nlp",
            ResultFormat::Fhir(Layout::Bundles) => "fhir",
            ResultFormat::Fhir(Layout::Resources) => "fhir-ndjson",
            ResultFormat::Corpus(format) => format.name(),
        })
    }
}
