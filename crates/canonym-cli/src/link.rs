//! `canonym link`: finds and links mentions in texts.

mod rows;

use crate::options;
use canonym_neural::system::Models;
use canonym_neural::system::terminology;
use std::collections::VecDeque;
use std::io::IsTerminal;
use std::path::PathBuf;

use canonym_core::corpus::conll::Scheme;
use canonym_core::corpus::format::CorpusFormat;
use canonym_core::corpus::{self, AnnotatedDocument};
use canonym_core::link::explain::Explanation;
use canonym_core::link::recognise::Nested;
use canonym_core::link::recognise::senses::SenseInventory;
use canonym_core::text::Document;
use rayon::prelude::*;

use crate::filter::FilterArguments;
use crate::output::counted;
use crate::reading::{Documents, ReadArguments};
use crate::sink::{Encoded, Sink, check_output};
use crate::system::{Mentions, Nil};
use crate::{context, errors, explain, progress};
use canonym_neural::system::linked::{System, SystemConfig, drop_unlinked};

use crate::result_format::ResultFormat;

/// Limits of a batch, in documents and bytes.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 4 << 20;

/// Arguments of `canonym link`.
#[derive(Debug, clap::Args)]
pub struct LinkArguments {
    /// Files or folders to link; `-` is standard input.
    #[arg(required_unless_present = "text")]
    files: Vec<PathBuf>,
    /// Text to link.
    #[arg(long, conflicts_with = "files")]
    text: Option<String>,
    /// Compiled knowledge base [default: the embedded `starter`].
    #[arg(long, value_name = "FILE.kb")]
    kb: Option<PathBuf>,
    /// Model: `default`, `lexical`, `bm25` (given mentions only), or a bundle.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
    /// Rerank candidates of given mentions in context with this cross-encoder.
    #[arg(long, value_name = "BUNDLE", conflicts_with = "explain")]
    rerank: Option<PathBuf>,
    /// Where mentions come from.
    #[arg(long, value_enum, default_value = "detect")]
    mentions: Mentions,
    /// Input format: auto, text, jsonl, pubtator, bioc-xml, bioc-json, brat, conll, pubmed-xml, texoo or biosyn.
    #[arg(long, value_name = "F", default_value = "auto")]
    format: String,
    /// Output format: table, tsv, jsonl, pubtator, bioc-xml, bioc-json, brat, conll, texoo or biosyn [default: table on
    /// a terminal, else jsonl].
    #[arg(long, value_name = "F")]
    to: Option<String>,
    /// Maximum candidates per mention.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    top_k: u32,
    /// Leave mentions below this probability unlinked.
    #[arg(long, value_name = "P", value_parser = options::parse_probability)]
    min_score: Option<f32>,
    /// Keep or drop unlinked (NIL) mentions.
    #[arg(long, value_enum, default_value = "keep", value_name = "drop|keep", hide_possible_values = true)]
    nil: Nil,
    /// Custom abbreviations, overriding built-in ones. Tab-separated: short form, long forms separated by `|`, and
    /// optionally the percentage of uses with this meaning.
    #[arg(long, value_name = "FILE.tsv")]
    abbreviations: Vec<PathBuf>,
    /// Which mentions inside longer ones to report; `--nested` alone reports all [default: other-types; none with
    /// `--to conll`].
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    nested: Option<NestedValue>,
    /// Mark negated, possible, historical, hypothetical and family mentions.
    #[arg(long)]
    context: bool,
    /// Drop mentions with any of these contexts, such as `negated,family`. Works with every output format.
    #[arg(long, value_name = "SAID,…", value_delimiter = ',', requires = "context")]
    drop_context: Vec<context::ContextValue>,
    /// Explain each link: matched names and words, score contributions, abbreviation definitions.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    reading: ReadArguments,
    /// Print ids as written in the source.
    #[arg(long)]
    raw_ids: bool,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Output file, or a new folder for brat [default: standard output]. A name ending in `.gz` or `.zst` is
    /// compressed.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    filter: FilterArguments,
}

/// The values of `--nested`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum NestedValue {
    /// None.
    None,
    /// Those of another semantic type, such as a body part in a symptom, and those inside unlinked mentions.
    OtherTypes,
    /// All.
    All,
}

