//! What curators do beyond single decisions.

use serde_json::{Value, json};

use crate::support::Server;

#[tokio::test]
async fn sample_project_has_documents_with_predictions() {
    let server = Server::temporary();
    let made = server.post("/projects/sample", json!({})).await;
    assert_eq!((&made["name"], &made["n_documents"]), (&json!("Sample project"), &json!(10)));
    let project = made["id"].as_i64().unwrap();
    let first = server.documents(project).await[0];
    let document = server.document(first).await;
    assert_eq!(document["external_id"], "sample-01");
    let open = |mark: &&Value| mark["source"] == "PRED" && mark["state"] == "open";
    let texts: Vec<&Value> =
        document["marks"].as_array().unwrap().iter().filter(open).map(|mark| &mark["text"]).collect();
    assert_eq!(texts, ["confused", "delirium"]);
    // Made twice, there are two.
    assert_ne!(server.post("/projects/sample", json!({})).await["id"], made["id"]);
}

/// Three documents with “delirium” and one with “confused”; their project.
async fn deliria(server: &Server) -> (i64, Vec<i64>) {
    let text = |id: u32, text: &str| format!("{id}|t|{text}\n{id}|a|\n\n");
    let corpus = [text(1, "delirium and confused"), text(2, "A delirium, a delirium."), text(3, "No delirium.")];
    let project = server.project(&corpus.concat()).await;
    server.predict(project).await;
    (project, server.documents(project).await)
}

/// The states of the “delirium” marks of all documents.
async fn states(server: &Server, documents: &[i64]) -> Vec<String> {
    let mut states = Vec::new();
    for id in documents {
        let document = server.get(&format!("/documents/{id}?all=1")).await;
        for mark in document["marks"].as_array().unwrap().iter().filter(|mark| mark["text"] == "delirium") {
            states.push(format!("{} {}", mark["state"].as_str().unwrap(), mark["concept"]["id"].as_str().unwrap()));
        }
    }
    states
}

#[tokio::test]
async fn group_of_predictions_is_accepted_and_undone_as_one() {
    let server = Server::temporary();
    let (project, documents) = deliria(&server).await;
    let groups = server.get(&format!("/projects/{project}/groups")).await;
    assert_eq!((&groups["n_groups"], &groups["n_mentions"]), (&json!(2), &json!(5)));
    let first = &groups["groups"][0];
    assert_eq!(
        (&first["text"], &first["concept"]["id"], &first["n_mentions"], &first["n_documents"]),
        (&json!("delirium"), &json!("T:2"), &json!(4), &json!(3))
    );
    assert_eq!(server.get(&format!("/projects/{project}/groups?q=confus")).await["n_groups"], 1);
    let shown = server.get(&format!("/projects/{project}/groups/mentions?text=Delirium&concept=T:2&limit=3")).await;
    assert_eq!(shown["mentions"][1]["behind"], ", a delirium.");
    assert_eq!(shown["next_cursor"], "3");

    let body = json!({"text": "delirium", "concept": "T:2", "action": "accept"});
    let decided = server.post(&format!("/projects/{project}/groups/decisions"), body.clone()).await;
    assert_eq!((&decided["n_mentions"], &decided["n_documents"]), (&json!(4), &json!(3)));
    assert_eq!(states(&server, &documents).await, ["accepted T:2"; 4]);
    assert_eq!(server.get(&format!("/projects/{project}/groups")).await["n_groups"], 1);

    // A document whose mark was changed since keeps it.
    let mark = shown["mentions"][0]["mark"].as_i64().unwrap();
    server.decide(documents[0], json!({"kind": "concept", "mark": mark, "concept": "T:3"})).await;
    let batch = json!({"batch": decided["batch"]});
    let undone = server.post(&format!("/projects/{project}/groups/undo"), batch.clone()).await;
    assert_eq!(
        (&undone["n_mentions"], &undone["n_documents"], &undone["n_skipped"]),
        (&json!(3), &json!(2), &json!(1))
    );
    assert_eq!(states(&server, &documents).await, ["accepted T:3", "open T:2", "open T:2", "open T:2"]);
    // What was undone is redone in a single document.
    server.post(&format!("/documents/{}/redo", documents[1]), json!({})).await;
    assert_eq!(states(&server, &documents).await[1..], ["accepted T:2", "accepted T:2", "open T:2"]);
}

