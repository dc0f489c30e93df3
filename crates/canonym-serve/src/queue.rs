//! Which document to look at next, and why.
//!
//! Least confident, as published: a mark is as sure as the model was of the place plus the lead of its best concept over the second; a document is as
//! sure as its least sure mark. Documents on which no prediction was made come first. Those of equal rank stay in their order.

use std::collections::BTreeMap;

use canonym::eval::bootstrap::SplitMix64;

use crate::error::{ApiError, ApiResult};
use crate::marks::MarkState;

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

    /// The strategy of a name.
    pub fn parse(name: &str) -> ApiResult<Strategy> {
        Strategy::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| {
            let names = Strategy::ALL.map(Strategy::name).join(", ");
            let shown: String = name.chars().take(40).collect();
            ApiError::bad(format!("there is no strategy `{shown}`")).hint(format!("use one of {names}"))
        })
    }
}

/// A document that waits.
#[derive(Debug, Clone, Default)]
pub struct Waiting<'a> {
    /// Its text, for [`Strategy::Diversity`].
    pub text: &'a str,
    /// Its open predictions.
    pub open: Vec<&'a MarkState>,
    /// Whether a model has read it, or it came with marks.
    pub was_read: bool,
}

/// A document in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Its place in the list that was given.
    pub row: usize,
    /// How sure the model is of it.
    pub confidence: Option<f64>,
    /// Why it stands here.
    pub reason: String,
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
        Strategy::LeastConfident => format!("“{text}” has confidence {}: {}", hundredths(confidence), margin()),
        Strategy::Diversity => "unlike the documents before it".to_owned(),
        Strategy::Random => "chosen by chance".to_owned(),
    };
    (Some(confidence), why)
}

fn hundredths(value: f64) -> String {
    format!("{value:.2}").trim_start_matches('0').to_owned()
}

/// The first `limit` of the documents that wait. `done` are texts of finished ones, to which [`Strategy::Diversity`] compares, too.
pub fn rank(strategy: Strategy, waiting: &[Waiting<'_>], done: &[&str], limit: usize, seed: u64) -> Vec<Ranked> {
    let ranked = |row: usize| {
        let (confidence, why) = reason(strategy, &waiting[row].open, waiting[row].was_read);
        Ranked { row, confidence, reason: why }
    };
    match strategy {
        Strategy::Diversity => {
            let reason = |row: usize, near: f64| Ranked {
                reason: format!("{:.0} % of its words are unlike the documents before it", (1.0 - near) * 100.0),
                ..ranked(row)
            };
            farthest_first(waiting, done, limit).into_iter().map(|(row, near)| reason(row, near)).collect()
        }
        Strategy::Random => {
            let mut rows: Vec<(u64, usize)> =
                (0..waiting.len()).map(|row| (SplitMix64::new(seed ^ (row as u64 + 1)).next_u64(), row)).collect();
            rows.sort_unstable();
            let by_chance = |(_, row)| Ranked { reason: "chosen by chance".to_owned(), ..ranked(row) };
            rows.into_iter().take(limit).map(by_chance).collect()
        }
        Strategy::LeastConfident | Strategy::Margin | Strategy::Recognition => {
            let mut all: Vec<Ranked> = (0..waiting.len()).map(ranked).collect();
            // What nobody has read comes first, what is decided but not finished comes last.
            let order = |one: &Ranked| match (one.confidence, waiting[one.row].was_read) {
                (None, false) => (0, 0.0),
                (Some(confidence), _) => (1, confidence),
                (None, true) => (2, 0.0),
            };
            all.sort_by(|a, b| {
                let (a, b) = (order(a), order(b));
                a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
            });
            all.truncate(limit);
            all
        }
    }
}

/// Words with their counts, and the length of that vector.
struct Bag {
    words: BTreeMap<String, f64>,
    norm: f64,
}

impl Bag {
    fn of(text: &str) -> Bag {
        let mut words: BTreeMap<String, f64> = BTreeMap::new();
        for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| word.chars().count() > 2) {
            *words.entry(word.to_lowercase()).or_default() += 1.0;
        }
        let norm = words.values().map(|n| n * n).sum::<f64>().sqrt();
        Bag { words, norm }
    }

    fn cosine(&self, other: &Bag) -> f64 {
        let (few, many) = if self.words.len() <= other.words.len() { (self, other) } else { (other, self) };
        let product: f64 = few.words.iter().filter_map(|(word, n)| Some(n * many.words.get(word)?)).sum();
        if product == 0.0 { 0.0 } else { product / (self.norm * other.norm) }
    }
}

