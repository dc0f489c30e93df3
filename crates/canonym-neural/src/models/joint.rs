//! How probable it is that a mention was found where one is and that its concept is right, too.
//!
//! A model that searches says how probable a span is, and its links how probable a concept is if the span is a mention. Their product is
//! too low where both grow sure of the same things, so both log-odds are weighed by a logistic regression on held-out documents.

use canonym_core::link::fit::logistic;
use serde::{Deserialize, Serialize};

/// Spans less probable than this are not looked at.
pub const LEAST_SPAN: f32 = 0.05;

/// What reasons say of it.
pub const IS_MENTION: &str = "mention detector: probability of a mention";

/// The weights of both log-odds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joint {
    /// Of the span.
    pub span: f32,
    /// Of the link.
    pub link: f32,
    /// What is added.
    pub offset: f32,
    /// Mentions less probable than this have no concept.
    pub least: f32,
}

impl Joint {
    /// Fits the weights to found spans: the probability of the span, that of its best concept, and whether both are right. Every span has a
    /// concept then; the threshold is for the caller to choose.
    pub fn fit(found: &[(f32, f32, bool)]) -> Joint {
        // Few spans say little, and weights stay small.
        let penalty = 1.0 / found.len().max(1) as f64;
        let rows: Vec<([f32; 3], bool)> = found.iter().map(|(span, link, right)| (row(*span, *link), *right)).collect();
        let [span, link, offset] = logistic(&[rows.as_slice()], penalty);
        Joint { span, link, offset, least: 0.0 }
    }

    /// The probability that span and concept are right.
    pub fn probability(&self, span: f32, link: f32) -> f32 {
        let [of_span, of_link, one] = row(span, link);
        crate::models::dual_encoder::spans::sigmoid(self.span * of_span + self.link * of_link + self.offset * one)
    }
}

fn row(span: f32, link: f32) -> [f32; 3] {
    [log_odds(span), log_odds(link), 1.0]
}

/// The log-odds of a probability, within bounds.
pub fn log_odds(probability: f32) -> f32 {
    let within = probability.clamp(1e-4, 1.0 - 1e-4);
    (within / (1.0 - within)).ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::{self, SplitMix64};

    #[test]
    fn probabilities_are_shares_of_what_is_right() {
        let mut rng = SplitMix64::new(3);
        // Whether a span is right and whether its concept is: two draws that know nothing of each other.
        let found: Vec<(f32, f32, bool)> = (0..20_000)
            .map(|_| {
                let (span, link) = (random::unit(&mut rng), random::unit(&mut rng));
                (span, link, random::unit(&mut rng) < span && random::unit(&mut rng) < link)
            })
            .collect();
        let joint = Joint::fit(&found);
        assert!(joint.span > 0.0 && joint.link > 0.0, "{joint:?}");
        for tenth in 0..10 {
            let within = |p: f32| (p * 10.0) as usize == tenth;
            let some: Vec<(f32, bool)> = found
                .iter()
                .map(|(span, link, right)| (joint.probability(*span, *link), *right))
                .filter(|(probability, _)| within(*probability))
                .collect();
            if some.len() > 300 {
                let mean = some.iter().map(|(probability, _)| probability).sum::<f32>() / some.len() as f32;
                let share = some.iter().filter(|(_, right)| *right).count() as f32 / some.len() as f32;
                assert!((mean - share).abs() < 0.1, "of {} spans {mean} is said and {share} is right", some.len());
            }
        }
        assert!(joint.probability(1.0, 1.0) > joint.probability(0.9, 0.9));
        assert!(joint.probability(0.0, 0.0) >= 0.0);
    }
}
