//! Weights packed for bfloat16 units, once per training step.

use std::sync::{Mutex, OnceLock};

use crate::tensor::matrix::View;
use crate::tensor::tiles::{Packed, Workspace};

/// How a product reads a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// As stored.
    Forward,
    /// Transposed.
    Backward,
}

/// Lazily packed weights. Tapes over the parts of one batch share them.
#[derive(Debug, Default)]
pub struct Packs {
    each: Vec<[Slot; 2]>,
}

#[derive(Debug, Default)]
struct Slot {
    packed: OnceLock<Packed>,
    /// Memory of the previous packing, for reuse.
    workspace: Mutex<Workspace>,
}

impl Packs {
    /// Empty packs for `n_parameters` parameters.
    pub fn new(n_parameters: usize) -> Packs {
        Packs { each: (0..n_parameters).map(|_| Default::default()).collect() }
    }

    /// Discards all packed weights after an update, but keeps their memory.
    pub fn clear(&mut self) {
        for slot in self.each.iter_mut().flatten() {
            if let Some(packed) = slot.packed.take() {
                slot.workspace = Mutex::new(packed.into_workspace());
            }
        }
    }

    /// The packed weight of a parameter row. `right` is the weight itself; it must not change until [`Packs::clear`].
    pub(super) fn of(&self, row: usize, side: Side, right: View<'_>) -> &Packed {
        let Slot { packed, workspace } = &self.each[row][side as usize];
        packed.get_or_init(|| {
            let workspace = workspace.lock().map(|mut workspace| std::mem::take(&mut *workspace)).unwrap_or_default();
            Packed::in_workspace(right, workspace)
        })
    }
}
