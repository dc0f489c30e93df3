//! Explanations of links: matched name, matched words, and the contribution of each feature to the score.
//!
//! A score is the logistic function of its log-odds. The [`Contribution`]s of a candidate add up to its
//! [`Explained::log_odds`]. Explanations repeat the work of linking with the same features, so linking itself keeps no
//! data for them.
//!
//! Covers the lexical system: the comparison with names, and the acceptance of a dictionary match as a mention.

use serde::Serialize;

use super::lexical::{LexicalLinker, Scored};
use super::model::{Calibration, LexicalModel, N, feature_name, feature_sentence};
use super::recognise::scan::ScanScratch;
use super::recognise::{DictionaryAnnotator, DictionaryMatch, accept, expanded};
use super::{Candidate, Link, LinkedMention};
use crate::index::grams::GramScratch;
use crate::kb::{KnowledgeBase, NameId};
use crate::numbers::rounded;
use crate::text::Span;
use crate::text::analysis::Analysis;
use crate::text::normalise::{canonical, fold, root};
use crate::text::offsets::OffsetMap;
use crate::text::words::is_linking_word;

/// The explanation of the candidates of a mention.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Explanation {
    /// The text that was compared with names: the mention, with its short forms expanded.
    pub compared: String,
    /// The short form or ordinary word that the sense inventory reads as `compared`; `None` for all other mentions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sense_of: Option<String>,
    /// The abbreviation definitions that apply to the mention.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub definitions: Vec<Definition>,
    /// Whether the mention is discontinuous because of a coordination: `breast … cancer`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub coordinated: bool,
    /// Threshold below which mentions are dropped; `None` if the mentions were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The candidates, best first.
    pub candidates: Vec<Explained>,
}

/// A short form that the text defines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Definition {
    /// The short form.
    pub short: String,
    /// Its long form.
    pub long: String,
    /// Span of the long form in code points of the text, half-open.
    pub span: (usize, usize),
}

/// A candidate with its evidence and probability.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// The id of the concept.
    pub id: String,
    /// The matched name of the knowledge base.
    pub name: String,
    /// The scope of the name: `preferred`, `exact`, `narrow`, `broad` or `related`.
    pub scope: &'static str,
    /// The level at which name and mention agree.
    pub how: Agreement,
    /// The matched words, in the order of the mention.
    pub words: Vec<WordPair>,
    /// Words of the mention that are missing in the name.
    pub only_in_mention: Vec<String>,
    /// Words of the name that are missing in the mention.
    pub only_in_name: Vec<String>,
    /// The score that is explained: p(mention and concept) of a detected mention, p(link) of a given one.
    pub score: f64,
    /// Probability that the concept is correct, given that the span is a mention.
    pub p_link: f64,
    /// The log-odds of the score, the sum of the contributions.
    pub log_odds: f64,
    /// The non-zero contributions, largest first.
    pub contributions: Vec<Contribution>,
    /// The features that most favour the first candidate over this one; empty for the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub behind_first: Vec<Contribution>,
}

/// The level at which two names agree, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Identical text.
    Exact,
    /// Equal after removal of case, accents and punctuation.
    Fold,
    /// Equal word by word after removal of spelling variants and inflection.
    Canonical,
    /// The same word roots in any order, without function words such as `of`.
    Root,
    /// Similar character n-grams.
    NGram,
}

/// A word of a mention and the matching word of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WordPair {
    /// The word of the mention, folded.
    pub mention: String,
    /// The word of the name, folded.
    pub name: String,
    /// The level at which they agree: [`Agreement::Fold`], [`Agreement::Canonical`] or [`Agreement::Root`].
    pub how: Agreement,
}

/// One term of the log-odds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contribution {
    /// Name of the feature in the model file.
    pub feature: String,
    /// Description of the feature for people.
    pub sentence: String,
    /// Value of the feature.
    pub value: f64,
    /// The term added to the log-odds.
    pub log_odds: f64,
}

/// Number of features listed in [`Explained::behind_first`].
const N_DIFFERENCES: usize = 3;

impl LexicalLinker {
    /// Links one name and explains the result.
    pub fn explain_name(&self, name: &str, scratch: &mut GramScratch) -> (Link, Explanation) {
        let ranked = self.rank(name, scratch);
        let link = self.calibrate(&ranked);
        let top = ranked.first().map_or(0.0, |first| first.score);
        let next = ranked.get(1).map_or(top - 10.0, |second| second.score);
        let explained = |(rank, (scored, candidate)): (usize, (&Scored, &Candidate))| {
            let margin = if rank == 0 { top - next } else { scored.score - top };
            let (calibration, p_link) = (&self.model.calibration, candidate.p_link);
            let contributions = contributions(&self.model, 1.0, calibration, scored, margin, p_link, &[]);
            explained(&self.kb, name, scored.name, candidate, contributions)
        };
        let mut candidates: Vec<Explained> = ranked.iter().zip(&link.candidates).enumerate().map(explained).collect();
        add_differences(&mut candidates);
        (link, Explanation { compared: name.to_owned(), candidates, ..Explanation::default() })
    }
}

