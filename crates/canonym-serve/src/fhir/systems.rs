//! Code systems: the URIs that FHIR has for the prefixes of IDs.

use canonym_core::kb::{ConceptId, KnowledgeBase};

/// A code system that FHIR or its terminology service names.
struct Known {
    prefixes: &'static [&'static str],
    uri: &'static str,
    /// Whether codes are written with the prefix, as `HP:0001250`.
    with_prefix: bool,
}

const fn known(prefixes: &'static [&'static str], uri: &'static str) -> Known {
    Known { prefixes, uri, with_prefix: false }
}

const fn ontology(prefixes: &'static [&'static str], uri: &'static str) -> Known {
    Known { prefixes, uri, with_prefix: true }
}

const KNOWN: [Known; 21] = [
    known(&["SNOMEDCT", "SNOMEDCT_US", "SCTID", "SNOMED"], "http://snomed.info/sct"),
    known(&["RXNORM"], "http://www.nlm.nih.gov/research/umls/rxnorm"),
    known(&["LOINC", "LNC"], "http://loinc.org"),
    known(&["UMLS"], "http://terminology.hl7.org/CodeSystem/umls"),
    known(&["MESH", "MSH"], "https://www.nlm.nih.gov/mesh"),
    known(&["ICD10CM"], "http://hl7.org/fhir/sid/icd-10-cm"),
    known(&["ICD10"], "http://hl7.org/fhir/sid/icd-10"),
    known(&["ICD9CM"], "http://hl7.org/fhir/sid/icd-9-cm"),
    known(&["ATC"], "http://www.whocc.no/atc"),
    known(&["NCIT", "NCI"], "http://ncicb.nci.nih.gov/xml/owl/EVS/Thesaurus.owl"),
    known(&["OMIM"], "http://www.omim.org"),
    known(&["UNII"], "http://fdasis.nlm.nih.gov"),
    known(&["MEDDRA", "MDR"], "https://www.meddra.org"),
    ontology(&["HGNC"], "http://www.genenames.org"),
    ontology(&["HP"], "http://human-phenotype-ontology.org"),
    ontology(&["MONDO"], "http://purl.obolibrary.org/obo/mondo.owl"),
    ontology(&["DOID"], "http://purl.obolibrary.org/obo/doid.owl"),
    ontology(&["GO"], "http://purl.obolibrary.org/obo/go.owl"),
    ontology(&["CHEBI"], "http://purl.obolibrary.org/obo/chebi.owl"),
    ontology(&["UBERON"], "http://purl.obolibrary.org/obo/uberon.owl"),
    ontology(&["CL"], "http://purl.obolibrary.org/obo/cl.owl"),
];

/// The start of the URI of a prefix that is not in [`KNOWN`].
const OTHER: &str = "urn:canonym:";

/// The URI of a prefix; that of IDs without one ends with the name of the terminology.
pub fn uri(kb: &KnowledgeBase, prefix: &str) -> String {
    match KNOWN.iter().find(|known| known.prefixes.contains(&prefix)) {
        Some(known) => known.uri.to_owned(),
        None if prefix.is_empty() => format!("{OTHER}{}", encoded(&kb.meta().name)),
        None => format!("{OTHER}{}", encoded(prefix)),
    }
}

/// A URI has no blanks and nothing outside ASCII.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Code system and code of a concept.
pub fn coding(kb: &KnowledgeBase, concept: ConceptId) -> (String, String) {
    // A concept with several IDs is written under the first.
    let id = kb.id(concept).split('|').next().unwrap_or_default();
    let (prefix, code) = id.split_once(':').unwrap_or(("", id));
    let with_prefix = KNOWN.iter().any(|known| known.with_prefix && known.prefixes.contains(&prefix));
    (uri(kb, prefix), if with_prefix { id } else { code }.to_owned())
}

/// The prefixes of all IDs, in order. IDs are sorted, so each is found by a search.
pub fn prefixes(kb: &KnowledgeBase) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let n = kb.n_concepts() as u32;
    let prefix_at = |row: u32| kb.id(ConceptId(row)).split_once(':').map_or("", |(prefix, _)| prefix).to_owned();
    let mut at = 0;
    while at < n {
        let prefix = prefix_at(at);
        let (mut low, mut high) = (at + 1, n);
        while low < high {
            let middle = low + (high - low) / 2;
            if prefix_at(middle) == prefix { low = middle + 1 } else { high = middle }
        }
        if !found.contains(&prefix) {
            found.push(prefix);
        }
        at = low;
    }
    found
}

/// Whether the terminology has codes of the system.
pub fn has(kb: &KnowledgeBase, system: &str) -> bool {
    prefixes(kb).iter().any(|prefix| uri(kb, prefix) == system)
}

/// The concept with a code, by its ID or another ID that was merged into it.
pub fn find(kb: &KnowledgeBase, system: &str, code: &str) -> Option<ConceptId> {
    let of_kb = prefixes(kb);
    let known = KNOWN.iter().filter(|known| known.uri == system).flat_map(|known| known.prefixes).copied();
    let others = of_kb.iter().map(String::as_str).filter(|prefix| uri(kb, prefix) == system);
    let prefixes: Vec<&str> = known.chain(others).collect();
    prefixes.into_iter().find_map(|prefix| match prefix.is_empty() {
        true => kb.find(code).filter(|concept| coding(kb, *concept).1 == code),
        false if code.starts_with(&format!("{prefix}:")) => kb.find(code),
        false => kb.find(&format!("{prefix}:{code}")),
    })
}
