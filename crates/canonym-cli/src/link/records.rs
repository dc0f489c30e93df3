//! Tables and health records: options, and how a document is encoded.

use std::path::{Path, PathBuf};

use canonym_core::corpus::losses::Losses;
use canonym_core::corpus::{AnnotatedDocument, table};
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::translate::Translator;
use canonym_core::records::codes;
use canonym_core::records::fhir::{FhirResources, Layout, ResourceTypes};
use canonym_core::records::omop::{NlpDate, NoteNlp};
use canonym_core::records::omop_concepts::ConceptTable;

use crate::codes::CodeArguments;
use crate::output::counted;
use crate::result_format::ResultFormat;
use crate::sink::{Encoded, Records};
use crate::{errors, progress};

/// Options of tables and health records.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RecordArguments {
    #[command(flatten)]
    pub codes: CodeArguments,
    /// Date of the processing for `--to omop-note-nlp`: 2026-11-25, or 2026-11-25T14:30:00.
    #[arg(long, value_name = "DATE")]
    pub nlp_date: Option<String>,
    /// CONCEPT.csv of the OMOP vocabulary, for concept ids in `--to omop-note-nlp`; without it they are 0.
    #[arg(long, value_name = "CONCEPT.csv")]
    pub omop_concepts: Option<PathBuf>,
    /// CONCEPT_RELATIONSHIP.csv of the OMOP vocabulary, which leads from codes to standard concepts.
    #[arg(long, value_name = "FILE.csv", requires = "omop_concepts")]
    pub omop_relationships: Option<PathBuf>,
    /// Resources of semantic types for `--to fhir`: TYPE=condition, observation, medication or none; `*` is every type
    /// without a resource.
    #[arg(long, value_name = "TYPE=RESOURCE,…", value_delimiter = ',')]
    pub fhir_types: Vec<String>,
}

impl RecordArguments {
    /// Tables that are read.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.codes.mappings.iter().chain(&self.omop_concepts).chain(&self.omop_relationships)
    }

    /// Rejects options of another output format.
    pub fn check(&self, to: ResultFormat) -> anyhow::Result<()> {
        let is_omop = to == ResultFormat::OmopNoteNlp;
        let rows = [
            ("--nlp-date", self.nlp_date.is_some() && !is_omop, "omop-note-nlp"),
            ("--omop-concepts", self.omop_concepts.is_some() && !is_omop, "omop-note-nlp"),
            ("--fhir-types", !self.fhir_types.is_empty() && !matches!(to, ResultFormat::Fhir(_)), "fhir"),
        ];
        if let Some((option, _, format)) = rows.into_iter().find(|(_, is_wrong, _)| *is_wrong) {
            return Err(errors::usage(format!("`{option}` is for `--to {format}`"), "omit it, or change `--to`"));
        }
        if is_omop && self.nlp_date.is_none() {
            let message = "`--to omop-note-nlp` needs the date of the processing";
            return Err(errors::usage(message, "add `--nlp-date`, such as `--nlp-date 2026-11-25`"));
        }
        Ok(())
    }
}

/// What documents are encoded with beyond their format.
pub struct RecordWriter {
    translator: Option<Translator>,
    omop: Option<NoteNlp>,
    fhir: Option<FhirResources>,
}

impl RecordWriter {
    /// What the options ask for.
    pub fn open(
        arguments: &RecordArguments,
        to: ResultFormat,
        model: &str,
        kb: &KnowledgeBase,
    ) -> anyhow::Result<RecordWriter> {
        let translator = arguments.codes.translator(kb)?;
        let omop = match (to, &arguments.nlp_date) {
            (ResultFormat::OmopNoteNlp, Some(date)) => {
                let relationships = arguments.omop_relationships.as_deref();
                let read = |path: &Path| ConceptTable::read(kb, path, relationships);
                let concepts = arguments.omop_concepts.as_deref().map(read).transpose()?;
                if let Some(concepts) = &concepts {
                    let n = counted(concepts.n_concepts() as u64, "code");
                    progress::say(&format!("the vocabulary has {n} of {}", kb.meta().name));
                }
                let model = Path::new(model).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
                let version = Some(&kb.meta().version).filter(|version| !version.is_empty());
                let version = version.map(|version| format!(" {version}")).unwrap_or_default();
                let system =
                    format!("canonym {}, model {model}, {}{version}", env!("CARGO_PKG_VERSION"), kb.meta().name);
                Some(NoteNlp { system, date: NlpDate::parse(date)?, concepts })
            }
            _ => None,
        };
        let fhir = match to {
            ResultFormat::Fhir(layout) => Some(fhir(arguments, layout)?),
            _ => None,
        };
        Ok(RecordWriter { translator, omop, fhir })
    }

    /// Adds codes of another code system, if they are asked for.
    pub fn add_codes(&self, kb: &KnowledgeBase, document: &mut AnnotatedDocument) {
        if let Some(translator) = &self.translator {
            codes::add(kb, translator, document);
        }
    }

    /// Encodes a document in a format of tables and records.
    pub fn encode(&self, kb: &KnowledgeBase, document: AnnotatedDocument, to: ResultFormat) -> anyhow::Result<Encoded> {
        let of_records = |records, losses: Losses| Encoded { records: Some(records), losses, ..Encoded::default() };
        if let Some(omop) = &self.omop {
            let (records, losses) = omop.records(kb, &document)?;
            return Ok(of_records(Records::Numbered(records), losses));
        }
        if let Some(fhir) = &self.fhir {
            let mut bytes = Vec::new();
            let losses = fhir.write(kb, &document, &mut bytes);
            return Ok(Encoded { bytes, losses, ..Encoded::default() });
        }
        match to {
            ResultFormat::Csv => Ok(of_records(Records::OfDocument(table::csv_records(&document)), Losses::default())),
            _ => Ok(Encoded { document: Some(Box::new(document)), ..Encoded::default() }),
        }
    }
}

fn fhir(arguments: &RecordArguments, layout: Layout) -> anyhow::Result<FhirResources> {
    Ok(FhirResources { types: ResourceTypes::parse(&arguments.fhir_types)?, layout })
}
