//! Training: the data, the comparison with the model in use, and whether the new model takes its place.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::learned::left_out;
use rusqlite::Connection;

use super::{TRAINING_FRACTION, predict_all, report_progress};
use crate::engine::{DevFigures, Engine, Progress, Split, Trained, Training, TrainingDocument};
use crate::error::{ApiError, ApiResult};
use crate::evaluate::{evaluate, gain, unseen};
use crate::marks::{MarkState, Source};
use crate::state::{App, model_folder};
use crate::store::checksums::checksum;
use crate::store::jobs::End;
use crate::store::models::{self, NewModel};
use crate::store::{corpus, documents, projects};
use crate::wire::Job;

/// With fewer held-out documents no model takes the place of another by itself.
const MIN_TEST_DOCUMENTS: usize = 3;

/// The training data: the documents of a project with gold and reviewed annotations.
pub fn training_documents(app: &App, connection: &Connection, project: i64) -> ApiResult<Vec<TrainingDocument>> {
    let mut documents = Vec::new();
    // A document imported with gold annotations counts as complete; one with predictions or single decisions does not.
    let has_gold = Cell::new(false);
    let is_wanted = |mark: &MarkState| {
        let came_as = mark.original.as_ref().map(|original| original.source);
        has_gold.set(has_gold.get() || came_as == Some(Source::Gold));
        mark.is_human()
    };
    corpus::for_each_document(app.engine.kb(), connection, project, is_wanted, |stored, document, _| {
        let is_gold = has_gold.replace(false);
        let is_finished = stored.is_finished || is_gold;
        documents.push(TrainingDocument { number: stored.id, document, is_finished, split: stored.split });
        Ok(())
    })?;
    Ok(documents)
}

