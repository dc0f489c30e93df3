//! The external recommender of INCEpTION.

use axum::body::{Body, to_bytes};
use axum::http::Method;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::support::Server;

/// A document with a text, its tokens and one sentence.
fn xmi(text: &str) -> String {
    let units = |at: usize| text[..at].encode_utf16().count();
    let (mut tokens, mut at) = (String::new(), 0);
    for (id, word) in (10..).zip(text.split(' ')) {
        let (begin, end) = (units(at), units(at + word.len()));
        tokens += &format!(r#"<type5:Token xmi:id="{id}" sofa="1" begin="{begin}" end="{end}"/>"#);
        at += word.len() + 1;
    }
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?><xmi:XMI xmlns:xmi="http://www.omg.org/XMI" xmlns:cas="http:///uima/cas.ecore" xmlns:type5="http:///de/tudarmstadt/ukp/dkpro/core/api/segmentation/type.ecore" xmi:version="2.0"><cas:NULL xmi:id="0"/>{tokens}<cas:Sofa xmi:id="1" sofaNum="1" sofaID="_InitialView" mimeType="text" sofaString="{text}"/><cas:View sofa="1" members="10 11"/></xmi:XMI>"#
    )
}

async fn ask(server: &Server, path: &str, body: &Value) -> (u16, Value) {
    let client = server.with_headers(&[("accept", "application/json")]);
    let response = client.send(Method::POST, &format!("/inception/{path}"), Body::from(body.to_string())).await;
    let status = response.status().as_u16();
    (status, serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap())
}

fn request(text: &str, mode: &str) -> Value {
    json!({
        "metadata": {"layer": "webanno.custom.Finding", "feature": "value", "projectId": 1, "anchoringMode": mode, "crossSentence": false},
        "document": {"xmi": xmi(text), "documentId": 1, "userId": "ada"},
        "typeSystem": "<typeSystemDescription/>",
    })
}

async fn check(path: &str, text: &str, mode: &str, expected: Expect) {
    let server = Server::temporary();
    let (status, answer) = ask(&server, path, &request(text, mode)).await;
    assert_eq!(status, 200, "{answer}");
    let document = answer["document"].as_str().unwrap();
    let at = document.find("<canonym:").unwrap_or(document.find("<cas:View").unwrap());
    expected.assert_eq(&(document[at..].replace("/><", "/>\n<") + "\n"));
}

#[tokio::test]
async fn mentions_become_annotations_of_the_layer() {
    check("id/predict", "🧪 A delirium & pepcid.", "characters", expect![]).await;
    check("iri/predict", "🧪 A delirium & pepcid.", "tokens", expect![]).await;
    check("type/predict", "A delirium.", "singleToken", expect![]).await;
    check("name/predict", "Nothing here.", "tokens", expect![]).await;
}

#[tokio::test]
async fn malformed_requests_and_training_are_refused() {
    let server = Server::temporary();
    let good = request("A delirium.", "tokens");
    let (status, answer) = ask(&server, "id/train", &good).await;
    assert_eq!(
        (status, &answer["error"]["message"]),
        (501, &json!("this recommender is not trained by INCEpTION")),
        "{answer}"
    );
    let (status, _) = ask(&server, "concept/predict", &good).await;
    assert_eq!(status, 404);
    let with = |pointer: &str, value: Value| {
        let mut body = good.clone();
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    for (body, expected) in [
        (json!({}), "metadata"),
        (with("/document/xmi", json!("<xmi:XMI")), "document.xmi"),
        (with("/document/xmi", json!("")), "document.xmi"),
        (with("/metadata/layer", json!("a\"><script>")), "no name of a layer"),
        (with("/metadata/feature", json!("x y")), "no name of a layer or feature"),
    ] {
        let (status, answer) = ask(&server, "id/predict", &body).await;
        assert!(status == 400 && answer.to_string().contains(expected), "{status} {answer}");
    }
}
