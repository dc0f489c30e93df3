//! Name similarity by character n-grams: cosine of TF-IDF vectors over 1- to 3-grams within words.
//!
//! Grams are taken from words of a folded name, padded with a space on both sides; letters and digits have their own
//! codes, other characters share codes. Term frequency is binary. The weight is the smoothed inverse document
//! frequency, `1 + ln((1 + n) / (1 + df))`.
//!
//! A search reads the posting lists of the rarest grams, up to the share [`MASS`] of the squared query norm, keeps the
//! rows with the highest partial sums, and computes their cosines exactly. In large indexes it stops earlier, once it has
//! read as many postings as [`budget`] allows, and then keeps more rows.
//!
//! A posting list holds the differences of consecutive rows, in bytes of seven bits with the lowest first. Large indexes
//! have no lists of grams that are in more than one of [`DENSE`] names, which searches hardly ever reach.

use std::ops::Range;

use super::forms::Forms;
use super::packed::U32s;

mod build;
mod postings;

pub use build::{GramIndex, GramWeights, Part};
pub use postings::Lists;
pub(in crate::index) use postings::Postings;
use postings::{next_of_gaps, next_of_rows};

/// Number of gram codes.
pub const N_GRAMS: usize = 1 << 18;

/// Share of the squared norm of a query whose posting lists are read.
pub const MASS: f32 = 0.7;

/// Like [`MASS`], once the budget of postings is exhausted. In searches by words, the share that these have to cover.
pub const MIN_MASS: f32 = 0.4;

/// Postings after which no further list is read, provided the n-grams read have [`MIN_MASS`].
///
/// `benches/scale` measures the recall of the 20 nearest with this budget, which takes a third of the postings of a search up to
/// [`MASS`].
pub fn budget(n_rows: usize) -> usize {
    (n_rows / 40).max(200_000)
}

/// Rows compared exactly for each of the `k` that are wanted, if the budget was exhausted.
const WIDE: usize = 20;

/// Maximum number of bytes of a query; the rest is ignored.
const MAX_QUERY: usize = 400;

/// Rows per block, so that the sums of a block fit in the cache.
const BLOCK: usize = 1 << 15;

/// In indexes of more than [`LARGE`] names, grams in more than one of this many names have no posting list.
pub const DENSE: usize = 8;

/// See [`DENSE`].
pub const LARGE: usize = 1 << 17;

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

/// A view of an index in a mapped file.
#[derive(Debug, Clone, Copy)]
pub struct GramIndexView<'a> {
    /// The posting lists.
    pub lists: Lists<'a>,
    /// See [`GramIndex::inverse_norms`].
    pub inverse_norms: U32s<'a>,
    /// See [`norm_bounds`]; empty for small indexes.
    pub norm_bounds: &'a [u8],
    /// The indexed names.
    pub names: Forms<'a>,
    /// Number of names from which document frequencies were counted: that of `names`, or, if these are words, of the names with them.
    pub n_counted: usize,
}

/// A row with its cosine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GramHit {
    /// Row of the name.
    pub row: u32,
    /// Cosine of the TF-IDF vectors, 0 to 1.
    pub cosine: f32,
}

/// A gram of a query.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeighedGram {
    pub gram: u32,
    pub weight: f32,
    /// Number of names that contain it.
    df: u32,
}

/// The grams of a query that words cover.
#[derive(Debug)]
pub(super) struct Coverage {
    /// The other grams, ascending, with their squared weights.
    open: Vec<(u32, f32)>,
    /// Squared norm of those that are covered.
    pub mass: f32,
}

impl Coverage {
    /// Nothing is covered.
    pub fn new(weighed: &[WeighedGram]) -> Coverage {
        Coverage { open: weighed.iter().map(|gram| (gram.gram, gram.weight * gram.weight)).collect(), mass: 0.0 }
    }

    /// Adds a word.
    pub fn add(&mut self, word: &[u8]) {
        for_each_gram(word, |gram| {
            if let Ok(at) = self.open.binary_search_by_key(&gram, |(gram, _)| *gram) {
                self.mass += std::mem::take(&mut self.open[at].1);
            }
        });
    }
}

/// Buffers of a thread, reused between queries.
#[derive(Debug)]
pub struct GramScratch {
    pub(super) sums: Sums,
    pub(super) grams: Vec<u32>,
    /// For each gram its index in `weighed`, from 1; 0 if not in the query.
    slots: Vec<u16>,
    /// Weight of each gram of the query, and the last row that contained it.
    weighed: Vec<(f32, u32)>,
    /// A name.
    name: Vec<u8>,
    /// For each word of names the squared norm that it shares with the query; all zero between queries.
    pub(super) shared: Vec<u16>,
}

