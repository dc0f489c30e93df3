//! Bootstrap confidence intervals over documents.
//!
//! A resample draws n of n documents with replacement; the percentile interval contains the middle share of the
//! statistic over all resamples. Mentions of a document stay together because they are not independent.

use serde::{Deserialize, Serialize};

/// SplitMix64, a small generator whose sequence is the same on all machines and in all releases.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    // Private, because only the generator may change it.
    state: u64,
}

impl SplitMix64 {
    /// A generator with this seed.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number in `0..limit`; `limit` must be positive.
    pub fn below(&mut self, limit: usize) -> usize {
        ((u128::from(self.next_u64()) * limit as u128) >> 64) as usize
    }
}

/// Settings of the bootstrap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BootstrapConfig {
    /// Number of resamples; 0 computes no intervals.
    pub n_resamples: usize,
    /// Confidence level.
    pub level: f64,
}

impl Default for BootstrapConfig {
    fn default() -> BootstrapConfig {
        BootstrapConfig { n_resamples: 1000, level: 0.95 }
    }
}

/// Lower and upper bound of a confidence interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval(pub f64, pub f64);

/// The interval of each statistic over resamples of `n_documents` documents; empty if there is nothing to resample.
///
/// `statistics` receives the multiplicity of each document and must always return the same number of values.
pub fn intervals(
    n_documents: usize,
    config: BootstrapConfig,
    statistics: impl Fn(&[u32]) -> Vec<f64>,
    rng: &mut SplitMix64,
) -> Vec<Interval> {
    if n_documents == 0 || config.n_resamples == 0 {
        return Vec::new();
    }
    let mut columns: Vec<Vec<f64>> = Vec::new();
    let mut weights = vec![0; n_documents];
    for _ in 0..config.n_resamples {
        weights.fill(0);
        for _ in 0..n_documents {
            weights[rng.below(n_documents)] += 1;
        }
        let values = statistics(&weights);
        columns.resize_with(values.len(), Vec::new);
        for (column, value) in columns.iter_mut().zip(values) {
            column.push(value);
        }
    }
    let tail = (1.0 - config.level.clamp(0.0, 1.0)) / 2.0;
    let interval = |mut column: Vec<f64>| {
        column.sort_by(f64::total_cmp);
        Interval(quantile(&column, tail), quantile(&column, 1.0 - tail))
    };
    columns.into_iter().map(interval).collect()
}

/// Quantile of `sorted`, linearly interpolated.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = p * last as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (position - below as f64) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_as_published() {
        let mut rng = SplitMix64::new(1234567);
        let numbers: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(numbers, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let sorted = [0.0, 1.0, 2.0, 3.0];
        assert_eq!(quantile(&sorted, 0.5), 1.5);
        assert_eq!(quantile(&sorted, 1.0), 3.0);
        assert_eq!(quantile(&[7.0], 0.3), 7.0);
    }

    #[test]
    fn equal_documents_have_no_spread() {
        let mean = |weights: &[u32]| vec![weights.iter().map(|&weight| f64::from(weight) * 0.5).sum::<f64>() / 4.0];
        let found = intervals(4, BootstrapConfig::default(), mean, &mut SplitMix64::new(13));
        assert_eq!(found, [Interval(0.5, 0.5)]);
    }

    #[test]
    fn the_interval_of_a_mean_is_about_two_standard_errors() {
        // 400 documents, half of them correct: the standard error of the proportion is 0.025.
        let share = |weights: &[u32]| vec![f64::from(weights[..200].iter().sum::<u32>()) / 400.0];
        let Interval(low, high) = intervals(400, BootstrapConfig::default(), share, &mut SplitMix64::new(13))[0];
        assert!((low - 0.451).abs() < 0.006 && (high - 0.549).abs() < 0.006, "{low} {high}");
    }

    #[test]
    fn nothing_to_resample_has_no_interval() {
        assert!(intervals(0, BootstrapConfig::default(), |_| vec![1.0], &mut SplitMix64::new(1)).is_empty());
        let none = BootstrapConfig { n_resamples: 0, ..BootstrapConfig::default() };
        assert!(intervals(3, none, |_| vec![1.0], &mut SplitMix64::new(1)).is_empty());
    }
}
