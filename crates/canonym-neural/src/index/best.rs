//! The best rows of a search, and filters on rows.

use super::Hit;

/// Rows that share a word of a filter, and a block of codes.
pub(super) const BLOCK: usize = 16;

/// The `k` best rows so far, ties in row order.
///
/// Rows are collected beyond `k` and cut back from time to time, which is faster than keeping thousands of them sorted.
#[derive(Debug, Clone)]
pub(super) struct Best {
    k: usize,
    kept: Vec<(f32, u32)>,
    limit: f32,
}

fn order(left: &(f32, u32), right: &(f32, u32)) -> std::cmp::Ordering {
    right.0.total_cmp(&left.0).then(left.1.cmp(&right.1))
}

impl Best {
    /// Keeps up to `k` rows.
    pub fn new(k: usize) -> Best {
        Best { k, kept: Vec::new(), limit: if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY } }
    }

    /// The score below which no row is among the best.
    #[inline]
    pub fn limit(&self) -> f32 {
        self.limit
    }

    /// Adds a row if it may be among the best.
    #[inline]
    pub fn add(&mut self, row: u32, score: f32) {
        if score >= self.limit {
            self.kept.push((score, row));
            if self.kept.len() >= 4 * self.k + 64 {
                self.cut();
            }
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.k && self.k > 0 {
            self.kept.select_nth_unstable_by(self.k - 1, order);
            self.kept.truncate(self.k);
            self.limit = self.kept[self.k - 1].0;
        }
    }

    /// Adds the rows of another part.
    pub fn join(&mut self, other: &Best) {
        other.kept.iter().for_each(|(score, row)| self.add(*row, *score));
    }

    /// The best rows, in no order.
    pub fn rows(mut self) -> Vec<u32> {
        self.cut();
        self.kept.into_iter().map(|(_, row)| row).collect()
    }

    /// The best rows, best first.
    pub fn into_hits(mut self) -> Vec<Hit> {
        self.cut();
        self.kept.sort_unstable_by(order);
        self.kept.into_iter().map(|(score, row)| Hit { row, score }).collect()
    }
}

/// The rows that a search may find.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// A bit for each row of a block, the first row lowest.
    blocks: Vec<u16>,
}

impl RowFilter {
    /// The rows of `0..n_rows` for which `is_wanted` holds.
    pub fn new(n_rows: usize, is_wanted: impl Fn(u32) -> bool) -> RowFilter {
        let mut blocks = vec![0; n_rows.div_ceil(BLOCK)];
        for row in (0..n_rows as u32).filter(|row| is_wanted(*row)) {
            blocks[row as usize / BLOCK] |= 1 << (row as usize % BLOCK);
        }
        RowFilter { blocks }
    }

    /// Number of rows that pass.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.count_ones() as usize).sum()
    }

    /// Whether no row passes.
    pub fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| *block == 0)
    }

    /// Whether a row passes.
    #[inline]
    pub fn has(&self, row: u32) -> bool {
        self.blocks.get(row as usize / BLOCK).is_some_and(|block| block >> (row as usize % BLOCK) & 1 == 1)
    }

    /// The bits of a block.
    #[inline]
    pub(super) fn block(&self, block: usize) -> u16 {
        self.blocks.get(block).copied().unwrap_or_default()
    }

    /// The rows that pass, ascending.
    pub(super) fn rows(&self) -> impl Iterator<Item = u32> {
        self.rows_in(0..self.blocks.len() * BLOCK)
    }

    /// The rows of a range that pass, ascending. The range starts with a block.
    pub(super) fn rows_in(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = u32> {
        let first = range.start / BLOCK;
        let blocks = self.blocks.get(first..range.end.div_ceil(BLOCK)).unwrap_or_default();
        let of_block = |(block, bits): (usize, &u16)| {
            let (bits, first) = (*bits, (block * BLOCK) as u32);
            (0..BLOCK as u32).filter(move |at| bits >> at & 1 == 1).map(move |at| first + at)
        };
        (first..).zip(blocks).flat_map(of_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::random::SplitMix64;

    #[test]
    fn the_best_rows_are_those_of_a_sort_however_they_are_divided() {
        let mut rng = SplitMix64::new(4);
        // Few distinct scores, so that there are ties.
        let scores: Vec<f32> = (0..2000).map(|_| (rng.next_u64() % 40) as f32).collect();
        let mut sorted: Vec<(f32, u32)> = scores.iter().copied().zip(0..).collect();
        sorted.sort_by(order);
        for k in [0, 1, 7, 300, 3000] {
            let mut parts = [Best::new(k), Best::new(k), Best::new(k)];
            scores.iter().zip(0..).for_each(|(score, row)| parts[row as usize % 3].add(row, *score));
            let mut best = Best::new(k);
            parts.iter().for_each(|part| best.join(part));
            let found: Vec<(f32, u32)> = best.into_hits().into_iter().map(|hit| (hit.score, hit.row)).collect();
            assert_eq!(found, sorted[..k.min(2000)]);
        }
    }

    #[test]
    fn filters_hold_their_rows() {
        let filter = RowFilter::new(53, |row| row % 5 == 2);
        assert_eq!(filter.rows().collect::<Vec<_>>(), (0..53).filter(|row| row % 5 == 2).collect::<Vec<_>>());
        assert_eq!(filter.rows_in(16..48).collect::<Vec<_>>(), (16..48).filter(|row| row % 5 == 2).collect::<Vec<_>>());
        assert_eq!(filter.rows_in(64..80).count(), 0);
        assert!(filter.len() == 11 && filter.has(52) && !filter.has(53) && !filter.has(57));
        assert!(RowFilter::new(9, |_| false).is_empty() && !filter.is_empty());
    }
}
