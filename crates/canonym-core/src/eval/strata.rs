//! Stratification of gold mentions by properties: long mentions, homonyms, concepts or names unseen in training.
//!
//! Strata are defined by the gold mention, so only recall of links against all predictions and accuracy@1 of ranked
//! mentions are computed. A wrong prediction belongs to no stratum, so there is no precision. For precision by type see
//! [`slices::by_type`](super::slices::by_type).
//!
//! The required facts about knowledge base and training data are passed as plain sets: see [`Background`].

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::bootstrap::{BootstrapConfig, Interval, SplitMix64, intervals};
use super::ids::IdSet;
use super::matching::{Counts, MatchConfig, Measure, count_entries, ratio};
use super::slices::UNTYPED;
use super::{DocumentPair, Entry, Surface};
use crate::text::normalise::fold;

/// Mentions with at least this many words form one stratum.
const MANY_WORDS: usize = 4;

/// Maximum length of a short form in letters.
const MAX_SHORT_FORM: usize = 10;

/// Facts about names and concepts other than gold; `None` omits the strata that need them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Background {
    /// For each gold surface, the concepts of the knowledge base with that name; a missing surface is not a name.
    pub names: Option<HashMap<String, Vec<IdSet>>>,
    /// Ids of the training annotations, normalised by [`known_ids`](super::ids::known_ids).
    pub training_ids: Option<HashSet<String>>,
    /// Folded surfaces and ids of the training annotations: see [`training_name`].
    pub training_names: Option<HashSet<(String, String)>>,
}

/// Key of a training annotation with this surface and id.
pub fn training_name(surface: &str, id: &str) -> (String, String) {
    (fold(surface), id.to_owned())
}

/// A share with its sample size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Number of gold mentions.
    pub n: u64,
    /// The share.
    pub value: f64,
    /// Its confidence interval over documents.
    pub ci: Option<Interval>,
}

/// Scores of one stratum.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stratum {
    /// Recall of links by measure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recall: BTreeMap<Measure, Estimate>,
    /// Share of mentions whose first candidate is correct, if mentions are ranked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Estimate>,
}

/// Strata by property and value, such as `words` and `2`.
pub type Strata = BTreeMap<String, BTreeMap<String, Stratum>>;

