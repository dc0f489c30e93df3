//! Words of names that say the same as other words of a text: `loss` for `lost`, `swelling` for `swollen`.

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

fn find(table: &[(&str, &'static [&'static str])], word: &str) -> &'static [&'static str] {
    let lower = word.to_ascii_lowercase();
    table.binary_search_by(|(one, _)| (*one).cmp(lower.as_str())).map_or(&[], |at| table[at].1)
}

/// Nouns of names for a verb; empty if it has none.
pub fn of_verb(word: &str) -> &'static [&'static str] {
    find(&VERBS, word)
}

/// Words of names for a modifier; empty if it has none.
pub fn of_modifier(word: &str) -> &'static [&'static str] {
    find(&MODIFIERS, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(VERBS.is_sorted_by(|left, right| left.0 < right.0));
        assert!(MODIFIERS.is_sorted_by(|left, right| left.0 < right.0));
        assert_eq!((of_verb("Hurts"), of_modifier("lost"), of_verb("lost")), (&["pain"][..], &["loss"][..], &[][..]));
    }
}
