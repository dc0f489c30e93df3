//! Names in other words for the same: `Malignant neoplasm of ovary` for `ovarian cancer`, `Fracture of wrist` for `broken wrist`.

use crate::kb::lexicon::{bag_key, hash_form, hash_token};
use crate::kb::subset::KbView;
use crate::kb::{ConceptId, FormId, NameId, Scope};
use crate::text::normalise::{canonical, fold};
use crate::text::words::is_linking_word;

/// Words and phrases for the same: those of names, and those that only texts have.
type Same = (&'static [&'static str], &'static [&'static str]);

/// The words and phrases. `tear` and `cut` may mean other things as names.
const SAME: [Same; 12] = [
    (&["malignant neoplasm", "malignant tumor", "cancer"], &["malignancy", "ca"]),
    (&["infection", "infectious disease"], &["infected"]),
    (&["thrombosis", "blood clot"], &["clot"]),
    (&["fracture"], &["broken", "fractured"]),
    (&["rupture"], &["torn", "tear", "ruptured"]),
    (&["sprain"], &["sprained"]),
    (&["dislocation"], &["dislocated"]),
    (&["contusion"], &["bruise", "bruised", "bruising"]),
    (&["laceration"], &["cut"]),
    (&["obstruction"], &["blocked", "blockage"]),
    (&["calculus", "stone"], &[]),
    (&["pain"], &["ache", "aching", "sore", "soreness", "painful"]),
];

/// Maximum number of words of a name that is rephrased.
const MAX_WORDS: usize = 8;

/// Minimum length of a name of one word that is rephrased.
const MIN_LONE: usize = 4;

/// What texts may call a name, with one phrase in other words.
pub(super) fn phrasings(name: &str) -> Vec<String> {
    let folded = fold(name);
    let words: Vec<&str> = folded.split(' ').collect();
    let mut found = Vec::new();
    for (of_names, of_texts) in SAME {
        for (at, phrase) in of_names.iter().flat_map(|phrase| (0..words.len()).map(move |at| (at, phrase))) {
            let end = at + phrase.split(' ').count();
            if words.get(at..end).is_some_and(|own| own.join(" ") == *phrase) {
                let others = of_names.iter().chain(of_texts).filter(|other| *other != phrase);
                found.extend(others.map(|other| [&words[..at], &[*other], &words[end..]].concat().join(" ")));
            }
        }
    }
    found
}

/// The words of a name with one phrase in other words.
fn rephrasings(words: &[&str]) -> Vec<String> {
    let is_phrase = |at: usize, phrase: &str| {
        let mut rest = words[at..].iter();
        phrase.split(' ').all(|word| rest.next().is_some_and(|own| *own == word || canonical(own) == word))
    };
    let mut found = Vec::new();
    for at in 0..words.len() {
        for (of_names, of_texts) in SAME {
            // The longest phrase here: `malignant tumor`, not `tumor`.
            let all = of_names.iter().chain(of_texts);
            let here = all.filter(|phrase| is_phrase(at, phrase)).max_by_key(|phrase| phrase.len());
            let Some(here) = here else { continue };
            let end = at + here.split(' ').count();
            let others = of_names.iter().filter(|other| *other != here);
            // `fracture of clavicle` for `broken clavicle`.
            let is_before = at == 0 && words.get(end).is_some_and(|next| !is_linking_word(next));
            let of: &[&str] = if is_before { &["of"] } else { &[] };
            found.extend(others.map(|other| [&words[..at], &[*other], of, &words[end..]].concat().join(" ")));
        }
    }
    found
}

/// A concept, its name in other words, and whether that is an exact one.
pub type Rephrased = (ConceptId, NameId, bool);

