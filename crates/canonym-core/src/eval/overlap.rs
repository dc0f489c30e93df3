//! Overlaps between lists of spans.

use std::collections::BTreeMap;

use crate::text::Span;

/// An overlapping pair of a gold and a predicted annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Overlap {
    /// Index of the gold annotation.
    pub gold: usize,
    /// Index of the predicted annotation.
    pub predicted: usize,
    /// Length of the overlap.
    pub shared: u64,
}

/// Total length of disjoint spans.
pub fn length(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.len() as u64).sum()
}

/// Length of the intersection of two lists of sorted, disjoint spans.
pub fn shared(left: &[Span], right: &[Span]) -> u64 {
    let (mut row, mut column, mut sum) = (0, 0, 0);
    while let (Some(a), Some(b)) = (left.get(row), right.get(column)) {
        sum += u64::from(a.end.min(b.end).saturating_sub(a.start.max(b.start)));
        if a.end <= b.end {
            row += 1;
        } else {
            column += 1;
        }
    }
    sum
}

/// All overlapping pairs for which `agree(gold, predicted)` holds, sorted by predicted index.
///
/// Gold annotations are swept by start, so distant pairs are not compared.
pub fn overlaps(gold: &[&[Span]], predicted: &[&[Span]], agree: impl Fn(usize, usize) -> bool) -> Vec<Overlap> {
    let mut order: Vec<usize> = (0..gold.len()).filter(|&row| !gold[row].is_empty()).collect();
    order.sort_by_key(|&row| gold[row][0].start);
    // Running maximum of the ends of the gold annotations.
    let mut furthest: Vec<u32> = Vec::with_capacity(order.len());
    for &row in &order {
        let end = gold[row].last().map_or(0, |span| span.end);
        furthest.push(furthest.last().map_or(end, |&before| end.max(before)));
    }
    let mut found = Vec::new();
    for (column, spans) in predicted.iter().enumerate() {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { continue };
        let mut position = order.partition_point(|&row| gold[row][0].start < last.end);
        while position > 0 && furthest[position - 1] > first.start {
            position -= 1;
            let row = order[position];
            let n_shared = shared(gold[row], spans);
            if n_shared > 0 && agree(row, column) {
                found.push(Overlap { gold: row, predicted: column, shared: n_shared });
            }
        }
    }
    found
}

/// Indices of the span lists that remain after resolving overlaps in favour of those earlier in `order`.
pub fn without_overlaps(spans: &[&[Span]], order: &[usize]) -> Vec<usize> {
    // Start to end of the spans kept, which are disjoint.
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    let mut kept = Vec::new();
    for &row in order {
        let free = |span: &Span| taken.range(..span.end).next_back().is_none_or(|(_, &end)| end <= span.start);
        if spans[row].iter().all(free) {
            taken.extend(spans[row].iter().filter(|span| !span.is_empty()).map(|span| (span.start, span.end)));
            kept.push(row);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spans(pairs: &[(usize, usize)]) -> Vec<Span> {
        pairs.iter().map(|&(start, end)| Span::new(start, end)).collect()
    }

    #[test]
    fn gaps_of_a_discontinuous_mention_share_nothing() {
        assert_eq!(shared(&spans(&[(0, 3), (10, 13)]), &spans(&[(3, 10)])), 0);
        assert_eq!(shared(&spans(&[(0, 3), (10, 13)]), &spans(&[(2, 11)])), 2);
        assert_eq!(shared(&spans(&[(5, 5)]), &spans(&[(0, 9)])), 0);
    }

    #[test]
    fn the_earlier_in_order_is_kept() {
        let lists = [spans(&[(0, 4)]), spans(&[(3, 9)]), spans(&[(9, 12)])];
        let views: Vec<&[Span]> = lists.iter().map(Vec::as_slice).collect();
        assert_eq!(without_overlaps(&views, &[1, 0, 2]), [1, 2]);
        assert_eq!(without_overlaps(&views, &[0, 1, 2]), [0, 2]);
    }

    fn any_list() -> impl Strategy<Value = Vec<Span>> {
        prop::collection::vec((0usize..30, 0usize..6), 0..3).prop_map(|pairs| {
            let raw = pairs.into_iter().map(|(start, len)| Span::new(start, start + len)).collect();
            crate::eval::Entry::new(raw, Default::default()).spans
        })
    }

    proptest! {
        #[test]
        fn the_sweep_finds_what_all_pairs_find(
            gold in prop::collection::vec(any_list(), 0..8),
            predicted in prop::collection::vec(any_list(), 0..8),
        ) {
            let gold: Vec<&[Span]> = gold.iter().map(Vec::as_slice).collect();
            let predicted: Vec<&[Span]> = predicted.iter().map(Vec::as_slice).collect();
            let mut swept = overlaps(&gold, &predicted, |_, _| true);
            swept.sort_unstable();
            let mut expected = Vec::new();
            for (row, left) in gold.iter().enumerate() {
                for (column, right) in predicted.iter().enumerate() {
                    let positions = |spans: &[Span]| -> Vec<u32> { spans.iter().flat_map(|span| span.start..span.end).collect() };
                    let right = positions(right);
                    let n_shared = positions(left).iter().filter(|position| right.contains(position)).count() as u64;
                    if n_shared > 0 {
                        expected.push(Overlap { gold: row, predicted: column, shared: n_shared });
                    }
                }
            }
            prop_assert_eq!(swept, expected);
        }
    }
}
