//! The scope of a project: which predictions it keeps.

use canonym_core::corpus::Annotation;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::subset::Subset;
use canonym_core::text::Span;

use super::MarkState;

/// What a project annotates.
pub struct ScopeFilter<'a> {
    /// The terminology.
    pub kb: &'a KnowledgeBase,
    /// Its concepts in the scope.
    pub subset: &'a Subset,
    /// The semantic types in the scope; empty if only branches restrict it.
    pub types: &'a [String],
}

impl ScopeFilter<'_> {
    /// Whether a concept belongs to the scope.
    pub fn has(&self, concept: &str) -> bool {
        self.kb.find(concept).is_some_and(|concept| self.subset.has(concept))
    }

    /// Whether a mention belongs to the scope: by its concept, or by its type if it is unlinked.
    fn has_mention(&self, concept: Option<&str>, kind: &str) -> bool {
        match concept {
            Some(concept) => self.has(concept),
            None => self.types.iter().any(|known| known == kind),
        }
    }

    /// Whether a mark is an unreviewed prediction outside the scope.
    pub fn excludes(&self, mark: &MarkState) -> bool {
        mark.is_open() && !mark.is_unsure && !self.has_mention(mark.concept_id(), &mark.kind)
    }

    /// The predictions of a document in the scope, with their candidates in the scope. Of nested ones the longest stays.
    pub fn keep(&self, mut annotations: Vec<Annotation>) -> Vec<Annotation> {
        annotations.retain(|one| {
            let best = one.candidates.first().filter(|_| !one.nil);
            self.has_mention(best.map(|best| best.id.as_str()), &one.semantic_type)
        });
        for annotation in &mut annotations {
            annotation.candidates.retain(|candidate| self.has(&candidate.id));
        }
        let extent = |one: &Annotation| -> (u32, u32) {
            let start = one.spans.first().map_or(0, |span: &Span| span.start);
            (start, one.spans.last().map_or(start, |span| span.end))
        };
        annotations.sort_by_key(|one| (extent(one).0, std::cmp::Reverse(extent(one).1)));
        let mut end = 0;
        annotations.retain(|one| {
            let is_free = extent(one).1 > end;
            end = end.max(extent(one).1);
            is_free
        });
        annotations
    }
}
