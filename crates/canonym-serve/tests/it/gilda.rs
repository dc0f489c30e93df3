//! The endpoints of Gilda's web service.

use axum::body::{Body, to_bytes};
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::Server;

async fn ask(server: &Server, path: &str, body: &Value) -> Value {
    // Clients of Gilda send no header of ours.
    let client = server.with_headers(&[("content-type", "application/json")]);
    let response = client.send(Method::POST, path, body.to_string()).await;
    assert_eq!(response.status(), 200, "{path} {body}");
    serde_json::from_slice(&to_bytes(response.into_body(), usize::MAX).await.unwrap()).unwrap()
}

#[tokio::test]
async fn names_are_grounded_as_gilda_answers() {
    let server = Server::temporary();
    let body = json!({"text": "acute confusional state", "context": "unrelated", "organisms": ["9606"], "other": 1});
    let expected = json!([{
        "term": {
            "norm_text": "acute confusional state", "text": "acute confusional state", "db": "T", "id": "2",
            "entry_name": "Delirium", "status": "synonym", "source": "test",
        },
        "url": "https://bioregistry.io/t:2",
        "score": 0.9,
        "match": {
            "query": "acute confusional state", "ref": "acute confusional state", "exact": true,
            "space_mismatch": false, "dash_mismatches": [], "cap_combos": [],
        },
    }]);
    assert_eq!(ask(&server, "/ground", &body).await, expected);
    assert_eq!(ask(&server, "/api/v1/ground", &body).await, expected);
    assert_eq!(ask(&server, "/ground", &json!({"text": "zzzz"})).await, json!([]));
    assert_eq!(ask(&server, "/ground", &json!({"text": "Delirium", "namespaces": ["HGNC"]})).await, json!([]));
    // In its context a name is a given mention.
    let found = ask(&server, "/ground", &json!({"text": "confused", "context": "She was confused."})).await;
    assert_eq!((&found[0]["term"]["id"], &found[0]["match"]["exact"]), (&json!("4"), &json!(false)));
    let lists = ask(&server, "/ground_multi", &json!([{"text": "pepcid"}, {"text": "zzzz"}])).await;
    assert_eq!((&lists[0][0]["term"]["entry_name"], &lists[1]), (&json!("Famotidine"), &json!([])));
}

#[tokio::test]
async fn texts_are_annotated_as_gilda_answers() {
    let server = Server::temporary();
    let found = ask(&server, "/annotate", &json!({"text": "🧪 delirium, syndrome", "organisms": null})).await;
    assert_eq!(found.as_array().unwrap().len(), 1);
    let mention = &found[0];
    assert_eq!((&mention["text"], &mention["start"], &mention["end"]), (&json!("delirium"), &json!(2), &json!(10)));
    let ids: Vec<&Value> = mention["matches"].as_array().unwrap().iter().map(|one| &one["term"]["id"]).collect();
    assert_eq!(ids, ["2", "3"]);
}

#[tokio::test]
async fn hostile_requests_of_gilda_clients_are_errors() {
    let server = Server::configured(|config| config.max_text_bytes = 1000);
    let many = Value::Array(vec![json!({"text": "x"}); 1001]);
    let long = "x".repeat(1001);
    for (path, body, status) in [
        ("/ground", "{".to_owned(), 400),
        ("/ground", "{}".to_owned(), 400),
        ("/ground", "[]".to_owned(), 400),
        ("/ground", json!({"text": 7}).to_string(), 400),
        ("/ground", json!({"text": long}).to_string(), 413),
        ("/ground", json!({"text": "x", "context": long}).to_string(), 413),
        ("/ground_multi", json!({"text": "x"}).to_string(), 400),
        ("/ground_multi", many.to_string(), 400),
        ("/annotate", json!({"text": ["x"]}).to_string(), 400),
        ("/annotate", json!({"text": long}).to_string(), 413),
    ] {
        assert_eq!(server.fail(Method::POST, path, body.clone()).await.0, status, "{path} {body:.80}");
        assert_eq!(server.send(Method::POST, path, body).await.status(), status);
    }
    // Other methods get the application.
    assert_eq!(server.send(Method::GET, "/annotate", Body::empty()).await.status(), 200);
    server.app.put_admin("ada", "correct horse").unwrap();
    for path in ["/ground", "/annotate"] {
        assert_eq!(server.send(Method::POST, path, "{\"text\": \"x\"}").await.status(), 401);
    }
    let page = server.with_headers(&[("origin", "https://evil.example")]);
    assert_eq!(page.send(Method::POST, "/ground", "{\"text\": \"x\"}").await.status(), 403);
}
