//! Documents that annotators work on blind: who has a copy of which document.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::ApiResult;

/// A copy of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// The annotator.
    pub person: i64,
    /// The copy.
    pub copy: i64,
    /// Whether the annotator finished it.
    pub is_finished: bool,
    /// Whether the answers of all annotators were taken over into the original.
    pub is_collected: bool,
}

/// Assigns a document to a person, who works on a copy of it.
pub fn add(connection: &Connection, document: i64, person: i64, copy: i64) -> ApiResult<()> {
    let sql = "INSERT INTO assignments (document_id, person_id, copy_id) VALUES (?1, ?2, ?3)";
    connection.execute(sql, [document, person, copy])?;
    Ok(())
}

/// The original of a copy.
pub fn original_of(connection: &Connection, copy: i64) -> ApiResult<Option<i64>> {
    let sql = "SELECT document_id FROM assignments WHERE copy_id = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([copy], |row| row.get(0)).optional()?)
}

/// The copies of a document, by account number.
pub fn of_document(connection: &Connection, document: i64) -> ApiResult<Vec<Assigned>> {
    let sql = "SELECT a.person_id, a.copy_id, d.is_finished, a.is_collected FROM assignments a
        JOIN documents d ON d.id = a.copy_id WHERE a.document_id = ?1 ORDER BY a.person_id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([document], |row| {
        Ok(Assigned { person: row.get(0)?, copy: row.get(1)?, is_finished: row.get(2)?, is_collected: row.get(3)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Records that the answers of all annotators of a document were taken over.
pub fn set_collected(connection: &Connection, document: i64) -> ApiResult<()> {
    connection.execute("UPDATE assignments SET is_collected = 1 WHERE document_id = ?1", [document])?;
    Ok(())
}

/// The assigned documents of a project, in import order.
pub fn documents(connection: &Connection, project: i64) -> ApiResult<Vec<i64>> {
    let sql = "SELECT DISTINCT a.document_id FROM assignments a JOIN documents d ON d.id = a.document_id
        WHERE d.project_id = ?1 ORDER BY 1";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The unfinished documents of a project that nobody is assigned to, in import order.
pub fn unassigned(connection: &Connection, project: i64) -> ApiResult<Vec<i64>> {
    let sql = "SELECT d.id FROM documents d WHERE d.project_id = ?1 AND d.is_finished = 0
        AND NOT EXISTS (SELECT 1 FROM assignments a WHERE a.document_id = d.id) ORDER BY d.id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The progress of an annotator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The annotator.
    pub person: i64,
    /// The project of the copies.
    pub project: i64,
    /// Assigned documents.
    pub n_documents: usize,
    /// Finished ones.
    pub n_finished: usize,
    /// Decisions.
    pub n_decisions: usize,
}

/// The progress of the annotators of a project, by account number.
pub fn progress(connection: &Connection, project: i64) -> ApiResult<Vec<Progress>> {
    let sql = "SELECT p.annotator_id, p.id,
            (SELECT count(*) FROM documents d WHERE d.project_id = p.id),
            (SELECT count(*) FROM documents d WHERE d.project_id = p.id AND d.is_finished = 1),
            (SELECT coalesce(sum(c.n), 0) FROM decision_counts c WHERE c.project_id = p.id)
        FROM projects p WHERE p.parent_id = ?1 ORDER BY p.annotator_id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| {
        Ok(Progress {
            person: row.get(0)?,
            project: row.get(1)?,
            n_documents: row.get::<_, i64>(2)? as usize,
            n_finished: row.get::<_, i64>(3)? as usize,
            n_decisions: row.get::<_, i64>(4)? as usize,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The projects of the annotators of a project, by annotator.
pub fn children(connection: &Connection, project: i64) -> ApiResult<HashMap<i64, i64>> {
    Ok(progress(connection, project)?.into_iter().map(|one| (one.person, one.project)).collect())
}

/// Makes a project the one in which a person annotates copies of the documents of another.
pub fn set_parent(connection: &Connection, project: i64, parent: i64, annotator: i64) -> ApiResult<()> {
    let sql = "UPDATE projects SET parent_id = ?2, annotator_id = ?3,
        model_id = (SELECT model_id FROM projects WHERE id = ?2) WHERE id = ?1";
    connection.execute(sql, params![project, parent, annotator])?;
    Ok(())
}

/// Gives the projects of annotators the guideline and description of the one above them.
pub fn update_children(connection: &Connection, project: i64) -> ApiResult<()> {
    let sql = "UPDATE projects SET (description, guideline) = (SELECT p.description, p.guideline FROM projects p
        WHERE p.id = ?1) WHERE parent_id = ?1";
    connection.execute(sql, [project])?;
    Ok(())
}

/// The unfinished copies of a person in a project, with their originals.
pub fn unfinished(connection: &Connection, project: i64, person: i64) -> ApiResult<Vec<(i64, i64)>> {
    let sql = "SELECT a.document_id, a.copy_id FROM assignments a JOIN documents o ON o.id = a.document_id
        JOIN documents d ON d.id = a.copy_id
        WHERE o.project_id = ?1 AND a.person_id = ?2 AND d.is_finished = 0 ORDER BY 1";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project, person], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The copies of documents that are selected by the column `of`.
pub fn copies(connection: &Connection, of: &str, number: i64) -> ApiResult<Vec<i64>> {
    let sql =
        format!("SELECT copy_id FROM assignments WHERE document_id IN (SELECT id FROM documents WHERE {of} = ?1)");
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([number], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Removes the assignments of documents, and those of copies, that are selected by the column `of`.
pub fn delete(connection: &Connection, of: &str, number: i64) -> ApiResult<()> {
    let documents = format!("(SELECT id FROM documents WHERE {of} = ?1)");
    let sql = format!("DELETE FROM assignments WHERE document_id IN {documents} OR copy_id IN {documents}");
    connection.execute(&sql, [number])?;
    Ok(())
}
