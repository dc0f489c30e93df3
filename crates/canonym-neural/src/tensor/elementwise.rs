//! Elementwise and row-wise functions: activations, softmax, layer norm.
//!
//! Everything is written without branches over slices, so that it vectorises for the widest registers of the machine (see
//! [`crate::tensor::matrix::vectorised`]). Sums use sixteen lanes and no fused multiply-add, so results do not depend on the register
//! width. Training graph and inference share these functions.

use serde::{Deserialize, Serialize};

use crate::tensor::matrix::{Vectorised, vectorised};

/// Number of accumulators of a sum.
const LANES: usize = 16;

/// Activation function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Activation {
    /// GELU, `x Φ(x)`, with the error function (Hendrycks and Gimpel 2016).
    #[serde(rename = "gelu", alias = "gelu_python")]
    Gelu,
    /// GELU with the tanh approximation.
    #[serde(rename = "gelu_new", alias = "gelu_pytorch_tanh", alias = "gelu_fast")]
    GeluTanh,
    /// ReLU.
    #[serde(rename = "relu")]
    Relu,
    /// Hyperbolic tangent.
    #[serde(rename = "tanh")]
    Tanh,
}

impl Activation {
    /// Applies the function to each value.
    pub fn apply(self, values: &mut [f32]) {
        match self {
            Activation::Gelu => vectorised(Map(values, Gelu)),
            Activation::GeluTanh => vectorised(Map(values, GeluTanh)),
            Activation::Relu => vectorised(Map(values, Relu)),
            Activation::Tanh => vectorised(Map(values, Tanh)),
        }
    }

    /// Adds a bias to each row of `values`, then applies the function.
    pub fn apply_with_bias(self, values: &mut [f32], bias: &[f32]) {
        match self {
            Activation::Gelu => vectorised(MapWithBias(values, bias, Gelu)),
            Activation::GeluTanh => vectorised(MapWithBias(values, bias, GeluTanh)),
            Activation::Relu => vectorised(MapWithBias(values, bias, Relu)),
            Activation::Tanh => vectorised(MapWithBias(values, bias, Tanh)),
        }
    }

    /// Backward pass: multiplies gradients by the derivative at `inputs`.
    pub fn apply_slope(self, gradients: &mut [f32], inputs: &[f32]) {
        match self {
            Activation::Gelu => vectorised(Slope(gradients, inputs, Gelu)),
            Activation::GeluTanh => vectorised(Slope(gradients, inputs, GeluTanh)),
            Activation::Relu => vectorised(Slope(gradients, inputs, Relu)),
            Activation::Tanh => vectorised(Slope(gradients, inputs, Tanh)),
        }
    }
}

/// Softmax in place.
pub fn softmax(scores: &mut [f32]) {
    let n = scores.len();
    softmax_rows(scores, n, 1.0);
}

/// Softmax of each row of `n_cols` values times `scale`, in place.
pub fn softmax_rows(scores: &mut [f32], n_cols: usize, scale: f32) {
    vectorised(Softmax { scores, n_cols, scale });
}

/// Logarithm of the sum of the exponentials of the values.
pub fn log_sum_exp(values: &[f32]) -> f32 {
    vectorised(LogSumExp(values))
}

/// Parameters of a layer norm (Ba et al. 2016).
#[derive(Debug, Clone, Copy)]
pub struct Norm<'a> {
    /// Gain of each column.
    pub gain: &'a [f32],
    /// Bias of each column.
    pub bias: &'a [f32],
    /// Added to the variance.
    pub epsilon: f32,
}

/// Layer norm of each row in place; returns the inverse standard deviation of each.
pub fn layer_norm_rows(rows: &mut [f32], norm: Norm<'_>) -> Vec<f32> {
    vectorised(LayerNorm { rows, added: None, norm })
}