/// The terms of the log-odds of a candidate: its features by a model, further parts in units of the score, and the
/// calibration.
pub fn contributions(
    model: &LexicalModel,
    weight: f32,
    calibration: &Calibration,
    scored: &Scored,
    margin: f32,
    p_link: f32,
    others: &[(&str, &str, f32, f32)],
) -> Vec<Contribution> {
    let scale = f64::from(calibration.score);
    let of_feature = |row: usize| {
        let value = f64::from(scored.features[row]);
        let log_odds = scale * f64::from(weight) * f64::from(model.weights[row]) * value;
        contribution(feature_name(row), feature_sentence(row), value, log_odds)
    };
    let margin = margin.clamp(-10.0, 10.0);
    let mut contributions: Vec<Contribution> = (0..N).map(of_feature).collect();
    for (name, sentence, value, weight) in others {
        let log_odds = scale * f64::from(*weight) * f64::from(*value);
        contributions.push(contribution(name, sentence, f64::from(*value), log_odds));
    }
    let (offset, margin_term) = (f64::from(calibration.offset), f64::from(calibration.margin * margin));
    contributions.push(contribution("offset", "baseline", 1.0, offset));
    let ahead = "margin to the next candidate, or to the first";
    contributions.push(contribution("margin", ahead, f64::from(margin), margin_term));
    // A candidate is never more probable than its predecessor.
    let sum: f64 = contributions.iter().map(|one| one.log_odds).sum();
    if f64::from(p_link) < probability(sum) - 1e-3 {
        let limit = log_odds(f64::from(p_link)) - sum;
        let sentence = "limited to the score of the candidate above";
        contributions.push(contribution("limit", sentence, 1.0, limit));
    }
    contributions
}

impl DictionaryAnnotator {
    /// The linked mentions of a document, as in [`DictionaryAnnotator::annotate_one`], with explanations.
    pub fn explain_one(&self, document: &Analysis<'_>, scratch: &mut ScanScratch) -> Vec<(LinkedMention, Explanation)> {
        let uses = document.short_forms();
        let map = OffsetMap::new(document.text);
        let threshold = self.threshold();
        let matched = self.matches(document, scratch);
        let likely = matched.iter().filter(|matched| matched.senses[0].1 >= threshold && self.is_reported(matched));
        likely.map(|matched| self.explain_match(document.text, &map, uses, matched)).collect()
    }

    fn explain_match(
        &self,
        text: &str,
        map: &OffsetMap<'_>,
        uses: &[(Span, Span)],
        matched: &DictionaryMatch,
    ) -> (LinkedMention, Explanation) {
        let linked = self.linked(matched);
        let used = uses_in(&matched.spans, uses);
        // If the definition is not a name, the short form was compared as written.
        let features = matched.features();
        let is_expanded = features[accept::SAME_MEANING] > 0.0;
        let best = matched.best().0;
        let sense_of = best.sense.map(|_| linked.mention.surface(text));
        let compared = if is_expanded {
            expanded(text, &matched.spans, &used)
        } else if sense_of.is_some() {
            self.kb.name(best.name).to_owned()
        } else {
            linked.mention.surface(text)
        };
        let explain = |((sense, _), candidate): (&(accept::SenseCandidate, f32), &Candidate)| {
            let of_feature = |row: usize| {
                let value = f64::from(sense.features[row]);
                let log_odds = f64::from(self.model.weights[row]) * value;
                contribution(accept::NAMES[row], accept::SENTENCES[row], value, log_odds)
            };
            let contributions = match sense.sense {
                // A probability from the sense inventory replaces that of the model.
                Some(probability) => {
                    let log_odds = log_odds(f64::from(linked.p_both_of(candidate)));
                    vec![contribution(SENSE.0, SENSE.1, f64::from(probability), log_odds)]
                }
                None => (0..accept::N).map(of_feature).collect(),
            };
            let p_both = linked.p_both_of(candidate);
            explained(&self.kb, &compared, sense.name, candidate, contributions).detected(p_both)
        };
        let mut candidates: Vec<Explained> = matched.senses.iter().zip(&linked.link.candidates).map(explain).collect();
        add_differences(&mut candidates);
        let definitions = definitions(text, map, &used);
        let coordinated = matched.spans.len() > 1;
        let threshold = Some(rounded(self.threshold()));
        (linked, Explanation { compared, sense_of, definitions, coordinated, threshold, candidates })
    }
}

