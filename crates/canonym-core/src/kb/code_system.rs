//! Code systems: canonical URI and release of the ids of a knowledge base, by their prefixes.
//!
//! Prefixes are those of sources (`SNOMEDCT_US_2023_03_01`, `MSH`, `UMLS_CUI`); each known system has one canonical
//! prefix. URIs are those that FHIR and HL7 name; other systems are `urn:canonym:PREFIX`, unless the knowledge base
//! records a URI.

use std::borrow::Cow;

use super::{ConceptId, KnowledgeBase};

/// A code system with a registered URI.
#[derive(Debug)]
pub struct CodeSystem {
    /// The canonical prefix, then others that mean the same.
    pub prefixes: &'static [&'static str],
    /// The URI.
    pub uri: &'static str,
    /// Whether codes are written with the prefix, as `HP:0001250`.
    pub with_prefix: bool,
    /// The vocabulary of the OMOP common data model, if it has one.
    pub omop: &'static str,
}

const fn system(prefixes: &'static [&'static str], uri: &'static str, omop: &'static str) -> CodeSystem {
    CodeSystem { prefixes, uri, with_prefix: false, omop }
}

const fn ontology(prefixes: &'static [&'static str], uri: &'static str) -> CodeSystem {
    CodeSystem { prefixes, uri, with_prefix: true, omop: "" }
}

/// The known systems.
pub const KNOWN: [CodeSystem; 22] = [
    system(&["SNOMEDCT", "SNOMEDCT_US", "SCTID", "SNOMED", "SCT", "SNOMEDCT_CORE"], "http://snomed.info/sct", "SNOMED"),
    system(&["RXNORM", "RXCUI"], "http://www.nlm.nih.gov/research/umls/rxnorm", "RxNorm"),
    system(&["LOINC", "LNC"], "http://loinc.org", "LOINC"),
    system(&["UMLS", "UMLS_CUI"], "http://terminology.hl7.org/CodeSystem/umls", ""),
    system(&["MESH", "MSH"], "https://www.nlm.nih.gov/mesh", "MeSH"),
    system(&["ICD10CM", "ICD-10-CM"], "http://hl7.org/fhir/sid/icd-10-cm", "ICD10CM"),
    system(&["ICD10", "ICD-10", "ICD10WHO"], "http://hl7.org/fhir/sid/icd-10", "ICD10"),
    system(&["ICD9CM", "ICD-9-CM", "ICD9", "ICD-9"], "http://hl7.org/fhir/sid/icd-9-cm", "ICD9CM"),
    system(&["ATC"], "http://www.whocc.no/atc", "ATC"),
    system(&["NCIT", "NCI"], "http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl", ""),
    system(&["OMIM", "MIM"], "http://www.omim.org", ""),
    system(&["UNII"], "http://fdasis.nlm.nih.gov", ""),
    system(&["MEDDRA", "MDR", "MEDRA"], "https://www.meddra.org", "MedDRA"),
    system(&["Orphanet", "ORPHA", "ORDO"], "http://www.orpha.net", ""),
    ontology(&["HGNC"], "http://www.genenames.org"),
    ontology(&["HP", "HPO"], "http://human-phenotype-ontology.org"),
    ontology(&["MONDO"], "http://purl.obolibrary.org/obo/mondo.owl"),
    ontology(&["DOID"], "http://purl.obolibrary.org/obo/doid.owl"),
    ontology(&["GO"], "http://purl.obolibrary.org/obo/go.owl"),
    ontology(&["CHEBI"], "http://purl.obolibrary.org/obo/chebi.owl"),
    ontology(&["UBERON"], "http://purl.obolibrary.org/obo/uberon.owl"),
    ontology(&["CL"], "http://purl.obolibrary.org/obo/cl.owl"),
];

/// Ontologies whose IRIs are OBO PURLs.
const OBO: [&str; 8] = ["HP", "MONDO", "DOID", "GO", "CHEBI", "UBERON", "CL", "SYMP"];

/// The start of the URI of other prefixes.
const OTHER: &str = "urn:canonym:";

