//! Linked documents as results: tables, rows and resources of health records, and codes of other code systems.
//!
//! [`encode`] encodes a document in any [`format`](mod@format), and [`sink`] writes encoded documents to a stream, a file or a folder.
//! [`omop`] writes rows of the table NOTE_NLP, [`fhir`] resources of FHIR R4. Both take the contexts of
//! [`crate::corpus::contexts`] into account: what a text negates, supposes or says of a relative is never written as
//! present.

pub mod codes;
pub mod encode;
pub mod explanations;
pub mod fhir;
mod fhir_types;
pub mod format;
pub mod names;
pub mod omop;
pub mod omop_concepts;
pub mod rows;
pub mod sink;

use crate::corpus::Annotation;
use crate::corpus::contexts::is_context;

/// The contexts of a mention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Asserted {
    negated: bool,
    possible: bool,
    historical: bool,
    hypothetical: bool,
    family: bool,
}

impl Asserted {
    /// The contexts that the attributes of a mention name.
    fn of(annotation: &Annotation) -> Asserted {
        let has = |value: &str| annotation.attributes.iter().any(|one| is_context(one) && one.value == value);
        Asserted {
            negated: has("negated"),
            possible: has("possible"),
            historical: has("historical"),
            hypothetical: has("hypothetical"),
            family: has("family"),
        }
    }
}
