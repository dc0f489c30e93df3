//! Projects.

use rusqlite::{Connection, Row, params};

use super::{assignments, documents, events, next_number, or_not_found, parse_json, proposals, reserve_numbers};
use crate::error::ApiResult;
use crate::times::{Millis, rfc3339};
use crate::wire::{NewProject, Person, Project, ProjectPatch, ProjectScope, Role};

const COLUMNS: &str = "SELECT p.id, p.name, p.description, p.guideline, p.strategy,
    (SELECT count(*) FROM documents d WHERE d.project_id = p.id),
    (SELECT count(*) FROM documents d WHERE d.project_id = p.id AND d.is_finished = 1),
    (SELECT coalesce(sum(c.n), 0) FROM decision_counts c WHERE c.project_id = p.id),
    p.kb_fingerprint, p.made_at, p.scope, p.is_archived, p.parent_id,
    (SELECT a.name FROM people a WHERE a.id = p.annotator_id) FROM projects p";

fn project(row: &Row<'_>) -> rusqlite::Result<Project> {
    let id = row.get(0)?;
    Ok(Project {
        id,
        name: row.get(1)?,
        description: row.get(2)?,
        guideline: row.get(3)?,
        strategy: row.get(4)?,
        n_documents: row.get(5)?,
        n_finished: row.get(6)?,
        n_decisions: row.get(7)?,
        kb_fingerprint: row.get(8)?,
        created_at: rfc3339(row.get(9)?),
        scope: parse_json(row, 10, "projects", id)?,
        is_archived: row.get(11)?,
        parent: row.get(12)?,
        annotator: row.get(13)?,
    })
}

/// The projects that a person sees, oldest first.
pub fn all(connection: &Connection, person: &Person) -> ApiResult<Vec<Project>> {
    let is_seen = "?2 OR EXISTS (SELECT 1 FROM members m WHERE m.project_id = p.id AND m.person_id = ?1)";
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE {is_seen} ORDER BY p.id"))?;
    let rows = statement.query_map(params![person.id, person.role == Role::Admin], project)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One project.
pub fn get(connection: &Connection, id: i64) -> ApiResult<Project> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE p.id = ?1"))?;
    or_not_found(statement.query_row([id], project), &format!("project {id}"))
}

/// 404 if the project does not exist.
pub fn check(connection: &Connection, id: i64) -> ApiResult<()> {
    let row = connection.query_row("SELECT 1 FROM projects WHERE id = ?1", [id], |_| Ok(()));
    or_not_found(row, &format!("project {id}"))
}

/// Adds a project; returns its number.
pub fn add(connection: &Connection, new: &NewProject, kb: &str, strategy: &str, at: Millis) -> ApiResult<i64> {
    let sql = "INSERT INTO projects (id, name, description, guideline, strategy, kb_fingerprint, made_at)
        VALUES (?7, ?1, ?2, ?3, ?4, ?5, ?6)";
    let number = next_number(connection, "projects")?;
    let description = new.description.as_deref().unwrap_or_default();
    let guideline = new.guideline.as_deref().unwrap_or_default();
    connection.execute(sql, params![new.name.trim(), description, guideline, strategy, kb, at, number])?;
    Ok(connection.last_insert_rowid())
}

/// Changes the given fields.
pub fn patch(connection: &Connection, id: i64, patch: &ProjectPatch) -> ApiResult<()> {
    let sql = "UPDATE projects SET name = coalesce(?2, name), description = coalesce(?3, description),
        guideline = coalesce(?4, guideline), strategy = coalesce(?5, strategy),
        is_archived = coalesce(?6, is_archived) WHERE id = ?1";
    let name = patch.name.as_deref().map(str::trim);
    connection
        .execute(sql, params![id, name, patch.description, patch.guideline, patch.strategy, patch.is_archived])?;
    Ok(())
}

/// What a project annotates.
pub fn scope(connection: &Connection, id: i64) -> ApiResult<ProjectScope> {
    let sql = "SELECT scope FROM projects WHERE id = ?1";
    let row = connection.prepare_cached(sql)?.query_row([id], |row| parse_json(row, 0, "projects", id));
    or_not_found(row, &format!("project {id}"))
}

/// Sets what a project annotates.
pub fn set_scope(connection: &Connection, id: i64, scope: &ProjectScope) -> ApiResult<()> {
    let scope = serde_json::to_string(scope)?;
    connection.execute("UPDATE projects SET scope = ?2 WHERE id = ?1", params![id, scope])?;
    Ok(())
}

/// Deletes a project with its documents, jobs and models.
pub fn delete(connection: &Connection, id: i64) -> ApiResult<()> {
    for child in assignments::children(connection, id)?.into_values() {
        delete(connection, child)?;
    }
    reserve_numbers(connection, "projects")?;
    documents::delete(connection, "project_id", id)?;
    events::rebuild_project(connection, id)?;
    connection.execute("UPDATE projects SET model_id = NULL WHERE id = ?1", [id])?;
    for table in ["jobs", "models"] {
        reserve_numbers(connection, table)?;
        connection.execute(&format!("DELETE FROM {table} WHERE project_id = ?1"), [id])?;
    }
    proposals::delete_of_project(connection, id)?;
    connection.execute("DELETE FROM members WHERE project_id = ?1", [id])?;
    connection.execute("DELETE FROM projects WHERE id = ?1", [id])?;
    Ok(())
}

/// The model that the project uses; `None` for the base model.
pub fn model(connection: &Connection, id: i64) -> ApiResult<Option<i64>> {
    let row = connection.query_row("SELECT model_id FROM projects WHERE id = ?1", [id], |row| row.get(0));
    or_not_found(row, &format!("project {id}"))
}

/// Switches to another model.
pub fn use_model(connection: &Connection, id: i64, model: i64) -> ApiResult<()> {
    connection.execute("UPDATE projects SET model_id = ?2 WHERE id = ?1", params![id, model])?;
    Ok(())
}
