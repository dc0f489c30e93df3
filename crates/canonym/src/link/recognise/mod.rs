//! Recognition by longest match over the names of a knowledge base, linked in the same pass.
//!
//! For each document: find every window that is a name ([`scan`]), read its concepts ([`accept`]), let the
//! document's own abbreviation definitions decide its short forms, keep the longest windows that do not overlap, and
//! drop what is unlikely to be meant. Words are common or not by a list derived from abstracts ([`common`]).

pub mod accept;
pub mod common;
pub mod fit;
pub mod scan;

use std::sync::Arc;

use rayon::prelude::*;

use self::accept::{AcceptModel, Definition, Features, Reading, readings};
use self::scan::{Found, ScanScratch, Word, scan, words};
use super::{Annotator, Candidate, Link, LinkedMention};
use crate::Result;
use crate::kb::{ConceptId, KnowledgeBase};
use crate::text::abbreviations::{earlier_occurrences, find_abbreviations, occurrences};
use crate::text::{Document, Mention, Span};

/// Which mentions are given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecogniseConfig {
    /// Candidates a mention.
    pub top_k: usize,
    /// Mentions below this probability are left out; the threshold of the model where `None`.
    pub min_score: Option<f32>,
    /// Whether mentions inside longer ones are given, too.
    pub nested: bool,
}

impl Default for RecogniseConfig {
    fn default() -> Self {
        RecogniseConfig { top_k: 5, min_score: None, nested: false }
    }
}

/// Finds and links mentions by the names of a knowledge base.
#[derive(Debug, Clone)]
pub struct DictionaryAnnotator {
    kb: Arc<KnowledgeBase>,
    model: AcceptModel,
    config: RecogniseConfig,
}

/// A place in a document with the concepts it may mean, before anything is dropped.
#[derive(Debug, Clone, PartialEq)]
pub struct Spotted {
    /// Where.
    pub span: Span,
    /// How many words, linking words left out.
    pub n_words: usize,
    /// The concepts, most likely first.
    pub readings: Vec<(Reading, f32)>,
}

impl DictionaryAnnotator {
    /// An annotator for the concepts of `kb`.
    pub fn new(kb: Arc<KnowledgeBase>, model: AcceptModel, config: RecogniseConfig) -> DictionaryAnnotator {
        DictionaryAnnotator { kb, model, config }
    }

    /// The linked mentions of one document.
    pub fn annotate_one(&self, document: &Document, scratch: &mut ScanScratch) -> Vec<LinkedMention> {
        let threshold = self.config.min_score.unwrap_or(self.model.threshold);
        self.spot(document, scratch)
            .into_iter()
            .filter(|spotted| spotted.readings[0].1 >= threshold)
            .map(|spotted| self.linked(&spotted))
            .collect()
    }

    fn linked(&self, spotted: &Spotted) -> LinkedMention {
        let candidate = |(reading, score): &(Reading, f32)| Candidate {
            concept: reading.concept,
            name: Some(reading.name),
            score: *score,
        };
        let candidates: Vec<Candidate> = spotted.readings.iter().take(self.config.top_k.max(1)).map(candidate).collect();
        let mut types = self.kb.types(candidates[0].concept);
        let semantic_type = types.next().map(str::to_owned);
        let mention = Mention { spans: vec![spotted.span], semantic_type, score: candidates[0].score };
        LinkedMention { mention, link: Link { candidates, nil: false } }
    }

    /// The places that remain after overlaps are resolved, in text order, likely or not.
    pub fn spot(&self, document: &Document, scratch: &mut ScanScratch) -> Vec<Spotted> {
        let text = document.text.as_str();
        let words = words(&self.kb, text, scratch);
        let found = scan(&self.kb, text, &words);
        let mut spotted: Vec<Spotted> =
            found.iter().filter_map(|found| self.read(text, &words, found)).collect();
        self.apply_abbreviations(text, &mut spotted);
        if !self.config.nested {
            spotted = longest(spotted);
        }
        self.count_mentions(&mut spotted);
        spotted.sort_by_key(|spotted| (spotted.span.start, std::cmp::Reverse(spotted.span.end)));
        spotted
    }

