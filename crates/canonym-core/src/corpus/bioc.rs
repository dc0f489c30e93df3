//! Data model shared by BioC XML and BioC JSON, and conversion to and from [`AnnotatedDocument`].
//!
//! Passages become sections of one text at their offsets, with gaps filled by spaces. A passage with an impossible
//! offset (before the end of the previous passage, or far after it) follows after one space. Annotations are located
//! relative to their passage or sentence, so absolute and relative offsets both work; if passage offsets are
//! inconsistent with annotation offsets, the latter count from the start of the text. The source is kept in the
//! residue, from which the writers restore everything that did not change: order of infons, sentences, placement of
//! annotations and relations, annotations without a location. This module does no I/O.

mod from_document;
mod model;
mod to_document;

pub(super) use from_document::{kept_of, to_bioc};
pub(super) use model::{
    BiocAnnotation, BiocDocument, BiocRelation, Collection, Infons, Kept, Layout, Location, Node, Passage,
};
pub(super) use to_document::to_annotated;
