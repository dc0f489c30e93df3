//! Mention-entity prior p(e | m), counted in annotated texts.
//!
//! Annotators use names that no terminology has, and an ambiguous name nearly always means the same concept in a corpus. The counts of the
//! training set are combined with the linker: p = (p_linker + count) / (1 + total).

use std::collections::{BTreeMap, HashMap};

use canonym_core::kb::subset::Subset;
use canonym_core::kb::{ConceptId, KnowledgeBase};
use canonym_core::link::Candidate;
use canonym_core::text::normalise::fold;

/// Pseudo-count of the linker's probability.
const PRIOR: f32 = 1.0;

/// Minimum fraction of counts whose concepts the knowledge base has; below it, the domain is taken to differ, and only names that were
/// linked to one of its full ids are used, such as those from an annotation project.
const MIN_KNOWN: f64 = 0.2;

/// Id of unlinked mentions.
const NONE: &str = "-";

/// Counts of concept ids by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MentionPrior {
    // Private: names are folded.
    of_name: BTreeMap<String, BTreeMap<String, u32>>,
}

impl MentionPrior {
    /// Counts one mention; `None` for an unlinked one.
    pub fn add(&mut self, name: &str, id: Option<&str>) {
        let folded = fold(name);
        if !folded.is_empty() {
            let ids = self.of_name.entry(folded).or_default();
            *ids.entry(id.unwrap_or(NONE).to_owned()).or_default() += 1;
        }
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.of_name.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.of_name.is_empty()
    }

    /// One line per name: the name and each id with its count, separated by tabs.
    pub fn to_lines(&self) -> String {
        let mut lines = String::new();
        for (name, ids) in &self.of_name {
            lines += name;
            ids.iter().for_each(|(id, n)| lines += &format!("\t{id} {n}"));
            lines.push('\n');
        }
        lines
    }

    /// Parses the lines of [`MentionPrior::to_lines`]; `None` if a line is malformed.
    pub fn from_lines(lines: &str) -> Option<MentionPrior> {
        let mut prior = MentionPrior::default();
        for line in lines.lines() {
            let mut fields = line.split('\t');
            let ids = prior.of_name.entry(fields.next()?.to_owned()).or_default();
            for field in fields {
                let (id, n) = field.rsplit_once(' ')?;
                ids.insert(id.to_owned(), n.parse().ok()?);
            }
        }
        Some(prior)
    }

    /// Resolves the ids in a knowledge base, with their prefix, as in `MESH:D003924`, or without.
    pub fn on(&self, kb: &KnowledgeBase) -> KbMentionPrior {
        let concept = |id: &str| kb.find(id).or_else(|| kb.find(id.split_once(':').map_or(id, |(_, bare)| bare)));
        let mut of_name = HashMap::with_capacity(self.of_name.len());
        let known = self.of_name.values().flatten().map(|(id, n)| (n, concept(id).is_some()));
        let (n_all, n_known) = known.fold((0, 0), |(all, known), (n, is)| (all + n, known + n * u32::from(is)));
        let is_same_domain = f64::from(n_known) >= MIN_KNOWN * f64::from(n_all);
        for (name, ids) in &self.of_name {
            if !is_same_domain && ids.keys().all(|id| kb.find(id).is_none()) {
                continue;
            }
            let uses: Vec<(Option<ConceptId>, u32)> = ids.iter().map(|(id, n)| (concept(id), *n)).collect();
            // Names of the knowledge base are skipped if it lacks all of the counted concepts.
            if uses.iter().any(|(concept, _)| concept.is_some()) || kb.find_form(name).is_none() {
                of_name.insert(name.clone().into_boxed_str(), uses);
            }
        }
        KbMentionPrior { of_name }
    }
}

/// Counts of the concepts of one knowledge base by name.
#[derive(Debug, Clone, Default)]
pub struct KbMentionPrior {
    of_name: HashMap<Box<str>, Vec<(Option<ConceptId>, u32)>>,
}

impl KbMentionPrior {
    /// Restricts the prior to `subset`. Counts of other concepts stay in the total, like those of unlinked mentions.
    #[must_use]
    pub fn within(mut self, subset: Option<&Subset>) -> KbMentionPrior {
        if let Some(subset) = subset {
            for (concept, _) in self.of_name.values_mut().flatten() {
                *concept = concept.filter(|concept| subset.has(*concept));
            }
        }
        self
    }

