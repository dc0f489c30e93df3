//! Words of names that say the same as other words of a text: `loss` for `lost`, `swelling` for `swollen`.

use std::collections::HashMap;
use std::sync::OnceLock;

/// Verbs after a subject, with the nouns of names: `her knee hurts` is knee pain.
const VERBS: [(&str, &[&str]); 16] = [
    ("ache", &["pain", "ache"]),
    ("ached", &["pain", "ache"]),
    ("aches", &["pain", "ache"]),
    ("aching", &["pain", "ache"]),
    ("bled", &["bleeding"]),
    ("bleeds", &["bleeding"]),
    ("hurt", &["pain"]),
    ("hurting", &["pain"]),
    ("hurts", &["pain"]),
    ("itch", &["itching"]),
    ("itched", &["itching"]),
    ("itches", &["itching"]),
    ("shake", &["tremor"]),
    ("shakes", &["tremor"]),
    ("swelled", &["swelling"]),
    ("tremble", &["tremor"]),
];

/// Adjectives, participles and the like, with other words of names.
const MODIFIERS: [(&str, &[&str]); 66] = [
    ("absent", &["absence"]),
    ("achy", &["pain"]),
    ("blocked", &["blockage", "obstruction"]),
    ("blurred", &["blurry", "blurring"]),
    ("blurry", &["blurred", "blurring"]),
    ("broken", &["fracture", "fractured"]),
    ("burned", &["burn"]),
    ("burnt", &["burn"]),
    ("calcified", &["calcification"]),
    ("damaged", &["damage"]),
    ("decreased", &["low", "reduced"]),
    ("deformed", &["deformity"]),
    ("delayed", &["delay"]),
    ("dilated", &["dilatation", "dilation"]),
    ("discolored", &["discoloration"]),
    ("discoloured", &["discolouration", "discoloration"]),
    ("dislocated", &["dislocation"]),
    ("displaced", &["displacement"]),
    ("dry", &["dryness"]),
    ("elevated", &["high", "increased", "elevation"]),
    ("enlarged", &["enlargement"]),
    ("failing", &["failure"]),
    ("fast", &["rapid"]),
    ("fractured", &["fracture"]),
    ("high", &["increased", "elevated"]),
    ("increased", &["high", "elevated"]),
    ("infected", &["infection"]),
    ("inflamed", &["inflammation"]),
    ("injured", &["injury"]),
    ("irritated", &["irritation"]),
    ("itchy", &["itching"]),
    ("lose", &["loss"]),
    ("loses", &["loss"]),
    ("losing", &["loss"]),
    ("lost", &["loss"]),
    ("low", &["decreased", "reduced"]),
    ("missing", &["absent", "absence"]),
    ("narrowed", &["narrowing", "stenosis"]),
    ("numb", &["numbness"]),
    ("obstructed", &["obstruction"]),
    ("painful", &["pain"]),
    ("paralysed", &["paralysis"]),
    ("paralyzed", &["paralysis"]),
    ("perforated", &["perforation"]),
    ("problems", &["difficulty"]),
    ("puffy", &["swelling", "swollen"]),
    ("raised", &["high", "increased", "elevated"]),
    ("rapid", &["fast"]),
    ("red", &["redness"]),
    ("reduced", &["low", "decreased"]),
    ("ruptured", &["rupture"]),
    ("scarred", &["scarring", "scar"]),
    ("shaky", &["tremor"]),
    ("sore", &["pain"]),
    ("stiff", &["stiffness"]),
    ("swollen", &["swelling", "enlarged"]),
    ("tender", &["tenderness"]),
    ("thick", &["thickened", "thickening"]),
    ("thickened", &["thickening"]),
    ("tight", &["tightness"]),
    ("torn", &["tear"]),
    ("trembling", &["tremor"]),
    ("trouble", &["difficulty"]),
    ("ulcerated", &["ulcer", "ulceration"]),
    ("weak", &["weakness"]),
    ("weakened", &["weakness"]),
];

/// Verbs between a subject and an adjective.
const COPULAS: [&str; 31] = [
    "appear", "appeared", "appears", "are", "became", "become", "becomes", "been", "being", "feel", "feels", "felt",
    "gets", "getting", "got", "is", "look", "looked", "looks", "remain", "remained", "remains", "seem", "seemed",
    "seems", "stayed", "turned", "turns", "was", "went", "were",
];

/// What a word of a text can mean for the grammar of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammatical {
    /// A verb between a subject and an adjective.
    Copula,
    /// A verb, with nouns of names.
    Verb(&'static [&'static str]),
    /// A modifier, with other words of names.
    Modifier(&'static [&'static str]),
}

/// Maximum length of the words in the tables.
const MAX_LENGTH: usize = 11;

/// The meaning of a word, ignoring case.
pub fn grammatical(word: &str) -> Option<Grammatical> {
    static ALL: OnceLock<HashMap<&[u8], Grammatical>> = OnceLock::new();
    if word.len() > MAX_LENGTH {
        return None;
    }
    let mut lower = [0; MAX_LENGTH];
    let lower = &mut lower[..word.len()];
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    let all = ALL.get_or_init(|| {
        let copulas = COPULAS.iter().map(|word| (word.as_bytes(), Grammatical::Copula));
        let verbs = VERBS.iter().map(|(word, nouns)| (word.as_bytes(), Grammatical::Verb(nouns)));
        let modifiers = MODIFIERS.iter().map(|(word, others)| (word.as_bytes(), Grammatical::Modifier(others)));
        copulas.chain(verbs).chain(modifiers).collect()
    });
    all.get(&*lower).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_whatever_their_case() {
        assert_eq!(grammatical("Hurts"), Some(Grammatical::Verb(&["pain"])));
        assert_eq!(grammatical("lost"), Some(Grammatical::Modifier(&["loss"])));
        assert_eq!(grammatical("IS"), Some(Grammatical::Copula));
        assert_eq!((grammatical("pain"), grammatical(""), grammatical("incomprehensible")), (None, None, None));
        let words: Vec<&str> =
            COPULAS.into_iter().chain(VERBS.map(|verb| verb.0)).chain(MODIFIERS.map(|one| one.0)).collect();
        assert!(words.iter().all(|word| grammatical(word).is_some()), "MAX_LENGTH");
        let distinct: std::collections::HashSet<&&str> = words.iter().collect();
        assert_eq!(distinct.len(), words.len());
    }
}