/// Sums of the rows of a block.
#[derive(Debug)]
pub(super) struct Sums {
    /// All zero between blocks.
    values: Vec<u16>,
    /// The rows with a sum, from the start of the block. Twice the size of a block, so that there is a place after a full block.
    touched: Vec<u16>,
    n_touched: usize,
}

impl Default for GramScratch {
    fn default() -> Self {
        let sums = Sums { values: vec![0; BLOCK], touched: vec![0; 2 * BLOCK], n_touched: 0 };
        GramScratch {
            sums,
            grams: Vec::new(),
            slots: vec![0; N_GRAMS],
            weighed: Vec::new(),
            name: Vec::new(),
            shared: Vec::new(),
        }
    }
}

/// Upper bounds of inverse norms, 16 to the octave in a byte each. A search of a large index reads them for nearly all names, and the
/// norms themselves, which do not fit in the cache, for the few names that can be among the best.
pub fn norm_bounds(inverse_norms: U32s<'_>) -> Box<[u8]> {
    let code = |row| (inverse_norms.get(row) >> BOUND_SHIFT).saturating_sub(FIRST_BOUND).min(255) as u8;
    (0..inverse_norms.len()).map(code).collect()
}

/// The bound for a byte of [`norm_bounds`].
pub(super) fn upper_bound(code: u8) -> f32 {
    f32::from_bits((u32::from(code) + FIRST_BOUND + 1) << BOUND_SHIFT)
}

/// Bits of a mantissa that bounds do not have.
const BOUND_SHIFT: u32 = 19;

/// 2^-12 in the bits of a bound. Inverse norms are at most 1, as every weight is at least 1.
const FIRST_BOUND: u32 = (127 - 12) << 4;

pub(super) fn clip(folded: &str) -> &str {
    let mut end = folded.len().min(MAX_QUERY);
    while !folded.is_char_boundary(end) {
        end -= 1;
    }
    &folded[..end]
}

pub(super) struct List<'a> {
    rest: Postings<'a>,
    /// The last row that was read.
    row: u32,
    weight: u16,
}

impl<'a> List<'a> {
    /// A list of which the first row is read. The weight is at least 1: a row without a sum counts as not yet touched.
    pub fn new(mut rest: Postings<'a>, weight: u16) -> List<'a> {
        let first = match &mut rest {
            Postings::Gaps(rest) => next_of_gaps(rest, u32::MAX),
            Postings::Rows(rest) => next_of_rows(rest, u32::MAX),
        };
        List { rest, row: first.unwrap_or(u32::MAX), weight: weight.max(1) }
    }

    /// Adds the weight to the sums of all rows of the block `base..end`, and stands on the first row after it.
    fn add_to(&mut self, base: usize, end: usize, sums: &mut Sums) {
        match &mut self.rest {
            Postings::Gaps(rest) => add_rows(rest, next_of_gaps, &mut self.row, self.weight, base..end, sums),
            Postings::Rows(rest) => add_rows(rest, next_of_rows, &mut self.row, self.weight, base..end, sums),
        }
    }
}

#[inline(always)]
fn add_rows(
    rest: &mut &[u8],
    next: impl Fn(&mut &[u8], u32) -> Option<u32>,
    row: &mut u32,
    weight: u16,
    block: Range<usize>,
    sums: &mut Sums,
) {
    let (values, n_touched) = (&mut sums.values[..block.len()], &mut sums.n_touched);
    let touched: &mut [u16; 2 * BLOCK] = (&mut sums.touched[..]).try_into().expect("a slot for each row");
    while (*row as usize) < block.end {
        // A damaged list could point before the block, or repeat a row: the sum saturates, so that a row is touched once.
        if let Some(sum) = values.get_mut((*row as usize).wrapping_sub(block.start)) {
            // Without branches, which would be mispredicted.
            touched[*n_touched % (2 * BLOCK)] = (*row as usize - block.start) as u16;
            *n_touched += usize::from(*sum == 0);
            *sum = sum.saturating_add(weight);
        }
        *row = next(rest, *row).unwrap_or(u32::MAX);
    }
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
        let (mut weighed, square) = self.weighed(folded, &mut scratch.grams);
        let n_rows = self.names.len();
        let k = k.min(n_rows);
        if square <= 0.0 || k == 0 {
            return Vec::new();
        }
        // Rare grams first.
        weighed.sort_unstable_by(|a, b| b.weight.total_cmp(&a.weight).then(a.gram.cmp(&b.gram)));
        let scale = 60_000.0 / square.max(1e-6);
        let mut lists = Vec::new();
        let (mut mass, mut n_read, mut wide) = (0.0, 0, 2 * k + 32);
        for WeighedGram { gram, weight, df } in weighed {
            if mass >= MASS * square {
                break;
            }
            if mass >= MIN_MASS * square && n_read + df as usize >= budget(n_rows) {
                wide = WIDE * k;
                break;
            }
            n_read += df as usize;
            mass += weight * weight;
            let rest = self.lists.list(gram);
            if !rest.is_empty() {
                lists.push(List::new(rest, (weight * weight * scale) as u16));
            }
        }
        let rows = self.best_sums(&mut lists, wide, is_wanted, &mut scratch.sums);
        self.ranked(folded, rows, k, scratch)
    }

