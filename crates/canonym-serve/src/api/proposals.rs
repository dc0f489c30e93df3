//! Proposals for the terminology: new concepts and synonyms, used at once in their project and exported for its curators.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use canonym_core::text::offsets::OffsetMap;
use rusqlite::{Connection, Transaction};
use serde::Deserialize;

use super::disagreements::around;
use super::projects::checked_line;
use super::{Json, PathParam, QueryParams};
use crate::error::{ApiError, ApiResult};
use crate::events::DocumentVersion;
use crate::guard::Client;
use crate::jobs::spread::{spread_in, spread_of_proposal};
use crate::marks::spread::PROPOSED;
use crate::marks::{Change, Changes, Named};
use crate::spans::from_pairs;
use crate::state::App;
use crate::store::documents::MentionCursor;
use crate::store::events::{self, NewEvent};
use crate::store::proposals::{self, StoredProposal};
use crate::store::{documents, people, projects};
use crate::times::rfc3339;
use crate::wire::{NewProposal, Person, Proposal, ProposalKind, Proposals, Proposed, Role, SynonymScope};

/// The maximum length of a definition, in bytes.
const MAX_DEFINITION: usize = 4000;

/// The maximum number of proposals of a project.
const MAX_PROPOSALS: usize = 10_000;

/// Characters of context on either side.
const CONTEXT: usize = 80;

/// `GET /projects/{p}/proposals`.
pub async fn list(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
) -> ApiResult<axum::Json<Proposals>> {
    let proposals = app.blocking(move |app| {
        app.store.read(|connection| {
            let names = people::names(connection)?;
            let all = proposals::of_project(connection, project)?;
            all.into_iter().map(|one| shown(connection, project, one, &names)).collect::<ApiResult<Vec<Proposal>>>()
        })
    });
    Ok(axum::Json(Proposals { proposals: proposals.await? }))
}

fn shown(
    connection: &Connection,
    project: i64,
    stored: StoredProposal,
    names: &HashMap<i64, String>,
) -> ApiResult<Proposal> {
    let concept = stored.concept();
    let name = (stored.kind == ProposalKind::Synonym).then_some(stored.name.as_str());
    let keeper = proposals::keeper(connection, project)?;
    Ok(Proposal {
        n_mentions: proposals::n_reviewed(connection, keeper, &concept.id, name)?,
        broader: stored.other.filter(|_| stored.kind == ProposalKind::Concept),
        concept,
        id: stored.id,
        kind: stored.kind,
        name: stored.name,
        scope: stored.scope,
        semantic_type: stored.semantic_type,
        definition: stored.definition,
        document: stored.document,
        evidence: stored.evidence,
        by: names.get(&stored.person).cloned().unwrap_or_default(),
        at: rfc3339(stored.at),
    })
}

/// `POST /projects/{p}/proposals`: proposes a concept or synonym, and predicts it in the unfinished documents.
pub async fn add(
    State(app): State<Arc<App>>,
    person: Person,
    PathParam(project): PathParam<i64>,
    Json(new): Json<NewProposal>,
) -> ApiResult<(StatusCode, axum::Json<Proposed>)> {
    let proposed = app.blocking(move |app| {
        let wanted = checked(app, &new, &person)?;
        let stored = app.store.write(|transaction| {
            projects::check(transaction, project)?;
            let all = proposals::of_project(transaction, project)?;
            if all.len() >= MAX_PROPOSALS {
                return Err(ApiError::conflict(format!("a project may have {MAX_PROPOSALS} proposals")));
            }
            let is_same = |one: &&StoredProposal| {
                one.kind == wanted.kind
                    && one.name.to_lowercase() == wanted.name.to_lowercase()
                    && (one.kind == ProposalKind::Concept || one.other == wanted.other)
            };
            if let Some(same) = all.iter().find(is_same) {
                return Err(ApiError::conflict(format!("“{}” was already proposed", same.name))
                    .hint(format!("search for it; its ID is {}", same.concept().id)));
            }
            let evidence = evidence(transaction, project, &new)?;
            let document = new.document.filter(|_| !evidence.is_empty());
            let id = proposals::add(transaction, project, &StoredProposal { document, evidence, ..wanted.clone() })?;
            proposals::get(transaction, project, id)
        })?;
        let n_predicted = spread_in(app, project, &spread_of_proposal(&stored), None)?;
        let proposal = app.store.read(|connection| {
            let names = people::names(connection)?;
            shown(connection, project, stored.clone(), &names)
        })?;
        Ok(Proposed { proposal, n_predicted })
    });
    Ok((StatusCode::CREATED, axum::Json(proposed.await?)))
}

