//! Names looked up in a short list of concepts, such as the tests of a laboratory or the products of a company.
//!
//! Evidence learned from large terminologies says little there: names have their own words, and words that distinguish one entry
//! from the next are as short as `T` or `left`. A list is small enough to weigh its words by the number of their concepts. A query
//! whose words occur together in the names of one concept only means that concept: `lantus pen`. A query with a word that other
//! concepts have in its place means none: `CT lumbar spine` where the list has MRI lumbar spine.

mod query_words;

use std::collections::{HashMap, HashSet};

use self::query_words::{is_subtype, key_of, number_word, unit_of, words_of};
use super::lookalike::{is_adjective, is_coined_word, is_misspelling, is_noun_of};
use super::recognise::common::frequency;
use super::recognise::scan::Word;
use super::slips::slips;
use super::{Candidate, Link};
use crate::kb::subset::KbView;
use crate::kb::{ConceptId, KnowledgeBase, NameId};
use crate::text::Span;
use crate::text::normalise::{canonical, fold};
use crate::text::tokens::Gap;
use crate::text::words::{WordKind, kind_of, noun_of};

/// A terminology with at most this many concepts is a short list.
pub const MAX_CONCEPTS: usize = 2_000;

/// Maximum number of words of a query.
const MAX_WORDS: usize = 16;

/// Maximum number of names of a concept.
const MAX_NAMES: usize = 32;

/// Probability of a concept with a name that has the words of the query and no others.
const SAME: f32 = 0.92;

/// Probability of the only concept with all words of the query, and what the share of its name's words adds.
const ONLY: f32 = 0.6;
const ONLY_SHARE: f32 = 0.3;

/// Probability of a concept with a name to which the query adds adjectives or words in brackets.
const NARROWED: f32 = 0.6;

/// Factor on candidates of which the query has another word of the list.
const OTHER: f32 = 0.1;

/// Minimum lead in the share of the name's words over other concepts with all words of the query.
const LEAD: f32 = 0.15;

/// Minimum length of the parts of a word that the list writes as two.
const MIN_PART: usize = 2;

/// Minimum length of the beginning of a word that stands for it: `gent` for gentamicin.
const MIN_SHORT: usize = 4;

/// Minimum length of words that may differ in any letter; shorter ones only in a doubled one.
const MIN_SIMILAR: usize = 6;

/// Maximum length of a word that is split in two.
const MAX_WHOLE: usize = 40;

/// Function words that change what a name means.
const NEGATING: [&str; 4] = ["no", "non", "not", "without"];

/// Minimum share of a name that a phrase of a text must have, and maximum number of its words.
const MIN_PHRASE: f32 = 0.5;
const MAX_PHRASE: usize = 6;

/// Words of names of tests that texts leave out: `platelets` for Platelet count.
const LEFT_OUT: [&str; 4] = ["count", "measurement", "reading", "value"];

/// A word of a query.
#[derive(Debug, Clone)]
struct QueryWord {
    /// Its row, if the list has it.
    row: Option<u32>,
    weight: f32,
    in_brackets: bool,
    /// A number or a single letter.
    is_subtype: bool,
    /// A word for a disorder in general.
    is_disorder: bool,
    is_modifier: bool,
    is_negating: bool,
}

/// The words of a name.
#[derive(Debug)]
struct ListName {
    name: NameId,
    words: Vec<u32>,
}

/// How a concept agrees with a query.
#[derive(Debug, Clone, Copy)]
struct Agreement {
    concept: ConceptId,
    name: NameId,
    /// Weight of the words of the query in any of its names, as a share.
    of_query: f32,
    /// Weight of the words of its best name in the query, as a share.
    of_name: f32,
    /// Whether the query has the first word of a name.
    has_first: bool,
}

/// The words of a short list.
#[derive(Debug)]
pub struct ShortList {
    concepts: Vec<(ConceptId, Vec<ListName>)>,
    rows: HashMap<String, u32>,
    words: Vec<String>,
    /// By row: the concepts with the word, as places in `concepts`.
    with: Vec<Vec<u32>>,
    /// The first words of names.
    firsts: HashSet<String>,
    /// By row: whether the word is coined, as brands are: a word of one concept that no open terminology has.
    is_coined: Vec<bool>,
}

