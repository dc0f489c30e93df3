//! `canonym link` into a run folder: starts or resumes a run.

use std::collections::BTreeMap;
use std::path::Path;

use canonym_core::batch::{self, Batches, Outputs, RunFolder, RunOutputs, SkipList, State};
use canonym_core::corpus::CorpusFormat;
use canonym_core::kb::KnowledgeBase;
use canonym_core::records::format::ResultFormat;
use canonym_core::records::sink::check_output;
use canonym_neural::status::Meter;
use rayon::prelude::*;

use super::{LinkArguments, Linking, batch_config, link_batches, report, settings};
use crate::output::counted;
use crate::reading::input_format;
use crate::{errors, progress};

/// Links all files that are not finished.
pub fn run<'a>(
    arguments: &'a LinkArguments,
    path: &Path,
    to: ResultFormat,
    kb: &KnowledgeBase,
    model: &str,
    open: impl FnOnce() -> anyhow::Result<Linking<'a>>,
) -> anyhow::Result<()> {
    if arguments.text.is_some() {
        return Err(errors::usage("`--text` cannot be linked into a run folder", "omit the `/` of `--output`"));
    }
    if to == ResultFormat::Corpus(CorpusFormat::Brat) {
        return Err(errors::usage("a run folder cannot hold brat", "use jsonl, and `canonym convert` to write brat"));
    }
    let compressed = arguments.compress.map(|compression| format!(".{}", settings::named(&compression)));
    let extension = format!("{}{}", to.extension(), compressed.unwrap_or_default());
    let (files, n_other) = batch::list(&arguments.files, input_format(&arguments.format)?, &extension)?;
    let inputs: Vec<_> = files.iter().map(|file| file.input.path().to_path_buf()).collect();
    check_output(arguments.skip_bad_documents.as_deref(), &inputs)?;
    let settings = settings::of(arguments, kb, model)?;
    let folder = match &arguments.resume {
        Some(path) => RunFolder::resume(path, &settings)?,
        None => RunFolder::create(path, settings)?,
    };
    let states: Vec<State> = files.par_iter().map(|file| folder.state(file)).collect();
    let n = |state: State| states.iter().filter(|one| **one == state).count() as u64;
    if arguments.resume.is_some() {
        let verb = if files.len() == 1 { "is" } else { "are" };
        let all = counted(files.len() as u64, "file");
        progress::say(&format!("{} of {all} {verb} finished", n(State::Finished)));
    }
    if n(State::Stale) > 0 {
        progress::say(&format!("{} changed since and will be linked again", counted(n(State::Stale), "finished file")));
    }
    let outputs: Vec<String> = files.iter().map(|file| file.output.clone()).collect();
    let n_gone = folder.outputs().filter(|output| !outputs.iter().any(|known| known == output)).count() as u64;
    if n_gone > 0 {
        let n_gone = counted(n_gone, "finished file");
        progress::say(&format!("warning: {n_gone} no longer in the input; outputs are kept"));
    }
    if n_other > 0 {
        progress::say(&format!("skipped {} without text", counted(n_other, "file")));
    }
    let mut skipped = arguments.skip_bad_documents.as_deref().map(SkipList::create).transpose()?;
    let waiting = files.into_iter().zip(states).enumerate().filter(|(_, (_, state))| *state != State::Finished);
    let waiting: BTreeMap<_, _> = waiting.map(|(number, (file, _))| (number, file)).collect();
    let mut batches = Batches::of_files(waiting.clone().into_iter(), batch_config(arguments, to)?);
    let mut run = Outputs::Run(Box::new(RunOutputs::new(path, folder, waiting, to)));
    let mut read = Meter::default();
    let first = read.time(|| batches.next_batch())?;
    let mut linked = None;
    if !first.is_empty() {
        let linking = open()?;
        let counts = link_batches(&linking, (first, &mut batches, read), &mut run, &mut skipped)?;
        linked = Some((linking, counts));
    }
    let n_written = match (&run, &mut skipped) {
        (Outputs::Run(run), Some(list)) => run.collect_skipped(&outputs, list)?,
        _ => 0,
    };
    run.finish()?.iter().for_each(|line| progress::say(line));
    if let Some((linking, counts)) = &linked {
        report(linking, &batches, *counts);
    }
    skipped.map(|list| list.finish(n_written)).transpose()?.flatten().iter().for_each(|line| progress::say(line));
    errors::left_out(batches.n_left_out)
}
