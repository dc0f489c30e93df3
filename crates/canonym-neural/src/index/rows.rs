//! The rows of an index: in the memory of this process, or in a mapped file that all processes share.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use canonym_core::Result;
use canonym_core::artifact::Container;
use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::tensor::matrix::{Matrix, View};

/// Rows of vectors.
#[derive(Debug, Clone)]
pub enum Rows {
    /// Rows of this process.
    Owned(Matrix),
    /// Rows of a file.
    Shared(SharedRows),
}

impl Rows {
    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        match self {
            Rows::Owned(rows) => rows.n_rows,
            Rows::Shared(rows) => rows.n_rows,
        }
    }

    /// The number of values of a row.
    pub fn n_cols(&self) -> usize {
        match self {
            Rows::Owned(rows) => rows.n_cols,
            Rows::Shared(rows) => rows.n_cols,
        }
    }

    /// Fails if they are in a file that has changed since it was opened.
    ///
    /// # Errors
    /// That of [`Container::check_unchanged`].
    pub fn check_unchanged(&self) -> Result<()> {
        match self {
            Rows::Owned(_) => Ok(()),
            Rows::Shared(rows) => rows.container.check_unchanged(),
        }
    }

    /// One row.
    pub fn row(&self, row: usize) -> Cow<'_, [f32]> {
        match self {
            Rows::Owned(rows) => Cow::Borrowed(rows.row(row)),
            Rows::Shared(rows) => {
                let mut values = Vec::new();
                rows.expand(row..row + 1, &mut values);
                Cow::Owned(values)
            }
        }
    }

    /// Consecutive rows; `expanded` holds them if they are those of a file.
    pub fn block<'a>(&'a self, rows: Range<usize>, expanded: &'a mut Vec<f32>) -> View<'a> {
        match self {
            Rows::Owned(all) => all.view().rows(rows.start, rows.len()),
            Rows::Shared(all) => {
                all.expand(rows.clone(), expanded);
                View::of(expanded, rows.len(), all.n_cols)
            }
        }
    }
}

/// Rows of 16 bits in a mapped file, expanded to 32 bits whenever they are read.
#[derive(Debug, Clone)]
pub struct SharedRows {
    container: Arc<Container>,
    // Private: the section has `2 * n_rows * n_cols` bytes.
    section: Range<usize>,
    n_rows: usize,
    n_cols: usize,
}

impl SharedRows {
    /// The rows in a section of a file; `None` if the section has another size.
    pub fn new(container: Container, section: Range<usize>, (n_rows, n_cols): (usize, usize)) -> Option<SharedRows> {
        let is_whole = section.len() == 2 * n_rows * n_cols;
        is_whole.then(|| SharedRows { container: Arc::new(container), section, n_rows, n_cols })
    }

    fn expand(&self, rows: Range<usize>, to: &mut Vec<f32>) {
        let width = 2 * self.n_cols;
        let bytes = &self.container.bytes()[self.section.clone()][rows.start * width..rows.end * width];
        let halves: Vec<f16> = bytes.as_chunks::<2>().0.iter().map(|bytes| f16::from_le_bytes(*bytes)).collect();
        to.resize(halves.len(), 0.0);
        halves.convert_to_f32_slice(to);
    }
}
