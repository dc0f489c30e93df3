//! Name similarity by character n-grams: cosine of TF-IDF vectors over 1- to 3-grams within words.
//!
//! Grams are taken from words of a folded name, padded with a space on both sides; letters and digits have their own
//! codes, other characters share codes. Term frequency is binary. The weight is the smoothed inverse document
//! frequency, `1 + ln((1 + n) / (1 + df))`.
//!
//! A search reads the posting lists of the rarest grams, up to the share [`MASS`] of the squared query norm, keeps the
//! rows with the highest partial sums, and computes their cosines exactly.

use rayon::prelude::*;

use super::packed::{Strings, U32s};

/// Number of gram codes.
pub const N_GRAMS: usize = 1 << 18;

/// Share of the squared norm of a query whose posting lists are read.
pub const MASS: f32 = 0.7;

/// Maximum number of characters of a query; the rest is ignored.
const MAX_QUERY: usize = 400;

/// Rows per block, so that the sums of a block fit in the cache.
const BLOCK: usize = 1 << 15;

/// An index ready to be written.
#[derive(Debug, Default)]
pub struct GramIndex {
    /// Offsets into `rows`, `[N_GRAMS + 1]`.
    pub at: Vec<u32>,
    /// Rows that contain each gram, ascending.
    pub rows: Vec<u32>,
    /// Inverse L2 norm of each row, as bits of an `f32`.
    pub inverse_norms: Vec<u32>,
}

fn code(byte: u8) -> u32 {
    match byte {
        b'a'..=b'z' => u32::from(byte - b'a') + 1,
        b'0'..=b'9' => u32::from(byte - b'0') + 27,
        b' ' => 37,
        other => 38 + u32::from(other) % 26,
    }
}

/// Calls `take` with every gram of a folded name, including repetitions.
#[inline]
pub fn for_each_gram(folded: &[u8], mut take: impl FnMut(u32)) {
    let (mut one_back, mut two_back) = (37, 0);
    for byte in folded.iter().copied().chain(std::iter::once(b' ')) {
        let here = code(byte);
        if here != 37 {
            take(here);
        }
        take(one_back | here << 6);
        if two_back != 0 {
            take(two_back | one_back << 6 | here << 12);
        }
        if here == 37 {
            (one_back, two_back) = (37, 0);
        } else {
            (two_back, one_back) = (one_back, here);
        }
    }
}

fn distinct_grams(folded: &str, grams: &mut Vec<u32>) {
    grams.clear();
    for_each_gram(folded.as_bytes(), |gram| grams.push(gram));
    grams.sort_unstable();
    grams.dedup();
}

fn idf(n_rows: usize, df: u32) -> f32 {
    1.0 + ((1.0 + n_rows as f32) / (1.0 + df as f32)).ln()
}

impl GramIndex {
    /// Indexes `folded` names; rows are their positions.
    pub fn build(folded: &[&str]) -> GramIndex {
        const BATCH: usize = 1 << 14;
        let grams_of_batch = |batch: &[&str]| -> (Vec<u32>, Vec<u32>) {
            let lists: Vec<Vec<u32>> = batch
                .par_iter()
                .map_init(Vec::new, |grams, name| {
                    distinct_grams(name, grams);
                    grams.clone()
                })
                .collect();
            (lists.iter().map(|list| list.len() as u32).collect(), lists.concat())
        };
        let mut at = vec![0u32; N_GRAMS + 1];
        for batch in folded.chunks(BATCH) {
            for gram in grams_of_batch(batch).1 {
                at[gram as usize + 1] += 1;
            }
        }
        let weights: Vec<f32> = at[1..].iter().map(|df| idf(folded.len(), *df)).collect();
        for gram in 0..N_GRAMS {
            at[gram + 1] += at[gram];
        }
        let mut next = at.clone();
        let mut rows = vec![0; at[N_GRAMS] as usize];
        let mut inverse_norms = Vec::with_capacity(folded.len());
        let mut row = 0;
        for batch in folded.chunks(BATCH) {
            let (lens, grams) = grams_of_batch(batch);
            let mut start = 0;
            for len in lens {
                let list = &grams[start..start + len as usize];
                let square: f32 = list.iter().map(|gram| weights[*gram as usize].powi(2)).sum();
                inverse_norms.push(if square > 0.0 { square.sqrt().recip().to_bits() } else { 0 });
                for gram in list {
                    rows[next[*gram as usize] as usize] = row;
                    next[*gram as usize] += 1;
                }
                row += 1;
                start += len as usize;
            }
        }
        GramIndex { at, rows, inverse_norms }
    }
}

