//! Names to vectors: the tokenizer and the encoder together.

use canonym_core::kb::KnowledgeBase;
use canonym_core::text::normalise::fold;
use rayon::prelude::*;

use super::infer::ResCnnEncoder;
use crate::tensor::matrix::Matrix;
use crate::tokenizer::Pieces;

/// The dense side: how names become vectors.
#[derive(Debug)]
pub struct NameEncoder {
    /// Divides names.
    pub pieces: Pieces,
    /// Makes vectors.
    pub encoder: ResCnnEncoder,
}

impl NameEncoder {
    /// The vectors of names, which are folded first.
    pub fn encode<T: AsRef<str> + Sync>(&self, names: &[T]) -> Matrix {
        let rows: Vec<Vec<u32>> = names.par_iter().map(|name| self.pieces.rows(&fold(name.as_ref()))).collect();
        self.encoder.encode(&rows)
    }

    /// The vectors of the forms of a knowledge base, in order.
    pub fn encode_forms(&self, kb: &KnowledgeBase) -> Matrix {
        let forms: Vec<&str> = (0..kb.n_forms()).map(|form| kb.forms().get(form)).collect();
        let rows: Vec<Vec<u32>> = forms.par_iter().map(|form| self.pieces.rows(form)).collect();
        self.encoder.encode(&rows)
    }
}