/// Trains a model on gold and reviewed annotations. If it scores better than the current model, beyond chance, the project switches to it and is
/// predicted again; otherwise it is offered.
pub(super) fn train(app: &App, job: &Job, settings: serde_json::Value) -> ApiResult<End> {
    let Some(trainer) = &app.trainer else {
        return Ok(End::Failed("training is disabled on this server".to_owned()));
    };
    let (documents, parent, parent_folder) = app.store.read(|connection| {
        let documents = training_documents(app, connection, job.project_id)?;
        let parent = projects::model(connection, job.project_id)?.unwrap_or(app.base_model);
        Ok((documents, parent, models::get(connection, parent)?.folder))
    })?;
    let folder = model_folder(&app.config.data, job.id);
    if let Some(above) = folder.parent() {
        std::fs::create_dir_all(above).map_err(|error| ApiError::internal(&error))?;
    }
    let is_held_out = trainer.held_out(&documents, &settings)?;
    let of =
        |wanted: bool| documents.iter().zip(&is_held_out).filter(move |(_, is)| **is == wanted).map(|(one, _)| one);
    let held_out: Vec<TrainingDocument> = of(true).cloned().collect();
    // What a training may have used is never held out later.
    let used = of(false).filter(|one| !one.document.annotations.is_empty() || one.is_finished);
    let used: Vec<i64> = used.map(|one| one.number).collect();
    let training = Training {
        documents,
        parent: parent_folder.map(|folder| app.model_path(&folder)),
        output: folder.clone(),
        settings,
        seed: job.id as u64,
    };
    let mut on_progress = |progress: Progress| {
        let progress = Progress { done: TRAINING_FRACTION * progress.done.min(1.0), ..progress };
        if let Err(error) = report_progress(app, job, &progress) {
            tracing::warn!("cannot store the progress of job {}: {error}", job.id);
        }
        match app.jobs.interruption(job.id) {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    };
    let trained = trainer.train(&training, &mut on_progress);
    if let Some(end) = app.jobs.interruption(job.id) {
        return Ok(end);
    }
    let mut trained = trained?;
    let engine = trainer.open(&folder)?;
    let Some(others) = compare(app, job, engine.as_ref(), parent, &held_out, &mut trained)? else {
        std::fs::remove_dir_all(&folder).map_err(|error| ApiError::internal(&error))?;
        return Ok(app.jobs.interruption(job.id).unwrap_or(End::Cancelled));
    };
    let now = app.now();
    // Trainings of the same documents would share a name.
    trained.name = format!("{} (training {})", trained.name, job.id);
    let offered = reason_to_offer(&trained, others.get(&parent), !held_out.is_empty());
    let (model, parent_name) = app.store.write(|transaction| {
        let new = NewModel {
            project: job.project_id,
            parent,
            folder: &folder.to_string_lossy(),
            trained: &trained,
            others: &others,
        };
        let model = models::add(transaction, &new, now)?;
        if offered.is_none() {
            projects::use_model(transaction, job.project_id, model)?;
        }
        let test: Vec<i64> = held_out.iter().map(|one| one.number).collect();
        documents::set_split(transaction, &test, Split::Test)?;
        documents::set_split(transaction, &used, Split::Train)?;
        Ok((model, models::get(transaction, parent)?.model.name))
    })?;
    let changed = trained.dev.as_ref().and_then(|dev| dev.changed_since.as_deref());
    let changed = changed.map(|before| format!("; {}", changed_text(before))).unwrap_or_default();
    if let Some(offered) = offered {
        let figures = offered_figures(&trained, others.get(&parent), &parent_name);
        let message = format!("trained “{}”; offered, not used: {offered}{figures}{changed}", trained.name);
        return Ok(End::Succeeded(message, Some(model)));
    }
    let predicted = match predict_all(app, job, TRAINING_FRACTION)? {
        End::Succeeded(message, _) => message,
        // The model is stored, whatever became of its predictions.
        End::Cancelled | End::Failed(_) => "predictions incomplete".to_owned(),
    };
    Ok(End::Succeeded(format!("trained “{}”; {predicted}{changed}", trained.name), Some(model)))
}

/// Evaluates the new model, the current one and the base model on the held-out documents. The scores of the new one go into `trained`, those of the
/// others are returned by number. `None` if the job is cancelled.
fn compare(
    app: &App,
    job: &Job,
    engine: &dyn Engine,
    parent: i64,
    held_out: &[TrainingDocument],
    trained: &mut Trained,
) -> ApiResult<Option<BTreeMap<i64, DevFigures>>> {
    let mut others = BTreeMap::new();
    if held_out.is_empty() {
        return Ok(Some(others));
    }
    let should_continue = || app.jobs.interruption(job.id).is_none();
    let mut engines = Vec::new();
    for model in BTreeSet::from([app.base_model, parent]) {
        engines.push((model, app.engine_of_model(model)?));
    }
    let all = engines.iter().map(|(_, engine)| engine.as_ref()).chain([engine]);
    let texts: Vec<AnnotatedDocument> = held_out.iter().map(|one| one.document.clone()).collect();
    let is_unseen = unseen(all, &texts)?;
    let test_set = fingerprint(held_out.iter().zip(&is_unseen).filter(|(_, is)| **is).map(|(one, _)| one));
    let changed_since = app.store.read(|connection| changed_since(connection, job.project_id, &test_set))?;
    let test_set = Some(test_set);
    let unseen: Vec<AnnotatedDocument> =
        texts.into_iter().zip(&is_unseen).filter(|(_, is)| **is).map(|(text, _)| text).collect();
    let n_seen = Some(held_out.len() - unseen.len()).filter(|n| *n > 0);
    if let Some(left_out) = left_out(held_out.len() - unseen.len(), held_out.len()) {
        trained.card.push_str(&format!(" {left_out}."));
    }
    if unseen.is_empty() {
        trained.dev = None;
        return Ok(Some(others));
    }
    let message = format!("comparing models on {}", held_out_count(unseen.len()));
    report_progress(app, job, &Progress { done: TRAINING_FRACTION, message, point: None })?;
    let mut before = None;
    for (model, other) in engines {
        let Some(evaluation) = evaluate(other.as_ref(), &unseen, should_continue)? else { return Ok(None) };
        others.insert(model, DevFigures { n_seen, test_set: test_set.clone(), ..evaluation.figures.clone() });
        before = before.or((model == parent).then_some(evaluation));
    }
    let Some(evaluation) = evaluate(engine, &unseen, should_continue)? else { return Ok(None) };
    let gained = before.map(|before| gain(&evaluation, &before));
    let figures = DevFigures {
        gain: gained.map(|(gain, _)| gain),
        gain_ci: gained.and_then(|(_, interval)| interval),
        ..evaluation.figures
    };
    let f1 = |figures: Option<&DevFigures>| figures.and_then(|figures| figures.strict_f1);
    if let (Some(before), Some(after)) = (f1(others.get(&parent)), f1(Some(&figures))) {
        let n = held_out_count(unseen.len());
        let (before, after) = (100.0 * before, 100.0 * after);
        trained.card.push_str(&format!(" Linking F1 on {n}: {before:.1} before, {after:.1} after."));
    }
    if let Some(before) = &changed_since {
        trained.card.push_str(&format!(" {}.", capitalised(&changed_text(before))));
    }
    trained.dev = Some(DevFigures { n_seen, test_set, changed_since, ..figures });
    Ok(Some(others))
}

/// The fingerprint of a test set: its documents with their texts and annotations.
fn fingerprint<'a>(documents: impl Iterator<Item = &'a TrainingDocument>) -> String {
    let line = |one: &TrainingDocument| {
        let AnnotatedDocument { document, annotations, .. } = &one.document;
        let mut annotations: Vec<String> =
            annotations.iter().map(|one| format!("{:?} {}", one.spans, one.ids.join("|"))).collect();
        annotations.sort_unstable();
        format!("{} {:016x} {}", one.number, checksum(&document.text), annotations.join("; "))
    };
    let mut lines: Vec<String> = documents.map(line).collect();
    lines.sort_unstable();
    format!("{:016x}", checksum(&lines.join("\n")))
}

