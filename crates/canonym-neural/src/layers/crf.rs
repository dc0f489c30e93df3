//! Linear-chain conditional random field (Lafferty et al. 2001) with learned transitions between labels.
//!
//! The score of a label sequence is the sum of the scores of its labels and of its transitions, those from the start and to the end
//! included; it is normalised over all sequences. Forward and backward sums are scaled at each position, so no exponential is taken in the
//! inner loops. The tagger of the default model has transitions that are allowed or forbidden, without weights: [`bilou`] computes the same
//! sums for these two states, which is faster.

pub mod bilou;

use crate::tensor::matrix::{Matrix, dot};

/// Number of rows of the transitions beyond one for each label: from the start, and to the end.
pub const N_ENDS: usize = 2;

/// A CRF over `n_labels` labels.
#[derive(Debug, Clone)]
pub struct Crf<'a> {
    /// Scores of transitions, `[n_labels + 2, n_labels]`: from each label to each, from the start to each, from each to the end.
    transitions: &'a Matrix,
    /// The exponentials of the transitions between labels minus `shift`, and their transpose.
    weights: Matrix,
    transposed: Matrix,
    shift: f32,
}

/// Negative log-likelihood of gold labels, with its gradients.
#[derive(Debug, Clone, Default)]
pub struct Likelihood {
    /// Negative log-likelihood.
    pub loss: f64,
    /// Gradient of the label scores, in their order.
    pub of_scores: Vec<f32>,
    /// Gradient of the transitions.
    pub of_transitions: Vec<f32>,
}

/// Sums over all label sequences.
struct Sums {
    /// Log partition function.
    log_sum: f64,
    /// Marginal probabilities of the labels, in the order of the scores.
    marginals: Vec<f32>,
    /// Expected number of each transition between labels, `[n_labels, n_labels]`.
    pairs: Vec<f32>,
}

