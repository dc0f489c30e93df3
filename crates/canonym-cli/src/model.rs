//! `canonym model`: kind, size and training record of a model.

use canonym_neural::system::parts;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use canonym_core::eval::learned::{Learned, Role};
use canonym_core::link::{model as lexical, recognise::accept};
use canonym_neural::bundle::cross_encoder::{self, CrossManifest};
use canonym_neural::bundle::dual_encoder::{self, DualManifest};
use canonym_neural::bundle::{self, AnyBundle, ModelFile, NameManifest};
use canonym_neural::tensor::parameters::Parameters;
use serde::Serialize;

use crate::output::{self, Sheet, bytes, counted, thousands};
use canonym_neural::system::linked::MentionSource;
use canonym_neural::system::parts::{DEFAULT, DEFAULT_MODEL};

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
    let path = Path::new(name);
    let is_bundle = path.is_file() || path.join(bundle::FILE).exists();
    if name == DEFAULT || is_bundle {
        let (file, content) = match is_bundle {
            true => bundle::read_file(path)?,
            false => (path.to_path_buf(), DEFAULT_MODEL.to_vec()),
        };
        return bundle_info(name, &file, &content);
    }
    let models = parts::models(name)?;
    let learned = models.learned(MentionSource::Detect)?;
    let n_bytes = models.ranking_json.len() + models.recognition_json.len();
    let parts = match models.bm25 {
        Some(_) => BTreeMap::new(),
        None => BTreeMap::from([
            (parts::LEXICAL_PART.to_owned(), lexical::N),
            (parts::RECOGNITION_PART.to_owned(), accept::N),
        ]),
    };
    let info = Info {
        kind: if models.bm25.is_some() { "bm25" } else { "lexical" }.to_owned(),
        n_bytes: if models.bm25.is_some() { 0 } else { n_bytes },
        parts,
        ..Info::empty(name)
    };
    Ok(info.with_weights(None).with_learned(&learned))
}

fn bundle_info(name: &str, file: &Path, content: &[u8]) -> anyhow::Result<Info> {
    let models = |name: &str| -> canonym_core::Result<Learned> { parts::models(name)?.learned(MentionSource::Detect) };
    let empty = Info { n_bytes: content.len(), ..Info::empty(name) };
    let (info, learned) = match AnyBundle::from_bytes(content, file)? {
        AnyBundle::DualEncoder(bundle) => {
            let search = if bundle.manifest.model.search.is_some() { "detects and links" } else { "links" };
            let kind = format!("{}, {search} mentions", dual_encoder::SYSTEM);
            let DualManifest { format, card, .. } = &bundle.manifest;
            (Info { kind, format: Some(*format), card: card.clone(), ..empty }.of_file(&bundle), models(name)?)
        }
        AnyBundle::CrossEncoder(bundle) => {
            let mut learned = Learned::default();
            learned.join_whole(cross_encoder::SYSTEM, bundle.learned.as_ref());
            let CrossManifest { format, card, .. } = &bundle.manifest;
            let kind = cross_encoder::SYSTEM.to_owned();
            (Info { kind, format: Some(*format), card: card.clone(), ..empty }.of_file(&bundle), learned)
        }
        AnyBundle::Names(bundle) => {
            let kind = match bundle.manifest.tagger {
                Some(_) => "pipeline: tagger, dictionary and name encoder",
                None => "name encoder",
            };
            let NameManifest { format, card, .. } = &bundle.manifest;
            let info = Info { kind: kind.to_owned(), format: Some(*format), card: card.clone(), ..empty };
            (info.of_file(&bundle), models(name)?)
        }
    };
    Ok(info.with_learned(&learned))
}

impl Info {
    /// Adds fingerprint and weights.
    fn of_file<M>(self, bundle: &ModelFile<M>) -> Info {
        let fingerprint = Some(format!("{:032x}", bundle.fingerprint));
        Info { fingerprint, ..self }.with_weights(Some(&bundle.parameters))
    }

    fn empty(name: &str) -> Info {
        Info {
            name: name.to_owned(),
            kind: String::new(),
            format: None,
            n_bytes: 0,
            fingerprint: None,
            n_weights: 0,
            parts: BTreeMap::new(),
            shapes: BTreeMap::new(),
            tables: BTreeMap::new(),
            n_documents: 0,
            learned: Vec::new(),
            unrecorded: Vec::new(),
            card: String::new(),
        }
    }

    /// Adds the weights of a file, by the first component of their names, to the counts per part.
    fn with_weights(mut self, parameters: Option<&Parameters>) -> Info {
        for (name, value) in parameters.into_iter().flat_map(Parameters::iter) {
            let part = name.split('.').next().unwrap_or(name);
            *self.parts.entry(part.to_owned()).or_default() += value.values.len();
            self.shapes.insert(name.to_owned(), [value.n_rows, value.n_cols]);
        }
        let tables = parameters.into_iter().flat_map(Parameters::tables);
        self.tables = tables.map(|(name, content)| (name.to_owned(), content.len())).collect();
        self.n_weights = self.parts.values().sum();
        self
    }

    fn with_learned(mut self, learned: &Learned) -> Info {
        self.n_documents = learned.n_documents();
        self.unrecorded.clone_from(&learned.unrecorded);
        let one = |source: &canonym_core::eval::learned::TrainingSource| LearnedFrom {
            part: source.part.clone(),
            role: source.role,
            file: source.file.clone(),
            n_documents: source.documents.len(),
        };
        self.learned = learned.sources.iter().map(one).collect();
        self
    }
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
