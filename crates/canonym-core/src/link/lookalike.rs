//! Look-alike names: cefuroxime is not cefotaxime, although most letters agree.
//!
//! Similarity by n-grams or embeddings proposes candidates but does not make two names equal. A rare word of a mention
//! must occur in the name: by its root, by its parts (`nephropathy`, `kidney disease`), or as a misspelling; a word of
//! three or four letters may also abbreviate it (`htn`, hypertension). A misspelling is an unknown word within a small
//! edit distance (keyboard and phonetic errors) of a word of the name.
//! Known words are those of open terminologies, stored in `assets/known-words.bin` as a Bloom filter (Bloom 1970).

use std::collections::BTreeSet;
use std::sync::LazyLock;

use xxhash_rust::xxh3::xxh3_64;

use super::Link;
use super::recognise::accept::is_acronym;
use super::recognise::common::frequency;
use super::recognise::senses::SenseInventory;
use super::slips::slips;
use crate::kb::lexicon::token_hash;
use crate::kb::{ConceptId, KnowledgeBase};
use crate::text::normalise::{canonical, fold, root};
use crate::text::variants::roman_numeral;
use crate::text::words::{WordKind, is_linking_word, is_prefix, kind_of, noun_of, parts_of};

const KNOWN: &[u8] = include_bytes!("../../assets/known-words.bin");

/// Number of hash functions of the Bloom filter.
const N_HASHES: u64 = 7;

/// Words in more than this many of a thousand abstracts do not count as rare.
const COMMON: u16 = 5;

/// Words in more than this many of a thousand abstracts are general.
const GENERAL: u16 = 20;

/// Minimum length of a misspelled word; shorter ones cannot be told from other words.
const MIN_LENGTH: usize = 5;

/// Words of names that say what kind of concept it is, as in `kidney structure (body structure)`.
const HEADS: [&str; 9] =
    ["structure", "finding", "procedure", "organism", "substance", "product", "entire", "unspecified", "atom"];

/// Prefixes of words that mean opposites.
const OPPOSITES: [(&str, &str); 10] = [
    ("hyper", "hypo"),
    ("hyper", "a"),
    ("hyper", "eu"),
    ("hypo", "eu"),
    ("eu", "a"),
    ("eu", "dys"),
    ("a", ""),
    ("an", ""),
    ("un", ""),
    ("non", ""),
];

/// Modifiers that make a narrower concept of a disorder.
const NARROWING: [&str; 7] = ["benign", "chronic", "invasive", "malignant", "recurrent", "resistant", "subacute"];

/// The last word of names of measurements.
const MEASUREMENT: &str = "measurement";

/// Words of mentions that may be measurements.
const MEASURED: [&str; 10] =
    ["amount", "assay", "concentration", "count", "index", "level", "measurement", "rate", "ratio", "test"];

/// Prefixes of adjectives of degree.
const DEGREES: [&str; 3] = ["hyper", "hypo", "iso"];

/// Prefixes that make a word of a word of the terminology.
const DERIVING: [&str; 8] = ["anti", "co", "non", "post", "pre", "re", "super", "un"];

/// Minimum length of a word of the terminology after such a prefix.
const MIN_LENGTH_DERIVED: usize = 7;

/// Minimum length of a short word that a name must contain or abbreviate.
const MIN_LENGTH_RARE: usize = 3;

/// A Bloom filter of words: no false negatives, few false positives.
#[derive(Debug, Clone)]
pub struct WordFilter<'a>(&'a [u8]);

impl<'a> WordFilter<'a> {
    /// The embedded filter of the words of open terminologies.
    pub fn embedded() -> &'static WordFilter<'static> {
        static EMBEDDED: LazyLock<WordFilter<'static>> = LazyLock::new(|| WordFilter(KNOWN));
        &EMBEDDED
    }

