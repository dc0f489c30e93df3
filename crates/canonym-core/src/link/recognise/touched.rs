//! Which texts a change of the terminology can touch.
//!
//! The dictionary matches names by the words of a text alone, so a text keeps its links unless one of these holds:
//!
//! - it contains all words of a name of a changed concept, old or new, or of other words for it, in any order and inflection;
//! - it contains a short form of the sense inventory that may stand for such a name;
//! - it contains a word that is a name by itself, and whose number of names has changed: that number is a feature;
//! - in short lists, phrases of it stand for names, as words weigh by their number of concepts;
//! - it contains a word that occurs in names of only one of the two versions: being known is a feature of its neighbours.
//!
//! Then the links of [`super::DictionaryAnnotator`] are equal in both versions. For other linkers, which compare mentions
//! with similar names or read names as vectors, the test is an approximation.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use super::root_of;
use super::scan::{ScanScratch, Word, words};
use super::senses::{Hashed, SenseInventory};
use crate::kb::lexicon::{hash_form, hash_token};
use crate::kb::subset::KbView;
use crate::kb::{ConceptId, KnowledgeBase};
use crate::link::rephrased::phrasings;
use crate::link::short_list::{MAX_CONCEPTS, ShortList};
use crate::text::analysis::Analysis;
use crate::text::normalise::{fold, fold_token_into};
use crate::text::tokens::Gap;
use crate::text::words::is_prefix;

/// The differences between two versions of a knowledge base that links can depend on.
#[derive(Debug, Default)]
pub struct ChangedNames {
    /// Root hashes of the words of changed names, by the rarest of them.
    bags: HashMap<u64, Vec<Vec<u64>>, Hashed>,
    /// Roots that occur in names of only one version.
    roots: HashSet<u64, Hashed>,
    /// Canonical words with changed counts that are names or short forms by themselves.
    lone: HashSet<u64, Hashed>,
    /// Both versions, if they are short lists.
    lists: Option<[ShortList; 2]>,
    /// Why every text may be touched, if so.
    everything: Option<&'static str>,
    /// Changed concepts of the old version.
    concepts: Vec<ConceptId>,
    n_changed: usize,
}

impl ChangedNames {
    /// Compares two versions; `inventory` is the one used for linking.
    pub fn between(old: &KnowledgeBase, new: &KnowledgeBase, inventory: &SenseInventory) -> ChangedNames {
        let mut changed = ChangedNames { everything: global_change(old, new), ..ChangedNames::default() };
        if old.container().fingerprint() == new.container().fingerprint() {
            return changed;
        }
        let list = |kb: &KnowledgeBase| ShortList::of(KbView { kb, subset: None });
        changed.lists = list(old).zip(list(new)).map(|(old, new)| [old, new]);
        let mut bags: HashSet<Vec<u64>> = HashSet::new();
        changed.compare_concepts(old, new, &mut bags);
        // Short forms that may stand for a changed name count as its names.
        let bag = |name: &str| bag_of(&fold(name));
        let of_forms: Vec<Vec<u64>> = inventory
            .all()
            .filter(|(_, sense)| sense.long_forms().any(|long| bags.contains(&bag(long))))
            .map(|(form, _)| bag(form))
            .collect();
        bags.extend(of_forms);
        changed.compare_vocabularies(old, new, inventory);
        let n_forms = |root: &u64| new.roots().get(*root).iter().count() + old.roots().get(*root).iter().count();
        let frequency = word_counts(&bags);
        for bag in bags.into_iter().filter(|bag| !bag.is_empty()) {
            let rarest = bag.iter().min_by_key(|root| (frequency[*root], n_forms(root))).copied();
            changed.bags.entry(rarest.expect("bags have words")).or_default().push(bag);
        }
        changed
    }

