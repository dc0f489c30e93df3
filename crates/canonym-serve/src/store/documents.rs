//! Documents and their marks.

use canonym_core::active::Unreviewed;
use std::collections::BTreeMap;

use canonym_core::corpus::{AnnotatedDocument, Argument, Attribute, Relation, Residue};
use canonym_core::text::{Document, Section, Span};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::checksums::checksum;
use super::{assignments, next_number, or_not_found, parse_json, reserve_numbers};
use crate::engine::Split;
use crate::error::{ApiError, ApiResult};
use crate::marks::MarkState;
use crate::wire::MetadataEntry;

/// The other content of an imported document, stored for export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedContent {
    sections: Vec<(String, u32, u32)>,
    relations: Vec<StoredRelation>,
    attributes: Vec<(String, String)>,
    residue: Option<(String, serde_json::Value)>,
}

/// A relation: key, kind, arguments, attributes.
type StoredRelation = (String, String, Vec<(String, String)>, Vec<(String, String)>);

impl ImportedContent {
    /// The other content of a document.
    pub fn of_document(read: &AnnotatedDocument) -> ImportedContent {
        let pairs = |attributes: &[Attribute]| -> Vec<(String, String)> {
            attributes.iter().map(|one| (one.name.clone(), one.value.clone())).collect()
        };
        let section = |one: &Section| (one.kind.clone(), one.span.start, one.span.end);
        let relation = |one: &Relation| {
            let arguments = one.arguments.iter().map(|end| (end.role.clone(), end.target.clone())).collect();
            (one.key.clone(), one.kind.clone(), arguments, pairs(&one.attributes))
        };
        ImportedContent {
            sections: read.document.sections.iter().map(section).collect(),
            relations: read.relations.iter().map(relation).collect(),
            attributes: pairs(&read.attributes),
            residue: read.residue.as_ref().map(|rest| (rest.format.name().to_owned(), rest.content.clone())),
        }
    }

    /// The attributes of the document.
    pub fn metadata(&self) -> Vec<MetadataEntry> {
        let entry = |(name, value): &(String, String)| MetadataEntry { name: name.clone(), value: value.clone() };
        self.attributes.iter().map(entry).collect()
    }

    /// What only the format of the source can hold; fails if that format is unknown.
    pub fn residue(&self) -> canonym_core::Result<Option<Box<Residue>>> {
        let residue = self.residue.as_ref();
        residue
            .map(|(format, content)| Ok(Box::new(Residue { format: format.parse()?, content: content.clone() })))
            .transpose()
    }

    /// The sections of the text.
    pub fn sections(&self) -> Vec<Section> {
        let section = |(kind, start, end): &(String, u32, u32)| Section {
            kind: kind.clone(),
            span: Span { start: *start, end: *end },
        };
        self.sections.iter().map(section).collect()
    }
}

impl StoredDocument {
    /// The document as imported, without annotations.
    pub fn restore(&self) -> ApiResult<AnnotatedDocument> {
        let attributes = |pairs: &[(String, String)]| -> Vec<Attribute> {
            pairs.iter().map(|(name, value)| Attribute { name: name.clone(), value: value.clone() }).collect()
        };
        let argument = |(role, target): &(String, String)| Argument { role: role.clone(), target: target.clone() };
        let relation = |(key, kind, arguments, pairs): &StoredRelation| Relation {
            key: key.clone(),
            kind: kind.clone(),
            arguments: arguments.iter().map(argument).collect(),
            attributes: attributes(pairs),
        };
        let residue = self.content.residue().map_err(|error| {
            ApiError::damaged(&format!("cannot read row {} of table `documents`: {error}", self.id))
        })?;
        let sections = self.content.sections();
        Ok(AnnotatedDocument {
            document: Document { id: self.external_id.clone(), text: self.text.clone(), sections },
            annotations: Vec::new(),
            relations: self.content.relations.iter().map(relation).collect(),
            attributes: attributes(&self.content.attributes),
            residue,
        })
    }
}

