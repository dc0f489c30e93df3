//! Whether what a text names is denied, past, feared, or of a relative: the rules of ConText.
//!
//! A *trigger* such as `denies` or `history of` says something of what follows it in its sentence, one such as `was
//! ruled out` of what precedes it. A *termination* such as `but` ends its reach, and so does the end of the sentence or
//! a semicolon. A *pseudo-trigger* such as `no increase in` holds the words of a trigger and says nothing. A heading
//! such as `Family history:` speaks for all that stands under it. An *aside* such as `on metformin` interrupts the reach
//! of a trigger and of a heading up to the next comma. Notes are read with their signs and answers, `(-) fever`, `Rash:
//! no`, which `signs.rs` tells from bullets and dashes. The rules follow NegEx (Chapman 2001) and ConText
//! (Harkema 2009); the lists in `triggers.rs` are our own. They know the English of clinical notes, not that of every
//! text, and look at words only, never at grammar.
//!
//! ```
//! use canonym_core::text::context::{Contexts, Negation};
//! use canonym_core::text::{Document, Span};
//!
//! let text = "Denies fever but reports cough.".to_owned();
//! let contexts = Contexts::new(&Document { text, ..Document::default() });
//! assert_eq!(contexts.of(&[Span::new(7, 12)]).negation, Negation::Negated);
//! assert_eq!(contexts.of(&[Span::new(25, 30)]).negation, Negation::Affirmed);
//! ```

mod signs;
mod triggers;
mod units;

use self::signs::{Source, UnitWord, read_words, signed_bullets};
use self::triggers::{BRIEF, BRIEFLY, EXPERIENCER as WHO, Effect, HEADED, Rule, TEMPORALITY as WHEN, Triggers};
use self::units::{Unit, units};
use super::tokens::{Gap, tokenize};
use super::{Document, Span};

/// Whether it is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Negation {
    /// The text says that it is there.
    #[default]
    Affirmed,
    /// It is suspected or asked for.
    Possible,
    /// The text says that it is not there.
    Negated,
}

/// When it is there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Temporality {
    /// Now, or in what led to now.
    #[default]
    Recent,
    /// It belongs to the past of the patient.
    Historical,
    /// It may come.
    Hypothetical,
}

/// Who has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Experiencer {
    /// Whom the text is about.
    #[default]
    Patient,
    /// A relative.
    Family,
}

/// What the text around a mention says of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Context {
    /// Whether it is there.
    pub negation: Negation,
    /// When.
    pub temporality: Temporality,
    /// Of whom.
    pub experiencer: Experiencer,
}

impl Context {
    /// Back to a plain statement in the kinds whose bits are set.
    fn forget(&mut self, kinds: u8) {
        let plain = Context::default();
        if kinds >> triggers::NEGATION & 1 == 1 {
            self.negation = plain.negation;
        }
        if kinds >> WHEN & 1 == 1 {
            self.temporality = plain.temporality;
        }
        if kinds >> WHO & 1 == 1 {
            self.experiencer = plain.experiencer;
        }
    }

    /// What differs from a plain statement about the patient of today, as names and values of attributes.
    pub fn attributes(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let negation = match self.negation {
            Negation::Affirmed => None,
            Negation::Possible => Some("possible"),
            Negation::Negated => Some("negated"),
        };
        let temporality = match self.temporality {
            Temporality::Recent => None,
            Temporality::Historical => Some("historical"),
            Temporality::Hypothetical => Some("hypothetical"),
        };
        let experiencer = (self.experiencer == Experiencer::Family).then_some("family");
        // In the order of their names, which lets writers keep them as an object.
        let all = [(EXPERIENCER, experiencer), (NEGATION, negation), (TEMPORALITY, temporality)];
        all.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
    }
}

/// The name of the attribute that holds the [`Experiencer`].
pub const EXPERIENCER: &str = "experiencer";
/// The name of the attribute that holds the [`Negation`].
pub const NEGATION: &str = "negation";
/// The name of the attribute that holds the [`Temporality`].
pub const TEMPORALITY: &str = "temporality";