/// Name and description of the contribution of the sense inventory.
const SENSE: (&str, &str) = ("sense", "sense inventory: probability of this sense in context");

/// The short forms inside the pieces of a mention, with their long forms; `uses` are in text order.
pub fn uses_in(spans: &[Span], uses: &[(Span, Span)]) -> Vec<(Span, Span)> {
    let (Some(start), Some(end)) = (spans.first(), spans.last()) else { return Vec::new() };
    let inside = |short: Span| spans.iter().any(|span| span.start <= short.start && short.end <= span.end);
    let first = uses.partition_point(|(short, _)| short.end <= start.start);
    let near = uses[first..].iter().take_while(|(short, _)| short.start < end.end);
    near.filter(|(short, _)| inside(*short)).copied().collect()
}

/// The definitions of the given short forms.
pub fn definitions(text: &str, map: &OffsetMap<'_>, uses: &[(Span, Span)]) -> Vec<Definition> {
    let code_point = |byte: u32| map.byte_to_char(byte as usize).expect("spans lie on character boundaries");
    let definition = |(short, long): &(Span, Span)| Definition {
        short: short.of(text).to_owned(),
        long: long.of(text).to_owned(),
        span: (code_point(long.start), code_point(long.end)),
    };
    uses.iter().map(definition).collect()
}

/// The explanation of a candidate of a given mention: agreement of `name` with it, and the terms of the log-odds of p(link).
pub fn explained(
    kb: &KnowledgeBase,
    mention: &str,
    name: NameId,
    candidate: &Candidate,
    mut contributions: Vec<Contribution>,
) -> Explained {
    let sum: f64 = contributions.iter().map(|one| one.log_odds).sum();
    contributions.retain(|one| one.log_odds != 0.0);
    contributions.sort_by(|a, b| b.log_odds.abs().total_cmp(&a.log_odds.abs()));
    let written = kb.name(name);
    let scope = kb.scope(name).name();
    let Compared { how, words, only_in_mention, only_in_name } = compare(mention, written);
    Explained {
        id: kb.id(candidate.concept).to_owned(),
        name: written.to_owned(),
        scope,
        how,
        words,
        only_in_mention,
        only_in_name,
        score: rounded(candidate.p_link),
        p_link: rounded(candidate.p_link),
        log_odds: rounded(sum),
        contributions,
        behind_first: Vec::new(),
    }
}

impl Explained {
    /// The same for a candidate of a detected mention, whose contributions are those of p(mention and concept).
    pub fn detected(self, p_both: f32) -> Explained {
        Explained { score: rounded(p_both), ..self }
    }

    /// Adds a contribution.
    pub fn add(&mut self, part: Contribution) {
        let sum = self.log_odds + part.log_odds;
        (self.log_odds, self.score) = (rounded(sum), rounded(probability(sum)));
        if part.log_odds != 0.0 {
            self.contributions.push(part);
            self.contributions.sort_by(|a, b| b.log_odds.abs().total_cmp(&a.log_odds.abs()));
        }
    }
}

/// The level at which two names agree.
pub fn agreement(mention: &str, name: &str) -> Agreement {
    compare(mention, name).how
}

struct Compared {
    how: Agreement,
    words: Vec<WordPair>,
    only_in_mention: Vec<String>,
    only_in_name: Vec<String>,
}

/// Matches the words of two names one to one, closest first.
fn compare(mention: &str, name: &str) -> Compared {
    let (folded_mention, folded_name) = (fold(mention), fold(name));
    let left: Vec<&str> = folded_mention.split(' ').filter(|word| !word.is_empty()).collect();
    let right: Vec<&str> = folded_name.split(' ').filter(|word| !word.is_empty()).collect();
    let mut matched: Vec<Option<(usize, Agreement)>> = vec![None; left.len()];
    let mut taken = vec![false; right.len()];
    for how in [Agreement::Fold, Agreement::Canonical, Agreement::Root] {
        let agree = |one: &str, other: &str| match how {
            Agreement::Fold => one == other,
            Agreement::Canonical => canonical(one) == canonical(other),
            _ => root(&canonical(one)) == root(&canonical(other)),
        };
        for (row, word) in left.iter().enumerate().filter(|(_, word)| !word.is_empty()) {
            if matched[row].is_none()
                && let Some(column) = (0..right.len()).find(|column| !taken[*column] && agree(word, right[*column]))
            {
                matched[row] = Some((column, how));
                taken[column] = true;
            }
        }
    }
    let owned = |word: &&str| (*word).to_owned();
    let lone = |words: &[&str], is_matched: &dyn Fn(usize) -> bool| -> Vec<String> {
        words.iter().enumerate().filter(|(row, _)| !is_matched(*row)).map(|(_, word)| owned(word)).collect()
    };
    let only_in_mention = lone(&left, &|row| matched[row].is_some());
    let only_in_name = lone(&right, &|column| taken[column]);
    let in_order = matched.iter().enumerate().all(|(row, matched)| matched.is_some_and(|(column, _)| column == row));
    let worst = matched.iter().flatten().map(|(_, how)| *how).max().unwrap_or(Agreement::NGram);
    let all_linking = |words: &[String]| words.iter().all(|word| is_linking_word(word));
    let how = match () {
        () if mention == name => Agreement::Exact,
        () if folded_mention == folded_name => Agreement::Fold,
        () if in_order && left.len() == right.len() && worst <= Agreement::Canonical => Agreement::Canonical,
        () if worst <= Agreement::Root && all_linking(&only_in_mention) && all_linking(&only_in_name) => {
            Agreement::Root
        }
        () => Agreement::NGram,
    };
    let pair = |(word, matched): (&&str, &Option<(usize, Agreement)>)| {
        matched.map(|(column, how)| WordPair { mention: owned(word), name: right[column].to_owned(), how })
    };
    let words = left.iter().zip(&matched).filter_map(pair).collect();
    Compared { how, words, only_in_mention, only_in_name }
}

