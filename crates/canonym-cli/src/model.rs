//! `canonym model`: kind, size and training record of a model.

use std::collections::BTreeMap;

use anyhow::Context;
use canonym_core::eval::learned::{Role, TrainingSource};
use canonym_neural::system::info::ModelInfo;
use serde::Serialize;

use crate::output::{self, Sheet, bytes, counted, thousands};

/// The subcommands of `canonym model`.
#[derive(Debug, clap::Subcommand)]
pub enum ModelCommand {
    /// Show the kind, size and training documents of a model.
    Info(InfoArguments),
}

/// Arguments of `canonym model info`.
#[derive(Debug, clap::Args)]
pub struct InfoArguments {
    /// Bundle or training folder, or a built-in model: `default`, `lexical`.
    #[arg(value_name = "BUNDLE")]
    model: String,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

/// The facts shown about a model.
#[derive(Debug, Serialize)]
struct Info {
    name: String,
    /// Kind of model.
    kind: String,
    /// Format number of its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<u32>,
    n_bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    n_weights: usize,
    /// Number of weights per part.
    parts: BTreeMap<String, usize>,
    /// Rows and columns of each matrix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    shapes: BTreeMap<String, [usize; 2]>,
    /// Size in bytes of each table.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tables: BTreeMap<String, usize>,
    /// Number of distinct training documents.
    n_documents: usize,
    /// Training files by part and role.
    learned: Vec<LearnedFrom>,
    /// Parts without a training record.
    unrecorded: Vec<String>,
    /// Model card: data, scores, limits, licence.
    card: String,
}

#[derive(Debug, Serialize)]
struct LearnedFrom {
    part: String,
    role: Role,
    file: String,
    n_documents: usize,
}

/// Runs the command.
pub fn run(command: &ModelCommand) -> anyhow::Result<()> {
    let ModelCommand::Info(arguments) = command;
    let info = info(&arguments.model).with_context(|| format!("cannot show the model `{}`", arguments.model))?;
    if arguments.json { output::print_json(&info) } else { output::print(&sheet(&info)) }
}

fn info(name: &str) -> anyhow::Result<Info> {
    let ModelInfo { kind, format, n_bytes, fingerprint, parts, shapes, tables, learned, card } = ModelInfo::open(name)?;
    let n_documents = learned.n_documents();
    let source = |source: TrainingSource| LearnedFrom {
        part: source.part,
        role: source.role,
        file: source.file,
        n_documents: source.documents.len(),
    };
    Ok(Info {
        name: name.to_owned(),
        kind,
        format,
        n_bytes,
        fingerprint: fingerprint.map(|fingerprint| format!("{fingerprint:032x}")),
        n_weights: parts.values().sum(),
        parts,
        shapes,
        tables,
        n_documents,
        learned: learned.sources.into_iter().map(source).collect(),
        unrecorded: learned.unrecorded,
        card,
    })
}

fn sheet(info: &Info) -> String {
    let mut sheet = Sheet::default();
    sheet.line("name", &info.name);
    sheet.line("kind", &info.kind);
    let format = info.format.map_or_else(String::new, |format| format!(", format {format}"));
    sheet.line("size", format!("{}{format}, {} weights", bytes(info.n_bytes as u64), thousands(info.n_weights as u64)));
    let parts = info.parts.iter().map(|(name, n)| (*n as u64, name.clone()));
    sheet.counts("weights", &parts.collect::<Vec<_>>());
    let tables = info.tables.iter().map(|(name, n)| (*n as u64, name.clone()));
    sheet.counts("table bytes", &tables.collect::<Vec<_>>());
    sheet.line("fingerprint", info.fingerprint.clone().unwrap_or_default());
    let documents = match info.learned.is_empty() {
        true => String::new(),
        false => format!("{} in total", counted(info.n_documents as u64, "document")),
    };
    sheet.line("training documents", documents);
    let count_of =
        |one: &LearnedFrom| (one.n_documents as u64, format!("{}: {} by {}", one.file, one.role.name(), one.part));
    sheet.counts("documents", &info.learned.iter().map(count_of).collect::<Vec<_>>());
    sheet.lines("no training record", info.unrecorded.iter().cloned());
    let card = info.card.trim();
    if card.is_empty() { sheet.text() } else { format!("{}\n{card}\n", sheet.text()) }
}
