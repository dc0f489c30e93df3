//! The FHIR terminology service.

use axum::body::{Body, to_bytes};
use axum::http::Method;
use canonym_core::kb::format::{CodeSystemRecord, Meta};
use canonym_core::kb::{ConceptRecord, KnowledgeBase, KnowledgeBaseBuilder, NameRecord, Predicate, Scope, XrefRecord};
use serde_json::{Value, json};

use crate::support::{RuleEngine, Server, config};

const SYSTEM: &str = "urn:canonym:T";

async fn ask(server: &Server, method: Method, path: &str, body: impl Into<Body>) -> (u16, Value) {
    let client = server.with_headers(&[("accept", "application/fhir+json")]);
    let response = client.send(method, &format!("/fhir{path}"), body).await;
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/fhir+json", "{path}: {status}");
    (status, serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap())
}

async fn get(server: &Server, path: &str) -> Value {
    let (status, value) = ask(server, Method::GET, path, Body::empty()).await;
    assert_eq!(status, 200, "{path}: {value}");
    value
}

/// The values of the parameters with this name.
fn values(resource: &Value, name: &str) -> Vec<Value> {
    let all = resource["parameter"].as_array().unwrap().iter().filter(|one| one["name"] == name);
    let value = |one: &Value| {
        let fields = one.as_object().unwrap();
        fields.iter().find(|(field, _)| field.as_str() != "name").unwrap().1.clone()
    };
    all.map(value).collect()
}

#[tokio::test]
async fn statements_name_what_is_supported() {
    let server = Server::temporary();
    let statement = get(&server, "/metadata").await;
    assert_eq!(
        (&statement["resourceType"], &statement["fhirVersion"]),
        (&json!("CapabilityStatement"), &json!("4.0.1"))
    );
    let resources = statement["rest"][0]["resource"].as_array().unwrap();
    let names: Vec<String> = resources
        .iter()
        .flat_map(|one| {
            one["operation"].as_array().unwrap().iter().map(|each| format!("{} {}", one["type"], each["name"]))
        })
        .map(|name| name.replace('"', ""))
        .collect();
    let expected = [
        "CodeSystem lookup",
        "CodeSystem validate-code",
        "CodeSystem subsumes",
        "ValueSet expand",
        "ConceptMap translate",
    ];
    assert_eq!(names, expected);
    let terminology = get(&server, "/metadata?mode=terminology").await;
    assert_eq!(terminology["codeSystem"], json!([{"uri": SYSTEM, "subsumption": true}]));
}

#[tokio::test]
async fn codes_are_looked_up_and_validated() {
    let server = Server::temporary();
    let found = get(&server, &format!("/CodeSystem/$lookup?system={SYSTEM}&code=2")).await;
    assert_eq!(values(&found, "display"), [json!("Delirium")]);
    assert_eq!(values(&found, "designation"), [json!([{"name": "value", "valueString": "acute confusional state"}])]);
    let properties = values(&found, "property");
    assert!(
        properties.contains(&json!([{"name": "code", "valueCode": "parent"}, {"name": "value", "valueCode": "1"}]))
    );
    assert!(properties.contains(&json!([{"name": "code", "valueCode": "child"}, {"name": "value", "valueCode": "4"}])));
    // As a resource, and with the operation encoded.
    let body = json!({"resourceType": "Parameters",
        "parameter": [{"name": "coding", "valueCoding": {"system": SYSTEM, "code": "2"}}]});
    let (status, again) = ask(&server, Method::POST, "/CodeSystem/%24lookup", body.to_string()).await;
    assert_eq!((status, again), (200, found));
    let check = async |query: &str| {
        let answer = get(&server, &format!("/CodeSystem/$validate-code?url={SYSTEM}&{query}")).await;
        (values(&answer, "result")[0] == true, values(&answer, "message").first().cloned())
    };
    assert_eq!(check("code=2").await, (true, None));
    assert_eq!(check("code=2&display=Acute%20Confusional%20State").await, (true, None));
    assert_eq!(check("code=2&display=Gout").await, (false, Some(json!("`Gout` is not a name of this code"))));
    assert_eq!(check("code=%F0%9F%A7%AA%00").await, (false, Some(json!("the code `🧪\u{0}` is unknown"))));
}

#[tokio::test]
async fn codes_are_compared_in_the_hierarchy() {
    let server = Server::temporary();
    for (a, b, expected) in
        [("1", "4", "subsumes"), ("4", "1", "subsumed-by"), ("3", "3", "equivalent"), ("3", "4", "not-subsumed")]
    {
        let answer = get(&server, &format!("/CodeSystem/$subsumes?system={SYSTEM}&codeA={a}&codeB={b}")).await;
        assert_eq!(values(&answer, "outcome"), [json!(expected)], "{a} {b}");
    }
}

