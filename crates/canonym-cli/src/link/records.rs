//! Options of tables and health records.

use std::path::{Path, PathBuf};

use canonym_core::kb::KnowledgeBase;
use canonym_core::records::encode::Encoder;
use canonym_core::records::fhir::{FhirResources, ResourceTypes};
use canonym_core::records::format::ResultFormat;
use canonym_core::records::omop::{NlpDate, NoteNlp, system_label};
use canonym_core::records::omop_concepts::ConceptTable;

use crate::codes::CodeArguments;
use crate::output::counted;
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
    /// CONCEPT_RELATIONSHIP.csv of the OMOP vocabulary, to map codes to standard concepts.
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

    /// The encoder of documents in the format `to`; `model` is the name of the model.
    pub fn encoder(&self, to: ResultFormat, model: &str, kb: &KnowledgeBase) -> anyhow::Result<Encoder> {
        let translator = self.codes.translator(kb)?;
        let omop = match (to, &self.nlp_date) {
            (ResultFormat::OmopNoteNlp, Some(date)) => {
                let read = |path: &Path| ConceptTable::read(kb, path, self.omop_relationships.as_deref());
                let concepts = self.omop_concepts.as_deref().map(read).transpose()?;
                if let Some(concepts) = &concepts {
                    let n = counted(concepts.n_concepts() as u64, "code");
                    progress::say(&format!("the vocabulary has {n} of {}", kb.meta().name));
                }
                Some(NoteNlp { system: system_label(kb, model), date: NlpDate::parse(date)?, concepts })
            }
            _ => None,
        };
        let fhir = match to {
            ResultFormat::Fhir(layout) => {
                Some(FhirResources { types: ResourceTypes::parse(&self.fhir_types)?, layout })
            }
            _ => None,
        };
        Ok(Encoder { to, translator, omop, fhir })
    }
}