/// Fused residual connection: adds `added`, and `offset` to each row, before [`layer_norm_rows`].
pub fn add_and_layer_norm_rows(rows: &mut [f32], added: &[f32], offset: &[f32], norm: Norm<'_>) {
    vectorised(LayerNorm { rows, added: Some((added, offset)), norm });
}

/// A scalar function and its derivative, inlined into the loops below.
trait Function {
    fn at(x: f32) -> f32;
    fn slope(x: f32) -> f32;
}

struct Gelu;
struct GeluTanh;
struct Relu;
struct Tanh;

impl Function for Gelu {
    #[inline(always)]
    fn at(x: f32) -> f32 {
        0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
    }

    #[inline(always)]
    fn slope(x: f32) -> f32 {
        // The constant is the standard normal density at 0, 1/sqrt(2 pi).
        0.5 * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2)) + x * 0.398_942_3 * exp(-0.5 * x * x)
    }
}

impl Function for GeluTanh {
    #[inline(always)]
    fn at(x: f32) -> f32 {
        x * gate(x)
    }

    #[inline(always)]
    fn slope(x: f32) -> f32 {
        let gate = gate(x);
        // The derivative of the gate g is 2 g (1 - g) times that of its argument.
        gate + x * 2.0 * gate * (1.0 - gate) * 0.797_884_6 * (1.0 + 0.134_145 * x * x)
    }
}

impl Function for Relu {
    #[inline(always)]
    fn at(x: f32) -> f32 {
        if x < 0.0 { 0.0 } else { x }
    }

    #[inline(always)]
    fn slope(x: f32) -> f32 {
        if x > 0.0 { 1.0 } else { 0.0 }
    }
}

impl Function for Tanh {
    #[inline(always)]
    fn at(x: f32) -> f32 {
        tanh(x)
    }

    #[inline(always)]
    fn slope(x: f32) -> f32 {
        let y = tanh(x);
        1.0 - y * y
    }
}

#[inline(always)]
fn gate(x: f32) -> f32 {
    0.5 * (1.0 + tanh(0.797_884_6 * (x + 0.044_715 * x * x * x)))
}

/// Exponential function, clamped to the range of `f32`. Relative error below 2e-7.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // 2^23 * 1.5: adding it to a small number leaves the rounded integer in the lowest bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.3, 88.3);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts; the first has few bits, so that its products are exact.
    let rest = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut sum = 1.987_569_2e-4;
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        sum = sum * rest + factor;
    }
    let power = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    (sum * rest * rest + rest + 1.0) * power
}

/// Logistic function.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    1.0 - 2.0 / (exp(2.0 * x) + 1.0)
}

/// Error function as a rational approximation; error below 5e-7.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = x.clamp(-3.832_507, 3.832_507);
    let square = x * x;
    let mut above = -2.726_142_3e-10;
    for factor in [2.770_681_4e-8, -2.101_024e-6, -5.692_506_5e-5, -7.349_906e-4, -2.954_6e-3, -1.609_603_3e-2] {
        above = above * square + factor;
    }
    let mut below = -1.456_607_2e-5;
    for factor in [-2.133_740_6e-4, -1.682_827e-3, -7.373_329e-3, -1.426_474e-2] {
        below = below * square + factor;
    }
    x * above / below
}

struct LogSumExp<'a>(&'a [f32]);

impl Vectorised for LogSumExp<'_> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let (chunks, rest) = self.0.as_chunks::<LANES>();
        let mut greatest = [f32::NEG_INFINITY; LANES];
        for chunk in chunks {
            greatest.iter_mut().zip(chunk).for_each(|(max, x)| *max = if *x > *max { *x } else { *max });
        }
        let max = greatest.iter().chain(rest).fold(f32::NEG_INFINITY, |max, x| max.max(*x));
        if max == f32::NEG_INFINITY {
            return max;
        }
        let mut sums = [0.0; LANES];
        for chunk in chunks {
            sums.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += exp(x - max));
        }
        max + (sums.iter().sum::<f32>() + rest.iter().map(|x| exp(x - max)).sum::<f32>()).ln()
    }
}