/// The last model of a project that was scored, if that was on another test set than this.
fn changed_since(connection: &Connection, project: i64, test_set: &str) -> ApiResult<Option<String>> {
    let all = models::of_project(connection, project)?;
    let last = all.iter().rev().find_map(|stored| Some((stored, stored.model.dev.as_ref()?)));
    Ok(last.filter(|(_, dev)| dev.test_set.as_deref() != Some(test_set)).map(|(stored, _)| stored.model.name.clone()))
}

/// What a change of the test set means, in words.
fn changed_text(before: &str) -> String {
    format!("the test set changed since “{before}”, so earlier scores are not comparable")
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().to_string() + letters.as_str())
}

/// Why a new model is only offered: nothing shows that it is better than the one in use, beyond chance.
fn reason_to_offer(trained: &Trained, in_use: Option<&DevFigures>, has_held_out: bool) -> Option<&'static str> {
    let Some(dev) = trained.dev.as_ref().filter(|_| has_held_out) else {
        return Some(match has_held_out {
            true => "it has no scores, because every held-out document was seen in training",
            false => "it has no scores, because no documents were held out",
        });
    };
    let (Some(new), Some(old)) = (dev.strict_f1, in_use.and_then(|old| old.strict_f1)) else {
        return Some("the models have no scores on the same documents");
    };
    let is_beyond_chance = dev.gain_ci.is_some_and(|interval| interval.low > 0.0);
    match dev.n_documents.unwrap_or_default() {
        _ if new <= old => Some("it is not better"),
        n if n < MIN_TEST_DOCUMENTS => Some("there are too few held-out documents to tell whether it is better"),
        _ if !is_beyond_chance => Some("the gain may be chance"),
        _ => None,
    }
}

/// The scores of an offered model and of the one in use, with intervals; empty if there are none.
fn offered_figures(trained: &Trained, in_use: Option<&DevFigures>, in_use_name: &str) -> String {
    let (Some(new), Some(old)) = (&trained.dev, in_use) else { return String::new() };
    let told = |figures: &DevFigures| {
        let range = figures.strict_f1_ci.map(|range| format!(" [{:.2}, {:.2}]", range.low, range.high));
        format!("{:.2}{}", figures.strict_f1.unwrap_or_default(), range.unwrap_or_default())
    };
    let n = held_out_count(new.n_documents.unwrap_or_default());
    format!(" (linking F1 {}, “{in_use_name}” {}, on {n})", told(new), told(old))
}

fn held_out_count(n: usize) -> String {
    if n == 1 { "1 held-out document".to_owned() } else { format!("{n} held-out documents") }
}
