//! Options of reading corpora.

use std::path::Path;

use canonym_core::corpus::CorpusFormat;
use canonym_core::corpus::conll::Tags;
use canonym_core::corpus::csv::CsvColumns;
use canonym_core::corpus::documents::{Documents, Notice, Purpose, ReadConfig};

use crate::{errors, progress};

/// Options for faulty corpora.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct ReadArguments {
    /// Repair annotation offsets that do not match the text, if the repair is unambiguous, and list the repairs.
    #[arg(long)]
    pub fix_offsets: bool,
    /// Skip and count annotations whose offsets do not match the text.
    #[arg(long)]
    pub skip_bad_offsets: bool,
    /// CoNLL tagging scheme: auto, bio, bioes or bilou. Append `-strict` to skip mentions with invalid tag sequences.
    #[arg(long, value_name = "TAGS", default_value = "auto", value_parser = errors::parse::<Tags>)]
    pub tags: Tags,
}

/// Columns of CSV files.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ColumnArguments {
    /// Column of a CSV file with the text [default: text].
    #[arg(long, value_name = "NAME")]
    pub text_column: Option<String>,
    /// Column of a CSV file with the document id [default: id, or the number of the record].
    #[arg(long, value_name = "NAME")]
    pub id_column: Option<String>,
}

impl ReadArguments {
    /// Opens the documents of a file, folder or standard input; wrong offsets are errors unless repaired or skipped.
    pub fn open(&self, path: &Path, format: Option<CorpusFormat>) -> canonym_core::Result<Documents> {
        self.config(&ColumnArguments::default(), Purpose::Annotations).open(path, format)
    }

    /// How documents are read; repairs and skipped input are reported on standard error.
    pub fn config(&self, columns: &ColumnArguments, purpose: Purpose) -> ReadConfig {
        let ReadArguments { fix_offsets, skip_bad_offsets, tags } = *self;
        let columns =
            CsvColumns { id: columns.id_column.clone(), text: columns.text_column.clone(), ..CsvColumns::default() };
        ReadConfig { fix_offsets, skip_bad_offsets, tags, columns, purpose, on_notice: tell }
    }
}

fn tell(notice: Notice) {
    match notice {
        Notice::Line(line) => progress::say(&line),
        Notice::Skipped(error) => errors::tell(&error.into()),
    }
}

/// Parses the name of an input format; `None` for `auto`.
pub fn input_format(name: &str) -> anyhow::Result<Option<CorpusFormat>> {
    match name {
        "auto" => Ok(None),
        name => name.parse::<CorpusFormat>().map(Some).map_err(errors::wrong_usage),
    }
}
