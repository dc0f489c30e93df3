//! What an experiment learns from: the record that its model carries, and the guard of the documents that it is judged on.
//!
//! The record follows from the experiment and its data alone, so it can be made for a model that is there already, too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::bundle::{self, FILE};
use canonym_core::corpus::{AnnotatedDocument, CorpusFormat, OnMismatch, Reader, format};
use canonym_core::error::Context;
use canonym_core::eval::learned::{Learned, Role, Seen, Source, corpus_of, fingerprint, fingerprint_of_queries};
use canonym_core::input::Input;

use super::checkpoints::data_file;
use super::run_folder::write_bytes;
use super::{TrainOptions, adapt, cross_encoder, dual_encoder as dual, pipeline, recognition, rescnn};
use crate::recipes::queries::MentionQuery;
use crate::status;

/// Fingerprints of annotated documents.
pub fn of_documents(documents: &[AnnotatedDocument]) -> Vec<Option<u64>> {
    documents.iter().map(|document| fingerprint(&document.document.text)).collect()
}

/// The documents of a file under the name that the experiment has for it.
pub fn source(part: &str, role: Role, file: &Path, documents: impl IntoIterator<Item = Option<u64>>) -> Source {
    Source::new(part, role, shown(file), documents.into_iter().flatten())
}

/// A path without the folders of this machine: as the experiment names it, or its last folder and its name.
fn shown(file: &Path) -> String {
    match file.is_absolute() {
        true => {
            [corpus_of(file).map(PathBuf::from), file.file_name().map(PathBuf::from)].into_iter().flatten().collect()
        }
        false => file.to_path_buf(),
    }
    .display()
    .to_string()
}

/// The documents of a corpus, annotations that do not fit left out.
pub fn read(file: &Path, root: &Path) -> canonym_core::Result<Vec<AnnotatedDocument>> {
    Reader::open(&data_file(file, root), None)?.with_on_mismatch(OnMismatch::Drop).with_repairs(true).collect()
}

/// The documents of a corpus.
pub fn of_corpus(part: &str, role: Role, file: &Path, root: &Path) -> canonym_core::Result<Source> {
    Ok(source(part, role, file, of_documents(&read(file, root)?)))
}

/// The documents of queries, which the file `file` holds: by their texts where it has them, else by their ids and names.
pub fn of_queries(
    part: &str,
    role: Role,
    (file, root): (&Path, &Path),
    queries: &[MentionQuery],
) -> canonym_core::Result<Source> {
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for query in queries {
        names.entry(&query.document).or_default().extend(query.parts.iter().map(|part| part.query.as_str()));
    }
    let path = root.join(file);
    let is_table = path.extension().is_some_and(|end| end == "tsv");
    if !is_table && format::detect(&path, Input::open(&path)?.head())? == CorpusFormat::Pubtator {
        let mut documents = read(file, root)?;
        documents.retain(|document| names.contains_key(document.document.id.as_str()));
        return Ok(source(part, role, file, of_documents(&documents)));
    }
    let prints = names.into_iter().map(|(id, names)| fingerprint_of_queries(id, names.into_iter()));
    Ok(source(part, role, file, prints))
}

/// The documents that no part was trained on.
pub fn unseen(learned: &Learned, documents: Vec<AnnotatedDocument>) -> Vec<AnnotatedDocument> {
    let seen = learned.only(Role::Trained).has_seen(&of_documents(&documents));
    documents.into_iter().zip(seen).filter(|(_, seen)| !seen).map(|(document, _)| document).collect()
}

/// Refuses to judge on documents that weights were trained on, unless they are allowed. What was tuned on them is told.
pub fn check_judged(
    learned: &Learned,
    documents: &[AnnotatedDocument],
    (what, allow_seen): (&str, bool),
) -> canonym_core::Result<Option<Seen>> {
    check_prints(learned, &of_documents(documents), (what, allow_seen))
}

/// The same by fingerprints.
pub fn check_prints(
    learned: &Learned,
    prints: &[Option<u64>],
    (what, allow_seen): (&str, bool),
) -> canonym_core::Result<Option<Seen>> {
    refuse(&learned.only(Role::Trained).look_up(prints, None), (what, allow_seen))?;
    Ok(tell(learned.look_up(prints, None), what))
}

/// Refuses to judge a model on documents that it learned from in whatever role, unless they are allowed: for runs that choose nothing on them.
pub fn check_known(
    learned: &Learned,
    documents: &[AnnotatedDocument],
    (what, allow_seen): (&str, bool),
) -> canonym_core::Result<Option<Seen>> {
    let seen = learned.look_up(&of_documents(documents), None);
    refuse(&seen, (what, allow_seen))?;
    Ok(tell(seen, what))
}

fn refuse(seen: &Seen, (what, allow_seen): (&str, bool)) -> canonym_core::Result<()> {
    if seen.n_seen == 0 || allow_seen {
        return Ok(());
    }
    let message = format!("{what}: {}: {}", seen.sentence(), seen.details());
    let hint = "judge on other documents, or with a part that has not learned from them; `--allow-seen` goes on and says it in the report";
    Err(canonym_core::Error::invalid(message).with_hint(hint))
}

/// Warns of documents that were seen; `None` where none was.
fn tell(seen: Seen, what: &str) -> Option<Seen> {
    if seen.n_seen > 0 {
        status::say(&format!("warning: {what}: {}: {}", seen.sentence(), seen.details()));
    }
    (seen.n_seen > 0).then_some(seen)
}

/// Writes what the experiment learns from into a model that it made before.
pub fn record(arguments: &TrainOptions, table: toml::Table, model: &Path) -> canonym_core::Result<()> {
    let system = table.get("system").and_then(toml::Value::as_str).unwrap_or_default().to_owned();
    let root = arguments.root();
    let learned = match system.as_str() {
        "lexical" => super::learned_of_lexical(&super::settings(&arguments.config, table)?, root)?,
        "recognition" => recognition::learned(&super::settings(&arguments.config, table)?, root)?,
        "rescnn" => rescnn::learned(&super::settings(&arguments.config, table)?, root)?,
        "pipeline" => pipeline::learned(arguments, &super::settings(&arguments.config, table)?)?,
        dual::SYSTEM => dual::learned(&super::settings(&arguments.config, table)?, root)?,
        adapt::SYSTEM => adapt::learned(&super::settings(&arguments.config, table)?, root)?,
        bundle::cross_encoder::SYSTEM => cross_encoder::learned(&super::settings(&arguments.config, table)?, root)?,
        other => {
            let error = canonym_core::Error::invalid(format!("models of the system `{other}` carry no record"));
            return Err(error.with_hint("give the experiment that made the model"));
        }
    };
    let is_bundle = model.is_dir() || model.extension().is_some_and(|end| end == "safetensors");
    let file = if model.is_dir() { model.join(FILE) } else { model.to_path_buf() };
    let bytes = std::fs::read(&file).map_err(|error| canonym_core::Error::io("read", &file, error))?;
    let content = match is_bundle {
        true => bundle::with_record(&bytes, &file, &learned)?,
        false => {
            let json = String::from_utf8(bytes).with_context(|| format!("{} is no model", file.display()))?;
            learned.into_json(&json).with_context(|| format!("{} is no model", file.display()))?.into_bytes()
        }
    };
    let folder = file.parent().unwrap_or(Path::new(""));
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    write_bytes(folder, &name, &content)?;
    status::say(&format!("{}: {} documents recorded", file.display(), learned.n_documents()));
    Ok(())
}