struct Map<'a, F>(&'a mut [f32], F);

impl<F: Function> Vectorised for Map<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.0.iter_mut().for_each(|x| *x = F::at(*x));
    }
}

struct MapWithBias<'a, F>(&'a mut [f32], &'a [f32], F);

impl<F: Function> Vectorised for MapWithBias<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.0.chunks_exact_mut(self.1.len().max(1)) {
            row.iter_mut().zip(self.1).for_each(|(x, bias)| *x = F::at(*x + bias));
        }
    }
}

struct Slope<'a, F>(&'a mut [f32], &'a [f32], F);

impl<F: Function> Vectorised for Slope<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // Not `for_each`, whose closure is not inlined here and so not vectorised.
        for (to, x) in self.0.iter_mut().zip(self.1) {
            *to *= F::slope(*x);
        }
    }
}

struct Softmax<'a> {
    scores: &'a mut [f32],
    n_cols: usize,
    scale: f32,
}

impl Vectorised for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for row in self.scores.chunks_exact_mut(self.n_cols.max(1)) {
            let greatest = greatest(row);
            row.iter_mut().for_each(|x| *x = exp((*x - greatest) * self.scale));
            let fraction = 1.0 / sum(row, |x| x);
            row.iter_mut().for_each(|x| *x *= fraction);
        }
    }
}

struct LayerNorm<'a> {
    rows: &'a mut [f32],
    /// A matrix of the same shape, and one row.
    added: Option<(&'a [f32], &'a [f32])>,
    norm: Norm<'a>,
}

impl Vectorised for LayerNorm<'_> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn run(self) -> Vec<f32> {
        let Norm { gain, bias, epsilon } = self.norm;
        let n_cols = gain.len();
        let mut inverses = Vec::with_capacity(self.rows.len() / n_cols.max(1));
        for (at, row) in self.rows.chunks_exact_mut(n_cols.max(1)).enumerate() {
            if let Some((added, offset)) = self.added {
                let added = added[at * n_cols..][..n_cols].iter().zip(offset);
                row.iter_mut().zip(added).for_each(|(x, (added, offset))| *x += added + offset);
            }
            let mean = sum(row, |x| x) / n_cols as f32;
            let variance = sum(row, |x| (x - mean) * (x - mean)) / n_cols as f32;
            let inverse = 1.0 / (variance + epsilon).sqrt();
            for ((x, gain), bias) in row.iter_mut().zip(gain).zip(bias) {
                *x = (*x - mean) * inverse * gain + bias;
            }
            inverses.push(inverse);
        }
        inverses
    }
}

/// Sum of `term` over all values, with sixteen accumulators.
#[inline(always)]
fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for values in whole {
        for lane in 0..LANES {
            lanes[lane] += term(values[lane]);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| term(*x)).sum::<f32>()
}

