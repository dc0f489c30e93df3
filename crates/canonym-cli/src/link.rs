//! `canonym link`: finds and links mentions in texts.

mod changed;
mod records;
mod runs;
mod settings;

use std::io::IsTerminal;
use std::path::PathBuf;

use canonym_core::batch::{Batch, BatchConfig, Batches, Outputs, SkipList, Skipped};
use canonym_core::corpus::documents::Purpose;
use canonym_core::corpus::format::CorpusFormat;
use canonym_core::corpus::{self, AnnotatedDocument};
use canonym_core::link::changed::Changed;
use canonym_core::link::explain::Explanation;
use canonym_core::link::recognise::Nested;
use canonym_core::link::recognise::senses::SenseInventory;
use canonym_core::records::encode::{Encoded, Encoder};
use canonym_core::records::format::ResultFormat;
use canonym_core::records::sink::{Sink, check_output};
use canonym_neural::status::Meter;
use canonym_neural::system::linked::{System, SystemConfig, drop_unlinked, retain};
use canonym_neural::system::{Models, terminology};
use rayon::prelude::*;

use self::records::RecordArguments;
use crate::filter::FilterArguments;
use crate::output::counted;
use crate::reading::{ColumnArguments, ReadArguments, input_format};
use crate::system::{Mentions, Nil};
use crate::{errors, options, output, progress};

/// Arguments of `canonym link`.
#[derive(Debug, clap::Args)]
pub struct LinkArguments {
    /// Files or folders to link; `-` is standard input.
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
    /// Index of the names, from `canonym index build` [default: the file `K.index` beside `K.kb`, if there is one].
    #[arg(long, value_name = "FILE.index")]
    index: Option<PathBuf>,
    /// Rerank candidates of given mentions in context with this cross-encoder.
    #[arg(long, value_name = "BUNDLE", conflicts_with = "explain")]
    rerank: Option<PathBuf>,
    /// Where mentions come from.
    #[arg(long, value_enum, default_value = "detect")]
    mentions: Mentions,
    /// Input format: auto, text, jsonl, pubtator, bioc-xml, bioc-json, brat, conll, pubmed-xml, texoo, biosyn, jats or
    /// csv.
    #[arg(long, value_name = "F", default_value = "auto")]
    format: String,
    /// Output format: table, tsv, csv, parquet, omop-note-nlp, fhir, fhir-ndjson, jsonl, pubtator, bioc-xml, bioc-json,
    /// brat, conll, texoo or biosyn [default: by the name of the output file if it ends in csv, tsv or parquet; table on
    /// a terminal; else jsonl].
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
    #[arg(long, value_name = "CONTEXT,…", value_delimiter = ',', requires = "context")]
    drop_context: Vec<ContextValue>,
    /// Explain each link: matched names and words, score contributions, abbreviation definitions.
    #[arg(long)]
    explain: bool,
    /// Relink only documents that a changed name or concept may affect; all others keep their links. OLD.kb is the
    /// older knowledge base that the input was linked with.
    #[arg(long, value_name = "OLD.kb", conflicts_with_all = ["text", "explain", "rerank"])]
    changed_only: Option<PathBuf>,
    #[command(flatten)]
    reading: ReadArguments,
    #[command(flatten)]
    columns: ColumnArguments,
    /// Print ids as written in the source.
    #[arg(long)]
    raw_ids: bool,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Output file, or a new folder for brat [default: standard output]. A name ending in `.gz` or `.zst` is
    /// compressed. A name ending in `/` is a run folder, with one output per input file, that `--resume` continues.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Continue the interrupted run in this folder, alone, or with the original options.
    #[arg(long, value_name = "RUN_FOLDER", conflicts_with_all = ["output", "text"])]
    resume: Option<PathBuf>,
    /// Compress the outputs in a run folder: gz or zst.
    #[arg(long, value_enum, value_name = "gz|zst", hide_possible_values = true)]
    compress: Option<Compression>,
    /// Skip documents and files that cannot be read or linked, and list them in this file as JSON Lines.
    #[arg(long, value_name = "FILE")]
    skip_bad_documents: Option<PathBuf>,
    #[command(flatten)]
    records: RecordArguments,
    #[command(flatten)]
    filter: FilterArguments,
}

/// The values of `--compress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Compression {
    /// gzip.
    Gz,
    /// Zstandard.
    Zst,
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