    /// The bytes of a filter that contains `words`.
    pub fn build<'b>(words: impl Iterator<Item = &'b str>, n_bytes: usize) -> Vec<u8> {
        let mut bytes = vec![0; n_bytes];
        for word in words {
            for bit in bits(word, n_bytes) {
                bytes[bit / 8] |= 1 << (bit % 8);
            }
        }
        bytes
    }

    /// Whether the filter contains the word; the false-positive rate is about 1 %.
    pub fn has(&self, word: &str) -> bool {
        !self.0.is_empty() && bits(word, self.0.len()).all(|bit| self.0[bit / 8] >> (bit % 8) & 1 == 1)
    }
}

fn bits(word: &str, n_bytes: usize) -> impl Iterator<Item = usize> {
    let hash = xxh3_64(word.as_bytes());
    let (first, step) = (hash & 0xffff_ffff, hash >> 32 | 1);
    (0..N_HASHES).map(move |n| (first.wrapping_add(n.wrapping_mul(step)) % (8 * n_bytes as u64)) as usize)
}

/// Whether a folded word occurs in `kb`, in an open terminology, or in general language, or is a prefix of degree and such a word:
/// `hypodense`. Other prefixes make words of long words of `kb`: `reinfection`.
pub fn is_known_word(kb: &KnowledgeBase, word: &str) -> bool {
    let is_known = |word: &str| {
        frequency(word) > 0 || kb.token_row(token_hash(&canonical(word))).is_some() || WordFilter::embedded().has(word)
    };
    let rests = DEGREES.iter().filter_map(|prefix| word.strip_prefix(prefix));
    let is_of_kb = |word: &str| kb.token_row(token_hash(&canonical(word))).is_some();
    let derived = DERIVING.iter().filter_map(|prefix| word.strip_prefix(prefix));
    is_known(word)
        || rests.filter(|rest| rest.len() >= MIN_LENGTH).any(is_known)
        || derived.filter(|rest| rest.len() >= MIN_LENGTH_DERIVED).any(is_of_kb)
}