    /// The `k` of `rows` most similar to `folded`, best first.
    pub(super) fn ranked(&self, folded: &str, rows: Vec<u32>, k: usize, scratch: &mut GramScratch) -> Vec<GramHit> {
        let cosines = self.cosines(folded, &rows, scratch);
        let hits = rows.into_iter().zip(cosines).map(|(row, cosine)| GramHit { row, cosine });
        let mut hits: Vec<GramHit> = hits.collect();
        hits.sort_unstable_by(|a, b| b.cosine.total_cmp(&a.cosine).then(a.row.cmp(&b.row)));
        hits.truncate(k);
        hits
    }

    /// The grams of `folded` that a name has, ascending, and its squared norm without the others.
    pub(super) fn weighed(&self, folded: &str, grams: &mut Vec<u32>) -> (Vec<WeighedGram>, f32) {
        distinct_grams(clip(folded), grams);
        let weigh = |gram: &u32| {
            let df = self.lists.df(*gram);
            (df > 0).then(|| WeighedGram { gram: *gram, weight: idf(self.n_counted, df), df })
        };
        let weighed: Vec<WeighedGram> = grams.iter().filter_map(weigh).collect();
        let square = weighed.iter().map(|gram| gram.weight * gram.weight).sum();
        (weighed, square)
    }

