//! Scores senses of dictionary matches: features, a logistic model, a probability.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::scan::{Tier, WindowMatch, Word};
use crate::kb::subset::KbView;
use crate::kb::variants::variants;
use crate::kb::{ConceptId, KnowledgeBase, NameId, Scope};
use crate::link::lookalike::DISORDER_ENDINGS;
use crate::link::model::read_weights;
use crate::text::Span;
use crate::text::normalise::fold;
use crate::text::tokens::Gap;
use crate::text::words::{is_linking_word, is_prefix};
use crate::{Error, Result};

/// Number of features of a sense candidate.
pub const N: usize = 40;

/// Names of the features.
pub const NAMES: [&str; N] = [
    "always",
    "acronym of two letters or fewer",
    "acronym of three letters",
    "longer acronym",
    "word of three letters or fewer",
    "word of four letters",
    "word of five to seven letters",
    "two words",
    "three words or more",
    "other inflection",
    "other order",
    "other derivation",
    "preferred name",
    "narrow name",
    "broad name",
    "related name",
    "frequency of rarest word",
    "lone word with frequency",
    "lone word in many names",
    "letters and digits",
    "same letters and case",
    "homonyms",
    "number of names",
    "hyphen behind",
    "hyphen before",
    "short form with the same meaning",
    "short form with another meaning",
    "other mentions in document",
    "capital inside sentence",
    "known word behind",
    "known word before",
    "lone word of other derivation",
    "undefined acronym",
    "source with scopes",
    "exact synonym in source with scopes",
    "symbol of letters and digits",
    "lone preferred word",
    "lone preferred word with frequency",
    "preferred acronym",
    "acronym of letters and digits in its own letters",
];

/// Descriptions for people.
pub const SENTENCES: [&str; N] = [
    "baseline",
    "acronym of up to two letters",
    "acronym of three letters",
    "acronym of four or more letters",
    "single word of up to three letters",
    "single word of four letters",
    "single word of five to seven letters",
    "two words",
    "three or more words",
    "inflection or spelling differs",
    "word order differs",
    "derivation differs",
    "preferred name",
    "narrow synonym",
    "broad synonym",
    "related synonym",
    "frequency of its rarest word in abstracts",
    "frequency of the single word in abstracts",
    "number of names with the single word",
    "letters and digits",
    "exact match, including case",
    "ambiguous name",
    "number of names",
    "followed by a hyphen",
    "preceded by a hyphen",
    "abbreviation defined in the text, with this meaning",
    "abbreviation defined in the text, with another meaning",
    "concept mentioned elsewhere in the text",
    "capitalised within a sentence",
    "followed by a word of other names",
    "preceded by a word of other names",
    "single word, derivation differs",
    "acronym not defined in the text",
    "terminology with synonym scopes",
    "exact synonym, by the terminology",
    "symbol of letters and digits, such as a gene symbol, in its exact spelling",
    "single-word preferred name",
    "frequency of a single-word preferred name in abstracts",
    "preferred name that is an acronym",
    "acronym with digits in its exact spelling",
];

/// Indices of the features that depend on the whole document.
const HOMONYMS: usize = 21;
/// The text defines the short form, and the long form is a name.
pub(in crate::link) const SAME_MEANING: usize = 25;
pub(super) const DIFFERS: usize = 26;
pub(super) const MENTIONED: usize = 27;
pub(super) const UNDEFINED: usize = 32;

/// Features of a sense candidate.
pub type Features = [f32; N];

/// A concept that a window may mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SenseCandidate {
    /// The concept.
    pub concept: ConceptId,
    /// The matched name.
    pub name: NameId,
    /// How far its words agree with the window.
    pub tier: Tier,
    /// Its features.
    pub features: Features,
    /// Probability by the sense inventory, if it has the form; replaces that of the model.
    pub sense: Option<f32>,
}

/// The sense candidates of a window: the concepts of its forms in the view, without names that cannot be meant.
pub fn sense_candidates(
    view: KbView<'_>,
    model: &AcceptModel,
    text: &str,
    words: &[Word],
    found: &WindowMatch,
) -> Vec<SenseCandidate> {
    let kb = view.kb;
    let surface = found.span(words).of(text);
    if is_part_of_word(text, words, found) {
        return Vec::new();
    }
    let mut candidates: Vec<SenseCandidate> = Vec::new();
    for (form, tier) in &found.forms {
        if found.n_counted == 1 && lacks_function_words(&kb.forms().get(form.0 as usize), text, words, found) {
            continue;
        }
        for name in kb.names_of_form(*form) {
            let concept = kb.concept_of(name);
            if !view.has(concept) {
                continue;
            }
            if !found.expanded && !case_agrees(kb.name(name), surface) {
                continue;
            }
            if *tier == Tier::Root && found.n_counted == 1 && only_shares_stem(surface, kb.name(name)) {
                continue;
            }
            let features = features(kb, text, words, found, *tier, name);
            let candidate = SenseCandidate { concept, name, tier: *tier, features, sense: None };
            match candidates.iter_mut().find(|candidate| candidate.concept == concept) {
                Some(known) if model.probability(&known.features) >= model.probability(&features) => {}
                Some(known) => *known = candidate,
                None => candidates.push(candidate),
            }
        }
    }
    let homonyms = f32::from(u8::from(candidates.len() > 1));
    candidates.iter_mut().for_each(|candidate| candidate.features[HOMONYMS] = homonyms);
    candidates
}

