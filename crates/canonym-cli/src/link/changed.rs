//! `--changed-only`: keeps the links of documents that a change of the terminology cannot touch.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use canonym_core::batch::{RunFolder, RunSettings};
use canonym_core::corpus::files::RUN_FILE;
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::recognise::senses::SenseInventory;
use canonym_core::link::recognise::touched::ChangedNames;
use canonym_core::records::format::ResultFormat;
use canonym_neural::system::terminology;

use super::{LinkArguments, settings};
use crate::output::counted;
use crate::system::Mentions;
use crate::{errors, progress};

/// Options that do not change the links of a document: how it is read, and how outputs are stored.
const NEUTRAL: [&str; 10] = [
    "files",
    "--changed-only",
    "--compress",
    "--fix-offsets",
    "--format",
    "--id-column",
    "--skip-bad-documents",
    "--skip-bad-offsets",
    "--tags",
    "--text-column",
];

/// How the fingerprint of the model starts with which the result is that of linking everything again.
const EXACT: &str = "lexical ";

/// The changes since the knowledge base that the input was linked with.
pub struct Changed {
    names: ChangedNames,
    /// Ids of changed concepts, as printed.
    ids: HashSet<String>,
    kb: Arc<KnowledgeBase>,
    n_kept: AtomicU64,
}

impl Changed {
    /// Compares `kb` with the older knowledge base `old`. `model` is the fingerprint of the models.
    pub fn new(
        arguments: &LinkArguments,
        old: &KnowledgeBase,
        (kb, model): (&Arc<KnowledgeBase>, &str),
        senses: Option<Arc<SenseInventory>>,
    ) -> Changed {
        if !model.starts_with(EXACT) {
            progress::say(
                "the result is approximate: with this model a change can also affect links of documents that are kept; with `--model lexical` it cannot",
            );
        }
        let names = ChangedNames::between(old, kb, &senses.unwrap_or_else(SenseInventory::embedded));
        if let Some(reason) = names.everything() {
            progress::say(&format!("all documents will be linked again: {reason}"));
        }
        progress::say(&counted(names.n_changed() as u64, "new, changed or removed concept"));
        let shown = |concept| terminology::shown_id(old, concept, arguments.raw_ids);
        let ids = names.concepts().iter().map(|concept| shown(*concept)).collect();
        Changed { names, ids, kb: kb.clone(), n_kept: AtomicU64::new(0) }
    }

    /// Whether a document is to be linked again: a change may touch its text, it has links to a changed concept, or
    /// annotations that no system made.
    pub fn may_touch(&self, document: &AnnotatedDocument) -> bool {
        let links = document.annotations.iter();
        let is_stale = links.clone().any(|link| !link.is_linked())
            || links.flat_map(|link| &link.candidates).any(|candidate| self.ids.contains(&candidate.id));
        let is_touched = is_stale || self.names.may_touch(&self.kb, &document.document.text);
        self.n_kept.fetch_add(u64::from(!is_touched), Ordering::Relaxed);
        is_touched
    }

    /// Reports how many of `n_documents` kept their links.
    pub fn report(&self, n_documents: u64) {
        let n_kept = self.n_kept.load(Ordering::Relaxed).min(n_documents);
        let linked = counted(n_documents - n_kept, "document");
        progress::say(&format!("linked {linked} again; {} kept", counted(n_kept, "document")));
    }
}

/// Opens the older knowledge base at `old`.
///
/// # Errors
/// If the options do not allow documents to keep their links, or the input is a run folder that was linked with another knowledge base, another
/// model or other options.
pub fn open_old(
    arguments: &LinkArguments,
    old: &Path,
    to: ResultFormat,
    model: &str,
) -> anyhow::Result<Arc<KnowledgeBase>> {
    check(arguments, to)?;
    let old = terminology::open(Some(old))?;
    check_made(arguments, &old, model)?;
    Ok(old)
}

/// Fails if a run folder in the input was not linked as `--changed-only` assumes.
fn check_made(arguments: &LinkArguments, old: &KnowledgeBase, model: &str) -> anyhow::Result<()> {
    let now = RunSettings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kb: settings::kb_label(old),
        model: model.to_owned(),
        options: settings::options(arguments)?,
        ..RunSettings::default()
    };
    let folder =
        |file: &'_ PathBuf| if file.is_dir() { Some(file.clone()) } else { file.parent().map(Path::to_path_buf) };
    for run in arguments.files.iter().filter_map(folder).filter(|folder| folder.join(RUN_FILE).is_file()) {
        let made = RunFolder::settings_of(&run)?;
        if let Some(difference) = difference(&made, &now) {
            let hint = "pass the knowledge base that it was linked with, and the same model and options; or link everything again";
            let message = format!("{} was linked with another {difference}", run.display());
            return Err(canonym_core::Error::mismatch(message).with_hint(hint).into());
        }
    }
    Ok(())
}

/// The first setting in which two runs differ, except for those that change no link, with both values.
fn difference(made: &RunSettings, now: &RunSettings) -> Option<String> {
    // The index belongs to the knowledge base, so another release has another one.
    let without_index = |model: &str| model.split(" + index").next().unwrap_or_default().to_owned();
    let parts = [
        ("knowledge base", made.kb.clone(), now.kb.clone()),
        ("model", without_index(&made.model), without_index(&now.model)),
        ("version of canonym", made.version.clone(), now.version.clone()),
    ];
    let options = made.options.keys().chain(now.options.keys()).filter(|name| !NEUTRAL.contains(&name.as_str()));
    let value = |run: &RunSettings, name: &String| run.options.get(name).map_or("not given", String::as_str).to_owned();
    let options = options.map(|name| (name.as_str(), value(made, name), value(now, name)));
    let mut all = parts.into_iter().chain(options);
    all.find(|(_, was, is)| was != is).map(|(what, was, is)| format!("{what}: {was}, not {is}"))
}

/// Refuses options under which documents cannot keep their links.
fn check(arguments: &LinkArguments, to: ResultFormat) -> anyhow::Result<()> {
    let wrong = |message: &str, hint: &str| Err(errors::usage(message, hint));
    if arguments.mentions == Mentions::Gold {
        return wrong("`--changed-only` needs detected mentions", "omit `--mentions gold`");
    }
    if arguments.filter.is_given() {
        return wrong("`--changed-only` does not support concept filters", "omit the filters, or link all documents");
    }
    if to != ResultFormat::Corpus(CorpusFormat::Jsonl) {
        return wrong("`--changed-only` writes jsonl", "use `--to jsonl`, and `canonym convert` for other formats");
    }
    Ok(())
}
