//! Spreads decisions to identical mentions of other documents, beside the requests, and proposed names to their occurrences.

use std::collections::BTreeMap;
use std::sync::Arc;

use canonym_core::kb::KnowledgeBase;
use canonym_core::text::taught::name_of;
use rusqlite::Connection;

use crate::error::ApiResult;
use crate::events::DocumentVersion;
use crate::marks::identical::find_words;
use crate::marks::spread::{IDENTICAL, PROPOSED, Spread, changes};
use crate::marks::{Change, Changes, MarkState};
use crate::spans::overlap;
use crate::state::{App, SpreadTask};
use crate::store::events::{self, NewEvent};
use crate::store::proposals::{self, StoredProposal};
use crate::store::{documents, groups};

/// The kind of the events that spread a decision.
pub const SPREAD: &str = "spread";

/// Starts the thread that spreads decisions; it ends with the app.
pub(super) fn start(app: &Arc<App>) {
    let app = Arc::downgrade(app);
    std::thread::spawn(move || {
        while let Some(app) = app.upgrade() {
            if app.jobs.is_stopping() {
                return;
            }
            if !run_spreads(&app) {
                app.jobs.wait_for_spreads();
            }
        }
    });
}

/// Spreads the decisions made so far; false if there are none.
pub fn run_spreads(app: &App) -> bool {
    let tasks = app.jobs.take_spreads();
    for task in &tasks {
        let done = match task {
            SpreadTask::Decision { project, document, spread, batch } => {
                spread_decision(app, *project, spread, Origin { document: *document, batch: *batch })
            }
            SpreadTask::Withdraw { project, batch } => withdraw(app, *project, *batch),
        };
        if let Err(error) = done {
            // A later decision spreads the same again.
            tracing::warn!("cannot spread a decision: {error}");
        }
    }
    !tasks.is_empty()
}

/// Where the decision was made that is spread.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Its document, to which it is not spread.
    pub document: i64,
    /// The batch of its event.
    pub batch: i64,
}

/// Spreads the concept of a reviewed mention, unless people gave the same text another concept in this project.
fn spread_decision(app: &App, project: i64, spread: &Spread, origin: Origin) -> ApiResult<()> {
    let is_unambiguous = app
        .store
        .read(|connection| Ok(!groups::has_other_concept(connection, project, &spread.text, &spread.concept.id)?))?;
    if is_unambiguous {
        spread_in(app, project, spread, Some(origin))?;
    }
    Ok(())
}

/// Spreads a concept in the unfinished documents of a project other than that of its origin; returns how many predictions it added or changed.
pub fn spread_in(app: &App, project: i64, spread: &Spread, origin: Option<Origin>) -> ApiResult<usize> {
    let batch = origin.map(|origin| origin.batch);
    let mut wanted = app.store.read(|connection| documents_with(connection, project, &spread.text))?;
    wanted.retain(|document| origin.is_none_or(|origin| origin.document != *document));
    let (mut n_changed, mut versions) = (0, Vec::new());
    if wanted.is_empty() {
        return Ok(0);
    }
    app.store.write(|transaction| {
        let (at, mut next) = (app.now(), events::next_mark(transaction)?);
        for id in wanted {
            if documents::is_finished(transaction, id)? {
                continue;
            }
            let text = documents::text(transaction, id)?;
            let marks = documents::marks(transaction, id)?.into_iter().map(|(id, held)| (id, held.mark)).collect();
            let marks = changes(app.engine.kb(), (&text, &marks), spread, at, &mut next);
            if marks.is_empty() {
                continue;
            }
            n_changed += marks.iter().filter(|change| change.after.is_some()).count();
            let event =
                NewEvent { document: id, batch, at, kind: SPREAD, model: Some(spread.model), ..NewEvent::default() };
            let version = events::add(transaction, &event, &Changes { marks, finished: None })?;
            versions.push(DocumentVersion { id, version });
        }
        events::set_next_mark(transaction, next)
    })?;
    versions.iter().for_each(|version| app.bus.publish(project, "document", version));
    Ok(n_changed)
}

