//! Concept search for people, by id and by name: exact before prefix before fuzzy matches.
//!
//! Used by `canonym kb search` and concept pickers. Ranks by spelling only; a linker decides which concept a text
//! means.
//!
//! ```
//! use canonym_core::kb::format::Meta;
//! use canonym_core::kb::search::{MatchKind, search};
//! use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Scope};
//!
//! let mut builder = KnowledgeBaseBuilder::new();
//! let name = NameRecord { text: "Circle".to_owned(), scope: Scope::Preferred };
//! builder.add(ConceptRecord { id: "SHAPE:1".to_owned(), names: vec![name], ..ConceptRecord::default() })?;
//! let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default())?, "shapes")?;
//! let hits = search(&kb, "circle", 10);
//! assert_eq!((kb.id(hits[0].concept), hits[0].kind), ("SHAPE:1", MatchKind::Exact));
//! # Ok::<(), canonym_core::Error>(())
//! ```

use std::collections::HashSet;

use rapidfuzz::distance::osa;
use rayon::prelude::*;

use super::reader::{ConceptId, FormId, KnowledgeBase, NameId};
use crate::index::forms::{Forms, WordForms};
use crate::index::grams::GramScratch;
use crate::text::normalise::fold;

/// Minimum similarity of a fuzzy match.
const MIN_COSINE: f32 = 0.35;

/// Number of forms examined per requested hit, because concepts share forms and have several.
const FORMS_PER_HIT: usize = 8;

/// Maximum edit distance of a suggested id.
const MAX_ID_EDITS: usize = 2;

/// Maximum number of forms that are scanned for starts of words.
const MAX_SCANNED: usize = 4_000_000;

/// Minimum length in bytes of the longest word of a query for which forms are scanned for starts of words.
const MIN_WORD_START: usize = 2;

/// Ids longer than this get no suggestions.
const MAX_ID_CHARS: usize = 64;

/// How a concept matched, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchKind {
    /// The query is its id or an alternative id.
    Id,
    /// A name equals the query, ignoring case, accents and punctuation.
    Exact,
    /// A name starts with the query, or each word of the query starts a word of the name.
    Prefix,
    /// A name is spelled similarly.
    Fuzzy,
}

impl MatchKind {
    /// The match as written in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::Id => "id",
            MatchKind::Exact => "exact",
            MatchKind::Prefix => "prefix",
            MatchKind::Fuzzy => "fuzzy",
        }
    }
}

/// A search result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchHit {
    /// The concept.
    pub concept: ConceptId,
    /// The matched name; the preferred name if the id matched.
    pub name: NameId,
    /// How it matched.
    pub kind: MatchKind,
    /// Similarity of the folded name and the query, 0 to 1.
    pub similarity: f32,
}

/// The `top_k` best concepts for `query`, without duplicates, each with its best matching name.
pub fn search(kb: &KnowledgeBase, query: &str, top_k: usize) -> Vec<SearchHit> {
    let mut hits = Hits { kb, seen: HashSet::new(), hits: Vec::new(), top_k };
    if let Some(concept) = kb.find(query.trim())
        && let Some(name) = kb.names(concept).next()
    {
        hits.push(SearchHit { concept, name, kind: MatchKind::Id, similarity: 1.0 });
    }
    let folded = fold(query);
    if folded.is_empty() {
        return hits.hits;
    }
    let mut scratch = GramScratch::default();
    let n_examined = FORMS_PER_HIT.saturating_mul(top_k);
    if let Some(form) = kb.find_form(&folded) {
        hits.push_forms(&[(form, 1.0)], MatchKind::Exact);
    }
    if !hits.is_full() {
        let forms = prefixed(kb, &folded, n_examined);
        let rows: Vec<u32> = forms.iter().map(|form| form.0).collect();
        let cosines = kb.grams().cosines(&folded, &rows, &mut scratch);
        hits.push_forms(&forms.into_iter().zip(cosines).collect::<Vec<_>>(), MatchKind::Prefix);
    }
    if !hits.is_full() {
        let forms = with_words(kb, &folded, n_examined);
        let rows: Vec<u32> = forms.iter().map(|form| form.0).collect();
        let cosines = kb.grams().cosines(&folded, &rows, &mut scratch);
        hits.push_forms(&forms.into_iter().zip(cosines).collect::<Vec<_>>(), MatchKind::Prefix);
    }
    if !hits.is_full() {
        let nearest = kb.grams().search(&folded, n_examined, &mut scratch);
        let near = nearest.iter().filter(|hit| hit.cosine >= MIN_COSINE);
        hits.push_forms(&near.map(|hit| (FormId(hit.row), hit.cosine)).collect::<Vec<_>>(), MatchKind::Fuzzy);
    }
    hits.hits
}

/// The concepts whose parent is `concept`, in id order. Scans all concepts.
pub fn children(kb: &KnowledgeBase, concept: ConceptId) -> Vec<ConceptId> {
    kb.concepts().filter(|child| kb.parents(*child).any(|parent| parent == concept)).collect()
}

