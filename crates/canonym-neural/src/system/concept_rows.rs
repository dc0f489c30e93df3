//! Which names of a knowledge base represent its concepts, and the wordpieces that the name encoder of a dual encoder reads for each.

use canonym_core::kb::{ConceptId, KnowledgeBase, NameId};
use rayon::prelude::*;

use crate::bundle::dual_encoder::ConceptNames;
use crate::models::dual_encoder::windows::Windower;

/// Maximum number of wordpieces per name, as in the published code.
pub const NAME_WORDPIECES: usize = 128;

/// The names that represent concepts, in the order of the rows of the embedding matrix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConceptRows {
    /// The concept of each row.
    pub concepts: Vec<ConceptId>,
    /// The name of each row.
    pub names: Vec<NameId>,
}

impl ConceptRows {
    /// Builds the rows of a knowledge base: one per concept, or one per name for [`ConceptNames::All`].
    pub fn of(kb: &KnowledgeBase, kind: ConceptNames) -> ConceptRows {
        let mut rows = ConceptRows::default();
        for concept in kb.concepts() {
            let n = if kind == ConceptNames::All { usize::MAX } else { 1 };
            if kind == ConceptNames::Described {
                // The first one of the longest.
                let length = |name: &NameId| kb.name(*name).chars().count();
                let longest =
                    kb.names(concept).reduce(|best, name| if length(&name) > length(&best) { name } else { best });
                rows.concepts.extend(longest.map(|_| concept));
                rows.names.extend(longest);
                continue;
            }
            for name in kb.names(concept).take(n) {
                rows.concepts.push(concept);
                rows.names.push(name);
            }
        }
        rows
    }

    /// `input_ids` of each row for the name encoder.
    pub fn texts(&self, kb: &KnowledgeBase, kind: ConceptNames, windower: &Windower) -> Vec<Vec<u32>> {
        let text = |(concept, name): (&ConceptId, &NameId)| match (kind, kb.definition(*concept)) {
            (ConceptNames::Definition, Some(definition)) => {
                windower.name(&format!("{}. {definition}", kb.name(*name)), NAME_WORDPIECES)
            }
            (ConceptNames::Described, definition) => windower.described(kb.name(*name), definition.unwrap_or_default()),
            (ConceptNames::Types, _) => {
                let types: Vec<&str> = kb.types(*concept).collect();
                let typed = if types.is_empty() { String::new() } else { format!(". {}", types.join(", ")) };
                windower.name(&format!("{}{typed}", kb.name(*name)), NAME_WORDPIECES)
            }
            _ => windower.name(kb.name(*name), NAME_WORDPIECES),
        };
        self.concepts.par_iter().zip(&self.names).map(text).collect()
    }
}