/// Context of a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ContextValue {
    /// Negated.
    Negated,
    /// Possible, not certain.
    Possible,
    /// Historical.
    Historical,
    /// Hypothetical.
    Hypothetical,
    /// Of a family member.
    Family,
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
    match &arguments.resume {
        Some(folder) if arguments.files.is_empty() => run_with(&settings::stored(folder, arguments)?),
        None if arguments.files.is_empty() && arguments.text.is_none() => Err(errors::usage(
            "no input",
            "name files or folders, `-` for standard input, or give a text with `--text`",
        )),
        _ => run_with(arguments),
    }
}

fn run_with(arguments: &LinkArguments) -> anyhow::Result<()> {
    let mut models = Models::named(&arguments.model)?;
    models.rerank = arguments.rerank.as_deref().map(canonym_neural::system::rerank::open).transpose()?;
    models.senses = SenseInventory::of_files(&arguments.abbreviations)?;
    options::use_threads(arguments.threads)?;
    let kb = terminology::open_for(arguments.kb.as_deref(), &arguments.model)?;
    models.use_index(arguments.index.as_deref(), &kb)?;
    let fingerprint = models.fingerprint();
    let to = output_format(arguments)?;
    let open_old = |old: &PathBuf| changed::open_old(arguments, old, to, &fingerprint);
    let old = arguments.changed_only.as_ref().map(open_old).transpose()?;
    let open = || -> anyhow::Result<Linking<'_>> {
        let changed = old.map(|old| changed::compare(arguments, &old, (&kb, &fingerprint), models.senses.clone()));
        let config = SystemConfig {
            mentions: arguments.mentions.into(),
            top_k: arguments.top_k as usize,
            min_score: arguments.min_score,
            nested: nested(arguments),
            raw_ids: arguments.raw_ids,
            subset: arguments.filter.choose(&kb)?,
            leaky_tokenisation: false,
        };
        let encoder = arguments.records.encoder(to, &arguments.model, &kb)?;
        Ok(Linking { arguments, system: System::new(&kb, models, &config)?, changed, encoder })
    };
    match run_folder(arguments, to) {
        Some(folder) => runs::run(arguments, &folder, to, &kb, &fingerprint, open),
        None => link_all(&open()?),
    }
}

/// The run folder that the arguments name, if any.
fn run_folder(arguments: &LinkArguments, to: ResultFormat) -> Option<PathBuf> {
    if arguments.resume.is_some() {
        return arguments.resume.clone();
    }
    let output = arguments.output.as_deref().filter(|_| to != ResultFormat::Corpus(CorpusFormat::Brat))?;
    let ends_in_separator = output.to_string_lossy().ends_with(std::path::is_separator);
    (ends_in_separator || output.is_dir()).then(|| output.to_path_buf())
}

/// The output format: as given or by the name of the output file, a table on a terminal, else jsonl.
fn output_format(arguments: &LinkArguments) -> anyhow::Result<ResultFormat> {
    let is_file = arguments.output.is_some() || arguments.resume.is_some();
    let by_name = arguments.output.as_deref().map(ResultFormat::of_file).transpose()?.flatten();
    let to = match (arguments.to.as_deref(), by_name) {
        (Some(name), _) => ResultFormat::parse(name)?,
        (None, Some(to)) => to,
        (None, None) if !is_file && std::io::stdout().is_terminal() => ResultFormat::Table,
        (None, None) => ResultFormat::Corpus(CorpusFormat::Jsonl),
    };
    // With `--drop-context`, contexts only select mentions, so any format will do.
    let needs_contexts = arguments.context && arguments.drop_context.is_empty();
    let rows = [
        (
            "--context",
            needs_contexts && !to.can_hold_contexts(),
            "table, jsonl, csv, parquet, bioc-xml, bioc-json, brat, omop-note-nlp, fhir or fhir-ndjson",
        ),
        ("--explain", arguments.explain && !to.can_hold_explanations(), "table or jsonl"),
    ];
    if let Some((option, _, formats)) = rows.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
        return Err(errors::usage(format!("`--to {to}` cannot hold `{option}`"), &format!("use {formats}")));
    }
    arguments.records.check(to)?;
    Ok(to)
}

/// What links documents, and how they are written.
struct Linking<'a> {
    arguments: &'a LinkArguments,
    system: System,
    /// The changes since the input was linked, with `--changed-only`.
    changed: Option<Changed>,
    encoder: Encoder,
}

