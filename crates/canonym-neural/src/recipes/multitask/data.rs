//! Documents as training examples and held-out texts of the multi-task tagger.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use canonym_core::corpus::{AnnotatedDocument, Annotation};
use canonym_core::text::Span;
use canonym_core::text::analysis::Analysis;
use serde::Serialize;

use crate::layers::crf::bilou::labels_of;
use crate::models::multitask::decode::tag_of;
use crate::models::multitask::tokenized::{Splitter, TokenizedText};
use crate::models::multitask::{MultitaskConfig, Task};
use crate::objectives::multitask::evaluate::{HeldOut, HeldOutSpan, UNKNOWN};
use crate::objectives::multitask::{Example, GoldSpan, TextLabels};
use crate::recipes::dual_encoder::data::ids_of;
use crate::system::terminology::bare;

/// What is counted in a corpus.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct CorpusReport {
    pub n_documents: usize,
    pub n_sentences: usize,
    pub n_mentions: usize,
    /// Mentions that begin or end within a word, which cannot be found.
    pub n_inside_words: usize,
    /// Mentions that overlap a longer one, which are not learned from.
    pub n_overlapping: usize,
    /// Mentions of several parts, whose hull is learned.
    pub n_discontinuous: usize,
    /// Mentions that cross the boundary of a sentence or of a window. Per entity, they are learned from the window with most of their words.
    pub n_across_windows: usize,
    /// Sentences that were cut because they are longer than a window.
    pub n_cut: usize,
}

/// Classes of types and concepts from 1, by name.
#[derive(Debug, Default)]
pub struct Classes {
    pub types: Vec<String>,
    pub concepts: Vec<String>,
    type_of: HashMap<String, u32>,
    concept_of: HashMap<String, u32>,
}

impl Classes {
    /// Known types and concepts, and behind them the others that occur in documents.
    pub fn beyond(known_types: &[String], known_concepts: &[&str], documents: &[AnnotatedDocument]) -> Classes {
        let annotations = || documents.iter().flat_map(|document| &document.annotations);
        let types: BTreeSet<&str> =
            annotations().map(|one| one.semantic_type.as_str()).filter(|one| !one.is_empty()).collect();
        let concepts: BTreeSet<&str> = annotations().filter_map(|one| bare_ids(one).next()).collect();
        let known_types: Vec<&str> = known_types.iter().map(String::as_str).collect();
        let (types, concepts) = (followed(&known_types, &types), followed(known_concepts, &concepts));
        let numbered = |names: &[String]| names.iter().cloned().zip(1..).collect();
        Classes { type_of: numbered(&types), concept_of: numbered(&concepts), types, concepts }
    }

    /// The annotations of a document as ranges of words; `None` for those that begin or end within a word.
    fn spans(&self, document: &AnnotatedDocument, text: &TokenizedText) -> Vec<Option<HeldOutSpan>> {
        let class_in = |classes: &HashMap<String, u32>, name: &str| classes.get(name).copied().unwrap_or(UNKNOWN);
        let span = |annotation: &Annotation| {
            let (first, last) = text.words_of(annotation.hull())?;
            let name = annotation.semantic_type.as_str();
            let class = (!name.is_empty()).then(|| class_in(&self.type_of, name));
            let concepts = bare_ids(annotation).map(|id| class_in(&self.concept_of, id)).collect();
            Some(HeldOutSpan { first, last, class, concepts })
        };
        document.annotations.iter().map(span).collect()
    }
}

/// Known names, and behind them the others of `found`.
fn followed(known: &[&str], found: &BTreeSet<&str>) -> Vec<String> {
    let others = found.difference(&known.iter().copied().collect()).copied().collect::<Vec<&str>>();
    known.iter().copied().chain(others).map(str::to_owned).collect()
}

/// The ids of an annotation, as [`bare`] ids; of several, the first one is learned.
fn bare_ids(annotation: &Annotation) -> impl Iterator<Item = &str> {
    ids_of(annotation).into_iter().map(bare)
}

/// The gold spans of each document.
pub fn gold_boundaries(documents: &[AnnotatedDocument]) -> Vec<Vec<Span>> {
    documents.iter().map(|document| document.annotations.iter().map(Annotation::hull).collect()).collect()
}

/// Tokenises and labels documents.
pub struct Labeller<'a> {
    pub splitter: &'a Splitter,
    pub classes: &'a Classes,
    pub model: &'a MultitaskConfig,
}

