//! Acknowledged changes survive a kill and can be rebuilt from the events.

use axum::http::Method;
use canonym_serve::store::{documents, events};
use serde_json::json;

use crate::support::{Server, create_data_folder, mark_lines, mark_of};

#[tokio::test]
async fn marks_are_rebuilt_from_events() {
    let (server, project, ids) = Server::with_corpus().await;
    server.predict(project).await;
    let delirium = mark_of(&server.document(ids[0]).await, "delirium");
    server.decide(ids[0], json!({"kind": "accept", "mark": delirium})).await;
    server.decide(ids[0], json!({"kind": "add", "spans": [[0, 1]], "is_nil": true})).await;
    server.post(&format!("/documents/{}/undo", ids[0]), json!({})).await;
    server.decide(ids[1], json!({"kind": "finish", "value": true})).await;
    server.predict(project).await;
    let state = |server: &Server| {
        server.app.store.read(|connection| {
            let kept: Vec<_> = ids.iter().map(|id| documents::get(connection, *id).unwrap()).collect();
            let marks: Vec<_> = ids.iter().map(|id| documents::marks(connection, *id).unwrap()).collect();
            Ok((kept, marks))
        })
    };
    let before = state(&server).unwrap();
    server.app.store.write(|transaction| events::rebuild(transaction)).unwrap();
    assert_eq!(state(&server).unwrap(), before);
}

#[tokio::test]
async fn acknowledged_changes_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let (id, project, before, undoable) = {
        let server = Server::new(folder.path());
        let (project, [id, ..]) = server.corpus().await;
        server.predict(project).await;
        server.decide(id, json!({"kind": "add", "spans": [[24, 31]], "concept": "T:2"})).await;
        let undoable = mark_lines(&server.document(id).await);
        server.decide(id, json!({"kind": "add", "spans": [[0, 1]], "is_nil": true})).await;
        // A queued job, and one that is running when the server is killed.
        server.post(&format!("/projects/{project}/jobs"), json!({"kind": "predict"})).await;
        server.app.store.write(|transaction| canonym_serve::store::jobs::start(transaction, 2, 0)).unwrap();
        let other = server.project("1|t|Pepcid.\n1|a|\n\n").await;
        server.post(&format!("/projects/{other}/jobs"), json!({"kind": "predict"})).await;
        let before = server.document(id).await;
        // As after a kill: the files are copied while the server still has them open.
        let copy = folder.path().join("copy");
        create_data_folder(&copy);
        for name in ["canonym.sqlite", "canonym.sqlite-wal"] {
            std::fs::copy(folder.path().join(name), copy.join(name)).unwrap();
        }
        std::fs::create_dir_all(copy.join("models/job-2")).unwrap();
        (id, project, before, undoable)
    };
    let server = Server::new(&folder.path().join("copy"));
    assert_eq!(server.document(id).await, before);
    let job = server.get("/jobs/2").await;
    assert_eq!((&job["state"], &job["error"]), (&json!("FAILED"), &json!("the server was stopped")));
    assert!(!folder.path().join("copy/models/job-2").exists(), "what a job had begun is gone");
    // The queued job stays queued and runs.
    assert_eq!(server.get("/jobs/3").await["state"], "QUEUED");
    server.run_jobs().await;
    assert_eq!(server.get("/jobs/3").await["state"], "SUCCEEDED");
    assert_eq!(server.get(&format!("/projects/{project}")).await["n_documents"], 3);
    // Undo continues where it was.
    server.post(&format!("/documents/{id}/undo"), json!({})).await;
    assert_eq!(mark_lines(&server.document(id).await), undoable);
}

#[tokio::test]
async fn repeated_client_id_applies_once() {
    let (server, _, ids) = Server::with_corpus().await;
    let body = json!({"client_id": "a", "decisions": [{"kind": "add", "spans": [[0, 1]]}]});
    let path = format!("/documents/{}/decisions", ids[0]);
    let first = server.post(&path, body.clone()).await;
    assert_eq!(server.post(&path, body.clone()).await, first);
    assert_eq!(server.document(ids[0]).await["marks"].as_array().unwrap().len(), 2);
    let other = format!("/documents/{}/decisions", ids[1]);
    assert_eq!(server.fail(Method::POST, &other, body.to_string()).await.0, 409);
    let undo = json!({"client_id": "b"});
    let path = format!("/documents/{}/undo", ids[0]);
    let undone = server.post(&path, undo.clone()).await;
    assert_eq!(server.post(&path, undo).await, undone);
}

#[tokio::test]
async fn decisions_of_a_request_are_atomic() {
    let (server, _, [id, ..]) = Server::with_corpus().await;
    let before = server.document(id).await;
    let decisions = json!([{"kind": "add", "spans": [[0, 1]]}, {"kind": "accept", "mark": 999}]);
    let body = json!({"version": before["version"], "decisions": decisions});
    let (status, _) = server.fail(Method::POST, &format!("/documents/{id}/decisions"), body.to_string()).await;
    assert_eq!(status, 404);
    assert_eq!(server.document(id).await, before);
}

#[tokio::test]
async fn mark_changed_by_a_model_meanwhile_conflicts() {
    let (server, project, [id, ..]) = Server::with_corpus().await;
    let gold = mark_of(&server.document(id).await, "Famotidine");
    server.predict(project).await;
    let seen = server.document(id).await;
    let delirium = mark_of(&seen, "delirium");
    server
        .app
        .store
        .write(|transaction| {
            let mut held = documents::marks(transaction, id)?;
            let before = held.remove(&delirium).map(|held| held.mark);
            let after = before.clone().map(|mut mark| {
                mark.score = Some(0.1);
                mark
            });
            let change = canonym_serve::marks::Change { id: delirium, before, after };
            let changes = canonym_serve::marks::Changes { marks: vec![change], finished: None };
            events::add(
                transaction,
                &events::NewEvent { document: id, kind: "predict", ..Default::default() },
                &changes,
            )
        })
        .unwrap();
    let path = format!("/documents/{id}/decisions");
    let decide = |mark: i64| json!({"version": seen["version"], "decisions": [{"kind": "accept", "mark": mark}]});
    let (status, answer) = server.fail(Method::POST, &path, decide(delirium).to_string()).await;
    assert_eq!((status, &answer["document"]["id"]), (409, &json!(id)));
    // Other marks of the document can be decided on.
    server.post(&path, decide(gold)).await;
}