/// Whether a rare word, number or symbol of the mention has no counterpart in the name, so the two only look alike. Other names of the
/// concept, if it is given, may have the counterpart.
pub fn only_looks_alike(kb: &KnowledgeBase, mention: &str, name: &str, concept: Option<ConceptId>) -> bool {
    let is_symbol = is_acronym(mention.trim());
    let hyphened = mention.split_whitespace().filter_map(|word| word.split_once('-'));
    let prefixes: Vec<String> =
        hyphened.filter(|(prefix, _)| is_prefix(prefix)).map(|(prefix, _)| prefix.to_lowercase()).collect();
    // The letters of `Pax6` and `IL-6` are no words, however common.
    let with_digits = mention.split_whitespace().filter(|word| word.contains(|letter: char| letter.is_ascii_digit()));
    let symbols: Vec<String> = with_digits.map(fold).collect();
    let is_in_symbol = |word: &str| symbols.iter().flat_map(|symbol| symbol.split(' ')).any(|part| part == word);
    let is_capitals = is_acronym(name.trim());
    let is_lower = mention.chars().any(char::is_lowercase) && !mention.contains(|letter: char| !letter.is_lowercase());
    let (mention, name) = (fold(mention), fold(name));
    let name_words: Vec<&str> = name.split(' ').filter(|word| !word.is_empty()).collect();
    let mention_words: Vec<&str> = mention.split(' ').filter(|word| !word.is_empty()).collect();
    if name_words.concat() == mention_words.concat() {
        return false;
    }
    let same = |one: &str, other: &str| {
        let (one, other) = (canonical(one), canonical(other));
        root(&one) == root(&other) && ends_alike(&one, &other) || is_noun_of(&one, &other) || is_noun_of(&other, &one)
    };
    // A coined word of one concept is enough: `osteocal` for OsteoCal D chewable tablets.
    let is_coined = || match (mention_words.as_slice(), concept) {
        ([word], Some(concept)) => is_coined(kb, word, concept),
        _ => false,
    };
    let is_other = |word: &&str| {
        let is_numbered = word.contains(|letter: char| letter.is_ascii_digit())
            || roman_numeral(word.trim_end_matches(['a', 'b'])).is_some_and(|number| number > 1);
        let is_of_other_name = || {
            let names = concept.into_iter().flat_map(|concept| kb.names(concept).take(N_NAMES));
            names.into_iter().any(|name| fold(kb.name(name)).split(' ').any(|other| same(other, word)))
        };
        let matches = name_words.iter().any(|other| same(other, word)) || is_of_other_name();
        let is_descriptive = || parts_of(&canonical(word)).is_some() || noun_of(&canonical(word)).is_some();
        let is_misspelt = || name_words.iter().any(|other| is_misspelling(kb, word, other));
        let stands_for = || {
            let is_slip = |other: &&str| is_short_misspelling(kb, word, other);
            is_shorthand(word, &name_words) || name_words.iter().any(is_slip)
        };
        !matches
            && (is_symbol
                || is_numbered
                || is_rare(word) && !is_descriptive() && !is_misspelt()
                || (is_rare_short(word) || is_in_symbol(word)) && !is_descriptive() && !stands_for())
    };
    // One word is not short for a longer name: `laminin` is not laminin receptor, `diagnosis` not prenatal diagnosis. Disorder words and
    // modifiers may be left out.
    let is_part = |word: &str| {
        let form = canonical(word);
        let is_general = frequency(word) > GENERAL && kind_of(&form) == WordKind::Plain;
        let is_related = |other: &str| {
            let other_form = canonical(other);
            same(other, word)
                || noun_of(&form).is_some_and(|noun| root(&noun) == root(&other_form))
                || noun_of(&other_form).is_some_and(|noun| root(&noun) == root(&form))
                || parts_of(&form).is_some_and(|parts| parts.iter().any(|part| **part == *other_form))
                || is_misspelling(kb, word, other)
                || HEADS.contains(&&*other_form)
        };
        let names_more = |other: &&str| {
            let form = canonical(other);
            // `test` is no toxicity test.
            let is_more = kind_of(&form) == WordKind::Plain || NARROWING.contains(&&*form) || is_general;
            !is_linking_word(other) && is_more && !is_related(other)
        };
        let is_word = word.len() >= MIN_LENGTH && WordFilter::embedded().has(word) || frequency(word) > COMMON;
        // `copd` is no part of its long form.
        let abbreviates = || {
            is_rare_short(word) && !name_words.iter().any(|other| same(other, word)) && is_shorthand(word, &name_words)
        };
        (is_word || name_words.len() > 1) && name_words.iter().any(names_more) && !abbreviates()
    };
    let is_opposite = mention_words.len() == 1
        && name_words.len() == 1
        && are_opposites(mention_words[0], name_words[0])
        && !name_words.contains(&mention_words[0]);
    let is_shortened = match mention_words.as_slice() {
        [word] => !is_symbol && word.chars().all(char::is_alphabetic) && is_part(word) && !is_coined(),
        _ => false,
    };
    // `ten` is not TENS, `cache` not CACH, and `C3` not C3a.
    let is_inflected = || canonical(&mention) == canonical(&name);
    let is_common = !is_symbol
        && is_capitals
        && mention_words.len() == 1
        && (is_lower && !is_inflected() || frequency(&mention) > 0);
    let is_unlettered = name_words.split_last().is_some_and(|(last, rest)| {
        last.len() == 1 && last.chars().all(char::is_alphabetic) && rest == mention_words.as_slice() && !is_coined()
    });
    // `prolactin` is no prolactin measurement.
    let is_measured = name_words.len() > 1 && name_words.last().is_some_and(|last| canonical(last) == MEASUREMENT);
    let is_unmeasured = is_measured && mention_words.iter().all(|word| !MEASURED.contains(&&*canonical(word)));
    // `cerebellar peduncle` is no cerebral peduncle.
    let mut pairs = mention_words.iter().zip(&name_words).filter(|(one, other)| !same(one, other));
    let is_modified = mention_words.len() == name_words.len()
        && mention_words.len() > 1
        && pairs.next().is_some_and(|(one, other)| {
            is_adjective(one) && is_adjective(other) && !is_misspelling(kb, one, other) && pairs.next().is_none()
        });
    // `non-diabetic` negates diabetes; for `post-operative pain` the prefix occurs in `Pain, Postoperative`.
    let mut prefixes = prefixes.iter();
    mention_words.iter().any(is_other)
        || is_opposite
        || is_shortened
        || is_common
        || is_unlettered
        || is_modified
        || is_unmeasured
        || prefixes.any(|prefix| name_words.iter().all(|other| !other.starts_with(prefix.as_str())))
}

