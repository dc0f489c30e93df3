//! Names that a text says in other grammar: `his speech is slurred` contains slurred speech, `my knees hurt` knee pain, `she lost
//! consciousness` loss of consciousness.

use std::ops::Range;

use super::coordination::{CONJUNCTIONS, Coordinated};
use super::equivalents::{Grammatical, grammatical};
use super::scan::{Tier, Word, lookup};
use crate::kb::lexicon::{bag_key, hash_token};
use crate::kb::subset::KbView;
use crate::text::Span;
use crate::text::tokens::Gap;
use crate::text::words::is_stop_word;

/// Maximum number of words of a subject or object.
const MAX_NOUN: usize = 3;

/// Maximum number of words of a predicate.
const MAX_PREDICATE: usize = 2;

/// Maximum number of adverbs, auxiliaries or articles in a row.
const MAX_BETWEEN: usize = 3;

/// Adverbs and auxiliaries that may stand around the verb, besides adverbs in `-ly`. No modal verbs: `the pain may be angina`.
const BETWEEN: [&str; 29] = [
    "all", "also", "always", "are", "been", "being", "bit", "both", "extra", "get", "getting", "had", "has", "have",
    "is", "just", "little", "more", "now", "often", "pretty", "quite", "rather", "so", "somewhat", "still", "then",
    "too", "very",
];

/// Words between a modifier and its noun: `lost all of his hearing`.
const ARTICLES: [&str; 12] = ["a", "all", "her", "his", "in", "its", "my", "of", "our", "some", "the", "their"];

/// Ending of nouns made from adjectives: the name `joint stiffness` for stiff joints.
const NOUN_ENDING: &str = "ness";

/// The names, in the order of their verbs and modifiers. Those of a second adjective, as in `skin is dry and itchy`, have two pieces.
pub fn predicated(view: KbView<'_>, text: &str, words: &[Word]) -> Vec<Coordinated> {
    let grammar = Grammar { view, text, words };
    let mut all = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match grammatical(grammar.written(word)) {
            Some(Grammatical::Copula) => grammar.of_copula(at, &mut all),
            Some(Grammatical::Verb(nouns)) => all.extend(grammar.of_verb(at, nouns)),
            Some(Grammatical::Modifier(others)) => all.extend(grammar.of_modifier(at, others)),
            None => {}
        }
    }
    all
}

fn is_one_of(written: &str, list: &[&str]) -> bool {
    list.iter().any(|one| written.eq_ignore_ascii_case(one))
}

fn is_between(written: &str) -> bool {
    is_one_of(written, &BETWEEN) || written.len() > 4 && written.ends_with("ly")
}

/// Whether a clause or word ends before a word.
fn is_border(word: &Word) -> bool {
    word.token.before != Gap::Space
}

/// From the first to the last byte of words.
fn span_of(words: &[Word]) -> Span {
    Span { start: words[0].token.span.start, end: words[words.len() - 1].token.span.end }
}

struct Grammar<'a> {
    view: KbView<'a>,
    text: &'a str,
    words: &'a [Word],
}

