//! Linking, names, the terminology, and the description of the server.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Method;
use canonym_serve::ServeConfig;
use canonym_serve::batcher::BatcherConfig;
use serde_json::{Value, json};

use crate::support::{CORPUS, RuleEngine, Server, config, rules};

#[tokio::test]
async fn single_text_is_linked_and_invalid_requests_are_rejected() {
    let server = Server::temporary();
    let linked = server.post("/link", json!({"text": "🧪 e\u{301}: delirium"})).await;
    let expected = json!({
        "id": "text",
        "text": "🧪 e\u{301}: delirium",
        "annotations": [{
            "spans": [[6, 14]], "text": "delirium", "type": "Disorder", "score": 0.9, "p_mention": 0.9, "nil": false,
            "candidates": [
                {"id": "T:2", "name": "Delirium", "score": 0.81},
                {"id": "T:3", "name": "Confusion", "score": 0.79},
            ],
        }],
    });
    assert_eq!(linked, expected);
    let linked = server
        .post("/link", json!({"documents": [{"id": "a", "text": "x"}, {"text": "pepcid"}], "explain": true}))
        .await;
    assert_eq!((&linked["documents"][0]["id"], &linked["documents"][1]["id"]), (&json!("a"), &json!("2")));
    for body in [
        json!({}),
        json!({"text": "x", "documents": []}),
        json!({"text": "x", "top_k": 0}),
        json!({"text": "x", "min_score": 2}),
        json!({"text": "x", "typo": 1}),
        json!({"text": 7}),
    ] {
        assert_eq!(server.fail(Method::POST, "/link", body.to_string()).await.0, 400, "{body}");
    }
}

#[tokio::test]
async fn stream_links_each_line_and_reports_errors_in_place() {
    let server = Server::temporary();
    let lines = "{\"id\":\"a\",\"text\":\"delirium\"}\n\nnonsense\n{\"text\":\"pepcid\"}";
    let response = server.send(Method::POST, "/api/v1/link/stream", lines).await;
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!((&rows[0]["id"], &rows[2]["id"]), (&json!("a"), &json!("3")));
    assert_eq!(rows[1]["line"], 2);
    assert_eq!(rows[2]["annotations"][0]["text"], "pepcid");
}

#[tokio::test]
async fn waiting_requests_are_batched_and_a_full_queue_returns_429() {
    let engine = RuleEngine::new("first", rules());
    let server = Server::in_temporary_folder(|folder| {
        let batcher = BatcherConfig { max_requests: 3, ..BatcherConfig::default() };
        Server::with(engine.clone(), None, ServeConfig { batcher, ..config(folder) })
    });
    let server = std::sync::Arc::new(server);
    engine.gate.set(true);
    let ask = |text: &'static str| {
        let server = server.clone();
        tokio::spawn(async move { server.post("/link", json!({"text": text})).await })
    };
    let first = ask("delirium");
    // The first request is being linked once a batch has started.
    while engine.batches.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let others = [ask("pepcid"), ask("confused"), ask("nothing")];
    while server.app.batcher.n_waiting() < 3 {
        tokio::task::yield_now().await;
    }
    let refused = server.send(Method::POST, "/api/v1/link", json!({"text": "x"}).to_string()).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()), (429, "1"));
    engine.gate.set(false);
    assert_eq!(first.await.unwrap()["annotations"][0]["text"], "delirium");
    let mut found = Vec::new();
    for other in others {
        found.push(other.await.unwrap()["annotations"][0]["text"].clone());
    }
    assert_eq!(found, [json!("pepcid"), json!("confused"), Value::Null]);
    assert_eq!(*engine.batches.lock().unwrap(), [1, 3]);
}

#[tokio::test(start_paused = true)]
async fn slow_request_times_out() {
    let engine = RuleEngine::new("first", rules());
    let server = Server::in_temporary_folder(|folder| {
        let timeout = Duration::from_secs(5);
        Server::with(engine.clone(), None, ServeConfig { timeout, ..config(folder) })
    });
    engine.gate.set(true);
    let (status, answer) = server.fail(Method::POST, "/link", json!({"text": "x"}).to_string()).await;
    assert_eq!((status, &answer["error"]["message"]), (503, &json!("the request took more than 5 s")));
    engine.gate.set(false);
}

