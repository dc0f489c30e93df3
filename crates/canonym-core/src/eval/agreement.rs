//! Inter-annotator agreement: Cohen's kappa, Krippendorff's alpha, and span F1.
//!
//! ```
//! use canonym_core::eval::agreement::cohen_kappa;
//! let both = [("yes", "yes"), ("yes", "no"), ("no", "no"), ("no", "no")];
//! assert_eq!(cohen_kappa(&both), Some(0.5));
//! ```

use std::collections::{BTreeMap, BTreeSet};

/// Cohen's kappa, `(p_o - p_e) / (1 - p_e)`: agreement of two annotators corrected for chance, at most 1.
/// `both` contains the two labels of each item.
///
/// `None` without items, or if all labels are equal, because expected agreement is then 1.
pub fn cohen_kappa<T: Ord>(both: &[(T, T)]) -> Option<f64> {
    let n = both.len() as f64;
    let observed = both.iter().filter(|(one, other)| one == other).count() as f64 / n;
    let mut counts: BTreeMap<&T, (f64, f64)> = BTreeMap::new();
    for (one, other) in both {
        counts.entry(one).or_default().0 += 1.0;
        counts.entry(other).or_default().1 += 1.0;
    }
    let expected = counts.values().map(|(one, other)| (one / n) * (other / n)).sum::<f64>();
    (!both.is_empty() && expected < 1.0).then(|| (observed - expected) / (1.0 - expected))
}

/// Krippendorff's alpha for nominal labels, `1 - D_o / D_e`. One row per item with the label of each annotator, `None`
/// if missing.
///
/// Items with fewer than two labels are excluded. `None` if no items remain, or if all labels are equal.
pub fn krippendorff_alpha<T: Ord>(ratings: &[Vec<Option<T>>]) -> Option<f64> {
    let mut totals: BTreeMap<&T, f64> = BTreeMap::new();
    let mut disagreement = 0.0;
    let mut n = 0.0;
    for row in ratings {
        let labels: Vec<&T> = row.iter().flatten().collect();
        let n_labels = labels.len() as f64;
        if labels.len() < 2 {
            continue;
        }
        let mut counts: BTreeMap<&T, f64> = BTreeMap::new();
        for label in labels {
            *counts.entry(label).or_default() += 1.0;
            *totals.entry(label).or_default() += 1.0;
        }
        n += n_labels;
        // Ordered pairs of different labels within an item, weighted by 1 / (number of labels - 1).
        let alike: f64 = counts.values().map(|count| count * (count - 1.0)).sum();
        disagreement += (n_labels * (n_labels - 1.0) - alike) / (n_labels - 1.0);
    }
    let expected = n * n - totals.values().map(|total| total * total).sum::<f64>();
    (expected > 0.0).then(|| 1.0 - (n - 1.0) * disagreement / expected)
}

/// F1 of the spans marked by two annotators; `None` if neither marked any.
pub fn span_f1<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>) -> Option<f64> {
    let n_common = one.intersection(other).count() as f64;
    let n_all = (one.len() + other.len()) as f64;
    (n_all > 0.0).then(|| 2.0 * n_common / n_all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: Option<f64>, expected: f64) {
        let value = value.expect("there is a value");
        assert!((value - expected).abs() < 5e-4, "{value} is not {expected}");
    }

    #[test]
    fn kappa_of_fifty_grant_proposals() {
        // Textbook example: both yes 20, both no 15, only the first yes 5, only the second yes 10.
        let cells = [(true, true, 20), (true, false, 5), (false, true, 10), (false, false, 15)];
        let both: Vec<(bool, bool)> =
            cells.iter().flat_map(|&(one, other, n)| std::iter::repeat_n((one, other), n)).collect();
        close(cohen_kappa(&both), 0.4);
    }

    #[test]
    fn kappa_can_be_below_chance() {
        assert_eq!(cohen_kappa(&[(0, 1), (1, 0)]), Some(-1.0));
        assert_eq!(cohen_kappa(&[(1, 1), (1, 1)]), None);
        assert_eq!(cohen_kappa::<u8>(&[]), None);
    }

    #[test]
    fn alpha_of_krippendorffs_own_examples() {
        let row = |text: &str| -> Vec<Option<char>> {
            text.chars().map(|letter| (letter != '.').then_some(letter)).collect()
        };
        let turned = |raters: &[&str]| -> Vec<Vec<Option<char>>> {
            let raters: Vec<_> = raters.iter().map(|rater| row(rater)).collect();
            (0..raters[0].len()).map(|item| raters.iter().map(|rater| rater[item]).collect()).collect()
        };
        // Two observers, binary, no missing values; and four observers with missing values, nominal.
        close(krippendorff_alpha(&turned(&["0100000000", "1110010010"])), 0.095);
        let four = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."];
        close(krippendorff_alpha(&turned(&four)), 0.743);
    }

    #[test]
    fn alpha_of_empty_input_is_none() {
        assert_eq!(krippendorff_alpha(&[vec![Some(1), None], vec![None, Some(2)]]), None);
        assert_eq!(krippendorff_alpha(&[vec![Some(1), Some(1)]]), None);
        assert_eq!(krippendorff_alpha(&[vec![Some(1), Some(1)], vec![Some(2), Some(2)]]), Some(1.0));
    }

    #[test]
    fn values_are_compared_as_sets() {
        let one = BTreeSet::from([1, 2, 3]);
        assert_eq!(span_f1(&one, &BTreeSet::from([2, 3, 4])), Some(2.0 / 3.0));
        assert_eq!(span_f1(&one, &BTreeSet::new()), Some(0.0));
        assert_eq!(span_f1::<u8>(&BTreeSet::new(), &BTreeSet::new()), None);
    }
}