/// What reaches a place.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Reaching {
    /// The effect of each kind of the nearest trigger, with the trigger's own place.
    reaches: [Option<Reach>; Effect::N_KINDS],
    /// The kinds, as bits, of which headings say no more.
    unheaded: u8,
    /// The kinds, as bits, that are suspended, and up to which byte.
    aside: (u8, u32),
}

impl Reaching {
    /// Ends the kinds whose bits are set.
    fn end(&mut self, kinds: u8) {
        let ends = |(kind, reach): (usize, &mut Option<Reach>)| {
            if kinds >> kind & 1 == 1 {
                *reach = None;
            }
        };
        self.reaches.iter_mut().enumerate().for_each(ends);
        if kinds >> BRIEFLY & 1 == 1 && self.reaches[WHEN].is_some_and(|reach| reach.is_brief) {
            self.reaches[WHEN] = None;
        }
        if kinds >> HEADED & 1 == 1 {
            self.unheaded |= kinds;
        }
    }

    /// The kinds, as bits, of which neither headings nor triggers say anything at `at`.
    fn suspended(&self, at: u32) -> u8 {
        if at < self.aside.1 { self.aside.0 } else { 0 }
    }
}

/// The reach of one trigger in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reach {
    effect: Effect,
    /// The end of the trigger that is nearer to what it speaks of.
    from: u32,
    /// As far as it reaches at most, in bytes of the text.
    until: u32,
    /// Whether `with` ends it.
    is_brief: bool,
}

/// The contexts of all places of a document; made in one pass, asked for each mention.
#[derive(Debug, Clone)]
pub struct Contexts {
    /// What reaches forward from each of these bytes on.
    forward: Vec<(u32, Reaching)>,
    /// What reaches backward from each of these bytes on, last first.
    backward: Vec<(u32, Reaching)>,
    /// What headings say of everything from these bytes on.
    headed: Vec<(u32, Context)>,
}

impl Contexts {
    /// Reads the triggers, terminations and headings of a document.
    pub fn new(document: &Document) -> Contexts {
        let text = document.text.as_str();
        let triggers = Triggers::get();
        let mut contexts =
            Contexts { forward: Vec::new(), backward: Vec::new(), headed: vec![(0, Context::default())] };
        let tokens = tokenize(text);
        let mut matches: Vec<Match> = Vec::new();
        let mut words: Vec<UnitWord> = Vec::new();
        let signed = signed_bullets(text);
        let source = Source { triggers, text, signed: &signed };
        // The pass backward asks for the last first, so units wait until all are read.
        let mut all: Vec<(Span, Vec<Match>, Vec<Span>)> = Vec::new();
        let mut rest = tokens.as_slice();
        for Unit { span, heading } in units(document) {
            if let Some(context) = heading {
                contexts.headed.push((span.start, context));
            }
            let n_inside = rest.iter().take_while(|token| token.span.start < span.end).count();
            let (inside, behind) = rest.split_at(n_inside);
            rest = behind;
            read_words(source, span, inside, &mut words);
            matches.clear();
            match_rules(triggers, &words, &mut matches);
            contexts.push_forward(span, &matches, &words);
            if matches.iter().any(|found| found.rule.is_backward()) {
                all.push((span, matches.clone(), words.iter().map(|word| word.span).collect()));
            }
        }
        for (span, matches, words) in all.iter().rev() {
            contexts.push_backward(*span, matches, words);
        }
        contexts
    }

