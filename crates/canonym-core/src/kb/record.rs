//! What an importer hands to the builder: one concept, or a part of one.

/// How close a name is to its concept, as OBO's synonym scopes say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Scope {
    /// The preferred name.
    Preferred = 0,
    /// A name for exactly this concept.
    Exact = 1,
    /// A name for something narrower.
    Narrow = 2,
    /// A name for something broader.
    Broad = 3,
    /// A name for something related.
    Related = 4,
}

impl Scope {
    /// The word that people and files see.
    pub fn word(self) -> &'static str {
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
    /// The name as the source writes it, white space trimmed.
    pub text: String,
    /// How close it is to the concept.
    pub scope: Scope,
}

/// One concept, or a part of one: the builder merges records with the same id in the order they come.
///
/// The first record with a [`Scope::Preferred`] name gives the preferred name; where none has, the first name is it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConceptRecord {
    /// The id as it is to be shown, prefix included: `MESH:D003924`, `DOID:4`. Several joined by `|` stay one concept.
    pub id: String,
    /// Names in the order of the source; exact repeats are dropped by the builder.
    pub names: Vec<NameRecord>,
    /// Semantic types, such as `T047` or `Disease`.
    pub types: Vec<String>,
    /// The definition.
    pub definition: Option<String>,
    /// Ids of broader concepts, prefixes included.
    pub parents: Vec<String>,
    /// Other ids under which this concept is found: alternative, replaced and cross-reference ids.
    pub alternative_ids: Vec<String>,
    /// The source vocabulary, such as `SNOMEDCT_US`; empty where the file is one source.
    pub source: String,
}
