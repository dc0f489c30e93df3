//! The candidate concepts of a use of a form: its senses weighed against the names of the terminology.

use super::accept::{case_agrees, is_acronym};
use super::sense_concepts::{Named, SenseConcepts};
use super::senses::{Sense, SenseMatch};
use crate::kb::subset::KbView;
use crate::kb::{ConceptId, NameId, Scope};
use crate::link::short_list::MAX_CONCEPTS;
use crate::text::Span;
use crate::text::normalise::fold;

/// Minimum prior of all senses missing in the inventory.
const MIN_OTHER_PRIOR: f32 = 0.03;
/// Prior of a concept that has the form as a name in the knowledge base but is not in the inventory.
const UNLISTED_PRIOR: f32 = 0.12;
/// Factor on the odds of a sense whose concept has the form as preferred name.
const PREFERRED_FACTOR: f32 = 3.0;
/// Factor on the odds of a sense whose concept has the short form in a short list, which covers one field, as do the texts linked to it.
const OWN_FACTOR: f32 = 6.0;
/// Fraction of the probability of missing senses that goes to the concept of a small terminology with that name.
const SMALL_SHARE: f32 = 0.7;
/// Factor on the odds of the senses that a terminology has if it has neither the form nor its usual sense.
const FOREIGN_FACTOR: f32 = 0.1;

/// A use of a form in a text.
pub(super) struct FormUse<'a> {
    pub(super) span: Span,
    /// The form as written in the text.
    pub(super) written: &'a str,
    /// The form in the inventory.
    pub(super) form: &'a str,
    pub(super) senses: &'a [Sense],
}

impl FormUse<'_> {
    /// Whether the form is a phrase without a sense that is a concept.
    pub(super) fn is_idiom(&self) -> bool {
        self.form.contains(' ') && self.senses.iter().all(|sense| sense.long_forms().next().is_none())
    }
}

