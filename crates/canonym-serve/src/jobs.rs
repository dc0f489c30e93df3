//! Jobs: predictions over all documents of a project, and trainings. They run one at a time, beside the requests.

pub mod spread;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use canonym_core::corpus::{AnnotatedDocument, contexts};
use canonym_core::eval::learned::left_out;
use canonym_core::link::recognise::Nested;
use canonym_core::text::Document;
use rusqlite::Connection;

use crate::engine::{DevFigures, Engine, LinkOptions, Progress, Trained, Training, TrainingDocument, check_kb};
use crate::error::{ApiError, ApiResult};
use crate::evaluate::{evaluate, gain, unseen};
use crate::events::DocumentVersion;
use crate::marks::scope::ScopeFilter;
use crate::marks::{Changes, MarkState, Source, convert, predict};
use crate::state::{App, lock, model_folder};
use crate::store::events::{self, NewEvent};
use crate::store::jobs::{self, End};
use crate::store::models::{self, NewModel};
use crate::store::{corpus, documents, projects};
use crate::wire::Job;

/// Documents per batch; requests are handled in between.
const BATCH: usize = 8;

/// Bytes of text per batch, unless one text is longer.
const BATCH_BYTES: usize = 512 << 10;

/// The fraction of a training job that is training; the rest is evaluation and prediction.
const TRAINING_FRACTION: f64 = 0.8;

/// Starts the thread that runs jobs; it ends with the app.
pub fn start(app: &Arc<App>) {
    spread::start(app);
    let app = Arc::downgrade(app);
    std::thread::spawn(move || {
        while let Some(app) = app.upgrade() {
            if app.jobs.is_stopping() {
                return;
            }
            if !run_next(&app) {
                app.jobs.wait();
            }
        }
    });
}

/// Runs the oldest queued job; false if there is none.
pub fn run_next(app: &App) -> bool {
    let now = app.now();
    if !store_ends(app) {
        return false;
    }
    let next = app.store.write(|transaction| {
        let Some(id) = jobs::next(transaction)? else { return Ok(None) };
        jobs::start(transaction, id, now)?;
        let read = jobs::get(transaction, id, now).and_then(|job| Ok((job, jobs::settings(transaction, id)?)));
        if let Err(error) = &read {
            // Otherwise it would be the next one forever.
            jobs::end(transaction, id, &End::Failed(error.message.clone()), now)?;
        }
        Ok(Some(read))
    });
    let (job, settings) = match next {
        Ok(Some(Ok(next))) => next,
        Ok(Some(Err(_))) => return true,
        Ok(None) => return false,
        Err(error) => {
            tracing::error!("cannot read the jobs: {error}");
            return false;
        }
    };
    app.bus.publish(job.project_id, "job", &job);
    let work = std::panic::AssertUnwindSafe(|| match job.kind.as_str() {
        "train" => train(app, &job, settings),
        _ => predict_all(app, &job, 0.0),
    });
    let end = match std::panic::catch_unwind(work) {
        Ok(Ok(end)) => end,
        Ok(Err(error)) => app.jobs.interruption(job.id).unwrap_or(End::Failed(message_with_hint(&error))),
        Err(_) => End::Failed("the model panicked; see the server log".to_owned()),
    };
    lock(&app.jobs.cancelled).remove(&job.id);
    lock(&app.jobs.unstored_ends).push((job.id, end));
    store_ends(app);
    app.store.truncate_log();
    true
}

/// Stores how jobs ended and publishes it; false if that is not possible yet.
fn store_ends(app: &App) -> bool {
    let mut ended = lock(&app.jobs.unstored_ends);
    while let Some((id, end)) = ended.first() {
        let now = app.now();
        let stored = app.store.write(|transaction| {
            jobs::end(transaction, *id, end, now)?;
            Ok(jobs::get(transaction, *id, now))
        });
        match stored {
            Ok(job) => {
                match job {
                    Ok(job) => app.bus.publish(job.project_id, "job", &job),
                    Err(error) => tracing::error!("cannot publish the end of job {id}: {error:?}"),
                }
                ended.remove(0);
            }
            Err(error) => {
                tracing::error!("cannot store the end of job {id} yet: {error}");
                return false;
            }
        }
    }
    true
}

