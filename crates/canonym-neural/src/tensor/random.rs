//! Random numbers for initialisation, dropout and sampling, from a generator that the caller passes.

pub use canonym_core::eval::bootstrap::SplitMix64;

use crate::tensor::matrix::{Vectorised, vectorised};

/// The generator of one training step. It depends only on seed and step, so a resumed run draws the same numbers.
pub fn for_step(seed: u64, step: u64) -> SplitMix64 {
    let first = SplitMix64::new(seed).next_u64();
    SplitMix64::new(SplitMix64::new(first ^ step.wrapping_mul(0x2545_f491_4f6c_dd1d)).next_u64())
}

/// Uniform random number in `[0, 1)`.
pub fn unit(rng: &mut SplitMix64) -> f32 {
    (rng.next_u64() >> 40) as f32 / (1u64 << 24) as f32
}

/// Standard normal random number (Box and Muller).
pub fn normal(rng: &mut SplitMix64) -> f32 {
    let radius = (-2.0 * (1.0 - unit(rng)).ln()).sqrt();
    radius * (std::f32::consts::TAU * unit(rng)).cos()
}

/// Shuffles `items` in place (Fisher and Yates).
pub fn shuffle<T>(items: &mut [T], rng: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last + 1));
    }
}

/// Inverted dropout mask: 0 with probability `rate`, otherwise `1 / (1 - rate)`.
pub fn dropout_mask(n: usize, rate: f32, rng: &mut SplitMix64) -> Vec<f32> {
    let limit = (f64::from(rate) * f64::from(1u32 << 16)) as u16;
    // One 64-bit number decides four values.
    let draws: Vec<u64> = (0..n.div_ceil(4)).map(|_| rng.next_u64()).collect();
    let mut mask = vec![0.0; 4 * draws.len()];
    vectorised(Mask { draws: &draws, mask: &mut mask, limit, kept: 1.0 / (1.0 - rate) });
    mask.truncate(n);
    mask
}

struct Mask<'a> {
    draws: &'a [u64],
    mask: &'a mut [f32],
    limit: u16,
    kept: f32,
}

impl Vectorised for Mask<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (draw, mask) in self.draws.iter().zip(self.mask.as_chunks_mut::<4>().0) {
            for (at, value) in mask.iter_mut().enumerate() {
                *value = if ((draw >> (16 * at)) as u16) < self.limit { 0.0 } else { self.kept };
            }
        }
    }
}
