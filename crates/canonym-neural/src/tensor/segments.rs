//! Boundaries of the sequences in a packed batch.

use std::ops::Range;

/// Row ranges of sequences that are concatenated in the rows of a matrix. Sequences are never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segments {
    // Private: starts with 0 and is strictly increasing.
    borders: Vec<usize>,
}

impl Default for Segments {
    fn default() -> Segments {
        Segments { borders: vec![0] }
    }
}

impl Segments {
    /// Sequences of the given lengths; a length of 0 counts as 1.
    pub fn of_lengths(lengths: impl IntoIterator<Item = usize>) -> Segments {
        let mut segments = Segments::default();
        for length in lengths {
            segments.push(length);
        }
        segments
    }

    /// Appends a sequence; a length of 0 counts as 1.
    pub fn push(&mut self, length: usize) {
        self.borders.push(self.n_rows() + length.max(1));
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.borders.len() - 1
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Total number of rows.
    pub fn n_rows(&self) -> usize {
        self.borders[self.borders.len() - 1]
    }

    /// Rows of a sequence.
    pub fn rows(&self, segment: usize) -> Range<usize> {
        self.borders[segment]..self.borders[segment + 1]
    }

    /// Rows of each sequence, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        self.borders.windows(2).map(|pair| pair[0]..pair[1])
    }
}
