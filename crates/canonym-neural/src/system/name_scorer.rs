//! Evidence from the name alone: similarity of mention and concept names under a name encoder such as ResCNN (Lai et al. 2021), and the
//! mention prior p(concept given name) counted in annotated texts.

use canonym_core::kb::{ConceptId, FormId, KnowledgeBase};

use crate::index::{FlatIndex, Hit};
use crate::models::mention_prior::KbMentionPrior;
use crate::models::rescnn::names::NameEncoder;
use crate::tensor::matrix::{Matrix, dot};

/// Number of nearest forms that become candidates.
const N_NEAR: usize = 20;

/// Name scorer and mention prior.
#[derive(Debug, Default)]
pub struct NameEvidence {
    /// Name encoder; used only with lexical fusion.
    pub names: Option<NameScorer>,
    /// Mention prior; empty if the model has none.
    pub prior: KbMentionPrior,
}

/// A name encoder and the embeddings of all forms of a knowledge base.
#[derive(Debug)]
pub struct NameScorer {
    names: NameEncoder,
    index: FlatIndex,
}

impl NameScorer {
    /// A scorer; row i of `index` is the embedding of form i of the knowledge base.
    pub fn new(names: NameEncoder, index: FlatIndex) -> NameScorer {
        NameScorer { names, index }
    }

    /// Scores of a batch of names.
    pub(super) fn score(&self, names: &[String]) -> NameScores<'_> {
        let mut vectors = self.names.encode(names);
        vectors.normalise_rows();
        let near = self.index.search(&vectors, N_NEAR);
        NameScores { index: &self.index, vectors, near }
    }
}

/// Embeddings and nearest forms of a batch of names.
pub(super) struct NameScores<'a> {
    index: &'a FlatIndex,
    vectors: Matrix,
    near: Vec<Vec<Hit>>,
}

impl NameScores<'_> {
    /// The nearest forms of a name.
    pub fn forms(&self, name: usize) -> impl Iterator<Item = FormId> {
        self.near[name].iter().map(|hit| FormId(hit.row))
    }

    /// Maximum cosine between a name and the names of a concept.
    pub fn cosine(&self, name: usize, kb: &KnowledgeBase, concept: ConceptId) -> f32 {
        let of_form = |form: FormId| dot(self.vectors.row(name), &self.index.row(form.0 as usize));
        kb.names(concept).map(|name| of_form(kb.form_of(name))).max_by(f32::total_cmp).unwrap_or(0.0)
    }
}
