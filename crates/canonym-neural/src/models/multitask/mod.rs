//! Hierarchical multi-task tagger: mention recognition, entity typing and entity linking in one model.
//!
//! Wiatrak and Iso-Sipila, "Simple Hierarchical Multi-Task Neural End-To-End Entity Linking for Biomedical Text", LOUHI 2020, which follows
//! Sanh, Wolf and Ruder, "A Hierarchical Multi-Task Approach for Learning Embeddings from Semantic Tasks", AAAI 2019.
//!
//! ```text
//! encoder     [rows, hidden]         wordpieces of a sentence with those of its neighbours, of which only the sentence is kept
//! mentions    [rows, 2 * units]      BiLSTM(encoder)                     -> [words, 5]          BILOU labels
//! types       [rows, 2 * units]      BiLSTM([encoder; mentions])         -> [words, 1 + types]  Nil and semantic types
//! concepts    [rows, 2 * units]      BiLSTM([encoder; types])            -> [words, 1 + ids]    Nil and concepts
//! ```
//!
//! Without hierarchy (single-task, multi-task) the heads read the encoder. Per token, a word is classified by its first wordpiece; per
//! entity, types and concepts are classified by the mean of the rows of a span, and have no Nil. A head is dropout, optionally a hidden
//! layer, and a linear layer; the rows of the concept head are gathered for the classes that are present in a batch, so absent classes have
//! no gradient.

pub mod decode;
pub mod infer;
pub mod tokenized;

use std::collections::BTreeMap;
use std::sync::Arc;

use canonym_core::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::autograd::{Tape, Var};
use crate::layers::crf::N_ENDS;
use crate::layers::crf::bilou::N_LABELS;
use crate::layers::linear::linear;
use crate::layers::lstm::BiLstmConfig;
use crate::models::bert::{BertConfig, DEVIATION, Sequences};
use crate::tensor::matrix::Matrix;
use crate::tensor::parameters::Parameters;
use crate::tensor::random::{self, SplitMix64};
use crate::tensor::segments::Segments;

/// Scope of the encoder's weights.
pub const ENCODER: &str = "encoder.";

/// The rows of the concept head, `[1 + ids, inputs + 1]`; the last column is the bias.
pub const CONCEPTS: &str = "concepts.table";

/// Dropout before each head.
const DROPOUT: f32 = 0.1;

/// A task, in the order of the hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Mention recognition.
    Mentions,
    /// Entity typing.
    Types,
    /// Entity linking.
    Concepts,
}

impl Task {
    /// All tasks, lowest first.
    pub const ALL: [Task; 3] = [Task::Mentions, Task::Types, Task::Concepts];

    /// Name in weights, losses and reports.
    pub fn name(self) -> &'static str {
        match self {
            Task::Mentions => "mentions",
            Task::Types => "types",
            Task::Concepts => "concepts",
        }
    }
}

/// What types and concepts are assigned to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framing {
    /// To each word; a mention is a run of words with one label.
    #[default]
    Token,
    /// To spans that the mention task has found.
    Entity,
}

/// The mentions that a model with concepts per token links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkedSpans {
    /// Runs of words whose most probable concept is the same, as published.
    #[default]
    Runs,
    /// The mentions of the task `mentions`, each with the concept that is most probable over all its words.
    Mentions,
}

impl LinkedSpans {
    /// Whether this is the default.
    pub fn is_default(&self) -> bool {
        *self == LinkedSpans::Runs
    }
}

/// Model configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultitaskConfig {
    /// Configuration of the encoder. Without layers, the wordpiece embeddings are the encoder, as in the BiLSTM-CRF baseline.
    pub bert: BertConfig,
    /// The tasks, lowest first.
    pub tasks: Vec<Task>,
    /// What types and concepts are assigned to.
    pub framing: Framing,
    /// Task encoders with shortcuts to the encoder; `None` if heads read the encoder.
    pub lstm: Option<BiLstmConfig>,
    /// Whether mentions and types per token are labelled by a linear-chain CRF, as in the baseline.
    pub crf: bool,
    /// Whether types per token are labelled as BILOU of each type.
    pub type_tags: bool,
    /// Whether incomplete BILOU sequences are decoded as mentions; otherwise only `U` and `B I* L` are.
    #[serde(default, skip_serializing_if = "is_off")]
    pub lenient: bool,
    /// Whether heads have a hidden layer with ReLU, as wide as their inputs.
    #[serde(default, skip_serializing_if = "is_off")]
    pub hidden_layer: bool,
    /// The mentions that are linked, per token.
    #[serde(default, skip_serializing_if = "LinkedSpans::is_default")]
    pub linked_spans: LinkedSpans,
    /// Maximum number of wordpieces of a sentence with its context, including the special tokens.
    #[serde(alias = "max_pieces")]
    pub max_wordpieces: usize,
    /// The semantic types, in the order of their labels.
    pub types: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_off(value: &bool) -> bool {
    !value
}

