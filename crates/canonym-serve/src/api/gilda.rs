//! `/ground`, `/ground_multi` and `/annotate` with the requests and responses of Gilda's web service, so that its clients
//! only change the address.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::numbers::rounded;
use canonym_core::text::normalise::fold;
use canonym_core::text::offsets::OffsetMap;
use canonym_core::text::{Document, Span};

use super::link::{MAX_NAMES, check_text};
use super::{bytes, json};
use crate::batcher::LinkMode;
use crate::engine::{Engine, LinkOptions, Nil};
use crate::error::{ApiError, ApiResult};
use crate::spans::to_pairs;
use crate::state::App;
use crate::wire::{
    AnnotateRequest, GildaAnnotation, GildaAnnotations, GildaMatch, GildaTerm, GroundRequest, GroundRequests,
    ScoredMatch, ScoredMatchLists, ScoredMatches,
};

/// Candidates per name.
const TOP_K: usize = 10;

/// Concepts below this probability are not reported; of two that are equally likely both are.
const MIN_SCORE: f32 = 0.25;

/// Prefixes that Gilda repeats in the ID.
const EMBEDDED: [&str; 5] = ["BTO", "CHEBI", "DOID", "GO", "HP"];

/// `POST /ground`: the concepts that a name may mean.
pub async fn ground(State(app): State<Arc<App>>, request: Request<Body>) -> ApiResult<Json<ScoredMatches>> {
    let request: GroundRequest = json(&bytes(request, app.config.max_link_bytes).await?)?;
    let mut lists = ground_all(&app, vec![request]).await?;
    Ok(Json(lists.pop().unwrap_or(ScoredMatches(Vec::new()))))
}

/// `POST /ground_multi`: the concepts that each of several names may mean.
pub async fn ground_multi(State(app): State<Arc<App>>, request: Request<Body>) -> ApiResult<Json<ScoredMatchLists>> {
    let GroundRequests(requests) = json(&bytes(request, app.config.max_link_bytes).await?)?;
    if requests.len() > MAX_NAMES {
        let message = format!("at most {MAX_NAMES} names per request, not {}", requests.len());
        return Err(ApiError::bad(message).hint("send several requests"));
    }
    Ok(Json(ScoredMatchLists(ground_all(&app, requests).await?)))
}

async fn ground_all(app: &Arc<App>, requests: Vec<GroundRequest>) -> ApiResult<Vec<ScoredMatches>> {
    for request in &requests {
        check_text(app, &request.text)?;
        request.context.iter().try_for_each(|context| check_text(app, context))?;
    }
    let _permit =
        app.unbatched_permits.try_acquire().map_err(|_| ApiError::busy("too many names are being linked", 1))?;
    app.blocking(move |app| {
        let engine = app.engine.as_ref();
        let kb = engine.kb();
        let names: Vec<String> = requests.iter().map(|request| request.text.clone()).collect();
        let links = engine.map(&names, &LinkOptions::top(TOP_K))?;
        let mut lists = Vec::with_capacity(requests.len());
        for (request, link) in requests.iter().zip(links) {
            let found = match in_context(request) {
                Some(document) => concepts_in_context(engine, document)?,
                None if link.nil => Vec::new(),
                None => link.candidates.iter().map(|one| (one.concept, one.p_link)).collect(),
            };
            lists.push(ScoredMatches(matches(kb, &request.text, &found, request.namespaces.as_deref())));
        }
        Ok(lists)
    })
    .await
}

/// The context of a name with the name as a given mention, if the name occurs in it.
fn in_context(request: &GroundRequest) -> Option<AnnotatedDocument> {
    let (name, context) = (request.text.trim(), request.context.as_deref()?);
    let start = context.find(name).filter(|_| !name.is_empty())?;
    let mention = Annotation {
        spans: vec![Span::new(start, start + name.len())],
        text: name.to_owned(),
        ..Annotation::default()
    };
    let document = Document { id: "text".to_owned(), text: context.to_owned(), sections: Vec::new() };
    Some(AnnotatedDocument { document, annotations: vec![mention], ..AnnotatedDocument::default() })
}

fn concepts_in_context(engine: &dyn Engine, document: AnnotatedDocument) -> ApiResult<Vec<(ConceptId, f32)>> {
    let linked = engine.link_mentions(vec![document], TOP_K)?;
    let mentions = linked.iter().flat_map(|document| &document.annotations).filter(|mention| !mention.nil);
    Ok(mentions.flat_map(|mention| concepts(engine.kb(), mention)).collect())
}

