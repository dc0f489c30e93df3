//! What each document of an adaptation is for: figures, tuning or training.

use std::path::Path;

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::learned::Role::Trained;
use sha2::{Digest, Sha256};

use super::super::learned::of_documents;
use super::{Experiment, read};
use crate::bundle::NameEncoderBundle;

/// The completely annotated documents of an experiment.
pub(super) struct Split {
    /// Those of the figures.
    pub held_out: Vec<AnnotatedDocument>,
    /// Those that tune the linker.
    pub tune: Vec<AnnotatedDocument>,
    /// Those that are trained on.
    pub documents: Vec<AnnotatedDocument>,
}

/// What a completely annotated document is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Figures.
    HeldOut,
    /// Decides about the linker.
    Tune,
    /// Training.
    Train,
}

/// Fewest mentions of the documents that tune the linker.
const MIN_TUNING_MENTIONS: usize = 30;

/// Splits documents into held-out ones, those that tune, and the rest; see [`held_out`].
pub(super) fn split(experiment: &Experiment, base: &NameEncoderBundle, root: &Path) -> canonym_core::Result<Split> {
    let documents = read(&experiment.documents, root)?;
    let mut uses = uses(experiment, base, &documents).into_iter();
    let mut split = Split { held_out: Vec::new(), tune: Vec::new(), documents: Vec::new() };
    for document in documents {
        match uses.next() {
            Some(Use::HeldOut) => split.held_out.push(document),
            Some(Use::Tune) => split.tune.push(document),
            Some(Use::Train) | None => split.documents.push(document),
        }
    }
    split.held_out.extend(read(&experiment.held_out, root)?);
    Ok(split)
}

/// What each document is for. Documents that the base model was trained on cannot tune.
pub(super) fn uses(experiment: &Experiment, base: &NameEncoderBundle, documents: &[AnnotatedDocument]) -> Vec<Use> {
    let ids = || documents.iter().map(|document| document.document.id.as_str());
    let mut uses: Vec<Use> = held_out(ids(), experiment.hold_out)
        .into_iter()
        .map(|is_held_out| if is_held_out { Use::HeldOut } else { Use::Train })
        .collect();
    if experiment.tune < 2 || experiment.kb.is_none() {
        return uses;
    }
    let trained = base.learned.as_ref().map(|learned| learned.only(Trained));
    let is_seen =
        trained.map_or_else(|| vec![false; documents.len()], |trained| trained.has_seen(&of_documents(documents)));
    let tunes: Vec<usize> = (0..documents.len())
        .filter(|row| uses[*row] == Use::Train && !is_seen[*row])
        .filter(|row| part_of(&documents[*row].document.id, 8).is_multiple_of(experiment.tune as u64))
        .collect();
    let n_mentions: usize = tunes.iter().map(|row| documents[*row].annotations.len()).sum();
    let n_trained = uses.iter().filter(|one| **one == Use::Train).count();
    if n_mentions >= MIN_TUNING_MENTIONS && tunes.len() < n_trained {
        tunes.into_iter().for_each(|row| uses[row] = Use::Tune);
    }
    uses
}

/// A number from eight bytes of the hash of an id.
fn part_of(id: &str, first: usize) -> u64 {
    let hash = Sha256::digest(id.as_bytes());
    hash.iter().skip(first).take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte))
}

/// A number from a hash of an id, for an order that depends on nothing else.
pub fn hash_of(id: &str) -> u64 {
    part_of(id, 0)
}

/// Whether a document is among the one in `n` that are held out, by a hash of its id.
pub fn is_held_out(id: &str, n: usize) -> bool {
    n > 1 && part_of(id, 0).is_multiple_of(n as u64)
}

/// Whether each document is held out, see [`is_held_out`]. None is held out if all would be.
pub fn held_out<'a>(ids: impl Iterator<Item = &'a str>, n: usize) -> Vec<bool> {
    let mut held_out: Vec<bool> = ids.map(|id| is_held_out(id, n)).collect();
    if held_out.iter().all(|is_held_out| *is_held_out) {
        held_out.fill(false);
    }
    held_out
}
