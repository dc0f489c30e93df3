//! Linking requests take what the program takes: model, context, filters, given mentions.

use axum::body::to_bytes;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn contexts_are_added_and_mentions_dropped_by_them() {
    let server = Server::temporary();
    let text = "No delirium. She took pepcid.";
    let plain = server.post("/link", json!({"text": text})).await;
    assert!(plain["annotations"][0].get("attributes").is_none());
    let linked = server.post("/link", json!({"text": text, "context": true})).await;
    assert_eq!(linked["annotations"][0]["attributes"], json!({"negation": "negated"}));
    assert!(linked["annotations"][1].get("attributes").is_none());
    let linked = server.post("/link", json!({"text": text, "drop_context": ["negated", "family"]})).await;
    assert_eq!(linked["annotations"].as_array().unwrap().len(), 1);
    assert_eq!(linked["annotations"][0]["text"], "pepcid");
}

#[tokio::test]
async fn given_mentions_are_linked_and_no_others() {
    let server = Server::temporary();
    let mention = json!({"spans": [[5, 7]], "type": "Sign"});
    let linked = server.post("/link", json!({"text": "🧪 e\u{301} ab delirium", "mentions": [mention]})).await;
    let annotations = linked["annotations"].as_array().unwrap();
    assert_eq!(annotations.len(), 1);
    let annotation = &annotations[0];
    assert_eq!(
        (&annotation["text"], &annotation["type"], &annotation["candidates"][0]["id"]),
        (&json!("ab"), &json!("Sign"), &json!("T:4"))
    );
    let body = json!({"documents": [{"text": "delirium", "mentions": []}, {"text": "x y", "mentions": [{"spans": [[2, 3]]}]}]});
    let linked = server.post("/link", body).await;
    assert_eq!(linked["documents"][0]["annotations"], json!([]));
    assert_eq!(linked["documents"][1]["annotations"][0]["text"], "y");
}

#[tokio::test]
async fn wrong_options_are_errors_that_say_what_to_do() {
    let server = Server::temporary();
    let many: Vec<String> = (0..1001).map(|row| format!("T:{row}")).collect();
    let cases = [
        (json!({"drop_context": ["denied"]}), "unknown context `denied`"),
        (json!({"model": "gpt"}), "unknown model `gpt`"),
        (json!({"model": "../../etc/passwd"}), "unknown model `../../etc/passwd`"),
        (json!({"filters": {"only": ["x"]}}), "invalid request: unknown field `only`"),
        (json!({"filters": {"only_under": many}}), "a filter may have at most 1000 entries, not 1001"),
        (json!({"mentions": [{"spans": []}]}), "`spans` is empty"),
        (json!({"mentions": [{"spans": [[0, 99]]}]}), "the span 0..99 is outside the text"),
        (json!({"mentions": [{"spans": [[3, 1]]}]}), "the span 3..1 is empty"),
        (json!({"mentions": [{"start": 1}]}), "unknown field `start`"),
        (json!({"mentions": 7}), "invalid type: integer `7`, expected a sequence"),
    ];
    for (mut body, expected) in cases {
        body["text"] = json!("delirium");
        let (status, answer) = server.fail(Method::POST, "/link", body.to_string()).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(expected), "{expected}: {message}");
        assert!(answer["error"]["hint"].is_string(), "{message}: no hint");
    }
    let mixed = json!({"documents": [{"text": "x", "mentions": []}, {"text": "y"}]});
    assert_eq!(server.fail(Method::POST, "/link", mixed.to_string()).await.0, 400);
    let twice = json!({"documents": [{"text": "x"}], "mentions": []});
    assert_eq!(server.fail(Method::POST, "/link", twice.to_string()).await.0, 400);
    let both = json!({"text": "x", "model": "lexical", "project": server.empty_project().await});
    assert_eq!(server.fail(Method::POST, "/link", both.to_string()).await.0, 400);
    // Its own model may always be named.
    server.post("/link", json!({"text": "x", "model": "first"})).await;
}

#[tokio::test]
async fn streams_take_the_same_options() {
    let server = Server::temporary();
    let stream = async |query: &str, lines: &str| -> Vec<Value> {
        let response = server.send(Method::POST, &format!("/api/v1/link/stream?{query}"), lines.to_owned()).await;
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let rows = stream("drop_context=negated,family", "{\"text\": \"No delirium.\"}\n").await;
    assert_eq!(rows[0]["annotations"], json!([]));
    let lines = "{\"text\": \"ab\", \"mentions\": [{\"spans\": [[0, 2]]}]}\n{\"text\": \"ab\"}\n";
    let rows = stream("given=true", lines).await;
    assert_eq!(rows[0]["annotations"][0]["candidates"][0]["id"], "T:4");
    assert_eq!(rows[1]["error"]["message"], "line 2 has no `mentions`");
    let rows = stream("", lines).await;
    assert_eq!(rows[0]["error"]["message"], "line 1 has `mentions`");
    // Lines are numbered as the client counts them, and no types of the program are named.
    let rows = stream("", "{\"text\": \"ab\"}\n7\n{\"text\": \"ab\",\n{\"txt\": 1}\n").await;
    let message = |row: usize| rows[row]["error"]["message"].as_str().unwrap();
    assert_eq!(message(1), "invalid request in line 2: invalid type: integer `7`, expected an object");
    assert_eq!(message(2), "invalid JSON in line 3, column 14: EOF while parsing a value");
    assert_eq!(message(3), "invalid request in line 4: missing field `text`");
    for query in ["drop_context=denied", "model=gpt", "given=perhaps"] {
        let path = format!("/link/stream?{query}");
        assert_eq!(server.fail(Method::POST, &path, lines).await.0, 400, "{query}");
    }
}
