//! Maximum one-to-one matching of gold and predicted annotations.
//!
//! Knows nothing about spans or ids: the caller provides the pairs that may be matched.

use std::collections::VecDeque;

/// Size of a maximum matching in the bipartite graph with `edges` (left, right).
///
/// Augmenting paths are found by breadth-first search without recursion, so malicious documents cannot overflow the
/// stack.
pub fn maximum_matching(n_left: usize, n_right: usize, edges: &[(usize, usize)]) -> usize {
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); n_left];
    for &(left, right) in edges {
        neighbours[left].push(right);
    }
    let mut partner_of_right: Vec<Option<usize>> = vec![None; n_right];
    let mut partner_of_left: Vec<Option<usize>> = vec![None; n_left];
    // For each right vertex, the iteration in which it was last reached, and from which left vertex.
    let mut reached = vec![usize::MAX; n_right];
    let mut reached_from = vec![0; n_right];
    let mut queue = VecDeque::new();
    let mut size = 0;
    for root in 0..n_left {
        queue.clear();
        queue.push_back(root);
        let mut free = None;
        'search: while let Some(left) = queue.pop_front() {
            for &right in &neighbours[left] {
                if reached[right] == root {
                    continue;
                }
                reached[right] = root;
                reached_from[right] = left;
                match partner_of_right[right] {
                    Some(partner) => queue.push_back(partner),
                    None => {
                        free = Some(right);
                        break 'search;
                    }
                }
            }
        }
        size += usize::from(free.is_some());
        // Augment along the path: each vertex is matched with the one it was reached from.
        while let Some(right) = free {
            let left = reached_from[right];
            partner_of_right[right] = Some(left);
            free = partner_of_left[left].replace(right);
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_input_has_no_pairs() {
        assert_eq!(maximum_matching(0, 0, &[]), 0);
        assert_eq!(maximum_matching(3, 2, &[]), 0);
    }

    #[test]
    fn an_earlier_choice_is_undone_for_a_larger_assignment() {
        assert_eq!(maximum_matching(2, 2, &[(0, 0), (0, 1), (1, 0)]), 2);
        assert_eq!(maximum_matching(3, 3, &[(0, 0), (0, 1), (1, 1), (1, 2), (2, 0)]), 3);
        assert_eq!(maximum_matching(3, 1, &[(0, 0), (1, 0), (2, 0)]), 1);
    }

    #[test]
    fn a_long_path_does_not_recurse() {
        let n = 3000;
        let mut edges: Vec<(usize, usize)> = (0..n - 1).flat_map(|row| [(row, row), (row, row + 1)]).collect();
        edges.push((n - 1, 0));
        assert_eq!(maximum_matching(n, n, &edges), n);
    }

    /// Reference: exhaustive search.
    fn exhaustive(edges: &[(usize, usize)], left: usize, used: u32) -> usize {
        if left == 5 {
            return 0;
        }
        let skipped = exhaustive(edges, left + 1, used);
        let joined = edges.iter().filter(|&&(from, to)| from == left && used & (1 << to) == 0);
        joined.map(|&(_, to)| 1 + exhaustive(edges, left + 1, used | (1 << to))).fold(skipped, usize::max)
    }

    proptest! {
        #[test]
        fn it_is_the_largest(edges in prop::collection::vec((0usize..5, 0usize..5), 0..14)) {
            prop_assert_eq!(maximum_matching(5, 5, &edges), exhaustive(&edges, 0, 0));
        }
    }
}
