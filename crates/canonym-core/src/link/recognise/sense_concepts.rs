//! The concepts that a knowledge base has for the senses of the inventory.

use std::fmt;
use std::sync::{Arc, OnceLock};

use super::accept::case_agrees;
use super::scan::{ScanScratch, Tier, lookup, words};
use super::senses::{Sense, SenseInventory};
use crate::kb::lexicon::hash_token;
use crate::kb::subset::KbView;
use crate::kb::{ConceptId, FormId, KnowledgeBase, NameId, Scope};
use crate::text::analysis::Analysis;
use crate::text::normalise::fold;
use crate::text::words::is_linking_word;

/// A concept with the name that matched.
pub(super) type Named = (ConceptId, NameId);

type Find = dyn Fn(&str) -> Option<Named> + Send + Sync;

/// Finds the concept of a terminology for a name that it lacks, as by other names that another terminology has for it.
#[derive(Clone)]
pub struct OtherNames(Arc<Find>);

impl OtherNames {
    /// `find` gives the concept for a name, and the name that the terminology has for it.
    pub fn new(find: impl Fn(&str) -> Option<(ConceptId, NameId)> + Send + Sync + 'static) -> OtherNames {
        OtherNames(Arc::new(find))
    }
}

impl fmt::Debug for OtherNames {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("OtherNames")
    }
}

/// Cache of the concepts of the senses and forms in one knowledge base, by the number of the sense, or of the first sense of a form.
#[derive(Debug, Default)]
pub struct SenseConcepts {
    other_names: Option<OtherNames>,
    of_long_forms: Vec<OnceLock<Vec<Named>>>,
    of_senses: Vec<OnceLock<Vec<Named>>>,
    of_forms: Vec<OnceLock<Vec<Named>>>,
    // By the number of the sense.
    is_alike: Vec<OnceLock<bool>>,
    is_inflected: Vec<OnceLock<bool>>,
    /// The roots of the words of its long forms.
    words: Vec<OnceLock<Vec<u64>>>,
}

impl SenseConcepts {
    /// An empty cache; a sense whose long forms are no names is looked up in `other_names`.
    pub fn new(inventory: &SenseInventory, other_names: Option<OtherNames>) -> SenseConcepts {
        fn empty<T>(n: usize) -> Vec<OnceLock<T>> {
            (0..n).map(|_| OnceLock::new()).collect()
        }
        let n = inventory.n_senses();
        SenseConcepts {
            other_names,
            of_long_forms: empty(n),
            of_senses: empty(n),
            of_forms: empty(n),
            is_alike: empty(n),
            is_inflected: empty(n),
            words: empty(n),
        }
    }

    /// The given concept, or those of the first long form that is a name, or else the concept of one that has another name.
    fn of_long_forms(&self, view: KbView<'_>, sense: &Sense) -> &[Named] {
        self.of_long_forms[sense.number()].get_or_init(|| match sense.concept() {
            Some(given) => vec![given],
            None => self.found_for(view, sense),
        })
    }

    fn found_for(&self, view: KbView<'_>, sense: &Sense) -> Vec<Named> {
        let other = || self.other_names.iter().find_map(|other| sense.long_forms().find_map(|long| other.0(long)));
        match concepts_of(view, sense) {
            found if found.is_empty() => other().into_iter().collect(),
            found => found,
        }
    }

    /// The concepts of a sense among those of its form: `Turkey`, the country, is not Turkeys if that is a sense of its own.
    pub(super) fn of_sense(&self, view: KbView<'_>, sense: &Sense, senses: &[Sense]) -> &[Named] {
        let has_exactly = |sense: &Sense, name: NameId| {
            let name = fold(view.kb.name(name));
            sense.long_forms().any(|long| fold(long) == name)
        };
        let is_taken = |named: &&Named| {
            let others = senses.iter().filter(|other| other.number() != sense.number());
            let mut same = others.flat_map(|other| {
                let found = self.of_long_forms(view, other).iter();
                found.filter(|(concept, _)| *concept == named.0).map(move |(_, name)| (other, *name))
            });
            same.any(|(other, name)| has_exactly(other, name)) && !has_exactly(sense, named.1)
        };
        self.of_senses[sense.number()]
            .get_or_init(|| self.of_long_forms(view, sense).iter().filter(|named| !is_taken(named)).copied().collect())
    }

    /// The concepts that have the form as a name, whatever its case.
    pub(super) fn of_form(&self, view: KbView<'_>, form: &str, senses: &[Sense]) -> &[Named] {
        let find = || {
            let known = view.kb.find_form(&fold(form));
            let names = known.into_iter().flat_map(|known| view.kb.names_of_form(known));
            names.map(|name| (view.kb.concept_of(name), name)).collect()
        };
        senses.first().map_or(&[], |first| self.of_forms[first.number()].get_or_init(find))
    }

    /// Whether a long form of the sense is an inflection of the form: `Humans`.
    pub(super) fn is_inflected(&self, form: &str, sense: &Sense) -> bool {
        let word = |text: &str| hash_token(&fold(text)).canonical;
        *self.is_inflected[sense.number()].get_or_init(|| sense.long_forms().any(|long| word(long) == word(form)))
    }

