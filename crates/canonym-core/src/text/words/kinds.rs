//! Roles of words in names.

use std::collections::HashMap;
use std::sync::OnceLock;

/// The role of a word in the name of a concept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WordKind {
    /// A content word.
    Plain,
    /// A general disorder word, such as `disease` or `injury`; names use them interchangeably.
    Disorder,
    /// A word that rarely changes the concept: `severe`, `bilateral`, `patient`.
    Modifier,
    /// A function word: `of`, `the`.
    Linking,
    /// A number, a single letter or the like, which distinguishes subtypes.
    Subtype,
}

/// General disorder words.
const DISORDERS: &str = "disease disorder illness sickness ailment syndrome condition dysfunction impairment impaired \
    disturbance dysfunctional disability deficit insufficiency failure insufficient injury damage lesion trauma \
    wound injured abnormality malformation anomaly defect abnormal malformed anomalous defective deformity toxicity \
    toxic poisoning intoxication complication sequela problem pathology manifestation involvement alteration \
    dysregulation difficulty disruption loss reaction effect function";

/// Words that rarely change the concept.
const MODIFIERS: &str = "severe severity mild moderate marked massive profound extreme slight subtle minor major \
    serious significant fatal lethal life threatening bilateral unilateral left right contralateral ipsilateral \
    induced associated related mediated linked like type drug medication postoperative preoperative perioperative \
    intraoperative operative spontaneous recurrent recurring relapsing persistent persisting permanent transient \
    temporary reversible irreversible intermittent episodic new onset early late advanced progressive refractory \
    resistant intractable uncontrolled untreated treated suspected possible probable definite presumed apparent overt \
    frank clinical subclinical symptomatic asymptomatic symptom sign feature episode attack event case patient \
    individual subject human child adult man woman male female elderly rat mouse animal experimental model form \
    classic classical typical atypical common rare unusual simple complex pure isolated generalized diffuse \
    widespread extensive partial total complete incomplete and or with without other unspecified various multiple \
    specific nonspecific prior previous underlying concomitant coexisting sporadic idiopathic primary secondary acute \
    chronic subacute malignant benign solid invasive non increased decreased reduced increase decrease reduction \
    elevated elevation enhanced excessive state status history risk susceptibility predisposition \
    development developing activity response level tissue cell structural functional";

/// The role of a canonical token that is neither a function word nor a number or letter.
pub fn kind_of(token: &str) -> WordKind {
    static KINDS: OnceLock<HashMap<&'static str, WordKind>> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| words_with_kinds().collect());
    kinds.get(token).copied().unwrap_or(WordKind::Plain)
}

/// All modifiers and disorder words.
pub fn words_with_kinds() -> impl Iterator<Item = (&'static str, WordKind)> {
    let modifiers = MODIFIERS.split_whitespace().map(|word| (word, WordKind::Modifier));
    modifiers.chain(DISORDERS.split_whitespace().map(|word| (word, WordKind::Disorder)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::normalise::canonical;

    #[test]
    fn word_lists_are_canonical_and_unique() {
        let mut seen = std::collections::HashSet::new();
        let words = || DISORDERS.split_whitespace().chain(MODIFIERS.split_whitespace());
        let twice: Vec<&str> = words().filter(|word| !seen.insert(*word)).collect();
        assert!(twice.is_empty(), "duplicates: {twice:?}");
        let other: Vec<&str> = words().filter(|word| canonical(word) != *word).collect();
        assert!(other.is_empty(), "these are not canonical: {other:?}");
        assert_eq!(kind_of("severe"), WordKind::Modifier);
        assert_eq!(kind_of("lesion"), WordKind::Disorder);
        assert_eq!(kind_of("kidney"), WordKind::Plain);
    }
}
