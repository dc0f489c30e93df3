//! Joint probability that a detected span is a mention and its concept is correct.
//!
//! A model with span search gives p(mention) and p(concept | mention). Their product is too low where the two are correlated, so a logistic
//! regression on the log-odds of both is fitted on held-out documents.

use canonym_core::link::fit;
use serde::{Deserialize, Serialize};

/// Minimum span probability for a span to be considered.
pub const MIN_SPAN: f32 = 0.05;

/// Description of this feature in explanations.
pub const IS_MENTION: &str = "mention detector: probability of a mention";

/// Weights of the log-odds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joint {
    /// Weight of the span.
    pub span: f32,
    /// Weight of the link.
    pub link: f32,
    /// Intercept.
    pub offset: f32,
    /// Threshold below which a mention stays unlinked.
    #[serde(rename = "least")]
    pub threshold: f32,
}

impl Joint {
    /// Fits the weights on detected spans, each with span probability, probability of the best concept, and whether both are correct. The
    /// threshold is 0; the caller chooses it.
    pub fn fit(found: &[(f32, f32, bool)]) -> Joint {
        // With few spans, stronger regularisation keeps the weights small.
        let penalty = 1.0 / found.len().max(1) as f64;
        let rows: Vec<([f32; 3], bool)> = found.iter().map(|(span, link, right)| (row(*span, *link), *right)).collect();
        let [span, link, offset] = fit::logistic(&[rows.as_slice()], penalty);
        Joint { span, link, offset, threshold: 0.0 }
    }

    /// The probability that span and concept are correct.
    pub fn probability(&self, span: f32, link: f32) -> f32 {
        let [of_span, of_link, one] = row(span, link);
        logistic(self.span * of_span + self.link * of_link + self.offset * one)
    }
}

fn row(span: f32, link: f32) -> [f32; 3] {
    [log_odds(span), log_odds(link), 1.0]
}

/// Logistic function: the probability of log-odds.
pub fn logistic(log_odds: f32) -> f32 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// Log-odds of a probability, clamped.
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
        // Correctness of span and concept are drawn independently.
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
                let fraction = some.iter().filter(|(_, right)| *right).count() as f32 / some.len() as f32;
                assert!((mean - fraction).abs() < 0.1, "predicted {mean}, observed {fraction} of {} spans", some.len());
            }
        }
        assert!(joint.probability(1.0, 1.0) > joint.probability(0.9, 0.9));
        assert!(joint.probability(0.0, 0.0) >= 0.0);
    }
}