    /// What is said of the mention at these spans, which are in text order and not empty.
    pub fn of(&self, spans: &[Span]) -> Context {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return Context::default() };
        let before = self.forward.partition_point(|(at, _)| *at <= first.start).checked_sub(1);
        let behind = self.backward.partition_point(|(at, _)| *at >= last.end).checked_sub(1);
        let headed = self.headed.partition_point(|(at, _)| *at <= first.start).checked_sub(1);
        let forward = before.map(|row| self.forward[row].1).unwrap_or_default();
        let backward = behind.map(|row| self.backward[row].1).unwrap_or_default();
        let mut context = headed.map(|row| self.headed[row].1).unwrap_or_default();
        let suspended = forward.suspended(first.start);
        context.forget(forward.unheaded | suspended);
        for kind in 0..Effect::N_KINDS {
            let forward = forward.reaches[kind].filter(|reach| {
                let is_aside = suspended >> kind & 1 == 1 && reach.effect != Effect::Hypothetical;
                first.start < reach.until && !is_aside
            });
            let backward = backward.reaches[kind].filter(|reach| last.end > reach.until);
            let nearest = match (forward, backward) {
                (Some(before), Some(behind)) if behind.from - last.end < first.start - before.from => Some(behind),
                (before, behind) => before.or(behind),
            };
            if let Some(reach) = nearest {
                reach.effect.apply(&mut context);
            }
        }
        context
    }

    fn push_forward(&mut self, unit: Span, matches: &[Match], words: &[UnitWord]) {
        let mut reaching = Reaching::default();
        self.forward.push((unit.start, reaching));
        for found in matches {
            if found.is_clause {
                reaching.end(1 << WHO);
                self.forward.push((found.span.start, reaching));
            }
            let at = match &found.rule {
                Rule::Pseudo => continue,
                Rule::Termination(kinds) => {
                    reaching.end(*kinds);
                    found.span.start
                }
                Rule::Aside(kinds) => {
                    reaching.aside = (*kinds, end_of_aside(unit, &words[found.end_word..]));
                    found.span.end
                }
                Rule::Trigger { direction, .. } if !direction.is_forward() => continue,
                Rule::Trigger { effects, window, .. } => {
                    let is_brief = *window == BRIEF;
                    let last = words.get(found.end_word + usize::from(*window)).filter(|_| *window > 0 && !is_brief);
                    let until = last.map_or(unit.end, |word| word.span.start);
                    // What a relative has is not of the past because something else is.
                    if effects.contains(&Effect::Family)
                        && reaching.reaches[WHEN].is_some_and(|reach| reach.effect == Effect::Historical)
                    {
                        reaching.reaches[WHEN] = None;
                    }
                    for effect in effects.iter() {
                        let reach = Reach { effect: *effect, from: found.span.end, until, is_brief };
                        reaching.reaches[effect.kind()] = Some(reach);
                        reaching.aside.0 &= !(1 << effect.kind());
                    }
                    found.span.end
                }
            };
            self.forward.push((at, reaching));
        }
    }

    fn push_backward(&mut self, unit: Span, matches: &[Match], words: &[Span]) {
        let mut reaching = Reaching::default();
        self.backward.push((unit.end, reaching));
        for found in matches.iter().rev() {
            match &found.rule {
                Rule::Pseudo | Rule::Aside(_) => continue,
                Rule::Termination(kinds) => reaching.end(*kinds),
                Rule::Trigger { direction, .. } if !direction.is_backward() => continue,
                Rule::Trigger { effects, window, .. } => {
                    // A word before those in the window is out of reach.
                    let beyond = found.first_word.checked_sub(usize::from(*window) + 1).filter(|_| *window > 0);
                    let until = beyond.map_or(unit.start, |row| words[row].end);
                    for effect in effects.iter() {
                        let reach = Reach { effect: *effect, from: found.span.start, until, is_brief: false };
                        reaching.reaches[effect.kind()] = Some(reach);
                    }
                }
            }
            self.backward.push((found.span.start, reaching));
        }
        // What precedes the unit is not reached.
        self.backward.push((unit.start, Reaching::default()));
    }
}

/// Words of a unit that are a rule.
#[derive(Debug, Clone)]
struct Match {
    rule: &'static Rule,
    span: Span,
    first_word: usize,
    end_word: usize,
    /// Whether a clause about the patient starts with it.
    is_clause: bool,
}

