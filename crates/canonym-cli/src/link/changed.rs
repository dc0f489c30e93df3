//! `--changed-only`: keeps the links of documents that a change of the terminology cannot touch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use canonym_core::batch::{RunFolder, RunSettings};
use canonym_core::corpus::CorpusFormat;
use canonym_core::corpus::files::RUN_FILE;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::changed::Changed;
use canonym_core::link::recognise::senses::SenseInventory;
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

/// Compares `kb` with the older knowledge base `old`, and tells what that means. `model` is the fingerprint of the models.
pub fn compare(
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
    let changed = Changed::between(old, kb, &senses.unwrap_or_else(SenseInventory::embedded), arguments.raw_ids);
    if let Some(reason) = changed.names().everything() {
        progress::say(&format!("all documents will be linked again: {reason}"));
    }
    progress::say(&counted(changed.names().n_changed() as u64, "new, changed or removed concept"));
    changed
}

/// Reports how many of `n_documents` kept their links.
pub fn report(changed: &Changed, n_documents: u64) {
    let n_kept = changed.n_kept().min(n_documents);
    let linked = counted(n_documents - n_kept, "document");
    progress::say(&format!("linked {linked} again; {} kept", counted(n_kept, "document")));
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
        if let Some(difference) = made.difference(&now, &NEUTRAL) {
            let hint = "pass the knowledge base that it was linked with, and the same model and options; or link everything again";
            let message = format!("{} was linked with another {difference}", run.display());
            return Err(canonym_core::Error::mismatch(message).with_hint(hint).into());
        }
    }
    Ok(())
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
