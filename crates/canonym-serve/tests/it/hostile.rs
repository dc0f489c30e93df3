//! Invalid requests get an error with a hint and change nothing.

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::Server;

async fn import(server: &Server, query: &str, body: impl Into<axum::body::Body>) -> (u16, Value) {
    let project = server.post("/projects", json!({"name": "Test"})).await["id"].as_i64().unwrap();
    let answer = server.fail(Method::POST, &format!("/projects/{project}/import?{query}"), body).await;
    assert_eq!(server.get(&format!("/projects/{project}")).await["n_documents"], 0);
    assert!(answer.1["error"]["hint"].is_string(), "{}", answer.1);
    answer
}

#[tokio::test]
async fn broken_files_import_nothing() {
    let server = Server::temporary();
    assert_eq!(import(&server, "", "").await.0, 422);
    assert_eq!(import(&server, "format=text", vec![0xff, 0xfe, 0x00]).await.0, 422);
    assert_eq!(import(&server, "format=pubtator", "1|t|Pain.\n1|a|\n1\t?\t9\tPain\tX\tT:2\n\n").await.0, 422);
    assert_eq!(import(&server, "format=jsonl", "{\"id\": 1\n").await.0, 422);
    assert_eq!(import(&server, "format=jsonl", "[".repeat(100_000)).await.0, 422);
    assert_eq!(import(&server, "format=bioc-xml", "<collection><document>").await.0, 422);
    assert_eq!(import(&server, "format=bioc-json", "{\"documents\": 7}").await.0, 422);
    assert_eq!(import(&server, "format=texoo", "{}").await.0, 422);
    assert_eq!(import(&server, "format=nothing", "x").await.0, 400);
    assert_eq!(import(&server, "", "   \n").await.0, 422);
    for packed in [&b"PK\x03\x04rest"[..], b"\x1f\x8brest", b"\x28\xb5\x2f\xfdrest"] {
        assert_eq!(import(&server, "filename=a.zip", packed.to_vec()).await.0, 422);
    }
}

#[tokio::test]
async fn bad_documents_are_skipped_and_reported() {
    let (server, project, _) = Server::with_corpus().await;
    let lines = "{\"id\":\"1\",\"text\":\"Again.\"}\n{\"id\":\"9\",\"text\":\"New.\"}\nnonsense\n{\"id\":\"10\",\"text\":\"Newer.\",\"annotations\":[{\"spans\":[[0,99]]}]}\n";
    let response =
        server.send(Method::POST, &format!("/api/v1/projects/{project}/import?filename=x.jsonl"), lines).await;
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let report: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!((&report["n_documents"], &report["n_skipped_documents"]), (&json!(2), &json!(2)));
    assert_eq!(report["n_skipped_annotations"], 1);
    let problems = report["problems"].as_array().unwrap();
    assert_eq!(problems[0]["document"], "1");
    assert_eq!(problems[1]["line"], 3);
    assert_eq!(problems[2]["line"], 4);
    assert!(problems[0]["hint"].as_str().unwrap().contains("under a new ID"));
}

#[tokio::test]
async fn file_names_are_never_used_as_paths() {
    let server = Server::temporary();
    let project = server.post("/projects", json!({"name": "../../etc"})).await["id"].as_i64().unwrap();
    let path = format!("/projects/{project}/import?format=text&filename=..%2F..%2F..%2Fetc%2Fpasswd.txt");
    let response = server.send(Method::POST, &format!("/api/v1{path}"), "Pain.").await;
    assert!(response.status().is_success());
    let list = server.get(&format!("/projects/{project}/documents")).await;
    assert_eq!(list["documents"][0]["external_id"], "passwd");
    let export = server.send(Method::GET, &format!("/api/v1/projects/{project}/export?format=jsonl"), "").await;
    assert_eq!(export.headers()["content-disposition"], "attachment; filename=\"------etc.jsonl\"");
    for path in ["/..%2f..%2fCargo.toml", "/assets/..%2f..%2fCargo.toml", "/api/v1/..%2fhealth", "/no/such/file.js"] {
        let response = server.send(Method::GET, path, "").await;
        assert_eq!(response.status(), 404, "{path}");
    }
    // Paths of the application that are not files get its start page.
    let page = server.send(Method::GET, "/projects/7", "").await;
    assert_eq!(
        (page.status().as_u16(), page.headers()["content-type"].to_str().unwrap()),
        (200, "text/html; charset=utf-8")
    );
}

