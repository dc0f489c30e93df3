//! Negation, temporality and experiencer of mentions, by the ConText algorithm.
//!
//! A *trigger* such as `denies` or `history of` applies to the text after it in its sentence; one such as
//! `was ruled out` applies to the text before it. Its scope ends at a *termination* such as `but`, at a semicolon, or at the end
//! of the sentence. In a list of findings it also ends at a *statement*, such as `power 5/5` (`statements.rs`). A *pseudo-trigger* such as `no increase in` contains the words of a trigger but has no effect. A
//! heading such as `Family history:` applies to its whole section. An *aside* such as `on metformin` suspends a trigger
//! or heading up to the next comma. Signs and answers in notes (`(-) fever`, `Rash: no`) are distinguished from bullets
//! and dashes in `signs.rs`. The rules follow NegEx (Chapman et al. 2001) and ConText (Harkema et al. 2009); the lists
//! in `triggers.rs` are our own. They cover English clinical notes and use words only, no syntax.
//!
//! ```
//! use canonym_core::text::Span;
//! use canonym_core::text::analysis::Analysis;
//! use canonym_core::text::context::{Contexts, Negation};
//!
//! let contexts = Contexts::new(&Analysis::of_text("Denies fever but reports cough."));
//! assert_eq!(contexts.of(&[Span::new(7, 12)]).negation, Negation::Negated);
//! assert_eq!(contexts.of(&[Span::new(25, 30)]).negation, Negation::Affirmed);
//! ```

pub mod allergens;
mod classes;
mod lookup;
mod matches;
mod signs;
mod statements;
mod triggers;
mod units;

use self::classes::Class;
use self::lookup::Triggers;
use self::matches::{Match, describes_absent, match_rules, own_result};
use self::signs::{Source, UnitWord, read_words, signed_bullets};
use self::triggers::{
    ADJECTIVAL, ADJECTIVE, BACK, BRIEF, BRIEFLY, CLAUSE, Direction, EXPERIENCER as WHO, Effect, HEADED, ORDER,
    ORDER_BACK, Rule, TEMPORALITY as WHEN, WORD,
};
use self::units::{Unit, units};
use super::Span;
use super::analysis::Analysis;
use super::tokens::Gap;

/// Whether the finding is present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Negation {
    /// Present.
    #[default]
    Affirmed,
    /// Suspected or in question.
    Possible,
    /// Absent.
    Negated,
}

/// When the finding is present.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Temporality {
    /// Current, or part of the current episode.
    #[default]
    Recent,
    /// In the past history of the patient.
    Historical,
    /// In the possible future.
    Hypothetical,
}

/// Who has the finding.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Experiencer {
    /// The patient.
    #[default]
    Patient,
    /// A relative of the patient.
    Family,
}

/// The context of a mention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Context {
    /// Whether the finding is present.
    pub negation: Negation,
    /// When.
    pub temporality: Temporality,
    /// Who has it.
    pub experiencer: Experiencer,
}

impl Context {
    /// Resets the kinds whose bits are set to their defaults.
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

    /// The values that differ from the default (affirmed, recent, patient), as names and values of attributes.
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
        // Sorted by name, so that writers can keep them as an object.
        let all = [(EXPERIENCER, experiencer), (NEGATION, negation), (TEMPORALITY, temporality)];
        all.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
    }
}

/// Attribute name of the [`Experiencer`].
pub const EXPERIENCER: &str = "experiencer";
/// Attribute name of the [`Negation`].
pub const NEGATION: &str = "negation";
/// Attribute name of the [`Temporality`].
pub const TEMPORALITY: &str = "temporality";

/// The scopes that are open at a position.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct OpenScopes {
    /// For each kind, the nearest trigger's effect and scope.
    scopes: [Option<TriggerScope>; Effect::N_KINDS],
    /// Bit set of the kinds for which headings no longer apply.
    without_heading: u8,
    /// Bit set of the suspended kinds, and the byte at which the suspension ends.
    aside: (u8, u32),
    /// The last negation of a single word: `non-smoker`.
    word: Option<TriggerScope>,
}

impl OpenScopes {
    /// Closes the scopes of the kinds whose bits are set.
    fn end(&mut self, kinds: u8) {
        let ends = |(kind, scope): (usize, &mut Option<TriggerScope>)| {
            if kinds >> kind & 1 == 1 {
                *scope = None;
            }
        };
        self.scopes.iter_mut().enumerate().for_each(ends);
        for (kind, window) in [(BRIEFLY, BRIEF), (ADJECTIVAL, ADJECTIVE)] {
            if kinds >> kind & 1 == 1 && self.scopes[WHEN].is_some_and(|scope| scope.window == window) {
                self.scopes[WHEN] = None;
            }
        }
        if kinds >> HEADED & 1 == 1 {
            self.without_heading |= kinds;
        }
    }

