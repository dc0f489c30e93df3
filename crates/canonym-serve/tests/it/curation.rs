//! Contexts, proposals, the hierarchy, and decisions that spread to identical mentions.

use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{Server, mark_lines, mark_of};

async fn spread(server: &Server) {
    let app = server.app.clone();
    tokio::task::spawn_blocking(move || canonym_serve::jobs::spread::run_spreads(&app)).await.unwrap();
}

#[tokio::test]
async fn contexts_are_predicted_corrected_and_exported() {
    let server = Server::temporary();
    let project = server.project("1|t|No delirium\n1|a|Her mother had pepcid and was confused.\n\n").await;
    server.predict(project).await;
    let id = server.documents(project).await[0];
    let contexts = async || -> Vec<String> {
        let document = server.document(id).await;
        let marks = document["marks"].as_array().unwrap().iter();
        marks.map(|mark| format!("{} {}", mark["text"].as_str().unwrap(), mark["contexts"])).collect()
    };
    assert_eq!(contexts().await[0], r#"delirium ["negated"]"#);
    assert!(contexts().await[1].contains("family"), "{:?}", contexts().await);
    let mark = mark_of(&server.document(id).await, "delirium");
    server.decide(id, json!({"kind": "context", "mark": mark, "contexts": ["historical", "possible"]})).await;
    assert_eq!(contexts().await[0], r#"delirium ["possible","historical"]"#);
    assert_eq!(mark_lines(&server.document(id).await)[0], "USER accepted [[3,11]] delirium T:2");
    let path = format!("/documents/{id}/decisions");
    let version = server.document(id).await["version"].clone();
    let both = json!({"version": version, "decisions": [{"kind": "context", "mark": mark, "contexts": ["negated", "possible"]}]});
    assert_eq!(server.fail(Method::POST, &path, both.to_string()).await.0, 400);
    // A new mention gets the contexts that the rules find.
    let added = server.decide(id, json!({"kind": "add", "spans": [[12, 22]], "concept": "T:5"})).await;
    assert_eq!(added["marks"][0]["contexts"], json!([]));
    // Exported, and read again.
    for format in ["jsonl", "bioc-json", "bioc-xml"] {
        let file = server.export(project, &format!("format={format}&sources=gold,user,pred")).await;
        let copy = server.empty_project().await;
        server.import(copy, &format!("format={format}&filename=a"), &file).await;
        let copied = server.document(server.documents(copy).await[0]).await;
        let found: Vec<String> =
            copied["marks"].as_array().unwrap().iter().map(|mark| mark["contexts"].to_string()).collect();
        let expected: Vec<String> = server.document(id).await["marks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|mark| mark["contexts"].to_string())
            .collect();
        assert_eq!(found, expected, "{format}");
    }
    server.post(&format!("/documents/{id}/undo"), json!({})).await;
    server.post(&format!("/documents/{id}/undo"), json!({})).await;
    assert_eq!(contexts().await[0], r#"delirium ["negated"]"#);
}

#[tokio::test]
async fn decision_spreads_to_identical_mentions_of_other_documents_until_it_is_undone() {
    let server = Server::temporary();
    let texts = "1|t|delirium, delirium\n1|a|\n\n2|t|Delirium or delirium\n2|a|\n\n3|t|delirium\n3|a|\n\n4|t|delirium\n4|a|\n\n";
    let project = server.project(texts).await;
    server.predict(project).await;
    let ids = server.documents(project).await;
    let refused = mark_of(&server.document(ids[2]).await, "delirium");
    server.decide(ids[2], json!({"kind": "reject", "mark": refused})).await;
    server.decide(ids[3], json!({"kind": "reject", "mark": mark_of(&server.document(ids[3]).await, "delirium")})).await;
    server.decide(ids[3], json!({"kind": "finish", "value": true})).await;
    let mark = mark_of(&server.document(ids[0]).await, "delirium");
    server.decide(ids[0], json!({"kind": "concept", "mark": mark, "concept": "T:4"})).await;
    let before = mark_lines(&server.document(ids[0]).await);
    spread(&server).await;
    // The document itself and finished ones stay; a mention that the model missed is added.
    assert_eq!(mark_lines(&server.document(ids[0]).await), before);
    let other = server.document(ids[1]).await;
    let expected = ["PRED open [[0,8]] Delirium T:4", "PRED open [[12,20]] delirium T:4"];
    assert_eq!(
        (mark_lines(&other), &other["marks"][0]["is_spread"]),
        (expected.map(str::to_owned).to_vec(), &json!(true))
    );
    assert_eq!(mark_lines(&server.document(ids[2]).await), [""; 0], "it was rejected here");
    assert_eq!(mark_lines(&server.document(ids[3]).await), [""; 0], "it is finished");
    // They are reviewed in bulk, exported as SILVER, and stay when the model predicts again.
    let groups = server.get(&format!("/projects/{project}/groups?spread=1")).await;
    assert_eq!((&groups["n_spread"], &groups["groups"][0]["concept"]["id"]), (&json!(2), &json!("T:4")));
    let exported = server.export(project, "format=jsonl&sources=pred").await;
    assert!(String::from_utf8(exported).unwrap().contains("SILVER"));
    server.predict(project).await;
    assert_eq!(mark_lines(&server.document(ids[1]).await), expected);
    let history = server.get(&format!("/documents/{}/history", ids[1])).await;
    assert!(history["events"].as_array().unwrap().iter().any(|event| event["what"] == "spread to 2 annotations"));

    server.post(&format!("/documents/{}/undo", ids[0]), json!({})).await;
    spread(&server).await;
    assert_eq!(mark_lines(&server.document(ids[1]).await), ["PRED open [[12,20]] delirium T:2"]);
    // A text with two meanings is not spread.
    server.decide(ids[2], json!({"kind": "accept", "mark": refused})).await;
    server.decide(ids[0], json!({"kind": "concept", "mark": mark, "concept": "T:4"})).await;
    spread(&server).await;
    assert!(mark_lines(&server.document(ids[1]).await)[0].ends_with("T:2"), "document 3 says T:2");
}

#[tokio::test]
async fn texts_that_people_linked_are_predicted_in_documents_imported_later() {
    let server = Server::temporary();
    let project = server.project("1|t|A brain fog today.\n1|a|\n\n").await;
    let first = server.documents(project).await[0];
    server.decide(first, json!({"kind": "add", "spans": [[2, 11]], "concept": "T:2"})).await;
    let imported = async |number: usize, text: &str| {
        let file = format!("{number}|t|{text}\n{number}|a|\n\n");
        server.import(project, "format=pubtator&annotations=gold", file.as_bytes()).await;
        server.predict(project).await;
        *server.documents(project).await.last().unwrap()
    };
    let second = imported(2, "Brain fog again.").await;
    assert_eq!(mark_lines(&server.document(second).await), ["PRED open [[0,9]] Brain fog T:2"]);
    // Rejected as often as linked, it is still predicted; rejected more often, it is not.
    let mark = mark_of(&server.document(second).await, "Brain fog");
    server.decide(second, json!({"kind": "reject", "mark": mark})).await;
    let third = imported(3, "No brain fog.").await;
    assert_eq!(mark_lines(&server.document(third).await), ["PRED open [[3,12]] brain fog T:2"]);
    let mark = mark_of(&server.document(third).await, "brain fog");
    server.decide(third, json!({"kind": "reject", "mark": mark})).await;
    let fourth = imported(4, "Brain fog?").await;
    assert_eq!(mark_lines(&server.document(fourth).await), [""; 0]);
    // Linked twice and rejected twice, it is again.
    server.decide(fourth, json!({"kind": "add", "spans": [[0, 9]], "concept": "T:2"})).await;
    let fifth = imported(5, "Brain fog!").await;
    assert_eq!(mark_lines(&server.document(fifth).await), ["PRED open [[0,9]] Brain fog T:2"]);
}

#[tokio::test]
async fn short_forms_and_names_that_begin_with_a_sign_are_predicted_and_words_are_not() {
    let server = Server::temporary();
    let project = server.project("1|t|A V+ today, +/- drowsy of late, (R)-pep.\n1|a|\n\n").await;
    let first = server.documents(project).await[0];
    for (spans, concept) in [([2, 4], "T:2"), ([12, 22], "T:3"), ([23, 25], "T:4"), ([32, 39], "T:5")] {
        server.decide(first, json!({"kind": "add", "spans": [spans], "concept": concept})).await;
    }
    let file = "2|t|V+ or V++, 5+/- drowsy, end of S-(R)-pep.\n2|a|\n\n";
    server.import(project, "format=pubtator", file.as_bytes()).await;
    server.predict(project).await;
    let second = *server.documents(project).await.last().unwrap();
    let expected =
        ["PRED open [[0,2]] V+ T:2", "PRED open [[12,22]] +/- drowsy T:3", "PRED open [[33,40]] (R)-pep T:5"];
    assert_eq!(mark_lines(&server.document(second).await), expected);
    let found = server.get(&format!("/documents/{second}/candidates?start=12&end=22")).await;
    assert_eq!((&found["candidates"][0]["id"], &found["candidates"][0]["how"]), (&json!("T:3"), &json!("linked")));
}

#[tokio::test]
async fn text_that_people_linked_replaces_shorter_predictions() {
    let server = Server::temporary();
    let project = server.project("1|t|Hard delirium and confused state, so confused.\n1|a|\n\n").await;
    let first = server.documents(project).await[0];
    server.decide(first, json!({"kind": "add", "spans": [[0, 13]], "concept": "T:4"})).await;
    server.import(project, "format=pubtator", b"2|t|No hard delirium, only pepcid.\n2|a|\n\n").await;
    // The model finds `delirium`, which is shorter, and `pepcid`.
    for _ in 0..2 {
        server.predict(project).await;
        let second = *server.documents(project).await.last().unwrap();
        let expected = ["PRED open [[3,16]] hard delirium T:4", "PRED open [[23,29]] pepcid T:5"];
        assert_eq!(mark_lines(&server.document(second).await), expected);
    }
}

#[tokio::test]
async fn prediction_that_gave_way_comes_back_unless_somebody_decided_since() {
    let server = Server::temporary();
    let project = server.project("1|t|Hard delirium.\n1|a|\n\n2|t|A hard delirium.\n2|a|\n\n").await;
    server.predict(project).await;
    let [first, second] = server.documents(project).await[..] else { panic!("two documents") };
    let second_has = async |expected: &[&str]| assert_eq!(mark_lines(&server.document(second).await), expected);
    let hard = "PRED open [[2,15]] hard delirium T:4";
    second_has(&["PRED open [[7,15]] delirium T:2"]).await;
    server.decide(first, json!({"kind": "add", "spans": [[0, 13]], "concept": "T:4"})).await;
    spread(&server).await;
    second_has(&[hard]).await;
    server.post(&format!("/documents/{first}/undo"), json!({})).await;
    spread(&server).await;
    second_has(&["PRED open [[7,15]] delirium T:2"]).await;
    server.decide(first, json!({"kind": "add", "spans": [[0, 13]], "concept": "T:4"})).await;
    spread(&server).await;
    let mark = mark_of(&server.document(second).await, "hard delirium");
    server.decide(second, json!({"kind": "accept", "mark": mark})).await;
    server.post(&format!("/documents/{first}/undo"), json!({})).await;
    spread(&server).await;
    second_has(&["USER accepted [[2,15]] hard delirium T:4"]).await;
}

#[tokio::test]
async fn proposals_are_used_at_once_and_exported() {
    let server = Server::temporary();
    let project = server.project("1|t|A brain fog and pepcid.\n1|a|\n\n2|t|Brain fog, fogginess\n2|a|\n\n").await;
    server.predict(project).await;
    let ids = server.documents(project).await;
    let path = format!("/projects/{project}/proposals");
    let new = json!({"kind": "concept", "name": "Brain fog", "concept": "T:1", "definition": "Slow thinking.",
        "document": ids[0], "start": 2, "end": 11});
    let proposed = server.post(&path, new.clone()).await;
    let id = proposed["proposal"]["concept"]["id"].as_str().unwrap().to_owned();
    assert_eq!((&proposed["n_predicted"], &proposed["proposal"]["type"]), (&json!(2), &json!("Disorder")));
    assert_eq!(proposed["proposal"]["evidence"], "A brain fog and pepcid.");
    assert_eq!(server.fail(Method::POST, &path, new.to_string()).await.0, 409, "already proposed");
    assert_eq!(mark_lines(&server.document(ids[1]).await), [format!("PRED open [[0,9]] Brain fog {id}")]);
    let found = server.get(&format!("/documents/{}/candidates?start=0&end=9", ids[1])).await;
    assert_eq!((&found["candidates"][0]["id"], &found["candidates"][0]["how"]), (&json!(id), &json!("proposal")));
    assert_eq!(found["candidates"][0]["path"], json!(["Mental disorder", "Brain fog"]));
    // A decision links to it, and a prediction finds it again.
    let mark = mark_of(&server.document(ids[1]).await, "Brain fog");
    server.decide(ids[1], json!({"kind": "accept", "mark": mark})).await;
    server.predict(project).await;
    assert_eq!(mark_lines(&server.document(ids[0]).await)[0], format!("PRED open [[2,11]] brain fog {id}"));

    let synonym = json!({"kind": "synonym", "name": "fogginess", "concept": "T:3", "scope": "broad"});
    let second = server.post(&path, synonym).await;
    assert_eq!((&second["n_predicted"], &second["proposal"]["concept"]["id"]), (&json!(1), &json!("T:3")));
    let typed = server.get(&format!("/documents/{}/candidates?start=0&end=1&q=foggi", ids[1])).await;
    assert_eq!(typed["candidates"][0]["matched"]["scope"], "broad");
    server.post(&path, json!({"kind": "synonym", "name": "acute brain failure", "concept": "T:2"})).await;
    for (wrong, status) in [
        (json!({"kind": "synonym", "name": "x"}), 400),
        (json!({"kind": "synonym", "name": "Pepcid", "concept": "T:5"}), 409),
        (json!({"kind": "concept", "name": "x", "concept": "T:99"}), 400),
        (json!({"kind": "concept", "name": " "}), 400),
    ] {
        assert_eq!(server.fail(Method::POST, &path, wrong.to_string()).await.0, status, "{wrong}");
    }

    let sssom = server.text(&format!("{path}/file?format=sssom")).await;
    let rows: Vec<&str> = sssom.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(rows[0].starts_with("subject_id\tsubject_label\tsubject_type\tpredicate_id\tobject_id"));
    assert!(rows[1].starts_with(
        "PROPOSED:1\tBrain fog\t\tskos:broadMatch\tT:1\tMental disorder\tsemapv:ManualMappingCuration\tlocal\t20"
    ));
    assert!(rows[2].starts_with("\tfogginess\trdfs literal\tskos:narrowMatch\tT:3\tConfusion\t"), "{}", rows[2]);
    let table = server.text(&format!("{path}/file?format=tsv")).await;
    assert_eq!(
        table,
        "PROPOSED:1\tBrain fog\t\tDisorder\tSlow thinking.\nT:2\tDelirium\tacute brain failure\tDisorder\t\n"
    );
    assert_eq!(server.fail(Method::GET, &format!("{path}/file?format=odd"), "").await.0, 400);

    // One in use stays; another one goes with its predictions.
    let first = server.get(&path).await["proposals"][0].clone();
    assert_eq!((&first["n_mentions"], &first["by"]), (&json!(1), &json!("local")));
    assert_eq!(server.fail(Method::DELETE, &format!("{path}/{}", first["id"]), "").await.0, 409);
    server.delete(&format!("{path}/2")).await;
    let left = mark_lines(&server.document(ids[1]).await);
    assert!(!left.iter().any(|line| line.contains("fogginess")), "{left:?}");
    assert_eq!(server.get(&path).await["proposals"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn terminology_is_browsed_and_searched_by_type_and_branch() {
    let (server, _, [id, ..]) = Server::with_corpus().await;
    let names = |level: &Value| -> Vec<String> {
        let rows = level["concepts"].as_array().unwrap().iter();
        rows.map(|row| format!("{} {}", row["name"].as_str().unwrap(), row["n_children"])).collect()
    };
    assert_eq!(names(&server.get("/kb/tree").await), ["Mental disorder 2"]);
    let level = server.get("/kb/tree?under=T:1").await;
    assert_eq!(names(&level), ["Confusion 0", "Delirium 1"]);
    assert_eq!(level["path"], json!([{"id": "T:1", "name": "Mental disorder"}]));
    assert_eq!(server.fail(Method::GET, "/kb/tree?under=T:99", "").await.0, 404);
    let found = async |path: &str, list: &str| -> Vec<String> {
        let page = server.get(path).await;
        page[list].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found("/kb/search?q=delirium", "results").await[..2], ["T:2", "T:4"]);
    assert_eq!(found("/kb/search?q=delirium&type=Chemical", "results").await, [""; 0]);
    assert_eq!(found("/kb/search?q=delirium&under=T:4", "results").await, ["T:4"]);
    let path = format!("/documents/{id}/candidates?start=0&end=1&q=delirium");
    assert_eq!(found(&format!("{path}&under=T:4"), "candidates").await, ["T:4"]);
    assert_eq!(found(&format!("{path}&type=Chemical"), "candidates").await, [""; 0]);
    for wrong in ["type=Odd", "under=T:99"] {
        assert_eq!(server.fail(Method::GET, &format!("/kb/search?q=a&{wrong}"), "").await.0, 400);
    }
    let shown = server.get(&format!("/documents/{id}/candidates?start=0&end=1&q=delirium")).await;
    assert_eq!(shown["candidates"][0]["synonyms"], json!([{"name": "acute confusional state", "scope": "exact"}]));
}

#[tokio::test]
async fn mesh_headings_of_the_metadata_have_names() {
    let server = Server::temporary();
    let project = server.empty_project().await;
    let line = r#"{"id":"1","text":"No fever.","annotations":[],"attributes":{"mesh":"T:2|D1","year":"5"}}"#;
    server.import(project, "format=jsonl", line.as_bytes()).await;
    let rows = server.get(&format!("/projects/{project}/documents")).await;
    assert_eq!(rows["documents"][0]["headings"], json!({"T:2": "Delirium"}));
}
