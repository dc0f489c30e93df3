//! `--context`, which adds negation, time and experiencer as attributes of annotations, and `--drop-context`.

use canonym_core::corpus::format::CorpusFormat;
use canonym_core::corpus::{AnnotatedDocument, Attribute};
use canonym_core::text::context::{Contexts, EXPERIENCER, NEGATION, TEMPORALITY};

use crate::errors;
use crate::result_format::ResultFormat;
use canonym_neural::system::linked::retain;

/// Context of a mention.
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
    /// The corresponding attribute value.
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

/// Rejects formats that cannot hold attributes.
pub fn check_format(to: ResultFormat) -> anyhow::Result<()> {
    use CorpusFormat::{BiocJson, BiocXml, Brat, Jsonl};
    match to {
        ResultFormat::Table | ResultFormat::Corpus(BiocJson | BiocXml | Brat | Jsonl) => Ok(()),
        ResultFormat::Tsv | ResultFormat::Corpus(_) => Err(errors::usage(
            format!("`--to {to}` cannot hold `--context`"),
            "use table, jsonl, bioc-xml, bioc-json or brat",
        )),
    }
}

/// Whether the attribute is one that [`add`] sets.
pub fn is_context(attribute: &Attribute) -> bool {
    [EXPERIENCER, NEGATION, TEMPORALITY].contains(&attribute.name.as_str())
}

/// Sets the context attributes of every annotation, replacing those of the input.
pub fn add(document: &mut AnnotatedDocument) {
    let contexts = Contexts::new(&document.document);
    for annotation in &mut document.annotations {
        let attributes = &mut annotation.attributes;
        attributes.retain(|one| !is_context(one));
        let found = contexts.of(&annotation.spans).attributes();
        attributes.extend(found.map(|(name, value)| Attribute { name: name.to_owned(), value: value.to_owned() }));
    }
}

/// Removes annotations with one of the contexts `unwanted`, and the corresponding entries of `beside`, which may be
/// empty. Returns how many were removed.
pub fn drop_said<T>(document: &mut AnnotatedDocument, unwanted: &[Said], beside: &mut Vec<T>) -> u64 {
    let is_unwanted =
        |one: &Attribute| is_context(one) && unwanted.iter().any(|said| said.value() == one.value.as_str());
    let kept: Vec<bool> =
        document.annotations.iter().map(|annotation| !annotation.attributes.iter().any(is_unwanted)).collect();
    retain(document, beside, &kept)
}
