//! Why a document comes next, in words; the order itself is that of [`canonym_core::active`].

use canonym_core::active::{self, Strategy};

use crate::marks::MarkState;

/// [`confidence`] as an expression over the columns that are kept of a mark.
pub fn measure(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Margin => "margin",
        Strategy::Recognition => "place",
        Strategy::LeastConfident | Strategy::Diversity | Strategy::Random => "place + margin",
    }
}

/// The confidence of one mark under a strategy.
pub fn confidence(strategy: Strategy, mark: &MarkState) -> f64 {
    active::confidence(strategy, mark.score.unwrap_or(0.0), mark.margin().unwrap_or(0.0))
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
        Strategy::Random => "chosen at random".to_owned(),
    };
    (Some(confidence), why)
}

fn hundredths(value: f64) -> String {
    format!("{value:.2}").trim_start_matches('0').to_owned()
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
}
