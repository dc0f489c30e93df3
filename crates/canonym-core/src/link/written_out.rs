//! Names as lists and spreadsheets have them, written as the terminology writes them: `5mg tabs` for `5 mg tablets`.

use std::borrow::Cow;

use super::recognise::senses::SenseInventory;
use crate::kb::lexicon::{bag_key, hash_form, token_hash};
use crate::kb::subset::KbView;
use crate::kb::{ConceptId, FormId, KnowledgeBase, NameId, Scope};
use crate::text::normalise::{canonical, fold};

/// Words and their abbreviations in lists of drugs, tests, diagnoses and supplies.
#[rustfmt::skip]
const SAME: [&[&str]; 54] = [
    &["abd", "abdomen", "abdominal"], &["abn", "abnormal"], &["amp", "amps", "ampoule", "ampule"], &["ant", "anterior"],
    &["approx", "approximately"], &["bact", "bacterial"], &["bilat", "bilateral"], &["btl", "bottle"],
    &["bx", "box"], &["ca", "carcinoma", "cancer"], &["cap", "caps", "capsule"], &["chr", "chronic"],
    &["conc", "concentration"], &["conc", "concentrate"], &["crm", "cream"], &["decr", "decreased"], &["dis", "disease"],
    &["dist", "distal"], &["fx", "fracture"], &["hx", "history"], &["incr", "increased"],
    &["infl", "inflammation", "inflammatory"], &["infxn", "infection"], &["inj", "injection"], &["inj", "injury"],
    &["lac", "laceration"], &["lat", "lateral"], &["lt", "left"], &["med", "medial"],
    &["mcg", "ug", "μg", "microgram"], &["mets", "metastasis", "metastatic"], &["neb", "nebuliser", "nebule"],
    &["neg", "negative"], &["neuro", "neurological", "neurologic"], &["oint", "ointment"],
    &["ped", "paed", "pediatric", "paediatric", "children"], &["pk", "pkt", "pack", "packet"], &["pos", "positive"],
    &["preg", "pregnancy", "pregnant"], &["prox", "proximal"], &["resp", "respiratory"], &["rt", "right"],
    &["sens", "sensitivity", "sensitive"], &["soln", "sol", "solution"], &["supp", "suppository"],
    &["susp", "suspension"], &["synd", "syndrome"], &["syr", "syrup"], &["tab", "tabs", "tablet"],
    &["temp", "temperature"], &["tox", "toxicity"], &["unsp", "unspecified"], &["vacc", "vaccine", "vaccination"],
    &["yrs", "years", "year"],
];

/// Units that are written behind a number without a blank.
#[rustfmt::skip]
const UNITS: [&str; 22] = [
    "cc", "cl", "cm", "g", "iu", "kg", "l", "mcg", "mg", "micrograms", "ml", "mm", "mmol", "ng", "nm", "tab", "tabs", "u",
    "ug", "units", "μg", "μl",
];

/// A word in lower case, with the micro sign as the letter mu.
fn of_micro(word: &str) -> String {
    word.to_lowercase().replace('\u{b5}', "μ")
}

/// A name with units apart from their numbers, and with abbreviations that the knowledge base lacks in the words that it has, or the other
/// way round.
pub(super) fn written_out<'a>(kb: &KnowledgeBase, name: &'a str) -> Cow<'a, str> {
    let has = |word: &str| kb.token_row(token_hash(&canonical(word))).is_some();
    let other = |word: &str| -> Option<&'static str> {
        let word = of_micro(word);
        let is_word = |one: &&str| **one == *word || canonical(one) == canonical(&word);
        if has(&word) {
            return None;
        }
        let groups = SAME.iter().filter(|group| group.iter().any(&is_word));
        let others = groups.filter_map(|group| {
            // A full word rather than another abbreviation.
            group.iter().copied().filter(|other| !is_word(other) && has(other)).max_by_key(|other| other.len())
        });
        let mut others = others;
        // `inj` is written out if the list has injections or injuries, not both.
        others.next().filter(|_| others.next().is_none())
    };
    let mut out = String::new();
    let mut is_changed = false;
    for piece in name.split_inclusive(char::is_whitespace) {
        let is_edge = |letter: char| !letter.is_alphanumeric();
        let core = piece.trim_matches(is_edge);
        let at = core.as_ptr() as usize - piece.as_ptr() as usize;
        let (before, after) = (&piece[..at], &piece[at + core.len()..]);
        let n_digits =
            core.len() - core.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.').len();
        let (number, unit) = core.split_at(n_digits);
        let is_joined = !number.is_empty() && UNITS.contains(&&*of_micro(unit)) && !has(&fold(core));
        let (number, word) = if is_joined { (number, unit) } else { ("", core) };
        let replaced = other(word);
        is_changed |= is_joined || replaced.is_some();
        out.extend([before, number, if is_joined { " " } else { "" }, replaced.unwrap_or(word), after]);
    }
    if is_changed { Cow::Owned(out) } else { Cow::Borrowed(name) }
}