    /// Whether a concept with the form as a name is likely to be the sense: a long form is the form and its kind (`Vero Cells`), or shares a
    /// content word with another name of the concept, or with its type, such as that of cell lines.
    pub(super) fn shares_words(&self, kb: &KnowledgeBase, form: &str, (concept, name): Named, sense: &Sense) -> bool {
        // `Vero` in `Vero Cells`, but not `CT` in `CT scan`.
        let form = fold(form);
        let is_kind = |long: &str| {
            let long = fold(long);
            let rest = long.strip_prefix(&*form).and_then(|rest| rest.strip_prefix(' '));
            rest.is_some_and(|rest| KINDS.contains(&rest))
        };
        if sense.long_forms().any(is_kind) {
            return true;
        }
        let of = |text: &str| {
            let folded = fold(text);
            let words = folded.split(' ').filter(|word| word.len() >= MIN_STEM && !is_linking_word(word));
            words.map(|word| hash_token(word).root).collect::<Vec<u64>>()
        };
        let of_sense = self.words[sense.number()].get_or_init(|| sense.long_forms().flat_map(of).collect());
        let is_shared = |text: &str| of(text).iter().any(|word| of_sense.contains(word));
        let others = kb.names(concept).filter(|other| *other != name);
        others.take(MAX_NAMES).any(|other| is_shared(kb.name(other)))
            || kb.types(concept).any(|of_concept| is_shared(&words_apart(of_concept)))
    }

    /// Whether a long form of the sense has the form, or a word of its stem.
    pub(super) fn is_alike(&self, form: &str, sense: &Sense) -> bool {
        *self.is_alike[sense.number()].get_or_init(|| sense.long_forms().any(|long| is_alike(form, long)))
    }
}

/// The name of a type as words: `Cell Line` for `CellLine`.
fn words_apart(name: &str) -> String {
    let mut apart = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_uppercase() && apart.ends_with(char::is_lowercase) {
            apart.push(' ');
        }
        apart.push(letter);
    }
    apart
}

/// Whether a long form has the word, or one of the same stem: embryonic, Embryo, Mammalian. `mets` is not short for Metastasis.
fn is_alike(form: &str, long: &str) -> bool {
    let n_shared = |word: &str| {
        form.chars().zip(word.chars().flat_map(char::to_lowercase)).take_while(|(one, other)| one == other).count()
    };
    let n = form.chars().count();
    let is_stem = |word: &str| {
        n_shared(word) == n && word.chars().count() == n || n_shared(word) >= MIN_STEM.max(n.saturating_sub(3))
    };
    long.split(|letter: char| !letter.is_alphanumeric()).any(is_stem)
}

/// Minimum number of letters that two words of one stem share.
const MIN_STEM: usize = 4;

/// Words after a symbol that say what kind of thing it names.
const KINDS: [&str; 6] = ["cell", "cells", "gene", "protein", "proteins", "receptor"];

/// Maximum number of names of a concept that are compared with a sense.
const MAX_NAMES: usize = 64;

/// The concepts of a sense: those of its first long form that is a name.
pub(super) fn concepts_of(view: KbView<'_>, sense: &Sense) -> Vec<(ConceptId, NameId)> {
    let kb = view.kb;
    let mut scratch = ScanScratch::default();
    for long in sense.long_forms() {
        let long_words = words(kb, &Analysis::of_text(long), &mut scratch);
        let Some(found) = lookup(view, long, &long_words) else { continue };
        let mut concepts: Vec<(ConceptId, NameId)> = Vec::new();
        // `cell attachment` is no attachment cell, but `Fibers, Muscle` are muscle fibers.
        let has_comma = |form: FormId| kb.names_of_form(form).any(|name| kb.name(name).contains(','));
        let is_inverted = |form: FormId| long.contains(',') || has_comma(form);
        let agrees =
            |(form, tier): &&(FormId, Tier)| *tier >= Tier::Ordered || *tier == Tier::Permuted && is_inverted(*form);
        // `Immunoglobulin A` is not named Immunoglobulin.
        let best = found.forms.iter().map(|(_, tier)| *tier).max();
        let is_best = |(_, tier): &&(FormId, Tier)| Some(*tier) == best || best != Some(Tier::Folded);
        for (form, _) in found.forms.iter().filter(agrees).filter(is_best) {
            let names = kb.names_of_form(*form).map(|name| (kb.concept_of(name), name));
            // Preferred names come before synonyms of other concepts.
            let mut names: Vec<(ConceptId, NameId)> =
                names.filter(|(_, name)| case_agrees(kb.name(*name), long)).collect();
            names.sort_by_key(|(_, name)| kb.scope(*name) != Scope::Preferred);
            concepts.extend(names.into_iter().filter(|(concept, _)| view.has(*concept)));
        }
        if !concepts.is_empty() {
            return concepts;
        }
    }
    Vec::new()
}