impl<'a> Crf<'a> {
    /// A CRF with these transitions, `[n_labels + 2, n_labels]`.
    pub fn new(transitions: &'a Matrix) -> Crf<'a> {
        let n = transitions.n_cols;
        let between = &transitions.values[..n * n];
        let shift = between.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights = Matrix::new(n, n, between.iter().map(|score| (score - shift).exp()).collect());
        let transposed = Matrix::new(n, n, (0..n * n).map(|at| weights.values[at % n * n + at / n]).collect());
        Crf { transitions, weights, transposed, shift }
    }

    fn n_labels(&self) -> usize {
        self.transitions.n_cols
    }

    fn start(&self) -> &[f32] {
        self.transitions.row(self.n_labels())
    }

    fn end(&self) -> &[f32] {
        self.transitions.row(self.n_labels() + 1)
    }

    /// Marginal probabilities of the labels at each position, in the order of `scores`, which has a row of `n_labels` for each.
    pub fn marginals(&self, scores: &[f32]) -> Vec<f32> {
        if scores.is_empty() { Vec::new() } else { self.forward_backward(scores).marginals }
    }

    /// Sums over all label sequences of at least one position.
    fn forward_backward(&self, scores: &[f32]) -> Sums {
        let n = self.n_labels();
        let n_positions = scores.len() / n;
        let mut log_sum = 0.0_f64;
        // Exponentials of the label scores; start and end belong to the first and last position.
        let mut emitted = scores.to_vec();
        add(&mut emitted[..n], self.start());
        add(&mut emitted[(n_positions - 1) * n..], self.end());
        for row in emitted.chunks_exact_mut(n) {
            let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            row.iter_mut().for_each(|score| *score = (*score - max).exp());
            log_sum += f64::from(max);
        }
        log_sum += f64::from(self.shift) * (n_positions - 1) as f64;
        let mut forward: Vec<f32> = Vec::with_capacity(scores.len());
        let mut scales = Vec::with_capacity(n_positions);
        for (at, row) in emitted.chunks_exact(n).enumerate() {
            let before = forward.len().wrapping_sub(n);
            let next: Vec<f32> = match at {
                0 => row.to_vec(),
                _ => (0..n).map(|to| dot(&forward[before..], self.transposed.row(to)) * row[to]).collect(),
            };
            let scale = next.iter().sum::<f32>().max(f32::MIN_POSITIVE);
            forward.extend(next.iter().map(|share| share / scale));
            scales.push(scale);
            log_sum += f64::from(scale.ln());
        }
        let mut marginals = vec![0.0; scores.len()];
        let mut pairs = vec![0.0; n * n];
        let mut backward = vec![1.0_f32; n];
        for at in (0..n_positions).rev() {
            let here = at * n..(at + 1) * n;
            let products = forward[here.clone()].iter().zip(&backward).map(|(forward, backward)| forward * backward);
            marginals[here.clone()].iter_mut().zip(products).for_each(|(to, product)| *to = product);
            if at == 0 {
                break;
            }
            let reached: Vec<f32> = emitted[here]
                .iter()
                .zip(&backward)
                .map(|(emitted, backward)| emitted * backward / scales[at])
                .collect();
            let before = &forward[(at - 1) * n..at * n];
            for (from, share) in before.iter().enumerate() {
                let to = &mut pairs[from * n..][..n];
                to.iter_mut().zip(&reached).for_each(|(to, reached)| *to += share * reached);
            }
            backward = (0..n).map(|from| dot(&reached, self.weights.row(from))).collect();
        }
        pairs.iter_mut().zip(&self.weights.values).for_each(|(share, weight)| *share *= weight);
        Sums { log_sum, marginals, pairs }
    }

    /// Negative log-likelihood of `labels`; `scores` has a row of `n_labels` for each position.
    ///
    /// # Panics
    /// If there are no positions, or not one label for each.
    pub fn likelihood(&self, scores: &[f32], labels: &[usize]) -> Likelihood {
        let n = self.n_labels();
        let n_positions = labels.len();
        assert!(n_positions > 0 && scores.len() == n_positions * n, "a row of scores for each label");
        let Sums { log_sum, marginals: mut of_scores, pairs } = self.forward_backward(scores);
        let mut of_transitions = vec![0.0; (n + N_ENDS) * n];
        of_transitions[..n * n].copy_from_slice(&pairs);
        let last = (n_positions - 1) * n;
        of_transitions[n * n..(n + 1) * n].copy_from_slice(&of_scores[..n]);
        of_transitions[(n + 1) * n..].copy_from_slice(&of_scores[last..]);
        let mut gold = f64::from(self.start()[labels[0]]) + f64::from(self.end()[labels[n_positions - 1]]);
        of_transitions[n * n + labels[0]] -= 1.0;
        of_transitions[(n + 1) * n + labels[n_positions - 1]] -= 1.0;
        for (at, label) in labels.iter().enumerate() {
            gold += f64::from(scores[at * n + label]);
            of_scores[at * n + label] -= 1.0;
        }
        for pair in labels.windows(2) {
            gold += f64::from(self.transitions.row(pair[0])[pair[1]]);
            of_transitions[pair[0] * n + pair[1]] -= 1.0;
        }
        Likelihood { loss: log_sum - gold, of_scores, of_transitions }
    }

    /// The label sequence with the highest score (Viterbi 1967); ties go to the lower label.
    pub fn best(&self, scores: &[f32]) -> Vec<usize> {
        let n = self.n_labels();
        let n_positions = scores.len() / n.max(1);
        if n_positions == 0 {
            return Vec::new();
        }
        let mut sums: Vec<f32> = scores[..n].iter().zip(self.start()).map(|(score, start)| score + start).collect();
        let mut from: Vec<usize> = Vec::with_capacity(scores.len());
        let best = |sums: &mut dyn Iterator<Item = f32>| {
            sums.enumerate().fold((0, f32::NEG_INFINITY), |best, one| if one.1 > best.1 { one } else { best })
        };
        for row in scores.chunks_exact(n).skip(1) {
            let reach = |to: usize| best(&mut (0..n).map(|label| sums[label] + self.transitions.row(label)[to]));
            let reached: Vec<(usize, f32)> = (0..n).map(reach).collect();
            from.extend(reached.iter().map(|(label, _)| *label));
            sums = reached.iter().zip(row).map(|((_, sum), score)| sum + score).collect();
        }
        let mut label = best(&mut sums.iter().zip(self.end()).map(|(sum, end)| sum + end)).0;
        let mut labels = vec![label; n_positions];
        for at in (1..n_positions).rev() {
            label = from[(at - 1) * n + label];
            labels[at - 1] = label;
        }
        labels
    }
}

fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

#[cfg(test)]
mod tests {
    use super::bilou::{BEGIN, BilouCrf, INSIDE, LAST, N_LABELS, OUTSIDE, UNIT};
    use super::*;
    use crate::autograd::differences::drawn;
    use crate::tensor::random::SplitMix64;

    /// All label sequences of this length.
    fn sequences(n_labels: usize, length: usize) -> Vec<Vec<usize>> {
        let sequence = |mut at: usize| {
            let mut labels = Vec::new();
            for _ in 0..length {
                labels.push(at % n_labels);
                at /= n_labels;
            }
            labels
        };
        (0..n_labels.pow(length as u32)).map(sequence).collect()
    }

