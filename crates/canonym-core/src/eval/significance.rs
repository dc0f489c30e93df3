//! Significance tests for the difference between two systems on the same gold.
//!
//! Three paired tests: bootstrap over documents for the interval of a difference, approximate randomisation for its
//! p-value, and McNemar for proportions of correct mentions. The first two use documents as units because mentions of a
//! document are not independent; McNemar assumes independent mentions and is overconfident otherwise.

use serde::{Deserialize, Serialize};

use super::bootstrap::{BootstrapConfig, Interval, SplitMix64, intervals};

/// Settings of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SignificanceConfig {
    /// Bootstrap settings.
    pub bootstrap: BootstrapConfig,
    /// Number of permutations of approximate randomisation.
    pub n_rounds: usize,
}

impl Default for SignificanceConfig {
    fn default() -> SignificanceConfig {
        SignificanceConfig { bootstrap: BootstrapConfig::default(), n_rounds: 10_000 }
    }
}

/// Scores of two systems under one measure, and the significance of their difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Score of the first system, a share.
    pub first: f64,
    /// Score of the second system.
    pub second: f64,
    /// Second minus first.
    pub difference: f64,
    /// Bootstrap interval of the difference over documents; `None` if there is nothing to resample.
    pub ci: Option<Interval>,
    /// Two-sided bootstrap p-value: twice the smaller share of resamples on either side of 0, at most 1.
    pub p_bootstrap: Option<f64>,
    /// Approximate-randomisation p-value (Noreen 1989): share of random swaps of whole documents with a difference at
    /// least as large, the observed one included.
    pub p_randomisation: Option<f64>,
}

/// Tests the difference under several measures; `first` and `second` contain one row of sums per document, in the same
/// order.
///
/// `measures` computes all measures from column sums (empty without documents) and must always return the same number
/// of values.
pub fn differences(
    first: &[Vec<f64>],
    second: &[Vec<f64>],
    measures: impl Fn(&[f64]) -> Vec<f64>,
    config: &SignificanceConfig,
    rng: &mut SplitMix64,
) -> Vec<Difference> {
    let n_columns = first.iter().chain(second).map(Vec::len).max().unwrap_or_default();
    let sums = |weighted: &mut dyn Iterator<Item = (&Vec<f64>, f64)>| {
        let mut totals = vec![0.0; n_columns];
        for (row, weight) in weighted.filter(|(_, weight)| *weight > 0.0) {
            for (total, value) in totals.iter_mut().zip(row) {
                *total += value * weight;
            }
        }
        totals
    };
    let of = |rows: &[Vec<f64>], weights: &[u32]| {
        measures(&sums(&mut rows.iter().zip(weights.iter().map(|&weight| f64::from(weight)))))
    };
    let all = vec![1; first.len()];
    let (values, others) = (of(first, &all), of(second, &all));
    let mut found: Vec<Difference> = values
        .iter()
        .zip(&others)
        .map(|(&first, &second)| Difference { first, second, difference: second - first, ..Difference::default() })
        .collect();
    if first.is_empty() {
        return found;
    }
    let resampled = std::cell::RefCell::new(Vec::with_capacity(config.bootstrap.n_resamples));
    let minus = |weights: &[u32]| -> Vec<f64> {
        let differences: Vec<f64> =
            of(second, weights).iter().zip(of(first, weights)).map(|(second, first)| second - first).collect();
        resampled.borrow_mut().push(differences.clone());
        differences
    };
    let bounds = intervals(first.len(), config.bootstrap, minus, rng);
    let resampled = resampled.into_inner();
    for (row, (one, bounds)) in found.iter_mut().zip(bounds).enumerate() {
        let share = |holds: fn(f64) -> bool| {
            let n_held = resampled.iter().filter(|values| holds(values[row])).count();
            (n_held + 1) as f64 / (resampled.len() + 1) as f64
        };
        one.ci = Some(bounds);
        one.p_bootstrap = Some((2.0 * f64::min(share(|value| value <= 0.0), share(|value| value >= 0.0))).min(1.0));
    }
    if config.n_rounds > 0 {
        let n_as_large = randomise(first, second, n_columns, &measures, &found, config.n_rounds, rng);
        for (one, n) in found.iter_mut().zip(n_as_large) {
            one.p_randomisation = Some((n + 1) as f64 / (config.n_rounds + 1) as f64);
        }
    }
    found
}

