//! What the terminology service says about itself.

use canonym_core::kb::{KnowledgeBase, code_system as systems};
use serde_json::{Value, json};

use super::OPERATIONS;

/// The version of FHIR.
const FHIR_VERSION: &str = "4.0.1";

/// The CapabilityStatement.
pub fn capabilities(kb: &KnowledgeBase, now: &str) -> Value {
    let resource = |kind: &str| {
        let operations: Vec<Value> = OPERATIONS
            .iter()
            .filter(|(resource, _)| *resource == kind)
            .map(|(resource, name)| {
                let definition = format!("http://hl7.org/fhir/OperationDefinition/{resource}-{name}");
                json!({"name": name, "definition": definition})
            })
            .collect();
        json!({"type": kind, "operation": operations})
    };
    json!({
        "resourceType": "CapabilityStatement",
        "status": "active",
        "date": now,
        "kind": "instance",
        "software": {"name": "canonym", "version": env!("CARGO_PKG_VERSION")},
        "implementation": {"description": format!("The terminology {}", kb.meta().name)},
        "fhirVersion": FHIR_VERSION,
        "format": ["json"],
        "rest": [{"mode": "server", "resource": [resource("CodeSystem"), resource("ValueSet"), resource("ConceptMap")]}],
    })
}

/// The TerminologyCapabilities.
pub fn terminology_capabilities(kb: &KnowledgeBase, now: &str) -> Value {
    let systems: Vec<Value> = systems::prefixes(kb)
        .iter()
        .map(|prefix| {
            let mut system = json!({"uri": systems::uri(kb, prefix), "subsumption": kb.has_parents()});
            let version = systems::version(kb, prefix);
            if !version.is_empty() {
                system["version"] = json!([{"code": version, "isDefault": true}]);
            }
            system
        })
        .collect();
    let parameters: Vec<Value> =
        ["url", "filter", "count", "offset"].iter().map(|name| json!({"name": name})).collect();
    json!({
        "resourceType": "TerminologyCapabilities",
        "status": "active",
        "date": now,
        "kind": "instance",
        "software": {"name": "canonym", "version": env!("CARGO_PKG_VERSION")},
        "implementation": {"description": format!("The terminology {}", kb.meta().name)},
        "codeSystem": systems,
        "expansion": {"hierarchical": false, "paging": true, "parameter": parameters},
        "codeSearch": "all",
        "validateCode": {"translations": false},
        "translation": {"needsMap": false},
    })
}
