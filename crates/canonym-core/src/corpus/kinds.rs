//! Names of the corpus formats. Each format has its own module; [`super::format`] combines them.
//!
//! ```
//! use canonym_core::corpus::CorpusFormat;
//!
//! assert_eq!("bioc-xml".parse::<CorpusFormat>()?, CorpusFormat::BiocXml);
//! # Ok::<(), canonym_core::Error>(())
//! ```

use std::fmt;
use std::str::FromStr;

use crate::corpus::check::quote;
use crate::{Error, Result};

/// The corpus formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CorpusFormat {
    /// Plain text, one document per file.
    Text,
    /// JSON lines, one document per line.
    Jsonl,
    /// PubTator: title, abstract and tab-separated annotations.
    Pubtator,
    /// BioC XML.
    BiocXml,
    /// BioC JSON.
    BiocJson,
    /// brat standoff: a `.txt` and an `.ann` file per document.
    Brat,
    /// One token per line with tags: BIO, BIOES or BILOU.
    Conll,
    /// PubMed XML: single citations, sets and baseline files.
    PubmedXml,
    /// TeXoo: one JSON object with a list of documents.
    Texoo,
    /// BioSyn queries: mentions without texts.
    Biosyn,
    /// JATS XML: full texts of PubMed Central.
    Jats,
    /// CSV: a table of notes.
    Csv,
}

impl CorpusFormat {
    /// All formats.
    pub const ALL: [CorpusFormat; 12] = [
        CorpusFormat::Text,
        CorpusFormat::Jsonl,
        CorpusFormat::Pubtator,
        CorpusFormat::BiocXml,
        CorpusFormat::BiocJson,
        CorpusFormat::Brat,
        CorpusFormat::Conll,
        CorpusFormat::PubmedXml,
        CorpusFormat::Texoo,
        CorpusFormat::Biosyn,
        CorpusFormat::Jats,
        CorpusFormat::Csv,
    ];

    /// Whether documents can be written in it; others are only read.
    pub fn is_written(self) -> bool {
        !matches!(self, CorpusFormat::Text | CorpusFormat::Jats | CorpusFormat::Csv)
    }

    /// Name in command-line options.
    pub fn name(self) -> &'static str {
        match self {
            CorpusFormat::Text => "text",
            CorpusFormat::Jsonl => "jsonl",
            CorpusFormat::Pubtator => "pubtator",
            CorpusFormat::BiocXml => "bioc-xml",
            CorpusFormat::BiocJson => "bioc-json",
            CorpusFormat::Brat => "brat",
            CorpusFormat::Conll => "conll",
            CorpusFormat::PubmedXml => "pubmed-xml",
            CorpusFormat::Texoo => "texoo",
            CorpusFormat::Biosyn => "biosyn",
            CorpusFormat::Jats => "jats",
            CorpusFormat::Csv => "csv",
        }
    }
}

impl fmt::Display for CorpusFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for CorpusFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<CorpusFormat> {
        let found = CorpusFormat::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = CorpusFormat::ALL.iter().map(|format| format.name()).collect();
            Error::not_found(format!("unknown corpus format {}", quote(name)))
                .with_hint(format!("use one of {}", names.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for format in CorpusFormat::ALL {
            assert_eq!(format.to_string().parse::<CorpusFormat>().unwrap(), format);
        }
        let error = "doc".parse::<CorpusFormat>().unwrap_err();
        assert_eq!(error.to_string(), "unknown corpus format `doc`");
        assert!(error.hint().unwrap().starts_with("use one of text, jsonl, pubtator, bioc-xml"));
    }
}
