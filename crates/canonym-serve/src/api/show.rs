//! The JSON of documents and annotations.

use canonym_core::active::Strategy;
use std::collections::{BTreeMap, HashMap};

use canonym_core::kb::KnowledgeBase;
use canonym_core::text::Section;
use canonym_core::text::offsets::OffsetMap;
use rusqlite::Connection;

use crate::engine::Split;
use crate::error::{ApiError, ApiResult};
use crate::marks::MarkState;
use crate::marks::convert::decided_by;
use crate::marks::predict::contradicts;
use crate::queue::reason;
use crate::spans::to_pairs;
use crate::store::documents::{self, StoredDocument, StoredMark};
use crate::store::{comments, derived, people, projects};
use crate::times::rfc3339;
use crate::wire::{DocumentOut, DocumentRow, Mark, MetadataEntry, SectionOut};

/// The entry of the metadata with the IDs of MeSH headings of a PubMed article.
const MESH: &str = "mesh";

/// Characters of the text that serve as a title.
const TITLE: usize = 80;

/// The JSON of the `wanted` marks of a document; conflicts are computed over all visible marks.
pub fn marks(
    text: &str,
    held: &BTreeMap<i64, StoredMark>,
    names: &HashMap<i64, String>,
    wanted: impl Fn(i64, &MarkState) -> bool,
) -> Vec<Mark> {
    let map = OffsetMap::new(text);
    let listed: Vec<(i64, &MarkState)> =
        held.iter().filter(|(_, held)| held.mark.is_listed()).map(|(id, held)| (*id, &held.mark)).collect();
    let mut shown: Vec<(i64, &MarkState)> =
        held.iter().map(|(id, held)| (*id, &held.mark)).filter(|(id, mark)| wanted(*id, mark)).collect();
    shown.sort_by_key(|(id, mark)| {
        (mark.spans.first().copied(), std::cmp::Reverse(mark.spans.last().map(|last| last.1)), *id)
    });
    let mut others = overlapping(&listed, contradicts);
    shown
        .into_iter()
        .map(|(id, mark)| Mark {
            id,
            spans: to_pairs(&map, &mark.spans()),
            text: mark.text.clone(),
            kind: mark.kind.clone(),
            source: mark.source,
            state: mark.state,
            concept: mark.concept.clone(),
            is_nil: mark.is_nil,
            is_unsure: mark.is_unsure,
            contexts: mark.contexts.clone(),
            score: mark.score,
            p_mention: mark.p_mention,
            p_link: mark.p_link,
            candidates: mark.candidates.clone(),
            disagrees: others.remove(&id).unwrap_or_default(),
            by: decided_by(mark, names),
            at: rfc3339(mark.at),
            model: mark.model.clone(),
            is_spread: mark.spread_from.is_some(),
        })
        .collect()
}

/// For each mark, the overlapping marks that `differ` from it: human annotations against unreviewed predictions. A sweep over the text, so that only
/// overlapping marks are compared.
fn overlapping(
    listed: &[(i64, &MarkState)],
    mut differ: impl FnMut(&MarkState, &MarkState) -> bool,
) -> HashMap<i64, Vec<i64>> {
    let sides = [MarkState::is_human, MarkState::is_open];
    let parts =
        listed.iter().flat_map(|(id, mark)| mark.spans.iter().map(move |(start, end)| (*start, *end, *id, *mark)));
    let mut parts: Vec<(u32, u32, i64, &MarkState)> = parts.collect();
    parts.sort_unstable_by_key(|(start, end, id, _)| (*start, *end, *id));
    // Spans that have begun, on either side; ended ones are removed lazily.
    let mut begun: [Vec<(u32, i64, &MarkState)>; 2] = Default::default();
    let mut found: HashMap<i64, Vec<i64>> = HashMap::new();
    for (start, end, id, mark) in parts {
        let Some(side) = sides.iter().position(|is_of| is_of(mark)) else { continue };
        begun[1 - side].retain(|(other_end, ..)| *other_end > start);
        for (_, other_id, other) in &begun[1 - side] {
            let is_different = if side == 0 { differ(mark, other) } else { differ(other, mark) };
            if is_different {
                found.entry(id).or_default().push(*other_id);
                found.entry(*other_id).or_default().push(id);
            }
        }
        begun[side].push((end, id, mark));
    }
    for ids in found.values_mut() {
        ids.sort_unstable();
        ids.dedup();
    }
    found
}

/// The sections of a document, in code points.
pub fn sections(stored: &StoredDocument, map: &OffsetMap<'_>) -> Vec<SectionOut> {
    let offset = |byte: u32| map.byte_to_char(byte as usize).unwrap_or_default();
    let sections = stored.content.sections();
    let section = |section: &Section| SectionOut {
        kind: section.kind.clone(),
        start: offset(section.span.start),
        end: offset(section.span.end),
    };
    sections.iter().map(section).collect()
}

