//! Training data of the dual encoder: a terminology, and corpora as windows with mentions.

use crate::system::terminology;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bundle::dual_encoder::ConceptNames;
use crate::models::dual_encoder::windows::Windower;
use crate::objectives::Names;
use crate::objectives::linking::{Target, TrainingText};
use crate::system::concept_rows::NAME_WORDPIECES;
use crate::system::dual_encoder::begins_word;
use canonym_core::corpus::{AnnotatedDocument, Annotation, OnMismatch, Reader};
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::fit::Labelled;
use canonym_core::text::Span;
use canonym_core::text::analysis::Analysis;
use serde::{Deserialize, Serialize};

use super::super::data::held_apart;
use super::super::sources::{TerminologyConfig, compile_merged, compile_terminology, with_names};
use crate::recipes::queries::MentionQuery;
use crate::system::terminology::bare;

/// Input files and options; paths are relative to the data root.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// The target terminology. Optional if mentions are used as names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminology: Option<TerminologyConfig>,
    /// More target terminologies: for the same id, the first one gives the preferred name. Without `terminology`, mentions used as names
    /// (`mention_names`) create concepts of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<TerminologyConfig>,
    /// A compiled knowledge base instead of a terminology. It is not copied to the run folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kb: Option<PathBuf>,
    /// Whether training mentions are added as names of their concepts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mention_names: bool,
    /// Which names represent a concept; if missing, as in the model that is fine-tuned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concepts: Option<ConceptNames>,
    /// Terminologies whose names of known concepts are added to name replay (`batch.name_replay`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub synonyms: Vec<TerminologyConfig>,
    /// Training corpora; empty to evaluate a model only.
    #[serde(default)]
    pub train: Vec<PathBuf>,
    /// Held-out corpora.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dev: Vec<PathBuf>,
    /// Corpora for selecting checkpoint, weights and thresholds; the held-out corpora are then used only for evaluation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tune: Vec<PathBuf>,
    /// Instead of `tune`: about one in this many training documents, sampled by the seed, is split off for selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tune_share: Option<usize>,
    /// Instead of held-out corpora: every n-th document is held out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_out: Option<usize>,
    /// Whether the lexical score is fused with the dense one; the weight is selected on held-out documents. If missing, as in the model
    /// that is fine-tuned, otherwise off, as published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lexical_fusion: Option<bool>,
    /// Whether a mention prior is counted on the training set and used in linking.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mention_prior: bool,
    /// One-sense-per-discourse weight, from 0 (off, as published) to 1; if missing, as in the model that is fine-tuned.
    #[serde(alias = "same_sense", default, skip_serializing_if = "Option::is_none")]
    pub one_sense_weight: Option<f32>,
    /// Number of held-out documents in evaluations during training; all if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n_dev_in_training: Option<usize>,
}

#[derive(Debug, Default, Serialize)]
pub struct CorpusReport {
    pub n_documents: usize,
    pub n_windows: usize,
    pub n_mentions: usize,
    /// Unlinked mentions.
    pub n_nil: usize,
    /// Mentions whose concept has no name in the terminology.
    pub n_unknown: usize,
    /// Mentions longer than the maximum span.
    pub n_too_long: usize,
}

impl DataConfig {
    /// All input files.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let terminologies =
            self.synonyms.iter().chain(&self.terminology).chain(&self.more).map(|terminology| &terminology.path);
        self.train.iter().chain(&self.tune).chain(&self.dev).chain(terminologies)
    }

    /// Compiles the terminology to the file `out`; `train` is the training set.
    pub fn compile(
        &self,
        root: &Path,
        out: &Path,
        train: &[AnnotatedDocument],
    ) -> canonym_core::Result<Arc<KnowledgeBase>> {
        if let Some(kb) = &self.kb {
            if self.terminology.is_some() || self.mention_names || !self.more.is_empty() {
                let error = canonym_core::Error::config("more than one terminology to link to");
                return Err(
                    error.with_hint("set `data.kb` without `data.terminology`, `data.more` and `data.mention_names`")
                );
            }
            return terminology::open(Some(&root.join(kb)));
        }
        let all: Vec<&TerminologyConfig> = self.terminology.iter().chain(&self.more).collect();
        match (&self.terminology, self.mention_names) {
            (Some(_), false) => compile_merged(&all, root, out),
            (Some(_), true) => {
                let own = out.with_extension("own.kb");
                let kb = compile_merged(&all, root, &own)?;
                let all = with_names(&all, Some(&kb), root, out, &as_queries(train))?;
                drop(kb);
                std::fs::remove_file(&own).map_err(|error| canonym_core::Error::io("remove", &own, error))?;
                Ok(all)
            }
            (None, true) => with_names(&all, None, root, out, &as_queries(train)),
            (None, false) => {
                let error = canonym_core::Error::config("no terminology to link to");
                Err(error.with_hint("set `data.terminology`, `data.kb`, or `data.mention_names = true`"))
            }
        }
    }
}

