//! Lookup of phrases and of classes of words in the lists of `triggers.rs` and `classes.rs`.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::classes::{CLASSES, Class};
use super::triggers::{
    ASIDES, KIN, METHOD_WORDS, METHODS, NUMBERS, PARTNERS, PSEUDO, Rule, SPECIAL, TERMINATIONS, TRIGGERS,
};

/// Id of a word that occurs in a pattern or class; 0 for all others.
pub(super) type Word = u32;

/// All rules as a trie over words.
#[derive(Debug, Default)]
pub(super) struct Triggers {
    words: HashMap<String, Word>,
    /// Bit set of the classes of each word.
    classes: Vec<u32>,
    /// Child of a node by word; node 0 is the root.
    next: HashMap<(u32, Word), u32>,
    /// Rule of the phrase that ends at each node.
    rules: Vec<Option<Rule>>,
}

impl Triggers {
    /// The rules of this file.
    pub(super) fn get() -> &'static Triggers {
        static TRIGGERS: OnceLock<Triggers> = OnceLock::new();
        TRIGGERS.get_or_init(Triggers::build)
    }

    fn build() -> Triggers {
        let mut triggers = Triggers { rules: vec![None], ..Triggers::default() };
        for special in SPECIAL {
            triggers.intern(special);
        }
        for (phrase, rule) in phrases() {
            triggers.add(&phrase, rule);
        }
        for (class, words) in CLASSES {
            for word in *words {
                let row = triggers.intern(word) as usize;
                triggers.classes.resize(triggers.classes.len().max(row + 1), 0);
                triggers.classes[row] |= 1 << *class as u32;
            }
        }
        triggers
    }

    fn intern(&mut self, word: &str) -> Word {
        let n_words = self.words.len() as Word;
        *self.words.entry(word.to_owned()).or_insert(n_words + 1)
    }

    /// Adds a phrase. Of duplicates the first wins, except that terminations are combined.
    fn add(&mut self, phrase: &str, rule: Rule) {
        let mut node = 0;
        for word in phrase.split(' ') {
            let word = self.intern(word);
            let n_nodes = self.rules.len() as u32;
            let next = *self.next.entry((node, word)).or_insert(n_nodes);
            if next == n_nodes {
                self.rules.push(None);
            }
            node = next;
        }
        match (&mut self.rules[node as usize], rule) {
            (Some(Rule::Termination(kinds)), Rule::Termination(others)) => *kinds |= others,
            (Some(_), _) => {}
            (free, rule) => *free = Some(rule),
        }
    }

    /// Id of a word of [`SPECIAL`].
    pub(super) fn special(&self, name: &str) -> Word {
        self.words[name]
    }

    /// Whether a word belongs to a class.
    pub(super) fn is(&self, word: Word, class: Class) -> bool {
        self.classes.get(word as usize).is_some_and(|classes| classes >> class as u32 & 1 == 1)
    }

    /// Whether a word is a number, and no year.
    pub(super) fn is_number(&self, word: Word) -> bool {
        word == self.words["NUM"]
    }

    /// Id of a lower-case token.
    pub(super) fn word(&self, token: &str) -> Word {
        if token.bytes().all(|byte| byte.is_ascii_digit()) {
            let is_year = token.len() == 4 && (token.starts_with("19") || token.starts_with("20"));
            return if is_year { self.words["YEAR"] } else { self.words["NUM"] };
        }
        self.words.get(token).copied().unwrap_or(0)
    }

    /// Rule and length in words of the longest phrase at the start of `words`.
    pub(super) fn longest(&self, words: impl Iterator<Item = Word>) -> Option<(&Rule, usize)> {
        let mut node = 0;
        let mut best = None;
        for (index, word) in words.enumerate() {
            match self.next.get(&(node, word)) {
                Some(next) => node = *next,
                None => break,
            }
            if let Some(rule) = &self.rules[node as usize] {
                best = Some((rule, index + 1));
            }
        }
        best
    }
}

/// All phrases with their rules; pseudo-triggers first, so that they win over equal phrases.
fn phrases() -> Vec<(String, Rule)> {
    let mut phrases = Vec::new();
    let mut add = |patterns: &[&str], rule: Rule| {
        for phrase in patterns.iter().flat_map(|pattern| expand(pattern)) {
            phrases.push((phrase, rule.clone()));
        }
    };
    add(PSEUDO, Rule::Pseudo);
    for (effects, direction, window, patterns) in TRIGGERS {
        add(patterns, Rule::Trigger { effects, direction: *direction, window: *window });
    }
    let bits_of = |kinds: &[usize]| kinds.iter().fold(0, |bits, kind| bits | 1 << kind);
    for (kinds, patterns) in TERMINATIONS {
        add(patterns, Rule::Termination(bits_of(kinds)));
    }
    for (kinds, patterns) in ASIDES {
        add(patterns, Rule::Aside(bits_of(kinds)));
    }
    add(METHODS, Rule::Method);
    phrases
}

/// All phrases that a pattern matches.
fn expand(pattern: &str) -> Vec<String> {
    let mut phrases = vec![String::new()];
    let mut append = |alternatives: &[&str]| {
        let joined = |phrase: &String, word: &str| match (phrase.is_empty(), word.is_empty()) {
            (_, true) => phrase.clone(),
            (true, false) => word.to_owned(),
            (false, false) => format!("{phrase} {word}"),
        };
        phrases = phrases.iter().flat_map(|phrase| alternatives.iter().map(move |word| joined(phrase, word))).collect();
    };
    let mut rest = pattern;
    while let Some(open) = rest.find('(') {
        rest[..open].split_whitespace().for_each(|word| append(&alternatives_of(word)));
        let close = rest.find(')').expect("a test expands every pattern");
        let inside: Vec<&str> = rest[open + 1..close].split('|').flat_map(alternatives_of).collect();
        append(&inside);
        rest = &rest[close + 1..];
    }
    rest.split_whitespace().for_each(|word| append(&alternatives_of(word)));
    phrases.retain(|phrase| !phrase.is_empty());
    phrases
}

fn alternatives_of(word: &str) -> Vec<&str> {
    match word {
        "KIN" => KIN.to_vec(),
        "PARTNER" => PARTNERS.to_vec(),
        "PERSON" => [KIN, PARTNERS].concat(),
        "METHOD" => METHOD_WORDS.to_vec(),
        "NUM" => [&["NUM"], NUMBERS].concat(),
        word => vec![word],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::text::tokens::tokenize;

    #[test]
    fn patterns_are_made_of_tokens() {
        for (phrase, _) in phrases() {
            for word in phrase.split(' ').filter(|word| !SPECIAL.contains(word)) {
                let tokens = tokenize(word);
                assert!(tokens.len() == 1 && tokens[0].span.of(word) == word, "`{word}` of `{phrase}` is no token");
                assert_eq!(word, word.to_lowercase());
            }
        }
    }

    #[test]
    fn no_phrase_has_two_triggers_that_differ() {
        let mut seen: HashMap<String, Rule> = HashMap::new();
        let mut twice = Vec::new();
        for (phrase, rule) in phrases() {
            match seen.get(&phrase) {
                Some(Rule::Termination(_)) if matches!(rule, Rule::Termination(_)) => {}
                Some(known) if *known != rule => twice.push(format!("{phrase}: {known:?}, {rule:?}")),
                _ => drop(seen.insert(phrase, rule)),
            }
        }
        assert!(twice.is_empty(), "{}", twice.join("\n"));
        assert!(seen.len() > 2_000);
    }
}