    /// Whether the nearest trigger of negation or doubt negates.
    fn is_negated(&self) -> bool {
        self.scopes[triggers::NEGATION].is_some_and(|scope| scope.effect == Effect::Negated)
    }

    /// Bit set of the kinds for which neither headings nor triggers apply at `at`.
    fn suspended(&self, at: u32) -> u8 {
        if at < self.aside.1 { self.aside.0 } else { 0 }
    }
}

/// The scope of a trigger in one direction.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TriggerScope {
    effect: Effect,
    /// The end of the trigger adjacent to its scope.
    from: u32,
    /// End of the scope in bytes of the text.
    until: u32,
    /// The window of its trigger.
    window: u8,
}

/// The contexts of all positions in a document, computed in one pass.
#[derive(Debug, Clone)]
pub struct Contexts {
    /// Scopes of forward triggers from each of these bytes on.
    forward: Vec<(u32, OpenScopes)>,
    /// Scopes of backward triggers from each of these bytes on, last first.
    backward: Vec<(u32, OpenScopes)>,
    /// Contexts set by headings from each of these bytes on.
    headed: Vec<(u32, Context)>,
}

impl Contexts {
    /// Finds the triggers, terminations and headings of a document.
    pub fn new(document: &Analysis<'_>) -> Contexts {
        let text = document.text;
        let triggers = Triggers::get();
        let mut contexts =
            Contexts { forward: Vec::new(), backward: Vec::new(), headed: vec![(0, Context::default())] };
        let mut matches: Vec<Match> = Vec::new();
        let mut words: Vec<UnitWord> = Vec::new();
        let mut headed = Context::default();
        // Whether the writer tells of a relative.
        let mut is_narrated = false;
        let signed = signed_bullets(text);
        let source = Source { triggers, text, signed: &signed };
        // The backward pass needs the units in reverse order.
        let mut all: Vec<(Span, Vec<Match>, Vec<UnitWord>)> = Vec::new();
        let mut rest = document.tokens();
        for Unit { span, heading } in units(document) {
            if let Some(context) = heading {
                contexts.headed.push((span.start, context));
                headed = context;
            }
            let n_inside = rest.iter().take_while(|token| token.span.start < span.end).count();
            let (inside, after) = rest.split_at(n_inside);
            rest = after;
            read_words(source, span, inside, &mut words);
            matches.clear();
            match_rules(triggers, text, &words, &mut matches);
            // `My husband snores. He has sleep apnea.`
            let is_first = |class: Class| words.get(1).is_some_and(|word| triggers.is(word.word, class));
            let mut open = OpenScopes::default();
            is_narrated &= heading.is_none();
            if is_narrated && is_first(Class::Pronoun) {
                let effect = Effect::Family;
                open.scopes[WHO] = Some(TriggerScope { effect, from: span.start, until: span.end, window: 0 });
            }
            contexts.push_forward(span, &matches, &words, open);
            let is_about_own = |found: &Match| found.first_word == 1 && found.is_trigger_of(Effect::Family);
            is_narrated = match is_first(Class::Writer) && matches.iter().any(is_about_own) {
                true => true,
                false => is_narrated && !words.iter().any(|word| triggers.is(word.word, Class::Writer)),
            };
            // After a sentence about the patient, a family history does not go on.
            let is_about_patient = |found: &Match| match found.rule {
                Rule::Termination(kinds) => kinds >> HEADED & 1 == 1 && kinds >> WHO & 1 == 1,
                _ => false,
            };
            if headed.experiencer == Experiencer::Family && matches.iter().any(is_about_patient) {
                headed.experiencer = Experiencer::Patient;
                contexts.headed.push((span.end, headed));
            }
            if matches.iter().any(Match::is_backward) {
                all.push((span, matches.clone(), words.clone()));
            }
        }
        for (span, matches, words) in all.iter().rev() {
            contexts.push_backward(text, *span, matches, words);
        }
        contexts
    }

