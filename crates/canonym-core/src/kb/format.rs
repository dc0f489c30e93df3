//! Sections and metadata of the compiled file.
//!
//! All numbers are little-endian. The `N` concepts are sorted by id; the names of a concept are consecutive, the
//! preferred one first. A `*.at` section holds the [`Lengths`](crate::index::packed::Lengths) of the items of the section
//! after it, in files of formats 1 and 2 `n + 1` offsets. The lexical sections describe *forms*: the distinct folded names,
//! sorted.
//!
//! | section | content |
//! | --- | --- |
//! | `meta` | [`Meta`] as JSON |
//! | `counts` | [`Counts`](super::counts::Counts) as JSON; from format 3 on |
//! | `id.at`, `id.text` | concept ids |
//! | `concept.names` | first name of each concept, `N + 1` |
//! | `name.at`, `name.text`, `name.scope`, `name.form` | names, their scopes (a byte) and forms |
//! | `type.at`, `type.row` | rows of [`Meta::types`] |
//! | `def.at`, `def.text` | definitions |
//! | `parent.at`, `parent.row` | broader concepts |
//! | `source.row` | rows of [`Meta::sources`] |
//! | `alt.at`, `alt.text`, `alt.concept` | alternative ids, sorted, and their concepts |
//! | `alt.of.at`, `alt.of.row` | the alternative ids of each concept |
//! | `xref.at`, `xref.text`, `xref.concept`, `xref.predicate` | cross-references, sorted, their concepts and [`Predicate`](super::xref::Predicate)s (a byte); from format 2 on |
//! | `xref.of.at`, `xref.of.row` | the cross-references of each concept; from format 2 on |
//! | `form.at`, `form.text` | forms; in files of [`Layout::Whole`](super::Layout) |
//! | `word.*`, `form.word.*` | forms as words, in files of [`Layout::Words`](super::Layout): the [`WordIndex`](crate::index::words::WordIndex); from format 4 on |
//! | `form.name.at`, `form.name.row` | the names that fold to each form |
//! | `vocab.hash`, `vocab.root`, `vocab.df` | hashes of canonical tokens, sorted; hashes of their roots; document frequencies |
//! | `root.hash` | hashes of the roots of the vocabulary, sorted |
//! | `literal.start` | hashes of the starts of names that are matched literally, sorted |
//! | `form.token.at`, `form.token.row` | the canonical tokens of each form, in order; in files of [`Layout::Whole`](super::Layout) |
//! | `key.*`, `root.*` | [`KeyTable`](crate::index::keys::KeyTable)s from token bags to forms |
//! | `gram.*` | the [`GramIndex`](crate::index::grams::GramIndex) |
//!
//! Long names, and names with commas, brackets or full stops, are matched literally. `literal.start` hashes the roots of
//! their first two tokens. Files without that section, from earlier versions, match these names by words only.

use serde::{Deserialize, Serialize};

use crate::artifact::ArtifactKind;

/// The kind and format number of compiled knowledge bases.
pub const KIND: ArtifactKind =
    ArtifactKind { tag: *b"KNOW", name: "knowledge base", format: 4, oldest: 1, command: "canonym kb build" };

/// Metadata of a knowledge base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Short name, such as `mesh-descriptors-2019`.
    pub name: String,
    /// Source format, such as `obo`.
    pub source_format: String,
    /// Source files with their hashes.
    pub files: Vec<SourceFile>,
    /// Release given by the source or the user; may be empty.
    pub version: String,
    /// Licence note shown to users.
    pub licence: String,
    /// Prefixes that the import added to ids, such as `MESH`; not part of raw ids.
    pub added_prefixes: Vec<String>,
    /// Import options as given by the user.
    pub options: Vec<String>,
    /// Number of concepts.
    pub n_concepts: u32,
    /// Number of names.
    pub n_names: u32,
    /// Number of distinct folded names.
    pub n_forms: u32,
    /// Number of names with narrow, broad or related scope; 0 if the source has no scopes.
    pub n_scoped_names: u32,
    /// Semantic types, sorted.
    pub types: Vec<String>,
    /// Source vocabularies, sorted.
    pub sources: Vec<String>,
    /// Code systems whose URI or release is known; others have only the URI of their prefix. Empty in files of format 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code_systems: Vec<CodeSystemRecord>,
    /// Parents that are missing in the file; `None` if written by a version that did not record them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_parents: Option<UnknownParents>,
}

/// A code system of a knowledge base, by the prefix of its ids.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeSystemRecord {
    /// The prefix of its ids, such as `MESH`.
    pub prefix: String,
    /// The canonical URI; empty for that of the prefix.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// The release; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// Parents missing in the knowledge base because the source or a filter omits them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownParents {
    /// Their number.
    pub n: u64,
    /// The first of them: concept and parent.
    pub first: Vec<(String, String)>,
}

/// A source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// File name without folders.
    pub name: String,
    /// XXH3-128 of the content, in hexadecimal.
    pub xxh3: String,
}