/// Which nested mentions are reported; CoNLL has no place for them.
fn nested(arguments: &LinkArguments) -> Nested {
    match arguments.nested {
        Some(NestedValue::None) => Nested::None,
        Some(NestedValue::OtherTypes) => Nested::OtherTypes,
        Some(NestedValue::All) => Nested::All,
        None if arguments.to.as_deref() == Some("conll") => Nested::None,
        None => Nested::default(),
    }
}

/// Runs the command.
pub fn run(arguments: &LinkArguments) -> anyhow::Result<()> {
    let mut models = Models::named(&arguments.model)?;
    models.rerank = arguments.rerank.as_deref().map(canonym_neural::system::rerank::open).transpose()?;
    models.senses = SenseInventory::of_files(&arguments.abbreviations)?;
    options::use_threads(arguments.threads)?;
    let kb = terminology::open_for(arguments.kb.as_deref(), &arguments.model)?;
    let system = System::new(
        &kb,
        models,
        &SystemConfig {
            mentions: arguments.mentions.into(),
            top_k: arguments.top_k as usize,
            min_score: arguments.min_score,
            nested: nested(arguments),
            raw_ids: arguments.raw_ids,
            subset: arguments.filter.choose(&kb)?,
            leaky_tokenisation: false,
        },
    )?;
    link_all(arguments, &system)
}

fn link_all(arguments: &LinkArguments, system: &System) -> anyhow::Result<()> {
    let on_terminal = arguments.output.is_none() && std::io::stdout().is_terminal();
    let to = match arguments.to.as_deref() {
        Some(name) => ResultFormat::parse(name)?,
        None if on_terminal => ResultFormat::Table,
        None => ResultFormat::Corpus(CorpusFormat::Jsonl),
    };
    // With `--drop-context`, contexts only select mentions, so any format will do.
    if arguments.context && arguments.drop_context.is_empty() {
        context::check_format(to)?;
    }
    if arguments.explain {
        explain::check_format(to)?;
    }
    let inputs: Vec<PathBuf> = arguments.files.iter().chain(&arguments.abbreviations).cloned().collect();
    check_output(arguments.output.as_deref(), &inputs)?;
    let mut batches = Batches::new(arguments)?;
    let mut sink = Sink::create(arguments.output.as_deref(), to.corpus(), "a folder with `--output`")?;
    let bar = progress::counter("documents", None);
    let mut batch = batches.next_batch()?;
    if batch.is_empty() {
        errors::left_out(batches.n_left_out)?;
    }
    let mut n_dropped = Dropped::default();
    sink.start(batch.first())?;
    while !batch.is_empty() {
        let n_documents = batch.len() as u64;
        // Read the next batch while this one is linked.
        let (written, next) = rayon::join(|| link(arguments, system, batch, to), || batches.next_batch());
        system.check_kb()?;
        for (document, n_dropped_here) in written? {
            sink.write(document)?;
            n_dropped.by_nil += n_dropped_here.by_nil;
            n_dropped.by_context += n_dropped_here.by_context;
        }
        bar.inc(n_documents);
        batch = next?;
    }
    progress::finish(&bar, "documents");
    sink.finish()?;
    if arguments.mentions == Mentions::Gold && batches.n_given == 0 {
        progress::say("warning: the input has no annotations to link; omit `--mentions gold` to detect mentions");
    }
    for (n, option) in [(n_dropped.by_nil, "--nil drop"), (n_dropped.by_context, "--drop-context")] {
        if n > 0 {
            progress::say(&format!("dropped {} by `{option}`", counted(n, "mention")));
        }
    }
    errors::left_out(batches.n_left_out)
}

/// Numbers of dropped mentions.
#[derive(Debug, Clone, Copy, Default)]
struct Dropped {
    /// Without a concept.
    by_nil: u64,
    /// With an unwanted context.
    by_context: u64,
}

/// Links a batch and encodes each document; also returns the numbers of dropped mentions.
fn link(
    arguments: &LinkArguments,
    system: &System,
    batch: Vec<AnnotatedDocument>,
    to: ResultFormat,
) -> anyhow::Result<Vec<(Encoded, Dropped)>> {
    if arguments.explain {
        return link_explained(arguments, system, batch, to);
    }
    let mut linked = system.link(batch)?;
    let encode = |document: &mut AnnotatedDocument| -> anyhow::Result<(Encoded, Dropped)> {
        let mut unexplained = Vec::new();
        let n_dropped = drop_unwanted(arguments, document, &mut unexplained);
        let mut bytes = Vec::new();
        match to {
            ResultFormat::Corpus(format) => return Ok((Encoded::new(document, format, Scheme::default())?, n_dropped)),
            ResultFormat::Table => rows::table(&mut bytes, document)?,
            ResultFormat::Tsv => rows::tsv(&mut bytes, document)?,
        }
        Ok((Encoded { bytes, ..Encoded::default() }, n_dropped))
    };
    linked.par_iter_mut().map(encode).collect()
}