/// Packed windows: sentences with their context.
#[derive(Debug, Clone, Default)]
pub struct PackedWindows {
    /// Wordpieces from `[CLS]` to `[SEP]`.
    pub sequences: Sequences,
    /// Rows of the sentences themselves in the packed batch.
    pub targets: Vec<u32>,
    /// Rows of each sentence among the targets.
    pub segments: Arc<Segments>,
    /// First row of each word among the targets.
    pub words: Vec<u32>,
    /// First and last row of each span among the targets.
    pub spans: Vec<(u32, u32)>,
}

impl MultitaskConfig {
    /// Whether the model has a task.
    pub fn has(&self, task: Task) -> bool {
        self.tasks.contains(&task)
    }

    /// Whether the model finds mentions itself; otherwise it needs spans.
    pub fn detects(&self) -> bool {
        self.framing == Framing::Token || self.has(Task::Mentions)
    }

    /// Columns of the rows that a head reads.
    pub fn n_inputs(&self) -> usize {
        self.lstm.map_or(self.bert.hidden_size, |lstm| lstm.n_outputs())
    }

    /// Number of labels of the type head; the first one is Nil, which no span has.
    pub fn n_type_labels(&self) -> usize {
        1 + self.types.len() * if self.has_type_tags() { N_LABELS - 1 } else { 1 }
    }

    /// Whether type labels are BILOU of each type.
    pub fn has_type_tags(&self) -> bool {
        self.type_tags && self.framing == Framing::Token
    }

    /// Whether the labels of a task form a linear-chain CRF.
    pub fn has_crf(&self, task: Task) -> bool {
        self.crf && (task == Task::Mentions || (task == Task::Types && self.framing == Framing::Token))
    }

    fn n_labels(&self, task: Task) -> usize {
        if task == Task::Mentions { N_LABELS } else { self.n_type_labels() }
    }

    /// Columns that the task encoder of `task` reads: the encoder, and the task encoder below.
    fn n_below(&self, task: Task, lstm: BiLstmConfig) -> usize {
        self.bert.hidden_size.saturating_add(if self.below(task).is_some() { lstm.n_outputs() } else { 0 })
    }

    /// The task below in the hierarchy.
    fn below(&self, task: Task) -> Option<Task> {
        self.tasks.iter().copied().take_while(|other| *other < task).last()
    }

    /// Initialises the weights that `parameters` lacks, for `n_concepts` classes besides Nil.
    pub fn init(&self, parameters: &mut Parameters, n_concepts: usize, rng: &mut SplitMix64) {
        self.bert.init(parameters, ENCODER, rng);
        *parameters = ["weight", "bias"]
            .iter()
            .fold(std::mem::take(parameters), |all, part| all.without(&format!("{ENCODER}pooler.{part}")));
        let n_inputs = self.n_inputs();
        let mut drawn = |n_rows: usize, n_cols: usize| {
            let values = (0..n_rows * n_cols).map(|_| DEVIATION * random::normal(rng)).collect();
            Matrix::new(n_rows, n_cols, values)
        };
        let mut add = |name: String, value: Matrix| {
            if parameters.find(&name).is_err() {
                parameters.add(name, value);
            }
        };
        for task in &self.tasks {
            if self.hidden_layer {
                add(format!("{}.hidden.weight", task.name()), drawn(n_inputs, n_inputs));
                add(format!("{}.hidden.bias", task.name()), Matrix::zeros(1, n_inputs));
            }
            if *task == Task::Concepts {
                let mut table = drawn(1 + n_concepts, n_inputs + 1);
                (0..table.n_rows).for_each(|row| table.row_mut(row)[n_inputs] = 0.0);
                add(CONCEPTS.to_owned(), table);
                continue;
            }
            let n_labels = self.n_labels(*task);
            add(format!("{}.weight", task.name()), drawn(n_inputs, n_labels));
            add(format!("{}.bias", task.name()), Matrix::zeros(1, n_labels));
            if self.has_crf(*task) {
                add(format!("{}.transitions", task.name()), Matrix::zeros(n_labels + N_ENDS, n_labels));
            }
        }
        if let Some(lstm) = self.lstm {
            for task in &self.tasks {
                lstm.init(parameters, &scope(*task), self.n_below(*task, lstm), rng);
            }
        }
    }

