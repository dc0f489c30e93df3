//! Where the sequences of a packed batch begin and end.

use std::ops::Range;

/// The borders of sequences that stand one below the other in the rows of a matrix. Sequences are never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segments {
    // Private: starts with 0 and grows strictly.
    borders: Vec<usize>,
}

impl Default for Segments {
    fn default() -> Segments {
        Segments { borders: vec![0] }
    }
}

impl Segments {
    /// Sequences of these lengths; a length of 0 counts as 1.
    pub fn of_lengths(lengths: impl IntoIterator<Item = usize>) -> Segments {
        let mut segments = Segments::default();
        for length in lengths {
            segments.push(length);
        }
        segments
    }

    /// Adds a sequence behind the others; a length of 0 counts as 1.
    pub fn push(&mut self, length: usize) {
        self.borders.push(self.n_rows() + length.max(1));
    }

    /// The number of sequences.
    pub fn len(&self) -> usize {
        self.borders.len() - 1
    }

    /// Whether there is no sequence.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows of all sequences together.
    pub fn n_rows(&self) -> usize {
        self.borders[self.borders.len() - 1]
    }

    /// The rows of one sequence.
    pub fn rows(&self, segment: usize) -> Range<usize> {
        self.borders[segment]..self.borders[segment + 1]
    }

    /// The rows of each sequence, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<usize>> + '_ {
        self.borders.windows(2).map(|pair| pair[0]..pair[1])
    }
}
