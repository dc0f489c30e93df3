//! Which document to look at next, and why.
//!
//! Least confident, as published: a mark is as sure as the model was of the place plus the lead of its best concept over the second; a document is as
//! sure as its least sure mark. Documents on which no prediction was made come first. Those of equal rank stay in their order.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use canonym_core::eval::bootstrap::SplitMix64;

use crate::error::{ApiError, ApiResult};
use crate::marks::MarkState;
use crate::store::documents::Unfinished;

/// How documents are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// By place and concept together.
    LeastConfident,
    /// By the lead of the best concept alone.
    Margin,
    /// By the place alone.
    Recognition,
    /// Each as unlike those before it as can be.
    Diversity,
    /// By chance.
    Random,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 5] =
        [Strategy::LeastConfident, Strategy::Margin, Strategy::Recognition, Strategy::Diversity, Strategy::Random];

    /// The name that the interface has.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::LeastConfident => "least-confident",
            Strategy::Margin => "margin",
            Strategy::Recognition => "recognition",
            Strategy::Diversity => "diversity",
            Strategy::Random => "random",
        }
    }

    /// [`confidence`] of the columns that are kept of a mark.
    pub fn measure(self) -> &'static str {
        match self {
            Strategy::Margin => "margin",
            Strategy::Recognition => "place",
            Strategy::LeastConfident | Strategy::Diversity | Strategy::Random => "place + margin",
        }
    }

    /// The strategy of a name.
    pub fn parse(name: &str) -> ApiResult<Strategy> {
        Strategy::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| {
            let names = Strategy::ALL.map(Strategy::name).join(", ");
            let shown: String = name.chars().take(40).collect();
            ApiError::bad(format!("there is no strategy `{shown}`")).hint(format!("use one of {names}"))
        })
    }
}

/// A document in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Its place in the list that was given.
    pub row: usize,
    /// Why it stands here, where that is not [`reason`].
    pub why: Option<String>,
}

/// How sure the model is of one mark, by a strategy.
pub fn confidence(strategy: Strategy, mark: &MarkState) -> f64 {
    let place = mark.score.unwrap_or(0.0);
    let margin = mark.margin().unwrap_or(0.0);
    match strategy {
        Strategy::Margin => margin,
        Strategy::Recognition => place,
        Strategy::LeastConfident | Strategy::Diversity | Strategy::Random => place + margin,
    }
}

/// How sure the model is of a document, and why in words.
pub fn reason(strategy: Strategy, open: &[&MarkState], was_read: bool) -> (Option<f64>, String) {
    let least =
        open.iter().map(|mark| (confidence(strategy, mark), *mark)).reduce(|a, b| if b.0 < a.0 { b } else { a });
    let Some((confidence, mark)) = least else {
        let why = if was_read { "every mark is decided" } else { "nothing was predicted here" };
        return (None, why.to_owned());
    };
    let text: String = mark.text.chars().take(40).collect();
    let margin = || {
        let margin = hundredths(mark.margin().unwrap_or(0.0));
        match (mark.candidates.first(), mark.candidates.get(1)) {
            (Some(first), Some(second)) => format!("margin {margin} between {} and {}", first.name, second.name),
            (Some(first), None) => format!("{} is the only concept found for “{text}”", first.name),
            _ => format!("no concept was found for “{text}”"),
        }
    };
    let why = match strategy {
        Strategy::Margin => margin(),
        Strategy::Recognition => format!("“{text}” is a mention with {}", hundredths(mark.score.unwrap_or(0.0))),
        Strategy::LeastConfident => match (mark.candidates.first(), mark.candidates.get(1)) {
            (Some(first), Some(second)) => {
                let (one, two) = (hundredths(first.score), hundredths(second.score));
                format!("uncertain: “{text}” – {} {one} or {} {two}", first.name, second.name)
            }
            _ => margin(),
        },
        Strategy::Diversity => "unlike the documents before it".to_owned(),
        Strategy::Random => "chosen by chance".to_owned(),
    };
    (Some(confidence), why)
}

fn hundredths(value: f64) -> String {
    format!("{value:.2}").trim_start_matches('0').to_owned()
}

