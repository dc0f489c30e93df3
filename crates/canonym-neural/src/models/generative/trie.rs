//! A trie of token sequences: which token may come next.
//!
//! Nodes are numbered level by level, so the children of a node are consecutive and 8 bytes a node suffice: its token and its first child.
//! Every sequence ends with a token that no sequence has inside, so it ends at a leaf.

use std::ops::Range;

use rayon::prelude::*;

/// A trie of names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trie {
    // Private: `first_child` never decreases, and has one entry more than there are nodes.
    tokens: Vec<u32>,
    first_child: Vec<u32>,
    /// Leaves and the names that end there, by leaf.
    leaves: Vec<(u32, u32)>,
}

/// Token sequences, in one vector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenLists {
    tokens: Vec<u32>,
    ends: Vec<u32>,
}

impl TokenLists {
    /// Appends a sequence.
    pub fn push(&mut self, tokens: impl IntoIterator<Item = u32>) {
        self.tokens.extend(tokens);
        self.ends.push(u32::try_from(self.tokens.len()).expect("names of less than 4 billion tokens"));
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A sequence.
    pub fn get(&self, at: usize) -> &[u32] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.tokens[start..self.ends[at] as usize]
    }
}

impl<I: IntoIterator<Item = u32>> FromIterator<I> for TokenLists {
    fn from_iter<T: IntoIterator<Item = I>>(lists: T) -> TokenLists {
        let mut all = TokenLists::default();
        lists.into_iter().for_each(|list| all.push(list));
        all
    }
}

/// Node of the empty sequence.
pub const ROOT: u32 = 0;

impl Trie {
    /// Builds the trie of sequences; empty sequences are left out. Sequences that are equal end at the same leaf.
    pub fn new(lists: &TokenLists) -> Trie {
        let mut order: Vec<u32> = (0..lists.len() as u32).filter(|at| !lists.get(*at as usize).is_empty()).collect();
        order.par_sort_unstable_by_key(|at| (lists.get(*at as usize), *at));
        let mut trie = Trie { tokens: vec![0], first_child: Vec::new(), leaves: Vec::new() };
        // The sequences below each node of a level, as ranges of `order`.
        let mut level: Vec<(u32, Range<usize>)> = vec![(ROOT, 0..order.len())];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for (node, range) in level {
                trie.first_child.push(trie.tokens.len() as u32);
                let mut start = range.start;
                // Sequences that end here come first.
                while start < range.end && lists.get(order[start] as usize).len() == depth {
                    trie.leaves.push((node, order[start]));
                    start += 1;
                }
                while start < range.end {
                    let token = lists.get(order[start] as usize)[depth];
                    let same = order[start..range.end].partition_point(|at| lists.get(*at as usize)[depth] == token);
                    next.push((trie.tokens.len() as u32, start..start + same));
                    trie.tokens.push(token);
                    start += same;
                }
            }
            level = next;
            depth += 1;
        }
        trie.first_child.push(trie.tokens.len() as u32);
        trie.tokens.shrink_to_fit();
        trie.first_child.shrink_to_fit();
        trie.leaves.shrink_to_fit();
        trie
    }

    /// Number of nodes, with the root.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// Number of bytes in memory.
    pub fn n_bytes(&self) -> usize {
        4 * (self.tokens.len() + self.first_child.len()) + 8 * self.leaves.len()
    }

    /// The children of a node, in the order of their tokens.
    pub fn children(&self, node: u32) -> Range<u32> {
        self.first_child[node as usize]..self.first_child[node as usize + 1]
    }

    /// The last token of the sequence of a node.
    pub fn token(&self, node: u32) -> u32 {
        self.tokens[node as usize]
    }

    /// The sequences that end at a node, as numbers in the order in which they were given.
    pub fn ending_at(&self, node: u32) -> impl Iterator<Item = u32> {
        let first = self.leaves.partition_point(|(leaf, _)| *leaf < node);
        self.leaves[first..].iter().take_while(move |(leaf, _)| *leaf == node).map(|(_, list)| *list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(trie: &Trie, tokens: &[u32]) -> Option<u32> {
        tokens.iter().try_fold(ROOT, |node, token| trie.children(node).find(|child| trie.token(*child) == *token))
    }

    #[test]
    fn what_was_put_in_is_found_and_nothing_else() {
        let names: [&[u32]; 6] = [&[5, 6, 2], &[5, 7, 2], &[8, 2], &[5, 6, 2], &[], &[5, 2]];
        let lists: TokenLists = names.iter().map(|name| name.iter().copied()).collect();
        let trie = Trie::new(&lists);
        for (at, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            let leaf = walked(&trie, name).unwrap();
            assert!(trie.ending_at(leaf).any(|list| list == at as u32));
            assert!(trie.children(leaf).is_empty());
        }
        let leaf = walked(&trie, &[5, 6, 2]).unwrap();
        assert_eq!(trie.ending_at(leaf).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(trie.children(ROOT).map(|child| trie.token(child)).collect::<Vec<_>>(), [5, 8]);
        assert_eq!((walked(&trie, &[6]), walked(&trie, &[8, 5])), (None, None));
        assert!(trie.ending_at(walked(&trie, &[5]).unwrap()).next().is_none());
        let empty = Trie::new(&TokenLists::default());
        assert!(empty.is_empty() && empty.children(ROOT).is_empty());
    }

    #[test]
    fn nodes_are_shared_and_take_few_bytes() {
        let mut rng = crate::tensor::random::SplitMix64::new(4);
        let lists: TokenLists = (0..2000)
            .map(|_| (0..1 + rng.below(6)).map(|_| 1 + rng.below(30) as u32).chain([0]).collect::<Vec<_>>())
            .collect();
        let trie = Trie::new(&lists);
        for at in 0..lists.len() {
            assert!(trie.ending_at(walked(&trie, lists.get(at)).unwrap()).any(|list| list == at as u32));
        }
        assert!(trie.n_bytes() < 12 * (0..lists.len()).map(|at| lists.get(at).len()).sum::<usize>());
    }
}
