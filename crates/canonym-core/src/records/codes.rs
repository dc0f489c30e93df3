//! Adds the codes of linked concepts in another code system.

use crate::corpus::{AnnotatedDocument, CodeRecord};
use crate::kb::KnowledgeBase;
use crate::kb::translate::Translator;

/// Sets the codes of every linked mention of a document.
pub fn add(kb: &KnowledgeBase, translator: &Translator, document: &mut AnnotatedDocument) {
    for annotation in &mut document.annotations {
        let concept = annotation.concept_id().and_then(|id| kb.find(id));
        let codes = concept.map(|concept| translator.codes(kb, concept)).unwrap_or_default().into_iter();
        annotation.codes =
            codes.map(|code| CodeRecord { id: code.id, predicate: code.predicate.name().to_owned() }).collect();
    }
}