fn concepts(kb: &KnowledgeBase, mention: &Annotation) -> Vec<(ConceptId, f32)> {
    mention.candidates.iter().filter_map(|one| Some((kb.find(&one.id)?, one.score()))).collect()
}

/// `POST /annotate`: the mentions of a text that are linked.
pub async fn annotate(State(app): State<Arc<App>>, request: Request<Body>) -> ApiResult<Json<GildaAnnotations>> {
    let request: AnnotateRequest = json(&bytes(request, app.config.max_link_bytes).await?)?;
    check_text(&app, &request.text)?;
    let document = Document { id: "text".to_owned(), text: request.text, sections: Vec::new() };
    let n_bytes = document.text.len();
    let documents = vec![AnnotatedDocument { document, ..AnnotatedDocument::default() }];
    let options = LinkOptions { top_k: TOP_K, nil: Nil::Drop, ..LinkOptions::default() };
    let mode = LinkMode { options, ..LinkMode::default() };
    let linked = app.batcher.link(app.engine.clone(), documents, mode).await?;
    app.metrics.linked(linked.len(), n_bytes);
    let kb = app.engine.kb();
    let mut found = Vec::new();
    for (linked, _) in &linked {
        let map = OffsetMap::new(&linked.document.text);
        for mention in linked.annotations.iter().filter(|mention| !mention.nil) {
            let spans = to_pairs(&map, &mention.spans);
            let (Some(first), Some(last)) = (spans.first(), spans.last()) else { continue };
            // The mention is reported whatever its probability, which has passed the threshold of the model.
            let concepts = concepts(kb, mention);
            let n = 1 + concepts.iter().skip(1).take_while(|(_, score)| *score >= MIN_SCORE).count();
            let matches = scored(kb, &mention.text, &concepts[..n.min(concepts.len())], request.namespaces.as_deref());
            if !matches.is_empty() {
                found.push(GildaAnnotation { text: mention.text.clone(), matches, start: first.0, end: last.1 });
            }
        }
    }
    Ok(Json(GildaAnnotations(found)))
}

/// The concepts that are likely enough.
fn matches(
    kb: &KnowledgeBase,
    query: &str,
    concepts: &[(ConceptId, f32)],
    namespaces: Option<&[String]>,
) -> Vec<ScoredMatch> {
    let likely: Vec<(ConceptId, f32)> = concepts.iter().filter(|(_, score)| *score >= MIN_SCORE).copied().collect();
    scored(kb, query, &likely, namespaces)
}

/// The concepts in one of the namespaces, if any are given.
fn scored(
    kb: &KnowledgeBase,
    query: &str,
    concepts: &[(ConceptId, f32)],
    namespaces: Option<&[String]>,
) -> Vec<ScoredMatch> {
    let scored = concepts.iter().map(|(concept, score)| scored_match(kb, query, *concept, *score));
    let is_wanted = |db: &str| {
        namespaces.is_none_or(|wanted| wanted.is_empty() || wanted.iter().any(|name| name.eq_ignore_ascii_case(db)))
    };
    scored.filter(|scored| is_wanted(&scored.term.db)).collect()
}

fn scored_match(kb: &KnowledgeBase, query: &str, concept: ConceptId, score: f32) -> ScoredMatch {
    let folded = fold(query);
    let preferred = kb.preferred_name(concept);
    let same = || kb.names(concept).map(|name| kb.name(name)).find(|name| fold(name) == folded);
    let name = if fold(preferred) == folded { preferred } else { same().unwrap_or(preferred) };
    let id = kb.id(concept);
    let (db, local) = id.split_once(':').unwrap_or(("", id));
    let embedded = EMBEDDED.contains(&db);
    let url = (!db.is_empty()).then(|| format!("https://bioregistry.io/{}:{local}", db.to_lowercase()));
    let source = Some(kb.source(concept)).filter(|source| !source.is_empty()).unwrap_or(&kb.meta().name);
    let without_blanks = |text: &str| text.split_whitespace().collect::<String>();
    ScoredMatch {
        term: GildaTerm {
            norm_text: fold(name),
            text: name.to_owned(),
            db: db.to_owned(),
            id: if embedded { id } else { local }.to_owned(),
            entry_name: preferred.to_owned(),
            status: if name == preferred { "name" } else { "synonym" },
            source: source.to_owned(),
        },
        url,
        score: rounded(score),
        how: GildaMatch {
            query: query.to_owned(),
            reference: name.to_owned(),
            exact: name == query,
            space_mismatch: name != query && without_blanks(name) == without_blanks(query),
            dash_mismatches: Vec::new(),
            cap_combos: Vec::new(),
        },
    }
}
