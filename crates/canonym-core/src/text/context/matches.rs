//! The rules that match the words of a unit, with the direction and extent in which each applies there.

use super::classes::Class;
use super::lookup::Triggers;
use super::signs::UnitWord;
use super::statements::items;
use super::triggers::{
    ADJECTIVAL, BACK, Direction, EXPERIENCER as WHO, Effect, NEGATION, ORDER, Rule, TEMPORALITY as WHEN, VERSUS,
};
use crate::text::Span;
use crate::text::tokens::Gap;

/// A rule that matches words of a unit, or the start of an item that ends scopes.
#[derive(Debug, Clone)]
pub(super) struct Match {
    pub(super) rule: &'static Rule,
    /// Where a trigger applies here; without meaning for other rules.
    pub(super) direction: Direction,
    pub(super) span: Span,
    pub(super) first_word: usize,
    pub(super) end_word: usize,
    /// The first word that a backward trigger reaches; 0 if only its window limits it.
    pub(super) since: usize,
    /// Bit set of the kinds whose scopes end here, because a clause about the patient, a statement or a new finding starts after a
    /// comma.
    pub(super) ended: u8,
    /// The same for the scopes of backward triggers behind, because a statement ends here.
    pub(super) ended_backward: u8,
}

impl Match {
    /// Whether it is a trigger that applies to the text after it.
    pub(super) fn is_forward(&self) -> bool {
        matches!(self.rule, Rule::Trigger { .. }) && self.direction.is_forward()
    }

    /// Whether it is a trigger with an effect.
    pub(super) fn is_trigger_of(&self, effect: Effect) -> bool {
        matches!(self.rule, Rule::Trigger { effects, .. } if effects.contains(&effect))
    }

    /// Whether it is a trigger that applies to the text before it.
    pub(super) fn is_backward(&self) -> bool {
        matches!(self.rule, Rule::Trigger { .. }) && self.direction.is_backward()
    }
}

/// What is to be excluded first is hypothetical: `once coeliac disease has been excluded`.
static CONDITION: Rule = Rule::Trigger { effects: &[Effect::Hypothetical], direction: Direction::Backward, window: 0 };

/// Maximum number of words between a condition and what it excludes.
const MAX_CONDITION: usize = 14;

/// Maximum number of words between an order and its limit: `hold metoprolol if HR < 60`.
const MAX_ORDER: usize = 8;

/// Maximum number of words between a negation and what the absent finding would suggest.
const MAX_DESCRIBED: usize = 10;

/// Matches the rules on the words, leftmost-longest.
pub(super) fn match_rules(triggers: &'static Triggers, text: &str, words: &[UnitWord], matches: &mut Vec<Match>) {
    let items = items(triggers, text, words);
    let is_trial = words.iter().any(|word| triggers.is(word.word, Class::Trial));
    let (mut row, mut at) = (0, 0);
    while row < words.len() {
        while items.get(at + 1).is_some_and(|next| next.first_word <= row) {
            at += 1;
            let (before, item) = (items[at - 1], items[at]);
            let is_limit = item.is_statement || item.is_medicated;
            let ended = bit(NEGATION, item.is_statement) | bit(ADJECTIVAL, is_limit);
            let ended_backward = bit(NEGATION, before.is_statement || before.has_result);
            if item.first_word == row && ended | ended_backward != 0 {
                let span = Span { end: words[row].span.start, ..words[row].span };
                let start = Match { span, ended, ended_backward, ..plain(&Rule::Pseudo, span, row, row) };
                matches.push(start);
            }
        }
        let Some((rule, n_words)) = triggers.longest(words[row..].iter().map(|word| word.word)) else {
            row += 1;
            continue;
        };
        let end_word = row + n_words;
        let span = Span { start: words[row].span.start, end: words[end_word - 1].span.end };
        let mut found = plain(rule, span, row, end_word);
        row = end_word;
        let first = words[found.first_word].word;
        if words[found.first_word].before == Gap::Comma {
            found.ended |= bit(WHO, *rule != Rule::Pseudo && triggers.is(first, Class::Subjectless))
                | bit(NEGATION, triggers.is(first, Class::NewFinding));
        }
        if let Rule::Trigger { effects, direction, window } = rule {
            let is_versus = *window == VERSUS && *direction == Direction::Both;
            if (is_versus && is_trial) || (*window == ORDER && is_limited(triggers, &words[end_word..])) {
                continue;
            }
            found.ended |= bit(NEGATION, triggers.is(first, Class::Condition));
            found.direction = direction_here(*direction, *window, words, &found);
            let is_own = match direction {
                Direction::Both => effects.contains(&Effect::Possible) && !is_versus,
                Direction::Either => true,
                _ => false,
            };
            let is_clause = items[at].is_clause && effects.iter().any(|effect| effect.kind() == NEGATION);
            if (is_own || is_clause) && found.direction.is_backward() {
                found.since = items[at].first_word;
            }
            if *effects == [Effect::Negated]
                && let Some(condition) = condition_of(triggers, text, words, &found)
            {
                found.rule = &CONDITION;
                found.direction = Direction::Backward;
                found.since = condition + 1;
                found.ended |= bit(WHEN, true);
            }
        }
        matches.push(found);
    }
}

