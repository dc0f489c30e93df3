//! Proposals for the terminology: new concepts and synonyms of a project.

use rusqlite::{Connection, Row, params};

use super::{next_number, or_not_found, parse_name, reserve_numbers};
use crate::error::ApiResult;
use crate::marks::Named;
use crate::times::Millis;
use crate::wire::{ProposalKind, SynonymScope};

/// The prefix of the IDs of proposed concepts.
pub const PREFIX: &str = "PROPOSED:";

/// A stored proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredProposal {
    /// The number.
    pub id: i64,
    /// What is proposed.
    pub kind: ProposalKind,
    /// The synonym, or the name of the new concept.
    pub name: String,
    /// The concept of a synonym, or the broader one of a new concept.
    pub other: Option<Named>,
    /// How a synonym relates to its concept.
    pub scope: SynonymScope,
    /// The semantic type.
    pub semantic_type: String,
    /// The definition.
    pub definition: String,
    /// The document where it was proposed.
    pub document: Option<i64>,
    /// The text around it there.
    pub evidence: String,
    /// Who proposed it.
    pub person: i64,
    /// When.
    pub at: Millis,
}

impl StoredProposal {
    /// The concept that mentions are linked to.
    pub fn concept(&self) -> Named {
        match (self.kind, &self.other) {
            (ProposalKind::Synonym, Some(concept)) => concept.clone(),
            _ => Named { id: format!("{PREFIX}{}", self.id), name: self.name.clone() },
        }
    }
}

const COLUMNS: &str = "SELECT id, kind, name, concept, concept_name, scope, type, definition, document_id, evidence,
    person_id, at FROM proposals";

fn proposal(row: &Row<'_>) -> rusqlite::Result<StoredProposal> {
    let id = row.get(0)?;
    let concept: Option<String> = row.get(3)?;
    let name: String = row.get(4)?;
    Ok(StoredProposal {
        id,
        kind: parse_name(row, 1, "proposals", id, ProposalKind::parse)?,
        name: row.get(2)?,
        other: concept.map(|id| Named { id, name }),
        scope: parse_name(row, 5, "proposals", id, SynonymScope::parse)?,
        semantic_type: row.get(6)?,
        definition: row.get(7)?,
        document: row.get(8)?,
        evidence: row.get(9)?,
        person: row.get(10)?,
        at: row.get(11)?,
    })
}

/// The project that keeps the proposals of a project: the one above it, if it holds the copies of an annotator.
pub fn keeper(connection: &Connection, project: i64) -> ApiResult<i64> {
    let sql = "SELECT coalesce(parent_id, id) FROM projects WHERE id = ?1";
    let row = connection.prepare_cached(sql)?.query_row([project], |row| row.get(0));
    or_not_found(row, &format!("project {project}"))
}

/// The proposals that a project uses, oldest first.
pub fn of_project(connection: &Connection, project: i64) -> ApiResult<Vec<StoredProposal>> {
    let project = keeper(connection, project)?;
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE project_id = ?1 ORDER BY id"))?;
    let rows = statement.query_map([project], proposal)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// One proposal that a project uses.
pub fn get(connection: &Connection, project: i64, id: i64) -> ApiResult<StoredProposal> {
    let project = keeper(connection, project)?;
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE project_id = ?1 AND id = ?2"))?;
    or_not_found(statement.query_row([project, id], proposal), &format!("proposal {id}"))
}

/// Adds a proposal; returns its number. That of `new` is ignored.
pub fn add(connection: &Connection, project: i64, new: &StoredProposal) -> ApiResult<i64> {
    let project = keeper(connection, project)?;
    let number = next_number(connection, "proposals")?;
    let sql = "INSERT INTO proposals (id, project_id, kind, name, concept, concept_name, scope, type, definition,
        document_id, evidence, person_id, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    connection.execute(
        sql,
        params![
            number,
            project,
            new.kind.name(),
            new.name,
            new.other.as_ref().map(|other| &other.id),
            new.other.as_ref().map(|other| other.name.as_str()).unwrap_or_default(),
            new.scope.name(),
            new.semantic_type,
            new.definition,
            new.document,
            new.evidence,
            new.person,
            new.at
        ],
    )?;
    Ok(connection.last_insert_rowid())
}

/// Deletes a proposal; its number is not used again.
pub fn delete(connection: &Connection, id: i64) -> ApiResult<()> {
    reserve_numbers(connection, "proposals")?;
    connection.execute("DELETE FROM proposals WHERE id = ?1", [id])?;
    Ok(())
}

/// Deletes the proposals of a project.
pub fn delete_of_project(connection: &Connection, project: i64) -> ApiResult<()> {
    reserve_numbers(connection, "proposals")?;
    connection.execute("DELETE FROM proposals WHERE project_id = ?1", [project])?;
    Ok(())
}

/// The number of reviewed mentions with a text and concept in a project and those below it.
pub fn n_reviewed(connection: &Connection, project: i64, concept: &str, name: Option<&str>) -> ApiResult<usize> {
    let sql = "SELECT count(*) FROM marks m JOIN documents d ON d.id = m.document_id
        JOIN projects p ON p.id = d.project_id
        WHERE json_extract(m.body, '$.concept.id') = ?2 AND (p.id = ?1 OR p.parent_id = ?1)
        AND NOT m.is_deleted AND m.state = 'accepted' AND (?3 IS NULL OR lower(json_extract(m.body, '$.text')) = lower(?3))";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row(params![project, concept, name], |row| row.get::<_, i64>(0))? as usize)
}
