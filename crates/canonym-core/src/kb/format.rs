//! The compiled file: which sections it has, and what it says of itself.
//!
//! All numbers are little-endian. `N` concepts are sorted by id; the names of a concept stand together, the
//! preferred one first. A `*.at` section holds `n + 1` offsets into its neighbour. The lexical sections
//! describe *forms*: the distinct folded names, sorted.
//!
//! | section | content |
//! | --- | --- |
//! | `meta` | [`Meta`] as JSON |
//! | `id.at`, `id.text` | concept ids |
//! | `concept.names` | first name of each concept, `N + 1` |
//! | `name.at`, `name.text`, `name.scope`, `name.form` | names, their scopes (a byte) and forms |
//! | `type.at`, `type.row` | rows of [`Meta::types`] |
//! | `def.at`, `def.text` | definitions |
//! | `parent.at`, `parent.row` | broader concepts |
//! | `source.row` | rows of [`Meta::sources`] |
//! | `alt.at`, `alt.text`, `alt.concept` | alternative ids, sorted, and whose they are |
//! | `alt.of.at`, `alt.of.row` | the alternative ids of each concept |
//! | `form.at`, `form.text` | forms |
//! | `form.name.at`, `form.name.row` | the names that fold to each form |
//! | `vocab.hash`, `vocab.root`, `vocab.df` | canonical tokens by hash, sorted, the hashes of their roots, and in how many forms each stands |
//! | `root.hash` | the roots of the vocabulary, sorted |
//! | `literal.start` | how names begin that go on across commas, brackets or full stops, or are long: hashes of the roots of their first two tokens, sorted; files of older builders lack it, and their names with such signs are found by their words alone |
//! | `form.token.at`, `form.token.row` | the canonical tokens of each form, in order |
//! | `key.*`, `root.*` | [`KeyTable`](crate::index::keys::KeyTable)s from token bags to forms |
//! | `gram.*` | the [`GramIndex`](crate::index::grams::GramIndex) |

use serde::{Deserialize, Serialize};

use crate::artifact::Kind;

/// The kind and format number of compiled knowledge bases.
pub const KIND: Kind = Kind { tag: *b"KNOW", name: "knowledge base", format: 1 };

/// What a knowledge base says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// A short name, such as `mesh-descriptors-2019`.
    pub name: String,
    /// The source format, such as `obo`.
    pub source_format: String,
    /// The files it was compiled from: name and content hash.
    pub files: Vec<SourceFile>,
    /// The release the source names, where it does.
    pub version: String,
    /// What the user is told about the licence of the content.
    pub licence: String,
    /// Prefixes that the import added to ids, such as `MESH`; raw ids leave them out.
    pub added_prefixes: Vec<String>,
    /// The import options, as the user would write them.
    pub options: Vec<String>,
    /// How many concepts.
    pub n_concepts: u32,
    /// How many names.
    pub n_names: u32,
    /// How many distinct folded names.
    pub n_forms: u32,
    /// How many names have a narrow, broad or related scope: none where the source knows no scopes.
    pub n_scoped_names: u32,
    /// Semantic types, sorted.
    pub types: Vec<String>,
    /// Source vocabularies, sorted.
    pub sources: Vec<String>,
    /// Parents that the file does not hold; `None` in files of builders that did not write it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_parents: Option<UnknownParents>,
}

/// Parents that concepts name and the knowledge base does not hold, because the source or a filter leaves them out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownParents {
    /// How many.
    pub n: u64,
    /// The first of them: the concept and its parent.
    pub first: Vec<(String, String)>,
}

/// A file that went into a knowledge base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Its name without folders.
    pub name: String,
    /// XXH3-128 of its bytes, in hexadecimal.
    pub xxh3: String,
}
