//! The terminology: search and concepts.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use canonym_core::kb::search::{nearest_ids, search};
use canonym_core::kb::subset::Subset;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::numbers::rounded;
use serde::Deserialize;

use super::{Bounds, PathParam, QueryParams};
use crate::engine::LinkOptions;
use crate::error::{ApiError, ApiResult};
use crate::marks::{CandidateRow, Named};
use crate::state::App;
use crate::wire::{Concept, ConceptPage, Hit, Hits, Near, NewScope, SemanticTypes, TreeLevel, TreeNode};

/// The maximum length of a query, in bytes.
pub const MAX_QUERY: usize = 500;

/// Candidates below this probability are noise.
const MIN_P_LINK: f32 = 1e-3;

/// Names that are searched if only some concepts are wanted.
const MAX_FILTERED: usize = 500;

/// The maximum number of concepts of a level of the hierarchy.
const MAX_LEVEL: usize = 1000;

/// The maximum length of a path to the root, in case of cycles.
const MAX_DEPTH: usize = 40;

/// Query parameters of a search.
#[derive(Debug, Deserialize)]
pub struct SearchQuery {
    #[serde(default)]
    q: String,
    top_k: Option<usize>,
    #[serde(rename = "type")]
    kind: Option<String>,
    under: Option<String>,
}

/// `GET /kb/search`: searches concepts by name or ID.
pub async fn find(State(app): State<Arc<App>>, QueryParams(query): QueryParams<SearchQuery>) -> ApiResult<Json<Hits>> {
    let top_k = Bounds { min: 1, default: 20, max: 200 }.check(query.top_k, "top_k")?;
    check_query(&query.q)?;
    let results = app.blocking(move |app| {
        let kb = app.engine.kb();
        let hit = |hit: &canonym_core::kb::search::SearchHit| Hit {
            concept: concept(kb, hit.concept),
            matched: kb.name(hit.name).to_owned(),
            how: hit.kind.name(),
            score: rounded(hit.similarity),
        };
        let subset = filter(app, query.kind.as_deref(), query.under.as_deref())?;
        let n = if subset.is_some() { MAX_FILTERED } else { top_k };
        let mut hits = search(kb, &query.q, n);
        hits.retain(|hit| subset.as_deref().is_none_or(|subset| subset.has(hit.concept)));
        Ok(hits.iter().take(top_k).map(hit).collect())
    });
    Ok(Json(Hits { results: results.await? }))
}

/// The concepts of a semantic type and below a concept; `None` for all of the terminology.
pub(super) fn filter(app: &App, kind: Option<&str>, under: Option<&str>) -> ApiResult<Option<Arc<Subset>>> {
    let given = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let types = given(kind).into_iter().collect();
    let branches = given(under).into_iter().collect();
    let scope = app.checked_scope(&NewScope { types, branches })?;
    app.subset_of(&scope)
}

/// Query parameters of a level of the hierarchy.
#[derive(Debug, Default, Deserialize)]
pub struct TreeQuery {
    under: Option<String>,
}

/// `GET /kb/tree`: the narrower concepts of a concept, or the concepts without broader ones.
pub async fn tree(
    State(app): State<Arc<App>>,
    QueryParams(query): QueryParams<TreeQuery>,
) -> ApiResult<Json<TreeLevel>> {
    let level = app.blocking(move |app| {
        let (kb, tree) = (app.engine.kb(), app.tree());
        let under = query.under.as_deref().map(str::trim).filter(|id| !id.is_empty());
        let found = under.map(|id| kb.find(id).ok_or_else(|| ApiError::not_found("concept not found"))).transpose()?;
        let all = found.map_or(tree.roots(), |concept| tree.children(concept));
        let node = |concept: &ConceptId| TreeNode {
            id: kb.id(*concept).to_owned(),
            name: kb.preferred_name(*concept).to_owned(),
            n_children: tree.children(*concept).len(),
        };
        Ok(TreeLevel {
            path: found
                .map(|concept| path(kb, concept))
                .unwrap_or_default()
                .into_iter()
                .map(|step| named(kb, step))
                .collect(),
            concepts: all.iter().take(MAX_LEVEL).map(node).collect(),
            n_concepts: all.len(),
        })
    });
    Ok(Json(level.await?))
}