    fn compare_concepts(&mut self, old: &KnowledgeBase, new: &KnowledgeBase, bags: &mut HashSet<Vec<u64>>) {
        let mut add = |kb: &KnowledgeBase, concept: ConceptId| {
            for name in kb.names(concept).map(|name| kb.name(name)) {
                bags.insert(bag_of(&fold(name)));
                bags.extend(phrasings(name).iter().map(|other| bag_of(other)));
            }
        };
        let (mut olds, mut news) = (old.concepts().peekable(), new.concepts().peekable());
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(was), Some(is)) => old.id(*was).cmp(new.id(*is)),
            };
            let was = if order.is_le() { olds.next() } else { None };
            let is = if order.is_ge() { news.next() } else { None };
            if let (Some(was), Some(is)) = (was, is)
                && is_same(old, was, new, is)
            {
                continue;
            }
            self.n_changed += 1;
            was.into_iter().for_each(|was| add(old, was));
            is.into_iter().for_each(|is| add(new, is));
            self.concepts.extend(was);
        }
    }

    fn compare_vocabularies(&mut self, old: &KnowledgeBase, new: &KnowledgeBase, inventory: &SenseInventory) {
        let forms: HashSet<u64> = inventory.all().map(|(form, _)| hash_token(&fold(form)).canonical).collect();
        let is_name = |root: u64| !new.roots().get(root).is_empty() || !old.roots().get(root).is_empty();
        for (one, other) in [(old, new), (new, old)] {
            for row in 0..one.n_tokens() {
                let (hash, root) = (one.token_hash_at(row), one.token_root(row));
                let n_other = other.token_row(hash).map_or(0, |row| other.token_df(row));
                if one.token_df(row) != n_other && (is_name(root) || forms.contains(&hash)) {
                    self.lone.insert(hash);
                }
                if !other.knows_root(root) {
                    self.roots.insert(root);
                }
            }
        }
    }

    /// Whether the links of a text may differ between the versions.
    pub fn may_touch(&self, kb: &KnowledgeBase, text: &str) -> bool {
        if self.everything.is_some() {
            return true;
        }
        let mut scratch = ScanScratch::default();
        let words = words(kb, &Analysis::of_text(text), &mut scratch);
        if self.lists.iter().flatten().any(|list| !list.phrases(text, &words).is_empty()) {
            return true;
        }
        let hashes = words.iter().map(|word| word.hashes).chain(joined(text, &words));
        let mut roots: HashSet<u64, Hashed> = HashSet::default();
        for hashes in hashes {
            if self.lone.contains(&hashes.canonical) || self.roots.contains(&hashes.root) {
                return true;
            }
            roots.insert(hashes.root);
        }
        let has_all = |bag: &Vec<u64>| bag.iter().all(|root| roots.contains(root));
        roots.iter().any(|root| self.bags.get(root).is_some_and(|bags| bags.iter().any(has_all)))
    }

    /// Why every text may be touched; `None` if that is not so.
    pub fn everything(&self) -> Option<&'static str> {
        self.everything
    }

    /// Concepts of the old version that are changed or gone.
    pub fn concepts(&self) -> &[ConceptId] {
        &self.concepts
    }

    /// Number of concepts that are new, changed or gone.
    pub fn n_changed(&self) -> usize {
        self.n_changed
    }
}

/// A difference that concerns every text.
fn global_change(old: &KnowledgeBase, new: &KnowledgeBase) -> Option<&'static str> {
    let is_short_list = |kb: &KnowledgeBase| kb.n_concepts() <= MAX_CONCEPTS;
    let root_id = |kb: &KnowledgeBase| root_of(kb).map(|root| kb.id(root).to_owned());
    if (old.meta().n_scoped_names > 0) != (new.meta().n_scoped_names > 0) {
        Some("only one of the two versions tells exact from related synonyms")
    } else if old.meta().added_prefixes != new.meta().added_prefixes {
        Some("ids have another prefix")
    } else if is_short_list(old) != is_short_list(new) {
        Some("only one of the two versions is a short list")
    } else if root_id(old) != root_id(new) {
        Some("the hierarchy has another root")
    } else {
        None
    }
}

/// Whether everything that links depend on is equal, in the same order.
fn is_same(old: &KnowledgeBase, was: ConceptId, new: &KnowledgeBase, is: ConceptId) -> bool {
    let old_names = old.names(was).map(|name| (old.name(name), old.scope(name)));
    let new_names = new.names(is).map(|name| (new.name(name), new.scope(name)));
    old.preferred_name(was) == new.preferred_name(is)
        && old_names.eq(new_names)
        && old.types(was).eq(new.types(is))
        && old.alternative_ids(was).eq(new.alternative_ids(is))
}

/// The distinct roots of the words of a folded name, sorted.
fn bag_of(form: &str) -> Vec<u64> {
    let hashes = hash_form(form).into_iter().filter(|token| !token.linking);
    let mut roots: Vec<u64> = hashes.map(|token| token.root).collect();
    roots.sort_unstable();
    roots.dedup();
    roots
}

/// Number of bags with each root.
fn word_counts(bags: &HashSet<Vec<u64>>) -> HashMap<u64, usize> {
    let mut counts = HashMap::new();
    for root in bags.iter().flatten() {
        *counts.entry(*root).or_insert(0) += 1;
    }
    counts
}

