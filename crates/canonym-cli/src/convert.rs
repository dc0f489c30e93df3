//! `canonym convert`: converts a corpus to another format and reports losses.

use std::path::{Path, PathBuf};

use canonym_core::corpus::CorpusFormat;
use canonym_core::corpus::conll::Tags;
use canonym_core::corpus::documents::Purpose;
use canonym_core::records::encode::Encoded;
use canonym_core::records::format::ResultFormat;
use canonym_core::records::sink::{Sink, check_output};
use canonym_neural::status::Meter;

use crate::reading::{ColumnArguments, ReadArguments, input_format};
use crate::{errors, output, progress};

/// Arguments of `canonym convert`.
#[derive(Debug, clap::Args)]
pub struct ConvertArguments {
    /// Input file or folder; `-` is standard input.
    input: PathBuf,
    /// Output file, or a new folder for brat; `-` is standard output. A name ending in `.gz` or `.zst` is compressed.
    output: PathBuf,
    /// Input format: auto, text, jsonl, pubtator, bioc-xml, bioc-json, brat, conll, pubmed-xml, texoo, biosyn, jats or
    /// csv.
    #[arg(long, value_name = "F", default_value = "auto")]
    from: String,
    /// Output format: jsonl, pubtator, bioc-xml, bioc-json, brat, conll, pubmed-xml, texoo or biosyn.
    #[arg(long, value_name = "F")]
    to: String,
    #[command(flatten)]
    reading: ReadArguments,
    #[command(flatten)]
    columns: ColumnArguments,
}

/// Runs the command.
pub fn run(arguments: &ConvertArguments) -> anyhow::Result<()> {
    let from = input_format(&arguments.from)?;
    let to = written_format(&arguments.to)?;
    let mut reading = arguments.reading;
    let scheme = reading.tags.scheme.unwrap_or_default();
    if to == CorpusFormat::Conll {
        // `--tags` selects the output scheme here; that of the input is detected.
        reading.tags = Tags { scheme: None, ..reading.tags };
    }
    let mut documents =
        reading.config(&arguments.columns, Purpose::Annotations).open(&arguments.input, from)?.going_on();
    let output = Some(arguments.output.as_path()).filter(|path| *path != Path::new("-"));
    check_output(output, std::slice::from_ref(&arguments.input))?;
    let mut sink = Sink::create(output::target(output, "a folder instead of `-`"), ResultFormat::Corpus(to))?;
    let bar = progress::counter("documents", None);
    let (mut read, mut written) = (Meter::default(), Meter::default());
    let mut next = read.time(|| documents.next()).transpose()?;
    if next.is_none() {
        errors::left_out(documents.n_left_out())?;
    }
    sink.start(next.as_ref())?;
    while let Some(document) = next {
        written.time(|| anyhow::Ok(sink.write(Encoded::new(&document, to, scheme)?)?))?;
        [&mut read, &mut written].into_iter().for_each(|meter| meter.count(1));
        bar.inc(1);
        next = read.time(|| documents.next()).transpose()?;
    }
    bar.finish_and_clear();
    read.done("read", "document");
    written.done("wrote", "document");
    sink.finish()?.iter().for_each(|line| progress::say(line));
    errors::left_out(documents.n_left_out())
}

/// Parses the name of an output format.
fn written_format(name: &str) -> anyhow::Result<CorpusFormat> {
    let written = CorpusFormat::ALL.into_iter().filter(|format| format.is_written());
    let hint = || match written.clone().find(|known| known.name().starts_with(name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", written.clone().map(CorpusFormat::name).collect::<Vec<_>>().join(", ")),
    };
    match name.parse::<CorpusFormat>() {
        Ok(format) if !format.is_written() => {
            Err(errors::usage(format!("`{format}` is an input format only"), &hint()))
        }
        Ok(format) => Ok(format),
        Err(_) => Err(errors::usage(format!("unknown output format `{name}`"), &hint())),
    }
}
