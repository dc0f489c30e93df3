//! Fine-tuning on mentions in context, and the choice of the name that a mention is to become (sections 3.1 and 3.4 of the paper).

use std::collections::HashMap;

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::kb::KnowledgeBase;
use canonym_core::text::Mention;
use canonym_core::text::analysis::Analysis;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::models::generative::text::{Coder, plain_name};
use crate::objectives::generative::{Examples, GenerativeExample};
use crate::recipes::dual_encoder::data::{Labels, ids_of};
use crate::system::terminology::bare;
use crate::tensor::random::SplitMix64;

/// Which name of its concept a mention is to become.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetName {
    /// The one most similar to the mention, by TF-IDF of character trigrams; the shortest one of several.
    #[default]
    Similar,
    /// The shortest one.
    Shortest,
    /// Another one each time.
    Sampled,
    /// The preferred name.
    Canonical,
}

/// What became of the mentions of a corpus.
#[derive(Debug, Default, Clone, Serialize)]
pub struct MentionReport {
    pub n_documents: usize,
    pub n_mentions: usize,
    /// Unlinked mentions.
    pub n_nil: usize,
    /// Mentions with several concepts, which are not learned from.
    pub n_composite: usize,
    /// Mentions whose concept the terminology lacks.
    pub n_unknown: usize,
    pub n_examples: usize,
}

/// Examples of mentions.
#[derive(Debug, Default)]
pub struct MentionExamples {
    examples: Vec<MentionExample>,
}

/// A mention in tokens, with the names that it may become.
#[derive(Debug)]
struct MentionExample {
    source: Vec<u32>,
    prompt: Vec<u32>,
    targets: Vec<Vec<u32>>,
}

impl MentionExamples {
    /// Tokenises the mentions of documents with one concept that the knowledge base has.
    pub fn new(
        documents: &[AnnotatedDocument],
        kb: &KnowledgeBase,
        labels: &Labels,
        (coder, target): (&Coder, TargetName),
    ) -> (MentionExamples, MentionReport) {
        let similarity = match target {
            TargetName::Similar => {
                let mentions =
                    documents.iter().flat_map(|document| &document.annotations).map(|one| plain_name(&one.text));
                Trigrams::new(
                    kb.concepts()
                        .flat_map(|concept| kb.names(concept))
                        .map(|name| plain_name(kb.name(name)))
                        .chain(mentions),
                )
            }
            _ => Trigrams::default(),
        };
        let mut report = MentionReport { n_documents: documents.len(), ..MentionReport::default() };
        let analysed = Analysis::all(documents.iter().map(|document| &document.document));
        let mut chosen: Vec<(&Analysis<'_>, Mention, u32)> = Vec::new();
        for (document, analysis) in documents.iter().zip(&analysed) {
            for annotation in &document.annotations {
                report.n_mentions += 1;
                let concept = match ids_of(annotation)[..] {
                    [] => {
                        report.n_nil += 1;
                        continue;
                    }
                    [id] => labels.get(bare(id)).and_then(|concepts| concepts.first()),
                    _ => {
                        report.n_composite += 1;
                        continue;
                    }
                };
                let Some(concept) = concept else {
                    report.n_unknown += 1;
                    continue;
                };
                chosen.push((analysis, annotation.mention(), *concept));
            }
        }
        let example = |(document, mention, concept): &(&Analysis<'_>, Mention, u32)| {
            let surface = long_form(document, mention);
            let targets = names(kb, *concept, (&surface, target), &similarity, coder);
            (!targets.is_empty()).then(|| MentionExample {
                source: coder.mention_source(document.text, mention.hull(), &surface),
                prompt: coder.prompt(&surface),
                targets,
            })
        };
        let examples: Vec<_> = chosen.par_iter().filter_map(example).collect();
        report.n_examples = examples.len();
        (MentionExamples { examples }, report)
    }
}

/// The text of a mention; that of a defined short form is its long form.
fn long_form(document: &Analysis<'_>, mention: &Mention) -> String {
    let text = document.text;
    let surface = mention.surface(text);
    let defined = document.abbreviations().iter().find(|one| one.short.of(text) == surface);
    defined.map_or(surface, |one| one.long.of(text).to_owned())
}

/// The names that a mention may become, as tokens.
fn names(
    kb: &KnowledgeBase,
    concept: u32,
    (surface, target): (&str, TargetName),
    similarity: &Trigrams,
    coder: &Coder,
) -> Vec<Vec<u32>> {
    let concept = canonym_core::kb::ConceptId(concept);
    let mut plain: Vec<String> = kb.names(concept).map(|name| plain_name(kb.name(name))).collect();
    plain.retain(|name| coder.name(name).is_some());
    if target != TargetName::Canonical {
        plain.sort_by_key(|name| name.chars().count());
    }
    let chosen: Vec<&String> = match target {
        TargetName::Sampled => plain.iter().collect(),
        TargetName::Shortest | TargetName::Canonical => plain.iter().take(1).collect(),
        TargetName::Similar => {
            let mention = similarity.vector(&plain_name(surface));
            let mut best: Option<(f32, &String)> = None;
            for name in &plain {
                let score = cosine(&mention, &similarity.vector(name));
                if best.is_none_or(|(known, _)| score > known) {
                    best = Some((score, name));
                }
            }
            best.map(|(_, name)| name).into_iter().collect()
        }
    };
    chosen.into_iter().filter_map(|name| coder.name(name)).collect()
}

impl Examples for MentionExamples {
    fn n_examples(&self) -> usize {
        self.examples.len()
    }

