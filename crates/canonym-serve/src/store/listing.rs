//! Lists of the documents of a project: searched, filtered and sorted.

use rusqlite::{Connection, params};

use super::documents::{self, IS_OPEN, StoredDocument};
use crate::error::ApiResult;
use crate::wire::MetadataEntry;

/// The order of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Sort {
    /// As imported.
    #[default]
    Import,
    /// By ID.
    Id,
    /// By the number of unreviewed predictions.
    Open,
    /// By the number of annotations.
    Mentions,
    /// By the last change.
    Changed,
    /// By the length of the text.
    Length,
    /// By the value of an entry of the metadata; documents without it come last.
    Metadata(String),
}

/// The state of documents in a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DocumentState {
    /// All documents.
    #[default]
    All,
    /// Unfinished ones.
    Open,
    /// Finished ones.
    Finished,
    /// Those with unresolved comments.
    Commented,
    /// Those of the test set.
    HeldOut,
}

/// Which documents a list has, and their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Text in ID, text or metadata; empty for all documents.
    pub search: String,
    /// The state.
    pub state: DocumentState,
    /// An entry that the metadata must have.
    pub metadata: Option<(String, String)>,
    /// The order.
    pub sort: Sort,
    /// Whether the order is reversed.
    pub is_descending: bool,
}

/// Up to `limit` documents of a project from `offset` on.
pub fn list(
    connection: &Connection,
    project: i64,
    listing: &Listing,
    offset: usize,
    limit: usize,
) -> ApiResult<Vec<StoredDocument>> {
    let state = match listing.state {
        DocumentState::All => "",
        DocumentState::Open => "AND d.is_finished = 0",
        DocumentState::Finished => "AND d.is_finished = 1",
        DocumentState::HeldOut => "AND d.split = 'test'",
        DocumentState::Commented => {
            "AND EXISTS (SELECT 1 FROM comments c WHERE c.document_id = d.id AND c.parent_id IS NULL AND c.resolved_by IS NULL)"
        }
    };
    let search = match listing.search.is_empty() {
        true => "",
        false => {
            "AND (d.external_id LIKE ?2 ESCAPE '\\' OR d.text LIKE ?2 ESCAPE '\\' OR EXISTS (SELECT 1
                FROM json_each(d.beside, '$.attributes') a WHERE json_extract(a.value, '$[1]') LIKE ?2 ESCAPE '\\'))"
        }
    };
    let metadata = match &listing.metadata {
        None => "",
        Some(_) => {
            "AND EXISTS (SELECT 1 FROM json_each(d.beside, '$.attributes') a
                WHERE json_extract(a.value, '$[0]') = ?3 AND json_extract(a.value, '$[1]') = ?4)"
        }
    };
    let key = match &listing.sort {
        Sort::Import => "d.id".to_owned(),
        Sort::Id => "d.external_id COLLATE NOCASE".to_owned(),
        Sort::Open => format!("(SELECT count(*) FROM marks m WHERE {IS_OPEN})"),
        Sort::Mentions => {
            "(SELECT count(*) FROM marks m WHERE m.document_id = d.id AND m.is_deleted = 0 AND m.state <> 'rejected')"
                .to_owned()
        }
        Sort::Changed => "d.version".to_owned(),
        Sort::Length => "length(d.text)".to_owned(),
        Sort::Metadata(_) => "(SELECT json_extract(a.value, '$[1]') FROM json_each(d.beside, '$.attributes') a
            WHERE json_extract(a.value, '$[0]') = ?5 LIMIT 1) COLLATE NOCASE"
            .to_owned(),
    };
    let order = if listing.is_descending { "DESC" } else { "ASC" };
    // Every parameter occurs, as SQLite refuses values for those that do not.
    let sql = format!(
        "SELECT d.id FROM documents d WHERE d.project_id = ?1 AND coalesce(?2, ?3, ?4, ?5, 1) IS NOT NULL {state} {search}
        {metadata} ORDER BY {key} {order} NULLS LAST, d.id {order} LIMIT ?6 OFFSET ?7"
    );
    let (name, value) = listing.metadata.clone().unwrap_or_default();
    let sorted_by = if let Sort::Metadata(name) = &listing.sort { name.as_str() } else { "" };
    let mut statement = connection.prepare_cached(&sql)?;
    let pattern = like_pattern(&listing.search);
    let rows = statement.query_map(
        params![project, pattern, name, value, sorted_by, limit as i64, i64::try_from(offset).unwrap_or(i64::MAX)],
        |row| row.get::<_, i64>(0),
    )?;
    rows.map(|id| documents::get(connection, id?)).collect()
}

/// A pattern that finds a text anywhere.
fn like_pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern + "%"
}

/// Replaces the metadata of a document.
pub fn set_metadata(connection: &Connection, document: i64, metadata: &[MetadataEntry]) -> ApiResult<()> {
    let pairs: Vec<(&str, &str)> = metadata.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
    let sql = "UPDATE documents SET beside = json_set(beside, '$.attributes', json(?2)) WHERE id = ?1";
    connection.execute(sql, params![document, serde_json::to_string(&pairs)?])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_are_text() {
        assert_eq!(like_pattern("50 %_a\\"), "%50 \\%\\_a\\\\%");
    }
}