    /// The context of a mention; `spans` are in text order and not empty.
    pub fn of(&self, spans: &[Span]) -> Context {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return Context::default() };
        let before = self.forward.partition_point(|(at, _)| *at <= first.start).checked_sub(1);
        let after = self.backward.partition_point(|(at, _)| *at >= last.end).checked_sub(1);
        let headed = self.headed.partition_point(|(at, _)| *at <= first.start).checked_sub(1);
        let forward = before.map(|row| self.forward[row].1).unwrap_or_default();
        let backward = after.map(|row| self.backward[row].1).unwrap_or_default();
        let mut context = headed.map(|row| self.headed[row].1).unwrap_or_default();
        let suspended = forward.suspended(first.start);
        context.forget(forward.without_heading | suspended);
        for kind in 0..Effect::N_KINDS {
            let word = forward.word.filter(|scope| scope.effect.kind() == kind && first.start < scope.until);
            let forward = word.or(forward.scopes[kind]).filter(|scope| {
                let is_aside = suspended >> kind & 1 == 1 && scope.effect != Effect::Hypothetical;
                first.start < scope.until && !is_aside
            });
            let backward = backward.scopes[kind].filter(|scope| last.end > scope.until);
            let nearest = match (forward, backward) {
                (Some(before), Some(after)) if after.from - last.end < first.start.saturating_sub(before.from) => {
                    Some(after)
                }
                (before, after) => before.or(after),
            };
            if let Some(scope) = nearest {
                scope.effect.apply(&mut context);
            }
        }
        context
    }

    fn push_forward(&mut self, unit: Span, matches: &[Match], words: &[UnitWord], open: OpenScopes) {
        let triggers = Triggers::get();
        let mut open = open;
        // Whoever writes of `my husband` is the patient, so that `he` is not.
        let is_first_person = |found: &Match| triggers.is(words[found.first_word].word, Class::Writer);
        let mut is_narrated = open.scopes[WHO].is_some();
        self.forward.push((unit.start, open));
        for found in matches {
            if found.ended != 0 {
                open.end(found.ended);
                self.forward.push((found.span.start, open));
            }
            let at = match &found.rule {
                Rule::Pseudo => continue,
                Rule::Termination(kinds) => {
                    let is_relative = is_narrated && triggers.is(words[found.first_word].word, Class::Pronoun);
                    open.end(if is_relative { kinds & !(1 << WHO) } else { *kinds });
                    found.span.start
                }
                // What a suspected finding is related to is in doubt too.
                Rule::Aside(kinds) if *kinds == 1 << triggers::NEGATION && !open.is_negated() => continue,
                Rule::Aside(kinds) => {
                    open.aside = (*kinds, end_of_aside(unit, &words[found.end_word..]));
                    found.span.end
                }
                Rule::Method => {
                    open.aside = (1 << triggers::NEGATION, found.span.end);
                    words[found.first_word].span.end
                }
                Rule::Trigger { .. } if !found.is_forward() => continue,
                Rule::Trigger { effects, window, .. } => {
                    let until = forward_end(triggers, *window, unit, &words[found.end_word..]);
                    let scope = |effect: Effect| TriggerScope { effect, from: found.span.end, until, window: *window };
                    if *window == WORD {
                        open.word = effects.first().map(|effect| scope(*effect));
                        self.forward.push((words[found.first_word].span.end, open));
                        continue;
                    }
                    let absent = open.scopes[triggers::NEGATION]
                        .filter(|scope| scope.effect == Effect::Negated && found.span.start < scope.until);
                    if *effects == [Effect::Possible]
                        && absent.is_some_and(|scope| describes_absent(triggers, words, found, scope.from))
                    {
                        continue;
                    }
                    // A finding of a relative is not historical because of an earlier trigger.
                    if effects.contains(&Effect::Family)
                        && open.scopes[WHEN].is_some_and(|scope| scope.effect == Effect::Historical)
                    {
                        open.scopes[WHEN] = None;
                    }
                    for effect in effects.iter() {
                        open.scopes[effect.kind()] = Some(scope(*effect));
                        open.aside.0 &= !(1 << effect.kind());
                    }
                    is_narrated |= effects.contains(&Effect::Family) && is_first_person(found);
                    // A name can start with the verb of a trigger: `had a stroke` in `father had a stroke`.
                    words[found.first_word].span.end
                }
            };
            self.forward.push((at, open));
        }
    }

    fn push_backward(&mut self, text: &str, unit: Span, matches: &[Match], words: &[UnitWord]) {
        let mut open = OpenScopes::default();
        self.backward.push((unit.end, open));
        for found in matches.iter().rev() {
            if found.ended_backward != 0 {
                open.end(found.ended_backward);
                self.backward.push((found.span.start, open));
            }
            match &found.rule {
                Rule::Pseudo | Rule::Aside(_) | Rule::Method => continue,
                Rule::Termination(kinds) => open.end(*kinds),
                Rule::Trigger { .. } if !found.is_backward() => continue,
                Rule::Trigger { effects, window, direction } => {
                    let window = match (direction, *window) {
                        (Direction::Either, ORDER) => ORDER_BACK,
                        (Direction::Either, _) => BACK,
                        (_, window) => window,
                    };
                    // Words before the window are out of scope.
                    let beyond = found.first_word.checked_sub(usize::from(window) + 1).filter(|_| window > 0);
                    let beyond = beyond.max(found.since.checked_sub(1));
                    let until = beyond.map_or(unit.start, |row| words[row].span.end);
                    let until = until.max(own_result(text, found, words).unwrap_or(until));
                    for effect in effects.iter() {
                        let scope = TriggerScope { effect: *effect, from: found.span.start, until, window };
                        open.scopes[effect.kind()] = Some(scope);
                    }
                }
            }
            self.backward.push((found.span.start, open));
        }
        // The scope ends at the start of the unit.
        self.backward.push((unit.start, OpenScopes::default()));
    }
}