/// A phrase of a text that stands for a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phrase {
    /// Index of its first word.
    pub(super) first: usize,
    /// Index of its last word.
    pub(super) last: usize,
    /// The name.
    pub(super) name: NameId,
}

impl ShortList {
    /// The words of a view, if its knowledge base is a short list.
    pub fn of(view: KbView<'_>) -> Option<ShortList> {
        let kb = view.kb;
        if kb.n_concepts() > MAX_CONCEPTS {
            return None;
        }
        let mut list = ShortList {
            concepts: Vec::new(),
            rows: HashMap::new(),
            words: Vec::new(),
            with: Vec::new(),
            firsts: HashSet::new(),
            is_coined: Vec::new(),
        };
        for concept in kb.concepts().filter(|concept| view.has(*concept)) {
            let mut names = Vec::new();
            let mut all: Vec<u32> = Vec::new();
            for name in kb.names(concept).take(MAX_NAMES) {
                let words = words_of(kb.name(name));
                list.firsts.extend(words.first().map(|(word, _)| key_of(word)));
                let words: Vec<u32> = words.iter().map(|(word, _)| list.row(word)).collect();
                all.extend(&words);
                names.push(ListName { name, words });
            }
            all.sort_unstable();
            all.dedup();
            let place = list.concepts.len() as u32;
            all.iter().for_each(|row| list.with[*row as usize].push(place));
            list.concepts.push((concept, names));
        }
        let is_coined = |(word, with): (&String, &Vec<u32>)| with.len() == 1 && is_coined_word(word);
        list.is_coined = list.words.iter().zip(&list.with).map(is_coined).collect();
        Some(list)
    }

    fn row(&mut self, word: &str) -> u32 {
        let key = key_of(word);
        if let Some(row) = self.rows.get(&key) {
            return *row;
        }
        let row = self.words.len() as u32;
        self.rows.insert(key, row);
        self.words.push(word.to_owned());
        self.with.push(Vec::new());
        row
    }

    fn weight(&self, row: Option<u32>) -> f32 {
        let n = self.concepts.len() as f32;
        let with = row.map_or(1.0, |row| self.with[row as usize].len().max(1) as f32);
        (1.0 + n / with).ln()
    }

