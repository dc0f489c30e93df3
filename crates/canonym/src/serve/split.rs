//! Which documents a training on the server holds out.
//!
//! The share is that of the setting, to the nearest document. A document that was once held out always is, and one that was trained on never is; new
//! complete documents fill the test set up, in an order by a hash of their IDs.

use canonym_neural::recipes::adapt::{hash_of, is_held_out};
use canonym_serve::engine::{Split, TrainingDocument};

/// The documents of a training.
pub(super) struct Parts<'a> {
    /// Complete documents that are trained on.
    pub complete: Vec<&'a TrainingDocument>,
    /// Complete documents that are held out.
    pub held_out: Vec<&'a TrainingDocument>,
    /// Partly reviewed documents that are trained on.
    pub incomplete: Vec<&'a TrainingDocument>,
}

/// Splits the usable documents. Incomplete ones are used only if `uses_incomplete`, without those that may be held out when they are complete, because
/// later models go on from this one.
pub(super) fn parts(documents: &[TrainingDocument], n: usize, uses_incomplete: bool) -> Parts<'_> {
    let mut parts = Parts { complete: Vec::new(), held_out: Vec::new(), incomplete: Vec::new() };
    for (one, is_held_out) in documents.iter().zip(held_out(documents, n)) {
        match one.is_finished {
            true if is_held_out => parts.held_out.push(one),
            true => parts.complete.push(one),
            false if uses_incomplete && !one.document.annotations.is_empty() && !is_reserved(one, n) => {
                parts.incomplete.push(one);
            }
            false => {}
        }
    }
    parts
}

/// Whether each document is held out: one in `n` of the complete ones; if `n` is 0 or 1, only those that were held out before.
pub(super) fn held_out(documents: &[TrainingDocument], n: usize) -> Vec<bool> {
    let mut is_held_out = vec![false; documents.len()];
    let complete: Vec<usize> = (0..documents.len()).filter(|row| documents[*row].is_finished).collect();
    let wanted = if n < 2 { 0 } else { (complete.len() + n / 2) / n };
    let (mut test, mut new): (Vec<usize>, Vec<usize>) = Default::default();
    for row in &complete {
        match documents[*row].split {
            Some(Split::Test) => test.push(*row),
            Some(Split::Train) => {}
            None => new.push(*row),
        }
    }
    let id = |row: &usize| documents[*row].document.document.id.as_str();
    // Those reserved while they were incomplete come first.
    new.sort_by_key(|row| (!is_reserved(&documents[*row], n), hash_of(id(row))));
    // Something must be left to learn from.
    let n_left = complete.len().saturating_sub(test.len() + 1);
    let n_new = wanted.saturating_sub(test.len()).min(new.len()).min(n_left);
    test.extend(&new[..n_new]);
    test.into_iter().for_each(|row| is_held_out[row] = true);
    is_held_out
}

/// Whether an incomplete document may be held out when it is complete.
fn is_reserved(one: &TrainingDocument, n: usize) -> bool {
    match one.split {
        Some(Split::Test) => n > 1,
        Some(Split::Train) => false,
        None => is_held_out(&one.document.document.id, n),
    }
}

#[cfg(test)]
mod tests {
    use canonym_core::corpus::AnnotatedDocument;
    use canonym_core::text::Document;

    use super::*;

    fn complete(number: i64) -> TrainingDocument {
        let document = Document { id: format!("note-{number}"), ..Document::default() };
        let document = AnnotatedDocument { document, ..AnnotatedDocument::default() };
        TrainingDocument { number, document, is_finished: true, split: None }
    }

    fn n_of(is_held_out: &[bool]) -> usize {
        is_held_out.iter().filter(|is| **is).count()
    }

    #[test]
    fn share_is_that_of_the_setting() {
        for (n_documents, n, expected) in
            [(20, 5, 4), (22, 5, 4), (23, 5, 5), (7, 2, 4), (2, 5, 0), (3, 5, 1), (20, 0, 0), (1, 2, 0), (0, 5, 0)]
        {
            let documents: Vec<TrainingDocument> = (0..n_documents).map(complete).collect();
            assert_eq!(n_of(&held_out(&documents, n)), expected, "1 in {n} of {n_documents}");
        }
    }

    #[test]
    fn held_out_documents_stay_and_new_ones_fill_up() {
        let mut documents: Vec<TrainingDocument> = (0..20).map(complete).collect();
        let first = held_out(&documents, 5);
        for (one, is_held_out) in documents.iter_mut().zip(&first) {
            one.split = Some(if *is_held_out { Split::Test } else { Split::Train });
        }
        documents.extend((20..40).map(complete));
        let second = held_out(&documents, 5);
        assert_eq!(second[..20], first);
        assert_eq!(n_of(&second[20..]), 4);
        // A smaller share returns none to the training set.
        assert_eq!(held_out(&documents, 10)[..20], first);
    }
}