/// Maximum number of words of an aside.
const MAX_ASIDE: usize = 12;

/// End of an aside before `words`: a comma, a bracket or the end of the unit.
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

/// Maximum number of words of a clause that a trigger such as `until` opens, or of the objects of an order.
const MAX_CLAUSE: usize = 12;

/// End of the scope of a forward trigger, in bytes; `words` follow it.
fn forward_end(triggers: &Triggers, window: u8, unit: Span, words: &[UnitWord]) -> u32 {
    let end = match window {
        0 | BRIEF | ADJECTIVE => None,
        CLAUSE => words.iter().take(MAX_CLAUSE).find(|word| word.before == Gap::Comma),
        ORDER => {
            let is_joined = |row: usize| {
                let is = |row: usize, class: Class| words.get(row).is_some_and(|word| triggers.is(word.word, class));
                (is(row, Class::And) || is(row, Class::Or)) && !is(row + 1, Class::Opening)
            };
            let mut end = ORDER_WORDS;
            while let Some(row) = [end - 1, end].into_iter().find(|row| *row < MAX_CLAUSE && is_joined(*row)) {
                end = row + 1 + ORDER_WORDS;
            }
            let is_outside = |row: &usize| words.get(*row).is_some_and(|word| word.before == Gap::Bracket);
            words.get((1..end).find(is_outside).unwrap_or(end))
        }
        window => words.get(usize::from(window)),
    };
    end.map_or(unit.end, |word| word.span.start)
}