/// A proposal without number and evidence.
fn checked(app: &App, new: &NewProposal, person: &Person) -> ApiResult<StoredProposal> {
    let kb = app.engine.kb();
    let name = checked_line(&new.name, "name")?.to_owned();
    let other = new.concept.as_deref().map(str::trim).filter(|id| !id.is_empty());
    let other = other.map(|id| kb.find(id).ok_or_else(|| unknown(id))).transpose()?;
    if new.kind == ProposalKind::Synonym {
        let Some(concept) = other else {
            return Err(ApiError::bad("a synonym needs the ID of its concept in `concept`"));
        };
        if kb.names(concept).any(|known| kb.name(known).to_lowercase() == name.to_lowercase()) {
            let preferred = kb.preferred_name(concept);
            return Err(ApiError::conflict(format!("“{name}” is already a name of {preferred}")));
        }
    }
    let default_type = other.and_then(|concept| kb.types(concept).next()).unwrap_or_default();
    let wanted_type = new.semantic_type.as_deref().map(str::trim).filter(|text| !text.is_empty());
    let semantic_type = match (new.kind, wanted_type) {
        (ProposalKind::Concept, Some(wanted)) => checked_line(wanted, "type")?.to_owned(),
        _ => default_type.to_owned(),
    };
    let definition = new.definition.as_deref().map(str::trim).unwrap_or_default();
    let definition = definition.split_whitespace().collect::<Vec<&str>>().join(" ");
    if definition.len() > MAX_DEFINITION || definition.chars().any(char::is_control) {
        return Err(ApiError::bad(format!("a definition may have at most {MAX_DEFINITION} bytes")));
    }
    let named = |concept| Named { id: kb.id(concept).to_owned(), name: kb.preferred_name(concept).to_owned() };
    Ok(StoredProposal {
        id: 0,
        kind: new.kind,
        name,
        other: other.map(named),
        scope: new.scope,
        semantic_type,
        definition,
        document: None,
        evidence: String::new(),
        person: person.id,
        at: app.now(),
    })
}

fn unknown(id: &str) -> ApiError {
    let shown: String = id.chars().take(80).collect();
    ApiError::bad(format!("concept `{shown}` not found")).hint("use the ID of a concept of the terminology")
}

/// The text around the place where something is proposed; empty if the request names none.
fn evidence(connection: &Connection, project: i64, new: &NewProposal) -> ApiResult<String> {
    let (Some(document), Some(start), Some(end)) = (new.document, new.start, new.end) else {
        return Ok(String::new());
    };
    let stored = documents::get(connection, document)?;
    if stored.project != project {
        return Err(ApiError::not_found(format!("document {document} not found")));
    }
    let spans = from_pairs(&OffsetMap::new(&stored.text), &[(start, end)])?;
    let span = spans[0];
    let (before, behind) = around(&stored.text, span.start as usize..span.end as usize, CONTEXT);
    let text = format!("{before}{}{behind}", span.of(&stored.text));
    Ok(text.split_whitespace().collect::<Vec<&str>>().join(" "))
}

/// `DELETE /projects/{p}/proposals/{id}`: withdraws a proposal that no reviewed mention uses.
pub async fn delete(
    State(app): State<Arc<App>>,
    person: Person,
    axum::Extension(client): axum::Extension<Client>,
    PathParam((project, id)): PathParam<(i64, i64)>,
) -> ApiResult<axum::Json<()>> {
    app.blocking(move |app| {
        let (stored, versions) = app.store.write(|transaction| {
            let stored = proposals::get(transaction, project, id)?;
            if stored.person != person.id && person.role < Role::Curator {
                return Err(ApiError::forbidden("only its author and curators can withdraw a proposal"));
            }
            let keeper = proposals::keeper(transaction, project)?;
            let n_mentions = proposals::n_reviewed(transaction, keeper, &stored.concept().id, None)?;
            if stored.kind == ProposalKind::Concept && n_mentions > 0 {
                let message = format!("{n_mentions} reviewed mentions have this concept");
                return Err(ApiError::conflict(message).hint("link them to another one first; nothing was changed"));
            }
            proposals::delete(transaction, id)?;
            let versions = remove_predictions(app, transaction, project, &stored.concept().id)?;
            Ok((stored, versions))
        })?;
        versions.iter().for_each(|version| app.bus.publish(project, "document", version));
        let what = format!("proposal {id} ({}) in project {project}", stored.name);
        app.audit.record(app.now(), &person.name, Some(client.0), "withdrawn", &what);
        Ok(())
    })
    .await?;
    Ok(axum::Json(()))
}

/// Removes the unreviewed predictions of a concept that come from proposals; returns the documents that changed.
fn remove_predictions(
    app: &App,
    transaction: &Transaction<'_>,
    project: i64,
    concept: &str,
) -> ApiResult<Vec<DocumentVersion>> {
    let all = documents::mentions(transaction, project, concept, MentionCursor::default(), usize::MAX >> 1)?;
    let mut by_document: BTreeMap<i64, Vec<Change>> = BTreeMap::new();
    for one in all {
        if one.mark.is_open() && one.mark.model.as_deref() == Some(PROPOSED) {
            let change = Change { id: one.id, before: Some(one.mark), after: None };
            by_document.entry(one.document).or_default().push(change);
        }
    }
    let mut versions = Vec::new();
    for (document, marks) in by_document {
        let event = NewEvent { document, at: app.now(), kind: "predict", model: Some(PROPOSED), ..NewEvent::default() };
        let version = events::add(transaction, &event, &Changes { marks, finished: None })?;
        versions.push(DocumentVersion { id: document, version });
    }
    Ok(versions)
}