/// Sets [`Explained::behind_first`] of every candidate but the first.
pub fn add_differences(candidates: &mut [Explained]) {
    let Some((first, others)) = candidates.split_first_mut() else { return };
    let of = |candidate: &Explained, feature: &str| {
        candidate.contributions.iter().find(|one| one.feature == feature).map_or(0.0, |one| one.log_odds)
    };
    for other in others {
        let mine = other.contributions.iter().filter(|one| of(first, &one.feature) == 0.0);
        let all = first.contributions.iter().chain(mine);
        let difference = |one: &Contribution| Contribution {
            value: 0.0,
            log_odds: of(other, &one.feature) - of(first, &one.feature),
            ..one.clone()
        };
        let mut after: Vec<Contribution> = all.map(difference).filter(|one| one.log_odds < 0.0).collect();
        after.sort_by(|a, b| a.log_odds.total_cmp(&b.log_odds));
        after.truncate(N_DIFFERENCES);
        for one in &mut after {
            one.value = other.contributions.iter().find(|own| own.feature == one.feature).map_or(0.0, |own| own.value);
        }
        other.behind_first = after;
    }
}

/// A contribution with rounded values.
pub fn contribution(feature: &str, sentence: &str, value: f64, log_odds: f64) -> Contribution {
    Contribution {
        feature: feature.to_owned(),
        sentence: sentence.to_owned(),
        value: rounded(value),
        log_odds: rounded(log_odds),
    }
}

fn probability(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

fn log_odds(probability: f64) -> f64 {
    let probability = probability.clamp(1e-9, 1.0 - 1e-9);
    (probability / (1.0 - probability)).ln()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn every_feature_has_a_sentence_of_its_own() {
        let lexical: Vec<&str> = (0..N).map(feature_sentence).collect();
        for sentences in [&lexical[..], &accept::SENTENCES[..]] {
            assert!(sentences.iter().all(|one| one.len() > 5 && !one.ends_with('.') && *one != "none"));
            assert_eq!(sentences.iter().collect::<HashSet<_>>().len(), sentences.len());
        }
    }

    fn check(mention: &str, name: &str, expect: Expect) {
        let Compared { how, words, only_in_mention, only_in_name } = compare(mention, name);
        let words: Vec<String> =
            words.iter().map(|pair| format!("{}={} {:?}", pair.mention, pair.name, pair.how)).collect();
        expect.assert_eq(&format!("{how:?}: {} -{only_in_mention:?} +{only_in_name:?}", words.join(", ")));
    }

    #[test]
    fn words_are_paired_with_their_closest() {
        check("Asthma", "Asthma", expect!["Exact: asthma=asthma Fold -[] +[]"]);
        check("ASTHMA", "Asthma", expect!["Fold: asthma=asthma Fold -[] +[]"]);
        check(
            "breast tumours",
            "Breast tumor",
            expect!["Canonical: breast=breast Fold, tumours=tumor Canonical -[] +[]"],
        );
        check(
            "cancer of the breast",
            "breast cancer",
            expect![[r#"Root: cancer=cancer Fold, breast=breast Fold -["of", "the"] +[]"#]],
        );
        check(
            "retinal damage",
            "Injury of retina",
            expect![[r#"Root: retinal=retina Root, damage=injury Root -[] +["of"]"#]],
        );
        check("dry couhg", "dry cough", expect![[r#"NGram: dry=dry Fold -["couhg"] +["cough"]"#]]);
        check("", "dry cough", expect![[r#"NGram:  -[] +["dry", "cough"]"#]]);
    }
}