/// Whether the window is part of a longer word or number, such as `eclampsia` in `pre-eclampsia`, `flu` in `flu-like` or `Cr 3` in `Cr 3.4`.
fn is_part_of_word(text: &str, words: &[Word], found: &WindowMatch) -> bool {
    let is_joined = |word: &Word| word.token.before == Gap::Hyphen && !word.expanded;
    let before = found.first.checked_sub(1).filter(|_| is_joined(&words[found.first])).map(|at| words[at].token.span);
    let after = words.get(found.last + 1).filter(|next| is_joined(next)).map(|next| next.token.span.of(text));
    let surface = found.span(words).of(text);
    // The hyphen of `CTX-M` and the point of `3.4`.
    let is_letter = |next: &str| next.len() == 1 && next.starts_with(|letter: char| letter.is_ascii_uppercase());
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_cut = |next: &str| digits(words[found.last].token.span.of(text)) && digits(next);
    let before = before.map(|span| span.of(text));
    let is_target = before.is_some_and(|prefix| is_target_of_antibody(text, prefix, found.span(words)));
    before.is_some_and(|prefix| is_prefix(prefix) && !is_target)
        || found.first == found.last && words[found.first].frequency == 0 && is_epithet(text, found.span(words))
        || is_isoform(text, found.span(words))
        || after.is_some_and(|next| next == "like" || is_acronym(surface) && is_letter(next) || is_cut(next))
}

/// Whether a symbol is the target of an antibody that the text names near it: GAPDH in `anti-GAPDH`.
pub(super) fn is_target_of_antibody(text: &str, prefix: &str, target: Span) -> bool {
    let start = text.floor_char_boundary((target.start as usize).saturating_sub(NEAR));
    let end = text.ceil_char_boundary(text.len().min(target.end as usize + NEAR));
    let near = &text[start..end];
    let is_about = ["ntibod", "(1:", "blot", "mmuno", "probed", "stained"].iter().any(|word| near.contains(word));
    prefix.eq_ignore_ascii_case("anti") && is_about && is_acronym(target.of(text))
}

/// Maximum distance of the word `antibody` from its target.
const NEAR: usize = 200;

/// Whether a lower-case word follows the initial of a genus, as in `D. melanogaster`.
fn is_epithet(text: &str, span: Span) -> bool {
    let mut before = text[..span.start as usize].chars().rev();
    span.of(text).starts_with(char::is_lowercase)
        && before.next() == Some(' ')
        && before.next() == Some('.')
        && before.next().is_some_and(|initial| initial.is_ascii_uppercase())
        && before.next().is_none_or(|letter| !letter.is_alphanumeric())
}

/// Whether a symbol is followed by the number of an isoform, as in `PIP2;1`.
pub fn is_isoform(text: &str, span: Span) -> bool {
    let rest = text[span.end as usize..].strip_prefix(';');
    rest.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit())) && is_acronym(span.of(text))
}

/// Whether a name of one word and function words, such as `the runs` or `vitamin A`, does not stand in the text as a whole.
fn lacks_function_words(form: &str, text: &str, words: &[Word], found: &WindowMatch) -> bool {
    if found.expanded || !form.contains(' ') {
        return false;
    }
    let parts: Vec<&str> = form.split(' ').collect();
    // Phrases of short lists stand for longer names.
    if parts.iter().filter(|part| !is_linking_word(part)).count() > 1 {
        return false;
    }
    let Some(at) = parts.iter().position(|part| !is_linking_word(part)) else { return false };
    let start = found.first.checked_sub(at);
    let window = start.and_then(|start| words.get(start..start + parts.len()));
    window.is_none_or(|window| window.iter().zip(&parts).any(|(word, part)| fold(word.token.span.of(text)) != *part))
}