/// Distinct mentions with a single concept, the most frequent first.
fn as_queries(documents: &[AnnotatedDocument]) -> Vec<MentionQuery> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for annotation in documents.iter().flat_map(|document| &document.annotations) {
        if let [id] = ids_of(annotation)[..] {
            *counts.entry((annotation.text.as_str(), id)).or_default() += 1;
        }
    }
    let mut counts: Vec<((&str, &str), usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let query = |((text, id), _): ((&str, &str), usize)| MentionQuery {
        document: String::new(),
        parts: vec![Labelled { query: text.to_owned(), ids: [id.to_owned()].into() }],
    };
    counts.into_iter().map(query).collect()
}

/// A tokenised corpus.
pub struct Corpus {
    pub documents: Vec<AnnotatedDocument>,
    pub training_texts: Vec<TrainingText>,
    /// For each document the end of its windows in `readings`.
    pub ends: Vec<usize>,
    pub report: CorpusReport,
}

impl Corpus {
    /// Windows of the first `n_documents` documents; all if `None`.
    pub fn of_first(&self, n_documents: Option<usize>) -> &[TrainingText] {
        let end = n_documents.map_or(self.training_texts.len(), |n| match n {
            0 => 0,
            n => self.ends.get(n - 1).copied().unwrap_or(self.training_texts.len()),
        });
        &self.training_texts[..end]
    }
}

/// Adds the names that other terminologies have for known concepts.
pub fn with_synonyms(
    mut names: Names,
    terminologies: &[TerminologyConfig],
    root: &Path,
    out: &Path,
    windower: &Windower,
    labels: &Labels,
) -> canonym_core::Result<Names> {
    let file = out.join("synonyms.kb");
    for terminology in terminologies {
        let kb = compile_terminology(terminology, root, &file)?;
        for concept in kb.concepts() {
            let ids = kb.id(concept);
            let Some([label, ..]) = ids.split('|').find_map(|id| labels.get(bare(id))).map(Vec::as_slice) else {
                continue;
            };
            for name in kb.names(concept) {
                names.input_ids.push(windower.name(kb.name(name), NAME_WORDPIECES));
                names.concepts.push(vec![*label]);
            }
        }
        drop(kb);
        std::fs::remove_file(&file).map_err(|error| canonym_core::Error::io("remove", &file, error))?;
    }
    Ok(names)
}

/// Concept numbers by bare id, without prefix; concepts of merged sources may share an id.
pub type Labels = HashMap<String, Vec<u32>>;

/// Builds the map from bare ids to concept numbers.
pub fn labels_of(kb: &KnowledgeBase) -> Labels {
    let mut labels = Labels::new();
    for concept in kb.concepts() {
        let raw = kb.raw_id(concept);
        for id in kb.id(concept).split('|').chain(kb.alternative_ids(concept)).chain(raw.split('|')) {
            let known = labels.entry(bare(id).to_owned()).or_default();
            if known.last() != Some(&concept.0) {
                known.push(concept.0);
            }
        }
    }
    labels
}

/// Documents of an experiment by split.
pub struct Parts {
    /// Training set.
    pub train: Vec<AnnotatedDocument>,
    /// Split for model selection; may be empty.
    pub tune: Vec<AnnotatedDocument>,
    /// Held-out set.
    pub dev: Vec<AnnotatedDocument>,
}

