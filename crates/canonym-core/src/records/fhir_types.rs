//! Which resource of FHIR holds mentions of a semantic type.

use crate::{Error, Result};

/// A resource for mentions of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// A disease.
    Condition,
    /// A symptom, sign or other finding.
    Observation,
    /// A drug.
    MedicationStatement,
}

/// Semantic types in lower case: words of models and tables, tags of SNOMED CT, types of UMLS.
const TYPES: [(Resource, &[&str]); 3] = [
    (
        Resource::Condition,
        &[
            "disease",
            "disorder",
            "diagnosis",
            "condition",
            "injury",
            "neoplasm",
            "scr_disease",
            "disease or syndrome",
            "mental or behavioral dysfunction",
            "neoplastic process",
            "injury or poisoning",
            "congenital abnormality",
            "t019",
            "t020",
            "t037",
            "t046",
            "t047",
            "t048",
            "t049",
            "t050",
            "t190",
            "t191",
        ],
    ),
    (
        Resource::Observation,
        &[
            "symptom",
            "sign",
            "finding",
            "phenotype",
            "sign or symptom",
            "situation",
            "observable entity",
            "laboratory or test result",
            "c23",
            "t033",
            "t034",
            "t184",
        ],
    ),
    (
        Resource::MedicationStatement,
        &[
            "drug",
            "medication",
            "chemical",
            "clinical drug",
            "product",
            "medicinal product",
            "medicinal product form",
            "substance",
            "scr_chemical",
            "pharmacologic substance",
            "antibiotic",
            "t121",
            "t195",
            "t200",
        ],
    ),
];

/// Code systems whose concepts have no types, or types of their own.
const SYSTEMS: [(Resource, &[&str]); 3] = [
    (Resource::Condition, &["DOID", "MONDO", "ICD10CM", "ICD10", "ICD9CM", "OMIM", "Orphanet"]),
    (Resource::Observation, &["HP", "SYMP"]),
    (Resource::MedicationStatement, &["RXNORM", "ATC"]),
];

/// The resources of semantic types: those of the user, then the known ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResourceTypes {
    /// Types in lower case, `*` for all others, and their resource; `None` to leave them out.
    given: Vec<(String, Option<Resource>)>,
}

impl ResourceTypes {
    /// Parses settings such as `Procedure=observation`, `Chemical=none` or `*=condition`.
    ///
    /// # Errors
    /// [`Error::Usage`] if a setting is something else.
    pub fn parse(settings: &[String]) -> Result<ResourceTypes> {
        let parse = |setting: &String| {
            let wrong = || {
                let shown: String = setting.chars().take(80).collect();
                let hint =
                    "write TYPE=condition, TYPE=observation, TYPE=medication or TYPE=none; `*` is every other type";
                Error::usage(format!("invalid setting `{shown}`"), hint)
            };
            let (kind, resource) = setting.rsplit_once('=').ok_or_else(wrong)?;
            let resource = match resource.trim().to_ascii_lowercase().as_str() {
                "condition" => Some(Resource::Condition),
                "observation" => Some(Resource::Observation),
                "medication" | "medicationstatement" => Some(Resource::MedicationStatement),
                "none" => None,
                _ => return Err(wrong()),
            };
            Ok((kind.trim().to_lowercase(), resource))
        };
        Ok(ResourceTypes { given: settings.iter().map(parse).collect::<Result<_>>()? })
    }

    /// The resource for a mention of these types and a concept with this canonical prefix.
    pub(super) fn of<'a>(&self, types: impl Iterator<Item = &'a str>, prefix: &str) -> Option<Resource> {
        let types: Vec<String> = types.map(str::to_lowercase).collect();
        let given =
            |wanted: &str| self.given.iter().rev().find(|(kind, _)| kind == wanted).map(|(_, resource)| *resource);
        if let Some(resource) = types.iter().find_map(|kind| given(kind)) {
            return resource;
        }
        let known = types.iter().find_map(|kind| {
            let known = TYPES.iter().find(|(_, all)| all.contains(&kind.as_str()));
            known.map(|(resource, _)| *resource).or_else(|| of_tree(kind))
        });
        let of_system = || SYSTEMS.iter().find(|(_, all)| all.contains(&prefix)).map(|(resource, _)| *resource);
        known.or_else(of_system).or_else(|| given("*").flatten())
    }
}

/// The resource of a tree of MeSH, such as `C04` or `D02`.
fn of_tree(tree: &str) -> Option<Resource> {
    let (branch, number) = (tree.get(..1)?, tree.get(1..)?);
    if number.len() != 2 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match (branch, number) {
        ("c", _) | ("f", "03") => Some(Resource::Condition),
        ("d", _) => Some(Resource::MedicationStatement),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_systems_have_resources() {
        let types = ResourceTypes::default();
        let of = |kind: &str, prefix: &str| types.of([kind].into_iter().filter(|kind| !kind.is_empty()), prefix);
        assert_eq!(of("Disease", "MESH"), Some(Resource::Condition));
        assert_eq!(of("C14", "MESH"), Some(Resource::Condition));
        assert_eq!(of("C23", "MESH"), Some(Resource::Observation));
        assert_eq!(of("F02", "MESH"), None);
        assert_eq!(of("finding", "SNOMEDCT"), Some(Resource::Observation));
        assert_eq!(of("", "HP"), Some(Resource::Observation));
        assert_eq!(of("Gene", "HGNC"), None);
        assert_eq!(of("", ""), None);
    }

    #[test]
    fn settings_of_the_user_come_first() {
        let settings = ["Gene=Observation", "disease=none", "*=condition"].map(str::to_owned);
        let types = ResourceTypes::parse(&settings).unwrap();
        let of = |kind: &str| types.of([kind].into_iter(), "X");
        assert_eq!(of("Gene"), Some(Resource::Observation));
        assert_eq!(of("Disease"), None);
        assert_eq!(of("Anatomy"), Some(Resource::Condition));
        assert_eq!(of("Drug"), Some(Resource::MedicationStatement));
        for wrong in ["Gene", "Gene=procedure", ""] {
            assert!(ResourceTypes::parse(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
