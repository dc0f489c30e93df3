//! Linear fusion of lexical and dense scores of a candidate, and calibration of the result.

use canonym_core::link::lexical::Scored;
use canonym_core::link::model::Calibration;
use serde::{Deserialize, Serialize};

/// Weights of the scores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fusion {
    /// Weight of the lexical score.
    pub lexical: f32,
    /// Weight of the dense score.
    pub cosine: f32,
    /// Weight of the name scorer, for models that read context and have one.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub name: f32,
    /// Maps scores to probabilities.
    pub calibration: Calibration,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_nothing(weight: &f32) -> bool {
    *weight == 0.0
}

impl Fusion {
    /// Dense score only.
    pub const DENSE: Fusion = Fusion::of(0.0, 1.0);
    /// Lexical score only.
    pub const LEXICAL: Fusion = Fusion::of(1.0, 0.0);

    pub(crate) const fn of(lexical: f32, cosine: f32) -> Fusion {
        Fusion { lexical, cosine, name: 0.0, calibration: Calibration { score: 1.0, margin: 0.0, offset: 0.0 } }
    }

    /// Fused score: the weighted sum.
    pub fn score(&self, evidence: &Evidence) -> f32 {
        self.lexical * evidence.scored.score + self.cosine * evidence.dense_score + self.name * evidence.name_score
    }
}

/// A candidate concept with its scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Its best name by the lexical score.
    pub scored: Scored,
    /// Dense score: the maximum cosine over its compared names, or the log-probability of a dual encoder.
    pub dense_score: f32,
    /// Cosine of the name scorer; 0 without one.
    pub name_score: f32,
}
