//! Members of projects, and conflicting decisions.

use axum::body::Body;
use axum::http::Method;
use canonym_serve::store::{FILE, people};
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio_stream::StreamExt;

use crate::people::{account_id, login, sign_in_three, three_accounts};
use crate::support::{CORPUS, Server, mark_of};

async fn names_of(server: &Server, project: i64) -> Vec<String> {
    let people = server.get(&format!("/projects/{project}/people")).await;
    people["people"].as_array().unwrap().iter().map(|person| person["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn project_is_not_found_for_non_members() {
    let (server, [ada, cyd, ann]) = three_accounts().await;
    let project = cyd.project(CORPUS).await;
    let document = cyd.documents(project).await[0];
    let mark = mark_of(&cyd.document(document).await, "Famotidine");
    let job = cyd.predict(project).await["id"].as_i64().unwrap();
    let own = ada.project(CORPUS).await;
    ada.post(&format!("/projects/{own}/people"), json!({"id": account_id(&ada, "ann").await})).await;
    let at_home = ann.documents(own).await[0];
    // Every route with a project, document or job responds as for a number that does not exist.
    let description = server.get("/openapi.json").await;
    let mut n_asked = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/api/v1").unwrap();
        let filled = |p: i64, d: i64, j: i64| {
            let filled = path.replace("{p}", &p.to_string()).replace("{d}", &d.to_string());
            filled.replace("{j}", &j.to_string()).replace("{m}", "1").replace("{id}", "1")
        };
        if !["{p}", "{d}", "{j}"].iter().any(|name| path.contains(name)) {
            continue;
        }
        for method in methods.as_object().unwrap().keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            for body in ["", "{}"] {
                let (status, there) = ann.fail(method.clone(), &filled(project, document, job), body).await;
                let (_, nowhere) = ann.fail(method.clone(), &filled(999, 999, 999), body).await;
                let message = |answer: &Value| {
                    let text = answer.to_string();
                    let numbers = [project, document, job].map(|number| number.to_string());
                    numbers.iter().fold(text.replace("999", "_"), |text, number| text.replace(number.as_str(), "_"))
                };
                assert_eq!((status, message(&there)), (404, message(&nowhere)), "{method} {path}");
                n_asked += 1;
            }
        }
    }
    assert!(n_asked > 60, "{n_asked}");
    // The same for other spellings of numbers, query parameters, and IDs in bodies.
    for path in [
        format!("/projects/+{project}"),
        format!("/projects/%3{project}/documents"),
        format!("/models?project={project}"),
        format!("/models?project=%2B{project}"),
        format!("/events?project={project}"),
    ] {
        assert_eq!(ann.fail(Method::GET, &path, "").await.0, 404, "{path}");
    }
    let asks = [
        ("/link".to_owned(), json!({"text": "x", "project": project})),
        ("/map".to_owned(), json!({"names": ["x"], "project": project})),
        (format!("/link/stream?project={project}"), json!({"text": "x"})),
        (format!("/projects/{own}/identical-mentions"), json!({"mark": mark, "scope": "document"})),
        (format!("/documents/{at_home}/comments"), json!({"mark": mark, "text": "x"})),
        (
            format!("/documents/{at_home}/decisions"),
            json!({"version": 99, "decisions": [{"kind": "nil", "mark": mark}]}),
        ),
    ];
    for (path, body) in asks {
        let (status, answer) = ann.fail(Method::POST, &path, body.to_string()).await;
        assert_eq!(status, 404, "{path}: {answer}");
    }
    let listed = |projects: Value| {
        projects["projects"].as_array().unwrap().iter().map(|one| one["id"].as_i64().unwrap()).collect::<Vec<i64>>()
    };
    assert_eq!(listed(ann.get("/projects").await), [own]);
    assert_eq!(listed(cyd.get("/projects").await), [project]);
    assert_eq!(listed(ada.get("/projects").await), [project, own]);
}