    fn score(transitions: &Matrix, scores: &Matrix, labels: &[usize]) -> f64 {
        let n = transitions.n_cols;
        let of_labels = labels.iter().enumerate().map(|(at, label)| scores.row(at)[*label]);
        let between = labels.windows(2).map(|pair| transitions.row(pair[0])[pair[1]]);
        let ends = [transitions.row(n)[labels[0]], transitions.row(n + 1)[labels[labels.len() - 1]]];
        of_labels.chain(between).chain(ends).map(f64::from).sum()
    }

    #[test]
    fn likelihood_and_best_sequence_are_those_of_all_sequences() {
        let mut rng = SplitMix64::new(4);
        for length in [1, 2, 5] {
            let (transitions, scores) = (drawn(5, 3, &mut rng), drawn(length, 3, &mut rng));
            let crf = Crf::new(&transitions);
            let all: Vec<(Vec<usize>, f64)> = sequences(3, length)
                .into_iter()
                .map(|labels| {
                    let score = score(&transitions, &scores, &labels);
                    (labels, score)
                })
                .collect();
            let log_sum = all.iter().map(|(_, score)| score.exp()).sum::<f64>().ln();
            let gold = &all[1 % all.len()];
            let found = crf.likelihood(&scores.values, &gold.0);
            assert!((found.loss - (log_sum - gold.1)).abs() < 1e-5);
            let marginals = crf.marginals(&scores.values);
            for (at, marginal) in marginals.into_iter().enumerate() {
                let through = all.iter().filter(|(labels, _)| labels[at / 3] == at % 3);
                let expected = through.map(|(_, score)| (score - log_sum).exp()).sum::<f64>();
                assert!((f64::from(marginal) - expected).abs() < 1e-5);
            }
            let best = all.iter().max_by(|left, right| left.1.total_cmp(&right.1)).unwrap();
            assert_eq!(crf.best(&scores.values), best.0);
        }
    }

    #[test]
    fn the_gradients_are_those_of_the_differences() {
        let mut rng = SplitMix64::new(5);
        let (transitions, scores) = (drawn(5, 3, &mut rng), drawn(4, 3, &mut rng));
        let labels = [2, 0, 0, 1];
        let found = Crf::new(&transitions).likelihood(&scores.values, &labels);
        for at in 0..scores.values.len() {
            let moved = |by: f32| {
                let mut moved = scores.clone();
                moved.values[at] += by;
                Crf::new(&transitions).likelihood(&moved.values, &labels).loss
            };
            assert!(((moved(1e-2) - moved(-1e-2)) / 2e-2 - f64::from(found.of_scores[at])).abs() < 1e-3);
        }
        for at in 0..transitions.values.len() {
            let moved = |by: f32| {
                let mut moved = transitions.clone();
                moved.values[at] += by;
                Crf::new(&moved).likelihood(&scores.values, &labels).loss
            };
            assert!(((moved(1e-2) - moved(-1e-2)) / 2e-2 - f64::from(found.of_transitions[at])).abs() < 1e-3);
        }
    }

    #[test]
    fn the_crf_of_two_states_is_this_one_with_forbidden_transitions() {
        const FORBIDDEN: f32 = -60.0;
        let opens = |label: usize| label == BEGIN || label == INSIDE;
        let continues = |label: usize| label == INSIDE || label == LAST;
        let mut transitions = Matrix::zeros(N_LABELS + N_ENDS, N_LABELS);
        for from in 0..N_LABELS {
            for to in 0..N_LABELS {
                if opens(from) != continues(to) {
                    transitions.row_mut(from)[to] = FORBIDDEN;
                }
            }
        }
        for label in [INSIDE, LAST] {
            transitions.row_mut(N_LABELS)[label] = FORBIDDEN;
        }
        for label in [BEGIN, INSIDE] {
            transitions.row_mut(N_LABELS + 1)[label] = FORBIDDEN;
        }
        let scores = drawn(6, N_LABELS, &mut SplitMix64::new(6));
        let labels = [OUTSIDE, BEGIN, LAST, UNIT, BEGIN, LAST];
        let found = Crf::new(&transitions).likelihood(&scores.values, &labels);
        let rows = scores.values.as_chunks::<N_LABELS>().0;
        let bilou = BilouCrf::new(rows.iter().copied());
        let gold: f64 = labels.iter().zip(rows).map(|(label, row)| f64::from(row[*label])).sum();
        assert!((found.loss - (bilou.log_sum() - gold)).abs() < 1e-4);
        for (at, label) in labels.into_iter().enumerate() {
            let mut marginals = bilou.labels(at);
            marginals[label] -= 1.0;
            for (expected, found) in marginals.iter().zip(&found.of_scores[at * N_LABELS..]) {
                assert!((expected - found).abs() < 1e-4);
            }
        }
    }
}