impl Labeller<'_> {
    /// Training texts with labels. Gold boundaries are word boundaries; of overlapping mentions the longest is kept.
    pub fn examples(&self, documents: &[AnnotatedDocument]) -> Vec<Example> {
        let example = |document: &AnnotatedDocument| {
            let hulls: Vec<Span> = document.annotations.iter().map(Annotation::hull).collect();
            let text = self.splitter.read(&Analysis::new(&document.document), &hulls);
            let spans = kept(self.classes.spans(document, &text).into_iter().flatten().collect());
            Example { labels: self.labels(&text, &spans), text }
        };
        documents.iter().map(example).collect()
    }

    /// Held-out texts; types and concepts that the training documents lack count as misses. `boundaries` of each document become word
    /// boundaries.
    pub fn held_out(&self, documents: &[AnnotatedDocument], boundaries: &[Vec<Span>]) -> Vec<HeldOut> {
        let text = |(at, document): (usize, &AnnotatedDocument)| {
            let text = self
                .splitter
                .read(&Analysis::new(&document.document), boundaries.get(at).map_or(&[], |boundaries| boundaries));
            let found = self.classes.spans(document, &text);
            let mut n_unreachable = BTreeMap::new();
            for (annotation, _) in document.annotations.iter().zip(&found).filter(|(_, found)| found.is_none()) {
                let tasks = [
                    (Task::Mentions, true),
                    (Task::Types, !annotation.semantic_type.is_empty()),
                    (Task::Concepts, bare_ids(annotation).next().is_some()),
                ];
                tasks
                    .iter()
                    .filter(|(_, has)| *has)
                    .for_each(|(task, _)| *n_unreachable.entry(*task).or_default() += 1);
            }
            let spans: Vec<HeldOutSpan> = found.into_iter().flatten().collect();
            let labels = self.labels(&text, &kept(spans.clone()));
            HeldOut { text, spans, labels, n_unreachable }
        };
        documents.iter().enumerate().map(text).collect()
    }

    /// What is counted in documents, tokenised without gold boundaries.
    pub fn report(&self, documents: &[AnnotatedDocument]) -> CorpusReport {
        let mut report = CorpusReport { n_documents: documents.len(), ..CorpusReport::default() };
        for document in documents {
            let text = self.splitter.read(&Analysis::new(&document.document), &[]);
            let found = self.classes.spans(document, &text);
            report.n_mentions += document.annotations.len();
            report.n_inside_words += found.iter().filter(|span| span.is_none()).count();
            report.n_discontinuous += document.annotations.iter().filter(|one| one.spans.len() > 1).count();
            report.n_sentences += text.n_sentences();
            report.n_cut += text.n_cut();
            let spans: Vec<HeldOutSpan> = found.into_iter().flatten().collect();
            let is_inside = |span: &HeldOutSpan| {
                text.windows.iter().any(|window| window.words.start <= span.first && span.last < window.words.end)
            };
            report.n_across_windows += spans.iter().filter(|span| !is_inside(span)).count();
            let n_spans = spans.len();
            report.n_overlapping += n_spans - kept(spans).len();
        }
        report
    }

    /// Labels of words and spans. Classes that the training documents lack are [`UNKNOWN`].
    fn labels(&self, text: &TokenizedText, spans: &[HeldOutSpan]) -> TextLabels {
        let n = text.words.len();
        let words: Vec<(usize, usize)> = spans.iter().map(|span| (span.first, span.last)).collect();
        let mentions = labels_of(n, &words);
        let (mut types, mut concepts) = (vec![Some(0); n], vec![Some(0); n]);
        for span in spans {
            for word in span.first..=span.last {
                let tag = |class: u32| match self.model.has_type_tags() && class != UNKNOWN {
                    true => tag_of(usize::from(mentions[word]), class as usize) as u32,
                    false => class,
                };
                types[word] = span.class.map(tag);
                concepts[word] = span.concepts.first().copied();
            }
        }
        let gold = |span: &HeldOutSpan| GoldSpan {
            first: span.first,
            last: span.last,
            class: span.class,
            concept: span.concepts.first().copied(),
        };
        TextLabels { mentions, types, concepts, spans: spans.iter().map(gold).collect() }
    }
}

/// Of overlapping mentions the longest, the first of equally long ones.
fn kept(mut spans: Vec<HeldOutSpan>) -> Vec<HeldOutSpan> {
    spans.sort_by_key(|span| (Reverse(span.last - span.first), span.first));
    let mut kept: Vec<HeldOutSpan> = Vec::with_capacity(spans.len());
    for span in spans {
        if kept.iter().all(|other| span.last < other.first || other.last < span.first) {
            kept.push(span);
        }
    }
    kept
}

/// Fraction of the linked mentions of held-out texts that have whole words and a concept that occurs in training: the highest recall that
/// the model can reach. `None` without linked mentions.
pub fn recall_ceiling(held_out: &[HeldOut]) -> Option<f64> {
    let (mut n, mut n_known) = (0, 0);
    for text in held_out {
        n += text.n_unreachable.get(&Task::Concepts).copied().unwrap_or(0);
        let linked = || text.spans.iter().filter(|span| !span.concepts.is_empty());
        n += linked().count();
        n_known += linked().filter(|span| span.concepts.iter().any(|concept| *concept != UNKNOWN)).count();
    }
    (n > 0).then(|| n_known as f64 / n as f64)
}

