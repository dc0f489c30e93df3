//! Cross-references: codes of other code systems, with the predicate that relates them to a concept.

use std::borrow::Cow;

use super::import::obographs::short_id;

/// The relation of a concept to a code of another system, as in SKOS, ordered by strength.
///
/// As in SSSOM, the concept is the subject: `A skos:broadMatch B` says that B is broader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Predicate {
    /// The same meaning.
    Exact = 0,
    /// Nearly the same meaning.
    Close = 1,
    /// A cross-reference of unstated meaning.
    Xref = 2,
    /// The code is narrower.
    Narrow = 3,
    /// The code is broader.
    Broad = 4,
    /// Another relation.
    Related = 5,
}

impl Predicate {
    /// All predicates.
    pub const ALL: [Predicate; 6] =
        [Predicate::Exact, Predicate::Close, Predicate::Xref, Predicate::Narrow, Predicate::Broad, Predicate::Related];

    /// As a CURIE: `skos:exactMatch`.
    pub fn name(self) -> &'static str {
        match self {
            Predicate::Exact => "skos:exactMatch",
            Predicate::Close => "skos:closeMatch",
            Predicate::Xref => "oboInOwl:hasDbXref",
            Predicate::Narrow => "skos:narrowMatch",
            Predicate::Broad => "skos:broadMatch",
            Predicate::Related => "skos:relatedMatch",
        }
    }

    /// The predicate of a CURIE or IRI, such as `skos:exactMatch`, `exactMatch` or `owl:equivalentClass`.
    pub fn from_name(name: &str) -> Option<Predicate> {
        match name.trim().rsplit(['#', '/', ':']).next()? {
            "exactMatch" | "equivalentClass" => Some(Predicate::Exact),
            "closeMatch" => Some(Predicate::Close),
            "hasDbXref" => Some(Predicate::Xref),
            "narrowMatch" => Some(Predicate::Narrow),
            "broadMatch" | "subClassOf" => Some(Predicate::Broad),
            "relatedMatch" => Some(Predicate::Related),
            _ => None,
        }
    }

    /// The predicate of a byte of a compiled file; a cross-reference if it is unknown.
    pub fn from_byte(byte: u8) -> Predicate {
        Predicate::ALL.get(usize::from(byte)).copied().unwrap_or(Predicate::Xref)
    }

    /// The predicate from the code to the concept.
    #[must_use]
    pub fn inverse(self) -> Predicate {
        match self {
            Predicate::Narrow => Predicate::Broad,
            Predicate::Broad => Predicate::Narrow,
            other => other,
        }
    }
}

/// A cross-reference of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct XrefRecord {
    /// The code with its prefix, as in the source: `ICD10CM:E11.9`.
    pub id: String,
    /// How it relates to the concept.
    pub predicate: Predicate,
}

impl XrefRecord {
    /// A cross-reference; an IRI is shortened.
    pub fn new(id: &str, predicate: Predicate) -> XrefRecord {
        XrefRecord { id: curie(id).into_owned(), predicate }
    }

    /// A cross-reference of unstated meaning.
    pub fn plain(id: &str) -> XrefRecord {
        XrefRecord::new(id, Predicate::Xref)
    }
}

/// A cross-reference of a knowledge base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xref<'a> {
    /// The code with its prefix, as in the source.
    pub id: &'a str,
    /// How it relates to the concept.
    pub predicate: Predicate,
}

/// Starts of IRIs that hold a code behind a fixed prefix.
const SPACES: [(&str, &str); 4] = [
    ("linkedlifedata.com/resource/umls/id/", "UMLS"),
    ("omim.org/entry/", "OMIM"),
    ("snomed.info/id/", "SNOMEDCT"),
    ("id.nlm.nih.gov/mesh/", "MESH"),
];

/// Starts of IRIs that go on with prefix and code.
const REGISTRIES: [&str; 3] = ["identifiers.org/", "purl.bioontology.org/ontology/", "bioregistry.io/"];

/// The short form of an IRI of another code system: `http://identifiers.org/mesh/D003924` becomes `mesh:D003924`. Other
/// text is returned trimmed.
pub fn curie(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) else {
        return Cow::Borrowed(text);
    };
    let rest = rest.strip_prefix("www.").unwrap_or(rest);
    for (start, prefix) in SPACES {
        if let Some(local) = rest.strip_prefix(start).filter(|local| !local.is_empty()) {
            return Cow::Owned(format!("{prefix}:{local}"));
        }
    }
    for start in REGISTRIES {
        let Some(path) = rest.strip_prefix(start) else { continue };
        let parts = path.split_once('/').or_else(|| path.split_once(':'));
        if let Some((prefix, local)) = parts.filter(|(prefix, local)| !prefix.is_empty() && !local.is_empty()) {
            let repeated = local.split_once(':').filter(|(again, _)| again.eq_ignore_ascii_case(prefix));
            return Cow::Owned(format!("{prefix}:{}", repeated.map_or(local, |(_, code)| code)));
        }
    }
    Cow::Owned(short_id(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_are_read_in_every_form() {
        for predicate in Predicate::ALL {
            assert_eq!(Predicate::from_name(predicate.name()), Some(predicate));
            assert_eq!(Predicate::from_byte(predicate as u8), predicate);
            assert_eq!(predicate.inverse().inverse(), predicate);
        }
        let iri = "http://www.w3.org/2004/02/skos/core#broadMatch";
        assert_eq!(Predicate::from_name(iri).map(Predicate::inverse), Some(Predicate::Narrow));
        assert_eq!(Predicate::from_name("rdfs:label"), None);
        assert_eq!(Predicate::from_byte(200), Predicate::Xref);
    }

    #[test]
    fn iris_of_codes_are_shortened() {
        let cases = [
            ("http://identifiers.org/mesh/D003924", "mesh:D003924"),
            ("https://identifiers.org/hgnc:HGNC:5", "hgnc:5"),
            ("http://linkedlifedata.com/resource/umls/id/C0011860", "UMLS:C0011860"),
            ("https://www.omim.org/entry/125853", "OMIM:125853"),
            ("http://purl.bioontology.org/ontology/ICD10CM/E11.9", "ICD10CM:E11.9"),
            ("http://purl.obolibrary.org/obo/DOID_9352", "DOID:9352"),
            (" ICD10CM:E11 ", "ICD10CM:E11"),
            ("https://example.org/wiki/Gout", "https://example.org/wiki/Gout"),
            ("http://identifiers.org/", "http://identifiers.org/"),
        ];
        for (written, short) in cases {
            assert_eq!(curie(written), short);
        }
    }
}
