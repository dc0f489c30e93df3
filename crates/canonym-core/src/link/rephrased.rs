//! Names in other words for the same: `Malignant neoplasm of ovary` for `ovarian cancer`, `Fracture of wrist` for `broken wrist`.

use crate::kb::lexicon::{bag_key, hash_form};
use crate::kb::subset::KbView;
use crate::kb::{ConceptId, FormId, NameId, Scope};
use crate::text::normalise::{canonical, fold};

/// Words and phrases for the same in names; one of several words stands for the first one only.
const SAME: [&[&str]; 12] = [
    &["malignant neoplasm", "malignant tumor", "cancer", "malignancy", "ca"],
    &["infection", "infectious disease", "infected"],
    &["thrombosis", "blood clot", "clot"],
    &["fracture", "broken", "fractured"],
    &["rupture", "torn", "tear", "ruptured"],
    &["sprain", "sprained"],
    &["dislocation", "dislocated"],
    &["contusion", "bruise", "bruised", "bruising"],
    &["laceration", "cut"],
    &["obstruction", "blocked", "blockage"],
    &["calculus", "stone"],
    &["pain", "ache", "aching", "sore", "soreness", "painful"],
];

/// Maximum number of words of a name that is rephrased.
const MAX_WORDS: usize = 8;

/// The words of a name with one phrase in other words.
fn rephrasings(words: &[&str]) -> Vec<String> {
    let is_phrase = |at: usize, phrase: &str| {
        let mut rest = words[at..].iter();
        phrase.split(' ').all(|word| rest.next().is_some_and(|own| *own == word || canonical(own) == word))
    };
    let mut found = Vec::new();
    for at in 0..words.len() {
        for group in SAME {
            // The longest phrase here: `malignant tumor`, not `tumor`.
            let here = group.iter().filter(|phrase| is_phrase(at, phrase)).max_by_key(|phrase| phrase.len());
            let Some(here) = here else { continue };
            let end = at + here.split(' ').count();
            let others = group.iter().filter(|other| *other != here);
            found.extend(others.map(|other| [&words[..at], &[*other], &words[end..]].concat().join(" ")));
        }
    }
    found
}

/// The only concept with a name in the words of `name` but for one phrase in other words, its name, and whether that is an exact one; `None`
/// if there are several.
pub fn rephrased(view: KbView<'_>, name: &str) -> Option<(ConceptId, NameId, bool)> {
    let folded = fold(name);
    let words: Vec<&str> = folded.split(' ').collect();
    if !(2..=MAX_WORDS).contains(&words.len()) {
        return None;
    }
    let mut found: Vec<(ConceptId, NameId, bool)> = Vec::new();
    for other in rephrasings(&words) {
        let hashes = hash_form(&other);
        let key = bag_key(hashes.iter().filter(|word| !word.linking).map(|word| word.root));
        let forms = view.kb.roots().get(key).iter().map(FormId).filter(|form| view.has_form(*form));
        let names = forms.flat_map(|form| view.kb.names_of_form(form));
        found.extend(names.filter_map(|name| {
            let (concept, scope) = (view.kb.concept_of(name), view.kb.scope(name));
            (view.has(concept) && scope <= Scope::Narrow).then_some((concept, name, scope <= Scope::Exact))
        }));
    }
    found.sort_by_key(|(.., is_exact)| !is_exact);
    let first = *found.first()?;
    let is_other = |one: &&(ConceptId, NameId, bool)| one.0 != first.0 && one.2 == first.2;
    (!found.iter().any(|one| is_other(&one))).then_some(first)
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
            ("cancer", None),
            ("ovary", None),
            ("", None),
        ] {
            assert_eq!(found(name), expected, "{name}");
        }
    }
}