/// The first `limit` of the documents that wait; by [`farthest_first`] where documents are to be unlike each other.
pub fn rank(strategy: Strategy, waiting: &[Unfinished], limit: usize, seed: u64) -> Vec<Ranked> {
    let mut rows: Vec<usize> = (0..waiting.len()).collect();
    if strategy == Strategy::Random {
        rows.sort_by_cached_key(|row| SplitMix64::new(seed ^ (*row as u64 + 1)).next_u64());
        rows.truncate(limit);
        return rows.into_iter().map(|row| Ranked { row, why: Some("chosen by chance".to_owned()) }).collect();
    }
    // What nobody has read comes first, what is decided but not finished comes last.
    let order = |row: usize| match (waiting[row].least, waiting[row].was_read) {
        (None, false) => (0, 0.0),
        (Some(least), _) => (1, least),
        (None, true) => (2, 0.0),
    };
    rows.sort_by(|a, b| {
        let (a, b) = (order(*a), order(*b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    rows.truncate(limit);
    rows.into_iter().map(|row| Ranked { row, why: None }).collect()
}

/// At most `most` of a list, evenly from its start to its end.
pub fn spread<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    let n = all.len().min(most);
    (0..n).map(|at| all[at * all.len() / n]).collect()
}

/// Documents, each the one that is least like any before it and any of `done`; where nothing is done, the first of the list comes first.
pub fn farthest_first(waiting: &[String], done: &[String], limit: usize) -> Vec<Ranked> {
    let why = |near: f64| format!("{:.0} % of its words are unlike the documents before it", (1.0 - near) * 100.0);
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

/// Hashes of words, sorted, with their counts, and the length of that vector.
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
    use crate::marks::{CandidateRow, Source, State};

    fn mark(score: f64, candidates: &[f64]) -> MarkState {
        let candidate = |(row, score): (usize, &f64)| CandidateRow {
            id: format!("X:{row}"),
            name: format!("name {row}"),
            score: *score,
        };
        MarkState {
            spans: vec![(0, 1)],
            text: "delirium".to_owned(),
            kind: String::new(),
            source: Source::Pred,
            state: State::Open,
            concept: None,
            is_nil: false,
            is_unsure: false,
            score: Some(score),
            candidates: candidates.iter().enumerate().map(candidate).collect(),
            by: None,
            at: 0,
            model: Some("m".to_owned()),
            is_deleted: false,
            original: None,
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn confidence_is_recognition_plus_margin() {
        let of = |score, candidates: &[f64]| confidence(Strategy::LeastConfident, &mark(score, candidates));
        assert!(close(of(0.90, &[0.81, 0.79]), 0.92));
        assert!(close(of(0.60, &[0.95, 0.40]), 1.15));
        // With one candidate alone the margin is its own score.
        assert!(close(of(0.5, &[0.4]), 0.9));
    }

    #[test]
    fn the_document_with_the_least_certain_mark_comes_first() {
        let document = |id, least, was_read| Unfinished { id, least, was_read };
        let waiting = [
            document(1, None, true),
            document(2, Some(1.0), true),
            document(3, Some(0.92), true),
            document(4, None, false),
            document(5, Some(1.0), true),
        ];
        let rows: Vec<usize> =
            rank(Strategy::LeastConfident, &waiting, 10, 0).iter().map(|ranked| ranked.row).collect();
        assert_eq!(rows, [3, 2, 1, 4, 0]);
    }

    #[test]
    fn the_reason_names_the_least_certain_mark() {
        let marks = [mark(0.90, &[0.81, 0.79]), mark(0.60, &[0.95, 0.40])];
        let of = |strategy, open: &[&MarkState]| reason(strategy, open, true).1;
        let both: Vec<&MarkState> = marks.iter().collect();
        assert!(close(reason(Strategy::LeastConfident, &both, true).0.unwrap(), 0.92));
        assert_eq!(of(Strategy::LeastConfident, &both), "uncertain: “delirium” – name 0 .81 or name 1 .79");
        assert_eq!(of(Strategy::Margin, &both), "margin .02 between name 0 and name 1");
        assert_eq!(of(Strategy::Recognition, &both), "“delirium” is a mention with .60");
        assert_eq!(of(Strategy::Margin, &[]), "every mark is decided");
        assert_eq!(reason(Strategy::Margin, &[], false).1, "nothing was predicted here");
    }

    #[test]
    fn diversity_takes_what_is_least_like_what_was_taken() {
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
        let waiting = vec![Unfinished { id: 1, least: None, was_read: false }; 20];
        let rows = |seed| rank(Strategy::Random, &waiting, 20, seed);
        assert_eq!(rows(7), rows(7));
        assert_ne!(rows(7), rows(8));
    }
}