/// Scope of an order in words, and of what `and` adds to it: `withhold alcohol and NSAIDs`.
const ORDER_WORDS: usize = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn context(text: &str, what: &str) -> Vec<(&'static str, &'static str)> {
        let start = text.find(what).unwrap();
        Contexts::new(&Analysis::of_text(text)).of(&[Span::new(start, start + what.len())]).attributes().collect()
    }

    #[test]
    fn drugs_that_were_not_given_are_negated() {
        for (text, what) in [
            ("Aspirin was not given.", "Aspirin"),
            ("Aspirin was not administered.", "Aspirin"),
            ("Metformin was withheld.", "Metformin"),
            ("Refused ibuprofen.", "ibuprofen"),
            ("Warfarin discontinued.", "Warfarin"),
            ("Hold lisinopril today.", "lisinopril"),
        ] {
            assert_eq!(context(text, what), [("negation", "negated")], "{text}");
        }
        assert_eq!(context("A man with asthma discontinued prednisone.", "asthma"), []);
    }

    #[test]
    fn doubt_at_the_end_of_a_sentence_is_about_what_is_before() {
        assert_eq!(context("Cough, possibly.", "Cough"), [("negation", "possible")]);
        assert_eq!(context("Cough, possibly pneumonia.", "Cough"), []);
    }

    #[test]
    fn triggers_inside_a_mention_are_ignored() {
        assert_eq!(context("She has no appetite.", "no appetite"), []);
        assert_eq!(context("Denies history of falls.", "history of falls"), [("negation", "negated")]);
    }

    #[test]
    fn negation_stays_with_its_own_finding() {
        const NEGATED: [(&str, &str); 1] = [("negation", "negated")];
        for (text, what, expected) in [
            ("COVID positive, flu negative.", "COVID", false),
            ("COVID positive, flu negative.", "flu", true),
            ("Temp 102, cough, rash, strep neg.", "cough", false),
            ("HIV, HBV and HCV negative.", "HIV", true),
            ("Cough, fever: no", "fever", true),
            ("No SBO, fatty liver, 5 cm AAA.", "SBO", true),
            ("No SBO, fatty liver, 5 cm AAA.", "fatty liver", false),
            ("No hemorrhage, mild atrophy.", "atrophy", false),
            ("No fever, chills, cough.", "cough", true),
            ("Patients lacking insurance have diabetes.", "diabetes", false),
            ("Mice lacking Pten develop tumors.", "Pten", true),
        ] {
            assert_eq!(context(text, what), if expected { &NEGATED[..] } else { &[] }, "{what} in {text}");
        }
    }

    #[test]
    fn family_ends_at_medication_and_at_relatives_who_report() {
        const FAMILY: [(&str, &str); 1] = [("experiencer", "family")];
        for (text, what, expected) in [
            ("Family history of colon cancer in father, on metformin for diabetes, no gout.", "colon cancer", true),
            ("Family history of colon cancer in father, on metformin for diabetes, no gout.", "metformin", false),
            ("Family history of colon cancer in father, on metformin for diabetes, no gout.", "diabetes", false),
            ("Mother has diabetes, on metformin.", "diabetes", true),
            ("Mother has diabetes, on metformin.", "metformin", false),
            ("Son with croup, given dexamethasone.", "dexamethasone", false),
            ("Father had a stroke.", "had a stroke", true),
            ("FH: mother with diabetes. Her mother is worried about her eczema.", "diabetes", true),
            ("FH: mother with diabetes. Her mother is worried about her eczema.", "eczema", false),
            ("FH: mother with diabetes.\nHx of CVA. Metoprolol daily.", "CVA", false),
            ("FH: mother with diabetes.\nHx of CVA. Metoprolol daily.", "Metoprolol", false),
            ("FH: mother with diabetes.\nFather: gout.", "gout", true),
            ("Family history: cancer, heart disease.", "heart disease", true),
            ("My mom has diabetes and I have high cholesterol.", "diabetes", true),
            ("My mom has diabetes and I have high cholesterol.", "high cholesterol", false),
            ("Mother with type I diabetes.", "diabetes", true),
            ("Family hx: dad had MI. Pt reports chest pain. On lisinopril for HTN.", "MI", true),
            ("Family hx: dad had MI. Pt reports chest pain. On lisinopril for HTN.", "HTN", false),
            ("Family hx: dad had MI. On lisinopril for HTN.", "HTN", false),
            ("Patient's mother brought him in with fever.", "fever", false),
            ("Father died of melanoma, on the left arm.", "left arm", true),
        ] {
            let who: Vec<_> = context(text, what).into_iter().filter(|(name, _)| *name == EXPERIENCER).collect();
            assert_eq!(who, if expected { &FAMILY[..] } else { &[] }, "{what} in {text}");
        }
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
    fn scopes_end_with_the_sentence_and_at_semicolons() {
        assert_eq!(context("No rash. Cough.", "Cough"), []);
        assert_eq!(context("No rash; cough.", "cough"), []);
        assert_eq!(context("Rash. It was ruled out.", "Rash"), []);
    }

    #[test]
    fn signs_answers_and_asides_take_linear_time() {
        for part in [
            "? ",
            "(+) ",
            "+-",
            "a: no ",
            "on ",
            "s/p a ",
            "c/o, ",
            "\n- a",
            "\n+ a\n- b",
            "? No. ",
            "no a, b 5, ",
            "a is, or ",
            "hold and ",
            "if a) excluded, ",
            " - a",
            "my wife. he ",
            "until a ",
            "? my. a",
        ] {
            for blank in ["", " ", "\n"] {
                let text = part.repeat(10_000) + &blank.repeat(10_000) + &part.repeat(10_000);
                Contexts::new(&Analysis::of_text(&text)).of(&[Span::new(0, 1)]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_and_span_has_a_context(
            text in "(no |denies |but |\\PC|\n|: |; |mother |\\? |[(]-[)] |[+-]|, |on |s/p |with |PMH: |yes|pt |c/o | - |5 |is |my |he |[.] |non-|hold |if |excluded |hx |and ){0,30}",
        ) {
            let contexts = Contexts::new(&Analysis::of_text(&text));
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