#[tokio::test]
async fn value_sets_are_expanded() {
    let server = Server::temporary();
    let codes = async |query: &str| -> (Vec<String>, Value) {
        let set = get(&server, &format!("/ValueSet/$expand?{query}")).await;
        let contains = set["expansion"]["contains"].as_array().cloned().unwrap_or_default();
        (
            contains.iter().map(|one| one["code"].as_str().unwrap().to_owned()).collect(),
            set["expansion"]["total"].clone(),
        )
    };
    assert_eq!(codes("").await, (["1", "2", "3", "4", "5", "6"].map(str::to_owned).to_vec(), json!(6)));
    assert_eq!(codes("count=2&offset=3").await, (["4", "5"].map(str::to_owned).to_vec(), json!(6)));
    assert_eq!(codes("count=0").await, (Vec::new(), json!(6)));
    assert_eq!(codes("filter=emergence").await.0[0], "4");
    assert_eq!(codes("filter=cancer").await.0, ["6"]);
    // The start of any word: `Confusion` and `acute confusional state`.
    assert_eq!(codes("filter=confus").await.0, ["3", "2"]);
    assert_eq!(codes("filter=sta%20acu").await.0, ["2"]);
    assert_eq!(codes("filter=delirum").await.0[0], "2");
    assert_eq!(codes("filter=sedan").await.0, Vec::<String>::new());
    assert_eq!(codes("filter=zzzz").await, (Vec::new(), Value::Null));
    let all = format!("url={SYSTEM}%3Ffhir_vs");
    assert_eq!(codes(&all).await.1, json!(6));
    assert_eq!(codes(&format!("{all}%3Disa/2")).await.0, ["2", "4"]);
    assert_eq!(codes(&format!("{all}%3Disa/2&filter=delir")).await.0, ["2", "4"]);
}

#[tokio::test]
async fn errors_are_operation_outcomes() {
    let server = Server::temporary();
    let long = "x".repeat(501);
    let cases = [
        ("/CodeSystem/$lookup".to_owned(), 400, "invalid", "the parameter `system` is missing"),
        (format!("/CodeSystem/$lookup?system={SYSTEM}"), 400, "invalid", "the parameter `code` is missing"),
        (format!("/CodeSystem/$lookup?system={SYSTEM}&code=99"), 404, "not-found", "has no code `99`"),
        (format!("/CodeSystem/$lookup?system={SYSTEM}&code=2%7C3%00'"), 404, "not-found", "has no code `2|3\u{0}'`"),
        ("/CodeSystem/$lookup?system=http://snomed.info/sct&code=1".to_owned(), 404, "not-found", SYSTEM),
        (format!("/CodeSystem/$subsumes?system={SYSTEM}&codeA=1"), 400, "invalid", "`codeB` is missing"),
        ("/ValueSet/$expand?url=http://x".to_owned(), 404, "not-found", "no value set `http://x` here"),
        (format!("/ValueSet/$expand?url={SYSTEM}?fhir_vs=refset/1"), 400, "invalid", "are supported"),
        ("/ValueSet/$expand?count=-1".to_owned(), 400, "invalid", "must be an integer from 0"),
        (format!("/ValueSet/$expand?filter={long}"), 400, "invalid", "at most 500 bytes"),
        ("/ConceptMap/$closure?code=1".to_owned(), 404, "not-supported", "the operations are CodeSystem/$lookup"),
        ("/ConceptMap/$translate?code=1".to_owned(), 400, "invalid", "`system` is missing"),
        (
            format!("/ConceptMap/$translate?system={SYSTEM}&code=1&reverse=true"),
            400,
            "not-supported",
            "`reverse` is not supported",
        ),
        ("/CodeSystem/lookup".to_owned(), 404, "not-supported", "not supported"),
        ("/Patient".to_owned(), 404, "not-supported", "see /fhir/metadata"),
        (String::new(), 404, "not-supported", "see /fhir/metadata"),
    ];
    let check = |path: &str, answer: &Value, code: &str, expected: &str| {
        let issue = &answer["issue"][0];
        assert_eq!(
            (&answer["resourceType"], &issue["code"]),
            (&json!("OperationOutcome"), &json!(code)),
            "{path}: {answer}"
        );
        let text = issue["diagnostics"].as_str().unwrap();
        assert!(text.contains(expected) && text.len() < 500, "{path}: {text}");
    };
    for (path, status, code, expected) in cases {
        let (got, answer) = ask(&server, Method::GET, &path, Body::empty()).await;
        assert_eq!(got, status, "{path}: {answer}");
        check(&path, &answer, code, expected);
    }
    for (body, expected) in [
        ("{", "invalid JSON"),
        ("[]", "not a Parameters resource"),
        ("{\"resourceType\": \"Parameters\", \"parameter\": 7}", "`parameter` must be a list"),
        ("{\"resourceType\": \"Parameters\", \"parameter\": [7]}", "has no `name`"),
        (
            "{\"resourceType\": \"Parameters\", \"parameter\": [{\"name\": \"code\"}]}",
            "the parameter `code` has no value",
        ),
        (
            "{\"resourceType\": \"Parameters\", \"parameter\": [{\"name\": \"coding\", \"valueCoding\": {}}]}",
            "has no `system`",
        ),
    ] {
        let (status, answer) = ask(&server, Method::POST, "/CodeSystem/$lookup", body).await;
        assert_eq!(status, 400, "{body}: {answer}");
        check(body, &answer, "invalid", expected);
    }
    let (status, _) = ask(&server, Method::POST, "/CodeSystem/$lookup", "x".repeat((1 << 20) + 1)).await;
    assert_eq!(status, 413);
    server.app.put_admin("ada", "correct horse").unwrap();
    let (status, answer) = ask(&server, Method::GET, "/metadata", Body::empty()).await;
    assert_eq!(status, 401);
    check("/metadata", &answer, "login", "sign in first");
}

