//! The external recommender of INCEpTION.

use axum::body::{Body, to_bytes};
use axum::http::Method;
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

/// The elements that were written, and the members of the view.
async fn predicted(path: &str, text: &str, mode: &str) -> (Vec<String>, String) {
    let server = Server::temporary();
    let (status, answer) = ask(&server, path, &request(text, mode)).await;
    assert_eq!(status, 200, "{answer}");
    let document = answer["document"].as_str().unwrap();
    let elements = document.match_indices("<canonym:Finding ").map(|(at, _)| {
        let tag = document[at..].split("/>").next().unwrap();
        tag.split(" sofa=\"1\" ").nth(1).unwrap().to_owned()
    });
    let members = document.split("members=\"").nth(1).unwrap().split('"').next().unwrap();
    (elements.collect(), members.to_owned())
}

#[tokio::test]
async fn mentions_become_annotations_of_the_layer() {
    let text = "🧪 A delirium & pepcid.";
    let (found, members) = predicted("id/predict", text, "characters").await;
    assert_eq!(members, "10 11 15 16");
    let delirium = r#"begin="5" end="13" value="T:2" value_score="0.9" inception_internal_predicted="true" value_score_explanation="Delirium (T:2)""#;
    assert_eq!(found[0], delirium);
    assert!(found[1].starts_with(r#"begin="16" end="22" value="T:5" "#), "{}", found[1]);
    let (found, _) = predicted("iri/predict", text, "tokens").await;
    // The token ends behind the full stop.
    assert!(found[1].starts_with(r#"begin="16" end="23" value="urn:canonym:T:5" "#), "{}", found[1]);
    let (found, _) = predicted("type/predict", "A delirium.", "singleToken").await;
    assert!(found[0].starts_with(r#"begin="2" end="11" value="Disorder" "#), "{}", found[0]);
    let (found, _) = predicted("name/predict", "Nothing here.", "tokens").await;
    assert!(found.is_empty());
    assert!(predicted("id/predict", text, "sentences").await.0.is_empty());
}

#[tokio::test]
async fn features_that_the_type_system_lacks_are_left_out() {
    let server = Server::temporary();
    let feature = |name: &str| format!("<featureDescription><name>{name}</name></featureDescription>");
    let features = feature("value") + &feature("value_score");
    let layer = format!("<name>webanno.custom.Finding</name><features>{features}</features>");
    let mut body = request("A delirium.", "characters");
    body["typeSystem"] = json!(format!(
        "<typeSystemDescription><types><typeDescription>{layer}</typeDescription></types></typeSystemDescription>"
    ));
    let (status, answer) = ask(&server, "id/predict", &body).await;
    assert_eq!(status, 200, "{answer}");
    let document = answer["document"].as_str().unwrap();
    assert!(document.contains(r#"value="T:2" value_score="0.9"/>"#), "{document}");
    body["typeSystem"] = json!("<types>");
    let (status, answer) = ask(&server, "id/predict", &body).await;
    assert!(status == 400 && answer.to_string().contains("typeSystem"), "{status} {answer}");
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
        (with("/metadata/layer", json!("a\"><script>")), "invalid name of a layer"),
        (with("/metadata/feature", json!("x y")), "invalid name of a layer or feature"),
    ] {
        let (status, answer) = ask(&server, "id/predict", &body).await;
        assert!(status == 400 && answer.to_string().contains(expected), "{status} {answer}");
    }
}
