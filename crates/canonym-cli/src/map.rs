//! `canonym map`: links names without context.

use crate::options;
use canonym_neural::system::terminology;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use canonym_core::input::Input;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::Link;
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::LinkConfig;
use serde::Serialize;

use crate::filter::FilterArguments;
use crate::output::Lines;
use crate::progress;
use canonym_neural::system::{Models, NameLinker};

/// Names per batch: enough for all cores, small in memory.
const BATCH: usize = 4096;

/// Arguments of `canonym map`.
#[derive(Debug, clap::Args)]
pub struct MapArguments {
    /// File of names, one per line; `-` is standard input.
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
    /// Maximum candidates per name.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    top_k: u32,
    /// Leave names below this probability unlinked.
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = options::parse_probability)]
    min_score: f32,
    /// Explain each link in a field `explanation`.
    #[arg(long)]
    explain: bool,
    /// Print ids as written in the source.
    #[arg(long)]
    raw_ids: bool,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    #[command(flatten)]
    filter: FilterArguments,
}

#[derive(Serialize)]
struct Line<'a> {
    query: &'a str,
    nil: bool,
    candidates: Vec<Row<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: String,
    name: &'a str,
    score: f64,
}

/// Runs the command.
pub fn run(arguments: &MapArguments) -> anyhow::Result<()> {
    let mut models = Models::named(&arguments.model)?;
    options::use_threads(arguments.threads)?;
    let kb = terminology::open_for(arguments.kb.as_deref(), &arguments.model)?;
    models.use_index(arguments.index.as_deref(), &kb)?;
    let config = LinkConfig { top_k: arguments.top_k as usize, min_score: arguments.min_score };
    let linker = NameLinker::new(&kb, &models, config, arguments.filter.choose(&kb)?)?;
    let mut input = Input::open(&arguments.file)?;
    let mut out = Lines::default();
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
            write_line(&mut out, &kb, query, link, explanation, arguments.raw_ids)
                .context("cannot write the result")?;
        }
        bar.inc(names.len() as u64);
    }
    progress::finish(&bar, "names");
    out.flush().context("cannot write the result")
}

fn link(linker: &NameLinker, names: &[String], explain: bool) -> anyhow::Result<Vec<(Link, Option<Explanation>)>> {
    if !explain {
        return Ok(linker.link_names(names)?.into_iter().map(|link| (link, None)).collect());
    }
    Ok(linker.explain_names(names)?.into_iter().map(|(link, explanation)| (link, Some(explanation))).collect())
}

fn write_line(
    out: &mut impl Write,
    kb: &KnowledgeBase,
    query: &str,
    link: Link,
    mut explanation: Option<Explanation>,
    raw: bool,
) -> std::io::Result<()> {
    if let Some(explanation) = &mut explanation {
        for (explained, candidate) in explanation.candidates.iter_mut().zip(&link.candidates) {
            explained.id = terminology::shown_id(kb, candidate.concept, raw);
        }
    }
    let row = |candidate: &canonym_core::link::Candidate| Row {
        id: terminology::shown_id(kb, candidate.concept, raw),
        name: kb.preferred_name(candidate.concept),
        score: (f64::from(candidate.p_link) * 1e4).round() / 1e4,
    };
    let line = Line { query, nil: link.nil, candidates: link.candidates.iter().map(row).collect(), explanation };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}