#[tokio::test]
async fn selected_and_scored_predictions_are_rejected_and_relinked() {
    let server = Server::temporary();
    let (project, documents) = deliria(&server).await;
    let path = format!("/projects/{project}/groups/decisions");
    let shown = server.get(&format!("/projects/{project}/groups/mentions?text=delirium&concept=T:2")).await;
    let mark = |row: usize| shown["mentions"][row]["mark"].clone();
    let group = |rest: Value| {
        let mut body = json!({"text": "delirium", "concept": "T:2"});
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        body
    };
    let none = server.post(&path, group(json!({"action": "accept", "min_score": 0.99}))).await;
    assert_eq!((&none["n_mentions"], &none["batch"]), (&json!(0), &Value::Null));
    server.post(&path, group(json!({"action": "reject", "marks": [mark(0)]}))).await;
    let again = group(json!({"action": "relink", "to": "T:4", "marks": [mark(0), mark(1)]}));
    let relinked = server.post(&path, again).await;
    assert_eq!((&relinked["n_mentions"], &relinked["n_skipped"]), (&json!(1), &json!(1)));
    server.post(&path, group(json!({"action": "accept", "min_score": 0.9}))).await;
    assert_eq!(states(&server, &documents).await, ["rejected T:2", "accepted T:4", "accepted T:2", "accepted T:2"]);
    let post = axum::http::Method::POST;
    let fails = |body: Value| server.fail(post.clone(), &path, body.to_string());
    assert_eq!(fails(group(json!({"action": "relink"}))).await.0, 400);
    assert_eq!(
        server.fail(post.clone(), &format!("/projects/{project}/groups/undo"), json!({"batch": 1}).to_string()).await.0,
        409
    );
}

#[tokio::test]
async fn project_keeps_to_its_scope() {
    let server = Server::temporary();
    let project = server.project("1|t|delirium and pepcid, confused\n1|a|\n\n").await;
    let id = server.documents(project).await[0];
    let texts = async || -> Vec<String> {
        let document = server.document(id).await;
        document["marks"].as_array().unwrap().iter().map(|mark| mark["text"].as_str().unwrap().to_owned()).collect()
    };
    server.predict(project).await;
    assert_eq!(texts().await, ["delirium", "pepcid", "confused"]);
    // Only delirium and what is below it.
    let path = format!("/projects/{project}");
    let changed = server.patch(&path, json!({"scope": {"branches": ["T:2"]}})).await;
    assert_eq!(changed["scope"], json!({"types": [], "branches": [{"id": "T:2", "name": "Delirium"}]}));
    assert_eq!(texts().await, ["delirium"]);
    server.predict(project).await;
    assert_eq!(texts().await, ["delirium"]);
    let found = server.get(&format!("/documents/{id}/candidates?start=0&end=8&q=pep")).await;
    assert_eq!(found["candidates"], json!([]));
    // The other type: everything comes back with the whole terminology.
    server.patch(&path, json!({"scope": {"types": ["Chemical"]}})).await;
    server.predict(project).await;
    assert_eq!(texts().await, ["pepcid"]);
    server.patch(&path, json!({"scope": {}})).await;
    server.predict(project).await;
    assert_eq!(texts().await, ["delirium", "pepcid", "confused"]);
    // What a person decided stays.
    let document = server.document(id).await;
    server.decide(id, json!({"kind": "accept", "mark": crate::support::mark_of(&document, "confused")})).await;
    server.patch(&path, json!({"scope": {"types": ["Chemical"]}})).await;
    assert_eq!(texts().await, ["pepcid", "confused"]);
    let patch = axum::http::Method::PATCH;
    let (status, error) = server.fail(patch.clone(), &path, json!({"scope": {"types": ["Disease"]}}).to_string()).await;
    assert_eq!(
        (status, error["error"]["message"].as_str().unwrap()),
        (400, "no semantic type `Disease` in the knowledge base")
    );
    assert_eq!(server.fail(patch, &path, json!({"scope": {"branches": ["T:99"]}}).to_string()).await.0, 400);
    assert_eq!(server.get("/kb/types").await, json!({"types": ["Chemical", "Disorder"]}));
}