/// A stored document.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDocument {
    /// The number.
    pub id: i64,
    /// The project.
    pub project: i64,
    /// The ID in the source file.
    pub external_id: String,
    /// The text.
    pub text: String,
    /// Its other content.
    pub content: ImportedContent,
    /// Whether it is finished.
    pub is_finished: bool,
    /// The number of its last event.
    pub version: i64,
    /// What trainings used it for.
    pub split: Option<Split>,
}

const COLUMNS: &str = "SELECT id, project_id, external_id, text, beside, is_finished, version, split FROM documents";

fn document_of(row: &Row<'_>) -> rusqlite::Result<StoredDocument> {
    let id = row.get(0)?;
    Ok(StoredDocument {
        id,
        project: row.get(1)?,
        external_id: row.get(2)?,
        text: row.get(3)?,
        content: parse_json(row, 4, "documents", id)?,
        is_finished: row.get(5)?,
        version: row.get(6)?,
        split: row.get::<_, Option<String>>(7)?.as_deref().and_then(Split::parse),
    })
}

/// One document.
pub fn get(connection: &Connection, id: i64) -> ApiResult<StoredDocument> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE id = ?1"))?;
    or_not_found(statement.query_row([id], document_of), &format!("document {id}"))
}

/// Records what a training used documents for, unless an earlier one did.
pub fn set_split(connection: &Connection, numbers: &[i64], split: Split) -> ApiResult<()> {
    let mut statement = connection.prepare_cached("UPDATE documents SET split = ?2 WHERE id = ?1 AND split IS NULL")?;
    for number in numbers {
        statement.execute(params![number, split.name()])?;
    }
    Ok(())
}

/// Whether a document is finished.
pub fn is_finished(connection: &Connection, id: i64) -> ApiResult<bool> {
    let sql = "SELECT is_finished FROM documents WHERE id = ?1";
    Ok(connection.prepare_cached(sql)?.query_row([id], |row| row.get(0))?)
}

/// The text of a document.
pub fn text(connection: &Connection, id: i64) -> ApiResult<String> {
    let mut statement = connection.prepare_cached("SELECT text FROM documents WHERE id = ?1")?;
    or_not_found(statement.query_row([id], |row| row.get(0)), &format!("document {id}"))
}

/// Up to `limit` documents of a project after the one numbered `after`, optionally only unfinished or finished ones.
pub fn page(
    connection: &Connection,
    project: i64,
    after: i64,
    limit: usize,
    finished: Option<bool>,
) -> ApiResult<Vec<StoredDocument>> {
    let state = match finished {
        None => "",
        Some(true) => "AND is_finished = 1",
        Some(false) => "AND is_finished = 0",
    };
    let sql = format!("{COLUMNS} WHERE project_id = ?1 AND id > ?2 {state} ORDER BY id LIMIT ?3");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params![project, after, limit as i64], document_of)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// An unfinished document, with what the queue is ordered by.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// The document.
    pub id: i64,
    /// What the sampling strategies order it by.
    pub waiting: Unreviewed,
}

/// The unreviewed predictions of a document, in the column order of their index.
pub(super) const IS_OPEN: &str = "m.document_id = d.id AND m.is_deleted = 0 AND m.state = 'open' AND m.source = 'PRED'";