/// Query parameters of an export.
#[derive(Debug, Default, Deserialize)]
pub struct FileQuery {
    format: Option<String>,
}

/// `GET /projects/{p}/proposals/file`: the proposals as SSSOM mappings, or as a table for `canonym kb build`.
pub async fn file(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<FileQuery>,
) -> ApiResult<Response> {
    let (text, name) = app
        .blocking(move |app| {
            app.store.read(|connection| {
                let all = proposals::of_project(connection, project)?;
                match query.format.as_deref() {
                    None | Some("sssom" | "") => {
                        let names = people::names(connection)?;
                        Ok((sssom(project, &all, &names), "proposals.sssom.tsv"))
                    }
                    Some("tsv") => Ok((table(app, &all), "proposals.tsv")),
                    Some(_) => Err(ApiError::bad("unknown format of proposals").hint("use sssom or tsv")),
                }
            })
        })
        .await?;
    let disposition = format!("attachment; filename=\"{name}\"");
    let kind = "text/tab-separated-values; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)], text).into_response())
}

/// SSSOM in its TSV form: a synonym is a mapping of a literal, a new concept one to its broader concept.
fn sssom(project: i64, all: &[StoredProposal], names: &HashMap<i64, String>) -> String {
    let mut text = String::from(
        "#curie_map:\n#  PROPOSED: \"urn:canonym:proposed:\"\n#  semapv: \"https://w3id.org/semapv/vocab/\"\n\
         #  skos: \"http://www.w3.org/2004/02/skos/core#\"\n#  sssom: \"https://w3id.org/sssom/\"\n",
    );
    text += &format!("#mapping_set_id: \"urn:canonym:project:{project}:proposals\"\n");
    text += "subject_id\tsubject_label\tsubject_type\tpredicate_id\tobject_id\tobject_label\tmapping_justification\t\
             author_label\tmapping_date\tcomment\n";
    for one in all {
        let other = one.other.as_ref();
        let (object, label) = other.map_or(("sssom:NoTermFound", ""), |other| (other.id.as_str(), other.name.as_str()));
        let (subject, subject_type, predicate) = match one.kind {
            ProposalKind::Concept if other.is_none() => (one.concept().id, "", "skos:exactMatch"),
            ProposalKind::Concept => (one.concept().id, "", "skos:broadMatch"),
            ProposalKind::Synonym => (String::new(), "rdfs literal", predicate(one.scope)),
        };
        let by = names.get(&one.person).map(String::as_str).unwrap_or_default();
        let date: String = rfc3339(one.at).chars().take(10).collect();
        let comment = if one.definition.is_empty() { &one.evidence } else { &one.definition };
        let cells = [
            subject.as_str(),
            one.name.as_str(),
            subject_type,
            predicate,
            object,
            label,
            "semapv:ManualMappingCuration",
            by,
            date.as_str(),
            comment.as_str(),
        ];
        text += &cells.map(cell).join("\t");
        text.push('\n');
    }
    text
}

/// The relation of a synonym, the subject, to its concept.
fn predicate(scope: SynonymScope) -> &'static str {
    match scope {
        SynonymScope::Exact => "skos:exactMatch",
        // The name is narrower, so the concept is broader.
        SynonymScope::Narrow => "skos:broadMatch",
        SynonymScope::Broad => "skos:narrowMatch",
        SynonymScope::Related => "skos:relatedMatch",
    }
}

fn cell(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

/// ID, name, synonyms, types and definition, as `canonym kb build` reads them beside the terminology. A synonym that is not exact is left out.
fn table(app: &App, all: &[StoredProposal]) -> String {
    let kb = app.engine.kb();
    let list = |text: &str| text.replace('|', "/");
    let mut synonyms: BTreeMap<&str, (&str, Vec<String>)> = BTreeMap::new();
    let mut rows: Vec<[String; 5]> = Vec::new();
    for one in all {
        match (one.kind, &one.other) {
            (ProposalKind::Synonym, Some(concept)) if one.scope == SynonymScope::Exact => {
                let row = synonyms.entry(concept.id.as_str()).or_insert_with(|| (concept.name.as_str(), Vec::new()));
                row.1.push(list(&one.name));
            }
            (ProposalKind::Synonym, _) => {}
            (ProposalKind::Concept, _) => {
                let (id, types) = (one.concept().id, list(&one.semantic_type));
                rows.push([id, one.name.clone(), String::new(), types, one.definition.clone()]);
            }
        }
    }
    for (id, (name, names)) in synonyms {
        let types = kb.find(id).map(|concept| kb.types(concept).map(list).collect::<Vec<String>>().join("|"));
        rows.push([id.to_owned(), name.to_owned(), names.join("|"), types.unwrap_or_default(), String::new()]);
    }
    rows.iter().map(|row| row.each_ref().map(|text| cell(text)).join("\t") + "\n").collect()
}
