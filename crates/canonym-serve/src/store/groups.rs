//! Unreviewed predictions of a project by text and concept.

use std::collections::HashMap;

use rusqlite::{Connection, params};

use super::documents::IS_OPEN;
use crate::error::ApiResult;
use crate::marks::Named;
use crate::wire::PredictionGroup;

/// The text that a group goes by: in lower case, unless it is all upper case, as an abbreviation.
pub fn folded(text: &str) -> String {
    let is_upper = text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase);
    if is_upper { text.to_owned() } else { text.to_lowercase() }
}

/// The groups of a project, largest first.
pub fn all(connection: &Connection, project: i64) -> ApiResult<Vec<PredictionGroup>> {
    let sql = format!(
        "SELECT json_extract(m.body, '$.text'), json_extract(m.body, '$.concept.id'),
            json_extract(m.body, '$.concept.name'), m.kind, json_extract(m.body, '$.score'), d.id,
            json_extract(m.body, '$.spread_from') IS NOT NULL
        FROM documents d JOIN marks m ON {IS_OPEN} WHERE d.project_id = ?1 ORDER BY d.id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([project])?;
    // With the document counted last, as rows come in document order.
    let mut groups: HashMap<(String, Option<String>), (PredictionGroup, i64)> = HashMap::new();
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        let id: Option<String> = row.get(1)?;
        let (score, document): (Option<f64>, i64) = (row.get(4)?, row.get(5)?);
        let name: Option<String> = row.get(2)?;
        let kind: String = row.get(3)?;
        let (group, last) = groups.entry((folded(&text), id.clone())).or_insert_with(|| {
            let concept = id.map(|id| Named { id, name: name.unwrap_or_default() });
            let group = PredictionGroup {
                text,
                concept,
                kind,
                n_mentions: 0,
                n_documents: 0,
                n_spread: 0,
                min_score: None,
                max_score: None,
            };
            (group, 0)
        });
        group.n_mentions += 1;
        group.n_spread += usize::from(row.get::<_, bool>(6)?);
        group.n_documents += usize::from(*last != document);
        *last = document;
        if let Some(score) = score {
            group.min_score = Some(group.min_score.map_or(score, |least| least.min(score)));
            group.max_score = Some(group.max_score.map_or(score, |most| most.max(score)));
        }
    }
    let mut groups: Vec<PredictionGroup> = groups.into_values().map(|(group, _)| group).collect();
    let id = |group: &PredictionGroup| group.concept.as_ref().map(|concept| concept.id.clone());
    groups.sort_by(|a, b| (b.n_mentions, &a.text, id(a)).cmp(&(a.n_mentions, &b.text, id(b))));
    Ok(groups)
}