/// Documents, each the one that is least like any before it, with how like it is; the first one where nothing is done is the first of the list.
fn farthest_first(waiting: &[Waiting<'_>], done: &[&str], limit: usize) -> Vec<(usize, f64)> {
    let bags: Vec<Bag> = waiting.iter().map(|one| Bag::of(one.text)).collect();
    let done: Vec<Bag> = done.iter().map(|text| Bag::of(text)).collect();
    let nearest = |bag: &Bag| done.iter().map(|other| bag.cosine(other)).fold(0.0, f64::max);
    let mut near: Vec<f64> = bags.iter().map(nearest).collect();
    let mut left: Vec<usize> = (0..bags.len()).collect();
    let mut chosen = Vec::new();
    while chosen.len() < limit {
        let Some(at) = (0..left.len()).reduce(|a, b| if near[left[b]] < near[left[a]] { b } else { a }) else { break };
        let row = left.remove(at);
        chosen.push((row, near[row]));
        for other in &left {
            near[*other] = near[*other].max(bags[*other].cosine(&bags[row]));
        }
    }
    chosen
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
        let marks = [mark(0.90, &[0.81, 0.79]), mark(0.60, &[0.95, 0.40]), mark(0.5, &[0.5])];
        let a = Waiting { open: vec![&marks[0], &marks[1]], was_read: true, text: "" };
        let b = Waiting { open: vec![&marks[2]], was_read: true, text: "" };
        let unread = Waiting::default();
        let decided = Waiting { was_read: true, ..Waiting::default() };
        let ranked = rank(Strategy::LeastConfident, &[decided, b.clone(), a, unread, b], &[], 10, 0);
        let rows: Vec<usize> = ranked.iter().map(|one| one.row).collect();
        assert_eq!(rows, [3, 2, 1, 4, 0]);
        assert!(close(ranked[1].confidence.unwrap(), 0.92));
        assert_eq!(ranked[1].reason, "“delirium” has confidence .92: margin .02 between name 0 and name 1");
        assert_eq!(ranked[0].reason, "nothing was predicted here");
        assert_eq!(ranked[4].reason, "every mark is decided");
    }

    #[test]
    fn other_strategies_look_at_one_part_alone() {
        let marks = [mark(0.90, &[0.81, 0.79]), mark(0.60, &[0.95, 0.40])];
        let waiting: Vec<Waiting<'_>> =
            marks.iter().map(|mark| Waiting { open: vec![mark], was_read: true, text: "" }).collect();
        let first = |strategy| rank(strategy, &waiting, &[], 1, 0)[0].row;
        assert_eq!((first(Strategy::Margin), first(Strategy::Recognition)), (0, 1));
    }

    #[test]
    fn diversity_takes_what_is_least_like_what_was_taken() {
        let texts = ["heart failure dog", "heart failure cat", "renal stone cow", "heart stone dog"];
        let waiting: Vec<Waiting<'_>> = texts.iter().map(|text| Waiting { text, ..Waiting::default() }).collect();
        let rows = |done: &[&str]| -> Vec<usize> {
            rank(Strategy::Diversity, &waiting, done, 3, 0).iter().map(|one| one.row).collect()
        };
        assert_eq!(rows(&[]), [0, 2, 1]);
        assert_eq!(rows(&["heart failure dog"])[0], 2);
    }

    #[test]
    fn chance_depends_on_the_seed_alone() {
        let waiting = vec![Waiting::default(); 20];
        let rows = |seed| rank(Strategy::Random, &waiting, &[], 20, seed);
        assert_eq!(rows(7), rows(7));
        assert_ne!(rows(7), rows(8));
    }
}
