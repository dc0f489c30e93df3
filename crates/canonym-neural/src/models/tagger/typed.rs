//! The tagger with its feature extractor and label sets.

use canonym_core::text::analysis::Analysis;
use serde::{Deserialize, Serialize};

use super::features::{FeatureExtractor, TokenFeatures, Words};
use super::infer::{TaggedWindow, Tagger, WordRows};
use crate::models::mention_prior::MentionPrior;

/// A tagger with its feature extractor, label sets and mention prior.
#[derive(Debug)]
pub struct TypedTagger {
    /// Feature extractor.
    pub extractor: FeatureExtractor,
    /// Model.
    pub tagger: Tagger,
    /// Label sets, in the order of the model's scores.
    pub label_sets: Vec<LabelSet>,
    /// Mention prior of the training set.
    pub prior: MentionPrior,
}

/// What a label set is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelSet {
    /// Entity type; `None` if the label set was only an auxiliary task in training.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Minimum mean tagger probability, over the concept names of a knowledge base, for the type to count as covered.
    pub covers: f32,
    /// Whether the label set marks mentions of any type; its probability is a feature of every span proposal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub any_type: bool,
}

impl LabelSet {
    /// Whether its mentions are span proposals.
    pub fn proposes(&self) -> bool {
        self.any_type || self.name.is_some()
    }
}

/// Restores natural word order: `Anemia, Aplastic` becomes `Aplastic Anemia`.
fn in_order(name: &str) -> String {
    match name.split_once(", ") {
        Some((noun, rest)) if !rest.contains(", ") => format!("{rest} {noun}"),
        _ => name.to_owned(),
    }
}

/// Word features and vectors cached by a thread.
#[derive(Debug, Default)]
pub struct TaggerScratch {
    words: Words,
    rows: WordRows,
}

/// Number of cached words after which the cache is cleared.
const MAX_WORDS: usize = 1 << 15;

impl TypedTagger {
    /// Token features of a text; the vectors of its words are cached in `scratch`.
    pub fn features(&self, analysis: &Analysis<'_>, scratch: &mut TaggerScratch) -> TokenFeatures {
        if scratch.words.len() > MAX_WORDS {
            (scratch.words, scratch.rows) = Default::default();
        }
        let features = self.extractor.extract(analysis, &mut scratch.words);
        self.tagger.tabulate(&scratch.words, &mut scratch.rows);
        features
    }

    /// The tagger output for the label sets that propose mentions, window by window. `scratch` is that of the features.
    pub fn windows<'a>(
        &'a self,
        features: &'a TokenFeatures,
        scratch: &'a TaggerScratch,
    ) -> impl Iterator<Item = TaggedWindow> + 'a {
        let wanted = move |label_set: usize| self.label_sets[label_set].proposes();
        self.tagger.windows(features, &scratch.words, &scratch.rows, wanted)
    }

    /// For each label set, the probability that the whole name is a mention.
    pub fn marks_name(&self, name: &str, scratch: &mut TaggerScratch) -> Vec<f32> {
        let name = in_order(name);
        let features = self.features(&Analysis::of_text(&name), scratch);
        let named = |label_set: usize| self.label_sets[label_set].name.is_some();
        let tagged = self.tagger.tag(&features, &scratch.words, &scratch.rows, named);
        let n = features.tokens.len();
        let of_label_set = |label_set: usize| if n == 0 { 0.0 } else { tagged.mention(label_set, 0, n - 1) };
        (0..self.label_sets.len()).map(of_label_set).collect()
    }
}
