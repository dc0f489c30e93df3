//! `canonym link`: text in, linked concepts out.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use canonym::corpus::conll::Scheme;
use canonym::corpus::format::CorpusFormat;
use canonym::corpus::{self, AnnotatedDocument, Annotation};
use canonym::link::explain::Explanation;
use canonym::text::Document;
use rayon::prelude::*;

use crate::filter::FilterArguments;
use crate::reading::{Documents, ReadArguments};
use crate::sink::{Encoded, Sink, check_output};
use crate::system::{Mentions, System, SystemConfig};
use crate::{context, errors, explain, knowledge, progress};

/// Documents and bytes that are linked together.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 4 << 20;

/// Arguments of `canonym link`.
#[derive(Debug, clap::Args)]
pub struct LinkArguments {
    /// Files or folders; `-` is standard input.
    #[arg(required_unless_present = "text")]
    files: Vec<PathBuf>,
    /// The text itself.
    #[arg(long, conflicts_with = "files")]
    text: Option<String>,
    /// The compiled knowledge base; the embedded starter where none is given.
    #[arg(long, value_name = "FILE.kb")]
    kb: Option<PathBuf>,
    /// The model: `default`, `lexical`, or a bundle.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
    /// Whether mentions are found or taken from the input.
    #[arg(long, value_enum, default_value = "detect")]
    mentions: Mentions,
    /// The input format: auto, text, jsonl, pubtator, bioc-xml, bioc-json, brat, conll, pubmed-xml, texoo or biosyn.
    #[arg(long, value_name = "F", default_value = "auto")]
    format: String,
    /// The output format: table, jsonl, pubtator, bioc-xml, bioc-json, brat, conll or texoo; a table on a terminal, else
    /// jsonl.
    #[arg(long, value_name = "F")]
    to: Option<String>,
    /// Candidates a mention.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    top_k: u32,
    /// Abstain below this probability: the mention is given, and no concept is said to be meant.
    #[arg(long, value_name = "P", value_parser = knowledge::parse_probability)]
    min_score: Option<f32>,
    /// Give mentions inside longer ones, too.
    #[arg(long)]
    nested: bool,
    /// Say of each mention whether it is negated, possible, of the past, feared, or of a relative.
    #[arg(long)]
    context: bool,
    /// Say why each mention was linked as it was: names, words, parts of the score, definitions.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    reading: ReadArguments,
    /// Print ids as the source wrote them.
    #[arg(long)]
    raw_ids: bool,
    /// Threads; all cores where not given.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Where to write, a new folder for brat; standard output where not given.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    #[command(flatten)]
    filter: FilterArguments,
}

/// Runs the command.
pub fn run(arguments: &LinkArguments) -> anyhow::Result<()> {
    let models = knowledge::models(&arguments.model)?;
    knowledge::use_threads(arguments.threads)?;
    let kb = knowledge::open_for(arguments.kb.as_deref(), &arguments.model)?;
    let system = System::new(
        &kb,
        models,
        &SystemConfig {
            mentions: arguments.mentions,
            top_k: arguments.top_k as usize,
            min_score: arguments.min_score,
            nested: arguments.nested,
            raw_ids: arguments.raw_ids,
            subset: arguments.filter.choose(&kb)?,
        },
    )?;
    link_all(arguments, &system)
}

fn link_all(arguments: &LinkArguments, system: &System) -> anyhow::Result<()> {
    let on_terminal = arguments.output.is_none() && std::io::stdout().is_terminal();
    let format = match arguments.to.as_deref() {
        Some("table") => None,
        None if on_terminal => None,
        Some(name @ ("text" | "pubmed-xml")) => {
            return Err(errors::usage(
                format!("{name} cannot hold the result"),
                "give `--to` table, jsonl, pubtator, bioc-xml or bioc-json",
            ));
        }
        Some(name) => Some(name.parse::<CorpusFormat>().map_err(errors::wrong_usage)?),
        None => Some(CorpusFormat::Jsonl),
    };
    if arguments.context {
        context::check_format(format)?;
    }
    if arguments.explain {
        explain::check_format(format)?;
    }
    check_output(arguments.output.as_deref(), &arguments.files)?;
    let mut batches = Batches::new(arguments)?;
    let mut sink = Sink::create(arguments.output.as_deref(), format, "a folder with `--output`")?;
    let bar = progress::counter("documents", None);
    let mut batch = batches.next_batch()?;
    sink.start(batch.first())?;
    while !batch.is_empty() {
        let n_documents = batch.len() as u64;
        // The next batch is read while this one is linked.
        let (written, next) = rayon::join(|| link(arguments, system, batch, format), || batches.next_batch());
        for document in written? {
            sink.write(document)?;
        }
        bar.inc(n_documents);
        batch = next?;
    }
    bar.finish_and_clear();
    sink.finish()
}

