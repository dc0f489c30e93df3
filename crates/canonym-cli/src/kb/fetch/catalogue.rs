//! Freely downloadable terminologies and their URLs.
//!
//! Terminologies that need an account (UMLS, SNOMED CT, ICD-11) are not listed. A year or version in a URL was
//! current when the table was written; `--url` selects another.

/// A terminology and its download.
#[derive(Debug, Clone, Copy)]
pub struct Terminology {
    /// Name on the command line.
    pub name: &'static str,
    /// Title for `--list`.
    pub title: &'static str,
    /// URL at the publisher; its last part is the default file name.
    pub url: &'static str,
    /// Value for `kb build --format`.
    pub format: &'static str,
    /// Value for `kb build --prefix`; empty if the ids have prefixes.
    pub prefix: &'static str,
    /// Licence or terms of use.
    pub licence: &'static str,
    /// Suffix that turns `url` into the URL of the published checksum; empty if there is none.
    pub checksum: &'static str,
}

const CTD: &str = "CTD terms of use: cite and link to CTD";
const NLM: &str = "NLM terms: name the source and release, and indicate changes";
const NCBI: &str = "public domain (NCBI)";

const fn row(
    name: &'static str,
    title: &'static str,
    url: &'static str,
    format: &'static str,
    licence: &'static str,
) -> Terminology {
    Terminology { name, title, url, format, prefix: "", licence, checksum: "" }
}

/// The table, sorted by name.
pub const ALL: [Terminology; 17] = [
    row(
        "chebi",
        "Chemical Entities of Biological Interest",
        "https://ftp.ebi.ac.uk/pub/databases/chebi/ontology/chebi.obo.gz",
        "obo",
        "CC BY 4.0",
    ),
    row("cl", "Cell Ontology", "https://purl.obolibrary.org/obo/cl/cl-basic.obo", "obo", "CC BY 4.0"),
    row("ctd-chemicals", "CTD chemicals, by MeSH id", "https://ctdbase.org/reports/CTD_chemicals.tsv.gz", "ctd", CTD),
    row(
        "ctd-diseases",
        "MEDIC: CTD diseases, by MeSH and OMIM id",
        "https://ctdbase.org/reports/CTD_diseases.tsv.gz",
        "ctd",
        CTD,
    ),
    row("doid", "Human Disease Ontology", "https://purl.obolibrary.org/obo/doid.obo", "obo", "CC0 1.0"),
    row(
        "gene-info",
        "NCBI Gene, all organisms (more than 1 GB)",
        "https://ftp.ncbi.nlm.nih.gov/gene/DATA/gene_info.gz",
        "gene-info",
        NCBI,
    ),
    row(
        "gene-info-human",
        "NCBI Gene, human",
        "https://ftp.ncbi.nlm.nih.gov/gene/DATA/GENE_INFO/Mammalia/Homo_sapiens.gene_info.gz",
        "gene-info",
        NCBI,
    ),
    row("go", "Gene Ontology", "https://purl.obolibrary.org/obo/go/go-basic.obo", "obo", "CC BY 4.0"),
    row(
        "hpo",
        "Human Phenotype Ontology",
        "https://purl.obolibrary.org/obo/hp.obo",
        "obo",
        "HPO licence: name the release, do not change the content",
    ),
    Terminology {
        prefix: "MESH",
        ..row(
            "mesh",
            "MeSH descriptors",
            "https://nlmpubs.nlm.nih.gov/projects/mesh/MESH_FILES/xmlmesh/desc2026.gz",
            "mesh-xml",
            NLM,
        )
    },
    Terminology {
        prefix: "MESH",
        ..row(
            "mesh-supp",
            "MeSH supplementary concepts",
            "https://nlmpubs.nlm.nih.gov/projects/mesh/MESH_FILES/xmlmesh/supp2026.gz",
            "mesh-xml",
            NLM,
        )
    },
    row("mondo", "Mondo Disease Ontology", "https://purl.obolibrary.org/obo/mondo.obo", "obo", "CC BY 4.0"),
    row("ncit", "NCI Thesaurus, OBO edition", "https://purl.obolibrary.org/obo/ncit.obo", "obo", "CC BY 4.0"),
    row(
        "ordo",
        "Orphanet Rare Disease Ontology",
        "https://www.orphadata.com/data/ontologies/ordo/last_version/ORDO_en_4.9.owl",
        "owl",
        "CC BY 4.0",
    ),
    row("symp", "Symptom Ontology", "https://purl.obolibrary.org/obo/symp.obo", "obo", "CC0 1.0"),
    Terminology {
        checksum: ".md5",
        ..row("taxonomy", "NCBI Taxonomy", "https://ftp.ncbi.nlm.nih.gov/pub/taxonomy/taxdmp.zip", "taxonomy", NCBI)
    },
    row("uberon", "Uber-anatomy ontology", "https://purl.obolibrary.org/obo/uberon/basic.obo", "obo", "CC BY 3.0"),
];

/// The terminology with this name.
pub fn find(name: &str) -> Option<&'static Terminology> {
    ALL.iter().find(|one| one.name.eq_ignore_ascii_case(name))
}

/// The last part of the path of a URL; `None` if it ends with a slash or has no path.
pub fn file_name(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let (_, name) = path.rsplit_once('/')?;
    Some(name).filter(|name| !name.is_empty() && *name != "." && *name != "..")
}

#[cfg(test)]
mod tests {
    use canonym_core::kb::import::SourceFormat;

    use super::*;

    #[test]
    fn rows_are_sorted_and_can_be_built() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        for one in ALL {
            assert!(SourceFormat::from_name(one.format).is_some(), "{}", one.name);
            assert!(one.url.starts_with("https://") && file_name(one.url).is_some(), "{}", one.name);
        }
    }

    #[test]
    fn file_name_is_the_last_part_of_the_path() {
        assert_eq!(file_name("https://x.org/a/b.obo?y=z/w"), Some("b.obo"));
        assert_eq!([file_name("https://x.org"), file_name("https://x.org/a/"), file_name("b.obo")], [None; 3]);
    }
}