/// Minimum share of the uses of a short form in a name that its meaning has.
const MIN_PRIOR: f32 = 0.5;

/// Maximum number of words of a name in which short forms are written out.
const MAX_WORDS: usize = 12;

/// The forms with the words of a name, in any order, spelling and number.
pub fn forms_of<'a>(view: KbView<'a>, name: &str) -> impl Iterator<Item = FormId> + 'a {
    let hashes = hash_form(&fold(name));
    let key = bag_key(hashes.iter().filter(|hashes| !hashes.linking).map(|hashes| hashes.canonical));
    view.kb.keys().get(key).iter().map(FormId).filter(move |form| view.has_form(*form))
}

/// The only concept with the words of a name in which one short form is written out: `vascular EDS`, `renal cell ca`. `None` if the
/// knowledge base has the name as it is, or if there are several.
pub fn expanded(view: KbView<'_>, name: &str) -> Option<(ConceptId, NameId)> {
    let words: Vec<&str> = name.split_whitespace().collect();
    if !(2..=MAX_WORDS).contains(&words.len()) || forms_of(view, name).next().is_some() {
        return None;
    }
    let inventory = SenseInventory::embedded();
    let mut found: Vec<(ConceptId, NameId)> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let lower = word.to_lowercase();
        let same = SAME.iter().filter(|group| group.contains(&&*lower)).flat_map(|group| group.iter().copied());
        let is_short = word.contains(|letter: char| letter.is_uppercase() || letter.is_ascii_digit())
            || !word.contains(['a', 'e', 'i', 'o', 'u', 'y']);
        let senses =
            [word, &word.to_uppercase()].into_iter().map(|form| inventory.senses(form)).find(|all| !all.is_empty());
        let senses = senses.filter(|_| is_short).unwrap_or_default();
        let long = senses.iter().filter(|sense| sense.prior >= MIN_PRIOR).flat_map(|sense| sense.long_forms());
        for long in same.filter(|other| *other != lower).chain(long) {
            let written: Vec<&str> =
                words[..at].iter().copied().chain([long]).chain(words[at + 1..].iter().copied()).collect();
            let names = forms_of(view, &written.join(" ")).flat_map(|form| view.kb.names_of_form(form));
            let is_name = |name: &NameId| matches!(view.kb.scope(*name), Scope::Preferred | Scope::Exact);
            let concepts = names.filter(is_name).map(|name| (view.kb.concept_of(name), name));
            found.extend(concepts.filter(|(concept, _)| view.has(*concept)));
        }
    }
    let first = *found.first()?;
    found.iter().all(|(concept, _)| *concept == first.0).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kb::format::Meta;
    use crate::kb::record::{ConceptRecord, NameRecord};
    use crate::kb::{KnowledgeBaseBuilder, Scope};

    #[test]
    fn units_stand_apart_and_abbreviations_are_those_of_the_list() {
        let mut builder = KnowledgeBaseBuilder::new();
        for (row, name) in
            ["Cardiolex 5 mg tablets", "Fracture, left wrist", "Respira susp 2.5 ml"].into_iter().enumerate()
        {
            let names = vec![NameRecord { text: name.to_owned(), scope: Scope::Preferred }];
            builder.add(ConceptRecord { id: format!("X:{row}"), names, ..ConceptRecord::default() }).unwrap();
        }
        let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap();
        for (name, written) in [
            ("cardiolex 5mg tabs", "cardiolex 5 mg tablet"),
            ("fx lt. wrist", "Fracture left. wrist"),
            ("Respira suspension (2.5ml)", "Respira susp (2.5 ml)"),
            ("fracture of the left wrist", "fracture of the left wrist"),
            ("IL6 5mg", "IL6 5 mg"),
            ("levothyroxine 50\u{b5}g", "levothyroxine 50 \u{b5}g"),
            ("", ""),
        ] {
            assert_eq!(written_out(&kb, name).to_lowercase(), written.to_lowercase(), "{name}");
        }
    }
}