fn message_with_hint(error: &ApiError) -> String {
    match &error.hint {
        Some(hint) => format!("{}; {hint}", error.message),
        None => error.message.clone(),
    }
}

fn report_progress(app: &App, job: &Job, progress: &Progress) -> ApiResult<()> {
    let now = app.now();
    let job = app.store.write(|transaction| {
        jobs::progress(transaction, job.id, progress)?;
        jobs::get(transaction, job.id, now)
    })?;
    app.bus.publish(job.project_id, "job", &job);
    Ok(())
}

/// Predicts all unfinished documents of a project; `before` is the fraction of the job that is already done. Each batch is committed by itself,
/// so finished batches stay if the rest fails.
fn predict_all(app: &App, job: &Job, before: f64) -> ApiResult<End> {
    let (model, engine) = app.engine_of(job.project_id)?;
    let name = app.store.read(|connection| Ok(models::get(connection, model)?.model.name))?;
    // Finished documents stay as they are: nobody would review new predictions there.
    let numbers: Vec<i64> = app.store.read(|connection| {
        let waiting = documents::unfinished(connection, job.project_id, "p_mention")?;
        Ok(waiting.into_iter().map(|one| one.id).collect())
    })?;
    let mut n_changed = 0;
    let mut n_done = 0;
    while n_done < numbers.len() {
        if let Some(end) = app.jobs.interruption(job.id) {
            return Ok(end);
        }
        let next = &numbers[n_done..numbers.len().min(n_done + BATCH)];
        let texts = load_texts(app, next)?;
        let batch = &next[..texts.len()];
        n_changed += predict_batch(app, job, engine.as_ref(), &name, batch, texts)?;
        n_done += batch.len();
        let progress = Progress {
            done: before + (1.0 - before) * n_done as f64 / numbers.len().max(1) as f64,
            message: format!("predicting: {n_done} of {} documents", numbers.len()),
            point: None,
        };
        report_progress(app, job, &progress)?;
    }
    let message = match numbers.len() {
        1 => format!("predicted 1 document; {n_changed} changed"),
        n => format!("predicted {n} documents; {n_changed} changed"),
    };
    Ok(End::Succeeded(message, None))
}

/// The first documents of a batch that fit the limit on bytes; at least one.
fn load_texts(app: &App, numbers: &[i64]) -> ApiResult<Vec<AnnotatedDocument>> {
    app.store.read(|connection| {
        let (mut texts, mut n_bytes) = (Vec::new(), 0);
        for id in numbers {
            let stored = documents::get(connection, *id)?;
            n_bytes += stored.text.len();
            if n_bytes > BATCH_BYTES && !texts.is_empty() {
                break;
            }
            let document = Document { id: stored.external_id, sections: stored.content.sections(), text: stored.text };
            texts.push(AnnotatedDocument { document, ..AnnotatedDocument::default() });
        }
        Ok(texts)
    })
}

fn predict_batch(
    app: &App,
    job: &Job,
    engine: &dyn Engine,
    name: &str,
    batch: &[i64],
    texts: Vec<AnnotatedDocument>,
) -> ApiResult<usize> {
    check_kb(engine)?;
    let scope = app.store.read(|connection| projects::scope(connection, job.project_id))?;
    let subset = app.subset_of(&scope)?;
    // In a scope, a nested mention may be the one that is annotated.
    let nested = if subset.is_some() { Nested::default() } else { Nested::None };
    let mut linked = engine.link(texts, &LinkOptions { nested, ..LinkOptions::default() })?;
    linked.iter_mut().for_each(contexts::add);
    if let Some(subset) = &subset {
        let filter = ScopeFilter { kb: app.engine.kb(), subset, types: &scope.types };
        for document in &mut linked {
            document.annotations = filter.keep(std::mem::take(&mut document.annotations));
        }
    }
    check_kb(engine)?;
    let now = app.now();
    let versions = app.store.write(|transaction| {
        let mut versions = Vec::new();
        let mut next = events::next_mark(transaction)?;
        let known = spread::known(transaction, job.project_id)?;
        for (id, linked) in batch.iter().zip(&linked) {
            // Somebody may have finished it since the job began.
            if documents::is_finished(transaction, *id)? {
                continue;
            }
            let marks: BTreeMap<i64, MarkState> =
                documents::marks(transaction, *id)?.into_iter().map(|(id, held)| (id, held.mark)).collect();
            let predicted = linked.annotations.iter().map(|one| convert::from_model(one, name, now)).collect();
            let mut changes = predict::replace(&marks, predicted, &mut next);
            if !known.is_empty() {
                let text = documents::text(transaction, *id)?;
                spread::add_known((&text, now), &marks, &known, (&mut changes, &mut next));
            }
            if changes.is_empty() {
                continue;
            }
            let event = NewEvent {
                document: *id,
                at: now,
                kind: "predict",
                model: Some(name),
                job: Some(job.id),
                ..NewEvent::default()
            };
            let version = events::add(transaction, &event, &Changes { marks: changes, finished: None })?;
            versions.push(DocumentVersion { id: *id, version });
        }
        events::set_next_mark(transaction, next)?;
        Ok(versions)
    })?;
    for version in &versions {
        app.bus.publish(job.project_id, "document", version);
    }
    Ok(versions.len())
}

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
        let is_finished = stored.is_finished || has_gold.replace(false);
        documents.push(TrainingDocument { document, is_finished });
        Ok(())
    })?;
    Ok(documents)
}

