//! Building an index of n-grams.

use rayon::prelude::*;

use super::super::forms::put;
use super::{DENSE, LARGE, N_GRAMS, distinct_grams, idf};

/// Rows whose postings are collected at a time, which bounds memory.
const PART: usize = 1 << 18;

/// An index ready to be written.
#[derive(Debug, Default)]
pub struct GramIndex {
    /// Codes of the grams that occur, ascending.
    pub codes: Vec<u32>,
    /// Number of names that contain each gram.
    pub df: Vec<u32>,
    /// Offsets of the posting lists in the concatenation of all `parts`, `[codes + 1]`.
    pub at: Vec<u64>,
    /// The bytes of each posting list, in parts of consecutive rows.
    pub parts: Vec<Part>,
    /// Inverse L2 norm of each row, as bits of an `f32`.
    pub inverse_norms: Vec<u32>,
}

/// The part of all posting lists that belongs to a range of rows.
#[derive(Debug, Default)]
pub struct Part {
    at: Vec<u32>,
    gaps: Vec<u8>,
}

/// Grams of consecutive names.
struct Grams {
    lens: Vec<u32>,
    grams: Vec<u32>,
}

impl Grams {
    fn of(names: &[&str]) -> Grams {
        let of_chunk = |names: &[&str]| {
            let mut all = Grams { lens: Vec::with_capacity(names.len()), grams: Vec::new() };
            let mut grams = Vec::new();
            for name in names {
                distinct_grams(name, &mut grams);
                all.lens.push(grams.len() as u32);
                all.grams.extend_from_slice(&grams);
            }
            all
        };
        let chunks: Vec<Grams> = names.par_chunks(1 << 12).map(of_chunk).collect();
        Grams {
            lens: chunks.iter().flat_map(|chunk| &chunk.lens).copied().collect(),
            grams: chunks.iter().flat_map(|chunk| &chunk.grams).copied().collect(),
        }
    }

    fn lists(&self) -> impl Iterator<Item = &[u32]> {
        let mut start = 0;
        self.lens.iter().map(move |len| {
            let list = &self.grams[start..start + *len as usize];
            start += *len as usize;
            list
        })
    }
}

/// Weights of the grams of some names.
#[derive(Debug)]
pub struct GramWeights {
    /// Number of names that contain each gram, `[N_GRAMS]`.
    counts: Vec<u32>,
    /// Weight of each gram, `[N_GRAMS]`.
    weights: Vec<f32>,
}

impl GramWeights {
    /// Counts the grams of `folded` names.
    pub fn of(folded: &[&str]) -> GramWeights {
        let counts = counts(folded);
        let weights = counts.iter().map(|df| idf(folded.len(), *df)).collect();
        GramWeights { counts, weights }
    }

    /// Inverse L2 norms of `folded` names, as bits of an `f32`.
    pub fn inverse_norms(&self, folded: &[&str]) -> Vec<u32> {
        let each = |names: &[&str]| Grams::of(names).lists().map(|list| self.inverse_norm(list)).collect::<Vec<_>>();
        folded.chunks(PART).flat_map(each).collect()
    }

    fn inverse_norm(&self, grams: &[u32]) -> u32 {
        let square: f32 = grams.iter().map(|gram| self.weights[*gram as usize].powi(2)).sum();
        if square > 0.0 { square.sqrt().recip().to_bits() } else { 0 }
    }
}

/// Number of names that contain each gram, `[N_GRAMS]`.
fn counts(folded: &[&str]) -> Vec<u32> {
    let mut counts = vec![0u32; N_GRAMS];
    for part in folded.chunks(PART) {
        Grams::of(part).grams.iter().for_each(|gram| counts[*gram as usize] += 1);
    }
    counts
}

impl GramIndex {
    /// Indexes `folded` names; rows are their positions.
    pub fn build(folded: &[&str]) -> GramIndex {
        let weights = GramWeights::of(folded);
        GramIndex::listed(folded, &weights, &weights.counts)
    }

    /// Indexes `folded` words of names whose weights are given; `df` counts names.
    pub fn weighed(folded: &[&str], weights: &GramWeights) -> GramIndex {
        // Small indexes list all n-grams.
        let own = if folded.len() > LARGE { counts(folded) } else { vec![0; N_GRAMS] };
        GramIndex::listed(folded, weights, &own)
    }

    /// Indexes `folded` names or words, of which `own` contain each n-gram.
    fn listed(folded: &[&str], weights: &GramWeights, own: &[u32]) -> GramIndex {
        let codes: Vec<u32> = (0..N_GRAMS as u32).filter(|gram| weights.counts[*gram as usize] > 0).collect();
        let df: Vec<u32> = codes.iter().map(|gram| weights.counts[*gram as usize]).collect();
        let is_dense = |df: u32| folded.len() > LARGE && df as usize > folded.len() / DENSE;
        // Index of each gram among the codes that have a list.
        let mut slots = vec![u32::MAX; N_GRAMS];
        for (slot, gram) in codes.iter().enumerate().filter(|(_, gram)| !is_dense(own[**gram as usize])) {
            slots[*gram as usize] = slot as u32;
        }
        let mut previous = vec![u32::MAX; codes.len()];
        let mut inverse_norms = Vec::with_capacity(folded.len());
        let (mut parts, mut at) = (Vec::new(), vec![0u64; codes.len() + 1]);
        for (number, names) in folded.chunks(PART).enumerate() {
            let grams = Grams::of(names);
            let mut starts = vec![0u32; codes.len() + 1];
            let listed = |gram: &u32| Some(slots[*gram as usize]).filter(|slot| *slot != u32::MAX);
            for slot in grams.grams.iter().filter_map(listed) {
                starts[slot as usize + 1] += 1;
            }
            for slot in 0..codes.len() {
                starts[slot + 1] += starts[slot];
            }
            let (mut next, mut rows) = (starts.clone(), vec![0u32; starts[codes.len()] as usize]);
            for (row, list) in (number * PART..).zip(grams.lists()) {
                inverse_norms.push(weights.inverse_norm(list));
                for slot in list.iter().filter_map(listed) {
                    rows[next[slot as usize] as usize] = row as u32;
                    next[slot as usize] += 1;
                }
            }
            let mut part = Part { at: vec![0], gaps: Vec::with_capacity(rows.len() * 5 / 4) };
            for slot in 0..codes.len() {
                for row in &rows[starts[slot] as usize..starts[slot + 1] as usize] {
                    put(row.wrapping_sub(previous[slot]) - 1, &mut part.gaps);
                    previous[slot] = *row;
                }
                at[slot + 1] += part.gaps.len() as u64 - u64::from(part.at[slot]);
                part.at.push(part.gaps.len() as u32);
            }
            parts.push(part);
        }
        for slot in 0..codes.len() {
            at[slot + 1] += at[slot];
        }
        GramIndex { codes, df, at, parts, inverse_norms }
    }

    /// The bytes of all posting lists, in order.
    pub fn gaps(&self) -> impl Iterator<Item = &[u8]> {
        let of_slot = |slot: usize| {
            self.parts.iter().map(move |part| &part.gaps[part.at[slot] as usize..part.at[slot + 1] as usize])
        };
        (0..self.codes.len()).flat_map(of_slot)
    }
}
