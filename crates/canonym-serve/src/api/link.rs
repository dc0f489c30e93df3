//! Linking of texts and names.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use canonym::corpus::AnnotatedDocument;
use canonym::text::Document;

use super::{bytes, json, within};
use crate::app::App;
use crate::engine::{LinkOptions, Nil};
use crate::error::{ApiError, ApiResult};
use crate::lane::How;
use crate::marks::{CandidateRow, rounded};
use crate::wire::{LinkRequest, Linked, LinkedList, LinkedOut, MapRequest, Mapped, MappedList, TextIn};

/// Texts in one request.
const MAX_TEXTS: usize = 1000;

/// Names in one request.
const MAX_NAMES: usize = 1000;

/// How a request is to be linked.
pub fn how(top_k: Option<usize>, min_score: Option<f32>, nil: Nil, (nested, explain): (bool, bool)) -> ApiResult<How> {
    if let Some(min_score) = min_score
        && !(0.0..=1.0).contains(&min_score)
    {
        return Err(ApiError::bad(format!("`min_score` is {min_score}, which is not from 0 to 1")));
    }
    // Few settings that differ: the engine keeps what it made for one of them.
    let min_score = min_score.map(|min_score| (min_score * 100.0).round() / 100.0);
    let top_k = within(top_k, (1, 5, 100), "top_k")?;
    Ok(How { options: LinkOptions { top_k, min_score, nested, nil }, explain })
}

/// A text as the library has it.
pub fn document(text: TextIn, row: usize) -> AnnotatedDocument {
    let id = text.id.unwrap_or_else(|| (row + 1).to_string());
    let document = Document { id, text: text.text, sections: Vec::new() };
    AnnotatedDocument { document, ..AnnotatedDocument::default() }
}

/// `POST /link`: finds and links mentions of one text, or of several.
pub async fn link(State(app): State<Arc<App>>, request: Request<Body>) -> ApiResult<Json<Linked>> {
    let request: LinkRequest = json(&bytes(request, app.config.max_link_bytes).await?)?;
    let how = how(request.top_k, request.min_score, request.nil, (request.nested, request.explain))?;
    let (texts, is_one) = match (request.text, request.documents) {
        (Some(text), None) => (vec![TextIn { id: Some("text".to_owned()), text }], true),
        (None, Some(documents)) => (documents, false),
        _ => return Err(ApiError::bad("give either `text` or `documents`")),
    };
    if texts.len() > MAX_TEXTS {
        let message = format!("a request may have {MAX_TEXTS} texts, this one has {}", texts.len());
        return Err(ApiError::bad(message).hint("send several requests, or POST /api/v1/link/stream"));
    }
    let n_bytes = texts.iter().map(|text| text.text.len()).sum();
    let documents: Vec<AnnotatedDocument> =
        texts.into_iter().enumerate().map(|(row, text)| document(text, row)).collect();
    let engine = app.engine_for(request.project).await?;
    let linked = app.lane.link(engine, documents, how).await?;
    app.metrics.linked(linked.len(), n_bytes);
    let mut documents: Vec<LinkedOut> =
        linked.into_iter().map(|(document, reasons)| LinkedOut::of(document, reasons)).collect();
    Ok(Json(match documents.pop_if(|_| is_one) {
        Some(one) => Linked::One(one),
        None => Linked::Several(LinkedList { documents }),
    }))
}

/// `POST /map`: links names without context.
pub async fn map(State(app): State<Arc<App>>, request: Request<Body>) -> ApiResult<Json<MappedList>> {
    let request: MapRequest = json(&bytes(request, super::MAX_BODY).await?)?;
    let top_k = within(request.top_k, (1, 5, 100), "top_k")?;
    if request.names.len() > MAX_NAMES {
        let message = format!("a request may have {MAX_NAMES} names, this one has {}", request.names.len());
        return Err(ApiError::bad(message).hint("send several requests"));
    }
    let _permit = app.side.try_acquire().map_err(|_| ApiError::busy("too many names wait to be linked", 1))?;
    let engine = app.engine_for(request.project).await?;
    let results = app.blocking(move |app| {
        let links = engine.map(&request.names, top_k)?;
        let kb = app.engine.kb();
        let row = |candidate: &canonym::link::Candidate| CandidateRow {
            id: kb.id(candidate.concept).to_owned(),
            name: kb.preferred_name(candidate.concept).to_owned(),
            score: rounded(candidate.score),
        };
        let mapped = request.names.into_iter().zip(links);
        Ok(mapped
            .map(|(query, link)| Mapped { query, nil: link.nil, candidates: link.candidates.iter().map(row).collect() })
            .collect())
    });
    Ok(Json(MappedList { results: results.await? }))
}