/// As [`link`], with explanations in a field of each annotation or below the table.
fn link_explained(
    arguments: &LinkArguments,
    system: &System,
    batch: Vec<AnnotatedDocument>,
    to: ResultFormat,
) -> anyhow::Result<Vec<(Encoded, Dropped)>> {
    let encode = |(mut document, mut explanations): (AnnotatedDocument, Vec<Explanation>)| -> anyhow::Result<_> {
        let n_dropped = drop_unwanted(arguments, &mut document, &mut explanations);
        let mut bytes = Vec::new();
        match to {
            ResultFormat::Corpus(_) => corpus::jsonl::write_explained(&document, &explanations, &mut bytes)?,
            ResultFormat::Table | ResultFormat::Tsv => {
                rows::table(&mut bytes, &document)?;
                explain::write(&mut bytes, &document, &explanations)?;
            }
        }
        Ok((Encoded { bytes, ..Encoded::default() }, n_dropped))
    };
    system.explain(batch)?.into_par_iter().map(encode).collect()
}

/// Adds contexts, and drops mentions as the options say. Returns the numbers of dropped mentions.
fn drop_unwanted(
    arguments: &LinkArguments,
    document: &mut AnnotatedDocument,
    explanations: &mut Vec<Explanation>,
) -> Dropped {
    let mut dropped = Dropped::default();
    if arguments.nil == Nil::Drop {
        dropped.by_nil = drop_unlinked(document, explanations);
    }
    if arguments.context {
        corpus::contexts::add(document);
        dropped.by_context = context::drop_with_context(document, &arguments.drop_context, explanations);
    }
    dropped
}

/// Reads the documents of all inputs in batches.
struct Batches {
    text: Option<String>,
    files: VecDeque<PathBuf>,
    format: Option<CorpusFormat>,
    reading: ReadArguments,
    mentions: Mentions,
    documents: Option<Documents>,
    /// Number of annotations in the input.
    n_given: usize,
    /// Number of files skipped or partly read.
    n_left_out: u64,
}

impl Batches {
    fn new(arguments: &LinkArguments) -> anyhow::Result<Batches> {
        let format = match arguments.format.as_str() {
            "auto" => None,
            name => Some(name.parse::<CorpusFormat>().map_err(errors::wrong_usage)?),
        };
        Ok(Batches {
            text: arguments.text.clone(),
            files: arguments.files.iter().cloned().collect(),
            format,
            reading: arguments.reading,
            mentions: arguments.mentions,
            documents: None,
            n_given: 0,
            n_left_out: 0,
        })
    }

    /// The next documents, until [`BATCH`] or [`BATCH_BYTES`] is reached; empty at the end.
    fn next_batch(&mut self) -> anyhow::Result<Vec<AnnotatedDocument>> {
        if let Some(text) = self.text.take() {
            let document = Document { id: "text".to_owned(), text, sections: Vec::new() };
            return Ok(vec![AnnotatedDocument { document, ..AnnotatedDocument::default() }]);
        }
        let (mut batch, mut n_bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && n_bytes < BATCH_BYTES {
            let Some(documents) = &mut self.documents else {
                match self.files.pop_front() {
                    Some(file) => {
                        let documents = match self.mentions {
                            Mentions::Detect => self.reading.open_texts(&file, self.format)?,
                            Mentions::Gold => self.reading.open(&file, self.format)?,
                        };
                        self.documents = Some(documents.going_on());
                    }
                    None => break,
                }
                continue;
            };
            match documents.next() {
                Some(document) => {
                    let document = document?;
                    n_bytes += document.document.text.len();
                    self.n_given += document.annotations.len();
                    batch.push(document);
                }
                None => {
                    self.n_left_out += documents.n_left_out();
                    self.documents = None;
                }
            }
        }
        Ok(batch)
    }
}