/// The only concept with a name in the words of `name`, adjectives and nouns alike, but for one phrase in other words; `None` if there are
/// several.
pub fn rephrased(view: KbView<'_>, name: &str) -> Option<Rephrased> {
    let folded = fold(name);
    let words: Vec<&str> = folded.split(' ').collect();
    if words.len() > MAX_WORDS {
        return None;
    }
    // One word for another is not enough, nor a short form alone.
    let is_enough = words.len() > 1 || folded.len() > MIN_LONE;
    let others = rephrasings(&words).into_iter().filter(|other| is_enough && other.contains(' ')).collect::<Vec<_>>();
    only(others.iter().flat_map(|other| of_roots(view, other)).collect())
}

/// The concepts with a name of the same words, adjectives and nouns alike: `Acute kidney failure` for `acute renal failure`. One word is
/// not enough, and both names must be about the same thing: `skinned knee` is no skin of the knee.
pub fn of_roots<'a>(view: KbView<'a>, name: &str) -> impl Iterator<Item = Rephrased> + 'a {
    let folded = fold(name);
    let hashes = hash_form(&folded);
    let counted = || hashes.iter().filter(|word| !word.linking).map(|word| word.root);
    let rows = view.kb.roots().get(bag_key(counted()));
    let rows = if counted().count() > 1 { rows.iter().collect() } else { Vec::new() };
    let subject = subject_of(&folded);
    let forms = rows.into_iter().map(FormId).filter(move |form| view.has_form(*form));
    let forms = forms.filter(move |form| subject_of(&view.kb.forms().get(form.0 as usize)) == subject);
    forms.flat_map(move |form| view.kb.names_of_form(form)).filter_map(move |name| {
        let (concept, scope) = (view.kb.concept_of(name), view.kb.scope(name));
        (view.has(concept) && scope <= Scope::Narrow).then_some((concept, name, scope <= Scope::Exact))
    })
}

/// The root of the word that says what a folded name is about: `fracture` in `fracture of wrist` and `wrist fracture`.
fn subject_of(folded: &str) -> u64 {
    let words = folded.split(' ');
    let before = words.take_while(|word| !is_linking_word(word)).last();
    hash_token(before.or(folded.rsplit(' ').next()).unwrap_or_default()).root
}

/// The only concept, or the only one with an exact name.
pub fn only(mut found: Vec<Rephrased>) -> Option<Rephrased> {
    found.sort_by_key(|(.., is_exact)| !is_exact);
    let first = *found.first()?;
    let is_other = |one: &Rephrased| one.0 != first.0 && one.2 == first.2;
    (!found.iter().any(is_other)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kb::format::Meta;
    use crate::kb::record::{ConceptRecord, NameRecord};
    use crate::kb::{KnowledgeBase, KnowledgeBaseBuilder};

    #[test]
    fn names_are_found_in_other_words() {
        let mut builder = KnowledgeBaseBuilder::new();
        for (row, name) in [
            "Malignant neoplasm of ovary",
            "Benign neoplasm of ovary",
            "Fracture of wrist",
            "Calculus of kidney",
            "Thrombosis of vein of leg",
            "Infection of skin",
            "Infectious disease of skin",
            "Malignant neoplasm",
            "Calculus",
        ]
        .into_iter()
        .enumerate()
        {
            let names = vec![NameRecord { text: name.to_owned(), scope: Scope::Preferred }];
            builder.add(ConceptRecord { id: format!("X:{row}"), names, ..ConceptRecord::default() }).unwrap();
        }
        let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap();
        let found = |name: &str| rephrased(KbView { kb: &kb, subset: None }, name).map(|found| kb.name(found.1));
        for (name, expected) in [
            ("ovarian cancer", Some("Malignant neoplasm of ovary")),
            ("Cancer of the ovary", Some("Malignant neoplasm of ovary")),
            ("malignant ovarian tumour", None),
            ("malignant tumours of the ovary", Some("Malignant neoplasm of ovary")),
            ("broken wrist", Some("Fracture of wrist")),
            ("kidney stones", Some("Calculus of kidney")),
            ("infected skin", None),
            ("cancer", Some("Malignant neoplasm")),
            ("stone", None),
            ("ca", None),
            ("ovary", None),
            ("", None),
        ] {
            assert_eq!(found(name), expected, "{name}");
        }
    }
}