#[tokio::test]
async fn names_are_mapped_and_concepts_searched() {
    let server = Server::temporary();
    let mapped = server.post("/map", json!({"names": ["delirium", "zzzz"], "top_k": 1})).await;
    assert_eq!(
        mapped["results"][0]["candidates"][0],
        json!({"id": "T:2", "name": "Delirium", "score": 0.9, "p_link": 0.9})
    );
    assert_eq!(mapped["results"][1], json!({"query": "zzzz", "nil": true, "candidates": []}));
    let explained = server.post("/map", json!({"names": ["delirium"], "explain": true})).await;
    assert_eq!(explained["results"][0]["explanation"]["compared"], "delirium");
    let coded = server.post("/map", json!({"names": ["delirium"], "to_system": "T"})).await;
    let codes = json!([{"id": "T:2", "predicate": "skos:exactMatch"}]);
    assert_eq!(coded["results"][0]["candidates"][0]["codes"], codes);
    let (status, error) =
        server.fail(Method::POST, "/map", json!({"names": ["x"], "to_system": "LOINC"}).to_string()).await;
    assert_eq!((status, &error["error"]["hint"]), (400, &json!("use one of T")), "{error}");
    assert!(error["error"]["message"].as_str().unwrap().ends_with("has no codes of `LOINC`"), "{error}");
    for wrong in [json!(true), json!("no"), json!(1), json!(null)] {
        let body = json!({"text": "x", "nil": wrong}).to_string();
        let (status, error) = server.fail(Method::POST, "/link", body).await;
        let message = error["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(r#"expected "drop" or "keep" for `nil`"#), "{status} {message}");
    }
    let found = server.get("/kb/search?q=confus&top_k=5").await;
    let ids: Vec<&Value> = found["results"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, ["T:3", "T:2"]);
    let found = server.get("/kb/search?q=acute%20confusional&top_k=5").await;
    let first = &found["results"][0];
    assert_eq!(
        (&first["id"], &first["how"], &first["matched"]),
        (&json!("T:2"), &json!("prefix"), &json!("acute confusional state"))
    );
    assert_eq!(first["synonyms"], json!(["acute confusional state"]));
    let page = server.get("/kb/concepts/T%3A2").await;
    assert_eq!(page["parents"], json!([{"id": "T:1", "name": "Mental disorder"}]));
    assert_eq!(page["children"], json!([{"id": "T:4", "name": "Emergence Delirium"}]));
    assert_eq!(
        server.get("/kb/concepts/T:4").await["path"],
        json!([{"id": "T:1", "name": "Mental disorder"}, {"id": "T:2", "name": "Delirium"},
        {"id": "T:4", "name": "Emergence Delirium"}])
    );
    let (_, answer) = server.fail(Method::GET, "/kb/concepts/T:22", "").await;
    assert_eq!(answer["error"]["hint"], "did you mean T:2 (Delirium)?");
}

#[tokio::test]
async fn about_health_and_metrics_are_served() {
    let server = Server::temporary();
    let about = server.get("/about").await;
    assert_eq!(
        (&about["model"]["name"], &about["kb"]["n_concepts"], &about["needs_login"]),
        (&json!("first"), &json!(6), &json!(false))
    );
    assert_eq!(about["user"], json!({"id": 0, "name": "local", "role": "admin", "is_active": true}));
    for path in ["/health", "/ready", "/metrics", "/api/v1/health", "/api/v1/ready", "/api/v1/metrics"] {
        assert_eq!(server.send(Method::GET, path, Body::empty()).await.status(), 200, "{path}");
    }
    server.post("/link", json!({"text": "delirium"})).await;
    let metrics = server.text("/metrics").await;
    assert!(metrics.contains("canonym_linked_documents_total 1\n"), "{metrics}");
    assert!(metrics.contains("canonym_requests_total{method=\"POST\",status=\"200\"} 1\n"), "{metrics}");
    // Invented methods have one counter together.
    for method in ["BREW", "WHEN"] {
        server.send(Method::from_bytes(method.as_bytes()).unwrap(), "/", Body::empty()).await;
    }
    let metrics = server.text("/metrics").await;
    assert!(metrics.contains("method=\"OTHER\"") && !metrics.contains("BREW"), "{metrics}");
    let page = server.send(Method::GET, "/", Body::empty()).await;
    assert_eq!(page.headers()["content-type"], "text/html; charset=utf-8");
    server.app.stop();
    assert_eq!(server.fail(Method::GET, "/ready", "").await.0, 503);
}

#[tokio::test]
async fn openapi_lists_every_route_and_schema() {
    let server = Server::temporary();
    let document = server.get("/openapi.json").await;
    assert_eq!(
        document["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len()).sum::<usize>(),
        canonym_serve::api::routes().len()
    );
    let text = document.to_string();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for reference in text.split("\"#/components/schemas/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(schemas.contains_key(reference), "{reference} is not described");
    }
    assert!(schemas.contains_key("Decision") && schemas.contains_key("Mark"));
}

#[tokio::test]
async fn similar_concepts_exclude_the_concept_itself() {
    let server = Server::temporary();
    // The engine of the tests only finds the concept itself.
    assert_eq!(server.get("/kb/concepts/T:2/near").await, json!({"concepts": []}));
    assert_eq!(server.fail(Method::GET, "/kb/concepts/T:99/near", "").await.0, 404);
    assert_eq!(server.fail(Method::GET, "/kb/concepts/T:2/near?top_k=0", "").await.0, 400);
}

#[tokio::test]
async fn quality_checks_run_once() {
    let server = Server::temporary();
    let mut found = server.get("/kb/lint").await;
    while found["is_ready"] == false {
        tokio::task::yield_now().await;
        found = server.get("/kb/lint").await;
    }
    let check = |word: &str| found["checks"].as_array().unwrap().iter().find(|one| one["check"] == word).unwrap();
    assert_eq!((&check("no-definition")["n_found"], &check("no-definition")["is_note"]), (&json!(5), &json!(true)));
    assert_eq!(check("no-definition")["examples"][0]["ids"], json!(["T:1"]));
    assert_eq!(check("homonyms")["n_found"], 0);
    assert_eq!(server.get("/kb/lint").await, found);
}

#[tokio::test]
async fn mentions_of_a_concept_are_paged() {
    let (server, project, _) = Server::with_corpus().await;
    server.project(CORPUS).await; // mentions of another project are not listed
    let path = format!("/projects/{project}/mentions?concept=T:6");
    let first = server.get(&format!("{path}&limit=1")).await;
    assert_eq!((&first["n_mentions"], &first["n_documents"]), (&json!(2), &json!(1)));
    let row = &first["mentions"][0];
    assert_eq!(
        (&row["text"], &row["spans"], &row["behind"], &row["source"]),
        (&json!("Breast cancer"), &json!([[0, 13]]), &json!(" cells. Nothing of pepcid."), &json!("GOLD"))
    );
    let second = server.get(&format!("{path}&limit=1&cursor={}", first["next_cursor"].as_str().unwrap())).await;
    assert_eq!((&second["mentions"][0]["text"], &second["next_cursor"]), (&json!("cancer"), &Value::Null));
    server.decide(row["document"].as_i64().unwrap(), json!({"kind": "reject", "mark": row["mark"]})).await;
    assert_eq!(server.get(&path).await["n_mentions"], 1);
    assert_eq!(server.get(&format!("/projects/{project}/mentions?concept=T:1")).await["mentions"], json!([]));
    for wrong in [format!("/projects/{project}/mentions"), format!("{path}&cursor=x")] {
        assert_eq!(server.fail(Method::GET, &wrong, "").await.0, 400);
    }
}
