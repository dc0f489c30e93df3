//! Posting lists as they lie in a file, and reading them.

use super::super::forms::take;
use super::super::packed::{U32s, U64s};

/// The posting lists of an index.
#[derive(Debug, Clone, Copy)]
pub enum Lists<'a> {
    /// As [`super::GramIndex`] has them.
    Gaps {
        /// See [`super::GramIndex::codes`].
        codes: U32s<'a>,
        /// See [`super::GramIndex::df`].
        df: U32s<'a>,
        /// See [`super::GramIndex::at`].
        at: U64s<'a>,
        /// See [`super::GramIndex::gaps`].
        gaps: &'a [u8],
    },
    /// Rows of 32 bits, as in files of earlier versions.
    Rows {
        /// Offsets into `rows`, `[N_GRAMS + 1]`.
        at: U32s<'a>,
        /// Rows that contain each gram, ascending.
        rows: U32s<'a>,
    },
}

impl<'a> Lists<'a> {
    /// The number of names that contain a gram.
    pub(in crate::index) fn df(self, gram: u32) -> u32 {
        match self {
            Lists::Gaps { codes, df, .. } => codes.find(gram).map_or(0, |slot| df.get(slot)),
            Lists::Rows { at, .. } => at.range(gram as usize).len() as u32,
        }
    }

    /// The posting list of a gram.
    pub(in crate::index) fn list(self, gram: u32) -> Postings<'a> {
        match self {
            Lists::Gaps { codes, at, gaps, .. } => {
                let range = codes.find(gram).map(|slot| at.get(slot) as usize..at.get(slot + 1) as usize);
                Postings::Gaps(range.and_then(|range| gaps.get(range)).unwrap_or_default())
            }
            Lists::Rows { at, rows } => Postings::Rows(rows.slice(at.range(gram as usize)).0),
        }
    }
}

/// The rest of a posting list.
#[derive(Debug, Clone, Copy)]
pub(in crate::index) enum Postings<'a> {
    Gaps(&'a [u8]),
    Rows(&'a [u8]),
}

impl Postings<'_> {
    pub(in crate::index) fn n_bytes(self) -> usize {
        match self {
            Postings::Gaps(bytes) | Postings::Rows(bytes) => bytes.len(),
        }
    }

    /// Calls `take` with every row.
    #[inline]
    pub(in crate::index) fn for_each(self, mut take: impl FnMut(u32)) {
        let mut row = u32::MAX;
        match self {
            Postings::Gaps(mut rest) => {
                while let Some(next) = next_of_gaps(&mut rest, row) {
                    take(next);
                    row = next;
                }
            }
            Postings::Rows(mut rest) => {
                while let Some(next) = next_of_rows(&mut rest, row) {
                    take(next);
                    row = next;
                }
            }
        }
    }

    pub(super) fn is_empty(self) -> bool {
        match self {
            Postings::Gaps(bytes) | Postings::Rows(bytes) => bytes.is_empty(),
        }
    }
}

/// Row after `previous`; `None` at the end. A damaged list ends early.
#[inline(always)]
pub(super) fn next_of_gaps(gaps: &mut &[u8], previous: u32) -> Option<u32> {
    let gap = take(gaps)?;
    Some(previous.wrapping_add(gap).wrapping_add(1))
}

#[inline(always)]
pub(super) fn next_of_rows(rows: &mut &[u8], _: u32) -> Option<u32> {
    let (bytes, rest) = rows.split_first_chunk::<4>()?;
    *rows = rest;
    Some(u32::from_le_bytes(*bytes))
}
