//! `--context`, which adds negation, time and experiencer as attributes of annotations, and `--drop-context`.

use canonym_core::corpus::contexts::is_context;
use canonym_core::corpus::{AnnotatedDocument, Attribute};

use canonym_neural::system::linked::retain;

/// Context of a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ContextValue {
    /// Negated.
    Negated,
    /// Possible, not certain.
    Possible,
    /// Historical.
    Historical,
    /// Hypothetical.
    Hypothetical,
    /// Of a family member.
    Family,
}

impl ContextValue {
    /// The corresponding attribute value.
    fn value(self) -> &'static str {
        match self {
            ContextValue::Negated => "negated",
            ContextValue::Possible => "possible",
            ContextValue::Historical => "historical",
            ContextValue::Hypothetical => "hypothetical",
            ContextValue::Family => "family",
        }
    }
}

/// Removes annotations with one of the contexts `unwanted`, and the corresponding entries of `parallel`, which may be
/// empty. Returns how many were removed.
pub fn drop_with_context<T>(document: &mut AnnotatedDocument, unwanted: &[ContextValue], parallel: &mut Vec<T>) -> u64 {
    let is_unwanted =
        |one: &Attribute| is_context(one) && unwanted.iter().any(|context| context.value() == one.value.as_str());
    let kept: Vec<bool> =
        document.annotations.iter().map(|annotation| !annotation.attributes.iter().any(is_unwanted)).collect();
    retain(document, parallel, &kept)
}