/// Rejects queries that are too long.
pub fn check_query(query: &str) -> ApiResult<()> {
    match query.len() > MAX_QUERY {
        true => Err(ApiError::bad(format!("a query may have at most {MAX_QUERY} bytes"))),
        false => Ok(()),
    }
}

/// `GET /kb/concepts/{id}`: a concept with its place in the hierarchy.
pub async fn show(State(app): State<Arc<App>>, PathParam(id): PathParam<String>) -> ApiResult<Json<ConceptPage>> {
    let page = app.blocking(move |app| {
        let kb = app.engine.kb();
        let Some(found) = kb.find(id.trim()) else {
            let near = nearest_ids(kb, &id, 3);
            let near: Vec<String> =
                near.iter().map(|near| format!("{} ({})", kb.id(*near), kb.preferred_name(*near))).collect();
            let hint = match near.is_empty() {
                true => "search by name with GET /api/v1/kb/search".to_owned(),
                false => format!("did you mean {}?", near.join(" or ")),
            };
            let shown: String = id.chars().take(80).collect();
            return Err(ApiError::not_found(format!("concept `{shown}` not found")).hint(hint));
        };
        Ok(ConceptPage {
            concept: concept(kb, found),
            parents: kb.parents(found).map(|parent| named(kb, parent)).collect(),
            children: app.tree().children(found).iter().map(|child| named(kb, *child)).collect(),
            path: path(kb, found).into_iter().map(|step| named(kb, step)).collect(),
        })
    });
    Ok(Json(page.await?))
}

/// `GET /kb/types`: the semantic types of the terminology.
pub async fn types(State(app): State<Arc<App>>) -> Json<SemanticTypes> {
    Json(SemanticTypes { types: app.engine.kb().meta().types.clone() })
}

/// Query parameters of similar concepts.
#[derive(Debug, Default, Deserialize)]
pub struct NearQuery {
    top_k: Option<usize>,
}

/// `GET /kb/concepts/{id}/near`: concepts that the model finds for the preferred name, without the concept itself.
pub async fn near(
    State(app): State<Arc<App>>,
    PathParam(id): PathParam<String>,
    QueryParams(query): QueryParams<NearQuery>,
) -> ApiResult<Json<Near>> {
    let top_k = Bounds { min: 1, default: 8, max: 50 }.check(query.top_k, "top_k")?;
    let _permit =
        app.unbatched_permits.try_acquire().map_err(|_| ApiError::busy("too many names are being linked", 1))?;
    let concepts = app.blocking(move |app| {
        let kb = app.engine.kb();
        let found = kb.find(id.trim()).ok_or_else(|| ApiError::not_found("concept not found"))?;
        let links = app.engine.map(&[kb.preferred_name(found).to_owned()], &LinkOptions::top(top_k + 1))?;
        let others = links.iter().flat_map(|link| &link.candidates);
        let others = others.filter(|one| one.concept != found && one.p_link >= MIN_P_LINK);
        let row = |one: &canonym_core::link::Candidate| CandidateRow {
            id: kb.id(one.concept).to_owned(),
            name: kb.preferred_name(one.concept).to_owned(),
            score: rounded(one.p_link),
            p_link: Some(rounded(one.p_link)),
        };
        Ok(others.take(top_k).map(row).collect())
    });
    Ok(Json(Near { concepts: concepts.await? }))
}

/// The JSON of a concept.
pub fn concept(kb: &KnowledgeBase, id: ConceptId) -> Concept {
    let name = kb.preferred_name(id);
    Concept {
        id: kb.id(id).to_owned(),
        name: name.to_owned(),
        synonyms: kb.names(id).map(|other| kb.name(other)).filter(|other| *other != name).map(str::to_owned).collect(),
        definition: kb.definition(id).map(str::to_owned),
        types: kb.types(id).map(str::to_owned).collect(),
    }
}

fn named(kb: &KnowledgeBase, id: ConceptId) -> Named {
    Named { id: kb.id(id).to_owned(), name: kb.preferred_name(id).to_owned() }
}

/// A path from the root to the concept itself, through the first parent of each.
pub fn path(kb: &KnowledgeBase, id: ConceptId) -> Vec<ConceptId> {
    let mut steps: Vec<ConceptId> = vec![id];
    let mut at = id;
    while let Some(parent) = kb.parents(at).next() {
        if steps.len() >= MAX_DEPTH || steps.contains(&parent) {
            break;
        }
        steps.push(parent);
        at = parent;
    }
    steps.reverse();
    steps
}
