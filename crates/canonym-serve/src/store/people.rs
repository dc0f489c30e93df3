//! Who works here, and the keys by which they are known.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{ApiError, ApiResult};
use crate::times::Millis;

/// What somebody may do. Each may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Decides on marks.
    Annotator,
    /// Makes projects, imports, starts jobs and chooses models.
    Curator,
    /// Adds people.
    Admin,
}

impl Role {
    fn word(self) -> &'static str {
        match self {
            Role::Annotator => "annotator",
            Role::Curator => "curator",
            Role::Admin => "admin",
        }
    }

    fn of(word: &str) -> Role {
        match word {
            "admin" => Role::Admin,
            "curator" => Role::Curator,
            _ => Role::Annotator,
        }
    }
}

/// Somebody who works here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Person {
    /// The number.
    pub id: i64,
    /// The name.
    pub name: String,
    /// What they may do.
    pub role: Role,
}

/// The name of the one who works where there are no accounts.
pub const LOCAL: &str = "local";

fn person(row: &Row<'_>) -> rusqlite::Result<Person> {
    Ok(Person { id: row.get(0)?, name: row.get(1)?, role: Role::of(&row.get::<_, String>(2)?) })
}

/// Makes sure that there is somebody to work where there are no accounts.
pub fn ensure_local(connection: &Connection, at: Millis) -> ApiResult<()> {
    let sql = "INSERT OR IGNORE INTO people (id, name, role, password, made_at) VALUES (0, ?1, 'admin', NULL, ?2)";
    connection.execute(sql, params![LOCAL, at])?;
    Ok(())
}

/// Whether anybody has a password.
pub fn has_accounts(connection: &Connection) -> ApiResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM people WHERE password IS NOT NULL)";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Whether an administrator has a password.
pub fn has_admin(connection: &Connection) -> ApiResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM people WHERE password IS NOT NULL AND role = 'admin')";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Everybody, in the order in which they came.
pub fn all(connection: &Connection) -> ApiResult<Vec<Person>> {
    let mut statement = connection.prepare_cached("SELECT id, name, role FROM people ORDER BY id")?;
    let rows = statement.query_map([], person)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Adds somebody, or gives somebody a new password and role.
pub fn put(connection: &Connection, name: &str, (role, password): (Role, &str), at: Millis) -> ApiResult<Person> {
    let sql = "INSERT INTO people (name, role, password, made_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (name) DO UPDATE SET role = ?2, password = ?3";
    connection.execute(sql, params![name, role.word(), password, at])?;
    by_name(connection, name)?.map(|(person, _)| person).ok_or_else(|| ApiError::internal(&"a person vanished"))
}

/// Somebody and the hash of the password.
pub fn by_name(connection: &Connection, name: &str) -> ApiResult<Option<(Person, Option<String>)>> {
    let sql = "SELECT id, name, role, password FROM people WHERE name = ?1";
    Ok(connection.query_row(sql, [name], |row| Ok((person(row)?, row.get(3)?))).optional()?)
}

/// The one of the lowest number, who works where there are no accounts.
pub fn local(connection: &Connection) -> ApiResult<Person> {
    Ok(connection.query_row("SELECT id, name, role FROM people WHERE id = 0", [], person)?)
}

/// Keeps the hash of a key.
pub fn add_key(
    connection: &Connection,
    (hash, kind, name): (&str, &str, &str),
    person: i64,
    (at, expires): (Millis, Option<Millis>),
) -> ApiResult<()> {
    let sql = "INSERT INTO keys (hash, person_id, kind, name, expires_at, made_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.execute(sql, params![hash, person, kind, name, expires, at])?;
    Ok(())
}

/// Forgets a key, and all that are past their time.
pub fn remove_key(connection: &Connection, hash: &str, at: Millis) -> ApiResult<()> {
    connection.execute("DELETE FROM keys WHERE hash = ?1 OR expires_at < ?2", params![hash, at])?;
    Ok(())
}

/// Who holds a key of a kind.
pub fn by_key(connection: &Connection, hash: &str, kind: &str, at: Millis) -> ApiResult<Option<Person>> {
    let sql = "SELECT people.id, people.name, people.role FROM keys JOIN people ON people.id = keys.person_id
        WHERE keys.hash = ?1 AND keys.kind = ?2 AND (keys.expires_at IS NULL OR keys.expires_at > ?3)";
    Ok(connection.query_row(sql, params![hash, kind, at], person).optional()?)
}