/// A code with its system, as in FHIR.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coding {
    /// The URI of the code system.
    pub system: String,
    /// Its release; empty if unknown.
    pub version: String,
    /// The code.
    pub code: String,
}

/// The known system of a prefix, in any case and with or without a release: `SNOMEDCT_US_2023_03_01`.
pub fn known(prefix: &str) -> Option<&'static CodeSystem> {
    let prefix = without_release(prefix);
    KNOWN.iter().find(|system| system.prefixes.iter().any(|other| other.eq_ignore_ascii_case(prefix)))
}

/// The canonical prefix, such as `SNOMEDCT`; that of the source if the system is not known.
pub fn canonical_prefix(prefix: &str) -> &str {
    known(prefix).map_or_else(|| without_release(prefix), |system| system.prefixes[0])
}

/// An id with its canonical prefix: `MSH:D003924` becomes `MESH:D003924`.
pub fn canonical_id(id: &str) -> Cow<'_, str> {
    match id.split_once(':') {
        Some((prefix, code)) if canonical_prefix(prefix) != prefix => {
            Cow::Owned(format!("{}:{code}", canonical_prefix(prefix)))
        }
        _ => Cow::Borrowed(id),
    }
}

/// A prefix without the digits of a release at its end: `ICD9CM_2005`, `SNOMEDCT_US_2018_03_01`.
fn without_release(prefix: &str) -> &str {
    let mut stem = prefix;
    while let Some((start, end)) = stem.rsplit_once('_') {
        let is_release =
            !start.is_empty() && matches!(end.len(), 2 | 4) && end.bytes().all(|byte| byte.is_ascii_digit());
        if !is_release {
            break;
        }
        stem = start;
    }
    stem
}

/// The URI of a prefix; that of ids without one ends with the name of the knowledge base.
pub fn uri(kb: &KnowledgeBase, prefix: &str) -> String {
    let own = kb.meta().code_systems.iter().find(|own| own.prefix == prefix && !own.uri.is_empty());
    match (own, known(prefix)) {
        (Some(own), _) => own.uri.clone(),
        (None, Some(known)) => known.uri.to_owned(),
        (None, None) if prefix.is_empty() => format!("{OTHER}{}", encoded(&kb.meta().name)),
        (None, None) => format!("{OTHER}{}", encoded(prefix)),
    }
}

/// Whether a URI was made up for a prefix without a registered one.
pub fn is_made_up(uri: &str) -> bool {
    uri.starts_with(OTHER)
}

/// The release of the code system of a prefix; empty if unknown.
pub fn version<'a>(kb: &'a KnowledgeBase, prefix: &str) -> &'a str {
    let meta = kb.meta();
    match meta.code_systems.iter().find(|own| own.prefix == prefix) {
        Some(own) => &own.version,
        // Files of format 1 know one release for all ids.
        None if kb.container().format() == 1 => &meta.version,
        None => "",
    }
}

/// The start of the IRIs of concepts with a prefix, such as `http://purl.obolibrary.org/obo/HP_`.
pub fn iri_start(kb: &KnowledgeBase, prefix: &str) -> String {
    let system = uri(kb, prefix);
    match canonical_prefix(prefix) {
        known if OBO.contains(&known) => format!("http://purl.obolibrary.org/obo/{known}_"),
        "MESH" => "http://id.nlm.nih.gov/mesh/".to_owned(),
        "SNOMEDCT" => "http://snomed.info/id/".to_owned(),
        _ if system.starts_with("urn:") => format!("{system}:"),
        _ => format!("{}/", system.trim_end_matches('/')),
    }
}

/// The IRI of an id; of several joined by `|`, that of the first.
pub fn iri(kb: &KnowledgeBase, id: &str) -> String {
    let id = id.split('|').next().unwrap_or_default();
    let (prefix, code) = id.split_once(':').unwrap_or(("", id));
    iri_start(kb, prefix) + &encoded(code)
}

