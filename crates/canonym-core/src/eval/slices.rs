//! Parts of a corpus that are evaluated separately: a semantic type, or concepts unseen in training.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::ids::IdSet;
use super::overlap::overlaps;
use super::{DocumentPair, Entry};
use crate::text::Span;

/// Name of the slice of annotations without a type.
pub const UNTYPED: &str = "untyped";

/// The annotations of each semantic type; one with several types is in several slices.
///
/// A prediction without a type gets that of the gold annotation with the largest overlap, so that systems that only
/// link can be evaluated by type.
pub fn by_type(documents: &[DocumentPair]) -> BTreeMap<String, Vec<DocumentPair>> {
    let typed: Vec<DocumentPair> = documents.iter().map(with_types).collect();
    let entries = typed.iter().flat_map(|document| document.gold.iter().chain(&document.predicted));
    let types: BTreeSet<&str> = entries.flat_map(types_of).collect();
    let slice =
        |kind: &str| typed.iter().map(|document| keep(document, |entry| types_of(entry).contains(&kind))).collect();
    types.into_iter().map(|kind| (kind.to_owned(), slice(kind))).collect()
}

/// The annotations with a concept, none of which is in `training_ids`.
///
/// Predictions that overlap an excluded gold annotation and share an id with it are excluded too, because one of
/// several gold ids can be unseen.
pub fn zero_shot(documents: &[DocumentPair], training_ids: &HashSet<String>) -> Vec<DocumentPair> {
    let unseen = |entry: &Entry| !entry.ids.is_nil() && !entry.ids.any_in(training_ids);
    let slice = |document: &DocumentPair| {
        let (gold, predicted) = (spans_of(&document.gold), spans_of(&document.predicted));
        let answers_seen = |row: usize, column: usize| {
            let gold = &document.gold[row];
            !unseen(gold) && gold.ids.intersects(&document.predicted[column].ids)
        };
        let pairs = overlaps(&gold, &predicted, answers_seen);
        let answers: HashSet<usize> = pairs.into_iter().map(|pair| pair.predicted).collect();
        let kept = |(row, entry): &(usize, &Entry)| unseen(entry) && !answers.contains(row);
        DocumentPair {
            id: document.id.clone(),
            gold: document.gold.iter().filter(|entry| unseen(entry)).cloned().collect(),
            predicted: document.predicted.iter().enumerate().filter(kept).map(|(_, entry)| entry.clone()).collect(),
        }
    };
    documents.iter().map(slice).collect()
}

fn spans_of(entries: &[Entry]) -> Vec<&[Span]> {
    entries.iter().map(|entry| entry.spans.as_slice()).collect()
}

fn keep(document: &DocumentPair, chosen: impl Fn(&Entry) -> bool) -> DocumentPair {
    let chosen_of = |entries: &[Entry]| entries.iter().filter(|entry| chosen(entry)).cloned().collect();
    DocumentPair { id: document.id.clone(), gold: chosen_of(&document.gold), predicted: chosen_of(&document.predicted) }
}

fn types_of(entry: &Entry) -> Vec<&str> {
    if entry.types.is_empty() { vec![UNTYPED] } else { entry.types.iter().collect() }
}

fn with_types(document: &DocumentPair) -> DocumentPair {
    let (gold, predicted) = (spans_of(&document.gold), spans_of(&document.predicted));
    let untyped = |column: usize| document.predicted[column].types.is_empty();
    let mut best: BTreeMap<usize, (u64, &IdSet)> = BTreeMap::new();
    let mut pairs = overlaps(&gold, &predicted, |_, column| untyped(column));
    pairs.sort_unstable();
    for pair in pairs {
        let known = best.get(&pair.predicted).map_or(0, |&(shared, _)| shared);
        if pair.shared > known {
            best.insert(pair.predicted, (pair.shared, &document.gold[pair.gold].types));
        }
    }
    let mut typed = document.clone();
    for (column, (_, types)) in best {
        typed.predicted[column].types = types.clone();
    }
    typed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(start: usize, end: usize, id: &str, kind: &str) -> Entry {
        Entry { types: IdSet::parse_types(kind), ..Entry::new(vec![Span::new(start, end)], IdSet::parse_one(id)) }
    }

    #[test]
    fn untyped_predictions_take_the_type_they_lie_on() {
        let document = DocumentPair {
            id: "d".into(),
            gold: vec![entry(0, 6, "A", "Disease"), entry(6, 9, "B", "Gene,Protein")],
            predicted: vec![entry(2, 7, "A", ""), entry(20, 22, "C", ""), entry(0, 2, "D", "Gene")],
        };
        let slices = by_type(&[document]);
        let sizes: Vec<(&str, usize, usize)> =
            slices.iter().map(|(kind, slice)| (kind.as_str(), slice[0].gold.len(), slice[0].predicted.len())).collect();
        assert_eq!(sizes, [("Disease", 1, 1), ("Gene", 1, 1), ("Protein", 1, 0), (UNTYPED, 0, 1)]);
    }

    #[test]
    fn zero_shot_keeps_unseen_concepts_only() {
        let document = DocumentPair {
            id: "d".into(),
            gold: vec![entry(0, 6, "A|B", ""), entry(6, 9, "C", ""), entry(6, 9, "-1", "")],
            predicted: vec![entry(0, 6, "B", ""), entry(0, 6, "C", ""), entry(0, 6, "A", ""), entry(6, 9, "A", "")],
        };
        let slice = &zero_shot(&[document], &["B".to_owned()].into())[0];
        assert_eq!(slice.gold, [entry(6, 9, "C", "")]);
        // The first concept is seen; the third prediction matches a seen one.
        assert_eq!(slice.predicted, [entry(0, 6, "C", ""), entry(6, 9, "A", "")]);
    }
}