#[cfg(test)]
mod tests {
    use canonym_core::text::Document;

    use super::*;
    use crate::models::multitask::Framing;
    use crate::models::multitask::tests::drawn_tagger;

    /// A document of a text with mentions, each with type and id.
    fn document(text: &str, mentions: &[(&str, &str, &str)]) -> AnnotatedDocument {
        let document = Document { id: "1".to_owned(), text: text.to_owned(), ..Document::default() };
        let mut documents = AnnotatedDocument { document, ..AnnotatedDocument::default() };
        for (surface, semantic_type, id) in mentions {
            let start = text.find(surface).unwrap();
            documents.annotations.push(Annotation {
                spans: vec![Span::new(start, start + surface.len())],
                text: (*surface).to_owned(),
                semantic_type: (*semantic_type).to_owned(),
                ids: id.split_terminator(',').map(str::to_owned).collect(),
                ..Annotation::default()
            });
        }
        documents
    }

    #[test]
    fn mentions_inside_words_count_for_their_tasks_and_lower_the_ceiling() {
        let train = [document("We saw a fever.", &[("fever", "A", "D:1")])];
        let dev = [document(
            "The feverrash saw gout. A rash fever.",
            &[("fever", "A", "D:1"), ("rash", "", "-1"), ("gout", "B", "D:7|D:1"), ("rash fever", "A", "D:9")],
        )];
        let drawn = drawn_tagger(Framing::Token, false);
        let classes = Classes::beyond(&[], &[], &train);
        let labeller = Labeller { splitter: &drawn.splitter, classes: &classes, model: &drawn.model };
        let held = labeller.held_out(&dev, &[]);
        let unreachable: Vec<usize> =
            Task::ALL.iter().map(|task| held[0].n_unreachable.get(task).copied().unwrap_or(0)).collect();
        assert_eq!(unreachable, [2, 1, 1]);
        // `gout` has an id that was learned, the mention inside of a word and the last one cannot be linked.
        assert_eq!(recall_ceiling(&held), Some(1.0 / 3.0));
        let with_boundaries = labeller.held_out(&dev, &gold_boundaries(&dev));
        assert_eq!((with_boundaries[0].n_unreachable.len(), with_boundaries[0].spans.len()), (0, 4));
        assert_eq!(recall_ceiling(&[]), None);
        let report = labeller.report(&dev);
        assert_eq!((report.n_mentions, report.n_inside_words, report.n_sentences), (4, 2, 2));
    }

    #[test]
    fn new_concepts_follow_those_that_a_model_knows() {
        let train = [document("A fever, a rash.", &[("fever", "A", "D2"), ("rash", "B", "D1")])];
        let classes = Classes::beyond(&["B".to_owned()], &["D3", "D2"], &train);
        assert_eq!((classes.concepts, classes.types), (strings(&["D3", "D2", "D1"]), strings(&["B", "A"])));
        assert_eq!((classes.concept_of["D1"], classes.concept_of["D3"]), (3, 1));
    }

    fn strings(all: &[&str]) -> Vec<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    #[test]
    fn equal_numbers_of_two_ontologies_are_two_classes() {
        let train = [document("A fever, a rash.", &[("fever", "A", "CL:0000062"), ("rash", "A", "UBERON:0000062")])];
        assert_eq!(Classes::beyond(&[], &[], &train).concepts, ["CL:0000062", "UBERON:0000062"]);
        // The prefixes that corpora leave out are no difference.
        let train = [document("A fever, a rash.", &[("fever", "A", "MESH:D005334"), ("rash", "A", "D005334")])];
        assert_eq!(Classes::beyond(&[], &[], &train).concepts, ["D005334"]);
    }

    #[test]
    fn the_longest_of_overlapping_mentions_is_learned() {
        let train = [document("We saw a rash fever.", &[("rash", "A", "1"), ("rash fever", "B", "2")])];
        let drawn = drawn_tagger(Framing::Token, false);
        let classes = Classes::beyond(&[], &[], &train);
        let labeller = Labeller { splitter: &drawn.splitter, classes: &classes, model: &drawn.model };
        let examples = labeller.examples(&train);
        let labels = &examples[0].labels;
        assert_eq!((labels.spans.len(), labels.spans[0].class), (1, Some(2)));
        assert_eq!(labels.mentions, [0, 0, 0, 1, 3, 0]);
        assert_eq!(labeller.report(&train).n_overlapping, 1);
    }
}