/// Links a batch and writes each document into a buffer of its own; as a table where there is no format.
fn link(
    arguments: &LinkArguments,
    system: &System,
    batch: Vec<AnnotatedDocument>,
    format: Option<CorpusFormat>,
) -> anyhow::Result<Vec<Encoded>> {
    if arguments.explain {
        return link_explained(arguments, system, batch, format);
    }
    let encode = |document: &AnnotatedDocument| -> anyhow::Result<Encoded> {
        let Some(format) = format else {
            let mut bytes = Vec::new();
            table(&mut bytes, document)?;
            return Ok(Encoded { bytes, ..Encoded::default() });
        };
        Ok(Encoded::new(document, format, Scheme::default())?)
    };
    let mut linked = system.link(batch)?;
    if arguments.context {
        context::add(&mut linked);
    }
    linked.par_iter().map(encode).collect()
}

/// As [`link`], with explanations: in a field of each annotation, or below the table.
fn link_explained(
    arguments: &LinkArguments,
    system: &System,
    batch: Vec<AnnotatedDocument>,
    format: Option<CorpusFormat>,
) -> anyhow::Result<Vec<Encoded>> {
    let (mut linked, explanations): (Vec<AnnotatedDocument>, Vec<Vec<Explanation>>) =
        system.explain(batch)?.into_iter().unzip();
    if arguments.context {
        context::add(&mut linked);
    }
    let encode = |(document, explanations): (&AnnotatedDocument, &Vec<Explanation>)| -> anyhow::Result<Encoded> {
        let mut buffer = Vec::new();
        match format {
            Some(_) => corpus::jsonl::write_explained(document, explanations, &mut buffer)?,
            None => {
                table(&mut buffer, document)?;
                explain::write(&mut buffer, document, explanations)?;
            }
        }
        Ok(Encoded { bytes: buffer, ..Encoded::default() })
    };
    linked.par_iter().zip(&explanations).map(encode).collect()
}

/// The documents of all inputs, some at a time.
struct Batches {
    text: Option<String>,
    files: VecDeque<PathBuf>,
    format: Option<CorpusFormat>,
    reading: ReadArguments,
    documents: Option<Documents>,
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
            documents: None,
        })
    }

    /// Up to [`BATCH`] documents or [`BATCH_BYTES`]; none at the end.
    fn next_batch(&mut self) -> anyhow::Result<Vec<AnnotatedDocument>> {
        if let Some(text) = self.text.take() {
            let document = Document { id: "text".to_owned(), text, sections: Vec::new() };
            return Ok(vec![AnnotatedDocument { document, ..AnnotatedDocument::default() }]);
        }
        let (mut batch, mut n_bytes) = (Vec::new(), 0);
        while batch.len() < BATCH && n_bytes < BATCH_BYTES {
            let Some(documents) = &mut self.documents else {
                match self.files.pop_front() {
                    Some(file) => self.documents = Some(self.reading.open(&file, self.format)?),
                    None => break,
                }
                continue;
            };
            match documents.next() {
                Some(document) => {
                    let document = document?;
                    n_bytes += document.document.text.len();
                    batch.push(document);
                }
                None => self.documents = None,
            }
        }
        Ok(batch)
    }
}

/// Texts are cut to this many characters above the table of their mentions.
const SHOWN: usize = 600;

fn table(out: &mut dyn Write, document: &AnnotatedDocument) -> std::io::Result<()> {
    let text = document.document.text.split_whitespace().collect::<Vec<&str>>().join(" ");
    let cut = text.char_indices().nth(SHOWN).map_or(text.len(), |(at, _)| at);
    let more = if cut < text.len() { " …" } else { "" };
    writeln!(out, "{}  {}{more}", document.document.id, &text[..cut])?;
    if document.annotations.is_empty() {
        return writeln!(out, "  no mention found\n");
    }
    let is_said = |annotation: &Annotation| !annotation.attributes.is_empty();
    let mut attributes = document.annotations.iter().flat_map(|annotation| &annotation.attributes).peekable();
    let last = match (attributes.peek().is_some(), attributes.all(context::is_context)) {
        (false, _) => "score",
        (true, true) => "score  context",
        (true, false) => "score  attributes",
    };
    let mut rows = vec![["mention", "type", "concept", "name", last].map(str::to_owned)];
    rows.extend(document.annotations.iter().map(|annotation| {
        let best = annotation.candidates.first().filter(|_| !annotation.nil);
        let (id, name) = best.map_or(("-", "no concept"), |best| (&best.id, &best.name));
        let mut score = format!("{:.2}", annotation.score.unwrap_or(0.0));
        if is_said(annotation) {
            let values: Vec<&str> = annotation.attributes.iter().map(|one| one.value.as_str()).collect();
            score += &format!("   {}", values.join(", "));
        }
        let mention = annotation.text.split_whitespace().collect::<Vec<&str>>().join(" ");
        [mention, annotation.semantic_type.clone(), id.to_owned(), name.to_owned(), score]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2), width(3)];
    writeln!(out)?;
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        writeln!(out, "  {}  {}", cells.join("  "), row[4])?;
    }
    writeln!(out)
}
