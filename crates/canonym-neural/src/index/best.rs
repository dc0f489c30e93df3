//! The best rows of a search, and filters on rows.

use std::ops::Range;

use super::Hit;

/// The best positions so far with their scores, best first; ties in the order of positions.
#[derive(Debug, Clone)]
pub(super) struct Best {
    k: usize,
    kept: Vec<(f32, u32)>,
    limit: f32,
}

impl Best {
    /// Keeps up to `k` positions.
    pub fn new(k: usize) -> Best {
        let limit = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        Best { k, kept: Vec::with_capacity(k + 1), limit }
    }

    /// The score below which no position is kept.
    pub fn limit(&self) -> f32 {
        self.limit
    }

    /// Adds a position if it is among the best.
    #[inline]
    pub fn add(&mut self, position: u32, score: f32) {
        if score >= self.limit {
            self.insert(position, score);
        }
    }

    fn insert(&mut self, position: u32, score: f32) {
        let is_before = |other: &(f32, u32)| other.0 > score || other.0 == score && other.1 < position;
        let place = self.kept.partition_point(is_before);
        if place == self.k || self.kept.get(place) == Some(&(score, position)) {
            return;
        }
        self.kept.insert(place, (score, position));
        self.kept.truncate(self.k);
        if self.kept.len() == self.k {
            self.limit = self.kept[self.k - 1].0;
        }
    }

    /// Adds the positions of another part, which may repeat.
    pub fn join(&mut self, other: Best) {
        other.kept.into_iter().for_each(|(score, position)| self.add(position, score));
    }

    /// The positions with their scores.
    pub fn into_vec(self) -> Vec<(f32, u32)> {
        self.kept
    }

    /// The positions as rows.
    pub fn into_hits(self) -> Vec<Hit> {
        self.kept.into_iter().map(|(score, row)| Hit { row, score }).collect()
    }
}

/// The rows of one index that a search may find, by their positions in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowFilter {
    /// First position of each part, `[parts + 1]`; an index without parts has none.
    at: Vec<u32>,
    /// Ascending.
    positions: Vec<u32>,
}

impl RowFilter {
    /// The rows of an index without parts that pass.
    pub(super) fn of_rows(n_rows: usize, is_wanted: impl Fn(u32) -> bool) -> RowFilter {
        RowFilter { at: Vec::new(), positions: (0..n_rows as u32).filter(|row| is_wanted(*row)).collect() }
    }

    /// The positions that pass in each of consecutive parts.
    pub(super) fn of_parts(
        parts: impl Iterator<Item = Range<usize>>,
        is_wanted: impl Fn(u32) -> bool,
    ) -> RowFilter {
        let mut filter = RowFilter { at: vec![0], positions: Vec::new() };
        for part in parts {
            filter.positions.extend((part.start as u32..part.end as u32).filter(|position| is_wanted(*position)));
            filter.at.push(filter.positions.len() as u32);
        }
        filter
    }

    /// Number of rows that pass.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether no row passes.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// The positions in a part.
    pub(super) fn of_part(&self, part: usize) -> &[u32] {
        match (self.at.get(part), self.at.get(part + 1)) {
            (Some(start), Some(end)) => &self.positions[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// The positions in a range.
    pub(super) fn between(&self, range: &Range<usize>) -> &[u32] {
        let place = |end: usize| self.positions.partition_point(|position| (*position as usize) < end);
        &self.positions[place(range.start)..place(range.end)]
    }
}
