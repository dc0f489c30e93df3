//! Derived tables: counts, times and last decisions. They are updated with each event, so that pages of a project with a million decisions read
//! only some rows, and rebuilt with the marks ([`super::events::rebuild`]).

use std::collections::BTreeMap;

use canonym_core::text::Span;
use rusqlite::{Connection, OptionalExtension, params};

use super::documents::StoredMark;
use super::events::NewEvent;
use super::parse_json;
use crate::error::ApiResult;
use crate::marks::disagree::SETTLE;
use crate::marks::{Change, Changes, MarkState, Source, State};
use crate::times::{DAY, Millis};

/// A longer pause between decisions does not count as work.
const MAX_PAUSE: Millis = 5 * 60 * 1000;

/// Kinds of events that are not decisions.
const NOT_DECISIONS: [&str; 5] = ["import", "predict", "comment", "undo", "redo"];

/// The tables that [`record_event`] and [`count_mark`] fill.
const TABLES: [&str; 5] = ["mark_counts", "decision_counts", "work", "said", "chosen"];

/// Every table derived from events, with the derived columns and an order of its rows.
pub const DERIVED_TABLES: [(&str, &str, &str); 7] = [
    ("marks", "*", "id"),
    ("documents", "id, is_finished, version", "id"),
    ("mark_counts", "*", "1, 2, 3"),
    ("decision_counts", "*", "1, 2, 3"),
    ("work", "*", "1, 2, 3"),
    ("said", "*", "1, 2"),
    ("chosen", "*", "1, 2, 3"),
];

/// Deletes the rows that `wanted` selects from all derived tables.
pub fn clear(connection: &Connection, wanted: &str) -> ApiResult<()> {
    for table in TABLES {
        connection.execute(&format!("DELETE FROM {table} WHERE {wanted}"), [])?;
    }
    Ok(())
}

/// The project of a document.
pub fn project_of(connection: &Connection, document: i64) -> ApiResult<i64> {
    let mut statement = connection.prepare_cached("SELECT project_id FROM documents WHERE id = ?1")?;
    Ok(statement.query_row([document], |row| row.get(0))?)
}

/// Adds a stored mark to the counts, or removes it: called before and after it changes.
pub fn count_mark(connection: &Connection, project: i64, mark: i64, by: i64) -> ApiResult<()> {
    let sql = "SELECT source, kind FROM marks WHERE id = ?1 AND NOT is_deleted AND state <> 'rejected'";
    let mut statement = connection.prepare_cached(sql)?;
    let row: Option<(String, String)> = statement.query_row([mark], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((source, kind)) = row else { return Ok(()) };
    let sql = "INSERT INTO mark_counts (project_id, source, kind, n) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET n = n + excluded.n";
    connection.prepare_cached(sql)?.execute(params![project, source, kind, by])?;
    Ok(())
}

/// Updates the derived tables for event `id`.
pub fn record_event(
    connection: &Connection,
    project: i64,
    id: i64,
    event: &NewEvent<'_>,
    changes: &Changes,
) -> ApiResult<()> {
    let Some(person) = event.person.filter(|_| !NOT_DECISIONS.contains(&event.kind)) else { return Ok(()) };
    let sql = "INSERT INTO decision_counts (project_id, day, kind, n) VALUES (?1, ?2, ?3, 1)
        ON CONFLICT DO UPDATE SET n = n + 1";
    connection.prepare_cached(sql)?.execute(params![project, event.at.div_euclid(DAY), event.kind])?;
    let sql = "INSERT INTO work (project_id, document_id, person_id, last_at) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT DO UPDATE SET last_at = excluded.last_at, spent =
            CASE WHEN excluded.last_at - last_at BETWEEN 0 AND ?5
            THEN coalesce(spent, 0) + excluded.last_at - last_at ELSE spent END";
    connection.prepare_cached(sql)?.execute(params![project, event.document, person, event.at, MAX_PAUSE])?;
    for change in &changes.marks {
        // Resolving a conflict is not an independent decision.
        if event.kind != SETTLE {
            record_decision(connection, project, event.document, person, change)?;
        }
        let concept = change.after.as_ref().filter(|mark| mark.source == Source::User && mark.is_listed());
        if let Some(concept) = concept.and_then(|mark| mark.concept_id()) {
            // Other changes of an annotation keep its concept.
            let is_same = |before: &MarkState| before.source == Source::User && before.concept_id() == Some(concept);
            let is_choice = !change.before.as_ref().is_some_and(is_same);
            let sql = "INSERT INTO chosen (project_id, person_id, concept, event_id, n) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT DO UPDATE SET event_id = excluded.event_id, n = n + excluded.n";
            connection.prepare_cached(sql)?.execute(params![project, person, concept, id, is_choice])?;
        }
    }
    Ok(())
}

/// What an answer on a mark says: its concept, or why there is none.
fn label_of(mark: Option<&MarkState>) -> &str {
    mark.map_or("no mark", |mark| mark.concept_id().unwrap_or("no concept"))
}

fn record_decision(
    connection: &Connection,
    project: i64,
    document: i64,
    person: i64,
    change: &Change,
) -> ApiResult<()> {
    if change.is_open_again() {
        connection.prepare_cached("DELETE FROM said WHERE mark_id = ?1")?.execute([change.id])?;
        return Ok(());
    }
    // A prediction removed because another mark repeats it: nobody reviewed it.
    if change.after.is_none() {
        return Ok(());
    }
    let mark = change.after.as_ref().filter(|mark| !mark.is_deleted && mark.state != State::Rejected);
    let label = label_of(mark);
    let spans = mark.map(|mark| serde_json::to_string(&mark.spans)).transpose()?;
    let sql = "SELECT 1 FROM said WHERE mark_id = ?1 AND person_id <> ?2";
    let is_shared = connection.prepare_cached(sql)?.exists([change.id, person])?;
    let sql = "INSERT OR REPLACE INTO said (mark_id, person_id, project_id, document_id, label, spans, is_shared)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    connection.prepare_cached(sql)?.execute(params![change.id, person, project, document, label, spans, is_shared])?;
    if is_shared {
        let sql = "UPDATE said SET is_shared = 1 WHERE mark_id = ?1 AND NOT is_shared";
        connection.prepare_cached(sql)?.execute([change.id])?;
    }
    Ok(())
}

/// The numbers of visible marks of a project, by source and by type.
pub fn marks_by_source_and_type(
    connection: &Connection,
    project: i64,
) -> ApiResult<(BTreeMap<String, usize>, BTreeMap<String, usize>)> {
    let sql = "SELECT source, kind, n FROM mark_counts WHERE project_id = ?1 AND n > 0";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([project])?;
    let (mut by_source, mut by_type): (BTreeMap<String, usize>, BTreeMap<String, usize>) = Default::default();
    while let Some(row) = rows.next()? {
        let n = row.get::<_, i64>(2)? as usize;
        *by_source.entry(row.get(0)?).or_default() += n;
        *by_type.entry(row.get(1)?).or_default() += n;
    }
    Ok((by_source, by_type))
}

/// The numbers of decisions of a project by day since 1970 and kind; oldest first.
pub fn decisions(connection: &Connection, project: i64) -> ApiResult<Vec<(i64, String, usize)>> {
    let sql = "SELECT day, kind, n FROM decision_counts WHERE project_id = ?1 ORDER BY day, kind";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)? as usize)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Time per annotator and document: the time between decisions, without long pauses.
