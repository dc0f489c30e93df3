//! Input of the builder: one concept, or a part of one.

use super::xref::XrefRecord;

/// The scope of a name relative to its concept, as in OBO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Scope {
    /// The preferred name.
    Preferred = 0,
    /// A name for this concept.
    Exact = 1,
    /// A name for a narrower concept.
    Narrow = 2,
    /// A name for a broader concept.
    Broad = 3,
    /// A name for a related concept.
    Related = 4,
}

impl Scope {
    /// The scope as written in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Preferred => "preferred",
            Scope::Exact => "exact",
            Scope::Narrow => "narrow",
            Scope::Broad => "broad",
            Scope::Related => "related",
        }
    }
}

/// One name of a concept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRecord {
    /// The name as in the source, trimmed.
    pub text: String,
    /// Its scope.
    pub scope: Scope,
}

/// One concept, or a part of one: the builder merges records with the same id in input order.
///
/// The first name with [`Scope::Preferred`] is the preferred one; without any, the first name is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConceptRecord {
    /// The displayed id with prefix: `MESH:D003924`, `DOID:4`. Several ids joined by `|` are one concept.
    pub id: String,
    /// Names in source order; the builder drops exact duplicates.
    pub names: Vec<NameRecord>,
    /// Semantic types, such as `T047` or `Disease`.
    pub types: Vec<String>,
    /// The definition.
    pub definition: Option<String>,
    /// Ids of broader concepts, with prefixes.
    pub parents: Vec<String>,
    /// Alternative ids: secondary and replaced ids.
    pub alternative_ids: Vec<String>,
    /// Cross-references to other code systems.
    pub xrefs: Vec<XrefRecord>,
    /// The source vocabulary, such as `SNOMEDCT_US`; empty if the file has a single source.
    pub source: String,
}