/// Trains a model on gold and reviewed annotations. If it scores better than the current model, or there are no scores, the project switches to it and is predicted again.
fn train(app: &App, job: &Job, settings: serde_json::Value) -> ApiResult<End> {
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
    let held_out = trainer.held_out(&documents, &settings)?;
    let held_out: Vec<AnnotatedDocument> =
        documents.iter().zip(held_out).filter(|(_, is)| *is).map(|(one, _)| one.document.clone()).collect();
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
    let not_better = scores_if_not_better(&trained, others.get(&parent));
    let (model, parent_name) = app.store.write(|transaction| {
        let new = NewModel {
            project: job.project_id,
            parent,
            folder: &folder.to_string_lossy(),
            trained: &trained,
            others: &others,
        };
        let model = models::add(transaction, &new, now)?;
        if not_better.is_none() {
            projects::use_model(transaction, job.project_id, model)?;
        }
        Ok((model, models::get(transaction, parent)?.model.name))
    })?;
    let n_evaluated = trained.dev.as_ref().and_then(|dev| dev.n_documents).unwrap_or_default();
    if let Some((new, old)) = not_better {
        let n = held_out_count(n_evaluated);
        let message = format!(
            "trained “{}” (not better, so not used: linking F1 {new:.2}, “{parent_name}” {old:.2}, on {n})",
            trained.name
        );
        return Ok(End::Succeeded(message, Some(model)));
    }
    let predicted = match predict_all(app, job, TRAINING_FRACTION)? {
        End::Succeeded(message, _) => message,
        // The model is stored, whatever became of its predictions.
        End::Cancelled | End::Failed(_) => "predictions incomplete".to_owned(),
    };
    let figures = match !held_out.is_empty() && trained.dev.is_none() {
        true => " (used without scores: every held-out document was seen in training)",
        false => "",
    };
    Ok(End::Succeeded(format!("trained “{}”{figures}; {predicted}", trained.name), Some(model)))
}

/// Evaluates the new model, the current one and the base model on the held-out documents. The scores of the new one go into `trained`, those of the
/// others are returned by number. `None` if the job is cancelled.
fn compare(
    app: &App,
    job: &Job,
    engine: &dyn Engine,
    parent: i64,
    held_out: &[AnnotatedDocument],
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
    let unseen = unseen(all, held_out)?;
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
        others.insert(model, DevFigures { n_seen, ..evaluation.figures.clone() });
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
    trained.dev = Some(DevFigures { n_seen, ..figures });
    Ok(Some(others))
}

/// The linking F1 of the new model and of the current one, if the new one is worse.
fn scores_if_not_better(trained: &Trained, in_use: Option<&DevFigures>) -> Option<(f64, f64)> {
    let (new, old) = (trained.dev.as_ref()?.strict_f1?, in_use?.strict_f1?);
    (new <= old).then_some((new, old))
}

fn held_out_count(n: usize) -> String {
    if n == 1 { "1 held-out document".to_owned() } else { format!("{n} held-out documents") }
}