/// Whether a mention is an ordinary lower-case word with the same letters as an acronym: `cold` is not COLD, but `copd` is COPD.
pub fn is_word_not_acronym(mention: &str, name: &str) -> bool {
    let senses = SenseInventory::embedded();
    let is_ordinary =
        |word: &str| frequency(word) > 0 || senses.senses(word).iter().any(|sense| sense.long_forms().next().is_none());
    let is_lower = !mention.contains(|letter: char| !letter.is_lowercase());
    is_lower && is_acronym(name.trim()) && fold(name) == *mention && is_ordinary(mention)
}

/// Whether a query is a misspelled name: each word equals the word of the name or is a misspelling of it.
pub fn is_misspelt_name(kb: &KnowledgeBase, query: &str, name: &str) -> bool {
    let (query, name) = (fold(query), fold(name));
    let mut n_misspelt = 0;
    let agrees = |(one, other): (&str, &str)| {
        let is_misspelt = one != other && (is_misspelling(kb, one, other) || is_short_misspelling(kb, one, other));
        n_misspelt += usize::from(is_misspelt);
        one == other || is_misspelt
    };
    query.split(' ').count() == name.split(' ').count()
        && query.split(' ').zip(name.split(' ')).all(agrees)
        && n_misspelt > 0
}

/// Checks the first candidate: a look-alike is left unlinked, a misspelling raises the probability.
pub fn check_first(kb: &KnowledgeBase, name: &str, link: &mut Link) {
    let Some(first) = link.candidates.first_mut() else { return };
    let Some(first_name) = first.name.map(|form| kb.name(form)) else { return };
    if only_looks_alike(kb, name, first_name, Some(first.concept)) {
        link.nil = true;
        link.candidates.iter_mut().for_each(|candidate| candidate.p_link *= DISTRUST);
    } else if is_misspelt_name(kb, name, first_name) {
        first.p_link = first.p_link.max(MISSPELT);
    }
}

/// Maximum number of names of a concept whose words are compared.
const N_NAMES: usize = 8;

/// Whether `noun` is the noun of an adjective or participle: `headedness`, headed.
pub(super) fn is_noun_of(noun: &str, adjective: &str) -> bool {
    adjective.len() >= MIN_LENGTH - 1 && noun.strip_suffix("ness").is_some_and(|rest| rest == adjective)
}

/// Whether no open terminology has a folded word, which is not general either, as of brands.
pub(super) fn is_coined_word(word: &str) -> bool {
    word.len() >= MIN_LENGTH
        && word.chars().all(char::is_alphabetic)
        && frequency(word) == 0
        && !WordFilter::embedded().has(word)
}

/// Whether a folded word is coined, as brands are: no open terminology has it, and the knowledge base only in names of the concept.
fn is_coined(kb: &KnowledgeBase, word: &str, concept: ConceptId) -> bool {
    let form = canonical(word);
    let Some(row) = kb.token_row(token_hash(&form)).filter(|_| is_coined_word(word)) else { return false };
    let forms: BTreeSet<String> = kb.names(concept).map(|name| fold(kb.name(name))).collect();
    forms.iter().filter(|name| name.split(' ').any(|other| canonical(other) == form)).count()
        >= kb.token_df(row) as usize
}