    /// The row of a word as written, of its noun, of the numeral that it is, or of the word for which it is short or misspelled; `kb` tells
    /// misspellings from other words.
    fn find(&self, kb: Option<&KnowledgeBase>, word: &str) -> Option<u32> {
        let get = |word: &str| self.rows.get(&key_of(word)).copied();
        let by_noun = || noun_of(&canonical(word)).and_then(|noun| get(&noun));
        let by_number = || number_word(word).and_then(get);
        // A letter more or less: `yogurt`; or the beginning: `gent` for gentamicin.
        let max_slips = if word.len() >= MIN_SIMILAR { 1.0 } else { 0.5 };
        let is_similar = |other: &str| {
            (MIN_SHORT + 1..=MAX_WHOLE).contains(&word.len())
                && other.get(..2) == word.get(..2)
                && slips(word, other, max_slips) <= max_slips
        };
        let by_ending = || self.words.iter().position(|other| is_noun_of(word, other) || is_noun_of(other, word));
        let has_digit = |word: &str| word.contains(|letter: char| letter.is_ascii_digit());
        let by_spelling = || {
            let is_meant = |other: &str| {
                !has_digit(other) && (kb.is_some_and(|kb| is_misspelling(kb, word, other)) || is_similar(other))
            };
            let near = self.words.iter().enumerate().filter(|(_, other)| is_meant(other));
            let near = near.map(|(row, other)| (row, slips(word, other, f32::MAX)));
            near.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(row, _)| row).filter(|_| !has_digit(word))
        };
        let by_form = || by_ending().or_else(by_spelling).map(|row| row as u32);
        get(word).or_else(by_noun).or_else(by_number).or_else(|| self.find_long(word)).or_else(by_form)
    }

    /// The only word of the list that an unusual word begins.
    fn find_long(&self, word: &str) -> Option<u32> {
        let mut long =
            self.words.iter().enumerate().filter(|(_, other)| other.starts_with(word) && other.len() > word.len() + 1);
        let (row, _) = long.next().filter(|_| word.len() >= MIN_SHORT && frequency(word) == 0)?;
        long.next().is_none().then_some(row as u32)
    }

    /// The words of a query; words that the list writes as one are joined, and those that it writes as two are split.
    fn query(&self, kb: Option<&KnowledgeBase>, text: &str) -> Vec<QueryWord> {
        let words = words_of(text);
        let word = |row: Option<u32>, text: &str, in_brackets: bool| QueryWord {
            row,
            weight: self.weight(row),
            in_brackets,
            is_subtype: is_subtype(text),
            is_disorder: kind_of(&canonical(text)) == WordKind::Disorder,
            is_negating: NEGATING.contains(&text),
            is_modifier: kind_of(&canonical(text)) == WordKind::Modifier || is_adjective(text),
        };
        let mut found = Vec::new();
        let mut at = 0;
        while at < words.len().min(MAX_WORDS) {
            let (text, in_brackets) = &words[at];
            at += 1;
            let is_known = |word: &str| self.rows.contains_key(&key_of(word));
            let joined = words.get(at).filter(|(next, _)| !is_known(text) && !is_known(next));
            if let Some(joined) = joined.and_then(|(next, _)| self.rows.get(&key_of(&format!("{text}{next}")))) {
                found.push(word(Some(*joined), text, *in_brackets));
                at += 1;
                continue;
            }
            let row = self.find(kb, text);
            let parts = |cut: usize| {
                let (one, other) = (text.get(..cut)?, text.get(cut..)?);
                let get = |part: &str| self.rows.get(&key_of(part)).filter(|_| part.len() >= MIN_PART).copied();
                let parts = [get(one)?, get(other)?];
                let mut names = self.concepts.iter().flat_map(|(_, names)| names);
                names.any(|name| name.words.windows(2).any(|pair| pair == parts)).then_some((parts[0], parts[1]))
            };
            let split = (row.is_none() && text.len() <= MAX_WHOLE).then(|| (1..text.len()).find_map(parts)).flatten();
            match split {
                Some((one, other)) => found.extend([one, other].map(|row| word(Some(row), text, *in_brackets))),
                None => found.push(word(row, text, *in_brackets)),
            }
        }
        found
    }

    fn agreement(&self, query: &[QueryWord], (concept, names): &(ConceptId, Vec<ListName>)) -> Option<Agreement> {
        let has = |row: Option<u32>| row.is_some_and(|row| names.iter().any(|name| name.words.contains(&row)));
        let all: f32 = query.iter().map(|word| word.weight).sum();
        let common: f32 = query.iter().filter(|word| has(word.row)).map(|word| word.weight).sum();
        if common == 0.0 {
            return None;
        }
        let asked = |row: &u32| query.iter().any(|word| word.row == Some(*row));
        let share = |name: &ListName| {
            let all: f32 = name.words.iter().map(|row| self.weight(Some(*row))).sum();
            let common: f32 = name.words.iter().filter(|row| asked(row)).map(|row| self.weight(Some(*row))).sum();
            if all > 0.0 { common / all } else { 0.0 }
        };
        let best = names.iter().max_by(|one, other| share(one).total_cmp(&share(other)))?;
        let has_first = names.iter().any(|name| name.words.first().is_some_and(&asked));
        Some(Agreement { concept: *concept, name: best.name, of_query: common / all, of_name: share(best), has_first })
    }

    /// Whether a query is one coined word.
    fn is_brand(&self, query: &[QueryWord]) -> bool {
        matches!(query, [word] if word.row.is_some_and(|row| self.is_coined[row as usize]))
    }

    /// The concepts that agree with a query, best first.
    fn agreements(&self, query: &[QueryWord]) -> Vec<Agreement> {
        let mut places: Vec<u32> =
            query.iter().filter_map(|word| word.row).flat_map(|row| &self.with[row as usize]).copied().collect();
        places.sort_unstable();
        places.dedup();
        self.ranked(query, &places)
    }

    /// The concepts with all words of a query, best first; the list has all of them.
    fn with_all(&self, query: &[QueryWord]) -> Vec<Agreement> {
        let of_word = query.iter().filter_map(|word| word.row).map(|row| &self.with[row as usize]);
        let Some(rarest) = of_word.clone().min_by_key(|places| places.len()) else { return Vec::new() };
        let has_all = |place: &u32| of_word.clone().all(|places| places.binary_search(place).is_ok());
        let places: Vec<u32> = rarest.iter().copied().filter(has_all).collect();
        self.ranked(query, &places)
    }

    fn ranked(&self, query: &[QueryWord], places: &[u32]) -> Vec<Agreement> {
        let agreement = |place: &u32| self.agreement(query, &self.concepts[*place as usize]);
        let mut all: Vec<Agreement> = places.iter().filter_map(agreement).collect();
        all.sort_by(|one, other| {
            let by_shares = other.of_query.total_cmp(&one.of_query).then(other.of_name.total_cmp(&one.of_name));
            by_shares.then(one.concept.cmp(&other.concept))
        });
        all
    }

    /// Phrases of a text with words that only one concept has together, from the first word of one of its names on: `apixaban 5 mg` for
    /// Apixaban 5 mg tablets.
    pub(super) fn phrases(&self, text: &str, words: &[Word]) -> Vec<Phrase> {
        let mut found = Vec::new();
        // Words of the list as the text writes them; each is looked up once.
        let mut known: HashMap<u64, bool> = HashMap::new();
        let mut may_follow = |word: &Word| {
            *known.entry(word.hashes.canonical).or_insert_with(|| {
                let folded = fold(word.token.span.of(text));
                let is_number = folded.starts_with(|letter: char| letter.is_ascii_digit());
                is_number
                    || unit_of(&folded).is_some()
                    || words_of(&folded).is_empty()
                    || self.find(None, &folded).is_some()
            })
        };
        let mut at = 0;
        while at < words.len() {
            let is_together =
                |word: &Word| matches!(word.token.before, Gap::Space | Gap::Hyphen | Gap::Glued | Gap::Slash);
            let begins = words[at].token.before != Gap::Glued
                && !words[at].hashes.linking
                && self.firsts.contains(&key_of(&fold(words[at].token.span.of(text))));
            if !begins {
                at += 1;
                continue;
            }
            let next = words[at + 1..].iter().take(MAX_PHRASE - 1);
            let n = 1 + next.take_while(|word| is_together(word) && may_follow(word)).count();
            let longest = (1..=n).rev().find_map(|n| self.phrase(text, &words[at..at + n]).map(|name| (n, name)));
            let Some((n, name)) = longest else {
                at += 1;
                continue;
            };
            found.push(Phrase { first: at, last: at + n - 1, name });
            at += n;
        }
        found
    }

    /// The name that a phrase stands for.
    fn phrase(&self, text: &str, words: &[Word]) -> Option<NameId> {
        let (first, last) = (words.first()?, words.last()?);
        let span = Span { start: first.token.span.start, end: last.token.span.end };
        if words_of(last.token.span.of(text)).is_empty() || span.of(text).contains('\n') {
            return None;
        }
        let query = self.query(None, span.of(text));
        let agreements = if query.iter().all(|word| word.row.is_some()) { self.with_all(&query) } else { Vec::new() };
        let best = agreements.first().filter(|best| best.of_query > 0.999 && best.has_first)?;
        let lead =
            agreements.get(1).filter(|next| next.of_query > 0.999).map_or(1.0, |next| best.of_name - next.of_name);
        let is_enough = match query.as_slice() {
            [_] => self.is_brand(&query) || self.is_all_but_left_out(&query, best),
            _ => best.of_name >= MIN_PHRASE,
        };
        // `congestive heart` is no heart failure.
        let is_part = self.drops(&query, best, |word| kind_of(&canonical(word)) == WordKind::Disorder);
        (is_enough && lead >= LEAD && best.of_name < 0.999 && !is_part).then_some(best.name)
    }

    /// Whether a query lacks only words of the best name that texts leave out.
    fn is_all_but_left_out(&self, query: &[QueryWord], of: &Agreement) -> bool {
        let name = self.names_of(of.concept).iter().find(|name| name.name == of.name);
        let is_there = |row: &u32| query.iter().any(|word| word.row == Some(*row));
        let is_left_out = |row: &u32| LEFT_OUT.contains(&&*self.words[*row as usize]);
        name.is_some_and(|name| name.words.iter().all(|row| is_there(row) || is_left_out(row)))
            && !query.iter().any(|word| word.row.as_ref().is_some_and(is_left_out))
    }

    /// Whether a query lacks such a word of the best name.
    fn drops(&self, query: &[QueryWord], of: &Agreement, is_such: impl Fn(&str) -> bool) -> bool {
        let name = self.names_of(of.concept).iter().find(|name| name.name == of.name);
        let lacks = |row: &&u32| query.iter().all(|word| word.row != Some(**row));
        name.is_some_and(|name| name.words.iter().filter(lacks).any(|row| is_such(&self.words[*row as usize])))
    }

    /// Corrects the link of a query by the words of the list.
    pub fn correct(&self, kb: &KnowledgeBase, text: &str, top_k: usize, link: &mut Link) {
        let query = self.query(Some(kb), text);
        let agreements = self.agreements(&query);
        let Some(first) = agreements.first().copied() else { return };
        let next = agreements.get(1).copied();
        let is_whole = |share: f32| share > 0.999;
        let lead = next.filter(|next| is_whole(next.of_query)).map_or(1.0, |next| first.of_name - next.of_name);
        let p_link = if self.drops(&query, &first, |word| NEGATING.contains(&word)) {
            None
        } else if is_whole(first.of_query) && lead >= LEAD {
            let is_long = query.len() > 1 && (first.has_first || is_whole(first.of_name));
            match () {
                () if is_whole(first.of_name) => Some(SAME),
                () if is_long || self.is_brand(&query) || self.is_all_but_left_out(&query, &first) => {
                    Some(ONLY + ONLY_SHARE * first.of_name)
                }
                () => None,
            }
        } else if is_whole(first.of_name) && next.is_none_or(|next| next.of_query < first.of_query) {
            self.is_narrowed(&query, &first).then_some(NARROWED)
        } else {
            None
        };
        match p_link {
            Some(p_link) => raise(&first, p_link, top_k, link),
            None => self.check_other(&query, &agreements, link),
        }
    }

    /// Whether the words that a query adds to a name are in brackets, or adjectives before it that are in no name.
    fn is_narrowed(&self, query: &[QueryWord], first: &Agreement) -> bool {
        let names = self.names_of(first.concept);
        let has = |word: &QueryWord| word.row.is_some_and(|row| names.iter().any(|name| name.words.contains(&row)));
        let Some(start) = query.iter().position(has) else { return false };
        let added = |(at, word): (usize, &QueryWord)| {
            let is_modifier = at < start && word.row.is_none() && word.is_modifier;
            has(word) || !word.is_subtype && (word.in_brackets || is_modifier)
        };
        query.iter().enumerate().all(added)
    }

    fn names_of(&self, concept: ConceptId) -> &[ListName] {
        let place = self.concepts.binary_search_by_key(&concept, |(concept, _)| *concept);
        place.map_or(&[], |place| &self.concepts[place].1)
    }

    /// Lowers the first candidate if the query has a word of other concepts, a number or a letter where its name has another word.
    fn check_other(&self, query: &[QueryWord], agreements: &[Agreement], link: &mut Link) {
        let Some(candidate) = link.candidates.first() else { return };
        let Some(of) = agreements.iter().find(|one| one.concept == candidate.concept) else { return };
        let names = self.names_of(of.concept);
        let has = |row: u32| names.iter().any(|name| name.words.contains(&row));
        let is_other = |word: &QueryWord| match word.row {
            Some(row) => !has(row),
            None => word.is_subtype || word.is_negating,
        };
        let shares_content = query.iter().any(|word| !word.is_disorder && word.row.is_some_and(has));
        let is_other = query.iter().any(|word| !word.is_disorder && is_other(word))
            || self.drops(query, of, |word| NEGATING.contains(&word));
        if of.of_name < 0.999 && shares_content && is_other {
            link.candidates.iter_mut().for_each(|candidate| candidate.p_link *= OTHER);
            link.nil = true;
        }
    }
}

