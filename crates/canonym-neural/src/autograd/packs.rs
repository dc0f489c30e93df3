//! Weights packed for the tile units, once for all products of a step.

use std::sync::{Mutex, OnceLock};

use crate::tensor::matrix::View;
use crate::tensor::tiles::{Packed, Room};

/// How a product reads a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// As it is.
    Forward,
    /// Transposed.
    Backward,
}

/// Packed weights of the same parameters, each packed when it is first needed. Tapes of the parts of one batch share them.
#[derive(Debug, Default)]
pub struct Packs {
    each: Vec<[Slot; 2]>,
}

#[derive(Debug, Default)]
struct Slot {
    packed: OnceLock<Packed>,
    /// What the weights of the step before were packed into.
    room: Mutex<Room>,
}

impl Packs {
    /// Of that many parameters, none of which is packed yet.
    pub fn new(n_parameters: usize) -> Packs {
        Packs { each: (0..n_parameters).map(|_| Default::default()).collect() }
    }

    /// Forgets all weights, because they change, but keeps the room that they took.
    pub fn clear(&mut self) {
        for slot in self.each.iter_mut().flatten() {
            if let Some(packed) = slot.packed.take() {
                slot.room = Mutex::new(packed.into_room());
            }
        }
    }

    /// The packed parameter of a row; `right` is what it is packed from, the same at each call until they are cleared.
    pub(super) fn of(&self, row: usize, side: Side, right: View<'_>) -> &Packed {
        let Slot { packed, room } = &self.each[row][side as usize];
        packed.get_or_init(|| {
            let room = room.lock().map(|mut room| std::mem::take(&mut *room)).unwrap_or_default();
            Packed::in_room(right, room)
        })
    }
}
