//! The codes of concepts in another code system, by ids, cross-references and SSSOM mappings.
//!
//! A concept has a code if one of its own or alternative ids is of the system, if it has a cross-reference to it, or if a
//! mapping leads there from one of its ids or from a cross-reference of the same meaning. Mappings are followed one step.

use std::collections::HashMap;

use super::import::Report;
use super::import::sssom;
use super::join::caseless;
use super::{ConceptId, KnowledgeBase, Predicate, XrefRecord, code_system};
use crate::input::Input;
use crate::{Error, Result};

/// Mappings between ids of different code systems, with predicates.
#[derive(Debug, Clone, Default)]
pub struct PredicateMappings {
    of: HashMap<String, Vec<XrefRecord>>,
}

impl PredicateMappings {
    /// Adds the mappings of an SSSOM file, in both directions; those without a known predicate, and negated ones, are
    /// counted.
    pub fn read(&mut self, input: &mut Input, report: &mut Report) -> Result<()> {
        sssom::each(input, report, &mut |row| {
            let Some(predicate) = Predicate::from_name(row.predicate) else { return Ok(Some("another predicate")) };
            let (subject, object) = (row.subject_id(), row.object_id());
            if subject == object {
                return Ok(Some("maps an id to itself"));
            }
            self.add(&subject, &object, predicate);
            Ok(None)
        })
    }

    /// Adds `subject predicate object` and its inverse.
    pub fn add(&mut self, subject: &str, object: &str, predicate: Predicate) {
        let mut push = |from: &str, to: &str, predicate: Predicate| {
            let record = XrefRecord { id: code_system::canonical_id(to).into_owned(), predicate };
            self.of.entry(key(from)).or_default().push(record);
        };
        push(subject, object, predicate);
        push(object, subject, predicate.inverse());
    }

    /// The mappings of an id.
    fn of(&self, id: &str) -> &[XrefRecord] {
        self.of.get(&key(id)).map(Vec::as_slice).unwrap_or_default()
    }
}

/// An id for lookup: canonical prefix, in lower case.
fn key(id: &str) -> String {
    caseless(&code_system::canonical_id(id))
}

/// Translates concepts of a knowledge base into one code system.
#[derive(Debug, Clone)]
pub struct Translator {
    /// The canonical prefix of the system, in lower case.
    prefix: String,
    mappings: PredicateMappings,
}

impl Translator {
    /// A translator into `system`, a prefix such as `ICD10CM` or the URI of a code system.
    ///
    /// # Errors
    /// [`Error::Usage`] if neither the knowledge base nor the mappings have any code of the system.
    pub fn new(kb: &KnowledgeBase, system: &str, mappings: PredicateMappings) -> Result<Translator> {
        let system = system.trim().trim_end_matches(':');
        let of_uri = code_system::prefixes_of(kb, system).into_iter().next();
        let prefix = code_system::canonical_prefix(of_uri.as_deref().unwrap_or(system)).to_ascii_lowercase();
        let translator = Translator { prefix, mappings };
        let mut available = code_system::prefixes(kb);
        available.extend(code_system::xref_prefixes(kb));
        available.extend(translator.mappings.of.keys().filter_map(|id| Some(id.split_once(':')?.0.to_owned())));
        if available.iter().any(|prefix| translator.is_prefix(prefix)) {
            return Ok(translator);
        }
        let mut known: Vec<&str> = available.iter().map(|prefix| code_system::canonical_prefix(prefix)).collect();
        known.sort_unstable();
        known.dedup();
        known.retain(|prefix| !prefix.is_empty());
        let shown: String = system.chars().take(80).collect();
        let message = format!("{} has no codes of `{shown}`", kb.meta().name);
        let n_more = known.len().saturating_sub(20);
        known.truncate(20);
        let more = if n_more > 0 { format!(", and {n_more} more") } else { String::new() };
        let hint = match known.is_empty() {
            true => "name an SSSOM file with `--mappings`, or rebuild the knowledge base to keep its cross-references"
                .to_owned(),
            false => format!("it has {}{more}; name an SSSOM file with `--mappings` for others", known.join(", ")),
        };
        Err(Error::usage(message, hint))
    }

    fn is_prefix(&self, prefix: &str) -> bool {
        code_system::canonical_prefix(prefix).eq_ignore_ascii_case(&self.prefix)
    }

    fn is_code(&self, id: &str) -> bool {
        id.split_once(':').is_some_and(|(prefix, _)| self.is_prefix(prefix))
    }