/// What a prediction adds to that of the model: the proposed names of a project, and the texts that people linked to one concept. The model
/// learns from the latter, but a name that the terminology lacks only slowly.
pub fn known(connection: &Connection, project: i64) -> ApiResult<Vec<Spread>> {
    let proposed = proposals::of_project(connection, project)?;
    // What trained models take for a name.
    let taught = groups::taught(connection, project)?.into_iter().filter(|taught| name_of(&taught.text).is_some());
    let of_taught = |taught: groups::Taught| Spread {
        text: taught.text,
        concept: taught.concept,
        kind: taught.kind,
        model: IDENTICAL,
        from: Some(taught.mark),
    };
    let mut known: Vec<Spread> = proposed.iter().map(spread_of_proposal).chain(taught.map(of_taught)).collect();
    // Longer texts first, so that shorter ones are not added and removed again.
    known.sort_by_key(|spread| std::cmp::Reverse(spread.text.len()));
    Ok(known)
}

/// What a proposal spreads.
pub fn spread_of_proposal(proposal: &StoredProposal) -> Spread {
    Spread {
        text: proposal.name.clone(),
        concept: proposal.concept(),
        kind: proposal.semantic_type.clone(),
        model: PROPOSED,
        from: None,
    }
}

/// Adds the spreads of [`known`] to the changes that a prediction makes in a document with the marks `marks`.
pub fn add_known(
    kb: &KnowledgeBase,
    (text, at): (&str, i64),
    marks: &BTreeMap<i64, MarkState>,
    known: &[Spread],
    (predicted, next_mark): (&mut Vec<Change>, &mut i64),
) {
    let mut now = marks.clone();
    let apply = |now: &mut BTreeMap<i64, MarkState>, change: &Change| match &change.after {
        Some(mark) => now.insert(change.id, mark.clone()),
        None => now.remove(&change.id),
    };
    for change in predicted.iter() {
        apply(&mut now, change);
    }
    for spread in known {
        for change in changes(kb, (text, &now), spread, at, next_mark) {
            apply(&mut now, &change);
            match predicted.iter_mut().find(|other| other.id == change.id) {
                Some(other) => other.after = change.after,
                None => predicted.push(change),
            }
        }
    }
    // New predictions that gave way.
    predicted.retain(|change| change.before.is_some() || change.after.is_some());
}

/// The unfinished documents of a project that contain a text.
fn documents_with(connection: &Connection, project: i64, text: &str) -> ApiResult<Vec<i64>> {
    let mut found = Vec::new();
    for one in documents::unfinished(connection, project, "p_mention")? {
        if !find_words(&documents::text(connection, one.id)?, text).is_empty() {
            found.push(one.id);
        }
    }
    Ok(found)
}

/// Takes back what a decision spread that was undone, where nobody has decided since.
fn withdraw(app: &App, project: i64, batch: i64) -> ApiResult<()> {
    let mut versions = Vec::new();
    app.store.write(|transaction| {
        for (document, spread) in events::spread_of_batch(transaction, project, batch)? {
            let now: BTreeMap<i64, MarkState> =
                documents::marks(transaction, document)?.into_iter().map(|(id, held)| (id, held.mark)).collect();
            let is_unchanged = |change: &&Change| now.get(&change.id) == change.before.as_ref();
            let mut marks: Vec<Change> = spread.reversed().marks.iter().filter(is_unchanged).cloned().collect();
            let is_removed = |id: &i64| marks.iter().any(|change| change.id == *id && change.after.is_none());
            let stay: Vec<MarkState> =
                now.iter().filter(|(id, _)| !is_removed(id)).map(|(_, mark)| mark.clone()).collect();
            // A prediction that gave way comes back only if nothing else is there by now.
            let is_free = |mark: &MarkState| {
                !stay.iter().any(|other| other.is_listed() && overlap(&other.spans(), &mark.spans()))
            };
            marks.retain(|change| change.before.is_some() || change.after.as_ref().is_some_and(is_free));
            if marks.is_empty() {
                continue;
            }
            let event = NewEvent { document, at: app.now(), kind: SPREAD, ..NewEvent::default() };
            let version = events::add(transaction, &event, &Changes { marks, finished: None })?;
            versions.push(DocumentVersion { id: document, version });
        }
        Ok(())
    })?;
    versions.iter().for_each(|version| app.bus.publish(project, "document", version));
    Ok(())
}