/// Links all documents into one output.
fn link_all(linking: &Linking<'_>) -> anyhow::Result<()> {
    let (arguments, to) = (linking.arguments, linking.encoder.to);
    if arguments.compress.is_some() {
        return Err(errors::usage("`--compress` is for run folders", "end the name of the output in `.gz` or `.zst`"));
    }
    let inputs = arguments.files.iter().chain(&arguments.abbreviations).chain(arguments.records.files());
    let inputs: Vec<PathBuf> = inputs.cloned().collect();
    check_output(arguments.output.as_deref(), &inputs)?;
    check_output(arguments.skip_bad_documents.as_deref(), &inputs)?;
    let config = batch_config(arguments, to)?;
    let mut batches = match &arguments.text {
        Some(text) => Batches::of_text(text, config),
        None => Batches::of_paths(&arguments.files, config),
    };
    let mut read = Meter::default();
    let first = read.time(|| batches.next_batch())?;
    if first.is_empty() {
        errors::left_out(batches.n_left_out)?;
    }
    let mut skipped = arguments.skip_bad_documents.as_deref().map(SkipList::create).transpose()?;
    let sink = Box::new(Sink::create(output::target(arguments.output.as_deref(), "a folder with `--output`"), to)?);
    let input = arguments.files.first().cloned().unwrap_or_default();
    let mut outputs = Outputs::Single { sink, is_started: false, input };
    let counts = link_batches(linking, (first, &mut batches, read), &mut outputs, &mut skipped)?;
    outputs.finish()?.iter().for_each(|line| progress::say(line));
    report(linking, &batches, counts);
    skipped
        .map(|list| list.finish(counts.n_documents))
        .transpose()?
        .flatten()
        .iter()
        .for_each(|line| progress::say(line));
    errors::left_out(batches.n_left_out)
}

/// How documents are read; `to` is the output format.
fn batch_config(arguments: &LinkArguments, to: ResultFormat) -> anyhow::Result<BatchConfig> {
    let uses_annotations = arguments.mentions == Mentions::Gold || arguments.changed_only.is_some();
    let purpose = if uses_annotations { Purpose::Annotations } else { Purpose::Texts };
    let reading = arguments.reading.config(&arguments.columns, purpose);
    let skips = arguments.skip_bad_documents.is_some();
    Ok(BatchConfig { format: input_format(&arguments.format)?, to, reading, skips })
}

/// Links a first batch and all that follow.
fn link_batches(
    linking: &Linking<'_>,
    (first, batches, mut read): (Batch, &mut Batches, Meter),
    outputs: &mut Outputs,
    list: &mut Option<SkipList>,
) -> anyhow::Result<Counts> {
    let bar = progress::counter("documents", None);
    let (mut batch, mut counts) = (first, Counts::default());
    let (mut link, mut written) = (Meter::default(), Meter::default());
    while !batch.is_empty() {
        let Batch { documents, files, frames, checksums, ended, skipped } = batch;
        // Read the next batch while this one is linked.
        [&mut read, &mut link].into_iter().for_each(|meter| meter.count(documents.len()));
        let (linked, next) =
            rayon::join(|| link.time(|| link_or_skip(linking, documents)), || read.time(|| batches.next_batch()));
        linking.system.check_kb()?;
        for (file, frame) in frames {
            outputs.start(file, frame)?;
        }
        for (file, checksum) in checksums {
            outputs.set_checksum(file, checksum);
        }
        for (file, skipped) in skipped {
            outputs.skip(file, skipped, list)?;
        }
        let mut ended = ended.iter().peekable();
        for (place, (linked, file)) in linked?.into_iter().zip(files).enumerate() {
            while let Some(end) = ended.next_if(|end| end.n_before <= place) {
                outputs.end(end)?;
            }
            match linked {
                Linked::Document(document, counts_here) => {
                    written.time(|| outputs.write(file, document, counts_here.n_mentions))?;
                    written.count(1);
                    counts.add(counts_here);
                }
                Linked::Skipped(id, error) => {
                    let skipped = Skipped::new(&error, outputs.input_path(file), Some(&id));
                    outputs.skip(file, skipped, list)?;
                }
            }
            bar.inc(1);
        }
        ended.try_for_each(|end| outputs.end(end))?;
        batch = next?;
    }
    progress::finish(&bar, "documents");
    for (meter, verb) in [(read, "read"), (link, "linked"), (written, "wrote")] {
        meter.done(verb, "document");
    }
    Ok(counts)
}

