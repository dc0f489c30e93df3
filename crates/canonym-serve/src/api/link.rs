//! Linking of texts and names.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use canonym_core::corpus::{AnnotatedDocument, Annotation, contexts};
use canonym_core::kb::subset::SubsetConfig;
use canonym_core::kb::translate::{PredicateMappings, Translator};
use canonym_core::kb::{ConceptId, KnowledgeBase, code_system};
use canonym_core::link::explain::Explanation;
use canonym_core::link::recognise::Nested;
use canonym_core::link::{Candidate, Link};
use canonym_core::numbers::rounded;
use canonym_core::text::Document;
use canonym_core::text::offsets::OffsetMap;

use super::{Bounds, bytes, json};
use crate::batcher::LinkMode;
use crate::engine::{Engine, LinkOptions, Mentions, Nil};
use crate::error::{ApiError, ApiResult};
use crate::marks::CandidateRow;
use crate::spans::{from_pairs, surface};
use crate::state::App;
use crate::wire::{
    Filters, LinkRequest, LinkedOut, MapRequest, Mapped, MappedCandidate, MappedCode, MappedList, MentionIn, Person,
    TextIn,
};

/// The maximum number of texts per request.
const MAX_TEXTS: usize = 1000;

/// Candidates per mention or name.
const TOP_K: Bounds = Bounds { min: 1, default: 5, max: 100 };

/// The maximum number of names per request.
pub const MAX_NAMES: usize = 1000;

/// Bytes of text per batch, unless one text is longer.
const PART_BYTES: usize = 512 << 10;

/// What to do if the response to linked texts becomes too long.
const LINK_HINT: &str = "send less at once, request fewer candidates (`top_k`), or use POST /api/v1/link/stream";

/// What to do if the response to linked names becomes too long.
const MAP_HINT: &str = "send fewer names at once, request fewer candidates (`top_k`), or omit `explain`";

/// Code systems named in a hint.
const MAX_SYSTEMS: usize = 20;

/// The maximum number of entries of a filter.
const MAX_FILTER: usize = 1000;

/// The parameters of a linking request.
#[derive(Default)]
pub struct LinkParams {
    pub top_k: Option<usize>,
    pub min_score: Option<f32>,
    pub nested: Option<bool>,
    pub nil: Nil,
    pub explain: bool,
    pub context: bool,
    pub drop_context: Vec<String>,
    pub filters: Option<Filters>,
    pub mentions: Mentions,
}

/// The linking options of a request.
pub fn link_mode(params: LinkParams) -> ApiResult<LinkMode> {
    let LinkParams { top_k, min_score, nested, nil, explain, context, drop_context, filters, mentions } = params;
    if let Some(min_score) = min_score
        && !(0.0..=1.0).contains(&min_score)
    {
        return Err(ApiError::bad(format!("`min_score` must be between 0 and 1, not {min_score}")));
    }
    // Rounded, because the engine caches one system per setting.
    let min_score = min_score.map(|min_score| (min_score * 100.0).round() / 100.0);
    let top_k = TOP_K.check(top_k, "top_k")?;
    let nested = match nested {
        Some(true) => Nested::All,
        Some(false) => Nested::None,
        None => Nested::default(),
    };
    if let Some(unknown) = drop_context.iter().find(|value| !contexts::VALUES.contains(&value.as_str())) {
        let message = format!("unknown context `{}`", shortened(unknown));
        return Err(ApiError::bad(message).hint(format!("use one of {}", contexts::VALUES.join(", "))));
    }
    let filters = filters.map(subset).transpose()?.flatten().map(Arc::new);
    let context = context || !drop_context.is_empty();
    let options = LinkOptions { top_k, min_score, nested, nil, mentions, filters };
    Ok(LinkMode { options, explain, context, drop_context })
}

/// The filters of a request; `None` if there are none.
fn subset(filters: Filters) -> ApiResult<Option<SubsetConfig>> {
    let Filters { only_sources, only_types, only_under, not_sources, not_types, not_under } = filters;
    let config = SubsetConfig { only_sources, only_types, only_under, not_sources, not_types, not_under };
    let lists = [&config.only_sources, &config.only_types, &config.only_under];
    let not = [&config.not_sources, &config.not_types, &config.not_under];
    if let Some(long) = lists.into_iter().chain(not).find(|list| list.len() > MAX_FILTER) {
        let message = format!("a filter may have at most {MAX_FILTER} entries, not {}", long.len());
        return Err(ApiError::bad(message).hint("filter by a common ancestor, a source or a semantic type"));
    }
    Ok(Some(config).filter(|config| !config.is_all()))
}