/// Two concepts that refer to other systems.
fn with_xrefs() -> KnowledgeBase {
    let mut builder = KnowledgeBaseBuilder::new();
    let xref = |id: &str, predicate| XrefRecord { id: id.to_owned(), predicate };
    for (id, name, xrefs) in [
        ("MONDO:1", "Gout", vec![xref("ICD10CM:M10", Predicate::Exact), xref("UMLS_CUI:C0018099", Predicate::Xref)]),
        ("MONDO:2", "Chronic gout", vec![xref("ICD10CM:M10", Predicate::Broad), xref("SCTID:7", Predicate::Exact)]),
    ] {
        let names = vec![NameRecord { text: name.to_owned(), scope: Scope::Preferred }];
        let alternative_ids = if id == "MONDO:1" { vec!["MONDO:3".to_owned()] } else { Vec::new() };
        builder
            .add(ConceptRecord { id: id.to_owned(), names, xrefs, alternative_ids, ..ConceptRecord::default() })
            .unwrap();
    }
    let system = CodeSystemRecord { prefix: "MONDO".to_owned(), version: "2026-05".to_owned(), ..Default::default() };
    let meta = Meta { name: "test".to_owned(), code_systems: vec![system], ..Meta::default() };
    KnowledgeBase::from_vec(builder.to_bytes(meta).unwrap(), "test").unwrap()
}

#[tokio::test]
async fn codes_are_translated_by_cross_references() {
    let engine = || RuleEngine::on(with_xrefs(), "first", Vec::new());
    let server = Server::in_temporary_folder(|folder| Server::with(engine(), None, config(folder)));
    let mondo = "http://purl.obolibrary.org/obo/mondo.owl";
    let icd = "http://hl7.org/fhir/sid/icd-10-cm";
    let check = async |query: &str, expected: &[&str]| {
        let answer = get(&server, &format!("/ConceptMap/$translate?{query}")).await;
        let matches: Vec<String> = values(&answer, "match")
            .iter()
            .map(|one| {
                let coding = &one[1]["valueCoding"];
                format!(
                    "{} {} {}",
                    one[0]["valueCode"].as_str().unwrap(),
                    coding["system"].as_str().unwrap(),
                    coding["code"].as_str().unwrap()
                )
            })
            .collect();
        assert_eq!(matches, expected, "{query}: {answer}");
        assert_eq!(values(&answer, "result"), [json!(!expected.is_empty())], "{query}: {answer}");
    };
    let to_icd = format!("equivalent {icd} M10");
    check(&format!("system={mondo}&code=MONDO:1&targetsystem={icd}"), &[&to_icd]).await;
    check(&format!("system={mondo}&code=MONDO:1&target={icd}%3Ffhir_vs"), &[&to_icd]).await;
    let umls = "relatedto http://terminology.hl7.org/CodeSystem/umls C0018099";
    check(&format!("system={mondo}&code=MONDO:1"), &[&to_icd, umls]).await;
    check(&format!("system={mondo}&code=MONDO:2&targetsystem={icd}"), &[&format!("wider {icd} M10")]).await;
    let both = [format!("equivalent {mondo} MONDO:1"), format!("narrower {mondo} MONDO:2")];
    check(&format!("system={icd}&code=M10&targetsystem={mondo}"), &[&both[0], &both[1]]).await;
    check(
        &format!("system={icd}&code=M10&targetsystem=http://snomed.info/sct"),
        &["narrower http://snomed.info/sct 7"],
    )
    .await;
    check(&format!("system={mondo}&code=MONDO:1&targetsystem=http://loinc.org"), &[]).await;
    check(&format!("system={mondo}&code=MONDO:9"), &[]).await;
    let found = get(&server, &format!("/CodeSystem/$lookup?system={mondo}&code=MONDO:1")).await;
    assert_eq!(values(&found, "version"), [json!("2026-05")]);
    let capabilities = get(&server, "/metadata?mode=terminology").await;
    assert_eq!(capabilities["codeSystem"][0]["version"][0]["code"], "2026-05");
}

