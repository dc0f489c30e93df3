//! From mentions to concepts: the traits of linking, and the lexical system.
//!
//! A [`Linker`] ranks concepts for given mentions, a [`Reranker`] reorders them, an [`Annotator`] finds mentions and links them.
//! Every method takes a batch and keeps its order.

mod alignment;
pub mod bm25;
pub mod explain;
pub mod features;
pub mod fit;
pub mod lexical;
pub mod lookalike;
pub mod model;
pub mod recognise;

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::kb::{ConceptId, KnowledgeBase, NameId};
use crate::link::explain::Explanation;
use crate::text::{Document, Mention};
use crate::{Error, Result};

/// Buffers that threads borrow, so that what one batch remembered serves the next.
#[derive(Debug, Default)]
pub(crate) struct Pool<T>(Mutex<Vec<T>>);

/// A borrowed buffer; it goes back when dropped.
pub(crate) struct Borrowed<'a, T: Default> {
    pool: &'a Pool<T>,
    value: T,
}

impl<T: Default> Pool<T> {
    /// A buffer that was used before, or a new one.
    pub(crate) fn borrow(&self) -> Borrowed<'_, T> {
        let value = self.lock().pop().unwrap_or_default();
        Borrowed { pool: self, value }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Drop for Borrowed<'_, T> {
    fn drop(&mut self) {
        self.pool.lock().push(std::mem::take(&mut self.value));
    }
}

impl<T: Default> Deref for Borrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Default> DerefMut for Borrowed<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// A document and the mentions to link in it.
#[derive(Debug, Clone, Copy)]
pub struct Marked<'a> {
    /// The document.
    pub document: &'a Document,
    /// Its mentions.
    pub mentions: &'a [Mention],
}

impl Marked<'_> {
    /// What each mention is compared as: its text, short forms that the document defines written out.
    pub fn names(&self) -> Vec<String> {
        let text = self.document.text.as_str();
        let uses = if self.mentions.is_empty() { Vec::new() } else { recognise::short_forms(text) };
        self.mentions.iter().map(|mention| recognise::expanded(text, &mention.spans, &uses)).collect()
    }
}

/// A concept that a mention may mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The concept.
    pub concept: ConceptId,
    /// The name that spoke for it, where one did.
    pub name: Option<NameId>,
    /// The calibrated probability that it is the concept meant.
    pub score: f32,
}

/// What a linker says of one mention.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Link {
    /// Best first.
    pub candidates: Vec<Candidate>,
    /// Whether the linker abstains; the candidates then are the nearest concepts.
    pub nil: bool,
}

/// A mention and what it was linked to.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkedMention {
    /// Where it stands; its score is the probability that mention and concept are right.
    pub mention: Mention,
    /// Its concepts.
    pub link: Link,
}

/// Ranks concepts for given mentions.
pub trait Linker: Send + Sync {
    /// The knowledge base whose concepts it ranks; it resolves the ids of its results.
    fn kb(&self) -> &KnowledgeBase;

    /// The links of each mention of each document.
    fn link(&self, inputs: &[Marked<'_>]) -> Result<Vec<Vec<Link>>>;

    /// As [`Linker::link`], each link with its evidence. It takes more time.
    ///
    /// # Errors
    /// [`Error::Usage`] where the linker has no explanations.
    fn explain(&self, inputs: &[Marked<'_>]) -> Result<Vec<Vec<(Link, Explanation)>>> {
        let _ = inputs;
        Err(Error::usage("this model has no explanations", "leave `--explain` out, or choose another model"))
    }
}

/// Reorders the candidates of links.
pub trait Reranker: Send + Sync {
    /// Orders the candidates of each link anew, best first, with scores of its own. `links` are those of the mentions of `inputs`.
    fn rerank(&self, inputs: &[Marked<'_>], links: &mut [Vec<Link>]) -> Result<()>;
}

/// Finds mentions and links them.
pub trait Annotator: Send + Sync {
    /// The knowledge base whose concepts it links to; it resolves the ids of its results.
    fn kb(&self) -> &KnowledgeBase;

    /// The linked mentions of each document, in text order.
    fn annotate(&self, documents: &[Document]) -> Result<Vec<Vec<LinkedMention>>>;

    /// As [`Annotator::annotate`], each mention with its evidence. It takes more time.
    fn explain(&self, documents: &[Document]) -> Result<Vec<Vec<(LinkedMention, Explanation)>>>;
}