/// The unfinished documents of a project, in order, with the minimum of `measure`, an SQL expression, over their unreviewed predictions.
pub fn unfinished(connection: &Connection, project: i64, measure: &str) -> ApiResult<Vec<Unfinished>> {
    let sql = format!(
        "SELECT d.id, (SELECT min({measure}) FROM marks m WHERE {IS_OPEN}),
            EXISTS (SELECT 1 FROM marks m WHERE m.document_id = d.id AND m.was_read)
        FROM documents d WHERE d.project_id = ?1 AND d.is_finished = 0 ORDER BY d.id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([project], |row| {
        let waiting = Unreviewed { min_confidence: row.get(1)?, is_annotated: row.get(2)? };
        Ok(Unfinished { id: row.get(0)?, waiting })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The numbers of the finished documents of a project, in order.
pub fn finished(connection: &Connection, project: i64) -> ApiResult<Vec<i64>> {
    let sql = "SELECT id FROM documents WHERE project_id = ?1 AND is_finished = 1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The numbers of all documents of a project, in order.
pub fn numbers(connection: &Connection, project: i64) -> ApiResult<Vec<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM documents WHERE project_id = ?1 ORDER BY id")?;
    let rows = statement.query_map([project], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// `wanted`, or if that ID is taken, the first free one of `wanted-2`, `wanted-3` …
pub fn free_id(connection: &Connection, project: i64, wanted: &str) -> ApiResult<String> {
    let sql = "SELECT 1 FROM documents WHERE project_id = ?1 AND external_id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut id = wanted.to_owned();
    let mut number = 1;
    while statement.exists(params![project, id])? {
        number += 1;
        id = format!("{wanted}-{number}");
    }
    Ok(id)
}

/// Adds a document; `None` if the ID is taken.
pub fn add(connection: &Connection, project: i64, read: &AnnotatedDocument) -> ApiResult<Option<i64>> {
    let sql = "SELECT 1 FROM documents WHERE project_id = ?1 AND external_id = ?2";
    let is_there = connection.prepare_cached(sql)?.exists(params![project, read.document.id])?;
    if is_there {
        return Ok(None);
    }
    let content = serde_json::to_string(&ImportedContent::of_document(read))?;
    let sql = "INSERT INTO documents (id, project_id, external_id, text, beside, is_finished, version, text_checksum)
        VALUES (?5, ?1, ?2, ?3, ?4, 0, 0, ?6)";
    let number = next_number(connection, "documents")?;
    let Document { id, text, .. } = &read.document;
    connection.prepare_cached(sql)?.execute(params![project, id, text, content, number, checksum(text)])?;
    Ok(Some(connection.last_insert_rowid()))
}

/// Renames a document; false if the ID is taken.
pub fn rename(connection: &Connection, stored: &StoredDocument, external_id: &str) -> ApiResult<bool> {
    let sql = "SELECT 1 FROM documents WHERE project_id = ?1 AND external_id = ?2 AND id <> ?3";
    if connection.prepare_cached(sql)?.exists(params![stored.project, external_id, stored.id])? {
        return Ok(false);
    }
    connection.execute("UPDATE documents SET external_id = ?2 WHERE id = ?1", params![stored.id, external_id])?;
    Ok(true)
}

/// Deletes documents with their events and marks; `of` is the column that selects them by number. What is derived from the events of their project
/// must be rebuilt afterwards.
pub fn delete(connection: &Connection, of: &str, number: i64) -> ApiResult<()> {
    reserve_numbers(connection, "documents")?;
    // Copies for blind annotation go with their original.
    for copy in assignments::copies(connection, of, number)? {
        assignments::delete(connection, "id", copy)?;
        delete(connection, "id", copy)?;
    }
    assignments::delete(connection, of, number)?;
    let sql = format!(
        "UPDATE proposals SET document_id = NULL WHERE document_id IN (SELECT id FROM documents WHERE {of} = ?1)"
    );
    connection.execute(&sql, [number])?;
    for table in ["times", "comments", "answers", "marks", "events"] {
        let sql = format!("DELETE FROM {table} WHERE document_id IN (SELECT id FROM documents WHERE {of} = ?1)");
        connection.execute(&sql, [number])?;
    }
    connection.execute(&format!("DELETE FROM documents WHERE {of} = ?1"), [number])?;
    Ok(())
}

/// A mark with the last event that changed it.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMark {
    /// The event.
    pub event: i64,
    /// The mark.
    pub mark: MarkState,
}

/// All marks of a document, hidden ones included.
pub fn marks(connection: &Connection, document: i64) -> ApiResult<BTreeMap<i64, StoredMark>> {
    let sql = "SELECT id, event_id, body FROM marks WHERE document_id = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([document])?;
    let mut marks = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let id = row.get(0)?;
        marks.insert(id, StoredMark { event: row.get(1)?, mark: parse_json(row, 2, "marks", id)? });
    }
    Ok(marks)
}

/// The unreviewed predictions of a document.
pub fn open_marks(connection: &Connection, document: i64) -> ApiResult<Vec<MarkState>> {
    let sql = format!("SELECT m.body, m.id FROM marks m JOIN documents d ON {IS_OPEN} WHERE d.id = ?1 ORDER BY m.id");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([document])?;
    let mut marks = Vec::new();
    while let Some(row) = rows.next()? {
        marks.push(parse_json(row, 0, "marks", row.get(1)?)?);
    }
    Ok(marks)
}

/// A mark of a concept.
#[derive(Debug, Clone, PartialEq)]
pub struct ConceptMention {
    /// The document.
    pub document: i64,
    /// The number of the mark.
    pub id: i64,
    /// The mark.
    pub mark: MarkState,
}

/// Where a list of mentions goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MentionCursor {
    /// The document of the last mention.
    pub document: i64,
    /// The mark of the last mention.
    pub mark: i64,
}

/// Up to `limit` visible marks of a concept in a project after the cursor.
pub fn mentions(
    connection: &Connection,
    project: i64,
    concept: &str,
    after: MentionCursor,
    limit: usize,
) -> ApiResult<Vec<ConceptMention>> {
    let sql = "SELECT m.document_id, m.id, m.body FROM marks m JOIN documents d ON d.id = m.document_id
        WHERE json_extract(m.body, '$.concept.id') = ?2 AND d.project_id = ?1 AND NOT m.is_deleted AND m.state <> 'rejected'
        AND (m.document_id, m.id) > (?3, ?4) ORDER BY m.document_id, m.id LIMIT ?5";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![project, concept, after.document, after.mark, limit as i64])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let id = row.get(1)?;
        found.push(ConceptMention { document: row.get(0)?, id, mark: parse_json(row, 2, "marks", id)? });
    }
    Ok(found)
}

/// The number of visible marks of a concept in a project, and of documents with one.
pub fn n_mentions(connection: &Connection, project: i64, concept: &str) -> ApiResult<(usize, usize)> {
    let sql = "SELECT count(*), count(DISTINCT m.document_id) FROM marks m JOIN documents d ON d.id = m.document_id
        WHERE json_extract(m.body, '$.concept.id') = ?2 AND d.project_id = ?1 AND NOT m.is_deleted AND m.state <> 'rejected'";
    let row = connection.query_row(sql, params![project, concept], |row| {
        Ok((row.get::<_, i64>(0)? as usize, row.get::<_, i64>(1)? as usize))
    });
    Ok(row?)
}

/// The document of a mark.
pub fn of_mark(connection: &Connection, mark: i64) -> ApiResult<i64> {
    let row =
        connection.query_row("SELECT document_id FROM marks WHERE id = ?1", [mark], |row| row.get(0)).optional()?;
    row.ok_or_else(|| ApiError::not_found(format!("mention {mark} not found")))
}

/// The marks of a document in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkCounts {
    /// Visible marks.
    pub n_marks: usize,
    /// Unreviewed predictions.
    pub n_open: usize,
}

/// Counts the marks of a document.
pub fn counts(connection: &Connection, document: i64) -> ApiResult<MarkCounts> {
    let sql = format!(
        "SELECT (SELECT count(*) FROM marks m WHERE m.document_id = d.id AND m.is_deleted = 0 AND m.state <> 'rejected'),
            (SELECT count(*) FROM marks m WHERE {IS_OPEN}) FROM documents d WHERE d.id = ?1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let counts = statement.query_row([document], |row| {
        Ok(MarkCounts { n_marks: row.get::<_, i64>(0)? as usize, n_open: row.get::<_, i64>(1)? as usize })
    })?;
    Ok(counts)
}
