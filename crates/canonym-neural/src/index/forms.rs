//! Embeddings of the forms of a knowledge base: all in an index, or each when it is first compared.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use canonym_core::Result;
use canonym_core::kb::{FormId, KnowledgeBase};
use half::f16;

use super::stored::NameIndex;
use super::{FlatIndex, Index};
use crate::models::rescnn::names::NameEncoder;

/// In larger knowledge bases, forms are embedded on demand unless their embeddings are cached.
pub const MANY_FORMS: usize = 1_000_000;

/// Number of embeddings that are kept; when it is reached, all are dropped.
const MAX_KEPT: usize = 1 << 18;

/// Embeddings of the forms of a knowledge base.
#[derive(Debug)]
pub enum FormVectors {
    /// All forms, in order: the nearest ones become candidates.
    Indexed(FlatIndex),
    /// As [`FormVectors::Indexed`], in a file.
    Stored(Arc<NameIndex>),
    /// Forms that have been compared. Nothing is retrieved by embedding.
    OnDemand(KeptVectors),
}

impl FormVectors {
    /// The index, if there is one.
    pub fn index(&self) -> Option<&dyn Index> {
        match self {
            FormVectors::Indexed(index) => Some(index),
            FormVectors::Stored(index) => Some(&**index),
            FormVectors::OnDemand(_) => None,
        }
    }

    /// Fails if the embeddings are in a file that has changed since it was opened: results since then may be wrong.
    ///
    /// # Errors
    /// That of [`canonym_core::artifact::Container::check_unchanged`].
    pub fn check_unchanged(&self) -> Result<()> {
        match self {
            FormVectors::Indexed(index) => index.check_unchanged(),
            FormVectors::Stored(index) => index.container().check_unchanged(),
            FormVectors::OnDemand(_) => Ok(()),
        }
    }
}

/// Embeddings that have been computed so far.
#[derive(Debug, Default)]
pub struct KeptVectors {
    kept: Mutex<HashMap<FormId, Arc<[f32]>>>,
}

impl KeptVectors {
    /// The normalised embeddings of `forms`, which may repeat.
    pub fn of(&self, forms: &[FormId], kb: &KnowledgeBase, names: &NameEncoder) -> HashMap<FormId, Arc<[f32]>> {
        let lock = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: HashMap<FormId, Arc<[f32]>> = HashMap::with_capacity(forms.len());
        let mut missing = Vec::new();
        {
            let kept = lock();
            for form in forms {
                match kept.get(form) {
                    Some(vector) => drop(found.insert(*form, vector.clone())),
                    None => missing.push(*form),
                }
            }
        }
        missing.sort_unstable();
        missing.dedup();
        let mut vectors = names.encode_some(kb, &missing);
        vectors.normalise_rows();
        // Rounded as in the cache, so that cached and new embeddings link alike.
        let rounded = |row: usize| vectors.row(row).iter().map(|value| f16::from_f32(*value).to_f32()).collect();
        let new: Vec<(FormId, Arc<[f32]>)> =
            missing.into_iter().enumerate().map(|(row, form)| (form, rounded(row))).collect();
        let mut kept = lock();
        if kept.len() + new.len() > MAX_KEPT {
            kept.clear();
        }
        kept.extend(new.iter().cloned());
        found.extend(new);
        found
    }
}