    /// Checks the tasks, and the shapes of the weights for `n_concepts` classes besides Nil.
    ///
    /// # Errors
    /// If tasks contradict each other, or a weight is missing or has another shape.
    pub fn check(&self, parameters: &Parameters, n_concepts: usize) -> Result<()> {
        let refused = |message: &str, hint: &str| Err(Error::config(message).with_hint(hint));
        if self.tasks.is_empty() || !self.tasks.is_sorted_by(|left, right| left < right) {
            return refused("`tasks` must be some of mentions, types, concepts, in this order", "see `experiments/`");
        }
        let is_per_token = self.framing == Framing::Token && self.has(Task::Mentions) && self.has(Task::Concepts);
        if self.linked_spans == LinkedSpans::Mentions && !is_per_token {
            return refused(
                "`linked_spans = \"mentions\"` needs the tasks `mentions` and `concepts` per token",
                "omit `linked_spans`, or add the tasks",
            );
        }
        if self.max_wordpieces < 16 || self.max_wordpieces > self.bert.max_position_embeddings {
            return refused(
                "`max_wordpieces` must be at least 16 and at most the number of positions of the encoder",
                "the paper uses 128",
            );
        }
        self.bert.check(parameters, ENCODER)?;
        let n_inputs = self.n_inputs();
        for task in &self.tasks {
            if let Some(lstm) = self.lstm {
                lstm.check(parameters, &scope(*task), self.n_below(*task, lstm))?;
            }
            if self.hidden_layer {
                parameters.shaped(&format!("{}.hidden.weight", task.name()), n_inputs, n_inputs)?;
                parameters.shaped(&format!("{}.hidden.bias", task.name()), 1, n_inputs)?;
            }
            if *task == Task::Concepts {
                parameters.shaped(CONCEPTS, 1 + n_concepts, n_inputs.saturating_add(1))?;
                continue;
            }
            let n_labels = self.n_labels(*task);
            parameters.shaped(&format!("{}.weight", task.name()), n_inputs, n_labels)?;
            parameters.shaped(&format!("{}.bias", task.name()), 1, n_labels)?;
            if self.has_crf(*task) {
                parameters.shaped(&format!("{}.transitions", task.name()), n_labels + N_ENDS, n_labels)?;
            }
        }
        Ok(())
    }

    /// Encoder rows of the sentences, `[targets, hidden]`; their context is dropped.
    ///
    /// # Errors
    /// If a weight is missing.
    pub fn encode(&self, tape: &mut Tape<'_>, windows: &PackedWindows, rng: Option<&mut SplitMix64>) -> Result<Var> {
        let rows = self.bert.forward(tape, ENCODER, &windows.sequences, rng)?;
        Ok(tape.gather(rows, windows.targets.clone()))
    }

    /// Rows that the heads of `tasks` read, `[targets, inputs]`, from encoder rows.
    ///
    /// # Errors
    /// If a weight is missing.
    pub fn task_rows(
        &self,
        tape: &mut Tape<'_>,
        encoded: Var,
        segments: &Arc<Segments>,
        tasks: &[Task],
        mut rng: Option<&mut SplitMix64>,
    ) -> Result<BTreeMap<Task, Var>> {
        let Some(lstm) = self.lstm else { return Ok(tasks.iter().map(|task| (*task, encoded)).collect()) };
        let highest = tasks.iter().max().copied().unwrap_or(Task::Mentions);
        let mut rows = BTreeMap::new();
        let mut below: Option<Var> = None;
        for task in self.tasks.iter().copied().filter(|task| *task <= highest) {
            let input = below.map_or(encoded, |below| tape.concat(&[encoded, below]));
            let of_task = lstm.forward(tape, &scope(task), input, segments, rng.as_deref_mut())?;
            rows.insert(task, of_task);
            below = Some(of_task);
        }
        rows.retain(|task, _| tasks.contains(task));
        Ok(rows)
    }

    /// Rows to classify: the first wordpiece of each word, or the mean of each span.
    pub fn units(&self, tape: &mut Tape<'_>, rows: Var, windows: &PackedWindows, task: Task) -> Var {
        if self.framing == Framing::Token || task == Task::Mentions {
            return tape.gather(rows, windows.words.clone());
        }
        let each = windows.spans.iter().flat_map(|(first, last)| *first..=*last).collect();
        let lengths = windows.spans.iter().map(|(first, last)| (last + 1 - first) as usize);
        let segments = Arc::new(Segments::of_lengths(lengths));
        let wordpieces = tape.gather(rows, each);
        tape.segment_mean(wordpieces, &segments)
    }

    /// Dropout, the hidden layer if there is one, and the linear layer of a task, `[units, labels]`; for concepts the inputs of the layer with
    /// a last column of ones, `[units, inputs + 1]`, which the caller multiplies with rows of [`CONCEPTS`].
    ///
    /// # Errors
    /// If a weight is missing.
    pub fn head(&self, tape: &mut Tape<'_>, task: Task, units: Var, rng: Option<&mut SplitMix64>) -> Result<Var> {
        let mut units = tape.dropout(units, DROPOUT, rng);
        if self.hidden_layer {
            let hidden = linear(tape, &format!("{}.hidden", task.name()), units)?;
            units = tape.relu(hidden);
        }
        if task == Task::Concepts {
            let n_rows = tape.value(units).n_rows;
            let ones = tape.input(Matrix::new(n_rows, 1, vec![1.0; n_rows]));
            return Ok(tape.concat(&[units, ones]));
        }
        linear(tape, task.name(), units)
    }
}

/// Scope of a task encoder's weights.
fn scope(task: Task) -> String {
    format!("{}.lstm.", task.name())
}

#[cfg(test)]
pub(crate) mod tests;