#[tokio::test]
async fn comments_are_threads_that_are_resolved() {
    let (server, project, [id, other, _]) = Server::with_corpus().await;
    let mark = crate::support::mark_of(&server.document(id).await, "Famotidine");
    let path = format!("/documents/{id}/comments");
    let first = server.post(&path, json!({"mark": mark, "text": "Is it a drug here?"})).await;
    assert_eq!((&first["parent"], &first["resolved_by"]), (&Value::Null, &Value::Null));
    let thread = format!("{path}/{}", first["id"]);
    let reply = server.post(&path, json!({"parent": first["id"], "text": "Yes."})).await;
    assert_eq!((&reply["parent"], &reply["mark"]), (&first["id"], &json!(mark)));
    let n_threads =
        async || server.get(&format!("/projects/{project}/documents")).await["documents"][0]["n_threads"].clone();
    assert_eq!(n_threads().await, 1);
    assert_eq!(server.patch(&thread, json!({"is_resolved": true})).await["resolved_by"], "local");
    assert_eq!(n_threads().await, 0);
    // A reply reopens it.
    server.post(&path, json!({"parent": first["id"], "text": "Sure?"})).await;
    assert_eq!(n_threads().await, 1);
    let comments = server.document(id).await["comments"].as_array().unwrap().len();
    assert_eq!(comments, 3);
    let (post, patch) = (axum::http::Method::POST, axum::http::Method::PATCH);
    let to_reply = json!({"parent": reply["id"], "text": "No."}).to_string();
    assert_eq!(server.fail(post.clone(), &path, to_reply).await.0, 400);
    let elsewhere = json!({"parent": first["id"], "text": "No."}).to_string();
    assert_eq!(server.fail(post, &format!("/documents/{other}/comments"), elsewhere).await.0, 404);
    let resolve = json!({"is_resolved": true}).to_string();
    assert_eq!(server.fail(patch, &format!("/documents/{other}/comments/{}", first["id"]), resolve).await.0, 404);
}

#[tokio::test]
async fn project_is_copied_as_template_with_documents_or_with_annotations() {
    let (server, project, ids) = Server::with_corpus().await;
    server.predict(project).await;
    let document = server.document(ids[0]).await;
    server.decide(ids[0], json!({"kind": "reject", "mark": crate::support::mark_of(&document, "confused")})).await;
    let document = server.document(ids[0]).await;
    server.decide(ids[0], json!({"kind": "accept", "mark": crate::support::mark_of(&document, "delirium")})).await;
    server.decide(ids[2], json!({"kind": "finish", "value": true, "accepts": 0})).await;
    let settings = json!({"guideline": "All of it.", "scope": {"types": ["Disorder"]}});
    server.patch(&format!("/projects/{project}"), settings).await;
    let lines = async |project: i64| {
        let mut lines = Vec::new();
        for id in server.documents(project).await {
            lines.extend(crate::support::mark_lines(&server.get(&format!("/documents/{id}?all=1")).await));
        }
        lines
    };
    for (content, n_documents, n_finished) in [("settings", 0, 0), ("documents", 3, 0), ("annotations", 3, 1)] {
        let body = json!({"name": format!("Copy with {content}"), "content": content});
        let copy = server.post(&format!("/projects/{project}/copies"), body).await;
        assert_eq!((&copy["guideline"], &copy["scope"]["types"]), (&json!("All of it."), &json!(["Disorder"])));
        assert_eq!((&copy["n_documents"], &copy["n_finished"]), (&json!(n_documents), &json!(n_finished)), "{content}");
        let copied = lines(copy["id"].as_i64().unwrap()).await;
        assert_eq!(copied, if content == "annotations" { lines(project).await } else { Vec::new() });
    }
    // A decision on the copy leaves the original alone.
    let before = lines(project).await;
    let copy = server.get("/projects").await["projects"][3]["id"].as_i64().unwrap();
    let first = server.documents(copy).await[0];
    let mark = crate::support::mark_of(&server.document(first).await, "delirium");
    server.decide(first, json!({"kind": "nil", "mark": mark})).await;
    assert_eq!(lines(project).await, before);
}

#[tokio::test]
async fn project_is_archived_and_comes_back() {
    let (server, project, _) = Server::with_corpus().await;
    let path = format!("/projects/{project}");
    assert_eq!(server.get(&path).await["is_archived"], false);
    assert_eq!(server.patch(&path, json!({"is_archived": true})).await["is_archived"], true);
    // Other changes keep it.
    assert_eq!(server.patch(&path, json!({"name": "Old"})).await["is_archived"], true);
    assert_eq!(server.get("/projects").await["projects"][0]["is_archived"], true);
    assert_eq!(server.patch(&path, json!({"is_archived": false})).await["is_archived"], false);
}

