//! `canonym map`: links names without context.

use crate::{errors, options};
use canonym_neural::system::terminology;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use canonym_core::input::Input;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::translate::Translator;
use canonym_core::link::Link;
use canonym_core::link::explain::Explanation;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::link::sssom::{self, Subject};
use serde::Serialize;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    codes: Option<Vec<Code>>,
}

#[derive(Serialize)]
struct Code {
    id: String,
    predicate: &'static str,
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
    let translator = arguments.codes.translator(&kb)?;
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
            let writer = LineWriter { kb: &kb, raw: arguments.raw_ids, translator: translator.as_ref() };
            writer.write(&mut out, query, link, explanation).context("cannot write the result")?;
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
    let ids = lines.iter().map(|line| Subject::of_line(line).id);
    let mut wrong = ids.filter(|id| !id.is_empty() && !sssom::is_curie(id));
    if let Some(first) = wrong.next() {
        let n = 1 + wrong.count();
        let are = if n == 1 { "id is not a CURIE" } else { "ids are not CURIEs" };
        progress::say(&format!(
            "{n} {are} such as `LAB:12` (first `{}`); sssom-py drops such rows",
            first.escape_debug()
        ));
    }
    Ok(())
}

fn link(linker: &NameLinker, names: &[String], explain: bool) -> anyhow::Result<Vec<(Link, Option<Explanation>)>> {
    if !explain {
        return Ok(linker.link_names(names)?.into_iter().map(|link| (link, None)).collect());
    }
    Ok(linker.explain_names(names)?.into_iter().map(|(link, explanation)| (link, Some(explanation))).collect())
}

/// How lines are written.
struct LineWriter<'a> {
    kb: &'a KnowledgeBase,
    raw: bool,
    translator: Option<&'a Translator>,
}

impl LineWriter<'_> {
    fn write(
        &self,
        out: &mut impl Write,
        query: &str,
        link: Link,
        mut explanation: Option<Explanation>,
    ) -> std::io::Result<()> {
        let LineWriter { kb, raw, translator } = *self;
        if let Some(explanation) = &mut explanation {
            for (explained, candidate) in explanation.candidates.iter_mut().zip(&link.candidates) {
                explained.id = terminology::shown_id(kb, candidate.concept, raw);
            }
        }
        let codes = |translator: &Translator, concept| {
            let codes = translator.codes(kb, concept).into_iter();
            codes.map(|code| Code { id: code.id, predicate: code.predicate.name() }).collect()
        };
        let row = |candidate: &canonym_core::link::Candidate| Row {
            id: terminology::shown_id(kb, candidate.concept, raw),
            name: kb.preferred_name(candidate.concept),
            score: (f64::from(candidate.p_link) * 1e4).round() / 1e4,
            codes: translator.map(|translator| codes(translator, candidate.concept)),
        };
        let line = Line { query, nil: link.nil, candidates: link.candidates.iter().map(row).collect(), explanation };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")
    }
}