    /// Cosine of `folded` and each of `rows`.
    pub fn cosines(&self, folded: &str, rows: &[u32], scratch: &mut GramScratch) -> Vec<f32> {
        let GramScratch { grams, slots, weighed, name, .. } = scratch;
        distinct_grams(clip(folded), grams);
        weighed.clear();
        for gram in grams.iter() {
            weighed.push((idf(self.n_counted, self.lists.df(*gram)).powi(2), u32::MAX));
            slots[*gram as usize] = weighed.len() as u16;
        }
        let norm = weighed.iter().map(|(square, _)| square).sum::<f32>().sqrt().max(1e-6);
        let of_row = |(turn, row): (usize, &u32)| {
            // Squared norm of the common grams.
            let mut sum = 0.0f32;
            for_each_gram(self.names.bytes(*row as usize, name), |gram| {
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
        let cosines = rows.iter().enumerate().map(of_row).collect();
        for gram in grams.iter() {
            slots[*gram as usize] = 0;
        }
        cosines
    }

    /// The rows with the `k` largest sums over the lists, each multiplied by the inverse norm of the row.
    pub(super) fn best_sums(
        &self,
        lists: &mut [List<'_>],
        k: usize,
        is_wanted: Option<&dyn Fn(u32) -> bool>,
        sums: &mut Sums,
    ) -> Vec<u32> {
        let (n_rows, bounds) = (self.names.len(), self.norm_bounds);
        let k = k.min(n_rows);
        let mut best: Vec<(f32, u32)> = Vec::with_capacity(4 * k);
        let mut threshold = 0.0f32;
        let mut base = 0;
        // Blocks without postings are skipped.
        while let Some(first) = lists.iter().map(|list| list.row as usize).min().filter(|first| *first < n_rows) {
            base = (first / BLOCK * BLOCK).max(base);
            let end = (base + BLOCK).min(n_rows);
            lists.iter_mut().for_each(|list| list.add_to(base, end, sums));
            for at in &sums.touched[..std::mem::take(&mut sums.n_touched)] {
                let (row, sum) = (base + *at as usize, std::mem::take(&mut sums.values[*at as usize]));
                if bounds.get(row).is_some_and(|code| f32::from(sum) * upper_bound(*code) < threshold) {
                    continue;
                }
                let score = f32::from(sum) * f32::from_bits(self.inverse_norms.get(row));
                // Not `>`: of rows with the same score the first are kept, and they may be touched late.
                if score >= threshold && is_wanted.is_none_or(|is_wanted| is_wanted(row as u32)) {
                    best.push((score, row as u32));
                    if best.len() >= 4 * k {
                        threshold = keep_best(&mut best, k);
                    }
                }
            }
            base = end;
        }
        keep_best(&mut best, k);
        best.into_iter().map(|(_, row)| row).collect()
    }
}

/// Keeps the `k` largest, ties in row order, and returns the smallest score kept.
pub(super) fn keep_best(best: &mut Vec<(f32, u32)>, k: usize) -> f32 {
    if best.len() <= k {
        return 0.0;
    }
    best.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    best.truncate(k);
    best[k - 1].0
}

#[cfg(test)]
mod tests {
    use super::super::packed::{Lengths, Offsets, Strings, U64s};
    use super::*;

    /// The best rows of the first block, by sums over posting lists of gaps.
    fn best_of_block(lists: &[&[u8]], weight: u16, k: usize, sums: &mut Sums) -> Vec<u32> {
        let norms: Vec<u8> = (0..BLOCK).flat_map(|_| 1.0f32.to_bits().to_le_bytes()).collect();
        let name_at = Lengths::encode(std::iter::repeat_n(0, BLOCK));
        let view = GramIndexView {
            lists: Lists::Gaps { codes: U32s(&[]), df: U32s(&[]), at: U64s(&[]), gaps: &[] },
            inverse_norms: U32s(&norms),
            norm_bounds: &[],
            names: Forms::Whole(Strings { at: Offsets::Lengths(Lengths::new(&name_at, BLOCK)), text: &[] }),
            n_counted: BLOCK,
        };
        let mut lists: Vec<List<'_>> = lists.iter().map(|list| List::new(Postings::Gaps(list), weight)).collect();
        let best = view.best_sums(&mut lists, k, None, sums);
        assert!(sums.values.iter().all(|sum| *sum == 0), "no sum is left for the next search");
        best
    }

    #[test]
    fn rows_are_touched_once_whatever_the_lists_say() {
        let GramScratch { mut sums, .. } = GramScratch::default();
        let all = vec![0; BLOCK];
        // The gap 2^32 - 1 repeats a row.
        let repeating = [&all[..], &[255, 255, 255, 255, 15].repeat(5)].concat();
        assert_eq!(best_of_block(&[&repeating], 1 << 15, 2, &mut sums), [BLOCK as u32 - 1, 0]);
        // Every row of a block is in two lists, which is no damage.
        let mut best = best_of_block(&[&all, &all], 1, BLOCK, &mut sums);
        best.sort_unstable();
        assert_eq!(best, (0..BLOCK as u32).collect::<Vec<_>>());
    }

    fn search(names: &[&str], query: &str) -> Vec<(String, f32)> {
        let index = GramIndex::build(names);
        let to_bytes = |values: &[u32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let mut name_at = vec![0];
        for name in names {
            name_at.push(name_at[name_at.len() - 1] + name.len() as u32);
        }
        let (codes, df, norms) = (to_bytes(&index.codes), to_bytes(&index.df), to_bytes(&index.inverse_norms));
        let at: Vec<u8> = index.at.iter().flat_map(|value| value.to_le_bytes()).collect();
        let bounds = norm_bounds(U32s(&norms));
        let (gaps, name_at, text) = (index.gaps().collect::<Vec<_>>().concat(), to_bytes(&name_at), names.concat());
        let view = GramIndexView {
            lists: Lists::Gaps { codes: U32s(&codes), df: U32s(&df), at: U64s(&at), gaps: &gaps },
            inverse_norms: U32s(&norms),
            norm_bounds: &bounds,
            names: Forms::Whole(Strings { at: Offsets::Plain(U32s(&name_at)), text: text.as_bytes() }),
            n_counted: names.len(),
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
    fn bounds_are_close_above_the_norms() {
        let norms: Vec<u8> = (1..=4000).flat_map(|n| (1.0 / n as f32).to_bits().to_le_bytes()).collect();
        for (row, code) in norm_bounds(U32s(&norms)).iter().enumerate() {
            let (norm, bound) = (1.0 / (row + 1) as f32, upper_bound(*code));
            assert!(norm <= bound && bound <= norm * 1.07, "{norm} {bound}");
        }
    }

    #[test]
    fn unknown_and_empty_queries_find_nothing() {
        assert!(search(&["asthma"], "").is_empty());
        assert!(search(&["asthma"], "😀").is_empty());
        assert!(search(&[], "asthma").is_empty());
    }
}
