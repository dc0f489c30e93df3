//! `/inception`: an external recommender of INCEpTION. `predict` writes linked mentions into the document; `train` is refused.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use canonym_core::corpus::uima::{Cas, Prediction, features_of};
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::kb::{KnowledgeBase, code_system};
use canonym_core::numbers::rounded;
use canonym_core::text::{Document, Span};

use super::link::check_text;
use super::{bytes, json};
use crate::batcher::LinkMode;
use crate::engine::{LinkOptions, Nil};
use crate::error::{ApiError, ApiResult};
use crate::state::App;
use crate::wire::{PredictRequest, Predicted};

/// What is written into the feature of the recommender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Id,
    Iri,
    Name,
    Type,
}

impl Value {
    fn of(word: &str) -> ApiResult<Value> {
        match word {
            "id" => Ok(Value::Id),
            "iri" => Ok(Value::Iri),
            "name" => Ok(Value::Name),
            "type" => Ok(Value::Type),
            _ => Err(ApiError::not_found("no such recommender")
                .hint("the addresses end in /inception/id, /inception/iri, /inception/name or /inception/type")),
        }
    }

    /// The value for a mention; `None` if it has none.
    fn of_mention(self, kb: &KnowledgeBase, mention: &Annotation) -> Option<String> {
        let best = mention.candidates.first().filter(|_| !mention.nil);
        let value = match self {
            Value::Id => best?.id.clone(),
            Value::Iri => code_system::iri(kb, &best?.id),
            Value::Name => best?.name.clone(),
            Value::Type => mention.semantic_type.clone(),
        };
        Some(value).filter(|value| !value.is_empty())
    }
}

/// `POST /inception/{value}/predict`.
pub async fn predict(
    State(app): State<Arc<App>>,
    Path(value): Path<String>,
    request: Request<Body>,
) -> ApiResult<Json<Predicted>> {
    let value = Value::of(&value)?;
    let request: PredictRequest = json(&bytes(request, app.config.max_link_bytes).await?)?;
    let cas = Cas::read(&request.document.xmi)?;
    let declared = match request.type_system.trim() {
        "" => None,
        types => features_of(types, &request.metadata.layer)?,
    };
    check_text(&app, &cas.text)?;
    let document = Document { id: "text".to_owned(), text: cas.text.clone(), sections: Vec::new() };
    let n_bytes = document.text.len();
    let documents = vec![AnnotatedDocument { document, ..AnnotatedDocument::default() }];
    let nil = if value == Value::Type { Nil::Keep } else { Nil::Drop };
    let mode = LinkMode { options: LinkOptions { nil, ..LinkOptions::default() }, ..LinkMode::default() };
    let linked = app.batcher.link(app.engine.clone(), documents, mode).await?;
    app.metrics.linked(linked.len(), n_bytes);
    let kb = app.engine.kb();
    let metadata = &request.metadata;
    let mut predictions = Vec::new();
    for mention in linked.iter().flat_map(|(document, _)| &document.annotations) {
        // A layer has one span: that of the whole mention.
        let (Some(first), Some(last)) = (mention.spans.first(), mention.spans.last()) else { continue };
        let whole = Span { start: first.start, end: last.end };
        let Some(span) = anchored(&cas, whole, &metadata.anchoring_mode) else { continue };
        let Some(text) = value.of_mention(kb, mention) else { continue };
        if !metadata.cross_sentence && !cas.is_in_sentence(span) {
            continue;
        }
        let name = &metadata.feature;
        let score = rounded(mention.probability()).to_string();
        let why =
            mention.candidates.first().filter(|_| !mention.nil).map(|best| format!("{} ({})", best.name, best.id));
        let mut features = vec![
            (name.clone(), text),
            (format!("{name}_score"), score),
            ("inception_internal_predicted".to_owned(), "true".to_owned()),
        ];
        features.extend(why.map(|why| (format!("{name}_score_explanation"), why)));
        features.retain(|(name, _)| declared.as_ref().is_none_or(|declared| declared.contains(name)));
        predictions.push(Prediction { span, features });
    }
    Ok(Json(Predicted { document: cas.with(&metadata.layer, &predictions)? }))
}

/// The span as the layer anchors it; `None` if the layer cannot hold it.
fn anchored(cas: &Cas<'_>, span: Span, mode: &str) -> Option<Span> {
    match mode {
        "characters" => Some(span),
        "singleToken" => (cas.n_tokens(span) <= 1).then(|| cas.to_tokens(span)),
        "sentences" => None,
        _ => Some(cas.to_tokens(span)),
    }
}

/// `POST /inception/{value}/train`.
pub async fn train(Path(value): Path<String>) -> ApiError {
    match Value::of(&value) {
        Err(error) => error,
        Ok(_) => {
            let error = ApiError::bad("this recommender is not trained by INCEpTION");
            ApiError { status: StatusCode::NOT_IMPLEMENTED, ..error }
                .hint("switch off `Trainable` in the settings of the recommender; train with `canonym train` or in the application")
        }
    }
}