/// Text of a request, short enough to be quoted.
fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// The engine of a request: that of a project, or of the server with the model `name`.
pub async fn engine(
    app: &Arc<App>,
    person: Person,
    project: Option<i64>,
    name: Option<String>,
) -> ApiResult<Arc<dyn Engine>> {
    let engine = app.engine_for(person, project).await?;
    match name {
        Some(_) if project.is_some() => Err(ApiError::bad("give either `model` or `project`")),
        Some(name) if name != engine.name() => {
            app.blocking(move |_| {
                engine.with_model(&name)?.ok_or_else(|| {
                    ApiError::bad(format!("unknown model `{}`", shortened(&name)))
                        .hint(format!("use {}, or name a project with `project`", names_of_models(engine.name())))
                })
            })
            .await
        }
        _ => Ok(engine),
    }
}

/// The models that a request may name: that of the server, and the lexical one.
fn names_of_models(name: &str) -> String {
    match name {
        "lexical" => "`lexical`".to_owned(),
        name => format!("`{name}` or `lexical`"),
    }
}

/// Converts a text to a document of the library, with its given mentions.
pub fn document(text: TextIn, row: usize) -> ApiResult<AnnotatedDocument> {
    let id = text.id.unwrap_or_else(|| (row + 1).to_string());
    let document = Document { id, text: text.text, sections: Vec::new() };
    let map = OffsetMap::new(&document.text);
    let annotation = |mention: MentionIn| {
        let spans = from_pairs(&map, &mention.spans)?;
        let text = surface(&document.text, &spans);
        Ok(Annotation { spans, text, semantic_type: mention.kind, ..Annotation::default() })
    };
    let annotations =
        text.mentions.unwrap_or_default().into_iter().map(annotation).collect::<ApiResult<Vec<Annotation>>>()?;
    Ok(AnnotatedDocument { document, annotations, ..AnnotatedDocument::default() })
}

/// Where the mentions of texts come from: all have mentions, or none.
fn mentions_of(texts: &[TextIn]) -> ApiResult<Mentions> {
    match texts.iter().filter(|text| text.mentions.is_some()).count() {
        0 => Ok(Mentions::Detected),
        n if n == texts.len() => Ok(Mentions::Given),
        _ => Err(ApiError::bad("some documents have `mentions` and others do not")
            .hint("send the ones with mentions in a request of their own; an empty list is a document without any")),
    }
}

/// `POST /link`: finds and links mentions in one or several texts.
pub async fn link(State(app): State<Arc<App>>, person: Person, request: Request<Body>) -> ApiResult<Response> {
    let request: LinkRequest = json(&bytes(request, app.config.max_link_bytes).await?)?;
    let (texts, is_one) = match (request.text, request.documents) {
        (Some(text), None) => (vec![TextIn { id: Some("text".to_owned()), text, mentions: request.mentions }], true),
        (None, Some(documents)) if request.mentions.is_none() => (documents, false),
        (None, Some(_)) => return Err(ApiError::bad("give `mentions` in each of the `documents`")),
        _ => return Err(ApiError::bad("give either `text` or `documents`")),
    };
    if texts.len() > MAX_TEXTS {
        let message = format!("at most {MAX_TEXTS} texts per request, not {}", texts.len());
        return Err(ApiError::bad(message).hint("send several requests, or use POST /api/v1/link/stream"));
    }
    texts.iter().try_for_each(|text| check_text(&app, &text.text))?;
    let mentions = mentions_of(&texts)?;
    let LinkRequest { top_k, min_score, nested, nil, explain, context, drop_context, filters, .. } = request;
    let mode =
        link_mode(LinkParams { top_k, min_score, nested, nil, explain, context, drop_context, filters, mentions })?;
    let engine = engine(&app, person, request.project, request.model).await?;
    let documents =
        texts.into_iter().enumerate().map(|(row, text)| document(text, row)).collect::<ApiResult<Vec<_>>>()?;
    // Serialized batch by batch: the response is many times as long as the texts.
    let (open, close) = if is_one { ("", "") } else { ("{\"documents\":[", "]}") };
    let mut answer = Answer { bytes: open.as_bytes().to_vec(), limit: app.config.max_answer_bytes };
    let mut is_first = true;
    for part in parts(documents) {
        let n_bytes = part.iter().map(|one| one.document.text.len()).sum();
        let linked = app.batcher.link(engine.clone(), part, mode.clone()).await?;
        app.metrics.linked(linked.len(), n_bytes);
        for (document, reasons) in linked {
            if !std::mem::take(&mut is_first) {
                answer.bytes.push(b',');
            }
            answer.add(&LinkedOut::new(document, reasons), LINK_HINT)?;
        }
    }
    answer.bytes.extend_from_slice(close.as_bytes());
    Ok(([(header::CONTENT_TYPE, "application/json")], answer.bytes).into_response())
}

