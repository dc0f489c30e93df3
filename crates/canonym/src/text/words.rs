//! Word lists written for this project: words that join names, and words that name the same thing.

/// Words that carry no meaning inside a name and are left out of lookup keys.
const LINKING_WORDS: [&str; 13] = ["a", "an", "by", "due", "for", "from", "in", "of", "on", "the", "to", "nos", "nec"];

/// Whether `token` (folded) is left out of lookup keys.
pub fn is_linking_word(token: &str) -> bool {
    LINKING_WORDS.contains(&token)
}

/// Groups of canonical tokens that name the same thing; the first of a group stands for all.
const SAME: &[&[&str]] = &[
    &["neoplasm", "tumor", "cancer", "carcinoma", "malignancy", "neoplasia", "neoplastic", "cancerous", "tumoral"],
    &["kidney", "renal", "nephric"],
    &["liver", "hepatic"],
    &["heart", "cardiac"],
    &["lung", "pulmonary"],
    &["brain", "cerebral"],
    &["disease", "disorder"],
];

/// The word that stands for the group of `token`, where it has one.
pub fn same_as(token: &str) -> Option<&'static str> {
    SAME.iter().find(|group| group.contains(&token)).map(|group| group[0])
}