/// Whether a single word shares only its stem with a name, such as `solely` with `sole`, `organizing` with `organ` or `laminitis` with `lamins`.
fn only_shares_stem(surface: &str, name: &str) -> bool {
    let (surface, name) = (surface.to_lowercase(), name.to_lowercase());
    VERBAL.iter().chain(&DISORDER_ENDINGS).any(|ending| surface.ends_with(ending) && !name.ends_with(ending))
}

/// Suffixes of verbs and adverbs.
const VERBAL: [&str; 8] = ["ly", "ing", "ed", "ize", "izes", "ise", "ises", "ating"];

/// Probability that a form with a certain sense is a mention.
const SENSE_TRUST: f32 = 0.97;

/// Whether an upper-case name matches upper-case text, and a lower-case word is not an acronym.
pub(super) fn case_agrees(name: &str, surface: &str) -> bool {
    let (name_short, surface_short) = (is_acronym(name), is_acronym(surface));
    if name_short && name.len() <= 6 {
        return same_letters(name, surface);
    }
    if surface_short && surface.len() <= 5 && name.chars().any(char::is_lowercase) {
        // `AIDS` is not a plural of `aid`; the price is that short words in upper-case headings are missed.
        return same_letters(name, surface);
    }
    true
}

fn same_letters(name: &str, surface: &str) -> bool {
    fn letters(text: &str) -> impl Iterator<Item = char> {
        text.chars().filter(|letter| letter.is_alphanumeric())
    }
    let mut surface = letters(surface);
    letters(name).all(|letter| surface.next() == Some(letter))
        && matches!(surface.next(), None | Some('s'))
        && surface.next().is_none()
}

/// At least two letters, all upper case except for a final `s`.
pub fn is_acronym(text: &str) -> bool {
    let core = text.strip_suffix('s').unwrap_or(text);
    let n_letters = core.chars().filter(|letter| letter.is_alphabetic()).count();
    n_letters >= 2 && core.chars().all(|letter| !letter.is_lowercase()) && !core.contains(' ')
}

/// The scope of a name; a variant of the preferred name counts as preferred: `anemia` of `Anemia, unspecified`.
fn scope_of(kb: &KnowledgeBase, name: NameId) -> Scope {
    let is_variant = || {
        let preferred = kb.preferred_name(kb.concept_of(name));
        variants(preferred, true).iter().any(|variant| variant == kb.name(name))
    };
    match kb.scope(name) {
        Scope::Exact if is_variant() => Scope::Preferred,
        scope => scope,
    }
}

pub(super) fn features(
    kb: &KnowledgeBase,
    text: &str,
    words: &[Word],
    found: &WindowMatch,
    tier: Tier,
    name: NameId,
) -> Features {
    let flag = |yes: bool| f32::from(u8::from(yes));
    let surface = found.span(words).of(text);
    let window = &words[found.first..=found.last];
    let n_letters = surface.chars().filter(|letter| letter.is_alphanumeric()).count();
    let frequency = window.iter().filter(|word| !word.hashes.linking).map(|word| word.frequency).min().unwrap_or(0);
    let frequency = f32::from(frequency + 1).ln();
    let scope = scope_of(kb, name);
    let scoped = kb.meta().n_scoped_names > 0;
    let acronym = !found.expanded && is_acronym(surface);
    let concept = kb.concept_of(name);
    let lone = found.n_counted == 1;
    let word = |yes: bool| flag(!acronym && lone && yes);
    let next = words.get(found.last + 1);
    let gap = next.map(|word| word.token.before);
    let before = window[0].token.before;
    let inside = before != Gap::Stop && before != Gap::Bracket;
    let first_capital = surface.starts_with(char::is_uppercase) && !acronym;
    let content = |word: &Word| word.known && !word.hashes.linking && word.frequency < 300;
    let known_next = gap == Some(Gap::Space) && next.is_some_and(content);
    let known_before = before == Gap::Space && found.first > 0 && content(&words[found.first - 1]);
    let df = if lone { kb.token_row(window[0].hashes.canonical).map_or(0, |row| kb.token_df(row)) } else { 0 };
    let digits = !found.expanded && surface.chars().any(|letter| letter.is_ascii_digit());
    [
        1.0,
        flag(acronym && n_letters <= 2),
        flag(acronym && n_letters == 3),
        flag(acronym && n_letters > 3),
        word(n_letters <= 3),
        word(n_letters == 4),
        word((5..=7).contains(&n_letters)),
        flag(found.n_counted == 2),
        flag(found.n_counted > 2),
        flag(tier == Tier::Ordered),
        flag(tier == Tier::Permuted),
        flag(tier == Tier::Root),
        flag(scope == Scope::Preferred),
        flag(scope == Scope::Narrow),
        flag(scope == Scope::Broad),
        flag(scope == Scope::Related),
        frequency,
        if lone { frequency } else { 0.0 },
        (df as f32 + 1.0).ln(),
        flag(digits && n_letters <= 6),
        flag(kb.name(name) == surface),
        0.0,
        (kb.names(concept).count() as f32).ln(),
        flag(gap == Some(Gap::Hyphen)),
        flag(before == Gap::Hyphen),
        flag(found.expanded),
        0.0,
        0.0,
        flag(first_capital && inside),
        flag(known_next),
        flag(known_before),
        flag(lone && tier == Tier::Root),
        flag(acronym),
        flag(scoped),
        flag(scoped && scope == Scope::Exact),
        flag(digits && !acronym && n_letters >= 4 && same_letters(kb.name(name), surface)),
        word(scope == Scope::Preferred),
        if lone && scope == Scope::Preferred { frequency } else { 0.0 },
        flag(acronym && scope == Scope::Preferred),
        flag(acronym && digits && n_letters >= 4 && same_letters(kb.name(name), surface)),
    ]
}

