//! `--context`: what the text says of a mention, as attributes of its annotation, and `--drop-context`.

use canonym_core::corpus::format::CorpusFormat;
use canonym_core::corpus::{AnnotatedDocument, Attribute};
use canonym_core::text::context::{Contexts, EXPERIENCER, NEGATION, TEMPORALITY};

use crate::errors;
use crate::link::to::To;
use canonym_neural::system::linked::retain;

/// What can be said of a mention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Said {
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

impl Said {
    /// The value of the attribute that says so.
    fn value(self) -> &'static str {
        match self {
            Said::Negated => "negated",
            Said::Possible => "possible",
            Said::Historical => "historical",
            Said::Hypothetical => "hypothetical",
            Said::Family => "family",
        }
    }
}

/// Refuses formats that have no place for attributes.
pub fn check_format(to: To) -> anyhow::Result<()> {
    use CorpusFormat::{BiocJson, BiocXml, Brat, Jsonl};
    match to {
        To::Table | To::Corpus(BiocJson | BiocXml | Brat | Jsonl) => Ok(()),
        To::Tsv | To::Corpus(_) => Err(errors::usage(
            format!("`--to {to}` cannot hold `--context`"),
            "use table, jsonl, bioc-xml, bioc-json or brat",
        )),
    }
}

/// Whether the attribute says what [`add`] finds, and not something else that the input says.
pub fn is_context(attribute: &Attribute) -> bool {
    [EXPERIENCER, NEGATION, TEMPORALITY].contains(&attribute.name.as_str())
}

/// Adds the attributes to every annotation; those of these names that the input has give way.
pub fn add(document: &mut AnnotatedDocument) {
    let contexts = Contexts::new(&document.document);
    for annotation in &mut document.annotations {
        let attributes = &mut annotation.attributes;
        attributes.retain(|one| !is_context(one));
        let found = contexts.of(&annotation.spans).attributes();
        attributes.extend(found.map(|(name, value)| Attribute { name: name.to_owned(), value: value.to_owned() }));
    }
}

/// Leaves out annotations of which [`add`] said one of `unwanted`, and what `beside` has at their places, where it has
/// anything. How many they were.
pub fn drop_said<T>(document: &mut AnnotatedDocument, unwanted: &[Said], beside: &mut Vec<T>) -> u64 {
    let is_unwanted =
        |one: &Attribute| is_context(one) && unwanted.iter().any(|said| said.value() == one.value.as_str());
    let kept: Vec<bool> =
        document.annotations.iter().map(|annotation| !annotation.attributes.iter().any(is_unwanted)).collect();
    retain(document, beside, &kept)
}
