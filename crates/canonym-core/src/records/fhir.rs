//! Mentions as resources of FHIR R4: a Bundle per document, or one resource per line (NDJSON).
//!
//! The resources are candidates for a person or a program to review, and tagged so. Contexts decide what is written:
//!
//! | context | Condition | Observation | MedicationStatement |
//! | --- | --- | --- | --- |
//! | none | `unconfirmed`, `active` | value `true` | `active` |
//! | possible | `provisional`, `active` | no value, `dataAbsentReason` unknown | `unknown` |
//! | negated | `refuted` | value `false` | `not-taken` |
//! | historical | `unconfirmed`, `inactive` | value "in the past" | `completed` |
//! | family | FamilyMemberHistory | left out | left out |
//! | hypothetical | left out | left out | left out |
//!
//! What a relative does not have is left out, too, and so are drugs that the patient does not tolerate. Each resource
//! names its code with system URI, release and display, and its place in the note by the extension
//! `derivation-reference`; a DocumentReference stands for the note. The patient is not known here: `subject` has only a
//! display text.

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::Asserted;
pub use super::fhir_types::{Resource, ResourceTypes};
use crate::corpus::losses::{Loss, Losses};
use crate::corpus::table::{CodePoints, code_points};
use crate::corpus::{AnnotatedDocument, Annotation};
use crate::kb::KnowledgeBase;
use crate::kb::code_system::{Coding, canonical_id, canonical_prefix, coding_of_id};
use crate::numbers::rounded;
use crate::text::Document;
use crate::text::analysis::Analysis;
use crate::text::context::allergens::Allergens;

/// URI of the tag of candidates, and start of our own extensions.
const OWN: &str = "urn:canonym";

/// The extension that tells where in a source a value was found.
const DERIVED: &str = "http://hl7.org/fhir/StructureDefinition/derivation-reference";

/// Start of the URIs of the code systems of HL7.
const HL7: &str = "http://terminology.hl7.org/CodeSystem/";

/// How resources are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A Bundle per document, one per line.
    Bundles,
    /// A resource per line.
    Resources,
}

/// What resources are made with.
#[derive(Debug, Clone)]
pub struct FhirResources {
    /// The resources of semantic types.
    pub types: ResourceTypes,
    /// How resources are laid out.
    pub layout: Layout,
}

/// The note that resources are about.
struct Note<'a> {
    document: &'a AnnotatedDocument,
    /// How other resources refer to it.
    reference: String,
}

impl FhirResources {
    /// Appends the lines of a document to `out`; returns what was left out.
    pub fn write(&self, kb: &KnowledgeBase, document: &AnnotatedDocument, out: &mut Vec<u8>) -> Losses {
        let mut losses = Losses::default();
        let (mut n_untyped, mut n_hypothetical, mut n_relative, mut n_allergens) = (0, 0, 0, 0);
        let allergens = Allergens::new(&Analysis::new(&document.document));
        let is_bundle = self.layout == Layout::Bundles;
        let note_id = resource_id(&document.document, None);
        let reference = match is_bundle {
            true => full_url(&document.document, None),
            false => format!("DocumentReference/{note_id}"),
        };
        let note = Note { document, reference };
        let mut resources = vec![(None, document_reference(&note, &note_id))];
        for (place, (annotation, spans)) in document.annotations.iter().zip(code_points(document)).enumerate() {
            let asserted = Asserted::of(annotation);
            let Some(resource) = self.resource_of(kb, annotation) else {
                n_untyped += 1;
                continue;
            };
            if asserted.hypothetical {
                n_hypothetical += 1;
                continue;
            }
            let code = concept(kb, annotation);
            let about = match resource {
                Resource::Condition if asserted.family && !asserted.negated => relative(code),
                _ if asserted.family => {
                    n_relative += 1;
                    continue;
                }
                Resource::Condition => condition(code, asserted),
                Resource::Observation => observation(code, asserted),
                Resource::MedicationStatement if allergens.contains(&annotation.spans) => {
                    n_allergens += 1;
                    continue;
                }
                Resource::MedicationStatement => medication(code, asserted),
            };
            let id = resource_id(&document.document, Some(place));
            resources.push((Some(place), complete(about, &note, annotation, &spans, &id)));
        }
        losses.count(Loss::ResourceType, n_untyped, document);
        losses.count(Loss::Hypothetical, n_hypothetical, document);
        losses.count(Loss::Relative, n_relative, document);
        losses.count(Loss::Allergen, n_allergens, document);
        let mut line = |value: &Value| {
            serde_json::to_writer(&mut *out, value).expect("strings and numbers in memory are always JSON");
            out.push(b'\n');
        };
        if is_bundle {
            let url = |place: Option<usize>| full_url(&document.document, place);
            let entry =
                |(place, resource): (Option<usize>, Value)| json!({"fullUrl": url(place), "resource": resource});
            let entries: Vec<Value> = resources.into_iter().map(entry).collect();
            line(&json!({"resourceType": "Bundle", "type": "collection", "entry": entries}));
        } else {
            resources.iter().for_each(|(_, resource)| line(resource));
        }
        losses
    }