    fn read(&self, text: &str, words: &[Word], found: &Found) -> Option<Spotted> {
        let readings = readings(&self.kb, text, words, found);
        if readings.is_empty() {
            return None;
        }
        let scored = readings.into_iter().map(|reading| (reading, self.model.probability(&reading.features)));
        let mut spotted =
            Spotted { span: found.span(words), n_words: found.n_counted, readings: scored.collect() };
        spotted.sort();
        Some(spotted)
    }

    /// Lets the definitions of the document decide what its short forms mean.
    fn apply_abbreviations(&self, text: &str, spotted: &mut Vec<Spotted>) {
        let abbreviations = find_abbreviations(text);
        if abbreviations.is_empty() {
            return;
        }
        let mut uses = occurrences(text, &abbreviations);
        uses.extend(earlier_occurrences(text, &abbreviations));
        uses.extend(abbreviations.iter().enumerate().map(|(row, abbreviation)| (abbreviation.short, row)));
        for (span, row) in uses {
            let long = abbreviations[row].long;
            let meant = spotted.iter().find(|spotted| spotted.span == long).cloned();
            let place = spotted.iter().position(|spotted| spotted.span == span);
            match (meant, place) {
                (Some(meant), place) => {
                    let mut own = Spotted { span, n_words: 1, readings: meant.readings };
                    self.rescore(&mut own, Definition::Agrees);
                    match place {
                        Some(place) => spotted[place] = own,
                        None => spotted.push(own),
                    }
                }
                (None, Some(place)) => self.rescore(&mut spotted[place], Definition::Differs),
                (None, None) => {}
            }
        }
    }

    fn rescore(&self, spotted: &mut Spotted, definition: Definition) {
        for (reading, score) in &mut spotted.readings {
            reading.features[23] = f32::from(u8::from(definition == Definition::Agrees));
            reading.features[24] = f32::from(u8::from(definition == Definition::Differs));
            *score = self.model.probability(&reading.features);
        }
        spotted.sort();
    }

    /// Concepts that are mentioned elsewhere in the document are more likely meant.
    fn count_mentions(&self, spotted: &mut [Spotted]) {
        let mut counts: std::collections::HashMap<ConceptId, u32> = std::collections::HashMap::new();
        for place in spotted.iter() {
            *counts.entry(place.readings[0].0.concept).or_insert(0) += 1;
        }
        for place in spotted.iter_mut() {
            for (reading, score) in &mut place.readings {
                let n_others = counts.get(&reading.concept).map_or(0, |n| n.saturating_sub(1));
                reading.features[25] = (n_others as f32 + 1.0).ln();
                *score = self.model.probability(&reading.features);
            }
            place.sort();
        }
    }
}

impl Spotted {
    fn sort(&mut self) {
        self.readings.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.concept.cmp(&b.0.concept)));
    }

    /// The features of the best reading.
    pub fn features(&self) -> &Features {
        &self.readings[0].0.features
    }
}

/// Of overlapping places the one with more words, then more bytes, then the earlier.
fn longest(mut spotted: Vec<Spotted>) -> Vec<Spotted> {
    spotted.sort_by_key(|place| {
        (std::cmp::Reverse(place.n_words), std::cmp::Reverse(place.span.len()), place.span.start)
    });
    let mut taken = std::collections::BTreeMap::new();
    spotted.retain(|place| {
        let before = taken.range(..place.span.end).next_back();
        let free = before.is_none_or(|(_, end): (&u32, &u32)| *end <= place.span.start);
        if free {
            taken.insert(place.span.start, place.span.end);
        }
        free
    });
    spotted
}

impl Annotator for DictionaryAnnotator {
    fn annotate(&self, documents: &[Document]) -> Result<Vec<Vec<LinkedMention>>> {
        let annotate = |scratch: &mut ScanScratch, document: &Document| self.annotate_one(document, scratch);
        Ok(documents.par_iter().map_init(ScanScratch::default, annotate).collect())
    }
}
