//! Items of lists that are statements of their own, at which the scope of a negation or doubt before them ends.
//!
//! `no LOC, GCS 15, vomited x1` denies one of three. An item is a statement if it starts with a verb or a state of the patient, has a
//! verb of its own, or ends with a value, a result or what was done: `power 5/5`, `chest clear`, `Laxido given`. Items of a
//! list that ends with `, or` are not, unless they have verbs.

use super::classes::Class;
use super::lookup::Triggers;
use super::signs::UnitWord;

/// An item of a list, from one comma or spaced dash to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) first_word: usize,
    pub(super) end_word: usize,
    /// Whether it is a statement.
    pub(super) is_statement: bool,
    /// Whether it ends with a result, so that what ends a later item is not about it.
    pub(super) has_result: bool,
    /// Whether it has a subject and a verb of its own, so that what ends it is about no item before.
    pub(super) is_clause: bool,
    /// Whether it is about a medication: `PPID on pergolide`.
    pub(super) is_medicated: bool,
}

/// Number of words at the start of an item that are read for a verb.
const MAX_BEFORE_VERB: usize = 8;

/// The items of a unit; together they cover its words.
pub(super) fn items(triggers: &Triggers, text: &str, words: &[UnitWord]) -> Vec<Item> {
    let starts = (1..words.len()).filter(|row| words[*row].is_item);
    let bounds: Vec<usize> = [0].into_iter().chain(starts).chain([words.len()]).collect();
    let last_or = bounds.iter().rposition(|row| words.get(*row).is_some_and(|word| triggers.is(word.word, Class::Or)));
    let mut items: Vec<Item> = Vec::with_capacity(bounds.len() - 1);
    for (at, pair) in bounds.windows(2).enumerate() {
        let (first_word, end_word) = (pair[0], pair[1]);
        // The start and the end of the unit are no words.
        let first = first_word + usize::from(first_word == 0);
        let end = end_word - usize::from(end_word == words.len());
        let item = Reader { triggers, text, item: words.get(first..end).unwrap_or_default() };
        let before = items.last().map(|before| before.first_word..before.end_word).unwrap_or_default();
        let before = Reader { triggers, text, item: &words[before] };
        let is_listed = last_or.is_some_and(|last| last > at);
        let is_clause = item.has_verb(at);
        let is_statement = is_clause
            || item.is(0, Class::Opening)
            || (!is_listed && item.tells_result())
            || (!is_listed && item.has_value() && !before.has_value())
            || (!is_listed && item.is_counted() && !before.has_number());
        let (has_result, is_medicated) = (item.has_result(), item.is_medicated());
        items.push(Item { first_word, end_word, is_statement, has_result, is_clause, is_medicated });
    }
    items
}

struct Reader<'a> {
    triggers: &'a Triggers,
    text: &'a str,
    item: &'a [UnitWord],
}

impl Reader<'_> {
    fn is(&self, row: usize, class: Class) -> bool {
        self.item.get(row).is_some_and(|word| self.triggers.is(word.word, class))
    }

    fn is_joined(&self, row: usize) -> bool {
        self.is(row, Class::Or) || self.is(row, Class::And)
    }

    /// Whether it has a verb after its subject: `abdomen is soft`, but not `rales or rubs were heard`, or `and rubs were absent` as
    /// the last item of a list. `n_before` items are before it.
    fn has_verb(&self, n_before: usize) -> bool {
        if self.is(0, Class::Or) || self.is(0, Class::Opening) {
            return false;
        }
        let start = usize::from(self.is(0, Class::And));
        let rows = start..self.item.len().min(start + MAX_BEFORE_VERB);
        let ends = |row: &usize| self.is(*row, Class::Verb) || self.is(*row, Class::Relative) || self.is_joined(*row);
        let Some(row) = rows.skip(1).find(|row| ends(row)) else { return false };
        let participle = row + 1 + usize::from(self.is(row + 1, Class::Been));
        let is_of_list = start == 1 && n_before > 1 && self.is(row, Class::Plural);
        self.is(row, Class::Verb) && !is_of_list && !self.is(participle, Class::Seen)
    }

    /// Whether it ends with a result or with what was done: `chest clear`, `fluids given`.
    fn has_result(&self) -> bool {
        self.item.len() > 1 && self.is(self.item.len() - 1, Class::Result)
    }

    /// Whether it ends with a result that is not about all items of a list: not `rales or rubs normal`, `rales and rubs present`.
    fn tells_result(&self) -> bool {
        let last = self.item.len().saturating_sub(1);
        let is_seen = self.is(last, Class::Seen);
        let mut rows = last.saturating_sub(MAX_BEFORE_VERB)..last;
        self.has_result() && !rows.any(|row| self.is(row, Class::Or) || (is_seen && self.is(row, Class::And)))
    }

    fn has_number(&self) -> bool {
        self.item.iter().any(|word| self.triggers.is_number(word.word))
    }

    /// Whether it starts with a number of something: `3 episodes of vomiting`.
    fn is_counted(&self) -> bool {
        let is_number = |row: usize| self.item.get(row).is_some_and(|word| self.triggers.is_number(word.word));
        self.item.len() > 1 && is_number(0) && !is_number(1) && !self.is(1, Class::Unit)
    }

    /// Whether it ends with a value: `GCS 15`, `power 5/5`, `reflux 8 L`, `aspirin 75 mg daily`.
    fn has_value(&self) -> bool {
        let is_number = |word: &UnitWord| self.triggers.is_number(word.word);
        let is_after_words = |row: usize| {
            let start = self.item[row].span.start as usize;
            let before = self.text[..start].chars().next_back();
            before.is_some_and(|letter| letter.is_whitespace() || matches!(letter, '<' | '>' | '=' | '≥' | '≤' | '~'))
        };
        let number = (1..self.item.len()).find(|row| is_number(&self.item[*row]) && is_after_words(*row));
        let Some(row) = number.filter(|row| !self.is(row - 1, Class::Numbered) && !self.is_joined(0)) else {
            return false;
        };
        self.item[row + 1..].iter().all(|word| is_number(word) || self.triggers.is(word.word, Class::Unit))
    }

    fn is_medicated(&self) -> bool {
        let on = self.item.iter().skip(1).take(MAX_BEFORE_VERB).position(|word| self.triggers.is(word.word, Class::On));
        on.is_some_and(|on| on + 2 < self.item.len())
    }
}
