//! Members of projects. A project does not exist for people who are not members; admins see all.

use std::collections::BTreeSet;

use rusqlite::{Connection, params};

use super::people;
use crate::error::{ApiError, ApiResult};
use crate::wire::{Person, Role};

/// A reference to a project, by its number or by something in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A project.
    Project(i64),
    /// A document.
    Document(i64),
    /// A job.
    Job(i64),
}

/// 404 if the person does not see the project; the same response as for a number that does not exist.
pub fn check(connection: &Connection, person: &Person, named: Named) -> ApiResult<()> {
    let (what, id, projects) = match named {
        Named::Project(id) => ("project", id, "SELECT id FROM projects WHERE id = ?1"),
        Named::Document(id) => ("document", id, "SELECT project_id FROM documents WHERE id = ?1"),
        Named::Job(id) => ("job", id, "SELECT project_id FROM jobs WHERE id = ?1"),
    };
    let sql = match person.role {
        Role::Admin => format!("SELECT ?2 WHERE EXISTS ({projects})"),
        _ => format!("SELECT 1 FROM members WHERE person_id = ?2 AND project_id IN ({projects})"),
    };
    match connection.prepare_cached(&sql)?.exists(params![id, person.id])? {
        true => Ok(()),
        false => Err(ApiError::not_found(format!("{what} {id} not found"))),
    }
}

/// Makes the members of a project members of another one, too.
pub fn copy(connection: &Connection, from: i64, to: i64) -> ApiResult<()> {
    let sql =
        "INSERT OR IGNORE INTO members (project_id, person_id) SELECT ?2, person_id FROM members WHERE project_id = ?1";
    connection.execute(sql, [from, to])?;
    Ok(())
}

/// The projects that a person sees; `None` for all.
pub fn projects_of(connection: &Connection, person: &Person) -> ApiResult<Option<BTreeSet<i64>>> {
    if person.role == Role::Admin {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached("SELECT project_id FROM members WHERE person_id = ?1")?;
    let rows = statement.query_map([person.id], |row| row.get(0))?;
    Ok(Some(rows.collect::<rusqlite::Result<_>>()?))
}

/// The members of a project, by account number.
pub fn all(connection: &Connection, project: i64) -> ApiResult<Vec<Person>> {
    let sql = "SELECT person_id FROM members WHERE project_id = ?1 ORDER BY person_id";
    let mut statement = connection.prepare_cached(sql)?;
    let ids = statement.query_map([project], |row| row.get::<_, i64>(0))?;
    ids.map(|id| people::get(connection, id?)).collect()
}

/// Adds a member.
pub fn add(connection: &Connection, project: i64, person: i64) -> ApiResult<()> {
    let sql = "INSERT OR IGNORE INTO members (project_id, person_id) VALUES (?1, ?2)";
    connection.execute(sql, params![project, person])?;
    Ok(())
}

/// Removes a member; false if there was none.
pub fn remove(connection: &Connection, project: i64, person: i64) -> ApiResult<bool> {
    let sql = "DELETE FROM members WHERE project_id = ?1 AND person_id = ?2";
    Ok(connection.execute(sql, params![project, person])? > 0)
}