/// The concepts whose ids are closest to `id`, ignoring case and white space, within a small edit distance; in id
/// order. Scans all ids.
pub fn nearest_ids(kb: &KnowledgeBase, id: &str, top_k: usize) -> Vec<ConceptId> {
    let wanted: Vec<char> = id.trim().to_lowercase().chars().collect();
    if wanted.is_empty() || wanted.len() > MAX_ID_CHARS {
        return Vec::new();
    }
    let comparator = osa::BatchComparator::new(wanted.iter().copied());
    let arguments = osa::Args::default().score_cutoff(MAX_ID_EDITS.min(wanted.len() / 3));
    let edits = |row: usize| {
        let concept = ConceptId(row as u32);
        let raw = kb.raw_id(concept);
        let of = |id: &str| comparator.distance_with_args(id.to_lowercase().chars(), &arguments);
        let fewest = [of(kb.id(concept)), of(&raw)].into_iter().flatten().min();
        fewest.map(|n_edits| (n_edits, concept))
    };
    let mut near: Vec<(usize, ConceptId)> = (0..kb.n_concepts()).into_par_iter().filter_map(edits).collect();
    near.sort_unstable();
    let fewest = near.first().map(|(n_edits, _)| *n_edits);
    near.retain(|(n_edits, _)| Some(*n_edits) == fewest);
    near.truncate(top_k);
    near.into_iter().map(|(_, concept)| concept).collect()
}

/// The `k` best forms that start with `folded`: first those in which it ends with a word, then the shortest.
fn prefixed(kb: &KnowledgeBase, folded: &str, k: usize) -> Vec<FormId> {
    let forms = kb.forms();
    let (mut found, mut buffer): (Vec<(bool, usize, u32)>, _) = (Vec::new(), Vec::new());
    for row in forms.lower_bound(folded)..forms.len() {
        let Some(rest) = forms.bytes(row, &mut buffer).strip_prefix(folded.as_bytes()) else { break };
        if !rest.is_empty() {
            found.push((!rest.starts_with(b" "), rest.len(), row as u32));
        }
    }
    if found.len() > k {
        found.select_nth_unstable(k);
        found.truncate(k);
    }
    found.sort_unstable();
    found.into_iter().map(|(_, _, row)| FormId(row)).collect()
}

/// The `k` shortest forms in which each word of `folded` starts a word, without those that [`prefixed`] finds. Scans all
/// forms in parallel; there are none for terminologies of more than [`MAX_SCANNED`] forms.
fn with_words(kb: &KnowledgeBase, folded: &str, k: usize) -> Vec<FormId> {
    let forms = kb.forms();
    let words: Vec<String> = folded.split(' ').map(|word| format!(" {word}")).collect();
    if forms.len() > MAX_SCANNED || words.iter().all(|word| word.len() <= MIN_WORD_START) {
        return Vec::new();
    }
    let starts = match forms {
        Forms::Whole(_) => None,
        Forms::Words(forms) => Some(WordStarts::new(forms, &words)),
    };
    let matched = |row: u32| {
        if starts.as_ref().is_some_and(|starts| !starts.are_in(row)) {
            return None;
        }
        let form = forms.get(row as usize);
        let has = |word: &String| form.starts_with(&word[1..]) || form.contains(word.as_str());
        (words.iter().all(has) && !form.starts_with(folded)).then_some((form.len(), row))
    };
    let mut found: Vec<(usize, u32)> = (0..forms.len() as u32).into_par_iter().filter_map(matched).collect();
    if found.len() > k {
        found.select_nth_unstable(k);
        found.truncate(k);
    }
    found.sort_unstable();
    found.into_iter().map(|(_, row)| FormId(row)).collect()
}

/// Which words of forms start with which words of a query, so that the text of a form is built only if it can match.
struct WordStarts<'a> {
    forms: WordForms<'a>,
    /// For each word of forms a bit for each of the first words of the query.
    bits: Vec<u64>,
    /// The bits of all words of the query.
    all: u64,
}

impl<'a> WordStarts<'a> {
    /// Looks for `words`, each after a space.
    fn new(forms: WordForms<'a>, words: &[String]) -> WordStarts<'a> {
        let bits_of = |row: usize| {
            let word = forms.words.bytes(row);
            let starts = words.iter().take(64).map(|start| word.starts_with(&start.as_bytes()[1..]));
            starts.enumerate().fold(0, |bits, (at, is_start)| bits | u64::from(is_start) << at)
        };
        let bits = (0..forms.words.len()).into_par_iter().map(bits_of).collect();
        WordStarts { forms, bits, all: (0..words.len().min(64)).fold(0, |bits, at| bits | 1 << at) }
    }

    /// Whether each word of the query starts a word of the form at `row`.
    fn are_in(&self, row: u32) -> bool {
        let words = self.forms.words_of(row as usize);
        let bits = words.filter_map(|word| self.bits.get(word as usize)).fold(0, |bits, of_word| bits | of_word);
        bits == self.all
    }
}

/// Hits so far, without duplicate concepts.
struct Hits<'a> {
    kb: &'a KnowledgeBase,
    seen: HashSet<ConceptId>,
    hits: Vec<SearchHit>,
    top_k: usize,
}

