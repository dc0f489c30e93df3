//! Name encoder: tokenizer and ResCNN.

use canonym_core::kb::{FormId, KnowledgeBase};
use canonym_core::text::normalise::fold;
use rayon::prelude::*;

use super::infer::ResCnnEncoder;
use crate::tensor::matrix::Matrix;
use crate::tokenizer::Tokenizer;

/// Tokenises and encodes names.
#[derive(Debug)]
pub struct NameEncoder {
    /// The vocabulary.
    pub tokenizer: Tokenizer,
    /// The model.
    pub encoder: ResCnnEncoder,
}

impl NameEncoder {
    /// Name vectors; names are folded first.
    pub fn encode<T: AsRef<str> + Sync>(&self, names: &[T]) -> Matrix {
        let rows: Vec<Vec<u32>> = names.par_iter().map(|name| self.tokenizer.input_ids(&fold(name.as_ref()))).collect();
        self.encoder.encode(&rows)
    }

    /// Vectors of the forms of a knowledge base, in order.
    pub fn encode_forms(&self, kb: &KnowledgeBase) -> Matrix {
        let forms: Vec<FormId> = (0..kb.n_forms() as u32).map(FormId).collect();
        self.encode_some(kb, &forms)
    }

    /// Vectors of some forms of a knowledge base.
    pub fn encode_some(&self, kb: &KnowledgeBase, forms: &[FormId]) -> Matrix {
        let texts = kb.forms();
        let rows: Vec<Vec<u32>> =
            forms.par_iter().map(|form| self.tokenizer.input_ids(&texts.get(form.0 as usize))).collect();
        self.encoder.encode(&rows)
    }
}
