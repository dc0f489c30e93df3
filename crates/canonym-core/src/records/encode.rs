//! Encodes linked documents in a [`ResultFormat`].

use super::explanations;
use super::fhir::FhirResources;
use super::format::ResultFormat;
use super::omop::NoteNlp;
use super::{codes, rows};
use crate::Result;
use crate::corpus::conll::Scheme;
use crate::corpus::format::{CorpusFormat, encode_with, start};
use crate::corpus::losses::{Losses, losses};
use crate::corpus::{AnnotatedDocument, jsonl, table};
use crate::error::Context;
use crate::kb::KnowledgeBase;
use crate::kb::translate::Translator;
use crate::link::explain::Explanation;

/// One encoded document.
#[derive(Debug, Default)]
pub struct Encoded {
    /// The document, or its annotations if they are in a separate file.
    pub bytes: Vec<u8>,
    /// Bytes that precede it unless it is the first document.
    pub start: Vec<u8>,
    /// Id and text, if the text is in a separate file.
    pub text: Option<(String, String)>,
    /// Records that get a number before them, in place of bytes.
    pub records: Option<Records>,
    /// The document, if the output encodes it.
    pub document: Option<Box<AnnotatedDocument>>,
    /// Information that the format cannot hold.
    pub losses: Losses,
}

/// Records of a document, without their number and the comma behind it.
#[derive(Debug)]
pub enum Records {
    /// Each has the number of its document, from 0.
    OfDocument(Vec<String>),
    /// Each has a number of its own, from 1.
    Numbered(Vec<String>),
}

impl Encoded {
    /// Encodes a document.
    ///
    /// # Errors
    /// If the format cannot represent the document.
    pub fn new(document: &AnnotatedDocument, format: CorpusFormat, scheme: Scheme) -> Result<Encoded> {
        let mut bytes = Vec::new();
        encode_with(document, format, scheme, &mut bytes)?;
        let texts = || (document.document.id.clone(), document.document.text.clone());
        let text = (format == CorpusFormat::Brat).then(texts);
        let losses = losses(document, format);
        Ok(Encoded { start: start(document, format, &bytes), bytes, text, losses, ..Encoded::default() })
    }
}

/// Encodes documents in one format.
#[derive(Debug)]
pub struct Encoder {
    /// The format.
    pub to: ResultFormat,
    /// Adds codes of another code system.
    pub translator: Option<Translator>,
    /// What rows of NOTE_NLP are made with, for [`ResultFormat::OmopNoteNlp`].
    pub omop: Option<NoteNlp>,
    /// What resources of FHIR are made with, for [`ResultFormat::Fhir`].
    pub fhir: Option<FhirResources>,
}

impl Encoder {
    /// Encodes a document that is linked to `kb`.
    ///
    /// # Errors
    /// If the format cannot represent the document.
    pub fn encode(&self, kb: &KnowledgeBase, mut document: AnnotatedDocument) -> Result<Encoded> {
        self.add_codes(kb, &mut document);
        let of_records = |records, losses: Losses| Encoded { records: Some(records), losses, ..Encoded::default() };
        if let Some(omop) = &self.omop {
            let (records, losses) = omop.records(kb, &document)?;
            return Ok(of_records(Records::Numbered(records), losses));
        }
        let mut bytes = Vec::new();
        if let Some(fhir) = &self.fhir {
            let losses = fhir.write(kb, &document, &mut bytes);
            return Ok(Encoded { bytes, losses, ..Encoded::default() });
        }
        match self.to {
            ResultFormat::Corpus(format) => return Encoded::new(&document, format, Scheme::default()),
            ResultFormat::Table => rows::table(&mut bytes, &document).context("cannot encode the document")?,
            ResultFormat::Tsv => rows::tsv(&mut bytes, &document).context("cannot encode the document")?,
            ResultFormat::Csv => {
                return Ok(of_records(Records::OfDocument(table::csv_records(&document)), Losses::default()));
            }
            _ => return Ok(Encoded { document: Some(Box::new(document)), ..Encoded::default() }),
        }
        Ok(Encoded { bytes, ..Encoded::default() })
    }

    /// Like [`Encoder::encode`], with explanations in a field of each annotation, or below the table.
    ///
    /// # Errors
    /// If the document cannot be encoded.
    pub fn encode_explained(
        &self,
        kb: &KnowledgeBase,
        mut document: AnnotatedDocument,
        explanations: &[Explanation],
    ) -> Result<Encoded> {
        self.add_codes(kb, &mut document);
        let mut bytes = Vec::new();
        match self.to {
            ResultFormat::Corpus(_) => jsonl::write_explained(&document, explanations, &mut bytes)?,
            _ => rows::table(&mut bytes, &document)
                .and_then(|()| explanations::write(&mut bytes, &document, explanations))
                .context("cannot encode the document")?,
        }
        Ok(Encoded { bytes, ..Encoded::default() })
    }

    fn add_codes(&self, kb: &KnowledgeBase, document: &mut AnnotatedDocument) {
        if let Some(translator) = &self.translator {
            codes::add(kb, translator, document);
        }
    }
}
