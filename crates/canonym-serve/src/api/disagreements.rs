//! Unresolved conflicts between annotators.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use canonym_core::text::offsets::OffsetMap;

use super::documents::PageQuery;
use super::{Ask, At, within};
use crate::error::{ApiError, ApiResult};
use crate::marks::disagree::{Answer, Place};
use crate::spans::to_pairs;
use crate::state::App;
use crate::store::documents::{self, Kept};
use crate::store::{events, people, projects};
use crate::times::rfc3339;
use crate::wire::{AnswerOut, ClaimOut, Disagreement, Disagreements, Person, Speaker};

/// Characters of context on either side.
const CONTEXT: usize = 220;

/// The sort key of a conflict: document, first byte, first mark.
type Key = (i64, u32, i64);

/// `GET /projects/{p}/disagreements`: the conflicts to resolve.
pub async fn list(
    State(app): State<Arc<App>>,
    _: Person,
    At(project): At<i64>,
    Ask(query): Ask<PageQuery>,
) -> ApiResult<axum::Json<Disagreements>> {
    let limit = within(query.limit, (1, 50, 500), "limit")?;
    let after = query.cursor.as_deref().filter(|cursor| !cursor.is_empty()).map(read_cursor).transpose()?;
    let page = app.blocking(move |app| {
        app.store.read(|connection| {
            projects::check(connection, project)?;
            let mut n_open = 0;
            let mut wanted: Vec<(Key, Place)> = Vec::new();
            for of in events::shared(connection, project)? {
                let places = app.places_of(connection, of)?;
                n_open += places.len();
                let behind = places.iter().map(|place| ((of.0, place.hull.start, place.marks[0]), place));
                let behind = behind.filter(|(key, _)| after.is_none_or(|after| *key > after));
                let free = (limit + 1).saturating_sub(wanted.len());
                wanted.extend(behind.take(free).map(|(key, place)| (key, place.clone())));
            }
            let has_more = wanted.len() > limit;
            wanted.truncate(limit);
            let next_cursor = wanted
                .last()
                .filter(|_| has_more)
                .map(|((document, start, mark), _)| format!("{document}.{start}.{mark}"));
            let names = people::names(connection)?;
            let mut disagreements = Vec::with_capacity(wanted.len());
            for of_document in wanted.chunk_by(|a, b| a.0.0 == b.0.0) {
                let kept = documents::get(connection, of_document[0].0.0)?;
                let map = OffsetMap::new(&kept.text);
                disagreements.extend(of_document.iter().map(|(_, place)| shown(&kept, &map, place, &names)));
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

fn shown(kept: &Kept, map: &OffsetMap<'_>, place: &Place, names: &HashMap<i64, String>) -> Disagreement {
    let (before, behind) = around(&kept.text, (place.hull.start as usize, place.hull.end as usize), CONTEXT);
    let hull = to_pairs(map, &[place.hull]).first().copied().unwrap_or_default();
    let answer = |answer: &Answer| AnswerOut {
        people: answer
            .people
            .iter()
            .map(|(person, at)| Speaker { name: names.get(person).cloned().unwrap_or_default(), at: rfc3339(*at) })
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
        document: kept.id,
        external_id: kept.external_id.clone(),
        version: kept.version,
        marks: place.marks.clone(),
        start: hull.0,
        end: hull.1,
        text: place.hull.of(&kept.text).to_owned(),
        before: before.to_owned(),
        behind: behind.to_owned(),
        answers: place.answers.iter().map(answer).collect(),
        is_reopened: place.is_reopened,
    }
}

/// Up to `n_characters` characters before and after a range of bytes.
pub fn around(text: &str, (start, end): (usize, usize), n_characters: usize) -> (&str, &str) {
    let before = &text[..start];
    let from = before.char_indices().rev().nth(n_characters - 1).map_or(0, |(at, _)| at);
    let behind = &text[end..];
    let to = behind.char_indices().nth(n_characters).map_or(behind.len(), |(at, _)| at);
    (&before[from..], &behind[..to])
}
