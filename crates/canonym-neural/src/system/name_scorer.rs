//! What speaks beside words and context: how near the name of a mention, by itself, is to the names of a concept by an encoder of names such as
//! ResCNN (Lai et al. 2021), and what the name was used for in annotated texts.

use canonym_core::kb::{ConceptId, FormId, KnowledgeBase};

use crate::index::{FlatIndex, Hit};
use crate::models::mention_prior::KbMentionPrior;
use crate::models::rescnn::names::NameEncoder;
use crate::tensor::matrix::{Matrix, dot};

/// Forms near a name that become candidates.
const N_NEAR: usize = 20;

/// What speaks beside words and context.
#[derive(Debug, Default)]
pub struct NameEvidence {
    /// An encoder of names; it is heard where words are.
    pub names: Option<NameScorer>,
    /// What names were used for; nothing where that was not counted.
    pub usages: KbMentionPrior,
}

/// An encoder of names, and the vectors of the forms of a knowledge base.
#[derive(Debug)]
pub struct NameScorer {
    names: NameEncoder,
    index: FlatIndex,
}

impl NameScorer {
    /// A voice; the rows of `index` are the vectors of the forms of the knowledge base that is linked to.
    pub fn new(names: NameEncoder, index: FlatIndex) -> NameScorer {
        NameScorer { names, index }
    }

    /// What it says of some names.
    pub(super) fn heard(&self, names: &[String]) -> NameScores<'_> {
        let mut vectors = self.names.encode(names);
        vectors.normalise_rows();
        let near = self.index.search(&vectors, N_NEAR);
        NameScores { index: &self.index, vectors, near }
    }
}

/// What a voice says of some names.
pub(super) struct NameScores<'a> {
    index: &'a FlatIndex,
    vectors: Matrix,
    near: Vec<Vec<Hit>>,
}

impl NameScores<'_> {
    /// The forms that are nearest to a name.
    pub fn forms(&self, name: usize) -> impl Iterator<Item = FormId> {
        self.near[name].iter().map(|hit| FormId(hit.row))
    }

    /// The greatest cosine of a name and the names of a concept.
    pub fn cosine(&self, name: usize, kb: &KnowledgeBase, concept: ConceptId) -> f32 {
        let of_form = |form: FormId| dot(self.vectors.row(name), self.index.rows().row(form.0 as usize));
        kb.names(concept).map(|name| of_form(kb.form_of(name))).max_by(f32::total_cmp).unwrap_or(0.0)
    }
}