pub fn durations(connection: &Connection, project: i64) -> ApiResult<Vec<Millis>> {
    let sql = "SELECT spent FROM work WHERE project_id = ?1 AND spent IS NOT NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([project], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// The last decision of one person on one mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rating {
    /// The mark.
    pub mark: i64,
    /// The person.
    pub person: i64,
    /// The concept, or why there is none.
    pub label: String,
    /// The document and the spans; `None` if it was rejected.
    pub location: Option<(i64, Vec<Span>)>,
}

/// The decisions on marks that several annotators reviewed, by mark.
pub fn ratings_of_shared(connection: &Connection, project: i64) -> ApiResult<Vec<Rating>> {
    let sql = "SELECT mark_id, person_id, label, document_id, spans FROM said WHERE project_id = ?1 AND is_shared
        ORDER BY mark_id, person_id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([project])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let (mark, document): (i64, i64) = (row.get(0)?, row.get(3)?);
        let has_spans = row.get::<_, Option<String>>(4)?.is_some();
        let spans = if has_spans { Some(parse_json::<Vec<(u32, u32)>>(row, 4, "said", mark)?) } else { None };
        let spans = spans.map(|spans| spans.into_iter().map(|(start, end)| Span { start, end }).collect());
        all.push(Rating {
            mark,
            person: row.get(1)?,
            label: row.get(2)?,
            location: spans.map(|spans| (document, spans)),
        });
    }
    Ok(all)
}

/// The people whose last answer on a mark of a document is the mark as it stands, for marks that two or more people answered.
pub fn agreed(
    connection: &Connection,
    document: i64,
    held: &BTreeMap<i64, StoredMark>,
) -> ApiResult<BTreeMap<i64, Vec<i64>>> {
    let sql = "SELECT mark_id, person_id, label, spans FROM said WHERE document_id = ?1 AND is_shared
        ORDER BY mark_id, person_id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([document])?;
    let mut agreed: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let (id, person, label): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let Some(mark) = held.get(&id).map(|held| &held.mark).filter(|mark| mark.is_human()) else { continue };
        let spans: Option<String> = row.get(3)?;
        if label == label_of(Some(mark)) && spans == Some(serde_json::to_string(&mark.spans)?) {
            agreed.entry(id).or_default().push(person);
        }
    }
    Ok(agreed)
}

/// The concepts that a person used last in a project, most recent first.
pub fn recent_concepts(connection: &Connection, project: i64, person: i64, limit: usize) -> ApiResult<Vec<String>> {
    let sql = "SELECT concept FROM chosen WHERE project_id = ?1 AND person_id = ?2 ORDER BY event_id DESC LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![project, person, limit as i64], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// How often a concept was chosen in a project, by anyone; choices undone later count, too.
pub fn n_chosen(connection: &Connection, project: i64, concept: &str) -> ApiResult<usize> {
    let sql = "SELECT coalesce(sum(n), 0) FROM chosen WHERE project_id = ?1 AND concept = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row(params![project, concept], |row| row.get::<_, i64>(0))? as usize)
}
