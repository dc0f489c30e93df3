//! Jobs.

use rusqlite::{Connection, Row, params};

use super::{next_number, or_not_found, parse_json, parse_name};
use crate::engine::Progress;
use crate::error::{ApiError, ApiResult};
use crate::times::{Millis, rfc3339};
use crate::wire::{Job, JobState};

/// The error of a job that was running when the server stopped.
pub const STOPPED: &str = "the server was stopped";

const COLUMNS: &str =
    "SELECT id, project_id, kind, state, progress, message, error, started_at, ended_at, curve, model_id, settings
    FROM jobs";

fn job(row: &Row<'_>, now: Millis) -> rusqlite::Result<Job> {
    let (started, ended): (Option<Millis>, Option<Millis>) = (row.get(7)?, row.get(8)?);
    let id = row.get(0)?;
    let state = parse_name(row, 3, "jobs", id, JobState::parse)?;
    let progress: f64 = row.get(4)?;
    let passed = started.map_or(0, |started| now - started) as f64 / 1000.0;
    let is_known = state == JobState::Running && progress > 0.01;
    Ok(Job {
        id,
        project_id: row.get(1)?,
        kind: row.get(2)?,
        state,
        progress,
        message: row.get(5)?,
        error: row.get(6)?,
        started_at: started.map(rfc3339),
        ended_at: ended.map(rfc3339),
        eta_seconds: is_known.then(|| (passed * (1.0 - progress) / progress).round().max(0.0)),
        curve: parse_json(row, 9, "jobs", id)?,
        model: row.get(10)?,
        settings: parse_json(row, 11, "jobs", id)?,
    })
}

/// The jobs of a project, newest first.
pub fn of_project(connection: &Connection, project: i64, now: Millis) -> ApiResult<Vec<Job>> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE project_id = ?1 ORDER BY id DESC"))?;
    let rows = statement.query_map([project], |row| job(row, now))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One job.
pub fn get(connection: &Connection, id: i64, now: Millis) -> ApiResult<Job> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?;
    or_not_found(statement.query_row([id], |row| job(row, now)), &format!("job {id}"))
}

/// The settings of a job.
pub fn settings(connection: &Connection, id: i64) -> ApiResult<serde_json::Value> {
    let sql = "SELECT settings FROM jobs WHERE id = ?1";
    Ok(connection.query_row(sql, [id], |row| parse_json(row, 0, "jobs", id))?)
}

/// Adds a queued job; returns its number.
pub fn add(
    connection: &Connection,
    project: i64,
    kind: &str,
    settings: &serde_json::Value,
    at: Millis,
) -> ApiResult<i64> {
    let number = next_number(connection, "jobs")?;
    let sql = "INSERT INTO jobs (id, project_id, kind, state, progress, message, made_at, settings, curve)
        VALUES (?5, ?1, ?2, 'QUEUED', 0, 'queued', ?3, ?4, '[]')";
    connection.execute(sql, params![project, kind, at, settings.to_string(), number])?;
    Ok(connection.last_insert_rowid())
}

/// The oldest queued job.
pub fn next(connection: &Connection) -> ApiResult<Option<i64>> {
    use rusqlite::OptionalExtension;
    let sql = "SELECT id FROM jobs WHERE state = 'QUEUED' ORDER BY id LIMIT 1";
    Ok(connection.query_row(sql, [], |row| row.get(0)).optional()?)
}

/// Marks a queued job as running.
pub fn start(connection: &Connection, id: i64, at: Millis) -> ApiResult<bool> {
    let sql =
        "UPDATE jobs SET state = 'RUNNING', message = 'starting', started_at = ?2 WHERE id = ?1 AND state = 'QUEUED'";
    Ok(connection.execute(sql, params![id, at])? > 0)
}

/// Stores the progress of a job.
pub fn progress(connection: &Connection, id: i64, progress: &Progress) -> ApiResult<()> {
    let sql = "UPDATE jobs SET progress = ?2, message = ?3 WHERE id = ?1";
    connection.execute(sql, params![id, progress.done.clamp(0.0, 1.0), progress.message])?;
    if let Some(point) = &progress.point {
        let sql = "UPDATE jobs SET curve = json_insert(curve, '$[#]', json(?2)) WHERE id = ?1";
        connection.execute(sql, params![id, serde_json::to_string(point)?])?;
    }
    Ok(())
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// Succeeded, with a message and the trained model.
    Succeeded(String, Option<i64>),
    /// Failed.
    Failed(String),
    /// Cancelled.
    Cancelled,
}

/// Stores how a job ended.
pub fn end(connection: &Connection, id: i64, end: &End, at: Millis) -> ApiResult<()> {
    let (state, message, error, model) = match end {
        End::Succeeded(message, model) => ("SUCCEEDED", message.as_str(), None, *model),
        End::Failed(error) => ("FAILED", "failed", Some(error.as_str()), None),
        End::Cancelled => ("CANCELLED", "cancelled", None, None),
    };
    let sql = "UPDATE jobs SET state = ?2, message = ?3, error = ?4, model_id = ?5, ended_at = ?6,
        progress = CASE ?2 WHEN 'SUCCEEDED' THEN 1 ELSE progress END WHERE id = ?1";
    connection.execute(sql, params![id, state, message, error, model, at])?;
    Ok(())
}

/// Fails the jobs that were running when the server last stopped and returns them; queued jobs stay queued.
pub fn end_stopped(connection: &Connection, at: Millis) -> ApiResult<Vec<i64>> {
    let sql = "UPDATE jobs SET state = 'FAILED', message = 'failed', error = ?1, ended_at = ?2 WHERE state = 'RUNNING'
        RETURNING id";
    let mut statement = connection.prepare(sql)?;
    let ids = statement.query_map(params![STOPPED, at], |row| row.get(0))?;
    Ok(ids.collect::<Result<Vec<i64>, _>>()?)
}

/// Fails if a job of the project is queued or running.
pub fn check_idle(connection: &Connection, project: i64, now: Millis) -> ApiResult<()> {
    match of_project(connection, project, now)?.iter().find(|job| !job.state.is_over()) {
        None => Ok(()),
        Some(job) => Err(ApiError::conflict(format!("job {} is still running", job.id))
            .hint("wait for it or cancel it; nothing was deleted")),
    }
}