/// The words that an aside has at most.
const MAX_ASIDE: usize = 12;

/// Where an aside ends of which `words` follow: at a comma, a bracket or the end of the unit.
fn end_of_aside(unit: Span, words: &[UnitWord]) -> u32 {
    let ends = |word: &&UnitWord| matches!(word.before, Gap::Comma | Gap::Bracket | Gap::Stop);
    words
        .iter()
        .take(MAX_ASIDE + 1)
        .skip(1)
        .find(ends)
        .or(words.get(MAX_ASIDE))
        .map_or(unit.end, |word| word.span.start)
}

/// The rules that the words hold: at each place the longest, and none inside another.
fn match_rules(triggers: &'static Triggers, words: &[UnitWord], matches: &mut Vec<Match>) {
    let mut row = 0;
    while row < words.len() {
        match triggers.longest(words[row..].iter().map(|word| word.word)) {
            Some((rule, n_words)) => {
                let end_word = row + n_words;
                let span = Span { start: words[row].span.start, end: words[end_word - 1].span.end };
                let is_clause = words[row].before == Gap::Comma && triggers.is_subjectless(words[row].word);
                matches.push(Match { rule, span, first_word: row, end_word, is_clause });
                row = end_word;
            }
            None => row += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn context(text: &str, what: &str) -> Vec<(&'static str, &'static str)> {
        let start = text.find(what).unwrap();
        let document = Document { text: text.to_owned(), ..Document::default() };
        Contexts::new(&document).of(&[Span::new(start, start + what.len())]).attributes().collect()
    }

    #[test]
    fn triggers_inside_a_mention_say_nothing_of_it() {
        assert_eq!(context("She has no appetite.", "no appetite"), []);
        assert_eq!(context("Denies history of falls.", "history of falls"), [("negation", "negated")]);
    }

    #[test]
    fn the_nearest_trigger_of_a_kind_decides() {
        assert_eq!(context("No cough, possible asthma.", "asthma"), [("negation", "possible")]);
        assert_eq!(context("No cough, possible asthma.", "cough"), [("negation", "negated")]);
    }

    #[test]
    fn kinds_of_context_do_not_disturb_each_other() {
        let all = [("experiencer", "family"), ("negation", "negated"), ("temporality", "historical")];
        assert_eq!(context("Mother with no history of gout.", "gout"), all);
    }

    #[test]
    fn reach_ends_with_the_sentence_and_at_semicolons() {
        assert_eq!(context("No rash. Cough.", "Cough"), []);
        assert_eq!(context("No rash; cough.", "cough"), []);
        assert_eq!(context("Rash. It was ruled out.", "Rash"), []);
    }

    #[test]
    fn signs_answers_and_asides_take_linear_time() {
        for part in ["? ", "(+) ", "+-", "a: no ", "on ", "s/p a ", "c/o, ", "\n- a", "\n+ a\n- b", "? No. "] {
            for blank in ["", " ", "\n"] {
                let text = part.repeat(10_000) + &blank.repeat(10_000) + &part.repeat(10_000);
                let document = Document { text, ..Document::default() };
                Contexts::new(&document).of(&[Span::new(0, 1)]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_and_span_has_a_context(
            text in "(no |denies |but |\\PC|\n|: |; |mother |\\? |[(]-[)] |[+-]|, |on |s/p |with |PMH: |yes|pt |c/o ){0,30}",
        ) {
            let document = Document { text: text.clone(), ..Document::default() };
            let contexts = Contexts::new(&document);
            let mut bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            bounds.push(text.len());
            for pair in bounds.windows(2) {
                contexts.of(&[Span::new(pair[0], pair[1])]);
            }
            prop_assert!(contexts.forward.is_sorted_by_key(|(at, _)| *at));
            prop_assert!(contexts.backward.iter().rev().is_sorted_by_key(|(at, _)| *at));
        }
    }
}
