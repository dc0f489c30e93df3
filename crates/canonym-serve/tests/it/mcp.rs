//! The Model Context Protocol over HTTP.

use axum::body::to_bytes;
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::Server;

const JSON: (&str, &str) = ("content-type", "application/json");
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
const VERSION: (&str, &str) = ("mcp-protocol-version", "2025-06-18");

/// The status and the answer to a message.
async fn ask(server: &Server, message: impl Into<String>) -> (u16, Value) {
    let response = server.send(Method::POST, "/mcp", message.into()).await;
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let answer = serde_json::from_slice(&bytes);
    (status, answer.unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned())))
}

fn call(name: &str, arguments: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
        .to_string()
}

#[tokio::test]
async fn tools_answer_over_http_without_sessions() {
    let server = Server::temporary().with_headers(&[JSON, ACCEPT, VERSION]);
    let (status, answer) = ask(&server, call("annotate_text", json!({"text": "🧪 No delirium."}))).await;
    assert_eq!(status, 200, "{answer}");
    let mention = &answer["result"]["structuredContent"]["mentions"][0];
    assert_eq!((&mention["status"], &mention["concept"]["id"]), (&json!("match"), &json!("T:2")));
    assert_eq!((&mention["spans"], &mention["context"]), (&json!([[5, 13]]), &json!(["negated"])));
    let (_, answer) = ask(&server, call("ground_terms", json!({"terms": ["zzzz"]}))).await;
    let expected = json!([{"term": "zzzz", "status": "no_match", "concept": null, "candidates": []}]);
    assert_eq!(answer["result"]["structuredContent"]["results"], expected);
}

#[tokio::test]
async fn access_to_the_protocol_is_that_of_the_api() {
    let server = Server::temporary();
    server.app.put_admin("ada", "correct horse").unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let stranger = server.with_headers(&[JSON, ACCEPT, VERSION]);
    assert_eq!(ask(&stranger, list.clone()).await.0, 401);
    for origin in [("host", "evil.example"), ("origin", "https://evil.example")] {
        let page = server.with_headers(&[JSON, ACCEPT, VERSION, origin]);
        assert_eq!(ask(&page, list.clone()).await.0, 403);
    }
}

#[tokio::test]
async fn hostile_messages_over_http_are_errors() {
    let server = Server::configured(|config| config.max_link_bytes = 4096);
    let server = server.with_headers(&[JSON, ACCEPT, VERSION]);
    for message in ["", "{", "[]", "7", "{\"jsonrpc\": \"1.0\", \"id\": 1, \"method\": \"tools/list\"}"] {
        let (status, answer) = ask(&server, message).await;
        assert!((400..500).contains(&status), "{message}: {status} {answer}");
    }
    assert_eq!(ask(&server, call("annotate_text", json!({"text": "x".repeat(5000)}))).await.0, 413);
    assert_eq!(server.send(Method::GET, "/mcp", "").await.status(), 405);
}
