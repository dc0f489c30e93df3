//! Which concepts of a knowledge base a command may give: options that every command that links takes.

use std::sync::Arc;

use anyhow::Context;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::subset::{Subset, SubsetConfig};

use crate::output::thousands;
use crate::progress;

/// Filters of concepts.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Filters of concepts")]
pub struct FilterArguments {
    /// Give only concepts of these source vocabularies.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    only_sources: Vec<String>,
    /// Give only concepts with one of these semantic types, and unlinked mentions only of these types.
    #[arg(long, value_name = "T047,…", value_delimiter = ',')]
    only_types: Vec<String>,
    /// Give only these concepts and those below them.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    only_under: Vec<String>,
    /// Give no concept of these source vocabularies.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    not_sources: Vec<String>,
    /// Give no concept with one of these semantic types, and no unlinked mention of these types.
    #[arg(long, value_name = "T047,…", value_delimiter = ',')]
    not_types: Vec<String>,
    /// Give none of these concepts, and none below them.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    not_under: Vec<String>,
}

impl FilterArguments {
    /// Whether a filter was given.
    pub fn is_given(&self) -> bool {
        !self.config().is_all()
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

    /// The concepts that may be given; `None` where no filter was given.
    pub fn choose(&self, kb: &KnowledgeBase) -> anyhow::Result<Option<Arc<Subset>>> {
        let config = self.config();
        if config.is_all() {
            return Ok(None);
        }
        let subset = Subset::choose(kb, &config).context("the filters cannot be used")?;
        let (n_chosen, n_all) = (subset.n_concepts() as u64, kb.n_concepts() as u64);
        progress::say(&format!("{} of {} concepts pass the filters", thousands(n_chosen), thousands(n_all)));
        Ok(Some(Arc::new(subset)))
    }
}
