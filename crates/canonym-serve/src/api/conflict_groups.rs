//! Conflicts between annotators with the same text and the same answers, resolved together as one step that can be undone.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use axum::extract::State;
use canonym_core::text::offsets::OffsetMap;
use rusqlite::Connection;

use super::assignments::{Finisher, finish_if_resolved};
use super::decisions::document_state;
use super::groups::add_to_batch;
use super::{Json, PathParam};
use crate::abort;
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::guard::Curator;
use crate::marks::Named;
use crate::marks::decide::{Decision, Keep};
use crate::marks::disagree::{Answer, Claim, Conflict};
use crate::spans::to_pairs;
use crate::state::App;
use crate::store::events::{self, NewEvent};
use crate::store::groups::folded;
use crate::store::{documents, people, projects};
use crate::wire::{ConflictAnswer, ConflictDecision, ConflictGroup, ConflictGroups, GroupDecided, Person};

/// The concepts of an answer, and how often each person gave it.
type Given = (Vec<Option<Named>>, BTreeMap<i64, usize>);

/// A conflict with its document.
type Found = (i64, Conflict);

/// All unresolved conflicts of a project by key, with the text of the first.
fn groups(app: &App, connection: &Connection, project: i64) -> ApiResult<BTreeMap<String, (String, Vec<Found>)>> {
    let mut groups: BTreeMap<String, (String, Vec<Found>)> = BTreeMap::new();
    for (document, version) in events::shared(connection, project)? {
        abort::check()?;
        let conflicts = app.conflicts_of(connection, document, version)?;
        if conflicts.is_empty() {
            continue;
        }
        let text = documents::text(connection, document)?;
        for conflict in conflicts.iter() {
            let words = conflict.extent.of(&text);
            let group = groups.entry(key(words, conflict)).or_insert_with(|| (words.to_owned(), Vec::new()));
            group.1.push((document, conflict.clone()));
        }
    }
    Ok(groups)
}

/// What conflicts of a group have in common: the text, and which answers there are, whoever gave them.
pub(super) fn key(text: &str, conflict: &Conflict) -> String {
    let answers: BTreeSet<String> = conflict.answers.iter().map(|answer| label(&answer.claims)).collect();
    let answers: Vec<String> = answers.into_iter().collect();
    format!("{}\u{1f}{}", folded(text), answers.join("\u{1f}"))
}

/// An answer without its boundaries.
fn label(claims: &[Claim]) -> String {
    let ids: Vec<&str> =
        claims.iter().map(|claim| claim.concept.as_ref().map_or("-", |concept| concept.id.as_str())).collect();
    ids.join("|")
}

/// `GET /projects/{p}/disagreements/groups`: conflicts with the same text and answers, most frequent first.
pub async fn list(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
) -> ApiResult<axum::Json<ConflictGroups>> {
    let groups = app.blocking(move |app| {
        app.store.read(|connection| {
            projects::check(connection, project)?;
            let names = people::names(connection)?;
            let mut shown: Vec<ConflictGroup> = groups(app, connection, project)?
                .into_iter()
                .map(|(key, (text, found))| ConflictGroup {
                    n_conflicts: found.len(),
                    n_documents: found.iter().map(|(document, _)| document).collect::<BTreeSet<_>>().len(),
                    answers: answers(&found, &names),
                    key,
                    text,
                })
                .collect();
            shown.sort_by_key(|group| std::cmp::Reverse(group.n_conflicts));
            Ok(ConflictGroups { groups: shown })
        })
    });
    Ok(axum::Json(groups.await?))
}

/// The answers of a group, most frequent first, with those who gave them.
fn answers(found: &[Found], names: &HashMap<i64, String>) -> Vec<ConflictAnswer> {
    let mut by_label: BTreeMap<String, Given> = BTreeMap::new();
    for answer in found.iter().flat_map(|(_, conflict)| &conflict.answers) {
        let row = by_label
            .entry(label(&answer.claims))
            .or_insert_with(|| (answer.claims.iter().map(|claim| claim.concept.clone()).collect(), BTreeMap::new()));
        for (person, _) in &answer.people {
            *row.1.entry(*person).or_default() += 1;
        }
    }
    let mut answers: Vec<ConflictAnswer> = by_label
        .into_iter()
        .map(|(key, (concepts, people))| ConflictAnswer {
            key,
            concepts,
            n_answers: people.values().sum(),
            people: people.keys().map(|person| names.get(person).cloned().unwrap_or_default()).collect(),
        })
        .collect();
    answers.sort_by_key(|answer| (std::cmp::Reverse(answer.n_answers), answer.concepts.is_empty()));
    answers
}

