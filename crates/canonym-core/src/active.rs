//! Active learning: which document to annotate next.
//!
//! Least confident, as in TrainX: the confidence of a mention is p(mention) plus the margin between its two best concepts, and that of a
//! document is the minimum over its mentions. Documents without predictions come first; ties keep their order.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::eval::bootstrap::SplitMix64;
use crate::{Error, Result};

/// How documents are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Lowest p(mention) plus margin.
    LeastConfident,
    /// Smallest margin between the two best concepts.
    Margin,
    /// Lowest p(mention).
    Recognition,
    /// Most different from the documents before it.
    Diversity,
    /// Random order.
    Random,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Strategy; 5] =
        [Strategy::LeastConfident, Strategy::Margin, Strategy::Recognition, Strategy::Diversity, Strategy::Random];

    /// Name in options and the API.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::LeastConfident => "least-confident",
            Strategy::Margin => "margin",
            Strategy::Recognition => "recognition",
            Strategy::Diversity => "diversity",
            Strategy::Random => "random",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Result<Strategy> {
        Strategy::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| {
            let names = Strategy::ALL.map(Strategy::name).join(", ");
            let shown: String = name.chars().take(40).collect();
            Error::not_found(format!("unknown strategy `{shown}`")).with_hint(format!("use one of {names}"))
        })
    }
}

/// A document in the ranking.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Its index in the input.
    pub row: usize,
    /// The reason, if the strategy has one besides the confidence of predictions.
    pub why: Option<String>,
}

/// The confidence of one mention under a strategy, from p(mention) and the margin between its two best concepts. A mention without p(mention)
/// was not detected by a model, and counts as certain.
pub fn confidence(strategy: Strategy, p_mention: Option<f64>, margin: f64) -> f64 {
    let p_mention = p_mention.unwrap_or(1.0);
    match strategy {
        Strategy::Margin => margin,
        Strategy::Recognition => p_mention,
        Strategy::LeastConfident | Strategy::Diversity | Strategy::Random => p_mention + margin,
    }
}

/// Difference of p(link) between the two best candidates; p(link) of a single candidate, 0 without candidates. `p_link` is in descending order.
pub fn margin(p_link: &[f64]) -> f64 {
    let at = |row: usize| p_link.get(row).copied().unwrap_or(0.0);
    (at(0) - at(1)).max(0.0)
}

/// A document to annotate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unreviewed {
    /// The confidence of its least confident open prediction, if any.
    pub min_confidence: Option<f64>,
    /// Whether a model has annotated it, or it was imported with annotations.
    pub is_annotated: bool,
}