#[tokio::test]
async fn curators_of_the_project_add_and_remove_members() {
    let (server, [ada, cyd, ann]) = three_accounts().await;
    let project = cyd.project(CORPUS).await;
    let path = format!("/projects/{project}/people");
    let number = account_id(&ada, "ann").await;
    assert_eq!(names_of(&cyd, project).await, ["cyd"]);
    let foreign = ada.empty_project().await;
    assert_eq!(
        cyd.fail(Method::POST, &format!("/projects/{foreign}/people"), json!({"id": number}).to_string()).await.0,
        404
    );
    cyd.post(&path, json!({"id": number})).await;
    cyd.post(&path, json!({"id": number})).await;
    assert_eq!(names_of(&ann, project).await, ["cyd", "ann"]);
    assert_eq!(ann.fail(Method::POST, &path, json!({"id": number}).to_string()).await.0, 403);
    assert_eq!(cyd.fail(Method::POST, &path, json!({"id": 99}).to_string()).await.0, 404);
    let id = ann.documents(project).await[0];
    ann.decide(id, json!({"kind": "add", "spans": [[0, 1]]})).await;
    cyd.delete(&format!("{path}/{number}")).await;
    assert_eq!(cyd.fail(Method::DELETE, &format!("{path}/{number}"), "").await.0, 404);
    assert_eq!(ann.fail(Method::GET, &format!("/documents/{id}"), "").await.0, 404);
    // Their decisions stay in the history.
    assert!(cyd.get(&format!("/documents/{id}/history")).await.to_string().contains("\"by\":\"ann\""));
    let record = std::fs::read_to_string(server.folder().join("audit.jsonl")).unwrap();
    assert!(record.contains("member added") && record.contains("member removed"), "{record}");
    // The number of a deleted project is not reused, so its members do not see the next one.
    ada.delete(&format!("/projects/{project}")).await;
    let next = ada.empty_project().await;
    assert_eq!(names_of(&ada, next).await, ["ada"]);
}

#[tokio::test]
async fn event_stream_is_limited_to_visible_projects() {
    let (_, [ada, cyd, ann]) = three_accounts().await;
    let project = cyd.project(CORPUS).await;
    let path = format!("/projects/{project}/people");
    let number = account_id(&ada, "ann").await;
    let listen = async |address: &str| {
        let mut stream = ann.send(Method::GET, address, Body::empty()).await.into_body().into_data_stream();
        assert_eq!(&stream.next().await.unwrap().unwrap()[..], b": listening\n\n");
        stream
    };
    let mut all = listen("/api/v1/events").await;
    let own = ada.empty_project().await;
    let import = |project: i64, id: &str| (project, format!("{id}|t|A title\n\n").into_bytes());
    let (p, bytes) = import(project, "secret");
    cyd.import(p, "format=pubtator", &bytes).await;
    ada.post(&format!("/projects/{own}/people"), json!({"id": number})).await;
    cyd.post(&path, json!({"id": number})).await;
    let mut one = listen(&format!("/api/v1/events?project={project}")).await;
    let (p, bytes) = import(own, "open");
    ada.import(p, "format=pubtator", &bytes).await;
    let mut heard = String::new();
    while !heard.contains("event: import") {
        heard += &String::from_utf8_lossy(&all.next().await.unwrap().unwrap());
    }
    assert!(heard.contains(&format!("id: {own}\n")) && !heard.contains(&format!("id: {project}\n")), "{heard}");
    // The stream of a removed member ends.
    cyd.delete(&format!("{path}/{number}")).await;
    let rest = async { while one.next().await.is_some() {} };
    tokio::time::timeout(std::time::Duration::from_secs(10), rest).await.expect("the stream of a project goes on");
}