fn bit(kind: usize, is_set: bool) -> u8 {
    u8::from(is_set) << kind
}

fn plain(rule: &'static Rule, span: Span, first_word: usize, end_word: usize) -> Match {
    let direction = Direction::Forward;
    Match { rule, direction, span, first_word, end_word, since: 0, ended: 0, ended_backward: 0 }
}

/// Whether an order holds only under a condition that follows it: `hold metoprolol if HR < 60`, `hold for SBP < 90`.
fn is_limited(triggers: &Triggers, words: &[UnitWord]) -> bool {
    let clause = words.iter().take(MAX_ORDER).take_while(|word| !matches!(word.before, Gap::Comma | Gap::Stop));
    let mut before = 0;
    clause.map(|word| (std::mem::replace(&mut before, word.word), word.word)).any(|(before, word)| {
        triggers.is(word, Class::Limit) || (triggers.is(word, Class::Measure) && triggers.is(before, Class::For))
    })
}

/// Where a trigger that can follow or precede what it is about applies: at the end of an item to the text before it (`ulceration
/// absent, mitoses`), at its start to the text after it (`absent reflexes`).
fn direction_here(direction: Direction, window: u8, words: &[UnitWord], found: &Match) -> Direction {
    let is_edge = |word: &UnitWord| word.is_item || matches!(word.before, Gap::Comma | Gap::Stop | Gap::Bracket);
    let is_end = found.end_word + 1 >= words.len() || is_edge(&words[found.end_word]);
    let is_start = found.first_word <= 1 || is_edge(&words[found.first_word]);
    match direction {
        Direction::Both if window < BACK => direction,
        Direction::Both if is_start && !is_end => Direction::Forward,
        Direction::Both if is_end && !is_start => Direction::Backward,
        Direction::Either if is_end && !is_start => Direction::Backward,
        Direction::Either => Direction::Forward,
        direction => direction,
    }
}

/// The word that makes an exclusion a condition: `if secondary causes are excluded`, but not `once PE was excluded`.
fn condition_of(triggers: &Triggers, text: &str, words: &[UnitWord], found: &Match) -> Option<usize> {
    let is = |row: usize, class: Class| triggers.is(words[row].word, class);
    if !is(found.end_word - 1, Class::Excluded) || is(found.first_word, Class::Past) {
        return None;
    }
    for row in (found.first_word.saturating_sub(MAX_CONDITION)..found.first_word).rev() {
        if is(row, Class::Condition) {
            return Some(row);
        }
        // Commas in brackets do not end a condition.
        let after = &text[words[row].span.start as usize..found.span.start as usize];
        let is_bracketed = || after.find(')').is_some_and(|close| !after[..close].contains('('));
        if words[row].before == Gap::Stop || (words[row].before == Gap::Comma && !is_bracketed()) {
            return None;
        }
    }
    None
}

/// Whether a trigger of doubt describes a finding that is absent because of a trigger that ends at `from`: `no mass suspicious for
/// malignancy`, `no lesion to suggest infarction`.
pub(super) fn describes_absent(triggers: &Triggers, words: &[UnitWord], found: &Match, from: u32) -> bool {
    let is = |row: usize, class: Class| triggers.is(words[row].word, class);
    let row = found.first_word;
    let is_suggesting = is(row, Class::Suggesting) || (is(row, Class::Suggest) && is(row - 1, Class::To));
    if !is_suggesting || words[row].before == Gap::Comma || is(row - 1, Class::Verb) {
        return false;
    }
    let between = (row.saturating_sub(MAX_DESCRIBED)..row).rev().take_while(|row| words[*row].span.start >= from);
    let mut inside = between.take_while(|row| !words[*row].is_item);
    !inside.any(|row| is(row, Class::And))
}

/// Start of what a result such as `negative` is about, if only the last item of a list: `COVID positive, flu negative`. All of
/// `HIV, HBV and HCV negative` are.
pub(super) fn own_result(text: &str, found: &Match, words: &[UnitWord]) -> Option<u32> {
    let is_result = matches!(found.span.of(text).to_lowercase().as_str(), "neg" | "negative");
    let before = text[..found.span.start as usize].trim_end();
    if !is_result || before.ends_with([':', '?', '=', '-', '(']) {
        return None;
    }
    let is_and = |word: &UnitWord| matches!(word.span.of(text).to_lowercase().as_str(), "and" | "or");
    let inside = words[..found.first_word].iter().rev();
    let mut inside = inside.take_while(|word| !is_and(word)).take(LIST);
    inside.find(|word| word.before == Gap::Comma).map(|word| word.span.start)
}

/// Maximum number of words of a list item before its result.
const LIST: usize = 8;