    /// Whether there are no counts.
    pub fn is_empty(&self) -> bool {
        self.of_name.is_empty()
    }

    /// Combines candidates, best first, with the counts of the name, and adds candidates that occur only in the counts.
    pub fn weigh(&self, name: &str, candidates: &mut Vec<Candidate>) {
        self.weigh_against(PRIOR, name, candidates);
    }

    /// As [`KbMentionPrior::weigh`], with `prior` as the pseudo-count of the linker.
    pub fn weigh_against(&self, prior: f32, name: &str, candidates: &mut Vec<Candidate>) {
        let Some(uses) = self.of_name.get(fold(name).as_str()) else { return };
        let total: u32 = uses.iter().map(|(_, n)| n).sum();
        let weight = 1.0 / (prior + total as f32);
        candidates.iter_mut().for_each(|candidate| candidate.p_link *= prior * weight);
        for (concept, n) in uses.iter().filter_map(|(concept, n)| Some(((*concept)?, *n as f32))) {
            match candidates.iter_mut().find(|candidate| candidate.concept == concept) {
                Some(known) => known.p_link += n * weight,
                None => candidates.push(Candidate { concept, name: None, p_link: n * weight }),
            }
        }
        candidates.sort_by(|left, right| right.p_link.total_cmp(&left.p_link));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use canonym_core::kb::KnowledgeBaseBuilder;
    use canonym_core::kb::Scope;
    use canonym_core::kb::format::Meta;
    use canonym_core::kb::record::{ConceptRecord, NameRecord};

    fn prior() -> MentionPrior {
        let mut prior = MentionPrior::default();
        (0..3).for_each(|_| prior.add("Diabetes", Some("MESH:D2")));
        prior.add("diabetes", None);
        prior.add("CS", Some("MESH:C1"));
        prior
    }

    #[test]
    fn they_come_back_from_their_lines() {
        let lines = prior().to_lines();
        assert_eq!(lines, "cs\tMESH:C1 1\ndiabetes\t- 1\tMESH:D2 3\n");
        assert_eq!(MentionPrior::from_lines(&lines), Some(prior()));
        assert_eq!(MentionPrior::from_lines("a\tb"), None);
    }

    #[test]
    fn counts_join_what_the_linker_says() {
        let mut builder = KnowledgeBaseBuilder::new();
        for (id, name) in [("D1", "diabetes"), ("D2", "diabetes mellitus")] {
            let names = vec![NameRecord { text: name.to_owned(), scope: Scope::Preferred }];
            builder.add(ConceptRecord { id: id.to_owned(), names, ..ConceptRecord::default() }).unwrap();
        }
        let kb = KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap();
        let of_kb = prior().on(&kb);
        let (first, second) = (kb.find("D1").unwrap(), kb.find("D2").unwrap());
        let candidate = |concept, p_link| Candidate { concept, name: None, p_link };
        let mut candidates = vec![candidate(first, 0.9)];
        of_kb.weigh("DIABETES", &mut candidates);
        assert_eq!(candidates, [candidate(second, 0.6), candidate(first, 0.9 / 5.0)]);
        // Counts of concepts outside the subset stay in the total.
        let subset = Subset::of(&kb, |concept| concept == first);
        let mut of_subset = vec![candidate(first, 0.9)];
        of_kb.clone().within(Some(&subset)).weigh("diabetes", &mut of_subset);
        assert_eq!(of_subset, [candidate(first, 0.9 / 5.0)]);
        // Another domain: only names with a concept that it has.
        let mut other = prior();
        (0..90).for_each(|row| other.add(&format!("name {row}"), Some(&format!("MESH:X{row}"))));
        other.add("sugar sickness", Some("D2"));
        let of_other = other.on(&kb);
        let mut taught = Vec::new();
        of_other.weigh("sugar sickness", &mut taught);
        assert_eq!(taught, [candidate(second, 0.5)]);
        let mut unknown = vec![candidate(first, 0.5)];
        of_other.weigh("name 7", &mut unknown);
        of_other.weigh("diabetes", &mut unknown);
        assert_eq!(unknown, [candidate(first, 0.5)]);
        let mut nothing_here = vec![candidate(first, 0.5)];
        of_kb.weigh("CS", &mut nothing_here);
        assert_eq!(nothing_here, [candidate(first, 0.25)]);
    }
}
