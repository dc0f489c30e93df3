//! Requests and responses of external recommenders of INCEpTION.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A document to predict annotations for. Unknown fields, and the type system, are ignored.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct PredictRequest {
    /// The layer and feature.
    pub metadata: RecommenderMetadata,
    /// The document.
    pub document: RecommenderDocument,
    /// The UIMA type system of the document. Only features that it declares for the layer are written.
    #[serde(default, rename = "typeSystem")]
    pub type_system: String,
}

/// The layer and feature that a recommender fills.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecommenderMetadata {
    /// Name of the type of the layer, such as `webanno.custom.Finding`.
    pub layer: String,
    /// Name of the feature.
    pub feature: String,
    /// `characters`, `singleToken`, `tokens` or `sentences`.
    #[serde(default)]
    pub anchoring_mode: String,
    /// Whether annotations may cross sentences.
    #[serde(default)]
    pub cross_sentence: bool,
}

/// A document of INCEpTION.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct RecommenderDocument {
    /// The UIMA CAS as XMI.
    pub xmi: String,
}

/// A document with predictions.
#[derive(Debug, Clone, Deserialize, Serialize, ToSchema)]
pub struct Predicted {
    /// The UIMA CAS as XMI.
    pub document: String,
}