#[tokio::test]
async fn migration_makes_everyone_a_member_of_existing_projects() {
    let folder = tempfile::tempdir().unwrap();
    let project = {
        let server = Server::new(folder.path());
        let [ada, ..] = sign_in_three(&server).await;
        ada.project(CORPUS).await
    };
    let connection = Connection::open(folder.path().join(FILE)).unwrap();
    connection
        .execute_batch(
            "DROP INDEX marks_by_text; ALTER TABLE documents DROP COLUMN split;
             DROP TABLE members; DROP INDEX events_of_batch; DROP INDEX chosen_concepts;
             ALTER TABLE chosen DROP COLUMN n; ALTER TABLE projects DROP COLUMN scope;
             DROP INDEX comments_of_document; ALTER TABLE comments DROP COLUMN parent_id;
             ALTER TABLE comments DROP COLUMN resolved_by; ALTER TABLE projects DROP COLUMN is_archived;
             DROP TABLE assignments; DROP TABLE proposals; ALTER TABLE projects DROP COLUMN parent_id;
             ALTER TABLE projects DROP COLUMN annotator_id; ALTER TABLE marks RENAME COLUMN p_mention TO place; ALTER TABLE documents DROP COLUMN text_checksum;
             ALTER TABLE events DROP COLUMN changes_checksum; PRAGMA user_version = 3;",
        )
        .unwrap();
    assert!(people::has_accounts(&connection).unwrap());
    drop(connection);
    let server = Server::new(folder.path());
    let ann = login(&server, "ann").await;
    assert_eq!(names_of(&ann, project).await, ["ada", "cyd", "ann"]);
    assert_eq!(login(&server, "cyd").await.empty_project().await, project + 1);
    assert_eq!(ann.get("/projects").await["projects"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn stale_decisions_conflict() {
    let (_, [ada, cyd, ann]) = three_accounts().await;
    let (project, [id, ..]) = ada.corpus().await;
    ada.add_all_members(project).await;
    let seen = ann.document(id).await;
    let mark = mark_of(&seen, "Famotidine");
    let path = format!("/documents/{id}/decisions");
    cyd.decide(id, json!({"kind": "nil", "mark": mark})).await;
    let later = cyd.document(id).await;
    let without = |decision: Value| json!({"decisions": [decision]}).to_string();
    for decision in [
        json!({"kind": "accept", "mark": mark}),
        json!({"kind": "reject", "mark": mark}),
        json!({"kind": "concept", "mark": mark, "concept": "T:5"}),
        json!({"kind": "unsure", "mark": mark, "value": true}),
        json!({"kind": "spans", "mark": mark, "spans": [[0, 1]]}),
        json!({"kind": "type", "mark": mark, "type": "Drug"}),
        json!({"kind": "delete", "mark": mark}),
    ] {
        let (status, answer) = ann.fail(Method::POST, &path, without(decision.clone())).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["hint"].as_str().unwrap().contains("version"), "{answer}");
        let body = json!({"version": seen["version"], "decisions": [decision]}).to_string();
        let (status, answer) = ann.fail(Method::POST, &path, body).await;
        assert_eq!((status, &answer["document"]["version"]), (409, &later["version"]), "{answer}");
    }
    let alike =
        |version: Value| json!({"mark": mark, "scope": "project", "apply": true, "version": version}).to_string();
    let address = format!("/projects/{project}/identical-mentions");
    assert_eq!(ann.fail(Method::POST, &address, alike(Value::Null)).await.0, 400);
    assert_eq!(ann.fail(Method::POST, &address, alike(seen["version"].clone())).await.0, 409);
    assert_eq!(cyd.document(id).await, later);
    // Adding a mark needs no version.
    ann.post(&path, json!({"decisions": [{"kind": "add", "spans": [[0, 1]]}]})).await;
    ann.decide(id, json!({"kind": "concept", "mark": mark, "concept": "T:5"})).await;
}

#[tokio::test]
async fn finishing_with_a_stale_version_conflicts() {
    let (server, project, _) = Server::with_corpus().await;
    server.predict(project).await;
    let ids = server.documents(project).await;
    for id in ids {
        let seen = server.document(id).await;
        if !seen["marks"].as_array().unwrap().iter().any(|mark| mark["source"] == "PRED") {
            continue;
        }
        server
            .app
            .store
            .write(|transaction| Ok(transaction.execute("UPDATE marks SET event_id = event_id + 1000", [])?))
            .unwrap();
        let n = seen["marks"].as_array().unwrap().iter().filter(|mark| mark["source"] == "PRED").count();
        let finish = json!({"kind": "finish", "value": true, "accepts": n});
        let path = format!("/documents/{id}/decisions");
        assert_eq!(server.fail(Method::POST, &path, json!({"decisions": [finish]}).to_string()).await.0, 400);
        let body = json!({"version": seen["version"], "decisions": [finish]}).to_string();
        assert_eq!(server.fail(Method::POST, &path, body).await.0, 409);
        return;
    }
    panic!("nothing was predicted");
}
