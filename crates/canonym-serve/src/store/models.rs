//! Models: the base model of the server, and trained ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::{next_number, or_not_found, parse_json, reserve_numbers};
use crate::engine::{DevFigures, Trained};
use crate::error::ApiResult;
use crate::times::{Millis, rfc3339};
use crate::wire::Model;

/// A stored model.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredModel {
    /// The JSON of the model; `is_current` is not set yet.
    pub model: Model,
    /// The folder; `None` for the base model.
    pub folder: Option<PathBuf>,
    /// Scores of other models on the same held-out documents, by their numbers.
    pub others: BTreeMap<i64, DevFigures>,
}

/// Scores of a model and of others on the same documents.
#[derive(Default, Serialize, Deserialize)]
pub struct Figures {
    #[serde(flatten)]
    own: DevFigures,
    #[serde(default)]
    others: BTreeMap<i64, DevFigures>,
}

const COLUMNS: &str = "SELECT id, name, project_id, parent_id, folder, card, dev, made_at FROM models";

fn model_of(row: &Row<'_>) -> rusqlite::Result<StoredModel> {
    let id = row.get(0)?;
    let has_figures = row.get::<_, Option<String>>(6)?.is_some();
    let folder: Option<String> = row.get(4)?;
    let figures = if has_figures { Some(parse_json::<Figures>(row, 6, "models", id)?) } else { None };
    let (mut dev, others) = figures.map(|figures| (figures.own, figures.others)).unzip();
    let mut others: BTreeMap<i64, DevFigures> = others.unwrap_or_default();
    // Older scores have no fingerprint; those of one comparison are of the same documents.
    for figures in dev.iter_mut().chain(others.values_mut()) {
        figures.test_set.get_or_insert_with(|| format!("comparison {id}"));
    }
    let model = Model {
        id,
        name: row.get(1)?,
        project_id: row.get(2)?,
        is_current: false,
        made_at: rfc3339(row.get(7)?),
        parent: row.get(3)?,
        card: row.get(5)?,
        dev,
    };
    Ok(StoredModel { model, folder: folder.map(PathBuf::from), others })
}

/// The number of the base model; each name has a row.
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
pub fn of_project(connection: &Connection, project: i64) -> ApiResult<Vec<StoredModel>> {
    let sql = format!("{COLUMNS} WHERE project_id IS NULL OR project_id = ?1 ORDER BY id");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([project], model_of)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Renames a model.
pub fn rename(connection: &Connection, id: i64, name: &str) -> ApiResult<()> {
    connection.execute("UPDATE models SET name = ?2 WHERE id = ?1", params![id, name])?;
    Ok(())
}

/// Deletes a model; references from models and jobs are cleared.
pub fn delete(connection: &Connection, id: i64) -> ApiResult<()> {
    reserve_numbers(connection, "models")?;
    connection.execute("UPDATE models SET parent_id = NULL WHERE parent_id = ?1", [id])?;
    connection.execute("UPDATE jobs SET model_id = NULL WHERE model_id = ?1", [id])?;
    connection.execute("DELETE FROM models WHERE id = ?1", [id])?;
    Ok(())
}

/// One model.
pub fn get(connection: &Connection, id: i64) -> ApiResult<StoredModel> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?;
    or_not_found(statement.query_row([id], model_of), &format!("model {id}"))
}

/// A trained model that is not stored yet.
#[derive(Debug, Clone, Copy)]
pub struct NewModel<'a> {
    /// The project that trained it.
    pub project: i64,
    /// The model that the project used before.
    pub parent: i64,
    /// Its folder.
    pub folder: &'a str,
    /// The result of the training.
    pub trained: &'a Trained,
    /// Scores of other models on the same held-out documents, by their numbers.
    pub others: &'a BTreeMap<i64, DevFigures>,
}

/// Adds a trained model; returns its number.
pub fn add(connection: &Connection, new: &NewModel<'_>, at: Millis) -> ApiResult<i64> {
    let NewModel { project, parent, folder, trained, others } = *new;
    let figures = |own: &DevFigures| Figures { own: own.clone(), others: others.clone() };
    let dev = trained.dev.as_ref().map(|own| serde_json::to_string(&figures(own))).transpose()?;
    let sql = "INSERT INTO models (id, name, project_id, parent_id, folder, card, dev, made_at)
        VALUES (?8, ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let number = next_number(connection, "models")?;
    connection.execute(sql, params![trained.name, project, parent, folder, trained.card, dev, at, number])?;
    Ok(connection.last_insert_rowid())
}
