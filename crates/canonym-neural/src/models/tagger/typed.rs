//! The tagger with its vocabulary and its label sets: what reads a text.

use serde::{Deserialize, Serialize};

use super::features::{FeatureExtractor, TokenFeatures, Words};
use super::infer::{Tagged, Tagger, WordRows};
use crate::models::mention_prior::MentionPrior;

/// The recogniser: how it sees, and what each layer is for.
#[derive(Debug)]
pub struct TypedTagger {
    /// How it sees a text.
    pub viewer: FeatureExtractor,
    /// Its weights.
    pub tagger: Tagger,
    /// What each layer is for.
    pub layers: Vec<LabelSet>,
    /// What names were used for in the texts that it was trained on.
    pub usages: MentionPrior,
}

/// What a layer of types is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelSet {
    /// The type of its mentions; none where the layer only helped to train the others.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The share of the concepts of a knowledge base, by their names, from which on mentions of the type are looked for.
    pub covers: f32,
    /// Whether the layer marks mentions of every type, so that it informs the dictionary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_type: bool,
}

/// A name as text has it: `Anemia, Aplastic` is turned round.
fn in_order(name: &str) -> String {
    match name.split_once(", ") {
        Some((noun, rest)) if !rest.contains(", ") => format!("{rest} {noun}"),
        _ => name.to_owned(),
    }
}

/// What a thread remembers of words.
#[derive(Debug, Default)]
pub struct TaggerScratch {
    words: Words,
    rows: WordRows,
}

/// Words that a thread remembers before it starts afresh.
const MAX_WORDS: usize = 1 << 15;

impl TypedTagger {
    /// A text as the tagger sees it, and what it says of the layers that are wanted.
    pub fn read(
        &self,
        text: &str,
        scratch: &mut TaggerScratch,
        wanted: impl Fn(usize) -> bool,
    ) -> (TokenFeatures, Tagged) {
        if scratch.words.len() > MAX_WORDS {
            (scratch.words, scratch.rows) = Default::default();
        }
        let view = self.viewer.view(text, &mut scratch.words);
        self.tagger.tabulate(&scratch.words, &mut scratch.rows);
        let tagged = self.tagger.tag(&view, (&scratch.words, &scratch.rows), wanted);
        (view, tagged)
    }

    /// For each layer how likely it marks the whole of a name.
    pub fn marks_name(&self, name: &str, scratch: &mut TaggerScratch) -> Vec<f32> {
        let (view, tagged) = self.read(&in_order(name), scratch, |layer| self.layers[layer].name.is_some());
        let n = view.tokens.len();
        let of_layer = |layer: usize| if n == 0 { 0.0 } else { tagged.mention(layer, 0, n - 1) };
        (0..self.layers.len()).map(of_layer).collect()
    }
}
