//! Unresolved conflicts between annotators.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use axum::extract::State;
use canonym_core::text::offsets::OffsetMap;
use serde::Deserialize;

use super::conflict_groups::key;
use super::{PAGE_LIMIT, PathParam, QueryParams};
use crate::error::{ApiError, ApiResult};
use crate::marks::disagree::{Answer, Conflict};
use crate::spans::to_pairs;
use crate::state::App;
use crate::store::documents::{self, StoredDocument};
use crate::store::{events, people, projects};
use crate::times::rfc3339;
use crate::wire::{AnnotatorOut, AnswerOut, ClaimOut, Disagreement, Disagreements, Person};

/// Characters of context on either side.
const CONTEXT: usize = 220;

/// The sort key of a conflict: document, first byte, first mark.
type Key = (i64, u32, i64);

/// Query parameters of the conflicts.
#[derive(Debug, Default, Deserialize)]
pub struct DisagreementsQuery {
    cursor: Option<String>,
    limit: Option<usize>,
    /// Only those of a group.
    group: Option<String>,
}

/// `GET /projects/{p}/disagreements`: the conflicts to resolve.
pub async fn list(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<DisagreementsQuery>,
) -> ApiResult<axum::Json<Disagreements>> {
    let limit = PAGE_LIMIT.check(query.limit, "limit")?;
    let after = query.cursor.as_deref().filter(|cursor| !cursor.is_empty()).map(read_cursor).transpose()?;
    let page = app.blocking(move |app| {
        app.store.read(|connection| {
            projects::check(connection, project)?;
            let mut n_open = 0;
            let mut wanted: Vec<(Key, Conflict)> = Vec::new();
            for (document, version) in events::shared(connection, project)? {
                let conflicts = app.conflicts_of(connection, document, version)?;
                let text = match &query.group {
                    Some(_) if !conflicts.is_empty() => documents::text(connection, document)?,
                    _ => String::new(),
                };
                let is_in_group = |conflict: &&Conflict| {
                    query.group.as_ref().is_none_or(|group| key(conflict.extent.of(&text), conflict) == *group)
                };
                let conflicts: Vec<&Conflict> = conflicts.iter().filter(is_in_group).collect();
                n_open += conflicts.len();
                let after_cursor = conflicts
                    .into_iter()
                    .map(|conflict| ((document, conflict.extent.start, conflict.marks[0]), conflict));
                let after_cursor = after_cursor.filter(|(key, _)| after.is_none_or(|after| *key > after));
                let free = (limit + 1).saturating_sub(wanted.len());
                wanted.extend(after_cursor.take(free).map(|(key, conflict)| (key, conflict.clone())));
            }
            let has_more = wanted.len() > limit;
            wanted.truncate(limit);
            let next_cursor = wanted
                .last()
                .filter(|_| has_more)
                .map(|((document, start, mark), _)| format!("{document}.{start}.{mark}"));
            let names = people::names(connection)?;
            let mut disagreements = Vec::with_capacity(wanted.len());
            for in_document in wanted.chunk_by(|a, b| a.0.0 == b.0.0) {
                let stored = documents::get(connection, in_document[0].0.0)?;
                let map = OffsetMap::new(&stored.text);
                disagreements.extend(in_document.iter().map(|(_, conflict)| shown(&stored, &map, conflict, &names)));
            }
            Ok(Disagreements { disagreements, next_cursor, n_open })
        })
    });
    Ok(axum::Json(page.await?))
}

fn read_cursor(cursor: &str) -> ApiResult<Key> {
    let mut parts = cursor.split('.');
    let mut next = || parts.next().and_then(|part| part.parse::<i64>().ok());
    let key = match (next(), next(), next(), next()) {
        (Some(document), Some(start), Some(mark), None) => {
            u32::try_from(start).ok().map(|start| (document, start, mark))
        }
        _ => None,
    };
    key.ok_or_else(|| ApiError::bad("invalid cursor").hint("use `next_cursor` of the previous page"))
}

fn shown(
    stored: &StoredDocument,
    map: &OffsetMap<'_>,
    conflict: &Conflict,
    names: &HashMap<i64, String>,
) -> Disagreement {
    let (before, behind) = around(&stored.text, conflict.extent.start as usize..conflict.extent.end as usize, CONTEXT);
    let extent = to_pairs(map, &[conflict.extent]).first().copied().unwrap_or_default();
    let answer = |answer: &Answer| AnswerOut {
        people: answer
            .people
            .iter()
            .map(|(person, at)| AnnotatorOut { name: names.get(person).cloned().unwrap_or_default(), at: rfc3339(*at) })
            .collect(),
        claims: answer
            .claims
            .iter()
            .map(|claim| ClaimOut {
                mark: claim.mark,
                spans: to_pairs(map, &claim.spans),
                text: claim.text.clone(),
                concept: claim.concept.clone(),
            })
            .collect(),
    };
    Disagreement {
        document: stored.id,
        external_id: stored.external_id.clone(),
        version: stored.version,
        marks: conflict.marks.clone(),
        start: extent.0,
        end: extent.1,
        text: conflict.extent.of(&stored.text).to_owned(),
        before: before.to_owned(),
        behind: behind.to_owned(),
        answers: conflict.answers.iter().map(answer).collect(),
        is_reopened: conflict.is_reopened,
    }
}

/// Up to `n_characters` characters before and after a range of bytes.
pub fn around(text: &str, range: Range<usize>, n_characters: usize) -> (&str, &str) {
    let before = &text[..range.start];
    let from = before.char_indices().rev().nth(n_characters - 1).map_or(0, |(at, _)| at);
    let after = &text[range.end..];
    let to = after.char_indices().nth(n_characters).map_or(after.len(), |(at, _)| at);
    (&before[from..], &after[..to])
}
