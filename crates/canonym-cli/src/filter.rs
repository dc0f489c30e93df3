//! Concept filters: options shared by all commands that link.

use std::sync::Arc;

use anyhow::Context;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::subset::{Subset, SubsetConfig};

use crate::output::thousands;
use crate::progress;

/// Concept filters.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Concept filters")]
pub struct FilterArguments {
    /// Only concepts from these source vocabularies.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    only_sources: Vec<String>,
    /// Only concepts with one of these semantic types; other types are not reported as unlinked mentions either.
    #[arg(long, value_name = "T047,…", value_delimiter = ',')]
    only_types: Vec<String>,
    /// Only these concepts and their descendants.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    only_under: Vec<String>,
    /// No concepts from these source vocabularies.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    not_sources: Vec<String>,
    /// No concepts with any of these semantic types; they are not reported as unlinked mentions either.
    #[arg(long, value_name = "T047,…", value_delimiter = ',')]
    not_types: Vec<String>,
    /// None of these concepts and none of their descendants.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    not_under: Vec<String>,
}

impl FilterArguments {
    /// Whether any filter is set.
    pub fn is_given(&self) -> bool {
        !self.config().is_all()
    }

    /// The options that are set, with their values.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let config = self.config();
        let all = [
            ("--only-sources", config.only_sources),
            ("--only-types", config.only_types),
            ("--only-under", config.only_under),
            ("--not-sources", config.not_sources),
            ("--not-types", config.not_types),
            ("--not-under", config.not_under),
        ];
        all.into_iter().filter(|(_, list)| !list.is_empty()).map(|(name, list)| (name, list.join(","))).collect()
    }

    fn config(&self) -> SubsetConfig {
        let trimmed = |list: &[String]| -> Vec<String> {
            list.iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
        };
        SubsetConfig {
            only_sources: trimmed(&self.only_sources),
            only_types: trimmed(&self.only_types),
            only_under: trimmed(&self.only_under),
            not_sources: trimmed(&self.not_sources),
            not_types: trimmed(&self.not_types),
            not_under: trimmed(&self.not_under),
        }
    }

    /// The concepts that pass the filters; `None` if no filter is set.
    pub fn choose(&self, kb: &KnowledgeBase) -> anyhow::Result<Option<Arc<Subset>>> {
        let config = self.config();
        if config.is_all() {
            return Ok(None);
        }
        let subset = Subset::choose(kb, &config).context("cannot apply the concept filters")?;
        let (n_chosen, n_all) = (subset.n_concepts() as u64, kb.n_concepts() as u64);
        progress::say(&format!("{} of {} concepts match the filters", thousands(n_chosen), thousands(n_all)));
        Ok(Some(Arc::new(subset)))
    }
}