    fn example(&self, at: usize, rng: &mut SplitMix64) -> GenerativeExample {
        let MentionExample { source, prompt, targets } = &self.examples[at];
        let target = if targets.len() > 1 { rng.below(targets.len()) } else { 0 };
        GenerativeExample { source: source.clone(), prompt: prompt.clone(), target: targets[target].clone() }
    }
}

/// TF-IDF of character trigrams within words, with a space before and after each word, as `char_wb` of scikit-learn. Rare trigrams are kept.
#[derive(Debug, Default)]
struct Trigrams {
    n_texts: f32,
    n_holders: HashMap<[char; 3], f32>,
}

/// Counts of the trigrams of a text.
fn trigrams(text: &str) -> HashMap<[char; 3], f32> {
    let mut counts = HashMap::new();
    for word in text.split_whitespace() {
        let letters: Vec<char> = [' '].into_iter().chain(word.chars()).chain([' ']).collect();
        for gram in letters.windows(3) {
            *counts.entry([gram[0], gram[1], gram[2]]).or_insert(0.0) += 1.0;
        }
    }
    counts
}

impl Trigrams {
    fn new(texts: impl Iterator<Item = String>) -> Trigrams {
        let mut all = Trigrams::default();
        for text in texts {
            all.n_texts += 1.0;
            trigrams(&text).into_keys().for_each(|gram| *all.n_holders.entry(gram).or_insert(0.0) += 1.0);
        }
        all
    }

    /// The vector of a text, of length 1.
    fn vector(&self, text: &str) -> HashMap<[char; 3], f32> {
        let mut vector = trigrams(text);
        let mut length = 0.0;
        for (gram, weight) in &mut vector {
            let n = self.n_holders.get(gram).copied().unwrap_or(0.0);
            *weight *= 1.0 + ((1.0 + self.n_texts) / (1.0 + n)).ln();
            length += *weight * *weight;
        }
        vector.values_mut().for_each(|weight| *weight /= length.sqrt());
        vector
    }
}

fn cosine(one: &HashMap<[char; 3], f32>, other: &HashMap<[char; 3], f32>) -> f32 {
    // Summed in a fixed order, because the order of a map is not.
    let mut products: Vec<f32> =
        one.iter().filter_map(|(gram, weight)| other.get(gram).map(|other| weight * other)).collect();
    products.sort_by(f32::total_cmp);
    products.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_chosen() {
        let names = ["gout", "gouty arthritis", "podagra"].map(str::to_owned);
        let similarity = Trigrams::new(names.iter().cloned());
        let best = |mention: &str| {
            let score = |name: &String| cosine(&similarity.vector(mention), &similarity.vector(name));
            let scores: Vec<f32> = names.iter().map(score).collect();
            (0..3).max_by(|left, right| scores[*left].total_cmp(&scores[*right])).unwrap()
        };
        assert_eq!((best("gout"), best("arthritis of gout"), best("podagras")), (0, 1, 2));
        assert!((cosine(&similarity.vector("gout"), &similarity.vector("gout")) - 1.0).abs() < 1e-6);
        assert_eq!(
            trigrams("ab a"),
            HashMap::from([([' ', 'a', 'b'], 1.0), (['a', 'b', ' '], 1.0), ([' ', 'a', ' '], 1.0)])
        );
    }
}