/// The first `limit` documents in the order of a strategy; for diversity see [`farthest_first`].
pub fn rank(strategy: Strategy, documents: &[Unreviewed], limit: usize, seed: u64) -> Vec<Ranked> {
    let mut rows: Vec<usize> = (0..documents.len()).collect();
    if strategy == Strategy::Random {
        rows.sort_by_cached_key(|row| SplitMix64::new(seed ^ (*row as u64 + 1)).next_u64());
        rows.truncate(limit);
        return rows.into_iter().map(|row| Ranked { row, why: Some("random order".to_owned()) }).collect();
    }
    // Documents without predictions come first, reviewed but unfinished ones last.
    let order = |row: usize| match (documents[row].min_confidence, documents[row].is_annotated) {
        (None, false) => (0, 0.0),
        (Some(confidence), _) => (1, confidence),
        (None, true) => (2, 0.0),
    };
    rows.sort_by(|a, b| {
        let (a, b) = (order(*a), order(*b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    rows.truncate(limit);
    rows.into_iter().map(|row| Ranked { row, why: None }).collect()
}

/// At most `max` items, evenly spaced.
pub fn spread<T: Copy>(all: &[T], max: usize) -> Vec<T> {
    let n = all.len().min(max);
    (0..n).map(|at| all[at * all.len() / n]).collect()
}

/// Greedy farthest-first selection: each document is the least similar to those before it and to `done`. Without `done`, the first one starts.
pub fn farthest_first(waiting: &[String], done: &[String], limit: usize) -> Vec<Ranked> {
    let why = |near: f64| format!("{:.0} % different from annotated documents", (1.0 - near) * 100.0);
    let bags: Vec<Bag> = waiting.iter().map(|text| Bag::of(text)).collect();
    let done: Vec<Bag> = done.iter().map(|text| Bag::of(text)).collect();
    let nearest = |bag: &Bag| done.iter().map(|other| bag.cosine(other)).fold(0.0, f64::max);
    let mut near: Vec<f64> = bags.iter().map(nearest).collect();
    let mut left: Vec<usize> = (0..bags.len()).collect();
    let mut chosen = Vec::new();
    while chosen.len() < limit {
        let Some(at) = (0..left.len()).reduce(|a, b| if near[left[b]] < near[left[a]] { b } else { a }) else { break };
        let row = left.remove(at);
        chosen.push(Ranked { row, why: Some(why(near[row])) });
        for other in &left {
            near[*other] = near[*other].max(bags[*other].cosine(&bags[row]));
        }
    }
    chosen
}

/// Bag of words: sorted word hashes with counts, and the L2 norm.
struct Bag {
    words: Vec<(u64, f64)>,
    norm: f64,
}

impl Bag {
    fn of(text: &str) -> Bag {
        let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
        for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() > 2) {
            let mut hasher = DefaultHasher::new();
            word.to_lowercase().hash(&mut hasher);
            *counts.entry(hasher.finish()).or_default() += 1.0;
        }
        let norm = counts.values().map(|n| n * n).sum::<f64>().sqrt();
        Bag { words: counts.into_iter().collect(), norm }
    }

    fn cosine(&self, other: &Bag) -> f64 {
        let (mut product, mut at) = (0.0, 0);
        for (word, n) in &self.words {
            while other.words.get(at).is_some_and(|(beside, _)| beside < word) {
                at += 1;
            }
            if let Some((_, beside)) = other.words.get(at).filter(|(beside, _)| beside == word) {
                product += n * beside;
            }
        }
        if product == 0.0 { 0.0 } else { product / (self.norm * other.norm) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_the_score_of_the_mention_plus_the_margin() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let of = |mention, p_link: &[f64]| confidence(Strategy::LeastConfident, Some(mention), margin(p_link));
        assert!(close(of(0.90, &[0.81, 0.79]), 0.92));
        assert!(close(of(0.60, &[0.95, 0.40]), 1.15));
        assert!(close(of(0.5, &[0.4]), 0.9));
        assert!(close(of(0.5, &[]), 0.5));
        assert!(close(confidence(Strategy::LeastConfident, None, margin(&[0.8, 0.2])), 1.6));
        assert!(close(confidence(Strategy::Recognition, None, 0.1), 1.0));
    }

    #[test]
    fn the_least_confident_document_comes_first() {
        let document = |min_confidence, is_annotated| Unreviewed { min_confidence, is_annotated };
        let waiting = [
            document(None, true),
            document(Some(1.0), true),
            document(Some(0.92), true),
            document(None, false),
            document(Some(1.0), true),
        ];
        let rows: Vec<usize> =
            rank(Strategy::LeastConfident, &waiting, 10, 0).iter().map(|ranked| ranked.row).collect();
        assert_eq!(rows, [3, 2, 1, 4, 0]);
    }

    #[test]
    fn diversity_selects_the_farthest_document() {
        let texts = ["heart failure dog", "heart failure cat", "renal stone cow", "heart stone dog"];
        let texts = texts.map(str::to_owned);
        let rows = |done: &[&str]| -> Vec<usize> {
            let done: Vec<String> = done.iter().map(|text| (*text).to_owned()).collect();
            farthest_first(&texts, &done, 3).iter().map(|ranked| ranked.row).collect()
        };
        assert_eq!(rows(&[]), [0, 2, 1]);
        assert_eq!(rows(&["heart failure dog"])[0], 2);
    }

    #[test]
    fn a_part_of_many_is_spread_over_all() {
        let all: Vec<usize> = (0..10).collect();
        assert_eq!(spread(&all, 4), [0, 2, 5, 7]);
        assert_eq!(spread(&all, 20), all);
        assert!(spread::<usize>(&[], 4).is_empty());
    }

    #[test]
    fn chance_depends_on_the_seed_alone() {
        let waiting = vec![Unreviewed { min_confidence: None, is_annotated: false }; 20];
        let rows = |seed| rank(Strategy::Random, &waiting, 20, seed);
        assert_eq!(rows(7), rows(7));
        assert_ne!(rows(7), rows(8));
    }
}