#[tokio::test]
async fn versions_obsolete_codes_and_missing_hierarchies_are_told() {
    let engine = || RuleEngine::on(with_xrefs(), "first", Vec::new());
    let server = Server::in_temporary_folder(|folder| Server::with(engine(), None, config(folder)));
    let mondo = "http://purl.obolibrary.org/obo/mondo.owl";
    let validate = async |query: &str| {
        let answer = get(&server, &format!("/CodeSystem/$validate-code?url={mondo}&{query}")).await;
        (values(&answer, "result")[0] == true, values(&answer, "message").first().cloned())
    };
    assert_eq!(validate("code=MONDO:1&version=2026-05").await, (true, None));
    let other = "version `1999` not found: this terminology has release 2026-05";
    assert_eq!(validate("code=MONDO:1&version=1999").await, (false, Some(json!(other))));
    let replaced = "the code is obsolete and was replaced by `MONDO:1`";
    assert_eq!(validate("code=MONDO:3").await, (true, Some(json!(replaced))));
    let lookup = format!("/CodeSystem/$lookup?system={mondo}");
    let (status, answer) =
        ask(&server, Method::GET, &format!("{lookup}&code=MONDO:1&version=1999"), Body::empty()).await;
    assert_eq!((status, &answer["issue"][0]["code"]), (404, &json!("not-found")));
    // The version of a coding, and a terminology without a release.
    let coding = json!({"system": mondo, "code": "MONDO:1", "version": "1999"});
    let body = json!({"resourceType": "Parameters", "parameter": [{"name": "coding", "valueCoding": coding}]});
    let (_, answer) = ask(&server, Method::POST, "/CodeSystem/$validate-code", body.to_string()).await;
    assert_eq!((&values(&answer, "result")[0], &values(&answer, "message")[0]), (&json!(false), &json!(other)));
    let plain = Server::temporary();
    let path = format!("/CodeSystem/$lookup?system={SYSTEM}&code=1&version=1999");
    let (status, answer) = ask(&plain, Method::GET, &path, Body::empty()).await;
    let text = answer["issue"][0]["diagnostics"].as_str().unwrap();
    assert!(status == 404 && text.contains("the release of this terminology is not known"), "{status} {text}");
    // Current codes are not told to be obsolete, in whatever case and form they are written.
    for code in ["MONDO:2", "2"] {
        assert_eq!(validate(&format!("code={code}")).await, (true, None), "{code}");
    }
    let properties = values(&get(&server, &format!("{lookup}&code=MONDO:3")).await, "property");
    for (code, value) in [
        ("inactive", json!({"name": "value", "valueBoolean": true})),
        ("replaced-by", json!({"name": "value", "valueCode": "MONDO:1"})),
    ] {
        assert!(properties.contains(&json!([{"name": "code", "valueCode": code}, value])), "{properties:?}");
    }
    let path = format!("/CodeSystem/$subsumes?system={mondo}&codeA=MONDO:1&codeB=MONDO:2");
    let (status, answer) = ask(&server, Method::GET, &path, Body::empty()).await;
    assert_eq!((status, &answer["issue"][0]["code"]), (400, &json!("not-supported")));
    let terminology = get(&server, "/metadata?mode=terminology").await;
    assert_eq!(terminology["codeSystem"][0]["subsumption"], false);
}

#[tokio::test]
async fn resources_are_json_only() {
    let server = Server::temporary();
    let check = async |accept: &str, parameter: &str, expected: u16| {
        let client = server.with_headers(&[("accept", accept)]);
        for path in ["/fhir/metadata?", "/fhir/ValueSet/$expand?count=1&"] {
            let response = client.send(Method::GET, &format!("{path}{parameter}"), Body::empty()).await;
            let status = response.status().as_u16();
            assert_eq!(status, expected, "{accept} {parameter} {path}");
            let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            let resource: Value = serde_json::from_slice(&bytes).unwrap();
            assert_eq!(resource["resourceType"] == "OperationOutcome", status == 406, "{resource}");
        }
    };
    check("application/fhir+xml", "", 406).await;
    check("application/fhir+xml, application/fhir+json;q=0", "", 406).await;
    check("application/fhir+xml, */*;q=0.1", "", 200).await;
    check("application/fhir+xml, Application/JSON", "", 200).await;
    check("text/json", "", 200).await;
    check("application/*", "", 200).await;
    check("*/*", "_format=xml", 406).await;
    check("application/fhir+xml", "_format=json", 200).await;
}
