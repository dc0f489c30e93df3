//! Accounts, and the keys of sessions, tokens and known browsers.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{or_not_found, parse_name};
use crate::error::{ApiError, ApiResult};
use crate::times::{Millis, rfc3339};
use crate::wire::{LOCAL, Person, Role, TokenRow};

/// Changes to an account.
#[derive(Debug, Clone, Default)]
pub struct PersonChange {
    /// The role.
    pub role: Option<Role>,
    /// The hash of a new password.
    pub password: Option<String>,
    /// Whether it can sign in.
    pub is_active: Option<bool>,
}

fn person(row: &Row<'_>) -> rusqlite::Result<Person> {
    let id = row.get(0)?;
    let role = parse_name(row, 2, "people", id, Role::parse)?;
    Ok(Person { id, name: row.get(1)?, role, is_active: row.get(3)? })
}

/// Makes sure that the local user exists.
pub fn ensure_local(connection: &Connection, at: Millis) -> ApiResult<()> {
    let sql = "INSERT OR IGNORE INTO people (id, name, role, password, made_at) VALUES (0, ?1, 'admin', NULL, ?2)";
    connection.execute(sql, params![LOCAL, at])?;
    Ok(())
}

/// Whether any account has a password.
pub fn has_accounts(connection: &Connection) -> ApiResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM people WHERE password IS NOT NULL)";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// Whether an active admin exists.
pub fn has_admin(connection: &Connection) -> ApiResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM people WHERE password IS NOT NULL AND role = 'admin' AND is_active)";
    Ok(connection.query_row(sql, [], |row| row.get(0))?)
}

/// All accounts, in order of creation.
pub fn all(connection: &Connection) -> ApiResult<Vec<Person>> {
    let mut statement = connection.prepare_cached("SELECT id, name, role, is_active FROM people ORDER BY id")?;
    let rows = statement.query_map([], person)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The names of all accounts by number.
pub fn names(connection: &Connection) -> ApiResult<HashMap<i64, String>> {
    Ok(all(connection)?.into_iter().map(|person| (person.id, person.name)).collect())
}

/// Adds an account, or sets the password and role of an existing one and revokes its keys.
pub fn put(connection: &Connection, name: &str, role: Role, password: &str, at: Millis) -> ApiResult<Person> {
    let sql = "INSERT INTO people (name, role, password, made_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (name) DO UPDATE SET role = ?2, password = ?3, is_active = 1";
    connection.execute(sql, params![name, role.name(), password, at])?;
    let person = by_name(connection, name)?.map(|(person, _)| person);
    let person = person.ok_or_else(|| ApiError::internal(&"the account no longer exists"))?;
    remove_keys(connection, person.id, "")?;
    Ok(person)
}

/// An account with its password hash.
pub fn by_name(connection: &Connection, name: &str) -> ApiResult<Option<(Person, Option<String>)>> {
    let sql = "SELECT id, name, role, is_active, password FROM people WHERE name = ?1";
    Ok(connection.query_row(sql, [name], |row| Ok((person(row)?, row.get(4)?))).optional()?)
}

/// An account by number.
pub fn get(connection: &Connection, id: i64) -> ApiResult<Person> {
    let row = connection.query_row("SELECT id, name, role, is_active FROM people WHERE id = ?1", [id], person);
    or_not_found(row, &format!("person {id}"))
}

/// Changes the given fields.
pub fn change(connection: &Connection, id: i64, change: &PersonChange) -> ApiResult<()> {
    let sql = "UPDATE people SET role = coalesce(?2, role), password = coalesce(?3, password),
        is_active = coalesce(?4, is_active) WHERE id = ?1";
    connection.execute(sql, params![id, change.role.map(Role::name), change.password, change.is_active])?;
    Ok(())
}

/// The local user.
pub fn local(connection: &Connection) -> ApiResult<Person> {
    Ok(connection.query_row("SELECT id, name, role, is_active FROM people WHERE id = 0", [], person)?)
}

/// A key of an account: a session, a token or a known browser.
#[derive(Debug, Clone, Copy)]
pub struct NewKey<'a> {
    /// The hash of the key.
    pub hash: &'a str,
    /// `session`, `token` or `device`.
    pub kind: &'a str,
    /// The name of a token; empty otherwise.
    pub name: &'a str,
    /// When it expires; never if `None`.
    pub expires: Option<Millis>,
}

/// Stores a key.
pub fn add_key(connection: &Connection, person: i64, key: &NewKey<'_>, at: Millis) -> ApiResult<()> {
    let sql = "INSERT INTO keys (hash, person_id, kind, name, expires_at, made_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.execute(sql, params![key.hash, person, key.kind, key.name, key.expires, at])?;
    Ok(())
}

/// Deletes a key, and all expired ones.
pub fn remove_key(connection: &Connection, hash: &str, at: Millis) -> ApiResult<()> {
    connection.execute("DELETE FROM keys WHERE hash = ?1 OR expires_at < ?2", params![hash, at])?;
    Ok(())
}

/// The holder of a key.
pub fn by_key(connection: &Connection, hash: &str, kind: &str, at: Millis) -> ApiResult<Option<Person>> {
    let sql = "SELECT people.id, people.name, people.role, people.is_active FROM keys JOIN people ON people.id = keys.person_id
        WHERE keys.hash = ?1 AND keys.kind = ?2 AND (keys.expires_at IS NULL OR keys.expires_at > ?3)
            AND people.is_active";
    Ok(connection.query_row(sql, params![hash, kind, at], person).optional()?)
}

/// Characters of the hash that identify a token.
const TOKEN_ID: usize = 16;

/// The tokens of an account, oldest first.
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

/// Revokes a token; false if there was none.
pub fn remove_token(connection: &Connection, person: i64, id: &str) -> ApiResult<bool> {
    let sql = "DELETE FROM keys WHERE person_id = ?1 AND kind = 'token' AND substr(hash, 1, ?2) = ?3";
    Ok(connection.execute(sql, params![person, TOKEN_ID as i64, id])? > 0)
}

/// Deletes the known browsers of an account except the last `limit`.
pub fn keep_last_devices(connection: &Connection, person: i64, limit: usize) -> ApiResult<()> {
    let sql = "DELETE FROM keys WHERE person_id = ?1 AND kind = 'device' AND hash NOT IN
        (SELECT hash FROM keys WHERE person_id = ?1 AND kind = 'device' ORDER BY made_at DESC, rowid DESC LIMIT ?2)";
    connection.execute(sql, params![person, limit as i64])?;
    Ok(())
}

/// Deletes all keys of an account except the one with this hash.
pub fn remove_keys(connection: &Connection, person: i64, but: &str) -> ApiResult<()> {
    connection.execute("DELETE FROM keys WHERE person_id = ?1 AND hash <> ?2", params![person, but])?;
    Ok(())
}
