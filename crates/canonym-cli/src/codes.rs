//! `--to-system` and `--mappings`: codes of concepts in another code system.

use std::path::PathBuf;

use canonym_core::input::Input;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::import::Report;
use canonym_core::kb::translate::{PredicateMappings, Translator};

use crate::output::counted;
use crate::progress;

/// Options of codes in another code system.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct CodeArguments {
    /// Add the codes of each concept in another code system, such as ICD10CM or the URI of a system, by cross-references
    /// and mappings, with their predicate.
    #[arg(long, value_name = "SYSTEM")]
    pub to_system: Option<String>,
    /// SSSOM mappings (TSV) to follow for `--to-system`, in either direction.
    #[arg(long, value_name = "FILE.sssom.tsv", requires = "to_system")]
    pub mappings: Vec<PathBuf>,
}

impl CodeArguments {
    /// The translator that the options ask for.
    pub fn translator(&self, kb: &KnowledgeBase) -> anyhow::Result<Option<Translator>> {
        let Some(system) = &self.to_system else { return Ok(None) };
        let (mut mappings, mut report) = (PredicateMappings::default(), Report::default());
        for path in &self.mappings {
            mappings.read(&mut Input::open(path)?, &mut report)?;
        }
        for ((kind, reason), n) in &report.dropped {
            progress::say(&format!("skipped {}: {reason}", counted(*n, kind)));
        }
        Ok(Some(Translator::new(kb, system, mappings)?))
    }
}
