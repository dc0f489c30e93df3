//! How lexical and dense evidence of a candidate concept become one score and one calibrated probability.

use canonym_core::link::lexical::Scored;
use canonym_core::link::model::Calibration;
use serde::{Deserialize, Serialize};

/// What the evidence weighs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fusion {
    /// The weight of the lexical score.
    pub lexical: f32,
    /// The weight of the cosine of the best name of a concept.
    pub cosine: f32,
    /// The weight of a further voice: how near the name alone is, where a model that reads texts has one.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub name: f32,
    /// From scores to probabilities.
    pub calibration: Calibration,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_nothing(weight: &f32) -> bool {
    *weight == 0.0
}

impl Fusion {
    /// Dense evidence alone.
    pub const DENSE: Fusion = Fusion::of(0.0, 1.0);
    /// Lexical evidence alone.
    pub const LEXICAL: Fusion = Fusion::of(1.0, 0.0);

    pub(crate) const fn of(lexical: f32, cosine: f32) -> Fusion {
        Fusion { lexical, cosine, name: 0.0, calibration: Calibration { score: 1.0, margin: 0.0, offset: 0.0 } }
    }

    /// What evidence is worth.
    pub fn score(&self, evidence: &Evidence) -> f32 {
        self.lexical * evidence.scored.score + self.cosine * evidence.cosine + self.name * evidence.name
    }
}

/// A candidate concept and what speaks for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Its best name by the lexical score.
    pub scored: Scored,
    /// The greatest cosine of its compared names.
    pub cosine: f32,
    /// That of its names by themselves, where a model that reads texts has a further voice; 0 otherwise.
    pub name: f32,
}
