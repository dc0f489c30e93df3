//! Knowledge bases: import a terminology, compile it into one file, and open that file without parsing.

mod arena;
pub mod build;
pub mod builder;
pub mod code_system;
pub mod compile;
pub mod counts;
pub mod diff;
pub mod export;
pub mod format;
pub mod import;
pub mod join;
pub mod lexicon;
pub mod lint;
pub mod reader;
pub mod record;
pub mod search;
pub mod sources;
pub mod subset;
mod supplement;
pub mod translate;
pub mod variants;
pub mod xref;

pub use builder::{BuildProgress, BuildStep, KnowledgeBaseBuilder};
pub use lexicon::Layout;
pub use reader::{ConceptId, FormId, KnowledgeBase, NameId};
pub use record::{ConceptRecord, NameRecord, Scope};
pub use xref::{Predicate, Xref, XrefRecord};
