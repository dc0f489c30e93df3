//! Who works here, and the keys by which they are known.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::found;
use crate::error::{ApiError, ApiResult};
use crate::times::{Millis, rfc3339};

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
    /// Its word.
    pub fn word(self) -> &'static str {
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
    /// Whether they may log in.
    pub is_active: bool,
}

/// What is to be changed of somebody.
#[derive(Debug, Clone, Default)]
pub struct PersonChange {
    /// What they may do.
    pub role: Option<Role>,
    /// The hash of a new password.
    pub password: Option<String>,
    /// Whether they may log in.
    pub is_active: Option<bool>,
}

/// A token as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct TokenRow {
    /// What tells it from others; the beginning of the hash, of which nobody can make the token.
    pub id: String,
    /// What it is for.
    pub name: String,
    /// When it was made.
    pub made_at: String,
    /// When it ends, where it does.
    pub expires_at: Option<String>,
}

/// The name of the one who works where there are no accounts.
pub const LOCAL: &str = "local";

fn person(row: &Row<'_>) -> rusqlite::Result<Person> {
    Ok(Person { id: row.get(0)?, name: row.get(1)?, role: Role::of(&row.get::<_, String>(2)?), is_active: row.get(3)? })
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

/// Whether an administrator may log in.
pub fn has_admin(connection: &Connection) -> ApiResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM people WHERE password IS NOT NULL AND role = 'admin' AND is_active)";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Everybody, in the order in which they came.
pub fn all(connection: &Connection) -> ApiResult<Vec<Person>> {
    let mut statement = connection.prepare_cached("SELECT id, name, role, is_active FROM people ORDER BY id")?;
    let rows = statement.query_map([], person)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Adds somebody, or gives somebody a new password and role; what they were logged in with before is worth nothing then.
pub fn put(connection: &Connection, name: &str, (role, password): (Role, &str), at: Millis) -> ApiResult<Person> {
    let sql = "INSERT INTO people (name, role, password, made_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (name) DO UPDATE SET role = ?2, password = ?3, is_active = 1";
    connection.execute(sql, params![name, role.word(), password, at])?;
    let person = by_name(connection, name)?.map(|(person, _)| person);
    let person = person.ok_or_else(|| ApiError::internal(&"a person vanished"))?;
    remove_keys(connection, person.id, "")?;
    Ok(person)
}

/// Somebody and the hash of the password.
pub fn by_name(connection: &Connection, name: &str) -> ApiResult<Option<(Person, Option<String>)>> {
    let sql = "SELECT id, name, role, is_active, password FROM people WHERE name = ?1";
    Ok(connection.query_row(sql, [name], |row| Ok((person(row)?, row.get(4)?))).optional()?)
}

/// Somebody by number.
pub fn get(connection: &Connection, id: i64) -> ApiResult<Person> {
    let row = connection.query_row("SELECT id, name, role, is_active FROM people WHERE id = ?1", [id], person);
    found(row, &format!("person {id}"))
}

/// Changes what is given.
pub fn change(connection: &Connection, id: i64, change: &PersonChange) -> ApiResult<()> {
    let sql = "UPDATE people SET role = coalesce(?2, role), password = coalesce(?3, password),
        is_active = coalesce(?4, is_active) WHERE id = ?1";
    connection.execute(sql, params![id, change.role.map(Role::word), change.password, change.is_active])?;
    Ok(())
}

/// The one of the lowest number, who works where there are no accounts.
pub fn local(connection: &Connection) -> ApiResult<Person> {
    Ok(connection.query_row("SELECT id, name, role, is_active FROM people WHERE id = 0", [], person)?)
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
    let sql = "SELECT people.id, people.name, people.role, people.is_active FROM keys JOIN people ON people.id = keys.person_id
        WHERE keys.hash = ?1 AND keys.kind = ?2 AND (keys.expires_at IS NULL OR keys.expires_at > ?3)
            AND people.is_active";
    Ok(connection.query_row(sql, params![hash, kind, at], person).optional()?)
}

/// Letters of a hash that name a token.
const TOKEN_ID: usize = 16;

/// The tokens of somebody, oldest first.
pub fn tokens(connection: &Connection, person: i64, at: Millis) -> ApiResult<Vec<TokenRow>> {
    let sql = "SELECT hash, name, made_at, expires_at FROM keys
        WHERE person_id = ?1 AND kind = 'token' AND (expires_at IS NULL OR expires_at > ?2) ORDER BY made_at, hash";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![person, at], |row| {
        Ok(TokenRow {
            id: row.get::<_, String>(0)?.chars().take(TOKEN_ID).collect(),
            name: row.get(1)?,
            made_at: rfc3339(row.get(2)?),
            expires_at: row.get::<_, Option<Millis>>(3)?.map(rfc3339),
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Forgets a token of somebody; whether there was one.
pub fn remove_token(connection: &Connection, person: i64, id: &str) -> ApiResult<bool> {
    let sql = "DELETE FROM keys WHERE person_id = ?1 AND kind = 'token' AND substr(hash, 1, ?2) = ?3";
    Ok(connection.execute(sql, params![person, TOKEN_ID as i64, id])? > 0)
}

/// Keeps the browser of somebody who logged in known, beside the last `limit` others.
pub fn add_device(
    connection: &Connection,
    person: i64,
    (hash, limit): (&str, usize),
    at: Millis,
    end: Millis,
) -> ApiResult<()> {
    add_key(connection, (hash, "device", ""), person, (at, Some(end)))?;
    let sql = "DELETE FROM keys WHERE person_id = ?1 AND kind = 'device' AND hash NOT IN
        (SELECT hash FROM keys WHERE person_id = ?1 AND kind = 'device' ORDER BY made_at DESC, rowid DESC LIMIT ?2)";
    connection.execute(sql, params![person, limit as i64])?;
    Ok(())
}

/// Forgets every key of somebody but the one with this hash.
pub fn remove_keys(connection: &Connection, person: i64, but: &str) -> ApiResult<()> {
    connection.execute("DELETE FROM keys WHERE person_id = ?1 AND hash <> ?2", params![person, but])?;
    Ok(())
}