/// A URI has no blanks and nothing outside ASCII.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The coding of an id, which may be one of another system; of several ids joined by `|`, the first.
pub fn coding_of_id(kb: &KnowledgeBase, id: &str) -> Coding {
    let id = id.split('|').next().unwrap_or_default();
    let (prefix, code) = id.split_once(':').unwrap_or(("", id));
    let code = match known(prefix) {
        Some(known) if known.with_prefix => format!("{}:{code}", known.prefixes[0]),
        _ => code.to_owned(),
    };
    Coding { system: uri(kb, prefix), version: version(kb, prefix).to_owned(), code }
}

/// The coding of a concept.
pub fn coding(kb: &KnowledgeBase, concept: ConceptId) -> Coding {
    coding_of_id(kb, kb.id(concept))
}

/// The prefixes of all ids, in order. Ids are sorted, so each is found by a search.
pub fn prefixes(kb: &KnowledgeBase) -> Vec<String> {
    distinct_prefixes(kb.n_concepts(), |row| kb.id(ConceptId(row as u32)))
}

/// The prefixes of all cross-references, in order.
pub fn xref_prefixes(kb: &KnowledgeBase) -> Vec<String> {
    distinct_prefixes(kb.n_xrefs(), |row| kb.xref_at(row).0.id)
}

/// The distinct prefixes of sorted ids.
fn distinct_prefixes<'a>(n: usize, id: impl Fn(usize) -> &'a str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let prefix_at = |row: usize| id(row).split_once(':').map_or("", |(prefix, _)| prefix);
    let mut at = 0;
    while at < n {
        let prefix = prefix_at(at);
        let (mut low, mut high) = (at + 1, n);
        while low < high {
            let middle = low + (high - low) / 2;
            if prefix_at(middle) == prefix { low = middle + 1 } else { high = middle }
        }
        if !found.iter().any(|known| known == prefix) {
            found.push(prefix.to_owned());
        }
        at = low;
    }
    found
}

/// Whether the knowledge base has codes of the system.
pub fn has(kb: &KnowledgeBase, system: &str) -> bool {
    prefixes(kb).iter().any(|prefix| uri(kb, prefix) == system)
}

/// The prefixes that ids or cross-references of a system can have.
pub fn prefixes_of(kb: &KnowledgeBase, system: &str) -> Vec<String> {
    let known = KNOWN.iter().filter(|known| known.uri == system).flat_map(|known| known.prefixes);
    let mut all: Vec<String> = known.map(|prefix| (*prefix).to_owned()).collect();
    for prefix in prefixes(kb).into_iter().chain(xref_prefixes(kb)) {
        if uri(kb, &prefix) == system && !all.contains(&prefix) {
            all.push(prefix);
        }
    }
    all
}

/// The concept with a code of a system, by its id or an alternative id.
pub fn find(kb: &KnowledgeBase, system: &str, code: &str) -> Option<ConceptId> {
    prefixes_of(kb, system).into_iter().find_map(|prefix| match prefix.is_empty() {
        true => kb.find(code).filter(|concept| coding(kb, *concept).code == code),
        false if code.starts_with(&format!("{prefix}:")) => kb.find(code),
        false => kb.find(&format!("{prefix}:{code}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_releases_are_those_of_their_system() {
        let cases = [
            ("SNOMEDCT_US_2018_03_01", "SNOMEDCT"),
            ("ICD9CM_2005", "ICD9CM"),
            ("umls_cui", "UMLS"),
            ("MeSH", "MESH"),
            ("NCI", "NCIT"),
            ("KEGG_2020", "KEGG"),
            ("CSP2005", "CSP2005"),
            ("_2020", "_2020"),
            ("", ""),
        ];
        for (prefix, expected) in cases {
            assert_eq!(canonical_prefix(prefix), expected);
        }
        assert_eq!(canonical_id("MSH:D003924"), "MESH:D003924");
        assert_eq!(canonical_id("no prefix"), "no prefix");
    }

    #[test]
    fn canonical_prefixes_are_unambiguous() {
        let mut all: Vec<String> =
            KNOWN.iter().flat_map(|known| known.prefixes).map(|prefix| prefix.to_ascii_lowercase()).collect();
        let n = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), n);
    }
}
