//! `canonym map`: links names without context.

use crate::{errors, options};
use canonym_neural::system::terminology;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use canonym_core::input::Input;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::Link;
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::sssom::{self, Subject};
use canonym_core::records::names::NameLines;

use crate::codes::CodeArguments;
use crate::filter::FilterArguments;
use crate::output::Lines;
use crate::progress;
use canonym_neural::system::{Models, NameLinker};

/// Names per batch: enough for all cores, small in memory.
const BATCH: usize = 4096;

/// Arguments of `canonym map`.
#[derive(Debug, clap::Args)]
pub struct MapArguments {
    /// File of names, one per line; `-` is standard input. With `--to sssom`, a line may be an id, a tab and a name.
    file: PathBuf,
    /// Compiled knowledge base [default: the embedded `starter`].
    #[arg(long, value_name = "FILE.kb")]
    kb: Option<PathBuf>,
    /// Model: `lexical` (string similarity), `bm25`, `default` (hybrid: lexical and dense), or a bundle.
    #[arg(long, value_name = "BUNDLE", default_value = "lexical")]
    model: String,
    /// Index of the names, from `canonym index build` [default: the file `K.index` beside `K.kb`, if there is one].
    #[arg(long, value_name = "FILE.index")]
    index: Option<PathBuf>,
    /// Output format: jsonl, or sssom (SSSOM mappings as TSV).
    #[arg(long, value_enum, value_name = "F", default_value = "jsonl")]
    to: MapFormat,
    /// Maximum candidates per name [default: 5; 1 with `--to sssom`].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    top_k: Option<u32>,
    /// Leave names below this probability unlinked.
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = options::parse_probability)]
    min_score: f32,
    /// Explain each link in a field `explanation`.
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    codes: CodeArguments,
    /// Print ids as written in the source.
    #[arg(long)]
    raw_ids: bool,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    filter: FilterArguments,
}

/// The values of `--to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MapFormat {
    /// A line of JSON for each name.
    Jsonl,
    /// SSSOM mappings.
    Sssom,
}

/// Runs the command.
pub fn run(arguments: &MapArguments) -> anyhow::Result<()> {
    let is_sssom = arguments.to == MapFormat::Sssom;
    if is_sssom && (arguments.explain || arguments.raw_ids || arguments.codes.to_system.is_some()) {
        let message = "`--to sssom` cannot hold `--explain`, `--raw-ids` and `--to-system`";
        return Err(errors::usage(message, "omit the option, or use jsonl"));
    }
    let mut models = Models::named(&arguments.model)?;
    options::use_threads(arguments.threads)?;
    let kb = terminology::open_for(arguments.kb.as_deref(), &arguments.model)?;
    models.use_index(arguments.index.as_deref(), &kb)?;
    let lines = NameLines { kb: &kb, raw_ids: arguments.raw_ids, translator: arguments.codes.translator(&kb)? };
    let top_k = arguments.top_k.unwrap_or(if is_sssom { 1 } else { 5 }) as usize;
    let config = LinkConfig { top_k, min_score: arguments.min_score };
    let linker = NameLinker::new(&kb, &models, config, arguments.filter.choose(&kb)?)?;
    let mut input = Input::open(&arguments.file)?;
    let mut out = Lines::default();
    if is_sssom {
        // All names are read first, because the metadata declare the prefixes of their ids.
        let mut lines: Vec<String> = Vec::new();
        while let Some((_, line)) = input.next_line()? {
            lines.push(line.to_owned());
        }
        let header = sssom::header(&kb, &arguments.model, lines.iter().map(|line| Subject::of_line(line).id));
        out.write_all(header.as_bytes()).context("cannot write the result")?;
        write_mappings(&kb, &linker, &lines, &mut out)?;
        return out.flush().context("cannot write the result");
    }
    let bar = progress::counter("names", None);
    let mut names: Vec<String> = Vec::with_capacity(BATCH);
    loop {
        names.clear();
        while names.len() < BATCH {
            match input.next_line()? {
                Some((_, line)) => names.push(line.to_owned()),
                None => break,
            }
        }
        if names.is_empty() {
            break;
        }
        let links = link(&linker, &names, arguments.explain)?;
        kb.container().check_unchanged()?;
        for (query, (link, explanation)) in names.iter().zip(links) {
            let line = lines.line(query, &link, explanation);
            out.write_all(line.as_bytes()).context("cannot write the result")?;
        }
        bar.inc(names.len() as u64);
    }
    progress::finish(&bar, "names");
    out.flush().context("cannot write the result")
}

/// Writes the rows of names, and says which ids SSSOM does not allow.
fn write_mappings(kb: &KnowledgeBase, linker: &NameLinker, lines: &[String], out: &mut Lines) -> anyhow::Result<()> {
    let bar = progress::counter("names", Some(lines.len() as u64));
    for batch in lines.chunks(BATCH) {
        let labels: Vec<&str> = batch.iter().map(|line| Subject::of_line(line).label).collect();
        let links = linker.link_names(&labels)?;
        kb.container().check_unchanged()?;
        for (line, link) in batch.iter().zip(links) {
            let rows = sssom::rows(kb, Subject::of_line(line), &link, link.candidates.len());
            out.write_all(rows.as_bytes()).context("cannot write the result")?;
        }
        bar.inc(batch.len() as u64);
    }
    progress::finish(&bar, "names");
    sssom::wrong_ids(lines.iter().map(|line| Subject::of_line(line).id)).iter().for_each(|line| progress::say(line));
    Ok(())
}

fn link(linker: &NameLinker, names: &[String], explain: bool) -> anyhow::Result<Vec<(Link, Option<Explanation>)>> {
    if !explain {
        return Ok(linker.link_names(names)?.into_iter().map(|link| (link, None)).collect());
    }
    Ok(linker.explain_names(names)?.into_iter().map(|(link, explanation)| (link, Some(explanation))).collect())
}
