//! Limits on requests, imports and files.

use axum::http::Method;
use serde_json::json;

use crate::support::{CORPUS, RuleEngine, Server, config, rules};

#[tokio::test]
async fn link_responses_have_a_maximum_size() {
    let server = Server::configured(|config| (config.max_text_bytes, config.max_answer_bytes) = (1000, 20_000));
    let ask = |texts: &[String]| {
        let documents: Vec<_> = texts.iter().map(|text| json!({"text": text})).collect();
        json!({"documents": documents}).to_string()
    };
    let short = "delirium. ".repeat(10);
    server.post("/link", json!({"documents": [{"text": short}]})).await;
    let (status, answer) = server.fail(Method::POST, "/link", ask(&["x".repeat(1001)])).await;
    assert_eq!(status, 413);
    assert!(answer["error"]["message"].as_str().unwrap().contains("a text may have at most 1000 bytes"), "{answer}");
    let (status, answer) = server.fail(Method::POST, "/link", ask(&vec![short.clone(); 40])).await;
    assert_eq!(status, 413);
    assert!(answer["error"]["hint"].as_str().unwrap().contains("top_k"), "{answer}");
    // A stream responds line by line.
    let lines: Vec<String> = [&short, &"x".repeat(1001), &short].map(|text| json!({"text": text}).to_string()).to_vec();
    let response = server.send(Method::POST, "/api/v1/link/stream", lines.join("\n")).await;
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!((text.lines().count(), text.matches("too_large").count()), (3, 1), "{text}");
    // Such a text is not imported, since it could not be linked.
    let project = server.empty_project().await;
    let long = json!({"id": "long", "text": "x".repeat(1001)}).to_string();
    let report = server
        .import(project, "format=jsonl", format!("{long}\n{}", json!({"id": "short", "text": "x"})).as_bytes())
        .await;
    assert_eq!((&report["n_documents"], &report["n_skipped_documents"]), (&json!(1), &json!(1)));
    assert!(report["problems"][0]["hint"].as_str().unwrap().contains("split"), "{report}");
}

#[tokio::test]
async fn document_with_too_many_annotations_is_skipped() {
    let server = Server::temporary();
    let project = server.empty_project().await;
    let document = |n: usize| {
        let annotations: Vec<_> = (0..n).map(|at| json!({"spans": [[at, at + 1]]})).collect();
        json!({"id": n.to_string(), "text": "a".repeat(n), "annotations": annotations}).to_string()
    };
    let file = format!("{}\n{}\n", document(100_001), document(100));
    let report = server.import(project, "format=jsonl", file.as_bytes()).await;
    assert_eq!((&report["n_documents"], &report["n_annotations"]), (&json!(1), &json!(100)));
    assert!(report["problems"][0]["message"].as_str().unwrap().contains("100000 annotations"), "{report}");
}

#[tokio::test]
async fn texts_are_linked_in_batches_and_returned_in_order() {
    let engine = RuleEngine::new("first", rules());
    let server = Server::in_temporary_folder(|folder| Server::with(engine.clone(), None, config(folder)));
    let documents: Vec<_> =
        (0..5).map(|row| json!({"id": row.to_string(), "text": "delirium ".repeat(30_000)})).collect();
    let answer = server.post("/link", json!({"documents": documents, "top_k": 1})).await;
    let ids: Vec<&str> =
        answer["documents"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4"]);
    assert_eq!(*engine.batches.lock().unwrap(), [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn modified_knowledge_base_file_is_an_error() {
    use std::time::SystemTime;

    for is_cut in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.kb");
        std::fs::write(&path, crate::support::kb_bytes()).unwrap();
        let kb = canonym_core::kb::KnowledgeBase::open_up_to(0, &path).unwrap();
        let server = Server::with(RuleEngine::on(kb, "first", rules()), None, config(&folder.path().join("data")));
        let (_, [id, ..]) = server.corpus().await;
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        match is_cut {
            true => file.set_len(4096).unwrap(),
            false => file.set_modified(SystemTime::UNIX_EPOCH).unwrap(),
        }
        let add = json!({"decisions": [{"kind": "add", "spans": [[0, 1]], "concept": "T:1"}]}).to_string();
        for (method, path, body) in [
            (Method::POST, "/link".to_owned(), json!({"text": "delirium"}).to_string()),
            (Method::GET, "/kb/search?q=delirium".to_owned(), String::new()),
            (Method::POST, format!("/documents/{id}/decisions"), add),
            (Method::GET, "/ready".to_owned(), String::new()),
        ] {
            let (status, answer) = server.fail(method, &path, body).await;
            assert_eq!(status, 503, "{path}: {answer}");
            assert!(
                answer["error"]["message"].as_str().unwrap().contains("was modified while the server was running"),
                "{answer}"
            );
        }
        server.get("/health").await;
    }
}

#[tokio::test]
async fn write_ahead_log_is_truncated_after_a_large_import() {
    let server = Server::temporary();
    let project = server.empty_project().await;
    let line = |row: usize| {
        let annotations: Vec<_> = (0..400).map(|at| json!({"spans": [[5 * at, 5 * at + 4]]})).collect();
        format!("{}\n", json!({"id": row.to_string(), "text": "ache ".repeat(400), "annotations": annotations}))
    };
    let file: String = (0..30).map(line).collect();
    let report = server.import(project, "format=jsonl", file.as_bytes()).await;
    assert_eq!(report["n_annotations"], 12_000);
    let log = std::fs::metadata(server.folder().join("canonym.sqlite-wal")).unwrap().len();
    assert!(log < 1 << 20, "{log}");
}

#[tokio::test]
async fn stopped_server_leaves_an_empty_write_ahead_log() {
    let server = Server::temporary();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = tokio::spawn(canonym_serve::server::serve(listener, server.app.clone()));
    let project = server.project(CORPUS).await;
    server.app.stop();
    serving.await.unwrap().unwrap();
    // The database is still open.
    assert_eq!(std::fs::metadata(server.folder().join("canonym.sqlite-wal")).unwrap().len(), 0);
    assert_eq!(server.documents(project).await.len(), 3);
}
