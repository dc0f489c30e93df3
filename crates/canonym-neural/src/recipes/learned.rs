//! Training records of models, and checks that evaluation documents were not seen in training.
//!
//! A record depends only on the experiment and its data, so it can also be added to an existing model.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::bundle::{self, FILE};
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, OnMismatch, Reader, format};
use canonym_core::error::Context;
use canonym_core::eval::learned::{Fingerprints, Learned, Role, Seen, TrainingSource, corpus_of};
use canonym_core::input::Input;

use super::TrainOptions;
use super::checkpoints::data_file;
use super::run_folder::write_bytes;
use crate::recipes::queries::MentionQuery;
use crate::status;

/// Fingerprints of annotated documents.
pub fn of_documents(documents: &[AnnotatedDocument]) -> Vec<Fingerprints> {
    documents.iter().map(|document| Fingerprints::of(&document.document)).collect()
}

/// A record entry for the documents of a file, named as in the experiment.
pub fn source(
    part: &str,
    role: Role,
    file: &Path,
    documents: impl IntoIterator<Item = Fingerprints>,
) -> TrainingSource {
    TrainingSource::new(part, role, display_path(file), documents)
}

/// A relative path as it is; of an absolute path, the last folder and the file name.
fn display_path(file: &Path) -> String {
    match file.is_absolute() {
        true => {
            [corpus_of(file).map(PathBuf::from), file.file_name().map(PathBuf::from)].into_iter().flatten().collect()
        }
        false => file.to_path_buf(),
    }
    .display()
    .to_string()
}

/// Reads the documents of a corpus. Annotations with wrong offsets are repaired or dropped.
pub fn read(file: &Path, root: &Path) -> canonym_core::Result<Vec<AnnotatedDocument>> {
    Reader::open(&data_file(file, root), None)?.with_on_mismatch(OnMismatch::Drop).with_repairs(true).collect()
}

/// Fingerprints of the documents of a corpus that are among `documents`.
pub fn of_file(file: &Path, root: &Path, documents: &[AnnotatedDocument]) -> canonym_core::Result<Vec<Fingerprints>> {
    let known: HashSet<u64> = of_documents(documents).into_iter().filter_map(|prints| prints.whole).collect();
    let mut all = of_documents(&read(file, root)?);
    all.retain(|prints| prints.whole.is_some_and(|print| known.contains(&print)));
    Ok(all)
}

/// A record entry for the documents of a corpus.
pub fn of_corpus(part: &str, role: Role, file: &Path, root: &Path) -> canonym_core::Result<TrainingSource> {
    Ok(source(part, role, file, of_documents(&read(file, root)?)))
}

/// Fingerprints of the documents of the queries of `file`: of their texts if the file has them, else of ids and names.
pub fn of_queries(file: &Path, root: &Path, queries: &[MentionQuery]) -> canonym_core::Result<Vec<Fingerprints>> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for query in queries {
        names.entry(&query.document).or_default().extend(query.parts.iter().map(|part| part.query.as_str()));
    }
    let path = root.join(file);
    let is_table = path.extension().is_some_and(|end| end == "tsv");
    if !is_table && format::detect(&path, Input::open(&path)?.head())? == CorpusFormat::Pubtator {
        let mut documents = read(file, root)?;
        documents.retain(|document| names.contains_key(document.document.id.as_str()));
        return Ok(of_documents(&documents));
    }
    Ok(names.into_iter().map(|(id, names)| Fingerprints::of_queries(id, names.into_iter())).collect())
}

/// Keeps the documents that no part was trained on.
pub fn unseen(learned: &Learned, documents: Vec<AnnotatedDocument>) -> Vec<AnnotatedDocument> {
    let seen = learned.only(Role::Trained).has_seen(&of_documents(&documents));
    documents.into_iter().zip(seen).filter(|(_, seen)| !seen).map(|(document, _)| document).collect()
}

/// Fails if any of the documents were used for training, unless `allow_seen`. Warns of documents used for training or tuning, and returns
/// them.
pub fn check_unseen(
    learned: &Learned,
    documents: &[AnnotatedDocument],
    (what, allow_seen): (&str, bool),
) -> canonym_core::Result<Option<Seen>> {
    check_prints(learned, &of_documents(documents), (what, allow_seen))
}

/// As [`check_unseen`], for fingerprints.
pub fn check_prints(
    learned: &Learned,
    prints: &[Fingerprints],
    (what, allow_seen): (&str, bool),
) -> canonym_core::Result<Option<Seen>> {
    reject(&learned.only(Role::Trained).look_up(prints, None), what, allow_seen)?;
    Ok(warn(learned.look_up(prints, None), what))
}

/// As [`check_unseen`], but also fails for documents used for tuning: for runs that tune nothing on them.
pub fn check_known(
    learned: &Learned,
    documents: &[AnnotatedDocument],
    (what, allow_seen): (&str, bool),
) -> canonym_core::Result<Option<Seen>> {
    let seen = learned.look_up(&of_documents(documents), None);
    reject(&seen, what, allow_seen)?;
    Ok(warn(seen, what))
}

fn reject(seen: &Seen, what: &str, allow_seen: bool) -> canonym_core::Result<()> {
    if seen.n_seen == 0 || allow_seen {
        return Ok(());
    }
    let message = format!("{what}: {}: {}", seen.sentence(), seen.details());
    let hint = "evaluate on other documents, or with a part that was not trained on these; `--allow-seen` continues and notes it in the report";
    Err(canonym_core::Error::seen(message).with_hint(hint))
}

/// Warns of seen documents; `None` if there are none.
fn warn(seen: Seen, what: &str) -> Option<Seen> {
    if seen.n_seen > 0 {
        status::say(&format!("warning: {what}: {}: {}", seen.sentence(), seen.details()));
    }
    (seen.n_seen > 0).then_some(seen)
}

/// Adds the training record of an experiment to a model that it produced before.
pub fn record(arguments: &TrainOptions, table: toml::Table, model: &Path) -> canonym_core::Result<()> {
    let recipe = super::recipe(&table, &arguments.config)?;
    let Some(learned) = recipe.learned else {
        let message = format!("models of the system `{}` have no training record", recipe.system);
        return Err(canonym_core::Error::unsupported(message).with_hint("pass the experiment that trained the model"));
    };
    let learned = learned(arguments, table)?;
    let is_bundle = model.is_dir() || model.extension().is_some_and(|end| end == "safetensors");
    let file = if model.is_dir() { model.join(FILE) } else { model.to_path_buf() };
    let bytes = std::fs::read(&file).map_err(|error| canonym_core::Error::io("read", &file, error))?;
    let content = match is_bundle {
        true => bundle::with_record(&bytes, &file, &learned)?,
        false => {
            let json = String::from_utf8(bytes).with_context(|| format!("{} is not a model file", file.display()))?;
            learned.into_json(&json).with_context(|| format!("{} is not a model file", file.display()))?.into_bytes()
        }
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    write_bytes(folder, &name, &content)?;
    status::say(&format!("{}: {} documents recorded", file.display(), learned.n_documents()));
    Ok(())
}
