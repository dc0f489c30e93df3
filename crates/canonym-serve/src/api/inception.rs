//! `/inception/{label}`: an external recommender of INCEpTION.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::text::Document;
use serde::{Deserialize, Serialize};

use super::link::check_text;
use super::{bytes, json};
use crate::batcher::LinkMode;
use crate::engine::LinkOptions;
use crate::error::{ApiError, ApiResult};
use crate::inception::{Cas, Layer, Suggestion};
use crate::marks::rounded;
use crate::state::App;

/// What a recommender can write into the feature.
const LABELS: [&str; 3] = ["id", "name", "type"];

/// A request of INCEpTION; fields that are not needed are ignored.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PredictRequest {
    metadata: Metadata,
    document: RequestDocument,
    #[serde(default)]
    type_system: String,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    layer: String,
    feature: String,
}

#[derive(Debug, Deserialize)]
struct RequestDocument {
    xmi: String,
}

/// The document with suggestions.
#[derive(Debug, Serialize)]
pub struct Predicted {
    document: String,
}

/// `POST /inception/{label}/predict`: the document with its mentions as suggestions.
pub async fn predict(
    State(app): State<Arc<App>>,
    Path(label): Path<String>,
    request: Request<Body>,
) -> ApiResult<Json<Predicted>> {
    check_label(&label)?;
    let request: PredictRequest = json(&bytes(request, app.config.max_link_bytes).await?)?;
    let cas = Cas::read(&request.document.xmi)?;
    check_text(&app, &cas.text)?;
    let document = Document { id: "text".to_owned(), text: cas.text.clone(), sections: Vec::new() };
    let n_bytes = document.text.len();
    let documents = vec![AnnotatedDocument { document, ..AnnotatedDocument::default() }];
    let mode = LinkMode { options: LinkOptions { top_k: 1, ..LinkOptions::default() }, ..LinkMode::default() };
    let linked = app.batcher.link(app.engine.clone(), documents, mode).await?;
    app.metrics.linked(linked.len(), n_bytes);
    let mentions = linked.iter().flat_map(|(document, _)| &document.annotations);
    let suggestions: Vec<Suggestion> = mentions.filter_map(|mention| suggestion(&label, mention)).collect();
    let Metadata { layer, feature } = &request.metadata;
    let layer = Layer { name: layer, feature, types: &request.type_system };
    Ok(Json(Predicted { document: cas.with(&layer, &suggestions)? }))
}

/// `POST /inception/{label}/train`: accepted and not used. Models are trained in projects of this server, or by `canonym train`.
pub async fn train(Path(label): Path<String>) -> ApiResult<StatusCode> {
    check_label(&label)?;
    Ok(StatusCode::NO_CONTENT)
}

fn check_label(label: &str) -> ApiResult<()> {
    match LABELS.contains(&label) {
        true => Ok(()),
        false => {
            let hint = format!("use one of {}", LABELS.map(|label| format!("/inception/{label}")).join(", "));
            Err(ApiError::not_found("there is no such recommender").hint(hint))
        }
    }
}

/// The suggestion for a mention. INCEpTION has no discontinuous spans; unlinked mentions have a type alone.
fn suggestion(label: &str, mention: &Annotation) -> Option<Suggestion> {
    let [span] = mention.spans[..] else { return None };
    let best = mention.candidates.first().filter(|_| !mention.nil);
    let text = match label {
        "id" => best?.id.clone(),
        "name" => best?.name.clone(),
        _ => mention.semantic_type.clone(),
    };
    let score = rounded(mention.score.unwrap_or_default());
    (!text.is_empty()).then_some(Suggestion { span: span.start as usize..span.end as usize, label: text, score })
}