/// Terminologies with at most this many names are short lists.
const OF_FEW: f32 = 2_000.0;

/// In terminologies with at least this many names, most acronyms are ambiguous.
const OF_MANY: f32 = 5_000.0;

/// Added to the log-odds of acronyms from a short list.
const FEW_LOGIT: f32 = 2.5;

/// Weights of the features, and the threshold on p(mention).
#[derive(Debug, Clone, PartialEq)]
pub struct AcceptModel {
    /// One weight per feature.
    pub weights: Features,
    /// Mentions below this probability are dropped.
    pub threshold: f32,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    weights: BTreeMap<String, f32>,
    threshold: f32,
}

/// The embedded weights, made by `experiments/recognition.toml`.
pub const EMBEDDED: &str = include_str!("../../../assets/recognition.json");

impl AcceptModel {
    /// A model with all weights zero.
    pub fn zero() -> AcceptModel {
        AcceptModel { weights: [0.0; N], threshold: 0.0 }
    }

    /// The embedded model.
    pub fn embedded() -> AcceptModel {
        AcceptModel::from_json(EMBEDDED).expect("a test reads the embedded model")
    }

    /// Reads a model; every feature must have a weight.
    pub fn from_json(json: &str) -> Result<AcceptModel> {
        let stored: Stored = serde_json::from_str(json)
            .map_err(|error| Error::damaged(format!("invalid recognition model: {error}")))?;
        let weights = read_weights("recognition", &stored.weights, NAMES.into_iter())?;
        Ok(AcceptModel { weights, threshold: stored.threshold })
    }

    /// The model as JSON, features in order.
    pub fn to_json(&self) -> String {
        let rounded = |value: f32| (value * 1e4).round() / 1e4;
        let weights = NAMES.iter().map(|name| (*name).to_owned()).zip(self.weights.map(rounded)).collect();
        let stored = Stored { weights, threshold: rounded(self.threshold) };
        serde_json::to_string_pretty(&stored).expect("numbers and names are plain data") + "\n"
    }

    /// Probability that a sense candidate is correct, in a terminology with `n_names` names. A short list of names
    /// covers one field, in which its acronyms have few other meanings; most acronyms of a large terminology are ambiguous.
    pub fn score(&self, candidate: &SenseCandidate, n_names: usize) -> f32 {
        if let Some(sense) = candidate.sense {
            return SENSE_TRUST * sense;
        }
        let probability = self.probability(&candidate.features);
        if candidate.features[UNDEFINED] == 0.0 {
            return probability;
        }
        let share = ((OF_MANY / n_names.max(1) as f32).ln() / (OF_MANY / OF_FEW).ln()).clamp(0.0, 1.0);
        let odds = probability / (1.0 - probability).max(1e-6) * (FEW_LOGIT * share).exp();
        odds / (1.0 + odds)
    }

    /// Probability that a sense candidate with these features is correct.
    pub fn probability(&self, features: &Features) -> f32 {
        let logit: f32 = self.weights.iter().zip(features).map(|(weight, value)| weight * value).sum();
        1.0 / (1.0 + (-logit).exp())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_model_round_trips() {
        let model = AcceptModel::embedded();
        assert_eq!(AcceptModel::from_json(&model.to_json()).unwrap(), model);
    }

    #[test]
    fn acronyms_match_capitals_only() {
        assert!(case_agrees("AIDS", "AIDS") && !case_agrees("AIDS", "aids"));
        assert!(!case_agrees("Cats", "CAT") && case_agrees("Cats", "cats"));
        assert!(case_agrees("PD", "PDs") && case_agrees("Stroke", "STROKE"));
    }
}
