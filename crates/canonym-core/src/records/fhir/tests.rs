use expect_test::{Expect, expect};

use super::*;
use crate::corpus::{Attribute, CandidateRecord, CodeRecord};
use crate::kb::format::{CodeSystemRecord, Meta};
use crate::kb::{ConceptRecord, KnowledgeBaseBuilder, NameRecord, Scope};
use crate::text::{Document, Span};

fn kb() -> KnowledgeBase {
    let mut builder = KnowledgeBaseBuilder::new();
    for (id, name, kind) in
        [("MESH:D006073", "Gout", "Disease"), ("HP:0001945", "Fever", ""), ("X:1", "Colchicine", "Drug")]
    {
        builder
            .add(ConceptRecord {
                id: id.to_owned(),
                names: vec![NameRecord { text: name.to_owned(), scope: Scope::Preferred }],
                types: vec![kind.to_owned()],
                ..ConceptRecord::default()
            })
            .unwrap();
    }
    let system = CodeSystemRecord { prefix: "MESH".to_owned(), version: "2026".to_owned(), ..Default::default() };
    KnowledgeBase::from_vec(builder.to_bytes(Meta { code_systems: vec![system], ..Meta::default() }).unwrap(), "test")
        .unwrap()
}

fn mention(word: &str, id: &str, context: &str) -> AnnotatedDocument {
    let text = format!("é {word}");
    let attribute = |value: &str| Attribute { name: "negation".to_owned(), value: value.to_owned() };
    let annotation = Annotation {
        spans: vec![Span::new(3, text.len())],
        text: word.to_owned(),
        score: Some(0.9),
        nil: id.is_empty(),
        candidates: vec![CandidateRecord { id: id.to_owned(), name: word.to_owned(), p_link: 0.9, p_both: None }],
        attributes: context
            .split_whitespace()
            .map(|value| match value {
                "family" => Attribute { name: "experiencer".to_owned(), value: value.to_owned() },
                "historical" | "hypothetical" => Attribute { name: "temporality".to_owned(), value: value.to_owned() },
                value => attribute(value),
            })
            .collect(),
        ..Annotation::default()
    };
    let document = Document { id: "7".to_owned(), text, ..Document::default() };
    AnnotatedDocument { document, annotations: vec![annotation], ..AnnotatedDocument::default() }
}

/// The second resource, without what all have; or what was left out.
fn resource(word: &str, id: &str, context: &str) -> String {
    let writer = FhirResources { types: ResourceTypes::default(), layout: Layout::Resources };
    let mut out = Vec::new();
    let losses = writer.write(&kb(), &mention(word, id, context), &mut out);
    let text = String::from_utf8(out).unwrap();
    let Some(line) = text.lines().nth(1) else { return losses.lines().collect::<Vec<_>>().join("; ") };
    let mut value: Value = serde_json::from_str(line).unwrap();
    for field in ["id", "meta", "extension", "subject", "patient", "code", "medicationCodeableConcept"] {
        value.as_object_mut().unwrap().remove(field);
    }
    value.to_string().replace(HL7, "hl7:")
}

fn check(context: &str, expected: Expect) {
    let rows = [("Gout", "MESH:D006073"), ("Fever", "HP:0001945"), ("Colchicine", "X:1")];
    let all: Vec<String> = rows.iter().map(|(word, id)| resource(word, id, context) + "\n").collect();
    expected.assert_eq(&all.concat());
}

