//! `canonym convert`: a corpus in, the same corpus in another format out, and what was lost on the way.

use std::path::{Path, PathBuf};

use canonym::corpus::CorpusFormat;
use canonym::corpus::conll::Tags;

use crate::reading::ReadArguments;
use crate::sink::{Encoded, Sink};
use crate::{errors, progress};

/// Arguments of `canonym convert`.
#[derive(Debug, clap::Args)]
pub struct ConvertArguments {
    /// A file or folder; `-` is standard input.
    input: PathBuf,
    /// Where to write, a new folder for brat; `-` is standard output.
    output: PathBuf,
    /// The format of the input: auto, text, jsonl, pubtator, bioc-xml, bioc-json, brat, conll, pubmed-xml, texoo or
    /// biosyn.
    #[arg(long, value_name = "F", default_value = "auto")]
    from: String,
    /// The format of the output: jsonl, pubtator, bioc-xml, bioc-json, brat, conll, pubmed-xml, texoo or biosyn.
    #[arg(long, value_name = "F")]
    to: String,
    #[command(flatten)]
    reading: ReadArguments,
}

/// Runs the command.
pub fn run(arguments: &ConvertArguments) -> anyhow::Result<()> {
    let from = match arguments.from.as_str() {
        "auto" => None,
        name => Some(name.parse::<CorpusFormat>().map_err(errors::wrong_usage)?),
    };
    let to = arguments.to.parse::<CorpusFormat>().map_err(errors::wrong_usage)?;
    if to == CorpusFormat::Text {
        return Err(errors::usage("plain text cannot hold annotations", "give `--to` jsonl, pubtator or brat"));
    }
    let mut reading = arguments.reading;
    let scheme = reading.tags.scheme.unwrap_or_default();
    if to == CorpusFormat::Conll {
        // The tags that were asked for are those to write; those of the input show themselves.
        reading.tags = Tags { scheme: None, ..reading.tags };
    }
    let mut documents = reading.open(&arguments.input, from)?;
    let output = Some(arguments.output.as_path()).filter(|path| *path != Path::new("-"));
    let mut sink = Sink::create(output, Some(to), "a folder in the place of `-`")?;
    let bar = progress::counter("documents", None);
    let mut next = documents.next().transpose()?;
    sink.start(next.as_ref())?;
    while let Some(document) = next {
        sink.write(Encoded::new(&document, to, scheme)?)?;
        bar.inc(1);
        next = documents.next().transpose()?;
    }
    bar.finish_and_clear();
    sink.finish()
}