pub fn read_corpora(data: &DataConfig, seed: u64, root: &Path) -> canonym_core::Result<Parts> {
    let read = |paths: &[PathBuf]| -> canonym_core::Result<Vec<AnnotatedDocument>> {
        let mut all = Vec::new();
        for path in paths {
            let reader = Reader::open(&root.join(path), None)?.with_on_mismatch(OnMismatch::Drop).with_repairs(true);
            for document in reader {
                all.push(document?);
            }
        }
        Ok(all)
    };
    let (train, tune, dev) = (read(&data.train)?, read(&data.tune)?, read(&data.dev)?);
    let (train, dev) = match data.hold_out {
        None => (train, dev),
        Some(n) if n > 1 && dev.is_empty() => {
            let mut place = 0;
            train.into_iter().partition(|_| {
                place += 1;
                place % n != 0
            })
        }
        Some(_) => {
            let error = canonym_core::Error::config("invalid held-out documents");
            return Err(error.with_hint("set either `data.dev`, or `data.hold_out` to at least 2, such as 10"));
        }
    };
    if data.tune_share.is_some() && !tune.is_empty() {
        let error = canonym_core::Error::config("both `data.tune` and `data.tune_share` are set");
        return Err(error.with_hint("set only one of them"));
    }
    let (train, drawn) = held_apart(train, data.tune_share, seed)?;
    Ok(Parts { train, tune: if tune.is_empty() { drawn } else { tune }, dev })
}

/// Bare ids of an annotation, in order.
pub fn ids_of(annotation: &Annotation) -> Vec<&str> {
    let ids = annotation.ids.iter().flat_map(|ids| ids.split(['|', '+'])).map(|id| bare(id.trim()));
    ids.filter(|id| !id.is_empty() && *id != "-1" && *id != "-").collect()
}

/// Concepts with any of the annotation's ids.
pub fn concepts_of(annotation: &Annotation, labels: &Labels) -> Vec<u32> {
    ids_of(annotation).iter().filter_map(|id| labels.get(bare(id))).flatten().copied().collect()
}

pub fn prepare(
    documents: Vec<AnnotatedDocument>,
    windower: &Windower,
    labels: &Labels,
    longest: usize,
) -> canonym_core::Result<Corpus> {
    let mut report = CorpusReport { n_documents: documents.len(), ..CorpusReport::default() };
    let (mut training_texts, mut ends) = (Vec::new(), Vec::with_capacity(documents.len()));
    for document in &documents {
        let spans: Vec<Span> = document.annotations.iter().map(Annotation::hull).collect();
        let windows = windower.with_mentions(&Analysis::new(&document.document), &spans)?;
        let first = training_texts.len();
        for (window, rows) in windows.rows.iter().enumerate() {
            let mut words = vec![false];
            if let Some(range) = windows.ranges.get(window) {
                words.extend(begins_word(&document.document.text, &windows.tokens[range.clone()]));
            }
            words.resize(rows.len(), false);
            training_texts.push(TrainingText { rows: rows.clone(), begins_word: words, ..TrainingText::default() });
        }
        for (annotation, place) in document.annotations.iter().zip(&windows.places) {
            report.n_mentions += 1;
            let ids = ids_of(annotation);
            let concepts = concepts_of(annotation, labels);
            report.n_nil += usize::from(ids.is_empty());
            report.n_unknown += usize::from(!ids.is_empty() && concepts.is_empty());
            if let Some(place) = place {
                report.n_too_long += usize::from(place.last + 1 - place.first > longest);
                let is_linked = !ids.is_empty();
                let target = Target { first: place.first, last: place.last, concepts, is_linked };
                training_texts[first + place.window].mentions.push(target);
                let Some(home) = windows.ranges.get(place.window) else { continue };
                // In wordpieces of the text; the first one of a window follows `[CLS]`.
                let (begin, end) = (home.start + place.first - 1, home.start + place.last);
                for (other, range) in windows.ranges.iter().enumerate().filter(|(other, _)| *other != place.window) {
                    if range.start <= begin && end <= range.end {
                        let span = (begin - range.start + 1, end - range.start);
                        training_texts[first + other].elsewhere.push(span);
                    }
                }
            }
        }
        ends.push(training_texts.len());
    }
    report.n_windows = training_texts.len();
    Ok(Corpus { documents, training_texts, ends, report })
}