#[test]
fn contexts_decide_what_is_written() {
    check(
        "",
        expect![[r#"
        {"clinicalStatus":{"coding":[{"code":"active","system":"hl7:condition-clinical"}]},"resourceType":"Condition","verificationStatus":{"coding":[{"code":"unconfirmed","system":"hl7:condition-ver-status"}]}}
        {"resourceType":"Observation","status":"preliminary","valueBoolean":true}
        {"resourceType":"MedicationStatement","status":"active"}
    "#]],
    );
    check(
        "possible",
        expect![[r#"
        {"clinicalStatus":{"coding":[{"code":"active","system":"hl7:condition-clinical"}]},"resourceType":"Condition","verificationStatus":{"coding":[{"code":"provisional","system":"hl7:condition-ver-status"}]}}
        {"dataAbsentReason":{"coding":[{"code":"unknown","system":"hl7:data-absent-reason"}]},"resourceType":"Observation","status":"preliminary"}
        {"resourceType":"MedicationStatement","status":"unknown"}
    "#]],
    );
    check(
        "negated",
        expect![[r#"
        {"resourceType":"Condition","verificationStatus":{"coding":[{"code":"refuted","system":"hl7:condition-ver-status"}]}}
        {"resourceType":"Observation","status":"preliminary","valueBoolean":false}
        {"resourceType":"MedicationStatement","status":"not-taken"}
    "#]],
    );
    check(
        "historical",
        expect![[r#"
        {"clinicalStatus":{"coding":[{"code":"inactive","system":"hl7:condition-clinical"}]},"resourceType":"Condition","verificationStatus":{"coding":[{"code":"unconfirmed","system":"hl7:condition-ver-status"}]}}
        {"resourceType":"Observation","status":"preliminary","valueCodeableConcept":{"text":"in the past"}}
        {"resourceType":"MedicationStatement","status":"completed"}
    "#]],
    );
    check(
        "hypothetical",
        expect![[r#"
        1 hypothetical mention was dropped (first in document `7`)
        1 hypothetical mention was dropped (first in document `7`)
        1 hypothetical mention was dropped (first in document `7`)
    "#]],
    );
    check(
        "family",
        expect![[r#"
        {"condition":[{"code":{"coding":[{"code":"D006073","display":"Gout","system":"https://www.nlm.nih.gov/mesh","version":"2026"}],"text":"Gout"}}],"relationship":{"coding":[{"code":"FAMMEMB","display":"family member","system":"hl7:v3-RoleCode"}]},"resourceType":"FamilyMemberHistory","status":"partial"}
        1 mention about a relative was dropped (first in document `7`)
        1 mention about a relative was dropped (first in document `7`)
    "#]],
    );
    check(
        "family negated",
        expect![[r#"
        1 mention about a relative was dropped (first in document `7`)
        1 mention about a relative was dropped (first in document `7`)
        1 mention about a relative was dropped (first in document `7`)
    "#]],
    );
    check(
        "negated historical",
        expect![[r#"
        {"resourceType":"Condition","verificationStatus":{"coding":[{"code":"refuted","system":"hl7:condition-ver-status"}]}}
        {"resourceType":"Observation","status":"preliminary","valueBoolean":false}
        {"resourceType":"MedicationStatement","status":"not-taken"}
    "#]],
    );
}

#[test]
fn a_bundle_holds_the_note_and_codes_with_systems() {
    let writer = FhirResources { types: ResourceTypes::default(), layout: Layout::Bundles };
    let mut document = mention("Gout", "MESH:D006073", "");
    document.annotations[0].codes =
        vec![CodeRecord { id: "ICD10CM:M10".to_owned(), predicate: "skos:exactMatch".to_owned() }];
    let mut out = Vec::new();
    assert!(writer.write(&kb(), &document, &mut out).is_empty());
    let bundle: Value = serde_json::from_slice(&out).unwrap();
    expect![[r#"
        {
          "entry": [
            {
              "fullUrl": "urn:uuid:89a56261-8dfb-8210-af7e-8323237fe4f0",
              "resource": {
                "content": [
                  {
                    "attachment": {
                      "contentType": "text/plain; charset=UTF-8",
                      "size": 7,
                      "title": "7"
                    }
                  }
                ],
                "id": "7-84359cea",
                "resourceType": "DocumentReference",
                "status": "current"
              }
            },
            {
              "fullUrl": "urn:uuid:cbf1125c-1a88-87cb-83a9-9e5828a1a5de",
              "resource": {
                "clinicalStatus": {
                  "coding": [
                    {
                      "code": "active",
                      "system": "http://terminology.hl7.org/CodeSystem/condition-clinical"
                    }
                  ]
                },
                "code": {
                  "coding": [
                    {
                      "code": "D006073",
                      "display": "Gout",
                      "system": "https://www.nlm.nih.gov/mesh",
                      "version": "2026"
                    },
                    {
                      "code": "M10",
                      "system": "http://hl7.org/fhir/sid/icd-10-cm"
                    }
                  ],
                  "text": "Gout"
                },
                "extension": [
                  {
                    "extension": [
                      {
                        "url": "reference",
                        "valueReference": {
                          "reference": "urn:uuid:89a56261-8dfb-8210-af7e-8323237fe4f0"
                        }
                      },
                      {
                        "url": "offset",
                        "valueInteger": 2
                      },
                      {
                        "url": "length",
                        "valueInteger": 4
                      }
                    ],
                    "url": "http://hl7.org/fhir/StructureDefinition/derivation-reference"
                  },
                  {
                    "url": "urn:canonym:probability",
                    "valueDecimal": 0.9
                  }
                ],
                "id": "7-84359cea-1",
                "meta": {
                  "tag": [
                    {
                      "code": "candidate",
                      "display": "found in text, not reviewed",
                      "system": "urn:canonym"
                    }
                  ]
                },
                "resourceType": "Condition",
                "subject": {
                  "display": "patient of note 7",
                  "type": "Patient"
                },
                "verificationStatus": {
                  "coding": [
                    {
                      "code": "unconfirmed",
                      "system": "http://terminology.hl7.org/CodeSystem/condition-ver-status"
                    }
                  ]
                }
              }
            }
          ],
          "resourceType": "Bundle",
          "type": "collection"
        }
    "#]]
    .assert_eq(&format!("{bundle:#}\n"));
}

#[test]
fn unlinked_mentions_have_a_text_and_unknown_types_are_counted() {
    assert_eq!(resource("Rash", "", ""), "1 mention of a type without a resource was dropped (first in document `7`)");
    let writer =
        FhirResources { types: ResourceTypes::parse(&["*=condition".to_owned()]).unwrap(), layout: Layout::Resources };
    let mut out = Vec::new();
    writer.write(&kb(), &mention("Rash", "", ""), &mut out);
    let line: Value = serde_json::from_str(String::from_utf8(out).unwrap().lines().nth(1).unwrap()).unwrap();
    assert_eq!(line["code"], serde_json::json!({"text": "Rash"}));
}

#[test]
fn ids_are_those_that_fhir_allows() {
    let document = |id: &str| Document { id: id.to_owned(), text: "Gout.".to_owned(), ..Document::default() };
    let id = resource_id(&document("note-7.a"), Some(0));
    assert!(id.starts_with("note-7.a-") && id.ends_with("-1"), "{id}");
    for strange in ["", "ä", "a b", &"x".repeat(49)] {
        let id = resource_id(&document(strange), Some(999_999));
        assert!(id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{id}");
    }
    let url = full_url(&document("7"), None);
    assert_eq!((url.len(), &url[23..24]), (45, "8"));
    assert_ne!(url, full_url(&document("7"), Some(0)));
}

#[test]
fn drugs_that_are_not_tolerated_are_not_taken() {
    let mut document = mention("Colchicine", "X:1", "");
    document.document.text.push_str(" allergy.");
    let writer = FhirResources { types: ResourceTypes::default(), layout: Layout::Resources };
    let mut out = Vec::new();
    let losses = writer.write(&kb(), &document, &mut out);
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 1);
    expect!["1 drug in an allergy was dropped (first in document `7`)"]
        .assert_eq(&losses.lines().collect::<Vec<_>>().join("; "));
}

#[test]
fn notes_with_the_same_id_have_resources_of_their_own() {
    let writer = FhirResources { types: ResourceTypes::default(), layout: Layout::Resources };
    let mut out = Vec::new();
    for word in ["Gout", "Fever"] {
        writer.write(&kb(), &mention(word, "MESH:D006073", ""), &mut out);
    }
    let ids: std::collections::HashSet<String> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 4);
}