/// 413 if a text is too long.
pub fn check_text(app: &App, text: &str) -> ApiResult<()> {
    let limit = app.config.max_text_bytes;
    match text.len() <= limit {
        true => Ok(()),
        false => Err(ApiError {
            message: format!("a text may have at most {limit} bytes, this one has {}", text.len()),
            ..ApiError::too_large(limit)
        }
        .hint("split it, for instance into chapters")),
    }
}

/// Splits documents into batches.
fn parts(documents: Vec<AnnotatedDocument>) -> Vec<Vec<AnnotatedDocument>> {
    let mut parts: Vec<Vec<AnnotatedDocument>> = Vec::new();
    let mut n_bytes = 0;
    for document in documents {
        let len = document.document.text.len();
        match parts.last_mut().filter(|_| n_bytes + len <= PART_BYTES) {
            Some(part) => part.push(document),
            None => {
                parts.push(vec![document]);
                n_bytes = 0;
            }
        }
        n_bytes += len;
    }
    parts
}

/// A JSON response of limited size.
struct Answer {
    bytes: Vec<u8>,
    limit: usize,
}

impl Answer {
    /// Appends a value; `hint` says what to do if the response becomes too long.
    fn add(&mut self, value: &impl serde::Serialize, hint: &str) -> ApiResult<()> {
        let written = serde_json::to_writer(&mut *self, value);
        written.map_err(|error| match error.is_io() {
            true => {
                let message = format!("the response would exceed {} bytes", self.limit);
                ApiError { message, ..ApiError::too_large(self.limit) }.hint(hint)
            }
            false => ApiError::internal(&error),
        })
    }
}

impl std::io::Write for Answer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// `POST /map`: links names without context.
pub async fn map(State(app): State<Arc<App>>, person: Person, request: Request<Body>) -> ApiResult<Response> {
    let request: MapRequest = json(&bytes(request, super::MAX_BODY).await?)?;
    let MapRequest { names, top_k, min_score, explain, filters, to_system, model, project } = request;
    let options = link_mode(LinkParams { top_k, min_score, filters, ..LinkParams::default() })?.options;
    if names.len() > MAX_NAMES {
        let message = format!("at most {MAX_NAMES} names per request, not {}", names.len());
        return Err(ApiError::bad(message).hint("send several requests"));
    }
    let _permit =
        app.unbatched_permits.try_acquire().map_err(|_| ApiError::busy("too many names are being linked", 1))?;
    let engine = engine(&app, person, project, model).await?;
    let answer = app.blocking(move |app| {
        let kb = app.engine.kb();
        let translator = to_system.map(|system| translator(kb, &system)).transpose()?;
        let links: Vec<(Link, Option<Explanation>)> = match explain {
            true => engine.explain_names(&names, &options)?.into_iter().map(|(link, why)| (link, Some(why))).collect(),
            false => engine.map(&names, &options)?.into_iter().map(|link| (link, None)).collect(),
        };
        let candidate = |candidate: &Candidate| MappedCandidate {
            candidate: CandidateRow {
                id: kb.id(candidate.concept).to_owned(),
                name: kb.preferred_name(candidate.concept).to_owned(),
                score: rounded(candidate.p_link),
                p_link: Some(rounded(candidate.p_link)),
            },
            codes: translator.as_ref().map(|translator| codes(kb, translator, candidate.concept)),
        };
        let mapped = names.into_iter().zip(links).map(|(query, (link, explanation))| Mapped {
            query,
            nil: link.nil,
            candidates: link.candidates.iter().map(candidate).collect(),
            explanation,
        });
        let mut answer = Answer { bytes: Vec::new(), limit: app.config.max_answer_bytes };
        answer.add(&MappedList { results: mapped.collect() }, MAP_HINT)?;
        Ok(answer.bytes)
    });
    Ok(([(header::CONTENT_TYPE, "application/json")], answer.await?).into_response())
}

/// A translator into a code system that the terminology has codes of.
fn translator(kb: &KnowledgeBase, system: &str) -> ApiResult<Translator> {
    Translator::new(kb, system, PredicateMappings::default()).map_err(|error| {
        let prefixes = code_system::prefixes(kb).into_iter().chain(code_system::xref_prefixes(kb));
        let mut known: Vec<String> = prefixes.map(|prefix| code_system::canonical_prefix(&prefix).to_owned()).collect();
        known.retain(|prefix| !prefix.is_empty());
        known.sort();
        known.dedup();
        known.truncate(MAX_SYSTEMS);
        let error = ApiError { hint: None, ..ApiError::from(error) };
        if known.is_empty() { error } else { error.hint(format!("use one of {}", known.join(", "))) }
    })
}

/// The codes of a concept in the system of `translator`.
fn codes(kb: &KnowledgeBase, translator: &Translator, concept: ConceptId) -> Vec<MappedCode> {
    let codes = translator.codes(kb, concept).into_iter();
    codes.map(|code| MappedCode { id: code.id, predicate: code.predicate.name() }).collect()
}