/// Hashes of prefixes joined with the word after their hyphen, as names may spell them: `pre-frontal`.
fn joined<'a>(text: &'a str, words: &'a [Word]) -> impl Iterator<Item = crate::kb::lexicon::TokenHashes> + 'a {
    words.windows(2).filter_map(move |pair| {
        let [prefix, word] = pair else { return None };
        if word.token.before != Gap::Hyphen || !is_prefix(prefix.token.span.of(text)) {
            return None;
        }
        let mut folded = String::new();
        fold_token_into(prefix.token.span.of(text), &mut folded);
        fold_token_into(word.token.span.of(text), &mut folded);
        Some(hash_token(&folded))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::accept::AcceptModel;
    use super::super::{DictionaryAnnotator, RecogniseConfig};
    use super::*;
    use crate::kb::format::Meta;
    use crate::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};
    use crate::link::Annotator;
    use crate::text::Document;

    fn kb(concepts: &[(&str, &[&str])]) -> Arc<KnowledgeBase> {
        let mut builder = KnowledgeBaseBuilder::new();
        for (id, names) in concepts {
            let scope = |row| if row == 0 { Scope::Preferred } else { Scope::Exact };
            let names = names.iter().enumerate();
            let names = names.map(|(row, name)| NameRecord { text: (*name).to_owned(), scope: scope(row) }).collect();
            builder.add(ConceptRecord { id: (*id).to_owned(), names, ..ConceptRecord::default() }).unwrap();
        }
        Arc::new(KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test.kb").unwrap())
    }

    const OLD: &[(&str, &[&str])] = &[
        ("T:1", &["Multiple sclerosis"]),
        ("T:2", &["Heart failure", "cardiac failure"]),
        ("T:3", &["Breast neoplasms", "breast cancer"]),
        ("T:4", &["Failure"]),
        ("T:5", &["Aspirin"]),
        ("T:6", &["Mitral stenosis"]),
    ];

    fn check(new: &[(&str, &[&str])], text: &str, touched: bool) {
        let (old, new) = (kb(OLD), kb(new));
        let changed = ChangedNames::between(&old, &new, &SenseInventory::embedded());
        assert_eq!(changed.may_touch(&new, text), touched, "{text}");
    }

    #[test]
    fn texts_with_changed_names_are_touched() {
        let new = [&OLD[1..], &[("T:9", &["Ovarian neoplasms", "ovarian cancer"] as &[&str])]].concat();
        // Gone, by its name, in another order, and by its short form.
        check(&new, "Multiple sclerosis was found.", true);
        check(&new, "Sclerosis, multiple.", true);
        check(&new, "She has MS.", true);
        // New, also in a coordination.
        check(&new, "A case of ovarian cancer.", true);
        check(&new, "Breast and ovarian cancers.", true);
        check(&new, "Aspirin for cardiac failure.", false);
        check(&new, "Multiple doses of aspirin.", true);
        assert!(OLD.len() == 6);
    }

    #[test]
    fn counts_of_words_that_are_names_touch_texts() {
        let new = [OLD, &[("T:9", &["Renal failure"] as &[&str])]].concat();
        check(&new, "The treatment was a failure.", true);
        check(&new, "Aspirin.", false);
    }

    #[test]
    fn equal_versions_touch_nothing() {
        check(OLD, "Multiple sclerosis and heart failure.", false);
    }

    const NAMES: [&str; 12] = [
        "heart failure",
        "failure",
        "sclerosis",
        "multiple sclerosis",
        "MS",
        "pre-frontal cortex",
        "prefrontal cortex",
        "cortex",
        "breast cancer",
        "ovarian cancer",
        "cancer of the breast",
        "L-dopa",
    ];
    const PIECES: [&str; 14] = [
        "heart failure",
        "failure of the heart",
        "MS",
        "multiple sclerosis (MS)",
        "pre-frontal",
        "cortex",
        "breast and ovarian cancer",
        "cancers",
        "L-dopa-induced",
        "the",
        "patients, with",
        "sclerosis",
        "aspirin",
        "was treated.",
    ];

    proptest! {
        /// The law of the module: what is not touched is linked as before.
        #[test]
        fn untouched_texts_keep_their_links(
            old in proptest::collection::vec(proptest::sample::subsequence(NAMES.to_vec(), 1..3), 2..5),
            new in proptest::collection::vec(proptest::sample::subsequence(NAMES.to_vec(), 1..3), 1..3),
            pieces in proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 1..8),
        ) {
            let ids = ["T:1", "T:2", "T:3", "T:4", "T:5"];
            let concepts = |all: &[Vec<&'static str>]| -> Vec<(&'static str, Vec<&'static str>)> {
                ids.into_iter().zip(all.iter().cloned()).collect()
            };
            let mut other = old.clone();
            other.splice(0..new.len().min(old.len()), new);
            let build = |all: Vec<(&'static str, Vec<&'static str>)>| {
                let borrowed: Vec<(&str, &[&str])> = all.iter().map(|(id, names)| (*id, names.as_slice())).collect();
                kb(&borrowed)
            };
            let (old, new) = (build(concepts(&old)), build(concepts(&other)));
            let text = pieces.join(" ");
            let changed = ChangedNames::between(&old, &new, &SenseInventory::embedded());
            if !changed.may_touch(&new, &text) {
                let links = |kb: &Arc<KnowledgeBase>| {
                    let linker = DictionaryAnnotator::new(kb.clone(), AcceptModel::embedded(), RecogniseConfig::default());
                    let document = Document { text: text.clone(), ..Document::default() };
                    let linked = linker.annotate(&[Analysis::new(&document)]).unwrap().remove(0);
                    let shown = linked.iter().map(|one| {
                        let ids: Vec<String> = one.link.candidates.iter().map(|c| format!("{} {}", kb.id(c.concept), c.p_link)).collect();
                        format!("{:?} {} {ids:?}", one.mention.spans, one.p_both)
                    });
                    shown.collect::<Vec<_>>()
                };
                prop_assert_eq!(links(&old), links(&new));
            }
        }
    }
}