/// A view of an index in a mapped file.
#[derive(Debug, Clone, Copy)]
pub struct GramIndexView<'a> {
    /// See [`GramIndex::at`].
    pub at: U32s<'a>,
    /// See [`GramIndex::rows`].
    pub rows: U32s<'a>,
    /// See [`GramIndex::inverse_norms`].
    pub inverse_norms: U32s<'a>,
    /// The indexed names.
    pub names: Strings<'a>,
}

/// A row with its cosine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GramHit {
    /// Row of the name.
    pub row: u32,
    /// Cosine of the TF-IDF vectors, 0 to 1.
    pub cosine: f32,
}

/// Buffers of a thread, reused between queries.
#[derive(Debug)]
pub struct GramScratch {
    sums: Vec<u16>,
    grams: Vec<u32>,
    /// For each gram its index in `weighed`, from 1; 0 if not in the query.
    slots: Vec<u16>,
    /// Weight of each gram of the query, and the last row that contained it.
    weighed: Vec<(f32, u32)>,
}

impl Default for GramScratch {
    fn default() -> Self {
        GramScratch { sums: vec![0; BLOCK], grams: Vec::new(), slots: vec![0; N_GRAMS], weighed: Vec::new() }
    }
}

fn clip(folded: &str) -> &str {
    let mut end = folded.len().min(MAX_QUERY);
    while !folded.is_char_boundary(end) {
        end -= 1;
    }
    &folded[..end]
}

struct List<'a> {
    rows: &'a [u8],
    weight: u16,
}

impl GramIndexView<'_> {
    /// The `k` names most similar to `folded`, best first; ties in row order.
    pub fn search(&self, folded: &str, k: usize, scratch: &mut GramScratch) -> Vec<GramHit> {
        self.search_among(folded, k, None, scratch)
    }

    /// Like [`GramIndexView::search`], restricted to rows for which `is_wanted` holds, if given.
    pub fn search_among(
        &self,
        folded: &str,
        k: usize,
        is_wanted: Option<&dyn Fn(u32) -> bool>,
        scratch: &mut GramScratch,
    ) -> Vec<GramHit> {
        let GramScratch { sums, grams, .. } = scratch;
        distinct_grams(clip(folded), grams);
        let n_rows = self.names.len();
        let mut weighed: Vec<(u32, f32)> = grams
            .iter()
            .map(|gram| (*gram, self.at.range(*gram as usize).len() as u32))
            .map(|(gram, df)| (gram, idf(n_rows, df)))
            .collect();
        let square: f32 = weighed.iter().map(|(_, weight)| weight * weight).sum();
        if square <= 0.0 || k == 0 {
            return Vec::new();
        }
        // Rare grams first. A gram in no name has no postings and does not count towards the mass.
        weighed.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let known = |gram: u32| !self.at.range(gram as usize).is_empty();
        let known_square: f32 =
            weighed.iter().filter(|(gram, _)| known(*gram)).map(|(_, weight)| weight * weight).sum();
        let scale = 60_000.0 / known_square.max(1e-6);
        let mut lists = Vec::new();
        let mut mass = 0.0;
        for (gram, weight) in &weighed {
            if mass >= MASS * known_square {
                break;
            }
            if !known(*gram) {
                continue;
            }
            mass += weight * weight;
            let rows = self.rows.slice(self.at.range(*gram as usize)).0;
            lists.push(List { rows, weight: (weight * weight * scale) as u16 });
        }
        let wide = 2 * k + 32;
        let rows = self.best_sums(&mut lists, wide, is_wanted, sums);
        let cosines = self.cosines(folded, &rows, scratch);
        let hits = rows.into_iter().zip(cosines).map(|(row, cosine)| GramHit { row, cosine });
        let mut hits: Vec<GramHit> = hits.collect();
        hits.sort_unstable_by(|a, b| b.cosine.total_cmp(&a.cosine).then(a.row.cmp(&b.row)));
        hits.truncate(k);
        hits
    }

    /// Cosine of `folded` and each of `rows`.
    pub fn cosines(&self, folded: &str, rows: &[u32], scratch: &mut GramScratch) -> Vec<f32> {
        let GramScratch { grams, slots, weighed, .. } = scratch;
        distinct_grams(clip(folded), grams);
        let n_rows = self.names.len();
        let mut square = 0.0;
        weighed.clear();
        for gram in grams.iter() {
            let weight = idf(n_rows, self.at.range(*gram as usize).len() as u32);
            square += weight * weight;
            weighed.push((weight * weight, u32::MAX));
            slots[*gram as usize] = weighed.len() as u16;
        }
        let norm = square.sqrt().max(1e-6);
        let mut cosine = |(turn, row): (usize, &u32)| {
            let mut sum = 0.0;
            for_each_gram(self.names.bytes(*row as usize), |gram| {
                let slot = slots[gram as usize];
                if slot > 0 {
                    let (weight, last) = &mut weighed[slot as usize - 1];
                    if *last != turn as u32 {
                        *last = turn as u32;
                        sum += *weight;
                    }
                }
            });
            let inverse = f32::from_bits(self.inverse_norms.get(*row as usize));
            (sum * inverse / norm).min(1.0)
        };
        let cosines = rows.iter().enumerate().map(&mut cosine).collect();
        for gram in grams.iter() {
            slots[*gram as usize] = 0;
        }
        cosines
    }

    /// The rows with the `k` largest sums over `lists`, each multiplied by the inverse norm of the row.
    fn best_sums(
        &self,
        lists: &mut [List<'_>],
        k: usize,
        is_wanted: Option<&dyn Fn(u32) -> bool>,
        sums: &mut [u16],
    ) -> Vec<u32> {
        let n_rows = self.names.len();
        let mut best: Vec<(f32, u32)> = Vec::with_capacity(2 * k);
        let mut threshold = 0.0f32;
        for base in (0..n_rows).step_by(BLOCK) {
            let end = (base + BLOCK).min(n_rows);
            let sums = &mut sums[..end - base];
            sums.fill(0);
            let mut touched = false;
            for list in lists.iter_mut() {
                let rows = U32s(list.rows);
                let n_here = rows.partition_point(|row| (row as usize) < end);
                let (here, after) = list.rows.split_at(4 * n_here);
                for bytes in here.chunks_exact(4) {
                    let row = u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize;
                    // A damaged list could point before the block. The scale keeps sums below the maximum.
                    if let Some(sum) = sums.get_mut(row.wrapping_sub(base)) {
                        *sum = sum.wrapping_add(list.weight);
                    }
                }
                touched |= n_here > 0;
                list.rows = after;
            }
            if !touched {
                continue;
            }
            let norms = &self.inverse_norms.slice(base..end);
            for (chunk, (sums, norms)) in sums.chunks(32).zip(norms.0.chunks(128)).enumerate() {
                // Most chunks have no row above the threshold; this test compiles to a few instructions.
                let above = sums.iter().zip(norms.chunks_exact(4)).fold(false, |above, (sum, bytes)| {
                    let norm = f32::from_bits(u32::from_le_bytes(bytes.try_into().expect("four bytes")));
                    above | (f32::from(*sum) * norm > threshold)
                });
                if !above {
                    continue;
                }
                for (offset, (sum, norm)) in sums.iter().zip(U32s(norms).iter()).enumerate() {
                    let score = f32::from(*sum) * f32::from_bits(norm);
                    let row = (base + chunk * 32 + offset) as u32;
                    if score > threshold && is_wanted.is_none_or(|is_wanted| is_wanted(row)) {
                        best.push((score, row));
                    }
                }
                if best.len() >= 2 * k {
                    threshold = keep_best(&mut best, k);
                }
            }
        }
        keep_best(&mut best, k);
        best.into_iter().map(|(_, row)| row).collect()
    }
}

