//! Models: that of the server, and those that projects trained.

use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{found, stored};
use crate::engine::{DevFigures, Trained};
use crate::error::ApiResult;
use crate::times::{Millis, rfc3339};
use crate::wire::Model;

/// A model as it is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptModel {
    /// What is shown of it; `is_current` is not decided yet.
    pub model: Model,
    /// Where it lies; `None` for that of the server.
    pub folder: Option<PathBuf>,
}

const COLUMNS: &str = "SELECT id, name, project_id, parent_id, folder, card, dev, made_at FROM models";

fn kept(row: &Row<'_>) -> rusqlite::Result<KeptModel> {
    let id = row.get(0)?;
    let has_figures = row.get::<_, Option<String>>(6)?.is_some();
    let folder: Option<String> = row.get(4)?;
    let model = Model {
        id,
        name: row.get(1)?,
        project_id: row.get(2)?,
        is_current: false,
        made_at: rfc3339(row.get(7)?),
        parent: row.get(3)?,
        card: row.get(5)?,
        dev: if has_figures { Some(stored::<DevFigures>(row, 6, ("models", id))?) } else { None },
    };
    Ok(KeptModel { model, folder: folder.map(PathBuf::from) })
}

/// The number of the model that the server was started with; a row is made for each name.
pub fn ensure_base(connection: &Connection, name: &str, at: Millis) -> ApiResult<i64> {
    let sql = "SELECT id FROM models WHERE folder IS NULL AND name = ?1";
    if let Some(id) = connection.query_row(sql, [name], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    let sql = "INSERT INTO models (name, card, made_at) VALUES (?1, 'The model that the server was started with.', ?2)";
    connection.execute(sql, params![name, at])?;
    Ok(connection.last_insert_rowid())
}

/// The models that a project may use, oldest first.
pub fn of_project(connection: &Connection, project: i64) -> ApiResult<Vec<KeptModel>> {
    let sql = format!("{COLUMNS} WHERE project_id IS NULL OR project_id = ?1 ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([project], kept)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One model.
pub fn get(connection: &Connection, id: i64) -> ApiResult<KeptModel> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?;
    found(statement.query_row([id], kept), &format!("model {id}"))
}

/// Keeps a model that was trained; its number.
pub fn add(
    connection: &Connection,
    (project, parent): (i64, Option<i64>),
    (folder, trained): (&str, &Trained),
    at: Millis,
) -> ApiResult<i64> {
    let dev = trained.dev.as_ref().map(serde_json::to_string).transpose()?;
    let sql = "INSERT INTO models (name, project_id, parent_id, folder, card, dev, made_at)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    connection.execute(sql, params![trained.name, project, parent, folder, trained.card, dev, at])?;
    Ok(connection.last_insert_rowid())
}