#[tokio::test]
async fn documents_are_searched_filtered_and_sorted() {
    let server = Server::temporary();
    let project = server.empty_project().await;
    let line = |id: &str, text: &str, year: &str| {
        json!({"id": id, "text": text, "annotations": [], "attributes": {"year": year}}).to_string()
    };
    let lines =
        [line("b", "delirium, delirium", "2019"), line("a", "No 50% thing", "2021"), line("c", "pepcid", "2019")];
    server.import(project, "format=jsonl&filename=a.jsonl", lines.join("\n").as_bytes()).await;
    server.predict(project).await;
    let ids = async |query: &str| -> String {
        let page = server.get(&format!("/projects/{project}/documents?{query}")).await;
        let rows = page["documents"].as_array().unwrap();
        rows.iter().map(|row| row["external_id"].as_str().unwrap()).collect::<Vec<&str>>().join(" ")
    };
    assert_eq!(ids("").await, "b a c");
    assert_eq!(ids("sort=id").await, "a b c");
    assert_eq!(ids("sort=open&order=desc").await, "b c a");
    assert_eq!(ids("sort=meta:year&order=desc").await, "a c b");
    assert_eq!(ids("meta=year:2019").await, "b c");
    assert_eq!(ids("meta=year:2019&q=PEP").await, "c");
    assert_eq!(ids("q=2021").await, "a");
    assert_eq!((ids("q=50%25").await, ids("q=5_").await), ("a".to_owned(), String::new()));
    assert_eq!(ids("sort=length&limit=2").await, "c a");
    let page = server.get(&format!("/projects/{project}/documents?sort=length&limit=2")).await;
    assert_eq!(ids(&format!("sort=length&limit=2&cursor={}", page["next_cursor"].as_str().unwrap())).await, "b");
    let first = page["documents"][0]["id"].clone();
    let metadata = json!({"metadata": [{"name": "year", "value": "2024"}, {"name": "ward", "value": "7"}]});
    let changed = server.patch(&format!("/documents/{first}"), metadata.clone()).await;
    assert_eq!((&changed["metadata"], &changed["external_id"]), (&metadata["metadata"], &json!("c")));
    assert_eq!(ids("meta=ward:7").await, "c");
    let exported = server.text(&format!("/projects/{project}/export?format=jsonl")).await;
    assert!(exported.contains("ward"), "{exported}");
    server.post(&format!("/documents/{first}/comments"), json!({"text": "?"})).await;
    assert_eq!(ids("state=commented").await, "c");
    let get = axum::http::Method::GET;
    for query in ["sort=odd", "order=up", "meta=year", "state=odd", "cursor=x"] {
        assert_eq!(server.fail(get.clone(), &format!("/projects/{project}/documents?{query}"), "").await.0, 400);
    }
    let bad = json!({"metadata": [{"name": "a:b", "value": "7"}]}).to_string();
    assert_eq!(server.fail(axum::http::Method::PATCH, &format!("/documents/{first}"), bad).await.0, 400);
}

#[tokio::test]
async fn concepts_that_people_linked_a_text_to_come_first_in_the_picker() {
    let server = Server::temporary();
    let project = server.project("1|t|Pepcid, pepcid and pepcid.\n1|a|\n\n2|t|No Pepcid.\n2|a|\n\n").await;
    let [first, second] = server.documents(project).await[..] else { panic!("two documents") };
    for (spans, concept) in [([[0, 6]], "T:1"), ([[8, 14]], "T:1"), ([[19, 25]], "T:3")] {
        server.decide(first, json!({"kind": "add", "spans": spans, "concept": concept})).await;
    }
    let path = format!("/documents/{second}/candidates?start=3&end=9");
    let told = |found: serde_json::Value| -> Vec<String> {
        let rows = found["candidates"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| format!("{} {} {}", row["id"].as_str().unwrap(), row["how"].as_str().unwrap(), row["n_linked"]))
            .collect()
    };
    let found = told(server.get(&path).await);
    assert_eq!(found[..2], ["T:1 linked 2", "T:3 linked 1"]);
    assert!(found[2..].iter().any(|row| row.starts_with("T:5")), "{found:?}");
    // The decision on a mention is no evidence for the mention itself.
    let confused = server.document(first).await["marks"][2]["id"].clone();
    let own = told(server.get(&format!("/documents/{first}/candidates?mark={confused}")).await);
    assert_eq!(own[0], "T:1 linked 2");
    assert!(!own.iter().any(|row| row.starts_with("T:3 linked")), "{own:?}");
}
