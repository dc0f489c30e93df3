//! What is known about a model: kind, size, weights, training record and model card.

use std::collections::BTreeMap;
use std::path::Path;

use canonym_core::Result;
use canonym_core::eval::learned::Learned;

use super::linked::MentionSource;
use super::{AnyModel, DEFAULT, DEFAULT_MODEL, Models, is_bundle};
use crate::bundle::{self, Header, Manifest, ModelFile, cross_encoder};

/// The facts about a model.
#[derive(Debug, Clone, Default)]
pub struct ModelInfo {
    /// Kind of model.
    pub kind: String,
    /// Format number of its file.
    pub format: Option<u32>,
    /// Size of its file.
    pub n_bytes: usize,
    /// Hash of its file.
    pub fingerprint: Option<u128>,
    /// Number of weights per part.
    pub parts: BTreeMap<String, usize>,
    /// Rows and columns of each matrix.
    pub shapes: BTreeMap<String, [usize; 2]>,
    /// Size in bytes of each table.
    pub tables: BTreeMap<String, usize>,
    /// Training documents of all parts.
    pub learned: Learned,
    /// Model card: data, scores, limits, licence.
    pub card: String,
}

impl ModelInfo {
    /// Reads the facts about a built-in model, a bundle or a run folder.
    ///
    /// # Errors
    /// If there is no readable model of that name.
    pub fn open(name: &str) -> Result<ModelInfo> {
        let path = Path::new(name);
        let (file, content) = match (name, is_bundle(path)) {
            (_, true) => bundle::read_file(path)?,
            (DEFAULT, _) => (path.to_path_buf(), DEFAULT_MODEL.to_vec()),
            _ => {
                let models = Models::named(name)?;
                return Ok(ModelInfo { learned: models.learned(MentionSource::Detect)?, ..models.linking.info() });
            }
        };
        let info = match AnyModel::from_bytes(&content, &file)? {
            AnyModel::Linking(model) => ModelInfo { learned: model.learned(MentionSource::Detect)?, ..model.info() },
            AnyModel::Reranking(bundle) => {
                let mut learned = Learned::default();
                learned.join_whole(cross_encoder::SYSTEM, bundle.learned.as_ref());
                ModelInfo { learned, ..ModelInfo::of_file(&bundle) }
            }
        };
        Ok(ModelInfo { n_bytes: content.len(), ..info })
    }

    /// The facts in a bundle, but for its size and the training record of all parts.
    pub fn of_file<M: Manifest>(bundle: &ModelFile<M>) -> ModelInfo {
        let header = Header::of(&bundle.manifest).ok();
        let mut info = ModelInfo {
            kind: bundle.manifest.description(),
            format: header.as_ref().map(|header| header.format),
            fingerprint: Some(bundle.fingerprint),
            card: header.map(|header| header.card).unwrap_or_default(),
            ..ModelInfo::default()
        };
        for (name, value) in bundle.parameters.iter() {
            let part = name.split('.').next().unwrap_or(name);
            *info.parts.entry(part.to_owned()).or_default() += value.values.len();
            info.shapes.insert(name.to_owned(), [value.n_rows, value.n_cols]);
        }
        info.tables = bundle.parameters.tables().map(|(name, content)| (name.to_owned(), content.len())).collect();
        info
    }
}
