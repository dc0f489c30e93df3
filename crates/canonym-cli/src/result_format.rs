//! Output formats of `canonym link`: rows, or a corpus format that can hold links.

use std::fmt;

use canonym_core::corpus::CorpusFormat;

use crate::errors;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultFormat {
    /// Aligned columns.
    Table,
    /// Tab-separated values, one line per mention.
    Tsv,
    /// A corpus format.
    Corpus(CorpusFormat),
}

impl ResultFormat {
    /// All output formats.
    fn all() -> impl Iterator<Item = ResultFormat> {
        let formats = CorpusFormat::ALL.into_iter();
        let holds_links = |format: &CorpusFormat| format.is_written() && *format != CorpusFormat::PubmedXml;
        [ResultFormat::Table, ResultFormat::Tsv]
            .into_iter()
            .chain(formats.filter(holds_links).map(ResultFormat::Corpus))
    }

    /// Parses the name of an output format.
    pub fn parse(name: &str) -> anyhow::Result<ResultFormat> {
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
            ResultFormat::Table | ResultFormat::Tsv => None,
        }
    }
}

impl fmt::Display for ResultFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            ResultFormat::Table => "table",
            ResultFormat::Tsv => "tsv",
            ResultFormat::Corpus(format) => format.name(),
        })
    }
}