/// The candidate concepts of a use, unless it is left to the dictionary; `scores` belong to its senses, `other` is the
/// weight of senses that are no concepts, and `symbols` are the topics of genes and molecules.
pub(super) fn sense_match(
    view: KbView<'_>,
    form_use: &FormUse<'_>,
    scores: &[f32],
    other: f32,
    (concepts, symbols): (&SenseConcepts, &[u8]),
) -> Option<SenseMatch> {
    let FormUse { span, written, form, senses } = *form_use;
    let is_word = form.chars().all(char::is_lowercase);
    let mut named: Vec<Named> = Vec::new();
    for (concept, name) in concepts.of_form(view, form, senses) {
        let is_meant = view.has(*concept) && case_agrees(view.kb.name(*name), written);
        if is_meant && named.iter().all(|(one, _)| one != concept) {
            named.push((*concept, *name));
        }
    }
    let is_preferred = |concept: ConceptId| {
        named.iter().any(|(one, name)| *one == concept && view.kb.scope(*name) == Scope::Preferred)
    };
    let mut odds: Vec<(Option<Named>, f32)> = Vec::new();
    let mut sum = MIN_OTHER_PRIOR.max(1.0 - senses.iter().map(|sense| sense.prior).sum::<f32>()) + other;
    // The weight of senses named like the form, but not in the knowledge base, and all senses that it lacks, with their weights.
    let (mut absent, mut only, mut lacking): (f32, f32, Vec<(&Sense, f32)>) = (0.0, 0.0, Vec::new());
    let found_for = |sense: &Sense| concepts.of_sense(view, sense, senses).iter().filter(|named| view.has(named.0));
    // A terminology that has neither the form nor its usual sense rarely has what is meant: `hair` is no hair cell.
    let usual = senses.iter().max_by(|left, right| left.prior.total_cmp(&right.prior));
    let lacks = |usual: &Sense| !usual.is_own && found_for(usual).next().is_none();
    let is_foreign = is_word && named.is_empty() && usual.is_some_and(lacks);
    let is_short_list = view.kb.n_concepts() <= MAX_CONCEPTS;
    let is_main = |sense: &Sense| usual.is_some_and(|usual| usual.number() == sense.number());
    // The concept of a sense. Another concept with exactly this name takes precedence: `Mania` over bipolar disorder, `human` over the genus
    // of humans.
    let meant = |sense: &Sense| {
        let first = found_for(sense).next().copied()?;
        let is_named = named.iter().any(|(concept, _)| *concept == first.0);
        let has_form = || sense.long_forms().any(|long| fold(long) == fold(form));
        if sense.is_own || is_named || has_form() {
            return Some(first);
        }
        let is_inflected = concepts.is_inflected(form, sense);
        // Not if that concept is another sense: `alcohol` means ethanol, although ChEBI has the class of alcohols.
        let is_taken = |concept: ConceptId| {
            let others = senses.iter().filter(|other| other.number() != sense.number());
            others.into_iter().any(|other| found_for(other).any(|found| found.0 == concept))
        };
        let is_meant =
            |concept: ConceptId| (is_inflected || is_main(sense) && is_preferred(concept)) && !is_taken(concept);
        let other = named.iter().find(|(concept, _)| is_meant(*concept));
        other.copied().or(Some(first))
    };
    for (sense, score) in senses.iter().zip(scores) {
        let (mut weight, first) = (score.exp(), meant(sense));
        let all = found_for(sense).map(|(concept, _)| *concept).chain(first.map(|(concept, _)| concept));
        let all: Vec<ConceptId> = all.collect();
        if all.iter().copied().any(is_preferred) {
            weight *= PREFERRED_FACTOR;
        }
        // A short list that has the short form itself is about that meaning.
        if is_acronym(form) && is_short_list && named.iter().any(|(concept, _)| all.contains(concept)) {
            weight *= OWN_FACTOR;
        }
        weight *= if is_foreign && first.is_some() { FOREIGN_FACTOR } else { 1.0 };
        sum += weight;
        odds.push((first, weight));
        if first.is_none() && sense.long_forms().next().is_some() {
            lacking.push((sense, weight));
            absent += if is_word && concepts.is_alike(form, sense) { weight } else { 0.0 };
            only += weight;
        }
    }
    // With one medical sense, a word is no homonym: what the terminology calls nightmares are the dreams of the inventory.
    let is_only = senses.iter().filter(|sense| sense.long_forms().next().is_some()).count() == 1;
    // The user's senses of a form replace all others.
    let is_own = senses.iter().any(|sense| sense.is_own);
    let is_listed = |concept: ConceptId| odds.iter().any(|(one, _)| one.is_some_and(|(known, _)| known == concept));
    let unlisted: Vec<Named> = named.iter().filter(|(concept, _)| !is_own && !is_listed(*concept)).copied().collect();
    // The terminology may have the sense under another name: an embryo need not be called mammalian, nor `HER2` the human epidermal growth
    // factor receptor 2.
    let share = |(concept, name): Named| {
        if is_word {
            return if is_only && is_preferred(concept) { only } else { absent };
        }
        let is_symbol = |sense: &Sense| is_preferred(concept) && sense.topics().iter().any(|of| symbols.contains(of));
        let is_alike = |sense: &Sense| concepts.shares_words(view.kb, form, (concept, name), sense);
        let goes_to_it = |sense: &&(&Sense, f32)| is_alike(sense.0) || is_symbol(sense.0);
        let likely: f32 = lacking.iter().filter(goes_to_it).map(|(_, weight)| weight).sum();
        let knows_none = odds.iter().all(|(one, _)| one.is_none());
        let is_own_list = knows_none && is_short_list;
        let all: f32 = lacking.iter().map(|(_, weight)| weight).sum();
        likely.max(if is_own_list { SMALL_SHARE * all } else { 0.0 })
    };
    let n_unlisted = unlisted.len().max(1) as f32;
    let is_inherited = !unlisted.is_empty();
    let inherited: Vec<f32> = unlisted.iter().map(|named| share(*named) / n_unlisted).collect();
    for ((concept, name), inherited) in unlisted.into_iter().zip(inherited) {
        let weight = UNLISTED_PRIOR * if is_preferred(concept) { PREFERRED_FACTOR } else { 1.0 };
        // The sum already includes what it inherits.
        sum += (weight - inherited).max(0.0);
        odds.push((Some((concept, name)), weight.max(inherited)));
    }
    let mut concepts: Vec<(ConceptId, NameId, f32)> = Vec::new();
    for (one, weight) in odds {
        let Some((concept, name)) = one else { continue };
        match concepts.iter_mut().find(|known| known.0 == concept) {
            Some(known) => known.2 += weight / sum,
            None => concepts.push((concept, name, weight / sum)),
        }
    }
    // An ordinary word in a medical sense that no name has is left to the dictionary: `embryonic`.
    if !is_own && concepts.is_empty() && absent > 0.5 * sum {
        return None;
    }
    concepts.sort_by(|left, right| right.2.total_cmp(&left.2).then(left.0.cmp(&right.0)));
    // Parts of a short form that the terminology lacks mean something else: `SARS-CoV` in `SARS-CoV-2`.
    let is_joined = form.contains('-') && form.contains(|letter: char| letter.is_ascii_uppercase());
    let is_idiom = concepts.is_empty() && is_joined;
    // What a concept of the terminology was given is not absent.
    let lacking = if is_inherited { Vec::new() } else { lacking };
    let p_absent = lacking.iter().map(|(_, weight)| weight / sum).sum();
    let most = lacking.iter().max_by(|left, right| left.1.total_cmp(&right.1));
    let absent = most.and_then(|(sense, weight)| Some((sense.long_forms().next()?.to_owned(), weight / sum)));
    Some(SenseMatch { span, concepts, absent, p_absent, is_own, is_idiom })
}
