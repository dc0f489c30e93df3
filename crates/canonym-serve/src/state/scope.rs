//! The concepts in the scopes of projects.

use std::sync::{Arc, PoisonError};

use canonym_core::kb::subset::{Subset, SubsetConfig};

use super::App;
use crate::error::ApiResult;
use crate::marks::Named;
use crate::wire::{NewScope, ProjectScope};

/// The maximum number of scopes kept in memory.
const MAX_SUBSETS: usize = 16;

impl App {
    /// The concepts of a scope; `None` for the whole terminology.
    pub fn subset_of(&self, scope: &ProjectScope) -> ApiResult<Option<Arc<Subset>>> {
        if scope.is_all() {
            return Ok(None);
        }
        let mut subsets = self.subsets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, subset)) = subsets.iter().find(|(known, _)| known == scope) {
            return Ok(Some(subset.clone()));
        }
        let config = SubsetConfig {
            only_types: scope.types.clone(),
            only_under: scope.branches.iter().map(|branch| branch.id.clone()).collect(),
            ..SubsetConfig::default()
        };
        let subset = Arc::new(Subset::choose(self.engine.kb(), &config)?);
        if subsets.len() >= MAX_SUBSETS {
            subsets.remove(0);
        }
        subsets.push((scope.clone(), subset.clone()));
        Ok(Some(subset))
    }

    /// The scope of a request with the names of its branches; fails if it names something unknown or no concept belongs to it.
    pub fn checked_scope(&self, new: &NewScope) -> ApiResult<ProjectScope> {
        let kb = self.engine.kb();
        let branch = |id: &String| match kb.find(id.trim()) {
            Some(found) => Named { id: kb.id(found).to_owned(), name: kb.preferred_name(found).to_owned() },
            None => Named { id: id.clone(), name: String::new() },
        };
        let scope = ProjectScope { types: new.types.clone(), branches: new.branches.iter().map(branch).collect() };
        self.subset_of(&scope)?;
        Ok(scope)
    }
}
