//! Why a document comes next, in words. The order is computed by [`canonym_core::active`].

use canonym_core::active::{self, Strategy};

use crate::marks::MarkState;

/// [`confidence`] as an SQL expression over columns of the table of marks.
pub fn measure(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Margin => "margin",
        Strategy::Recognition => "coalesce(p_mention, 1.0)",
        Strategy::LeastConfident | Strategy::Diversity | Strategy::Random => "coalesce(p_mention, 1.0) + margin",
    }
}

/// The confidence of one mark under a strategy.
pub fn confidence(strategy: Strategy, mark: &MarkState) -> f64 {
    active::confidence(strategy, mark.p_mention, mark.margin().unwrap_or(0.0))
}

/// The confidence of the least certain open prediction, and the reason why the document comes next.
pub fn reason(strategy: Strategy, open: &[&MarkState], was_read: bool) -> (Option<f64>, String) {
    let lowest =
        open.iter().map(|mark| (confidence(strategy, mark), *mark)).reduce(|a, b| if b.0 < a.0 { b } else { a });
    let Some((confidence, mark)) = lowest else {
        let why = if was_read { "nothing left to decide" } else { "no predictions yet" };
        return (None, why.to_owned());
    };
    let text: String = mark.text.chars().take(40).collect();
    let candidates = || match (mark.candidates.first(), mark.candidates.get(1)) {
        (Some(first), Some(second)) => {
            let (one, two) = (hundredths(first.score), hundredths(second.score));
            format!("“{text}” – {} {one} vs {} {two}", first.name, second.name)
        }
        (Some(first), None) => format!("single candidate for “{text}”: {}", first.name),
        _ => format!("no candidates for “{text}”"),
    };
    let why = match strategy {
        Strategy::Margin if mark.candidates.len() > 1 => format!("smallest margin: {}", candidates()),
        Strategy::LeastConfident if mark.candidates.len() > 1 => format!("uncertain: {}", candidates()),
        Strategy::Margin | Strategy::LeastConfident => candidates(),
        Strategy::Recognition => match mark.p_mention {
            Some(p_mention) => format!("uncertain mention: “{text}” ({})", hundredths(p_mention)),
            None => format!("“{text}” has no mention probability"),
        },
        Strategy::Diversity => "different from annotated documents".to_owned(),
        Strategy::Random => "random order".to_owned(),
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
            p_link: None,
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
            contexts: Vec::new(),
            score: Some(score),
            p_mention: Some(score),
            p_link: None,
            candidates: candidates.iter().enumerate().map(candidate).collect(),
            by: None,
            at: 0,
            model: Some("m".to_owned()),
            spread_from: None,
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
        assert_eq!(of(Strategy::LeastConfident, &both), "uncertain: “delirium” – name 0 .81 vs name 1 .79");
        assert_eq!(of(Strategy::Margin, &both), "smallest margin: “delirium” – name 0 .81 vs name 1 .79");
        assert_eq!(of(Strategy::Recognition, &both), "uncertain mention: “delirium” (.60)");
        assert_eq!(of(Strategy::Margin, &[]), "nothing left to decide");
        assert_eq!(reason(Strategy::Margin, &[], false).1, "no predictions yet");
    }
}