/// Minimum score of a misspelled name.
const MISSPELT: f32 = 0.6;

/// Factor on the probabilities of candidates that only look alike.
const DISTRUST: f32 = 0.1;

/// Whether both words of one stem end as the same kind of disorder or operation, or neither does: `laminitis` is no form of `lamins`.
fn ends_alike(one: &str, other: &str) -> bool {
    DISORDER_ENDINGS.iter().all(|ending| one.ends_with(ending) == other.ends_with(ending))
}

/// Suffixes of disorders and operations.
pub(super) const DISORDER_ENDINGS: [&str; 9] =
    ["itis", "osis", "oma", "emia", "aemia", "pathy", "ectomy", "otomy", "plasty"];

/// Whether a word has an ending of adjectives.
pub(super) fn is_adjective(word: &str) -> bool {
    word.len() >= MIN_LENGTH && ["al", "ar", "ary", "ic", "ive", "ous"].iter().any(|ending| word.ends_with(ending))
}

fn is_rare(word: &str) -> bool {
    word.len() >= MIN_LENGTH
        && word.chars().all(char::is_alphabetic)
        && !is_linking_word(word)
        && frequency(word) <= COMMON
}

fn is_rare_short(word: &str) -> bool {
    (MIN_LENGTH_RARE..MIN_LENGTH).contains(&word.chars().count())
        && word.chars().all(char::is_alphabetic)
        && !is_linking_word(word)
        && frequency(word) <= COMMON
}

/// Whether an unknown word of four letters is within one slip of another word: `fevr`, fever.
fn is_short_misspelling(kb: &KnowledgeBase, word: &str, meant: &str) -> bool {
    let (n, m) = (word.chars().count(), meant.chars().count());
    n + 1 == MIN_LENGTH && m + 1 >= MIN_LENGTH && slips(word, meant, 1.0) <= 1.0 && !is_known_word(kb, word)
}

/// Whether a word consists of letters of `words`, which start with the first letter of each word that it covers: `htn` is short
/// for hypertension, `copd` for chronic obstructive pulmonary disease in any order, `il` for interleukin.
fn is_shorthand(word: &str, words: &[&str]) -> bool {
    word.is_empty()
        || words.iter().any(|name_word| {
            let mut letters = name_word.chars();
            let mut is_first = true;
            for (at, letter) in word.char_indices() {
                let matches =
                    if is_first { letters.next() == Some(letter) } else { letters.any(|next| next == letter) };
                if !matches {
                    break;
                }
                is_first = false;
                if is_shorthand(&word[at + letter.len_utf8()..], words) {
                    return true;
                }
            }
            false
        })
}

/// Whether an unknown word is a misspelling of another; both are folded.
pub fn is_misspelling(kb: &KnowledgeBase, word: &str, target: &str) -> bool {
    let (n, m) = (word.chars().count(), target.chars().count());
    if n < MIN_LENGTH || m < MIN_LENGTH || n.abs_diff(m) > 2 {
        return false;
    }
    let max = match n.min(m) {
        0..=6 => 1.0,
        7..=9 => 1.6,
        _ => 2.2,
    };
    slips(word, target, max) <= max && !is_known_word(kb, word) && !are_opposites(word, target)
}

/// Whether two words differ in a prefix that makes them opposites: `hypophagia` and `hyperphagia`, `eumenorrhea` and `amenorrhea`,
/// `acyanotic` and `cyanotic`.
fn are_opposites(one: &str, other: &str) -> bool {
    let rest = |word: &str, prefix: &str| word.strip_prefix(prefix).map(str::to_owned);
    OPPOSITES.iter().flat_map(|(first, second)| [(first, second), (second, first)]).any(|(first, second)| {
        let (Some(one), Some(other)) = (rest(one, first), rest(other, second)) else { return false };
        let n = one.chars().count().min(other.chars().count());
        // `unvaccinated` is no vaccination.
        let n_same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
        let is_stem = first.len() + second.len() > 1 && n_same >= MIN_STEM.max(n.saturating_sub(4));
        n >= MIN_LENGTH - 1
            && (is_stem
                || one == other
                || root(&canonical(&one)) == root(&canonical(&other))
                || slips(&one, &other, 1.0) <= 1.0)
    })
}