/// Maximum; NaN is ignored.
#[inline(always)]
fn greatest(values: &[f32]) -> f32 {
    let more = |most: f32, x: f32| if x > most { x } else { most };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (whole, rest) = values.as_chunks::<LANES>();
    for values in whole {
        for lane in 0..LANES {
            lanes[lane] = more(lanes[lane], values[lane]);
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |most, x| more(most, *x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error function by its power series, in double precision.
    fn erf_by_series(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    fn applied(activation: Activation, x: f32) -> f32 {
        let mut values = [x; 19];
        activation.apply(&mut values);
        assert!(values.iter().all(|value| value.to_bits() == values[0].to_bits()), "every lane gives the same");
        values[0]
    }

    #[test]
    fn activations_are_those_of_their_definitions() {
        for step in -400..=400 {
            let x = step as f32 / 80.0;
            let wide = f64::from(x);
            let tangent = (0.797_884_560_8 * (wide + 0.044_715 * wide.powi(3))).tanh();
            for (activation, expected) in [
                (Activation::Gelu, 0.5 * wide * (1.0 + erf_by_series(wide / 2.0f64.sqrt()))),
                (Activation::GeluTanh, 0.5 * wide * (1.0 + tangent)),
                (Activation::Relu, wide.max(0.0)),
                (Activation::Tanh, wide.tanh()),
            ] {
                let made = applied(activation, x);
                assert!((f64::from(made) - expected).abs() < 1.5e-6, "{activation:?} {x}: {made} {expected}");
                let mut biased = [x - 1.0, x - 2.0];
                activation.apply_with_bias(&mut biased, &[1.0, 2.0]);
                assert!(biased.iter().all(|value| (value - made).abs() < 1e-5));
            }
        }
        assert!(applied(Activation::Gelu, -30.0).abs() < 1e-5 && (applied(Activation::Gelu, 30.0) - 30.0).abs() < 1e-5);
    }

    #[test]
    fn slopes_are_those_of_differences() {
        for activation in [Activation::Gelu, Activation::GeluTanh, Activation::Tanh, Activation::Relu] {
            for step in -50..50 {
                let x = (step as f32 + 0.5) / 10.0;
                let slope = (applied(activation, x + 1e-2) - applied(activation, x - 1e-2)) / 2e-2;
                let mut made = [3.0];
                activation.apply_slope(&mut made, &[x]);
                assert!((made[0] - 3.0 * slope).abs() < 1e-3, "{activation:?} {x}: {} {slope}", made[0]);
            }
        }
    }

    #[test]
    fn shares_sum_to_one_and_follow_the_scale() {
        let mut rows: Vec<f32> = (0..70).map(|i| ((i * 37) % 23) as f32 - 300.0).collect();
        let plain = rows.clone();
        softmax_rows(&mut rows, 35, 0.25);
        for (row, scores) in rows.chunks(35).zip(plain.chunks(35)) {
            let sum: f64 = scores.iter().map(|x| f64::from(0.25 * x).exp()).sum();
            for (fraction, score) in row.iter().zip(scores) {
                assert!((f64::from(*fraction) - f64::from(0.25 * score).exp() / sum).abs() < 1e-6);
            }
        }
        let mut spread = [0.0, -500.0, f32::NEG_INFINITY];
        softmax(&mut spread);
        assert!((spread[0] - 1.0).abs() < 1e-6 && spread[1] < 1e-30 && spread[2] < 1e-30, "{spread:?}");
        let mut broken = [0.0, f32::NAN];
        softmax(&mut broken);
        assert!(broken.iter().all(|fraction| fraction.is_nan()));
    }

    #[test]
    fn norms_of_rows_have_mean_and_deviation_of_bias_and_gain() {
        let mut rows: Vec<f32> = (0..80).map(|i| ((i * 31) % 17) as f32).collect();
        let (gain, bias) = (vec![2.0; 40], vec![5.0; 40]);
        let norm = Norm { gain: &gain, bias: &bias, epsilon: 1e-12 };
        let mut halves: Vec<f32> = rows.iter().map(|x| x / 2.0 - 3.0).collect();
        add_and_layer_norm_rows(&mut halves, &rows.iter().map(|x| x / 2.0).collect::<Vec<f32>>(), &[3.0; 40], norm);
        let inverses = layer_norm_rows(&mut rows, norm);
        assert_eq!(inverses.len(), 2);
        for row in rows.chunks(40) {
            let mean = row.iter().sum::<f32>() / 40.0;
            let deviation = (row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / 40.0).sqrt();
            assert!((mean - 5.0).abs() < 1e-5 && (deviation - 2.0).abs() < 1e-5, "{mean} {deviation}");
        }
        assert!(rows.iter().zip(&halves).all(|(left, right)| (left - right).abs() < 1e-5));
    }
}