/// Keeps the `k` largest, ties in row order, and returns the smallest score kept.
fn keep_best(best: &mut Vec<(f32, u32)>, k: usize) -> f32 {
    if best.len() <= k {
        return 0.0;
    }
    best.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    best.truncate(k);
    best[k - 1].0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(names: &[&str], query: &str) -> Vec<(String, f32)> {
        let index = GramIndex::build(names);
        let to_bytes = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let mut name_at = vec![0];
        for name in names {
            name_at.push(name_at[name_at.len() - 1] + name.len() as u32);
        }
        let (at, rows, norms, name_at) =
            (to_bytes(&index.at), to_bytes(&index.rows), to_bytes(&index.inverse_norms), to_bytes(&name_at));
        let text = names.concat();
        let view = GramIndexView {
            at: U32s(&at),
            rows: U32s(&rows),
            inverse_norms: U32s(&norms),
            names: Strings { at: U32s(&name_at), text: text.as_bytes() },
        };
        let hits = view.search(query, 10, &mut GramScratch::default());
        hits.into_iter().map(|hit| (names[hit.row as usize].to_owned(), hit.cosine)).collect()
    }

    #[test]
    fn the_same_name_has_cosine_one() {
        let hits = search(&["breast cancer", "lung cancer", "asthma"], "lung cancer");
        assert_eq!(hits[0].0, "lung cancer");
        assert!((hits[0].1 - 1.0).abs() < 1e-5);
        assert!(hits[1].0 == "breast cancer" && hits[1].1 < 0.8);
    }

    #[test]
    fn unknown_and_empty_queries_find_nothing() {
        assert!(search(&["asthma"], "").is_empty());
        assert!(search(&["asthma"], "😀").is_empty());
        assert!(search(&[], "asthma").is_empty());
    }
}