impl Grammar<'_> {
    fn written(&self, word: &Word) -> &str {
        word.token.span.of(self.text)
    }

    /// Whether a word can be part of a name here.
    fn is_content(&self, word: &Word) -> bool {
        !word.hashes.linking && !is_stop_word(self.written(word))
    }

    /// `speech is slurred`, `skin is dry and itchy`.
    fn of_copula(&self, at: usize, all: &mut Vec<Coordinated>) {
        let subject = self.subject_before(at);
        if subject.is_empty() || is_border(&self.words[at]) || self.words.get(at + 1).is_none_or(is_border) {
            return;
        }
        let mut next = at + 1;
        // Each adjective of the predicate after the last one.
        while let Some(first) = self.predicate_after(next) {
            let found = subject
                .clone()
                .flat_map(|start| (1..=MAX_PREDICATE).rev().map(move |n| (start, first + n)))
                .find_map(|(start, end)| Some((end, self.of_parts(start..subject.end, first..end, at)?)));
            let Some((end, name)) = found else { break };
            all.push(name);
            let after = self.words.get(end);
            let is_joined = after.is_some_and(|word| is_one_of(self.written(word), &CONJUNCTIONS));
            next = end + usize::from(is_joined);
            if !is_joined && after.is_none_or(|word| word.token.before != Gap::Comma) {
                break;
            }
        }
    }

    /// `knees hurt`.
    fn of_verb(&self, at: usize, nouns: &[&str]) -> Option<Coordinated> {
        if at == 0 || is_border(&self.words[at]) {
            return None;
        }
        let subject = self.subject_before(at);
        let whole = |start: usize| span_of(&self.words[start..=at]);
        subject.clone().find_map(|start| self.equivalent(&self.words[start..subject.end], nouns, whole(start)))
    }

    /// `lost consciousness`, `swollen ankles`.
    fn of_modifier(&self, at: usize, others: &[&str]) -> Option<Coordinated> {
        let rest = self.words.get(at + 1..)?;
        let is_article = |word: &&Word| !is_border(word) && is_one_of(self.written(word), &ARTICLES);
        let first = at + 1 + rest.iter().take(MAX_BETWEEN).take_while(is_article).count();
        let (mut ends, mut n_counted) = (Vec::new(), 0);
        for (end, word) in self.words.iter().enumerate().skip(first) {
            let is_inside = word.hashes.linking || self.is_content(word) && word.known;
            if is_border(word) || !is_inside || n_counted == MAX_NOUN || end - first > 2 * MAX_NOUN {
                break;
            }
            if !word.hashes.linking {
                n_counted += 1;
                ends.push(end);
            }
        }
        let whole = |end: usize| span_of(&self.words[at..=end]);
        ends.into_iter().rev().find_map(|end| self.equivalent(&self.words[first..=end], others, whole(end)))
    }

    /// The words of the subject of the verb at `at`; empty if there is none.
    fn subject_before(&self, at: usize) -> Range<usize> {
        let (words, mut end) = (self.words, at);
        while end > 0 && at - end < MAX_BETWEEN && is_between(self.written(&words[end - 1])) && !is_border(&words[end])
        {
            end -= 1;
        }
        let mut start = end;
        while start > 0 && end - start < MAX_NOUN {
            let word = &words[start - 1];
            if words.get(start).is_some_and(is_border) || !word.known || !self.is_content(word) {
                break;
            }
            start -= 1;
        }
        start..end
    }

    /// The first word of a predicate, after adverbs.
    fn predicate_after(&self, from: usize) -> Option<usize> {
        let rest = self.words.get(from..)?;
        let first = from + rest.iter().take(MAX_BETWEEN).take_while(|word| is_between(self.written(word))).count();
        // A comma may stand before a second adjective only.
        let has_border = self.words.get(from + 1..=first)?.iter().any(is_border);
        (!has_border).then_some(first)
    }

    /// The name that a subject and a predicate form, if there is one.
    fn of_parts(&self, subject: Range<usize>, predicate: Range<usize>, verb: usize) -> Option<Coordinated> {
        let (of_subject, of_predicate) = (&self.words[subject], self.words.get(predicate)?);
        if !of_predicate.iter().all(|word| self.is_content(word)) || of_predicate[1..].iter().any(is_border) {
            return None;
        }
        let pieces = [span_of(of_subject), span_of(of_predicate)];
        let whole = Span { start: pieces[0].start, end: pieces[1].end };
        // Words between the verb and the predicate are adverbs, or those of another predicate.
        let mut between = self.words[verb + 1..].iter().take_while(|word| word.token.span.start < pieces[1].start);
        let spans = if between.all(|word| is_between(self.written(word))) { vec![whole] } else { pieces.to_vec() };
        let name = |parts: [&[Word]; 2], nouns: bool| self.name_of(parts, whole, Tier::Ordered, nouns);
        let found = name([of_predicate, of_subject], false).or_else(|| name([of_subject, of_predicate], true));
        let found = found.or_else(|| match of_predicate {
            [word] => match grammatical(self.written(word)) {
                Some(Grammatical::Modifier(others)) => self.equivalent(of_subject, others, whole),
                _ => None,
            },
            _ => None,
        });
        found.map(|found| Coordinated { spans, ..found })
    }

    /// The first name that has one of the other words before or after those of `noun`.
    fn equivalent(&self, noun: &[Word], others: &[&str], whole: Span) -> Option<Coordinated> {
        let try_one = |other: &&str| {
            let hashes = hash_token(other);
            if !self.view.kb.knows_root(hashes.root) {
                return None;
            }
            let frequency = super::common::frequency(other);
            let word = [Word { hashes, known: true, frequency, ..noun[0] }];
            let name = |parts| self.name_of(parts, whole, Tier::Permuted, false);
            name([noun, &word]).or_else(|| name([&word, noun]))
        };
        others.iter().find_map(try_one)
    }

    /// The name with these words in this order, as a match of `tier`; with `nouns` also a noun for the last word.
    fn name_of(&self, parts: [&[Word]; 2], whole: Span, tier: Tier, nouns: bool) -> Option<Coordinated> {
        let counted = parts.iter().flat_map(|part| part.iter()).filter(|word| !word.hashes.linking);
        let roots = self.view.kb.roots();
        if roots.get(bag_key(counted.map(|word| word.hashes.root))).is_empty() {
            return None;
        }
        // All words get the place of the whole, because they stand elsewhere in the name.
        let placed = |word: &Word| {
            let mut word = *word;
            word.token.span = whole;
            word
        };
        let words: Vec<Word> = parts.iter().flat_map(|part| part.iter()).map(placed).collect();
        let mut found = lookup(self.view, self.text, &words)?;
        found.forms.retain(|(form, agreement)| {
            let is_noun = || self.view.kb.forms().get(form.0 as usize).ends_with(NOUN_ENDING);
            *agreement >= Tier::Ordered || nouns && *agreement == Tier::Root && is_noun()
        });
        found.forms.iter_mut().for_each(|(_, agreement)| *agreement = tier);
        (!found.forms.is_empty()).then(|| Coordinated { spans: vec![whole], words, found })
    }
}