#[cfg(test)]
mod tests {
    use crate::models::dual_encoder::windows::WindowConfig;
    use crate::tokenizer::Tokenizer;
    use canonym_core::text::Document;

    use super::*;

    /// A repeated sentence in which each `ring` is a mention; the last one is unlinked.
    fn document(n: usize) -> AnnotatedDocument {
        let sentence = "A ring is b. ";
        let ring = |at: usize| {
            let start = (at * sentence.len() + 2) as u32;
            let id = if at + 1 == n { "-1" } else { "S1" };
            Annotation {
                spans: vec![Span { start, end: start + 4 }],
                text: "ring".to_owned(),
                ids: vec![id.to_owned()],
                ..Annotation::default()
            }
        };
        let document = Document { id: "7".to_owned(), text: sentence.repeat(n), sections: Vec::new() };
        AnnotatedDocument { document, annotations: (0..n).map(ring).collect(), ..AnnotatedDocument::default() }
    }

    #[test]
    fn a_mention_in_the_overlap_of_windows_is_one_in_each_and_is_linked_in_one() {
        let names = ["[UNK]", "[CLS]", "[SEP]", "a", "ring", "is", "b", "."];
        let config = WindowConfig { wordpieces: 17, overlap: 5, ..WindowConfig::default() };
        let windower = Windower::new(Tokenizer::of(names.map(str::to_owned).to_vec()).unwrap(), config).unwrap();
        let labels = Labels::from([("S1".to_owned(), vec![0])]);
        let corpus = prepare(vec![document(5)], &windower, &labels, 3).unwrap();
        assert!(corpus.training_texts.len() > 1);
        let linked: usize = corpus.training_texts.iter().map(|window| window.mentions.len()).sum();
        assert_eq!(linked, 5);
        assert!(corpus.training_texts.iter().any(|window| !window.elsewhere.is_empty()));
        // The word is a target in every window that contains it.
        for window in &corpus.training_texts {
            let rings: Vec<usize> = (0..window.rows.len()).filter(|at| window.rows[*at] == 4).collect();
            let mut known: Vec<usize> = window.mentions.iter().map(|target| target.first).collect();
            known.extend(window.elsewhere.iter().map(|(first, _)| *first));
            known.sort_unstable();
            assert_eq!(known, rings);
        }
    }

    #[test]
    fn a_part_to_choose_on_is_drawn_from_the_training_documents_by_the_seed() {
        let folder = tempfile::tempdir().unwrap();
        let texts: String =
            (0..40).map(|n| format!("{n}|t|A ring.\n{n}|a|Number {n}.\n{n}\t2\t6\tring\tShape\tS1\n\n")).collect();
        std::fs::write(folder.path().join("train.pubtator.txt"), &texts).unwrap();
        std::fs::write(folder.path().join("dev.pubtator.txt"), "99|t|A box.\n99|a|\n\n").unwrap();
        let paths = |name: &str| vec![PathBuf::from(name)];
        let data =
            DataConfig { train: paths("train.pubtator.txt"), dev: paths("dev.pubtator.txt"), ..DataConfig::default() };
        let parts = |data: &DataConfig, seed| {
            let Parts { train, tune, dev } = read_corpora(data, seed, folder.path()).unwrap();
            let ids = |documents: Vec<AnnotatedDocument>| -> Vec<String> {
                documents.into_iter().map(|one| one.document.id).collect()
            };
            (ids(train), ids(tune), ids(dev))
        };
        assert_eq!((parts(&data, 1).0.len(), parts(&data, 1).1.len()), (40, 0));
        let shared = DataConfig { tune_share: Some(4), ..data };
        let (train, tune, dev) = parts(&shared, 1);
        assert!((4..20).contains(&tune.len()) && train.len() + tune.len() == 40 && dev == ["99"]);
        assert!(tune.iter().all(|id| !train.contains(id)));
        assert_eq!(parts(&shared, 1).1, tune);
        assert_ne!(parts(&shared, 2).1, tune);
        let given = DataConfig { tune: paths("dev.pubtator.txt"), tune_share: None, dev: Vec::new(), ..shared };
        assert_eq!(parts(&given, 1).1, ["99"]);
        let both = DataConfig { tune_share: Some(4), ..given };
        assert!(read_corpora(&both, 1, folder.path()).is_err());
    }
}