impl Hits<'_> {
    fn is_full(&self) -> bool {
        self.hits.len() >= self.top_k
    }

    fn push(&mut self, hit: SearchHit) {
        if !self.is_full() && self.seen.insert(hit.concept) {
            self.hits.push(hit);
        }
    }

    /// Adds the concepts of forms; for each form, those that have it as preferred name first, then those that have it
    /// as exact synonym.
    fn push_forms(&mut self, forms: &[(FormId, f32)], kind: MatchKind) {
        for (form, similarity) in forms {
            let mut names: Vec<NameId> = self.kb.names_of_form(*form).collect();
            names.sort_by_key(|name| (self.kb.scope(*name), *name));
            for name in names {
                let concept = self.kb.concept_of(name);
                self.push(SearchHit { concept, name, kind, similarity: *similarity });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::kb::format::Meta;
    use crate::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};

    fn kb() -> KnowledgeBase {
        let rows = [
            ("X:1", "Blue fever", "azure fever|fever"),
            ("X:2", "Fever", "pyrexia"),
            ("X:3", "Feverfew", "featherfew"),
            ("X:4", "Fever of unknown origin", ""),
            ("X:20", "Cough", "tussis"),
        ];
        let mut builder = KnowledgeBaseBuilder::new();
        for (id, name, synonyms) in rows {
            let preferred = NameRecord { text: name.to_owned(), scope: Scope::Preferred };
            let exact = |text: &str| NameRecord { text: text.to_owned(), scope: Scope::Exact };
            let names = [preferred].into_iter().chain(synonyms.split('|').map(exact)).collect();
            let parents = if id == "X:1" { vec!["X:2".to_owned()] } else { Vec::new() };
            let record = ConceptRecord { id: id.to_owned(), names, parents, ..ConceptRecord::default() };
            builder.add(record).unwrap();
        }
        let meta = Meta { added_prefixes: vec!["X".to_owned()], ..Meta::default() };
        KnowledgeBase::from_vec(builder.to_bytes(meta).unwrap(), "test").unwrap()
    }

    fn check(query: &str, top_k: usize, expected: Expect) {
        let kb = kb();
        let line = |hit: &SearchHit| {
            let (id, name) = (kb.id(hit.concept), kb.name(hit.name));
            format!("{} {id} {name} {:.2}\n", hit.kind.name(), hit.similarity)
        };
        expected.assert_eq(&search(&kb, query, top_k).iter().map(line).collect::<String>());
    }

    #[test]
    fn exact_ranks_above_prefix_above_fuzzy() {
        check(
            "FEVER",
            10,
            expect![[r#"
            exact X:2 Fever 1.00
            exact X:1 fever 1.00
            prefix X:4 Fever of unknown origin 0.34
            prefix X:3 Feverfew 0.58
        "#]],
        );
        check(
            "fever",
            2,
            expect![[r#"
            exact X:2 Fever 1.00
            exact X:1 fever 1.00
        "#]],
        );
        check(
            "orig unk",
            1,
            expect![[r#"
                prefix X:4 Fever of unknown origin 0.54
            "#]],
        );
        check(
            "unk",
            10,
            expect![[r#"
                prefix X:4 Fever of unknown origin 0.36
            "#]],
        );
        // One letter is too little for words in the middle of a name.
        check("o", 10, expect![""]);
        check(
            "azur fevr",
            1,
            expect![[r#"
            fuzzy X:1 azure fever 0.67
        "#]],
        );
    }

    #[test]
    fn ids_are_found_as_they_are_shown_and_as_their_source_wrote_them() {
        check(
            "X:2",
            1,
            expect![[r#"
            id X:2 Fever 1.00
        "#]],
        );
        check(
            "20",
            1,
            expect![[r#"
            id X:20 Cough 1.00
        "#]],
        );
    }

    #[test]
    fn empty_queries_find_nothing() {
        check("", 10, expect![""]);
        check("😀", 10, expect![""]);
        check("qqqqzzzz", 10, expect![""]);
        check("fever", 0, expect![""]);
    }

    #[test]
    fn ids_near_a_wrong_one_are_offered() {
        let kb = kb();
        let near =
            |id: &str| -> Vec<&str> { nearest_ids(&kb, id, 3).into_iter().map(|concept| kb.id(concept)).collect() };
        assert_eq!(near(" x:20"), ["X:20"]);
        assert_eq!(near("X:21"), ["X:1", "X:2", "X:20"]);
        assert_eq!(near("DOID:4"), [""; 0]);
    }

    #[test]
    fn children_are_found_through_their_parents() {
        let kb = kb();
        let fever = kb.find("X:2").unwrap();
        assert_eq!(children(&kb, fever), [kb.find("X:1").unwrap()]);
    }
}