/// Whether people gave a text another concept in a project.
pub fn has_other_concept(connection: &Connection, project: i64, text: &str, concept: &str) -> ApiResult<bool> {
    let sql = "SELECT json_extract(m.body, '$.text') FROM marks m JOIN documents d ON d.id = m.document_id
        WHERE d.project_id = ?1 AND m.source <> 'PRED' AND m.state = 'accepted' AND NOT m.is_deleted
        AND json_extract(m.body, '$.concept.id') IS NOT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![project, concept])?;
    let wanted = folded(text);
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if folded(&text) == wanted {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A reviewed mention whose text people linked to one concept only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taught {
    /// The text.
    pub text: String,
    /// The concept.
    pub concept: Named,
    /// The semantic type.
    pub kind: String,
    /// The first mark with them.
    pub mark: i64,
}

/// What people said about a text.
#[derive(Default)]
struct Said {
    /// The first reviewed mention, linked to a concept.
    first: Option<Taught>,
    /// Whether reviewed mentions have another concept, or none.
    is_ambiguous: bool,
    n_accepted: usize,
    n_rejected: usize,
    /// Imported annotations teach nothing, but may contradict.
    is_by_people: bool,
}

/// The texts that people linked to one concept in a project, and did not reject more often than that, in the order of their first decision.
pub fn taught(connection: &Connection, project: i64) -> ApiResult<Vec<Taught>> {
    let sql = "SELECT json_extract(m.body, '$.text'), json_extract(m.body, '$.concept.id'),
            json_extract(m.body, '$.concept.name'), m.kind, m.id, m.state = 'rejected', m.source = 'USER'
        FROM marks m JOIN documents d ON d.id = m.document_id
        WHERE d.project_id = ?1 AND NOT m.is_deleted
        AND (m.state = 'rejected' OR m.state = 'accepted' AND m.source <> 'PRED') ORDER BY m.id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([project])?;
    let mut said_of: HashMap<String, Said> = HashMap::new();
    while let Some(row) = rows.next()? {
        let (text, id): (String, Option<String>) = (row.get(0)?, row.get(1)?);
        let said = said_of.entry(folded(&text)).or_default();
        if row.get(5)? {
            said.n_rejected += 1;
            continue;
        }
        said.n_accepted += 1;
        let Some(id) = id else {
            said.is_ambiguous = true;
            continue;
        };
        said.is_by_people |= row.get::<_, bool>(6)?;
        match &said.first {
            Some(first) => said.is_ambiguous |= first.concept.id != id,
            None => {
                let concept = Named { id, name: row.get::<_, Option<String>>(2)?.unwrap_or_default() };
                said.first = Some(Taught { text, concept, kind: row.get(3)?, mark: row.get(4)? });
            }
        }
    }
    let is_taught = |said: &Said| said.is_by_people && !said.is_ambiguous && said.n_rejected <= said.n_accepted;
    let mut taught: Vec<Taught> = said_of.into_values().filter(is_taught).filter_map(|said| said.first).collect();
    taught.sort_by_key(|one| one.mark);
    Ok(taught)
}

/// A prediction of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Member {
    /// The document.
    pub document: i64,
    /// The mark.
    pub mark: i64,
    /// The model's score.
    pub score: Option<f64>,
}

/// The predictions of a group, in document order.
pub fn members(connection: &Connection, project: i64, text: &str, concept: Option<&str>) -> ApiResult<Vec<Member>> {
    let sql = format!(
        "SELECT json_extract(m.body, '$.text'), d.id, m.id, json_extract(m.body, '$.score')
        FROM documents d JOIN marks m ON {IS_OPEN}
        WHERE d.project_id = ?1 AND json_extract(m.body, '$.concept.id') IS ?2 ORDER BY d.id, m.id"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params![project, concept])?;
    let wanted = folded(text);
    let mut members = Vec::new();
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        if folded(&text) == wanted {
            members.push(Member { document: row.get(1)?, mark: row.get(2)?, score: row.get(3)? });
        }
    }
    Ok(members)
}

/// The concepts that people linked other mentions of a text to, with how often, most frequent first. ASCII case is ignored.
pub fn linked_concepts(
    connection: &Connection,
    project: i64,
    text: &str,
    but: Option<i64>,
) -> ApiResult<Vec<(String, usize)>> {
    let sql = "SELECT json_extract(m.body, '$.concept.id') AS concept, count(*) AS n
        FROM marks m JOIN documents d ON d.id = m.document_id
        WHERE lower(CASE WHEN json_valid(m.body) THEN json_extract(m.body, '$.text') END) = lower(?2)
        AND m.source = 'USER' AND m.state = 'accepted' AND m.is_deleted = 0 AND d.project_id = ?1 AND m.id <> ?3
        GROUP BY concept HAVING concept IS NOT NULL ORDER BY n DESC, max(m.id) DESC";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement
        .query_map(params![project, text, but.unwrap_or(0)], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as usize)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_matters_in_abbreviations() {
        assert_eq!(["CT", "Fever", "ÖDEM", "1,25"].map(folded), ["CT", "fever", "ÖDEM", "1,25"]);
    }
}
