//! Entity linking: traits, and the lexical system.
//!
//! A [`Linker`] ranks concepts for given mentions, a [`Reranker`] reorders candidates, an [`Annotator`] finds mentions
//! and links them. All methods take batches and keep their order.

mod alignment;
pub mod bm25;
pub mod changed;
pub mod explain;
pub mod features;
pub mod fit;
pub mod lexical;
pub mod lookalike;
pub mod model;
pub mod recognise;
pub mod rephrased;
pub mod short_list;
pub mod slips;
pub mod sssom;
pub mod system;
pub mod written_out;

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kb::{ConceptId, KnowledgeBase, NameId};
use crate::link::explain::Explanation;
use crate::text::analysis::Analysis;
use crate::text::{Mention, Span};
use crate::{Error, Result};

/// A pool of buffers that threads borrow and return, so that their caches are reused by later batches.
#[derive(Debug, Default)]
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

/// A borrowed buffer, returned when dropped.
pub(crate) struct PoolGuard<'a, T: Default> {
    pool: &'a Pool<T>,
    value: T,
}

impl<T: Default> Pool<T> {
    /// A returned buffer, or a new one.
    pub(crate) fn borrow(&self) -> PoolGuard<'_, T> {
        let value = self.lock().pop().unwrap_or_default();
        PoolGuard { pool: self, value }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Drop for PoolGuard<'_, T> {
    fn drop(&mut self) {
        self.pool.lock().push(std::mem::take(&mut self.value));
    }
}

impl<T: Default> Deref for PoolGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> DerefMut for PoolGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// A document with the mentions to link.
#[derive(Debug, Clone, Copy)]
pub struct LinkInput<'a> {
    /// The document.
    pub document: &'a Analysis<'a>,
    /// Its given mentions.
    pub mentions: &'a [Mention],
}

impl<'a> LinkInput<'a> {
    /// Each of a batch of documents with its mentions.
    pub fn all(documents: &'a [Analysis<'a>], mentions: &'a [Vec<Mention>]) -> Vec<LinkInput<'a>> {
        documents.iter().zip(mentions).map(|(document, mentions)| LinkInput { document, mentions }).collect()
    }

    /// The text to link for each mention: its own, with short forms defined in the document expanded.
    pub fn names(&self) -> Vec<String> {
        let uses = self.document.short_forms();
        let name = |mention: &Mention| recognise::expanded(self.document.text, &mention.spans, uses);
        self.mentions.iter().map(name).collect()
    }
}

/// A candidate concept of a mention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The concept.
    pub concept: ConceptId,
    /// The matched name, if the linker matches names.
    pub name: Option<NameId>,
    /// Calibrated probability that the concept is correct, given that the span is a mention.
    pub p_link: f32,
}

/// The result of linking one mention.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Link {
    /// Candidates, best first.
    pub candidates: Vec<Candidate>,
    /// Whether the mention is left unlinked (NIL); `candidates` are then the nearest concepts.
    pub nil: bool,
}

/// A mention with its link.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkedMention {
    /// The mention with its probability.
    pub mention: Mention,
    /// Its link.
    pub link: Link,
    /// Calibrated probability that the span is a mention and the best candidate is correct: from a joint model where there is one,
    /// else p(mention) · p(link).
    pub p_both: f32,
}

impl LinkedMention {
    /// The score of the output: p(mention and concept) of a linked mention, p(mention) of an unlinked one.
    pub fn score(&self) -> f32 {
        if self.link.nil { self.mention.p_mention } else { self.p_both }
    }

    /// Probability that the span is a mention and this candidate is correct.
    pub fn p_both_of(&self, candidate: &Candidate) -> f32 {
        let best = self.link.candidates.first().map_or(0.0, |best| best.p_link).max(1e-6);
        candidate.p_link / best * self.p_both
    }
}

/// Ranks concepts for given mentions.
pub trait Linker: Send + Sync {
    /// The knowledge base of the candidates, which resolves their ids.
    fn kb(&self) -> &KnowledgeBase;

    /// Links each mention of each document.
    fn link(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<Link>>>;

    /// Like [`Linker::link`], with explanations. Slower.
    ///
    /// # Errors
    /// [`Error::Usage`] if the linker does not support explanations.
    fn explain(&self, inputs: &[LinkInput<'_>]) -> Result<Vec<Vec<(Link, Explanation)>>> {
        let _ = inputs;
        Err(Error::usage(
            "this model does not support explanations",
            "omit explanations (option `--explain`), or choose another model",
        ))
    }

    /// Links names without context, in order. By default each is a document of one mention.
    fn link_names(&self, names: &[&str]) -> Result<Vec<Link>> {
        as_documents(names, |inputs| self.link(inputs))
    }

    /// Like [`Linker::link_names`], with explanations. Slower.
    ///
    /// # Errors
    /// [`Error::Usage`] if the linker does not support explanations.
    fn explain_names(&self, names: &[&str]) -> Result<Vec<(Link, Explanation)>> {
        as_documents(names, |inputs| self.explain(inputs))
    }
}

/// Runs `link` on documents that consist of one name each.
fn as_documents<T>(names: &[&str], link: impl FnOnce(&[LinkInput<'_>]) -> Result<Vec<Vec<T>>>) -> Result<Vec<T>> {
    let documents: Vec<Analysis<'_>> = names.iter().map(|name| Analysis::of_text(name)).collect();
    let whole = |document: &Analysis<'_>| [Mention::contiguous(Span::new(0, document.text.len()))];
    let mentions: Vec<[Mention; 1]> = documents.iter().map(whole).collect();
    let inputs = documents.iter().zip(&mentions).map(|(document, mentions)| LinkInput { document, mentions });
    Ok(link(&inputs.collect::<Vec<_>>())?.into_iter().flatten().collect())
}

/// Explains links of mentions as those of their names.
pub fn explain_by_name<L: Linker + ?Sized>(
    linker: &L,
    inputs: &[LinkInput<'_>],
) -> Result<Vec<Vec<(Link, Explanation)>>> {
    let names: Vec<Vec<String>> = inputs.iter().map(LinkInput::names).collect();
    let all: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
    let mut explanations = linker.explain_names(&all)?.into_iter().map(|(_, explanation)| explanation);
    let links = linker.link(inputs)?.into_iter();
    Ok(links.map(|links| links.into_iter().zip(explanations.by_ref()).collect()).collect())
}

/// Reorders the candidates of links.
pub trait Reranker: Send + Sync {
    /// Reorders and rescores the candidates of each link, best first. `links` belong to the mentions of `inputs`.
    fn rerank(&self, inputs: &[LinkInput<'_>], links: &mut [Vec<Link>]) -> Result<()>;
}

/// Finds mentions and links them.
pub trait Annotator: Send + Sync {
    /// The knowledge base of the candidates, which resolves their ids.
    fn kb(&self) -> &KnowledgeBase;

    /// The linked mentions of each document, in text order.
    fn annotate(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<LinkedMention>>>;

    /// Like [`Annotator::annotate`], with explanations. Slower.
    fn explain(&self, documents: &[Analysis<'_>]) -> Result<Vec<Vec<(LinkedMention, Explanation)>>>;
}

/// An annotator whose tokenisation can see gold mention boundaries, as in the published evaluation of some models.
pub trait LeakyAnnotator: Annotator {
    /// Like [`Annotator::annotate`]; `boundaries` are the gold spans of each document.
    fn annotate_leaky(&self, documents: &[Analysis<'_>], boundaries: &[Vec<Span>]) -> Result<Vec<Vec<LinkedMention>>>;
}