    /// The resource for a mention, by its type, those of its concept, and the code system.
    fn resource_of(&self, kb: &KnowledgeBase, annotation: &Annotation) -> Option<Resource> {
        let concept = annotation.concept_id().and_then(|id| kb.find(id));
        let own = Some(annotation.semantic_type.as_str()).filter(|kind| !kind.is_empty());
        let types = own.into_iter().chain(concept.into_iter().flat_map(|concept| kb.types(concept)));
        let id = concept.map_or("", |concept| kb.id(concept));
        let prefix = id.split_once(':').map_or("", |(prefix, _)| canonical_prefix(prefix));
        self.types.of(types, prefix)
    }
}

/// An id that FHIR allows: letters, digits, `-` and `.`, at most 64. It is the id of the document, or a hash of one that
/// FHIR does not allow, and a hash of the text: notes with the same id have resources of their own, in any order and on
/// any number of threads.
fn resource_id(document: &Document, place: Option<usize>) -> String {
    let id = document.id.as_str();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    let stem = match !id.is_empty() && id.len() <= 40 && id.bytes().all(is_plain) {
        true => id.to_owned(),
        false => format!("{:032x}", xxh3_128(id.as_bytes())),
    };
    let stem = format!("{stem}-{:08x}", xxh3_64(document.text.as_bytes()) as u32);
    place.map_or(stem.clone(), |place| format!("{stem}-{}", place + 1))
}

