//! Mentions of a concept in a project.

use std::sync::Arc;

use axum::extract::State;
use canonym_core::text::offsets::OffsetMap;
use serde::Deserialize;

use super::disagreements::around;
use super::{PAGE_LIMIT, PathParam, QueryParams};
use crate::error::{ApiError, ApiResult};
use crate::spans::to_pairs;
use crate::state::App;
use crate::store::documents::{self, ConceptMention, MentionCursor};
use crate::store::projects;
use crate::wire::{MentionPage, MentionRow, Person};

/// Characters of context on either side.
const CONTEXT: usize = 60;

/// Query parameters: the concept, and the page.
#[derive(Debug, Default, Deserialize)]
pub struct MentionsQuery {
    #[serde(default)]
    concept: String,
    cursor: Option<String>,
    limit: Option<usize>,
}

/// `GET /projects/{p}/mentions`: annotations of a concept, by document.
pub async fn list(
    State(app): State<Arc<App>>,
    _: Person,
    PathParam(project): PathParam<i64>,
    QueryParams(query): QueryParams<MentionsQuery>,
) -> ApiResult<axum::Json<MentionPage>> {
    let limit = PAGE_LIMIT.check(query.limit, "limit")?;
    if query.concept.trim().is_empty() {
        return Err(ApiError::bad("`concept` is missing").hint("give the ID of a concept as `concept`"));
    }
    let after = match query.cursor.as_deref().filter(|cursor| !cursor.is_empty()) {
        None => MentionCursor::default(),
        Some(cursor) => read_cursor(cursor)
            .ok_or_else(|| ApiError::bad("invalid cursor").hint("use `next_cursor` of the previous page"))?,
    };
    let page = app.blocking(move |app| {
        app.store.read(|connection| {
            projects::check(connection, project)?;
            let concept = query.concept.trim();
            let (n_mentions, n_documents) = documents::n_mentions(connection, project, concept)?;
            let mut found = documents::mentions(connection, project, concept, after, limit + 1)?;
            let has_more = found.len() > limit;
            found.truncate(limit);
            let next_cursor = found.last().filter(|_| has_more).map(|one| format!("{}.{}", one.document, one.id));
            let mut mentions = Vec::with_capacity(found.len());
            for in_document in found.chunk_by(|a, b| a.document == b.document) {
                let stored = documents::get(connection, in_document[0].document)?;
                let map = OffsetMap::new(&stored.text);
                for ConceptMention { document, id, mark } in in_document {
                    let spans = mark.spans();
                    let (Some(first), Some(last)) = (spans.first(), spans.last()) else { continue };
                    let (before, behind) = around(&stored.text, first.start as usize..last.end as usize, CONTEXT);
                    mentions.push(MentionRow {
                        document: *document,
                        external_id: stored.external_id.clone(),
                        mark: *id,
                        spans: to_pairs(&map, &spans),
                        text: mark.text.clone(),
                        before: before.to_owned(),
                        behind: behind.to_owned(),
                        source: mark.source,
                        state: mark.state,
                    });
                }
            }
            Ok(MentionPage { mentions, next_cursor, n_mentions, n_documents })
        })
    });
    Ok(axum::Json(page.await?))
}

fn read_cursor(cursor: &str) -> Option<MentionCursor> {
    let (document, mark) = cursor.split_once('.')?;
    Some(MentionCursor { document: document.parse().ok()?, mark: mark.parse().ok()? })
}