/// A property and its value, such as `words` and `2`.
pub type StratumKey = (&'static str, String);

/// The strata of a gold mention with a concept.
pub fn strata_of(surface: &Surface, ids: &IdSet, background: &Background) -> Vec<StratumKey> {
    let word = |holds: bool, yes: &str, no: &str| if holds { yes.to_owned() } else { no.to_owned() };
    let answer = |holds: bool| word(holds, "yes", "no");
    let mut parts = vec![("composite", answer(surface.composite)), ("discontinuous", answer(surface.discontinuous))];
    if surface.types.is_empty() {
        parts.push(("type", UNTYPED.to_owned()));
    }
    parts.extend(surface.types.iter().map(|kind| ("type", kind.to_owned())));
    if !surface.text.is_empty() {
        let n_words = surface.text.split_whitespace().count().min(MANY_WORDS);
        let more = if n_words == MANY_WORDS { "+" } else { "" };
        parts.push(("words", format!("{n_words}{more}")));
        parts.push(("abbreviation", answer(looks_short(&surface.text))));
    }
    if let Some(known) = &background.training_ids {
        parts.push(("concept", word(ids.any_in(known), "seen", "unseen")));
    }
    if let Some(known) = &background.training_names {
        let folded = fold(&surface.text);
        let seen = ids.iter().any(|id| known.contains(&(folded.clone(), id.to_owned())));
        parts.push(("name", word(seen, "seen", "unseen")));
    }
    if let Some(names) = &background.names {
        let concepts = names.get(&surface.text).map(Vec::as_slice).unwrap_or_default();
        let is_gold = concepts.iter().any(|concept| concept.intersects(ids));
        parts.push(("homonym", answer(concepts.len() > 1)));
        parts.push((
            "dictionary",
            match (concepts.is_empty(), is_gold) {
                (true, _) => "no name".to_owned(),
                (false, true) => "exact name".to_owned(),
                (false, false) => "name of others".to_owned(),
            },
        ));
    }
    parts
}

/// Whether a surface looks like a short form: one word of up to ten letters, mostly upper case.
fn looks_short(text: &str) -> bool {
    let letters = || text.chars().filter(|letter| letter.is_alphabetic());
    let n_capitals = letters().filter(|letter| letter.is_uppercase()).count();
    let is_short = text.chars().count() <= MAX_SHORT_FORM && !text.contains(char::is_whitespace);
    is_short && n_capitals >= 2 && 2 * n_capitals > letters().count()
}

/// Recall under `measures` of every stratum of the gold of `documents`.
pub fn recalls(
    documents: &[DocumentPair],
    measures: &[Measure],
    background: &Background,
    matching: MatchConfig,
    bootstrap: BootstrapConfig,
    rng: &mut SplitMix64,
) -> Strata {
    // For each stratum, the lists of gold annotations by document; documents without any are omitted.
    let mut parts: BTreeMap<StratumKey, Vec<(usize, Vec<Entry>)>> = BTreeMap::new();
    for (row, document) in documents.iter().enumerate() {
        for entry in document.gold.iter().filter(|entry| !entry.ids.is_nil()) {
            for key in strata_of(&entry.surface(), &entry.ids, background) {
                let lists = parts.entry(key).or_default();
                match lists.last_mut() {
                    Some((last, list)) if *last == row => list.push(entry.clone()),
                    _ => lists.push((row, vec![entry.clone()])),
                }
            }
        }
    }
    let mut strata = Strata::new();
    for ((property, value), lists) in parts {
        let stratum = strata.entry(property.to_owned()).or_default().entry(value).or_default();
        for &measure in measures {
            let of_document = |(row, gold): &(usize, Vec<Entry>)| {
                let Counts { tp_gold, n_gold, .. } = count_entries(measure, gold, &documents[*row].predicted, matching);
                (tp_gold, n_gold as f64)
            };
            let sums: Vec<(f64, f64)> = lists.iter().map(of_document).collect();
            stratum.recall.insert(measure, estimate(&sums, bootstrap, rng));
        }
    }
    strata
}

/// A ranked gold mention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedOutcome<'a> {
    /// Id of its document.
    pub document: &'a str,
    /// Its properties.
    pub surface: &'a Surface,
    /// Its concepts.
    pub ids: &'a IdSet,
    /// Whether the first candidate is correct.
    pub right: bool,
}

