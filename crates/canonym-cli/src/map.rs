//! `canonym map`: links names without context.

use crate::{errors, options};
use canonym_neural::system::terminology;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use canonym_core::corpus::documents::named;
use canonym_core::input::Input;
use canonym_core::link::Link;
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::sssom::{self, Subject};
use canonym_core::records::names::NameLines;

use crate::codes::CodeArguments;
use crate::filter::FilterArguments;
use crate::output::Lines;
use crate::progress;
use canonym_neural::status::Meter;
use canonym_neural::system::{Models, NameLinker};

/// Names per batch: enough for all cores, small in memory.
const BATCH: usize = 4096;

/// Arguments of `canonym map`.
#[derive(Debug, clap::Args)]
pub struct MapArguments {
    /// File of names, one per line; `-` is standard input. With `--to sssom`, a line may also be
    /// `ID<TAB>NAME`.
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
    let (mut read, mut linked, mut written) = (Meter::default(), Meter::default(), Meter::default());
    // With SSSOM all names are read first, because the metadata declare the prefixes of their ids.
    let n_at_once = if is_sssom { usize::MAX } else { BATCH };
    let mut names = read.time(|| next_names(&mut input, n_at_once))?;
    if is_sssom {
        let header = sssom::header(&kb, &arguments.model, names.iter().map(|line| Subject::of_line(line).id));
        out.write_all(header.as_bytes()).context("cannot write the result")?;
    }
    if names.is_empty() {
        progress::say(&format!("no names in {}", named(&arguments.file)));
    }
    let bar = progress::counter("names", is_sssom.then_some(names.len() as u64));
    while !names.is_empty() {
        for batch in names.chunks(BATCH) {
            let label = |line: &String| if is_sssom { Subject::of_line(line).label.to_owned() } else { line.clone() };
            let labels: Vec<String> = batch.iter().map(label).collect();
            let links = linked.time(|| link(&linker, &labels, arguments.explain))?;
            kb.container().check_unchanged()?;
            let mut write = |(name, (link, explanation)): (&String, (Link, Option<Explanation>))| {
                let text = match is_sssom {
                    true => sssom::rows(&kb, Subject::of_line(name), &link, link.candidates.len()),
                    false => lines.line(name, &link, explanation),
                };
                out.write_all(text.as_bytes())
            };
            written.time(|| batch.iter().zip(links).try_for_each(&mut write)).context("cannot write the result")?;
            [&mut read, &mut linked, &mut written].into_iter().for_each(|meter| meter.count(batch.len()));
            bar.inc(batch.len() as u64);
        }
        if is_sssom {
            let ids = names.iter().map(|line| Subject::of_line(line).id);
            sssom::wrong_ids(ids).iter().for_each(|line| progress::say(line));
        }
        names = read.time(|| next_names(&mut input, n_at_once))?;
    }
    bar.finish_and_clear();
    for (meter, verb) in [(read, "read"), (linked, "linked"), (written, "wrote")] {
        meter.done(verb, "name");
    }
    out.flush().context("cannot write the result")
}

/// Up to `n` lines.
fn next_names(input: &mut Input, n: usize) -> canonym_core::Result<Vec<String>> {
    let mut names = Vec::new();
    while names.len() < n {
        match input.next_line()? {
            Some((_, line)) => names.push(line.to_owned()),
            None => break,
        }
    }
    Ok(names)
}

fn link(linker: &NameLinker, names: &[String], explain: bool) -> anyhow::Result<Vec<(Link, Option<Explanation>)>> {
    if !explain {
        return Ok(linker.link_names(names)?.into_iter().map(|link| (link, None)).collect());
    }
    Ok(linker.explain_names(names)?.into_iter().map(|(link, explanation)| (link, Some(explanation))).collect())
}
