//! `canonym kb search`: finds concepts by id or name.

use canonym_neural::status::Stage;
use canonym_neural::system::terminology;
use std::path::PathBuf;

use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::search::{SearchHit, search};
use canonym_core::numbers::rounded;
use serde::Serialize;

use crate::{output, progress};

/// Arguments of `canonym kb search`.
#[derive(Debug, clap::Args)]
pub struct SearchArguments {
    /// Knowledge base file; `starter` is the embedded one.
    #[arg(value_name = "FILE.kb")]
    file: PathBuf,
    /// Name, prefix of a name, or id.
    query: String,
    /// Maximum number of concepts to show.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    top_k: u32,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer<'a> {
    query: &'a str,
    hits: Vec<Hit<'a>>,
}

#[derive(Serialize)]
struct Hit<'a> {
    id: &'a str,
    name: &'a str,
    matched: &'a str,
    found: &'static str,
    similarity: f64,
}

/// Runs the command.
pub fn run(arguments: &SearchArguments) -> anyhow::Result<()> {
    let kb = terminology::open(Some(&arguments.file))?;
    let query = arguments.query.trim();
    let stage = Stage::start();
    let hits: Vec<Hit<'_>> = search(&kb, query, arguments.top_k as usize).iter().map(|found| hit(&kb, found)).collect();
    stage.done("searched the names");
    if arguments.json {
        return output::print_json(&Answer { query, hits });
    }
    if hits.is_empty() {
        progress::say(&format!("no match for `{query}` in {}", kb.meta().name));
    }
    output::print(&text(&hits))
}

fn hit<'a>(kb: &'a KnowledgeBase, found: &SearchHit) -> Hit<'a> {
    Hit {
        id: kb.id(found.concept),
        name: kb.preferred_name(found.concept),
        matched: kb.name(found.name),
        found: found.kind.name(),
        similarity: rounded(found.similarity),
    }
}

fn text(hits: &[Hit<'_>]) -> String {
    let width = hits.iter().map(|hit| hit.id.chars().count()).max().unwrap_or_default();
    let line = |hit: &Hit<'_>| {
        let matched = if hit.matched == hit.name { String::new() } else { format!("  [{}]", hit.matched) };
        format!("{:6}  {:.2}  {:width$}  {}{matched}\n", hit.found, hit.similarity, hit.id, hit.name)
    };
    hits.iter().map(line).collect()
}