/// Puts a concept first with a probability; that of a candidate is not lowered.
fn raise(agreement: &Agreement, p_link: f32, top_k: usize, link: &mut Link) {
    let known = link.candidates.iter().find(|candidate| candidate.concept == agreement.concept).copied();
    let p_link = known.map_or(p_link, |known| known.p_link.max(p_link));
    let name = known.and_then(|known| known.name).or(Some(agreement.name));
    link.candidates.retain(|candidate| candidate.concept != agreement.concept);
    link.candidates.iter_mut().for_each(|candidate| candidate.p_link = candidate.p_link.min(1.0 - p_link));
    link.candidates.insert(0, Candidate { concept: agreement.concept, name, p_link });
    link.candidates.truncate(top_k.max(1));
    link.nil = false;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kb::format::Meta;
    use crate::kb::record::{ConceptRecord, NameRecord};
    use crate::kb::{KnowledgeBaseBuilder, Scope};

    const LIST: [&[&str]; 14] = [
        &["X-ray hip left"],
        &["X-ray hip right"],
        &["MRI lumbar spine"],
        &["CT head without contrast"],
        &["Insulin glargine 100 units/ml, 3 ml prefilled pen", "Lantus"],
        &["OsteoCal D chewable tablets"],
        &["Yoghurt, natural"],
        &["Troponin T, high sensitivity"],
        &["Leatherjackets"],
        &["Yellow rust"],
        &["Carcinoma of lung"],
        &["Digoxin 0.25 mg"],
        &["Prednisone ointment"],
        &["Prednisolone ointment"],
    ];

    #[test]
    fn words_of_the_list_decide() {
        let mut builder = KnowledgeBaseBuilder::new();
        for (row, names) in LIST.into_iter().enumerate() {
            let scope = |at: usize| if at == 0 { Scope::Preferred } else { Scope::Exact };
            let names =
                names.iter().enumerate().map(|(at, name)| NameRecord { text: (*name).to_owned(), scope: scope(at) });
            builder
                .add(ConceptRecord { id: format!("X:{row:02}"), names: names.collect(), ..ConceptRecord::default() })
                .unwrap();
        }
        let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap();
        let list = ShortList::of(KbView { kb: &kb, subset: None }).unwrap();
        let row = |candidate: &Candidate| candidate.concept.0 as usize;
        // What a query means if its similarity to a concept is 0.5.
        let meant = |query: &str, similar: usize| {
            let candidate = Candidate { concept: ConceptId(similar as u32), name: None, p_link: 0.5 };
            let mut link = Link { candidates: vec![candidate], nil: false };
            list.correct(&kb, query, 5, &mut link);
            link.candidates.first().filter(|_| !link.nil).map(|first| (row(first), first.p_link))
        };
        for (query, similar, expected) in [
            ("hip x-ray, right", 0, 1),
            ("lantus pen", 2, 4),
            ("osteocal", 0, 5),
            ("natural yoghurts", 3, 6),
            ("leather jacket", 0, 8),
            ("yellow rust (wheat)", 0, 9),
            ("prednisalone ointment", 12, 13),
        ] {
            let (found, p_link) = meant(query, similar).unwrap_or_else(|| panic!("{query}"));
            assert!(found == expected && p_link >= 0.6, "{query} {found} {p_link}");
        }
        // Another word of the list, or another letter, in the place of one of the name.
        assert_eq!(meant("CT lumbar spine", 2), None);
        assert_eq!(meant("troponin I, high sensitivity", 7), None);
        // 0.25 is not 25, and 1000 not 100.
        assert_eq!(meant("digoxin 25 mg", 11), None);
        assert_eq!(meant("insulin 1000 units", 4), None);
        assert_eq!(meant("CT head with contrast", 3), None);
        assert!(meant(&"a".repeat(1 << 20), 4).is_some());
        // The first word of a name alone is broader, and unknown words say nothing.
        assert_eq!(meant("carcinoma", 10), Some((10, 0.5)));
        assert_eq!(meant("blood clot", 4), Some((4, 0.5)));
        assert_eq!(meant("", 4), Some((4, 0.5)));
    }
}