/// Reports a lack of given mentions, and dropped mentions.
fn report(linking: &Linking<'_>, batches: &Batches, counts: Counts) {
    if let Some(changed) = &linking.changed {
        changed::report(changed, counts.n_documents);
    }
    if linking.arguments.mentions == Mentions::Gold && batches.n_given == 0 {
        progress::say("warning: the input has no annotations to link; omit `--mentions gold` to detect mentions");
    }
    for (n, option) in [(counts.by_nil, "--nil drop"), (counts.by_context, "--drop-context")] {
        if n > 0 {
            progress::say(&format!("dropped {} by `{option}`", counted(n, "mention")));
        }
    }
}

/// A linked and encoded document, or the id of one that was skipped and the reason.
enum Linked {
    Document(Encoded, Counts),
    Skipped(String, canonym_core::Error),
}

/// Links a batch; with `--skip-bad-documents`, documents that fail are skipped.
fn link_or_skip(linking: &Linking<'_>, batch: Vec<AnnotatedDocument>) -> anyhow::Result<Vec<Linked>> {
    let linked = |(document, counts)| Linked::Document(document, counts);
    if linking.arguments.skip_bad_documents.is_none() {
        return Ok(link(linking, batch)?.into_iter().map(linked).collect());
    }
    match link(linking, batch.clone()) {
        Ok(all) => Ok(all.into_iter().map(linked).collect()),
        Err(_) => {
            let alone = |document: AnnotatedDocument| {
                let id = document.document.id.clone();
                match link(linking, vec![document]) {
                    Ok(mut one) => Ok(linked(one.remove(0))),
                    Err(error) => error.downcast().map(|error| Linked::Skipped(id, error)),
                }
            };
            batch.into_iter().map(alone).collect()
        }
    }
}

/// Numbers of linked documents, and of written and dropped mentions.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Documents.
    n_documents: u64,
    /// Written.
    n_mentions: u64,
    /// Dropped without a concept.
    by_nil: u64,
    /// Dropped with an unwanted context.
    by_context: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.n_documents += other.n_documents;
        self.n_mentions += other.n_mentions;
        self.by_nil += other.by_nil;
        self.by_context += other.by_context;
    }
}

/// Links a batch and encodes each document; also returns the numbers of mentions.
fn link(linking: &Linking<'_>, batch: Vec<AnnotatedDocument>) -> anyhow::Result<Vec<(Encoded, Counts)>> {
    let Linking { arguments, system, changed, encoder } = linking;
    if arguments.explain {
        let encode = |(mut document, mut explanations): (AnnotatedDocument, Vec<Explanation>)| -> anyhow::Result<_> {
            let counts = drop_unwanted(linking, &mut document, &mut explanations);
            Ok((encoder.encode_explained(system.kb(), document, &explanations)?, counts))
        };
        return system.explain(batch)?.into_par_iter().map(encode).collect();
    }
    let encode = |(mut document, is_linked): (AnnotatedDocument, bool)| -> anyhow::Result<(Encoded, Counts)> {
        let counts = match is_linked {
            true => drop_unwanted(linking, &mut document, &mut Vec::new()),
            false => Counts { n_documents: 1, n_mentions: document.annotations.len() as u64, ..Counts::default() },
        };
        Ok((encoder.encode(system.kb(), document)?, counts))
    };
    let linked = match changed {
        Some(changed) => changed.link(system, batch)?,
        None => system.link(batch)?.into_iter().map(|document| (document, true)).collect(),
    };
    linked.into_par_iter().map(encode).collect()
}

/// Adds contexts, and drops mentions as the options say. Returns the numbers of mentions.
fn drop_unwanted(
    linking: &Linking<'_>,
    document: &mut AnnotatedDocument,
    explanations: &mut Vec<Explanation>,
) -> Counts {
    let Linking { arguments, encoder, .. } = linking;
    let mut dropped = Counts { n_documents: 1, ..Counts::default() };
    if arguments.nil == Nil::Drop {
        dropped.by_nil = drop_unlinked(document, explanations);
    }
    if arguments.context || encoder.to.has_contexts() {
        corpus::contexts::add(document);
        let unwanted: Vec<String> = arguments.drop_context.iter().map(settings::named).collect();
        let kept: Vec<bool> =
            document.annotations.iter().map(|one| !corpus::contexts::has_any(one, &unwanted)).collect();
        dropped.by_context = retain(document, explanations, &kept);
    }
    dropped.n_mentions = document.annotations.len() as u64;
    dropped
}
