//! Negation, time and experiencer of mentions as attributes of annotations.

use super::{AnnotatedDocument, Annotation, Attribute};
use crate::text::analysis::Analysis;
use crate::text::context::{Contexts, EXPERIENCER, NEGATION, TEMPORALITY};

/// Whether the attribute is one that [`add`] sets.
pub fn is_context(attribute: &Attribute) -> bool {
    [EXPERIENCER, NEGATION, TEMPORALITY].contains(&attribute.name.as_str())
}

/// The values that [`add`] sets.
pub const VALUES: [&str; 5] = ["negated", "possible", "historical", "hypothetical", "family"];

/// Whether an annotation has one of the contexts `values`.
pub fn has_any(annotation: &Annotation, values: &[String]) -> bool {
    annotation.attributes.iter().any(|attribute| is_context(attribute) && values.contains(&attribute.value))
}

/// Sets the context attributes of every annotation, replacing those of the input.
pub fn add(document: &mut AnnotatedDocument) {
    let contexts = Contexts::new(&Analysis::new(&document.document));
    for annotation in &mut document.annotations {
        let attributes = &mut annotation.attributes;
        attributes.retain(|one| !is_context(one));
        let found = contexts.of(&annotation.spans).attributes();
        attributes.extend(found.map(|(name, value)| Attribute { name: name.to_owned(), value: value.to_owned() }));
    }
}
