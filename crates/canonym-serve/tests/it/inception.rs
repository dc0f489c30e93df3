//! The external recommenders of INCEpTION.

use axum::body::{Body, to_bytes};
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::Server;

fn request(text: &str) -> Value {
    let xmi = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><xmi:XMI xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore" xmi:version="2.0"><cas:NULL xmi:id="0"/><cas:Sofa xmi:id="1" sofaNum="1" sofaID="_InitialView" mimeType="text" sofaString="{text}"/><cas:View sofa="1" members=""/></xmi:XMI>"#
    );
    json!({
        "metadata": {
            "layer": "webanno.custom.Sign", "feature": "identifier", "projectId": 1, "anchoringMode": "tokens",
            "crossSentence": false,
        },
        "document": {"xmi": xmi, "documentId": 7, "userId": "ann"},
        "typeSystem": "<featureDescription><name>identifier_score</name></featureDescription>",
    })
}

async fn ask(server: &Server, path: &str, body: &Value) -> (u16, String) {
    // INCEpTION sends no header of ours.
    let client = server.with_headers(&[("content-type", "application/json")]);
    let response = client.send(Method::POST, path, body.to_string()).await;
    let status = response.status().as_u16();
    (status, String::from_utf8(to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap())
}

#[tokio::test]
async fn mentions_are_suggested_in_the_document() {
    let server = Server::temporary();
    let body = request("🧪 delirium, &quot;syndrome&quot;");
    for (label, expected) in [("id", "T:2"), ("name", "Delirium"), ("type", "Disorder")] {
        let (status, answer) = ask(&server, &format!("/inception/{label}/predict"), &body).await;
        assert_eq!(status, 200, "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let xmi = answer["document"].as_str().unwrap();
        // Offsets count UTF-16 code units.
        let suggested = format!(
            r#"xmi:id="2" sofa="1" begin="3" end="11" identifier="{expected}" inception_internal_predicted="true""#
        );
        assert!(xmi.contains(&suggested) && xmi.contains("identifier_score=\"0."), "{xmi}");
        assert!(
            xmi.contains(r#"xmlns:canonym="http:///webanno/custom.ecore""#) && xmi.contains(r#"members="2"#),
            "{xmi}"
        );
    }
    assert_eq!(ask(&server, "/inception/id/train", &json!({"documents": []})).await, (204, String::new()));
}

#[tokio::test]
async fn wrong_requests_are_errors_with_a_fix() {
    let server = Server::configured(|config| config.max_text_bytes = 100);
    let mut broken = request("x");
    broken["document"]["xmi"] = json!("<xmi");
    let mut unnamed = request("x");
    unnamed["metadata"]["layer"] = json!("a\"b");
    let cases = [
        ("/inception/nonsense/predict", request("x"), 404, "/inception/id"),
        ("/inception/nonsense/train", json!({}), 404, "/inception/id"),
        ("/inception/id/predict", json!({}), 400, "metadata"),
        ("/inception/id/predict", broken, 400, "XMI"),
        ("/inception/id/predict", unnamed, 400, "layer"),
        ("/inception/id/predict", request(&"x".repeat(101)), 413, "at most 100 bytes"),
    ];
    for (path, body, status, told) in cases {
        let (got, answer) = ask(&server, path, &body).await;
        assert!(got == status && answer.contains(told), "{path}: {got} {answer}");
    }
    let plain = server.send(Method::GET, "/inception/id/predict", Body::empty()).await;
    assert_eq!(plain.status(), 405);
}