/// Adds the accuracy of every stratum of the ranked `mentions` to `strata`.
pub fn add_accuracies(
    strata: &mut Strata,
    mentions: &[RankedOutcome<'_>],
    background: &Background,
    bootstrap: BootstrapConfig,
    rng: &mut SplitMix64,
) {
    let mut parts: BTreeMap<StratumKey, BTreeMap<&str, (f64, f64)>> = BTreeMap::new();
    for mention in mentions {
        for key in strata_of(mention.surface, mention.ids, background) {
            let sums = parts.entry(key).or_default().entry(mention.document).or_default();
            sums.0 += f64::from(u8::from(mention.right));
            sums.1 += 1.0;
        }
    }
    for ((property, value), documents) in parts {
        let sums: Vec<(f64, f64)> = documents.into_values().collect();
        let stratum = strata.entry(property.to_owned()).or_default().entry(value).or_default();
        stratum.accuracy = Some(estimate(&sums, bootstrap, rng));
    }
}

/// The share `found / all` over documents.
fn estimate(sums: &[(f64, f64)], bootstrap: BootstrapConfig, rng: &mut SplitMix64) -> Estimate {
    let share = |weights: &[u32]| {
        let weighted = sums.iter().zip(weights).map(|(&(found, all), &weight)| {
            let weight = f64::from(weight);
            (found * weight, all * weight)
        });
        let (found, all) = weighted.fold((0.0, 0.0), |total, one| (total.0 + one.0, total.1 + one.1));
        vec![ratio(found, all)]
    };
    let value = share(&vec![1; sums.len()])[0];
    let ci = intervals(sums.len(), bootstrap, share, rng).first().copied();
    Estimate { n: sums.iter().map(|sum| sum.1 as u64).sum(), value, ci }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Span;

    fn surface(text: &str) -> Surface {
        Surface { text: text.into(), ..Surface::default() }
    }

    fn background() -> Background {
        let concept = IdSet::parse_one;
        Background {
            names: Some(HashMap::from([
                ("fever".to_owned(), vec![concept("D1")]),
                ("BMS".to_owned(), vec![concept("D2"), concept("D3|D4")]),
            ])),
            training_ids: Some(HashSet::from(["D1".to_owned()])),
            training_names: Some(HashSet::from([training_name("Fever", "D1")])),
        }
    }

    /// Checks the strata of a mention, except those of composites, spans and types.
    fn check(text: &str, ids: &str, expected: &str) {
        let parts = strata_of(&surface(text), &IdSet::parse_one(ids), &background());
        let shown: Vec<String> = parts[3..].iter().map(|(property, value)| format!("{property}={value}")).collect();
        assert_eq!(shown.join(", "), expected);
    }

    #[test]
    fn mentions_are_stratified_by_known_properties() {
        check("fever", "D1", "words=1, abbreviation=no, concept=seen, name=seen, homonym=no, dictionary=exact name");
        check(
            "BMS",
            "D4",
            "words=1, abbreviation=yes, concept=unseen, name=unseen, homonym=yes, dictionary=exact name",
        );
        check("fever", "D9|D1", "words=1, abbreviation=no, concept=seen, name=seen, homonym=no, dictionary=exact name");
        check(
            "fever",
            "D9",
            "words=1, abbreviation=no, concept=unseen, name=unseen, homonym=no, dictionary=name of others",
        );
        check(
            "a rise of body temperature",
            "D1",
            "words=4+, abbreviation=no, concept=seen, name=unseen, homonym=no, dictionary=no name",
        );
    }

    #[test]
    fn short_forms_are_mostly_capitals() {
        for text in ["BMS", "A-T", "mRNA", "TNFa", "HIV-1"] {
            assert!(looks_short(text), "{text}");
        }
        for text in ["Fever", "A", "5-FU bolus", "fever", "12", "HYPERTENSION", "PCs and"] {
            assert!(!looks_short(text), "{text}");
        }
    }

    #[test]
    fn parts_are_judged_against_all_predictions() {
        let entry = |start, ids: &str, text: &str| {
            let mut entry = Entry::new(vec![Span::new(start, start + 3)], IdSet::parse_one(ids));
            entry.text = text.into();
            entry
        };
        let document = DocumentPair {
            id: "d".into(),
            gold: vec![entry(0, "A", "BMS"), entry(9, "B", "fever"), entry(20, "C", "cough"), entry(30, "-1", "x")],
            predicted: vec![entry(0, "A", ""), entry(9, "B", ""), entry(20, "A", "")],
        };
        let mut rng = SplitMix64::new(13);
        let (matching, bootstrap) = (MatchConfig::default(), BootstrapConfig::default());
        let documents = std::slice::from_ref(&document);
        let mut strata = recalls(documents, &[Measure::Strict], &Background::default(), matching, bootstrap, &mut rng);
        let recall = |strata: &Strata, property: &str, value: &str| {
            let found = strata[property][value].recall[&Measure::Strict];
            (found.n, found.value)
        };
        assert_eq!(recall(&strata, "abbreviation", "yes"), (1, 1.0));
        assert_eq!(recall(&strata, "abbreviation", "no"), (2, 0.5));
        assert_eq!(recall(&strata, "words", "1").0, 3);
        assert_eq!(strata["words"]["1"].recall[&Measure::Strict].ci, Some(Interval(2.0 / 3.0, 2.0 / 3.0)));
        assert!(!strata.contains_key("homonym") && !strata.contains_key("concept"));
        let (name, ids) = (surface("BMS"), IdSet::parse_one("A"));
        let outcome = RankedOutcome { document: "d", surface: &name, ids: &ids, right: false };
        let none = BootstrapConfig { n_resamples: 0, ..BootstrapConfig::default() };
        add_accuracies(&mut strata, &[outcome], &Background::default(), none, &mut rng);
        let accuracy = strata["abbreviation"]["yes"].accuracy.expect("it was just added");
        assert_eq!((accuracy.n, accuracy.value, accuracy.ci), (1, 0.0, None));
    }
}