    /// The codes of a concept with canonical prefixes, the strongest relation first, without duplicates.
    pub fn codes(&self, kb: &KnowledgeBase, concept: ConceptId) -> Vec<XrefRecord> {
        let own = kb.id(concept).split('|').chain(kb.alternative_ids(concept));
        let mut same: Vec<&str> = own.collect();
        let mut found: Vec<XrefRecord> = Vec::new();
        let mut push = |id: &str, predicate: Predicate| {
            if self.is_code(id) {
                found.push(XrefRecord { id: code_system::canonical_id(id).into_owned(), predicate });
            }
        };
        same.iter().for_each(|id| push(id, Predicate::Exact));
        for xref in kb.xrefs(concept) {
            push(xref.id, xref.predicate);
            if xref.predicate == Predicate::Exact {
                same.push(xref.id);
            }
        }
        for id in same {
            self.mappings.of(id).iter().for_each(|mapping| push(&mapping.id, mapping.predicate));
        }
        best_first(found)
    }
}

/// Sorts by predicate and id, and keeps the strongest predicate of each id.
fn best_first(mut found: Vec<XrefRecord>) -> Vec<XrefRecord> {
    found.sort_by(|one, other| (one.predicate, &one.id).cmp(&(other.predicate, &other.id)));
    let mut codes: Vec<XrefRecord> = Vec::with_capacity(found.len());
    for code in found {
        if !codes.iter().any(|known| known.id == code.id) {
            codes.push(code);
        }
    }
    codes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kb::format::Meta;
    use crate::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};

    fn kb() -> KnowledgeBase {
        let mut builder = KnowledgeBaseBuilder::new();
        let xref = |id: &str, predicate| XrefRecord { id: id.to_owned(), predicate };
        builder
            .add(ConceptRecord {
                id: "X:1|MESH:D1".to_owned(),
                names: vec![NameRecord { text: "Gout".to_owned(), scope: Scope::Preferred }],
                alternative_ids: vec!["OMIM:100".to_owned()],
                xrefs: vec![
                    xref("SNOMEDCT_US_2020_03_01:7", Predicate::Xref),
                    xref("SCTID:7", Predicate::Exact),
                    xref("ICD10CM:M10", Predicate::Broad),
                    xref("UMLS_CUI:C1", Predicate::Exact),
                ],
                ..ConceptRecord::default()
            })
            .unwrap();
        KnowledgeBase::from_vec(builder.to_bytes(Meta::default()).unwrap(), "test").unwrap()
    }

    fn codes(system: &str, mappings: &[(&str, &str, Predicate)]) -> Vec<String> {
        let kb = kb();
        let mut all = PredicateMappings::default();
        mappings.iter().for_each(|(subject, object, predicate)| all.add(subject, object, *predicate));
        let translator = Translator::new(&kb, system, all).unwrap();
        let codes = translator.codes(&kb, ConceptId(0)).into_iter();
        codes.map(|code| format!("{} {}", code.id, code.predicate.name())).collect()
    }

    #[test]
    fn ids_and_cross_references_give_codes() {
        assert_eq!(codes("snomedct", &[]), ["SNOMEDCT:7 skos:exactMatch"]);
        assert_eq!(codes("http://snomed.info/sct", &[]), ["SNOMEDCT:7 skos:exactMatch"]);
        assert_eq!(codes("ICD10CM", &[]), ["ICD10CM:M10 skos:broadMatch"]);
        assert_eq!(codes("MSH", &[]), ["MESH:D1 skos:exactMatch"]);
        assert_eq!(codes("OMIM", &[]), ["OMIM:100 skos:exactMatch"]);
    }

    #[test]
    fn mappings_are_followed_in_both_directions_and_from_exact_references() {
        let mappings = [
            ("icd10cm:M10.9", "umls:C1", Predicate::Broad),
            ("X:1", "ICD10CM:M10", Predicate::Exact),
            ("SNOMEDCT:8", "ICD10CM:M11", Predicate::Exact),
        ];
        assert_eq!(codes("ICD10CM", &mappings), ["ICD10CM:M10 skos:exactMatch", "ICD10CM:M10.9 skos:narrowMatch"]);
    }

    #[test]
    fn a_system_without_codes_is_refused() {
        let error = Translator::new(&kb(), "LOINC", PredicateMappings::default()).unwrap_err();
        assert_eq!(error.to_string(), " has no codes of `LOINC`");
        assert!(error.hint().unwrap().starts_with("it has ICD10CM, SNOMEDCT, UMLS, X;"), "{:?}", error.hint());
    }
}
