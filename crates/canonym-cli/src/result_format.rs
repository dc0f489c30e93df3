//! Output formats of `canonym link`: rows, tables, health records, or a corpus format that can hold links.

use std::fmt;

use canonym_core::corpus::format::{Frame, frame};
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, table};
use canonym_core::records::fhir::Layout;
use canonym_core::records::omop;

use crate::errors;

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
    pub fn parse(name: &str) -> anyhow::Result<ResultFormat> {
        if name == "parquet" && cfg!(not(feature = "parquet")) {
            let message = "this program was built without Parquet";
            return Err(errors::usage(message, "use csv, or build it with the feature `parquet`"));
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
            errors::usage(message, &hint)
        })
    }

    /// The corpus format, if it is one.
    pub fn corpus(self) -> Option<CorpusFormat> {
        match self {
            ResultFormat::Corpus(format) => Some(format),
            _ => None,
        }
    }

    /// Whether contexts are always part of the format.
    pub fn has_contexts(self) -> bool {
        !matches!(self, ResultFormat::Table | ResultFormat::Tsv | ResultFormat::Corpus(_))
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
