//! `--context`: what the text says of a mention, as attributes of its annotation.

use canonym::corpus::format::CorpusFormat;
use canonym::corpus::{AnnotatedDocument, Attribute};
use canonym::text::context::{Contexts, EXPERIENCER, NEGATION, TEMPORALITY};
use rayon::prelude::*;

use crate::errors;

/// Refuses formats that have no place for attributes; a table, which is no format, has one.
pub fn check_format(format: Option<CorpusFormat>) -> anyhow::Result<()> {
    use CorpusFormat::{BiocJson, BiocXml, Brat, Jsonl};
    match format {
        None | Some(BiocJson | BiocXml | Brat | Jsonl) => Ok(()),
        Some(format) => Err(errors::usage(
            format!("`{format}` has no place for what `--context` finds"),
            "give `--to` table, jsonl, bioc-xml, bioc-json or brat",
        )),
    }
}

/// Adds the attributes to every annotation; those of these names that the input has give way.
pub fn add(documents: &mut [AnnotatedDocument]) {
    documents.par_iter_mut().for_each(|document| {
        let contexts = Contexts::new(&document.document);
        for annotation in &mut document.annotations {
            let attributes = &mut annotation.attributes;
            attributes.retain(|one| ![EXPERIENCER, NEGATION, TEMPORALITY].contains(&one.name.as_str()));
            let found = contexts.of(&annotation.spans).attributes();
            attributes.extend(found.map(|(name, value)| Attribute { name: name.to_owned(), value: value.to_owned() }));
        }
    });
}