/// Minimum number of letters that words of one stem share.
const MIN_STEM: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kb::KnowledgeBaseBuilder;
    use crate::kb::Scope;
    use crate::kb::format::Meta;
    use crate::kb::record::{ConceptRecord, NameRecord};

    fn kb(names: &[&str]) -> KnowledgeBase {
        let mut builder = KnowledgeBaseBuilder::new();
        for (row, name) in names.iter().enumerate() {
            let names = vec![NameRecord { text: (*name).to_owned(), scope: Scope::Preferred }];
            builder.add(ConceptRecord { id: format!("X:{row}"), names, ..ConceptRecord::default() }).unwrap();
        }
        KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap()
    }

    #[test]
    fn names_of_other_things_are_no_misspellings() {
        let names = ["Cefotaxime", "Hydroxyurea", "Sulfasalazine", "Ibuprofen", "Diabetes Mellitus", "Prednisone"];
        let kb = kb(&names);
        for (mention, name) in [
            ("cefuroxime", "Cefotaxime"),
            ("hydroxyzine", "Hydroxyurea"),
            ("sulfadiazine", "Sulfasalazine"),
            ("prednimustine", "Prednisone"),
            ("afebrile", "febrile"),
            ("nondiabetic", "diabetic"),
            ("laminin", "Receptors, Laminin"),
            ("Factor XIII", "Factor XIIIa"),
            ("hypodense", "Hypotense"),
            ("hypophagia", "Hyperphagia"),
            ("hypoprolactinemia", "Hyperprolactinemia"),
            ("hyposplenism", "Hypersplenism"),
            ("eumenorrhea", "Amenorrhea"),
            ("acyanotic", "Cyanosis"),
            ("unvaccinated", "Vaccination"),
            ("nasopharyngitis", "Chronic nasopharyngitis"),
            ("Lewy body dementia", "Lewy body dementia measurement"),
            ("ten", "TENS"),
            ("C3", "C3a"),
            ("hepatitis", "Hepatitis A"),
        ] {
            assert!(only_looks_alike(&kb, mention, name, None), "{mention} {name}");
        }
        for (mention, name) in [
            ("ibuprofin", "Ibuprofen"),
            ("ibuprofen sodium", "Ibuprofen"),
            ("diabtes mellitus", "Diabetes Mellitus"),
            ("predinsone", "Prednisone"),
            ("appendicitis", "Acute appendicitis"),
            ("serum prolactin level", "prolactin measurement"),
        ] {
            assert!(!only_looks_alike(&kb, mention, name, None), "{mention} {name}");
        }
    }

    #[test]
    fn ordinary_words_are_no_acronyms() {
        assert!(is_word_not_acronym("cold", "COLD") && is_word_not_acronym("scar", "SCAR"));
        assert!(!is_word_not_acronym("copd", "COPD") && !is_word_not_acronym("COLD", "COLD"));
        assert!(!is_word_not_acronym("cold", "Cold") && only_looks_alike(&kb(&["CACH"]), "cache", "CACH", None));
    }

    #[test]
    fn a_prefix_and_a_word_of_the_terminology_are_a_word() {
        let kb = kb(&["Infection", "Recurrent cystitis"]);
        assert!(is_known_word(&kb, "reinfection") && !is_known_word(&kb, "recurrant"));
    }

    #[test]
    fn a_short_word_occurs_in_the_name_or_abbreviates_it() {
        let kb = kb(&["Kidney Failure", "Temporomandibular Joint Disorders", "Interleukin-6", "Hypertension"]);
        for (mention, name) in [
            ("gout", "Kidney Failure"),
            ("gout", "Temporomandibular Joint Disorders"),
            ("mumps", "Muscle Cramp"),
            ("Pax6", "Interleukin-6"),
            ("lice", "Chronic Pain"),
            ("gout", "Gut"),
            ("bone", "Tone"),
            ("gut feeling", "Feeling Cold"),
        ] {
            assert!(only_looks_alike(&kb, mention, name, None), "{mention} {name}");
        }
        for (mention, name) in [
            ("gout", "Gout"),
            ("acute gout", "Gout"),
            ("htn", "Hypertension"),
            ("copd", "Pulmonary Disease, Chronic Obstructive"),
            ("copd", "Chronic Obstructive Pulmonary Disease"),
            ("abdo pain", "Abdominal Pain"),
            ("mva", "Motor Vehicle Accident"),
            ("cysts", "Cyst"),
            ("Il6", "Interleukin-6"),
            ("Cox2", "Cyclooxygenase 2"),
            ("fevr", "Fever"),
        ] {
            assert!(!only_looks_alike(&kb, mention, name, None), "{mention} {name}");
        }
    }

    #[test]
    fn names_are_misspelt_word_for_word() {
        let kb = kb(&["Asthma", "Diabetes Mellitus", "Prednisone"]);
        assert!(is_misspelt_name(&kb, "diabtes mellitus", "Diabetes Mellitus"));
        assert!(is_misspelt_name(&kb, "predinsone", "Prednisone"));
        for (query, name) in [("Asthma", "Asthma"), ("diabtes", "Diabetes Mellitus"), ("cefuroxime", "Prednisone")] {
            assert!(!is_misspelt_name(&kb, query, name), "{query} {name}");
        }
    }

    #[test]
    fn a_prefix_makes_another_word() {
        let kb = kb(&["Diabetes Mellitus", "Hypertension", "Eclampsia", "Pain, Postoperative", "Fever"]);
        for (mention, name) in [
            ("non-diabetic", "Diabetes Mellitus"),
            ("Anti-hypertensive", "Hypertension"),
            ("pre-eclampsia", "Eclampsia"),
        ] {
            assert!(only_looks_alike(&kb, mention, name, None), "{mention} {name}");
        }
        assert!(!only_looks_alike(&kb, "post-operative pain", "Pain, Postoperative", None));
        assert!(!only_looks_alike(&kb, "a fever", "Fever", None));
    }

    #[test]
    fn a_common_word_does_not_abbreviate_a_longer_name() {
        let kb = kb(&["Prenatal Diagnosis", "Memory Disorders"]);
        assert!(only_looks_alike(&kb, "diagnosis", "Prenatal Diagnosis", None));
        assert!(only_looks_alike(&kb, "diagnosis", "Diagnostic Imaging", None));
        assert!(!only_looks_alike(&kb, "memory", "Memory Disorders", None));
        assert!(!only_looks_alike(&kb, "prenatal diagnoses", "Prenatal Diagnosis", None));
    }

    #[test]
    fn slips_cost_less_than_other_letters() {
        let cost = |word, target| slips(word, target, 9.0);
        assert_eq!(cost("fever", "fever"), 0.0);
        assert!(cost("diarrea", "diarrhea") <= 1.0 && cost("dizzyness", "dizziness") < 1.0);
        assert!(cost("ibuprophen", "ibuprofen") < 1.0 && cost("fenytoin", "phenytoin") <= 1.0);
        assert!(cost("haedache", "headache") < cost("xeadache", "headache"));
        assert_eq!(slips("abcdefgh", "stuvwxyz", 1.0), f32::MAX);
    }

    #[test]
    fn a_filter_contains_inserted_words() {
        let words = ["cefuroxime", "hydroxyzine"];
        let bytes = WordFilter::build(words.into_iter(), 16);
        let filter = WordFilter(&bytes);
        assert!(words.iter().all(|word| filter.has(word)) && !filter.has("aspirin"));
        assert!(!WordFilter(&[]).has("aspirin"));
    }
}
