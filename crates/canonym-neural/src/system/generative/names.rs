//! The names of a knowledge base as a trie of tokens.

use canonym_core::kb::subset::Subset;
use canonym_core::kb::{ConceptId, KnowledgeBase, NameId};
use rayon::prelude::*;

use crate::models::generative::text::{Coder, WrittenNames, plain_name};
use crate::models::generative::trie::{TokenLists, Trie};
use crate::status::Stage;

/// The names of a knowledge base as a trie. Their texts stay in the knowledge base.
#[derive(Debug, Default)]
pub struct NameTrie {
    trie: Trie,
    /// Names that are written alike, of different concepts, the most specific first; group after group.
    names: Vec<NameId>,
    /// Where each group ends in `names`.
    ends: Vec<u32>,
    /// Number of names that the model cannot write.
    n_unwritten: usize,
}

/// A plain name of a concept, ordered as concepts of the same name are.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NameOfConcept {
    plain: String,
    is_synonym: bool,
    n_names: usize,
    concept: ConceptId,
    name: NameId,
}

impl NameTrie {
    /// Builds the trie of the names of all concepts, or those of a subset.
    pub fn new(kb: &KnowledgeBase, subset: Option<&Subset>, coder: &Coder) -> NameTrie {
        let stage = Stage::start();
        let kept = kb.concepts().filter(|concept| subset.is_none_or(|subset| subset.has(*concept)));
        let names = NameTrie::of(kb, kept, coder);
        let (n, n_nodes, n_bytes) = (names.ends.len(), names.trie.len(), names.n_bytes());
        let n_unwritten = names.n_unwritten;
        stage
            .done(format_args!("trie of {n} names: {n_nodes} nodes, {n_bytes} bytes; {n_unwritten} cannot be written"));
        names
    }

    /// Builds the trie of the names of concepts. A name of several concepts stands first for the one that has it as its preferred name, then
    /// for the one with the fewest names (published code), in the order of the knowledge base.
    pub fn of(kb: &KnowledgeBase, concepts: impl IntoIterator<Item = ConceptId>, coder: &Coder) -> NameTrie {
        let n_written = match coder.config().names {
            WrittenNames::All => usize::MAX,
            WrittenNames::Preferred => 1,
        };
        let mut all: Vec<NameOfConcept> = Vec::new();
        for concept in concepts {
            let n_names = kb.names(concept).count();
            all.extend(kb.names(concept).take(n_written).enumerate().map(|(at, name)| NameOfConcept {
                plain: plain_name(kb.name(name)),
                is_synonym: at > 0,
                n_names,
                concept,
                name,
            }));
        }
        all.par_sort_unstable();
        let groups: Vec<&[NameOfConcept]> = all.chunk_by(|left, right| left.plain == right.plain).collect();
        let tokens: Vec<Option<Vec<u32>>> = groups.par_iter().map(|group| coder.name(&group[0].plain)).collect();
        let mut written =
            NameTrie { n_unwritten: tokens.iter().filter(|tokens| tokens.is_none()).count(), ..NameTrie::default() };
        let mut lists = TokenLists::default();
        for (group, tokens) in groups.iter().zip(tokens) {
            let Some(tokens) = tokens else { continue };
            lists.push(tokens);
            let mut known: Vec<ConceptId> = Vec::with_capacity(group.len());
            for one in *group {
                if !known.contains(&one.concept) {
                    known.push(one.concept);
                    written.names.push(one.name);
                }
            }
            written.ends.push(u32::try_from(written.names.len()).expect("names are numbered with 32 bits"));
        }
        written.names.shrink_to_fit();
        written.ends.shrink_to_fit();
        written.trie = Trie::new(&lists);
        written
    }

    /// The trie.
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// Number of different names.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of bytes in memory: the trie, and which names end where.
    pub fn n_bytes(&self) -> usize {
        self.trie.n_bytes() + size_of::<NameId>() * self.names.len() + size_of::<u32>() * self.ends.len()
    }

    /// The names that end at a leaf of the trie. There are several if concepts share a name, and if names differ only in letters that the
    /// vocabulary does not tell apart.
    pub fn ending_at(&self, leaf: u32) -> impl Iterator<Item = NameId> {
        let group = |row: u32| {
            let row = row as usize;
            let start = if row == 0 { 0 } else { self.ends[row - 1] };
            self.names[start as usize..self.ends[row] as usize].iter().copied()
        };
        self.trie.ending_at(leaf).flat_map(group)
    }

    /// Number of names that the model cannot write: too long, or with unknown characters.
    pub fn n_unwritten(&self) -> usize {
        self.n_unwritten
    }
}