/// The JSON of a document; includes rejected and deleted marks if `all` is set.
pub fn document(connection: &Connection, stored: StoredDocument, all: bool) -> ApiResult<DocumentOut> {
    let names = people::names(connection)?;
    let held = documents::marks(connection, stored.id)?;
    let map = OffsetMap::new(&stored.text);
    let strategy = projects::get(connection, stored.project)?.strategy;
    let strategy = Strategy::parse(&strategy).map_err(|error| {
        ApiError::damaged(&format!("cannot read row {} of table `projects`: {error}", stored.project))
    })?;
    let open: Vec<&MarkState> = held.values().map(|held| &held.mark).filter(|mark| mark.is_open()).collect();
    let was_read = held.values().any(|held| held.mark.was_read());
    let name = |person: i64| names.get(&person).cloned().unwrap_or_default();
    let agreed = derived::agreed(connection, stored.id, &held)?.into_iter();
    let agreed = agreed.map(|(mark, people)| (mark.to_string(), people.into_iter().map(name).collect())).collect();
    Ok(DocumentOut {
        agreed,
        id: stored.id,
        project_id: stored.project,
        sections: sections(&stored, &map),
        version: stored.version,
        is_finished: stored.is_finished,
        reason: (!stored.is_finished).then(|| reason(strategy, &open, was_read).1),
        marks: marks(&stored.text, &held, &names, |_, mark| all || mark.is_listed()),
        comments: comments::of_document(connection, stored.id, &names)?,
        external_id: stored.external_id,
        text: stored.text,
    })
}

/// The names of the MeSH headings of a document, by their IDs.
fn headings(kb: &KnowledgeBase, metadata: &[MetadataEntry]) -> BTreeMap<String, String> {
    let ids = metadata.iter().filter(|one| one.name == MESH).flat_map(|one| one.value.split('|'));
    let name = |id: &str| {
        let found = kb.find(id).or_else(|| kb.find(&format!("MESH:{id}")))?;
        Some((id.to_owned(), kb.preferred_name(found).to_owned()))
    };
    ids.filter_map(name).collect()
}

/// The JSON of a document in a list.
pub fn row(kb: &KnowledgeBase, connection: &Connection, stored: &StoredDocument) -> ApiResult<DocumentRow> {
    let counts = documents::counts(connection, stored.id)?;
    let metadata = stored.content.metadata();
    let start: String = stored.text.trim_start().chars().take(TITLE + 1).collect();
    let line = start.lines().next().unwrap_or_default();
    let title = match line.chars().count() > TITLE {
        true => format!("{}…", line.chars().take(TITLE).collect::<String>()),
        false => line.to_owned(),
    };
    Ok(DocumentRow {
        id: stored.id,
        external_id: stored.external_id.clone(),
        title,
        headings: headings(kb, &metadata),
        metadata,
        n_marks: counts.n_marks,
        n_open: counts.n_open,
        n_threads: comments::n_unresolved(connection, stored.id)?,
        is_held_out: stored.split == Some(Split::Test),
        is_finished: stored.is_finished,
        locked_by: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mark(source: &str, (start, end): (u32, u32), concept: &str) -> MarkState {
        let state = if source == "PRED" { "open" } else { "accepted" };
        serde_json::from_value(json!({
            "spans": [[start, end]], "text": "", "kind": "", "source": source, "state": state,
            "concept": {"id": concept, "name": ""}, "is_nil": false, "is_unsure": false, "score": null, "candidates": [],
            "by": null, "at": 0, "model": null, "is_deleted": false, "original": null
        }))
        .unwrap()
    }

    #[test]
    fn only_overlapping_marks_are_compared() {
        let n = 2_000;
        let marks: Vec<MarkState> = (0..n)
            .flat_map(|at| [mark("GOLD", (3 * at, 3 * at + 3), "A"), mark("PRED", (3 * at + 1, 3 * at + 2), "B")])
            .collect();
        let listed: Vec<(i64, &MarkState)> = (0..).zip(&marks).collect();
        let mut n_compared = 0;
        let found = overlapping(&listed, |human, predicted| {
            n_compared += 1;
            contradicts(human, predicted)
        });
        assert_eq!((n_compared, found.len()), (n, 2 * n as usize));
    }

    #[test]
    fn sweep_finds_the_same_conflicts_as_comparing_all_pairs() {
        let spans = [(0, 9), (2, 4), (4, 6), (3, 5), (8, 12), (12, 13), (0, 1), (10, 11)];
        let sources = ["GOLD", "PRED", "USER"];
        let marks: Vec<MarkState> = (0..24)
            .map(|row: usize| mark(sources[row % 3], spans[row * 5 % 8], if row.is_multiple_of(4) { "A" } else { "B" }))
            .collect();
        let listed: Vec<(i64, &MarkState)> = (0..).zip(&marks).collect();
        let found = overlapping(&listed, contradicts);
        for (id, one) in &listed {
            let all = listed.iter().filter(|(_, other)| contradicts(one, other) || contradicts(other, one));
            let all: Vec<i64> = all.map(|(id, _)| *id).collect();
            assert_eq!(found.get(id).cloned().unwrap_or_default(), all, "{id}");
        }
    }
}