/// For each measure, the number of permutations with a difference at least as large as the observed one.
fn randomise(
    first: &[Vec<f64>],
    second: &[Vec<f64>],
    n_columns: usize,
    measures: impl Fn(&[f64]) -> Vec<f64>,
    found: &[Difference],
    n_rounds: usize,
    rng: &mut SplitMix64,
) -> Vec<usize> {
    // Documents on which both systems agree are the same in every permutation.
    let (mut same_first, mut same_second) = (vec![0.0; n_columns], vec![0.0; n_columns]);
    let mut changed = Vec::new();
    for (left, right) in first.iter().zip(second) {
        if left == right {
            add(&mut same_first, left);
            add(&mut same_second, right);
        } else {
            changed.push((left, right));
        }
    }
    let mut n_as_large = vec![0; found.len()];
    for _ in 0..n_rounds {
        let (mut left_sums, mut right_sums) = (same_first.clone(), same_second.clone());
        let mut bits = 0;
        for (row, (left, right)) in changed.iter().enumerate() {
            if row % 64 == 0 {
                bits = rng.next_u64();
            }
            let (left, right) = if bits & 1 == 0 { (left, right) } else { (right, left) };
            bits >>= 1;
            add(&mut left_sums, left);
            add(&mut right_sums, right);
        }
        let (left, right) = (measures(&left_sums), measures(&right_sums));
        for (row, n) in n_as_large.iter_mut().enumerate() {
            // Different summation order can change the last bit.
            *n += usize::from((right[row] - left[row]).abs() >= found[row].difference.abs() - 1e-12);
        }
    }
    n_as_large
}

fn add(totals: &mut [f64], row: &[f64]) {
    for (total, value) in totals.iter_mut().zip(row) {
        *total += value;
    }
}

/// Discordant mentions: only one system is correct.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct McNemar {
    /// Number of mentions that only the second system has correct.
    pub n_won: u64,
    /// Number of mentions that only the first system has correct.
    pub n_lost: u64,
    /// Exact two-sided p-value under the null hypothesis that both are equally likely.
    pub p: f64,
}

/// Exact McNemar test.
pub fn mcnemar(n_won: u64, n_lost: u64) -> McNemar {
    let n = n_won + n_lost;
    // Log binomial coefficients, to avoid underflow.
    let mut log_term = -(n as f64) * std::f64::consts::LN_2;
    let mut tail = log_term.exp();
    for k in 1..=n_won.min(n_lost) {
        log_term += ((n - k + 1) as f64).ln() - (k as f64).ln();
        tail += log_term.exp();
    }
    McNemar { n_won, n_lost, p: (2.0 * tail).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::matching::ratio;

    /// Documents with one mention each, correct or wrong.
    fn rows(rights: &[u8]) -> Vec<Vec<f64>> {
        rights.iter().map(|&right| vec![f64::from(right), 1.0]).collect()
    }

    fn accuracy(first: &[u8], second: &[u8]) -> Difference {
        let share = |sums: &[f64]| vec![if sums.is_empty() { 0.0 } else { ratio(sums[0], sums[1]) }];
        let config = SignificanceConfig::default();
        differences(&rows(first), &rows(second), share, &config, &mut SplitMix64::new(13))[0]
    }

    #[test]
    fn mcnemar_is_exact() {
        // 2 · (1 + 10 + 45) / 1024.
        assert!((mcnemar(8, 2).p - 0.109375).abs() < 1e-12);
        assert_eq!(mcnemar(2, 8).p, mcnemar(8, 2).p);
        assert!((mcnemar(5, 0).p - 0.0625).abs() < 1e-12);
        assert_eq!((mcnemar(0, 0).p, mcnemar(7, 7).p), (1.0, 1.0));
        // Normal approximation for 5,100 against 4,900: z = 1.99, p = 0.0466.
        assert!((mcnemar(5100, 4900).p - 0.0466).abs() < 5e-4);
    }

    #[test]
    fn equal_systems_differ_by_chance() {
        let same = accuracy(&[1, 0, 1, 1], &[1, 0, 1, 1]);
        assert_eq!((same.difference, same.p_bootstrap, same.p_randomisation), (0.0, Some(1.0), Some(1.0)));
        assert_eq!(same.ci, Some(Interval(0.0, 0.0)));
    }

    #[test]
    fn randomisation_agrees_with_the_exact_share_of_exchanges() {
        // Four documents won and none lost: 2 of 16 swaps have a difference at least as large.
        let found = accuracy(&[0, 0, 0, 0, 1, 1], &[1, 1, 1, 1, 1, 1]);
        assert!((found.difference - 4.0 / 6.0).abs() < 1e-12);
        assert!((found.p_randomisation.expect("rounds") - 0.125).abs() < 0.015);
        assert!(found.ci.is_some_and(|ci| ci.0 > 0.0 && ci.1 <= 1.0));
        assert!(found.p_bootstrap.is_some_and(|p| p < 0.01));
    }

    #[test]
    fn a_clear_difference_is_significant() {
        let (mut first, mut second) = (vec![0; 60], vec![1; 60]);
        first.extend([1; 10]);
        second.extend([0; 10]);
        let found = accuracy(&first, &second);
        assert!(found.p_randomisation.is_some_and(|p| p < 0.001));
        assert!((found.p_randomisation.expect("rounds") - 1.0 / 10_001.0).abs() < 1e-9);
    }

    #[test]
    fn empty_input_has_no_test() {
        let found = accuracy(&[], &[]);
        assert_eq!((found.difference, found.ci, found.p_bootstrap, found.p_randomisation), (0.0, None, None, None));
    }
}
