//! `canonym kb show`: all data of one concept.

use canonym_neural::system::terminology;
use std::path::PathBuf;

use canonym_core::kb::code_system::{Coding, coding, is_made_up};
use canonym_core::kb::search::{children, nearest_ids, search};
use canonym_core::kb::{ConceptId, KnowledgeBase};
use serde::Serialize;

use crate::output::{self, Sheet, thousands};

/// Maximum number of parents or children in text output; JSON has all.
const MAX_LISTED: usize = 20;

/// Arguments of `canonym kb show`.
#[derive(Debug, clap::Args)]
pub struct ShowArguments {
    /// Knowledge base file; `starter` is the embedded one.
    #[arg(value_name = "FILE.kb")]
    file: PathBuf,
    /// Id, such as MESH:D003924, or alternative id.
    id: String,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Concept<'a> {
    id: &'a str,
    raw_id: String,
    name: &'a str,
    names: Vec<Name<'a>>,
    types: Vec<&'a str>,
    definition: Option<&'a str>,
    parents: Vec<Neighbour<'a>>,
    children: Vec<Neighbour<'a>>,
    alternative_ids: Vec<&'a str>,
    xrefs: Vec<Reference<'a>>,
    code_system: System,
    source: &'a str,
}

#[derive(Serialize)]
struct Reference<'a> {
    id: &'a str,
    predicate: &'static str,
}

#[derive(Serialize)]
struct System {
    uri: String,
    version: String,
    code: String,
}

#[derive(Serialize)]
struct Name<'a> {
    text: &'a str,
    scope: &'static str,
}

#[derive(Serialize)]
struct Neighbour<'a> {
    id: &'a str,
    name: &'a str,
}

/// Runs the command.
pub fn run(arguments: &ShowArguments) -> anyhow::Result<()> {
    let kb = terminology::open(Some(&arguments.file))?;
    let id = arguments.id.trim();
    let concept = kb.find(id).ok_or_else(|| unknown(&kb, id))?;
    let concept = collect(&kb, concept);
    if arguments.json { output::print_json(&concept) } else { output::print(&text(&concept)) }
}

fn unknown(kb: &KnowledgeBase, id: &str) -> canonym_core::Error {
    let mut near = nearest_ids(kb, id, 3);
    if near.is_empty() {
        near = search(kb, id, 3).iter().map(|hit| hit.concept).collect();
    }
    let error = canonym_core::Error::not_found(format!("{} has no concept with the id `{id}`", kb.meta().name));
    let near: Vec<String> =
        near.into_iter().map(|concept| format!("{} ({})", kb.id(concept), kb.preferred_name(concept))).collect();
    match near.split_last() {
        None => error.with_hint("search by name with `canonym kb search`"),
        Some((only, [])) => error.with_hint(format!("did you mean {only}?")),
        Some((last, others)) => error.with_hint(format!("did you mean {} or {last}?", others.join(", "))),
    }
}

fn collect(kb: &KnowledgeBase, concept: ConceptId) -> Concept<'_> {
    let Coding { system: uri, version, code } = coding(kb, concept);
    let neighbour = |concept: ConceptId| Neighbour { id: kb.id(concept), name: kb.preferred_name(concept) };
    Concept {
        id: kb.id(concept),
        raw_id: kb.raw_id(concept),
        name: kb.preferred_name(concept),
        names: kb.names(concept).map(|name| Name { text: kb.name(name), scope: kb.scope(name).name() }).collect(),
        types: kb.types(concept).collect(),
        definition: kb.definition(concept),
        parents: kb.parents(concept).map(neighbour).collect(),
        children: children(kb, concept).into_iter().map(neighbour).collect(),
        alternative_ids: kb.alternative_ids(concept).collect(),
        xrefs: kb.xrefs(concept).map(|xref| Reference { id: xref.id, predicate: xref.predicate.name() }).collect(),
        code_system: System { uri, version, code },
        source: kb.source(concept),
    }
}

fn text(concept: &Concept<'_>) -> String {
    let mut sheet = Sheet::default();
    sheet.line("id", concept.id);
    if concept.raw_id != concept.id {
        sheet.line("raw id", concept.raw_id.clone());
    }
    sheet.line("name", concept.name);
    sheet.line("types", concept.types.join(", "));
    sheet.line("definition", concept.definition.unwrap_or_default());
    let width = concept.names.iter().map(|name| name.scope.len()).max().unwrap_or_default();
    let others = concept.names.iter().filter(|name| name.text != concept.name);
    sheet.lines("other names", others.map(|name| format!("{:width$}  {}", name.scope, name.text)));
    sheet.lines("parents", listed(&concept.parents));
    sheet.lines("children", listed(&concept.children));
    sheet.lines("also known as", concept.alternative_ids.iter().map(|id| (*id).to_owned()));
    let width = concept.xrefs.iter().map(|xref| xref.predicate.len()).max().unwrap_or_default();
    let xrefs = concept.xrefs.iter().map(|xref| format!("{:width$}  {}", xref.predicate, xref.id));
    sheet.lines("cross-references", xrefs);
    let System { uri, version, .. } = &concept.code_system;
    if !is_made_up(uri) || !version.is_empty() {
        sheet.line("code system", format!("{uri} {version}").trim_end());
    }
    sheet.line("source", concept.source);
    sheet.text()
}

/// One line per neighbour with aligned ids, and a line that counts the omitted ones.
fn listed(neighbours: &[Neighbour<'_>]) -> Vec<String> {
    let shown = &neighbours[..neighbours.len().min(MAX_LISTED)];
    let width = shown.iter().map(|neighbour| neighbour.id.chars().count()).max().unwrap_or_default();
    let mut lines: Vec<String> =
        shown.iter().map(|neighbour| format!("{:width$}  {}", neighbour.id, neighbour.name)).collect();
    let n_more = neighbours.len() - shown.len();
    if n_more > 0 {
        lines.push(format!("and {} more (use `--json` to list all)", thousands(n_more as u64)));
    }
    lines
}