/// A URN that depends only on the document's id and text and the place of the mention.
fn full_url(document: &Document, place: Option<usize>) -> String {
    let hex = format!("{:032x}", xxh3_128(resource_id(document, place).as_bytes()));
    // Version 8, variant 1: made by the rules of the program.
    let variant = ["8", "9", "a", "b"][usize::from(hex.as_bytes()[16]) % 4];
    format!("urn:uuid:{}-{}-8{}-{variant}{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

fn document_reference(note: &Note<'_>, id: &str) -> Value {
    let document = &note.document.document;
    json!({
        "resourceType": "DocumentReference",
        "id": id,
        "status": "current",
        "content": [{"attachment": {"contentType": "text/plain; charset=UTF-8", "title": shown(&document.id, "document"), "size": document.text.len()}}],
    })
}

/// A text that is not empty, as FHIR wants.
fn shown<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.trim().is_empty() { otherwise } else { text }
}

/// The CodeableConcept of a mention: the concept, its codes in another system, and the text.
fn concept(kb: &KnowledgeBase, annotation: &Annotation) -> Value {
    let mut codings: Vec<Value> = Vec::new();
    if let Some(best) = annotation.candidates.first().filter(|_| !annotation.nil) {
        let id = kb.find(&best.id).map_or(best.id.as_str(), |concept| kb.id(concept));
        codings.push(coding(coding_of_id(kb, id), Some(best.name.as_str())));
    }
    codings.extend(annotation.codes.iter().map(|code| coding(coding_of_id(kb, &canonical_id(&code.id)), None)));
    codings.retain(|coding| coding["code"].as_str().is_some_and(|code| !code.trim().is_empty()));
    let mut concept = Map::new();
    if !codings.is_empty() {
        concept.insert("coding".to_owned(), Value::Array(codings));
    }
    concept.insert("text".to_owned(), json!(shown(&annotation.text, "unnamed")));
    Value::Object(concept)
}

fn coding(coding: Coding, display: Option<&str>) -> Value {
    let mut value = json!({"system": coding.system, "code": coding.code});
    if !coding.version.is_empty() {
        value["version"] = json!(coding.version);
    }
    if let Some(display) = display.filter(|display| !display.trim().is_empty()) {
        value["display"] = json!(display);
    }
    value
}

/// A code of a system of HL7.
fn hl7(system: &str, code: &str) -> Value {
    json!({"coding": [{"system": format!("{HL7}{system}"), "code": code}]})
}

fn condition(code: Value, asserted: Asserted) -> Value {
    let verification = match asserted {
        Asserted { negated: true, .. } => "refuted",
        Asserted { possible: true, .. } => "provisional",
        _ => "unconfirmed",
    };
    let mut condition = json!({
        "resourceType": "Condition",
        "verificationStatus": hl7("condition-ver-status", verification),
        "code": code,
    });
    if !asserted.negated {
        let status = if asserted.historical { "inactive" } else { "active" };
        condition["clinicalStatus"] = hl7("condition-clinical", status);
    }
    condition
}

fn observation(code: Value, asserted: Asserted) -> Value {
    let mut observation = json!({"resourceType": "Observation", "status": "preliminary", "code": code});
    match asserted {
        Asserted { negated: true, .. } => observation["valueBoolean"] = json!(false),
        Asserted { possible: true, .. } => observation["dataAbsentReason"] = hl7("data-absent-reason", "unknown"),
        Asserted { historical: true, .. } => observation["valueCodeableConcept"] = json!({"text": "in the past"}),
        _ => observation["valueBoolean"] = json!(true),
    }
    observation
}

fn medication(code: Value, asserted: Asserted) -> Value {
    let status = match asserted {
        Asserted { negated: true, .. } => "not-taken",
        Asserted { possible: true, .. } => "unknown",
        Asserted { historical: true, .. } => "completed",
        _ => "active",
    };
    json!({"resourceType": "MedicationStatement", "status": status, "medicationCodeableConcept": code})
}

fn relative(code: Value) -> Value {
    json!({
        "resourceType": "FamilyMemberHistory",
        "status": "partial",
        "relationship": {"coding": [{"system": format!("{HL7}v3-RoleCode"), "code": "FAMMEMB", "display": "family member"}]},
        "condition": [{"code": code}],
    })
}

/// Adds what all resources have: id, tag, place in the note, patient and probability.
fn complete(mut resource: Value, note: &Note<'_>, annotation: &Annotation, spans: &CodePoints, id: &str) -> Value {
    resource["id"] = json!(id);
    resource["meta"] = json!({"tag": [{"system": OWN, "code": "candidate", "display": "found in text, not reviewed"}]});
    let place = |(start, end): &(usize, usize)| {
        json!({"url": DERIVED, "extension": [
            {"url": "reference", "valueReference": {"reference": note.reference}},
            {"url": "offset", "valueInteger": start},
            {"url": "length", "valueInteger": end - start},
        ]})
    };
    let mut extensions: Vec<Value> = spans.iter().map(place).collect();
    if let Some(score) = annotation.score {
        extensions.push(json!({"url": format!("{OWN}:probability"), "valueDecimal": rounded(score)}));
    }
    resource["extension"] = Value::Array(extensions);
    let patient = json!({"type": "Patient", "display": format!("patient of note {}", shown(&note.document.document.id, "without id"))});
    let field = if resource["resourceType"] == "FamilyMemberHistory" { "patient" } else { "subject" };
    resource[field] = patient;
    resource
}

#[cfg(test)]
mod tests;
