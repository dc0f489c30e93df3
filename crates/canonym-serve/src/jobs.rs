//! Jobs: predictions over all documents of a project, and trainings. They run one at a time, beside the requests.

pub mod spread;
pub mod train;

use std::collections::BTreeMap;
use std::sync::Arc;

use canonym_core::corpus::{AnnotatedDocument, contexts};
use canonym_core::link::recognise::Nested;
use canonym_core::text::Document;

use crate::engine::{Engine, LinkOptions, Progress, check_kb};
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::marks::scope::ScopeFilter;
use crate::marks::{Changes, MarkState, convert, predict};
use crate::state::{App, lock};
use crate::store::events::{self, NewEvent};
use crate::store::jobs::{self, End};
use crate::store::{documents, models, projects};
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
        "train" => train::train(app, &job, settings),
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
                spread::add_known(engine.kb(), (&text, now), &marks, &known, (&mut changes, &mut next));
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