/// `POST /projects/{p}/disagreements/decisions`: resolves the conflicts of a group with one answer.
pub async fn decide(
    State(app): State<Arc<App>>,
    Curator(person): Curator,
    PathParam(project): PathParam<i64>,
    Json(request): Json<ConflictDecision>,
) -> ApiResult<axum::Json<GroupDecided>> {
    if request.answer.is_some() == request.concept.is_some() {
        return Err(ApiError::bad("give either `answer` or `concept`"));
    }
    let decided = app.blocking(move |app| {
        let found = app.store.read(|connection| {
            projects::check(connection, project)?;
            Ok(groups(app, connection, project)?.remove(&request.group).map(|(_, found)| found).unwrap_or_default())
        })?;
        let wanted = |(document, conflict): &Found| {
            let of = |only: &Vec<(i64, i64)>| only.contains(&(*document, conflict.marks[0]));
            request.only.as_ref().is_none_or(of)
        };
        let found: Vec<Found> = found.into_iter().filter(wanted).collect();
        let (decided, versions) = resolve(app, &found, &request, &person)?;
        versions.iter().for_each(|version| app.bus.publish(project, "document", version));
        Ok(decided)
    });
    Ok(axum::Json(decided.await?))
}

fn resolve(
    app: &App,
    found: &[Found],
    request: &ConflictDecision,
    person: &Person,
) -> ApiResult<(GroupDecided, Vec<DocumentVersion>)> {
    app.store.write(|transaction| {
        let (mut decided, mut versions) = (GroupDecided::default(), Vec::new());
        for in_document in found.chunk_by(|a, b| a.0 == b.0) {
            abort::check()?;
            let stored = documents::get(transaction, in_document[0].0)?;
            // Conflicts that changed since they were read are left as they are.
            let now = app.conflicts_of(transaction, stored.id, stored.version)?;
            let held = documents::marks(transaction, stored.id)?;
            let mut state = document_state(app, transaction, &stored, &held, person)?;
            let map = OffsetMap::new(&stored.text);
            let mut version = stored.version;
            for (_, conflict) in in_document {
                let keep = if now.contains(conflict) { keep(&map, conflict, request) } else { None };
                let Some(keep) = keep else {
                    decided.n_skipped += 1;
                    continue;
                };
                let decision = Decision::Settle { marks: conflict.marks.clone(), keep };
                let changes = state.decide(&decision)?;
                let event = NewEvent {
                    document: stored.id,
                    person: Some(person.id),
                    at: app.now(),
                    kind: decision.name(),
                    ..NewEvent::default()
                };
                version = add_to_batch(transaction, event, &changes, &mut decided)?;
            }
            events::set_next_mark(transaction, state.next_mark)?;
            if version != stored.version {
                let finished = finish_if_resolved(
                    app,
                    transaction,
                    stored.id,
                    Finisher { person: person.id, batch: decided.batch },
                )?;
                decided.n_documents += 1;
                versions.push(DocumentVersion { id: stored.id, version: finished.unwrap_or(version) });
            }
        }
        Ok((decided, versions))
    })
}

/// The mentions to keep: those of the chosen answer, or another concept at the boundaries of the most frequent one.
fn keep(map: &OffsetMap<'_>, conflict: &Conflict, request: &ConflictDecision) -> Option<Vec<Keep>> {
    let kept = |claim: &Claim, concept: Option<String>| Keep {
        spans: to_pairs(map, &claim.spans),
        is_nil: concept.is_none(),
        concept,
    };
    if let Some(concept) = &request.concept {
        let claim = conflict.answers.iter().flat_map(|answer| &answer.claims).next()?;
        return Some(vec![kept(claim, Some(concept.clone()))]);
    }
    let is_chosen = |answer: &&Answer| Some(label(&answer.claims)) == request.answer;
    let chosen = conflict.answers.iter().find(is_chosen)?;
    let concept = |claim: &Claim| claim.concept.as_ref().map(|concept| concept.id.clone());
    Some(chosen.claims.iter().map(|claim| kept(claim, concept(claim))).collect())
}
