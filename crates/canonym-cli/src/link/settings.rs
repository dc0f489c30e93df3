//! The options of a run, as stored in its folder and compared when it is resumed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use canonym_core::batch::{RunFolder, RunSettings, checksum};
use canonym_core::kb::KnowledgeBase;
use canonym_neural::system::Model;
use clap::{Parser, ValueEnum};

use super::LinkArguments;
use crate::system::{Mentions, Nil};
use crate::{Arguments, Command, errors};

/// Default of `--top-k`.
const TOP_K: u32 = 5;

/// The settings of a run with `arguments`.
pub fn of(arguments: &LinkArguments, kb: &KnowledgeBase, model: &str) -> anyhow::Result<RunSettings> {
    Ok(RunSettings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        kb: kb_label(kb),
        model: model.to_owned(),
        options: options(arguments)?,
        arguments: std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect(),
        folder: std::env::current_dir().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default(),
    })
}

/// Name and fingerprint of a knowledge base.
pub fn kb_label(kb: &KnowledgeBase) -> String {
    format!("{} {:032x}", kb.meta().name, kb.container().fingerprint())
}

/// The options that differ from their defaults, except for knowledge base and models, which have fingerprints, and the
/// number of threads, which changes no result.
pub fn options(arguments: &LinkArguments) -> anyhow::Result<BTreeMap<String, String>> {
    let LinkArguments { reading, columns, records, .. } = arguments;
    let set = |is_set: bool| is_set.then(|| "set".to_owned());
    let joined = |list: &[String], sign: &str| (!list.is_empty()).then(|| list.join(sign));
    let sum = |paths: Vec<&PathBuf>| {
        let paths: Vec<&Path> = paths.into_iter().map(PathBuf::as_path).collect();
        (!paths.is_empty()).then(|| checksum(&paths).map(|sum| sum.xxh3)).transpose()
    };
    let files: Vec<String> = arguments.files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    let contexts: Vec<String> = arguments.drop_context.iter().map(named).collect();
    let rows = [
        ("files", joined(&files, " ")),
        ("--mentions", (arguments.mentions != Mentions::Detect).then(|| named(&arguments.mentions))),
        ("--format", Some(&arguments.format).filter(|format| *format != "auto").cloned()),
        ("--to", arguments.to.clone().filter(|to| to != "jsonl")),
        ("--top-k", (arguments.top_k != TOP_K).then(|| arguments.top_k.to_string())),
        ("--min-score", arguments.min_score.map(|score| score.to_string())),
        ("--nil", (arguments.nil != Nil::Keep).then(|| named(&arguments.nil))),
        ("--abbreviations", sum(arguments.abbreviations.iter().collect())?),
        ("--nested", arguments.nested.as_ref().map(named)),
        ("--compress", arguments.compress.as_ref().map(named)),
        ("--drop-context", joined(&contexts, ",")),
        ("--context", set(arguments.context)),
        ("--explain", set(arguments.explain)),
        ("--raw-ids", set(arguments.raw_ids)),
        ("--fix-offsets", set(reading.fix_offsets)),
        ("--skip-bad-offsets", set(reading.skip_bad_offsets)),
        ("--skip-bad-documents", set(arguments.skip_bad_documents.is_some())),
        ("--text-column", columns.text_column.clone()),
        ("--id-column", columns.id_column.clone()),
        ("--to-system", records.codes.to_system.clone()),
        ("--nlp-date", records.nlp_date.clone()),
        ("--fhir-types", joined(&records.fhir_types, ",")),
        ("--mappings and vocabulary tables", sum(records.files().collect())?),
        ("--changed-only", sum(arguments.changed_only.iter().collect())?),
        ("--tags", (reading.tags != Default::default()).then(|| format!("{:?}", reading.tags))),
    ];
    let filters = arguments.filter.options().into_iter().map(|(name, value)| (name, Some(value)));
    let given = rows.into_iter().chain(filters);
    Ok(given.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
}

/// The value of an option as on the command line.
pub fn named(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The arguments of the run in `folder`; of `arguments`, only the number of threads is used.
pub fn stored(folder: &Path, arguments: &LinkArguments) -> anyhow::Result<LinkArguments> {
    let settings = RunFolder::settings_of(folder)?;
    let has_own = arguments.model != "default"
        || arguments.kb.is_some()
        || arguments.rerank.is_some()
        || arguments.index.is_some();
    if has_own || !options(arguments)?.is_empty() {
        let message = format!("`--resume {}` without files takes all options from the run", folder.display());
        return Err(errors::usage(message, "omit the other options, or repeat the whole command of the run"));
    }
    let parsed =
        Arguments::try_parse_from(std::iter::once("canonym".to_owned()).chain(settings.arguments.iter().cloned()));
    match parsed.map(|arguments| arguments.command) {
        Ok(Command::Link(stored)) => {
            check_folder(folder, &settings.folder, &stored)?;
            let threads = arguments.threads.or(stored.threads);
            Ok(LinkArguments { resume: Some(folder.to_path_buf()), output: None, threads, ..*stored })
        }
        _ => {
            let error = canonym_core::Error::artifact(folder, "the stored command line of the run cannot be read");
            Err(error.with_hint("repeat the whole command of the run, with `--resume` in place of `--output`").into())
        }
    }
}

/// Fails if the run in `run` was started in another folder, `started_in`, and the paths of its command line depend on that.
fn check_folder(run: &Path, started_in: &str, stored: &LinkArguments) -> anyhow::Result<()> {
    let real = |folder: &Path| std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    let is_here = || std::env::current_dir().is_ok_and(|here| real(&here) == real(Path::new(started_in)));
    let Some(relative) = relative_path(stored) else { return Ok(()) };
    if started_in.is_empty() || is_here() {
        return Ok(());
    }
    let (run, relative) = (run.display(), relative.display());
    let message =
        format!("the run in {run} was started in {started_in}, and its path `{relative}` is relative to that folder");
    Err(errors::usage(message, &format!("run the command in {started_in}, or repeat the whole command of the run")))
}

/// A path of the command line that is relative to the working folder.
fn relative_path(arguments: &LinkArguments) -> Option<PathBuf> {
    let model = match Model::named(&arguments.model) {
        Model::Path(path) => Some(path),
        Model::Default | Model::Lexical | Model::Bm25 => None,
    };
    let options =
        [&arguments.kb, &arguments.index, &arguments.rerank, &arguments.changed_only, &arguments.skip_bad_documents];
    let mut paths = arguments
        .files
        .iter()
        .chain(options.into_iter().flatten())
        .chain(&arguments.abbreviations)
        .chain(arguments.records.files())
        .chain(&model);
    paths.find(|path| path.is_relative()).cloned()
}