#[tokio::test]
async fn invalid_offsets_are_rejected() {
    let (server, _, [id, ..]) = Server::with_corpus().await;
    let path = format!("/documents/{id}/decisions");
    let mut bodies = Vec::new();
    for spans in [
        json!([]),
        json!([[3, 3]]),
        json!([[5, 2]]),
        json!([[0, 10_000]]),
        json!([[0, 4], [2, 6]]),
        json!([[-1, 2]]),
        json!("0-4"),
        json!([[0, 18_446_744_073_709_551_615_u64]]),
    ] {
        bodies.push(json!({"decisions": [{"kind": "add", "spans": spans}]}).to_string());
    }
    for decision in [
        json!({"kind": "add", "spans": [[0, 1]], "concept": "NO:1"}),
        json!({"kind": "add", "spans": [[0, 1]], "concept": "T:2", "is_nil": true}),
        json!({"kind": "explode"}),
        json!({"kind": "type", "mark": 1, "type": "a\nb"}),
        json!({}),
    ] {
        bodies.push(json!({"decisions": [decision]}).to_string());
    }
    bodies.extend(
        ["", "{", "[]", "null", "{\"decisions\": 1}", "{\"decisions\": [], \"client_id\": \"\"}"].map(str::to_owned),
    );
    bodies.push("[".repeat(10_000));
    let before = server.document(id).await;
    for body in bodies {
        let (status, _) = server.fail(Method::POST, &path, body.clone()).await;
        assert_eq!(status, 400, "{body}");
    }
    assert_eq!(server.document(id).await, before);
    for query in ["", "?start=1", "?start=5&end=2", "?start=0&end=9999", "?start=-1&end=2", "?mark=x"] {
        assert_eq!(server.fail(Method::GET, &format!("/documents/{id}/candidates{query}"), "").await.0, 400, "{query}");
    }
}

#[tokio::test]
async fn unknown_ids_return_404() {
    let (server, project, _) = Server::with_corpus().await;
    let gets = [
        "/projects/99",
        "/projects/x",
        "/projects/99/documents",
        "/projects/99/queue",
        "/projects/99/export",
        "/projects/99/stats",
        "/projects/99/jobs",
        "/projects/99/changes",
        "/documents/99",
        "/documents/99999999999999999999",
        "/documents/99/history",
        "/documents/99/candidates?start=0&end=1",
        "/jobs/99",
        "/kb/concepts/T:99",
        "/kb/concepts/%F0%9F%A7%AA",
        "/nothing",
    ];
    for path in gets {
        assert_eq!(server.fail(Method::GET, path, "").await.0, 404, "{path}");
    }
    let posts = [
        ("/documents/99/decisions", json!({"decisions": []})),
        ("/documents/99/undo", json!({})),
        ("/documents/99/comments", json!({"text": "x"})),
        ("/jobs/99/cancel", json!({})),
        ("/projects/99/import?format=text", json!({})),
        ("/projects/99/jobs", json!({"kind": "predict"})),
    ];
    for (path, body) in posts {
        assert_eq!(server.fail(Method::POST, path, body.to_string()).await.0, 404, "{path}");
    }
    let alike = json!({"mark": 99, "scope": "project"}).to_string();
    assert_eq!(server.fail(Method::POST, &format!("/projects/{project}/identical-mentions"), alike).await.0, 404);
    assert_eq!(server.fail(Method::POST, &format!("/projects/{project}/models/99/use"), "").await.0, 404);
    for path in [
        "/documents?cursor=x",
        "/documents?limit=0",
        "/documents?state=odd",
        "/queue?strategy=odd",
        "/export?format=odd",
        "/export?sources=odd",
    ] {
        assert_eq!(server.fail(Method::GET, &format!("/projects/{project}{path}"), "").await.0, 400, "{path}");
    }
    assert_eq!(server.send(Method::DELETE, "/api/v1/projects/1/queue", "").await.status(), 405);
}

#[tokio::test]
async fn large_bodies_return_413() {
    let server = Server::configured(|config| (config.max_link_bytes, config.max_upload_bytes) = (1000, 2000));
    assert_eq!(server.fail(Method::POST, "/link", json!({"text": "x".repeat(2000)}).to_string()).await.0, 413);
    let project = server.post("/projects", json!({"name": "Test"})).await["id"].as_i64().unwrap();
    let path = format!("/projects/{project}/import?format=text");
    assert_eq!(server.fail(Method::POST, &path, "x".repeat(3000)).await.0, 413);
    assert_eq!(server.fail(Method::POST, "/projects", "x".repeat(2 << 20)).await.0, 413);
    assert_eq!(server.fail(Method::GET, &format!("/kb/search?q={}", "x".repeat(600)), "").await.0, 400);
}

#[tokio::test]
async fn model_panic_fails_only_its_request() {
    let server = Server::temporary();
    let response = server.send(Method::POST, "/api/v1/link", json!({"text": "PANIC"}).to_string()).await;
    assert_eq!(response.status(), 500);
    let linked = server.post("/link", json!({"text": "delirium"})).await;
    assert_eq!(linked["annotations"][0]["candidates"][0]["id"], "T:2");
    // In a job it is the reason for the failure.
    let project = server.project("1|t|PANIC\n1|a|\n\n").await;
    assert_eq!(server.predict(project).await["state"], "FAILED");
}
