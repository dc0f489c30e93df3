//! The model behind BioC as XML and as JSON, and its way to and from [`AnnotatedDocument`].
//!
//! Passages become sections of one text: each stands at its offset, gaps are filled with spaces; a passage whose offset
//! cannot be, because it lies before the end of the last one or far behind it, follows after one space. Annotations are
//! placed relative to their passage or sentence, so that both kinds hold; where the offsets of passages do not go with
//! those of annotations, the latter count from the start of the text. The source is kept whole in the residue, and
//! the writers take from there whatever was not changed: order of infons, sentences, places of annotations and
//! relations, annotations without a location. Here nothing is read or written.

mod from_document;
mod model;
mod to_document;

pub(super) use from_document::{kept_of, to_bioc};
pub(super) use model::{
    BiocAnnotation, BiocDocument, BiocRelation, Collection, Infons, Kept, Layout, Location, Node, Passage,
};
pub(super) use to_document::to_annotated;
