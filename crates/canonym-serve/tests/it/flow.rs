//! The workflow of an annotator, from an empty folder to an export.

use axum::body::Body;
use axum::http::Method;
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{CORPUS, Server, mark_lines, mark_of};

#[tokio::test]
async fn gold_marks_are_shown_with_their_concepts() {
    let (server, project, ids) = Server::with_corpus().await;
    let mut lines = Vec::new();
    for id in &ids {
        lines.extend(mark_lines(&server.document(*id).await));
    }
    expect![[r#"
        GOLD accepted [[2,12]] Famotidine T:5
        GOLD accepted [[0,13]] Breast cancer T:6
        GOLD accepted [[7,13]] cancer T:6
        GOLD accepted [[6,14]] syndrome NIL"#]]
    .assert_eq(&lines.join("\n"));
    let first = server.document(ids[0]).await;
    assert_eq!(
        first["sections"],
        json!([{"kind": "title", "start": 0, "end": 32}, {"kind": "abstract", "start": 33, "end": 67}])
    );
    let row = &server.get(&format!("/projects/{project}/documents")).await["documents"][2];
    assert_eq!(
        (&row["title"], &row["n_marks"], &row["n_open"]),
        (&json!("A new syndrome. The syndrome is unknown."), &json!(1), &json!(0))
    );
    let project = server.get(&format!("/projects/{project}")).await;
    assert_eq!(
        (&project["n_documents"], &project["n_finished"], &project["n_decisions"]),
        (&json!(3), &json!(0), &json!(0))
    );
}

#[tokio::test]
async fn pubtator_export_equals_the_import() {
    let (server, project, _) = Server::with_corpus().await;
    let exported = server.text(&format!("/projects/{project}/export?format=pubtator")).await;
    assert_eq!(exported, CORPUS);
    let again = server.project(&exported).await;
    assert_eq!(server.text(&format!("/projects/{again}/export?format=pubtator")).await, exported);
    for format in ["jsonl", "bioc-xml", "bioc-json", "texoo", "conll"] {
        let text = server.text(&format!("/projects/{project}/export?format={format}")).await;
        assert!(text.contains("Famotidine"), "{format}: {text}");
    }
    let brat = server.send(Method::GET, &format!("/api/v1/projects/{project}/export?format=brat"), Body::empty()).await;
    assert_eq!(brat.headers()["content-disposition"], "attachment; filename=\"Test.zip\"");
}

#[tokio::test]
async fn new_concept_ids_follow_the_style_of_the_file() {
    let server = Server::temporary();
    for (of_file, expected) in [("5", "2"), ("T:5", "T:2"), ("-1", "T:2")] {
        let project =
            server.project(&format!("1|t|Pepcid, delirium.\n1|a|\n1\t0\t6\tPepcid\tDrug\t{of_file}\n\n")).await;
        let id = server.documents(project).await[0];
        server.decide(id, json!({"kind": "add", "spans": [[8, 16]], "concept": "T:2"})).await;
        let exported = server.text(&format!("/projects/{project}/export?format=pubtator")).await;
        assert!(
            exported.contains(&format!("Drug\t{of_file}\n1\t8\t16\tdelirium\tDisorder\t{expected}\n")),
            "{exported}"
        );
    }
}

#[tokio::test]
async fn annotator_workflow_from_import_to_export() {
    let (server, project, ids) = Server::with_corpus().await;

    // An added mark after an emoji is there after a reload.
    let added = server.decide(ids[0], json!({"kind": "add", "spans": [[24, 31]], "concept": "T:2"})).await;
    assert_eq!(added["marks"][0]["text"], "de\u{301}lire");
    assert_eq!(added["marks"][0]["type"], "Disorder");
    assert_eq!(added["marks"][0]["by"], "local");
    let reloaded = server.document(ids[0]).await;
    assert_eq!(reloaded["version"], added["version"]);
    assert_eq!(mark_lines(&reloaded)[1], "USER accepted [[24,31]] de\u{301}lire T:2");

    // The queue shows confidence and reason.
    let job = server.predict(project).await;
    assert_eq!((&job["state"], &job["progress"]), (&json!("SUCCEEDED"), &json!(1.0)));
    let queue = server.get(&format!("/projects/{project}/queue")).await;
    let rows: Vec<(&str, &Value)> = queue["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["external_id"].as_str().unwrap(), &row["confidence"]))
        .collect();
    // 1 has {.92, 1.15}, 2 has {1.00}; 3 has no predictions.
    assert_eq!(rows, [("1", &json!(0.92)), ("2", &json!(1.0)), ("3", &Value::Null)]);
    assert_eq!(queue["documents"][0]["reason"], "uncertain: “delirium” – Delirium .81 vs Confusion .79");
    assert_eq!(queue["documents"][0]["n_open"], 2);

    // Accept one, correct the other, and reject a third.
    let predicted = server.document(ids[0]).await;
    let (delirium, confused) = (mark_of(&predicted, "delirium"), mark_of(&predicted, "confused"));
    let accepted = server.decide(ids[0], json!({"kind": "accept", "mark": delirium})).await;
    assert_eq!((&accepted["marks"][0]["source"], &accepted["marks"][0]["state"]), (&json!("USER"), &json!("accepted")));
    assert_eq!(accepted["marks"][0]["model"], "first");
    server.decide(ids[0], json!({"kind": "spans", "mark": confused, "spans": [[54, 66]]})).await;
    let pepcid = mark_of(&server.document(ids[1]).await, "pepcid");
    let rejected = server.decide(ids[1], json!({"kind": "reject", "mark": pepcid})).await;
    assert_eq!((&rejected["removed"], &rejected["marks"]), (&json!([pepcid]), &json!([])));
    let all = server.get(&format!("/documents/{}?all=1", ids[1])).await;
    assert!(mark_lines(&all).contains(&"PRED rejected [[32,38]] pepcid T:5".to_owned()), "{all}");

    // Undo and redo are separate for each document.
    let undone = server.post(&format!("/documents/{}/undo", ids[1]), json!({})).await;
    assert_eq!(undone["marks"][0]["state"], "open");
    server.post(&format!("/documents/{}/undo", ids[0]), json!({})).await;
    let undone = server.post(&format!("/documents/{}/undo", ids[0]), json!({})).await;
    assert_eq!(undone["marks"][0]["source"], "PRED");
    let redone = server.post(&format!("/documents/{}/redo", ids[0]), json!({})).await;
    assert_eq!(redone["marks"][0]["source"], "USER");
    server.post(&format!("/documents/{}/redo", ids[0]), json!({})).await;
    let (status, _) = server.fail(Method::POST, &format!("/documents/{}/redo", ids[0]), "{}").await;
    assert_eq!(status, 409);

    // Finishing accepts open predictions; the document leaves the queue.
    let finished = server.decide(ids[1], json!({"kind": "finish", "value": true})).await;
    assert_eq!(finished["is_finished"], true);
    assert_eq!(finished["marks"][0]["source"], "USER");
    let queue = server.get(&format!("/projects/{project}/queue")).await;
    assert_eq!(queue["documents"].as_array().unwrap().len(), 2);

    let exported = server.text(&format!("/projects/{project}/export?format=pubtator&sources=gold,user")).await;
    expect![[r#"
        1|t|🧪 Famotidine-associated délire.
        1|a|She had delirium and was confused.
        1	2	12	Famotidine	Chemical	T:5
        1	24	31	délire	Disorder	T:2
        1	41	49	delirium	Disorder	T:2
        1	54	66	was confused	Disorder	T:3

        2|t|Breast cancer cells.
        2|a|Nothing of pepcid.
        2	0	13	Breast cancer	Disorder	6
        2	7	13	cancer	Disorder	6
        2	32	38	pepcid	Disorder	T:5

        3|t|A new syndrome.
        3|a|The syndrome is unknown.
        3	6	14	syndrome	Disorder	-1

    "#]]
    .assert_eq(&exported);
    let again = server.project(&exported).await;
    assert_eq!(server.text(&format!("/projects/{again}/export?format=pubtator")).await, exported);

    let history = server.get(&format!("/documents/{}/history", ids[1])).await;
    let what: Vec<&str> =
        history["events"].as_array().unwrap().iter().map(|event| event["what"].as_str().unwrap()).collect();
    assert_eq!(
        what,
        [
            "imported with 2 annotations",
            "1 prediction changed",
            "rejected “pepcid”",
            "undid a decision on 1 annotation",
            "finished the document and accepted 1 annotation",
        ]
    );
}

#[tokio::test]
async fn finishing_accepts_predictions_and_reopening_restores_them() {
    let (server, project, [id, ..]) = Server::with_corpus().await;
    server.predict(project).await;
    let before = server.document(id).await;
    let finish = |accepts: usize| json!({"kind": "finish", "value": true, "accepts": accepts});
    // The client expects one open prediction, but there are two.
    let body = json!({"version": before["version"], "decisions": [finish(1)]}).to_string();
    let (status, answer) = server.fail(Method::POST, &format!("/documents/{id}/decisions"), body).await;
    assert_eq!(
        (status, &answer["error"]["message"]),
        (409, &json!("finishing would accept 2 open predictions, not 1"))
    );
    // The number is required, except if there are no open predictions.
    let silent = json!({"kind": "finish", "value": true});
    let body = json!({"version": before["version"], "decisions": [silent]}).to_string();
    let (status, answer) = server.fail(Method::POST, &format!("/documents/{id}/decisions"), body).await;
    assert_eq!(
        (status, &answer["error"]["message"]),
        (409, &json!("finishing would accept 2 open predictions, and `accepts` does not say so"))
    );
    let empty = server.document(server.documents(project).await[2]).await;
    assert!(!mark_lines(&empty).iter().any(|line| line.starts_with("PRED open")), "{empty}");
    let body = json!({"version": empty["version"], "decisions": [silent]});
    assert_eq!(server.post(&format!("/documents/{}/decisions", empty["id"]), body).await["is_finished"], true);
    assert_eq!(mark_lines(&server.document(id).await), mark_lines(&before));
    server.decide(id, finish(2)).await;
    let pred = |document: &Value| mark_lines(document).iter().filter(|line| line.starts_with("PRED open")).count();
    assert_eq!(pred(&server.document(id).await), 0);
    // One undo reverts all of it.
    server.post(&format!("/documents/{id}/undo"), json!({})).await;
    let undone = server.document(id).await;
    assert_eq!((&undone["is_finished"], mark_lines(&undone)), (&json!(false), mark_lines(&before)));
    // Reopening makes accepted predictions open again, except those decided on since.
    server.decide(id, finish(2)).await;
    server.decide(id, json!({"kind": "nil", "mark": mark_of(&before, "confused")})).await;
    server.decide(id, json!({"kind": "finish", "value": false})).await;
    let opened = server.document(id).await;
    assert_eq!(
        mark_lines(&opened),
        [
            "GOLD accepted [[2,12]] Famotidine T:5",
            "PRED open [[41,49]] delirium T:2",
            "USER accepted [[58,66]] confused NIL"
        ]
    );
    assert!(
        server.get(&format!("/projects/{project}/disagreements")).await["disagreements"].as_array().unwrap().is_empty()
    );
}

#[tokio::test]
async fn finishing_removes_predictions_that_contradict_annotations() {
    let (server, project, [id, ..]) = Server::with_corpus().await;
    server.predict(project).await;
    let before = server.document(id).await;
    server.decide(id, json!({"kind": "concept", "mark": mark_of(&before, "delirium"), "concept": "T:5"})).await;
    server.predict(project).await;
    let open = server.document(id).await;
    let famotidine = "GOLD accepted [[2,12]] Famotidine T:5";
    let (decided, contradicting) = ("USER accepted [[41,49]] delirium T:5", "PRED open [[41,49]] delirium T:2");
    let confused = |state: &str| format!("{state} [[58,66]] confused T:3");
    let mut lines = mark_lines(&open);
    lines.sort_unstable();
    assert_eq!(lines, [famotidine, contradicting, &confused("PRED open"), decided]);
    server.decide(id, json!({"kind": "finish", "value": true, "accepts": 2})).await;
    let mut lines = mark_lines(&server.document(id).await);
    lines.sort_unstable();
    assert_eq!(lines, [famotidine, decided, &confused("USER accepted")]);
    server.decide(id, json!({"kind": "finish", "value": false})).await;
    assert_eq!(mark_lines(&server.document(id).await).len(), 4);
}

#[tokio::test]
async fn human_annotation_replaces_the_same_prediction() {
    let server = Server::temporary();
    let corpus = "1|t|She had delirium and was confused.\n1|a|\n1\t8\t16\tdelirium\tDisorder\n\n";
    let project = server.project(corpus).await;
    let id = server.documents(project).await[0];
    server.predict(project).await;
    let before = server.document(id).await;
    assert_eq!(
        mark_lines(&before),
        ["GOLD accepted [[8,16]] delirium ?", "PRED open [[8,16]] delirium T:2", "PRED open [[25,33]] confused T:3"]
    );
    // The gold span is linked to the predicted concept, and the other prediction is annotated by hand.
    server.decide(id, json!({"kind": "concept", "mark": mark_of(&before, "delirium"), "concept": "T:2"})).await;
    let added = server.decide(id, json!({"kind": "add", "spans": [[25, 33]], "concept": "T:3"})).await;
    assert_eq!(added["marks"][0]["id"], mark_of(&before, "confused"));
    let after = server.document(id).await;
    assert_eq!(mark_lines(&after), ["USER accepted [[8,16]] delirium T:2", "USER accepted [[25,33]] confused T:3"]);
    assert!(after["marks"].as_array().unwrap().iter().all(|mark| mark["disagrees"] == json!([])));
    let exported = server.text(&format!("/projects/{project}/export?format=pubtator&sources=gold,user,pred")).await;
    assert_eq!(exported.lines().filter(|line| line.contains('\t')).count(), 2, "{exported}");
    for _ in 0..2 {
        server.post(&format!("/documents/{id}/undo"), json!({})).await;
    }
    assert_eq!(mark_lines(&server.document(id).await), mark_lines(&before));
}

#[tokio::test]
async fn each_kind_of_decision_changes_its_mark() {
    let (server, project, [_, id, _]) = Server::with_corpus().await;
    let outer = mark_of(&server.document(id).await, "Breast cancer");
    let steps = [
        (json!({"kind": "concept", "mark": outer, "concept": "3"}), "USER accepted [[0,13]] Breast cancer T:3"),
        (json!({"kind": "nil", "mark": outer}), "USER accepted [[0,13]] Breast cancer NIL"),
        (
            json!({"kind": "spans", "mark": outer, "spans": [[0, 6], [14, 19]]}),
            "USER accepted [[0,6],[14,19]] Breast cells NIL",
        ),
    ];
    for (decision, expected) in steps {
        server.decide(id, decision).await;
        assert!(mark_lines(&server.document(id).await).contains(&expected.to_owned()), "{expected}");
    }
    let unsure = server.decide(id, json!({"kind": "unsure", "mark": outer, "value": true})).await;
    assert_eq!(unsure["marks"][0]["is_unsure"], true);
    let typed = server.decide(id, json!({"kind": "type", "mark": outer, "type": "Cell"})).await;
    assert_eq!(typed["marks"][0]["type"], "Cell");
    let deleted = server.decide(id, json!({"kind": "delete", "mark": outer})).await;
    assert_eq!(deleted["removed"], json!([outer]));
    // Imported annotations can be rejected, but not deleted.
    let seen = server.document(id).await;
    let delete = json!({"kind": "delete", "mark": mark_of(&seen, "cancer")});
    let body = json!({"version": seen["version"], "decisions": [delete]}).to_string();
    assert_eq!(server.fail(Method::POST, &format!("/documents/{id}/decisions"), body).await.0, 400);
    let exported = server.text(&format!("/projects/{project}/export?format=pubtator")).await;
    assert!(!exported.contains("Breast cancer\t"), "{exported}");
}

#[tokio::test]
async fn decision_is_applied_to_identical_mentions() {
    let server = Server::temporary();
    let corpus = "1|t|Delirium and delirium.\n1|a|DELIRIUM, deliriums.\n\n2|t|No delirium here.\n2|a|\n\n";
    let project = server.project(corpus).await;
    let ids = server.documents(project).await;
    server.predict(project).await;
    let added = server.decide(ids[0], json!({"kind": "add", "spans": [[0, 8]], "concept": "T:4"})).await;
    let mark = added["marks"][0]["id"].as_i64().unwrap();
    let ask =
        |scope: &str, apply: bool| json!({"mark": mark, "scope": scope, "apply": apply, "version": added["version"]});
    let path = format!("/projects/{project}/identical-mentions");
    assert_eq!(server.post(&path, ask("document", false)).await["matches"].as_array().unwrap().len(), 2);
    let preview = server.post(&path, ask("project", false)).await;
    let places: Vec<String> = preview["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{} {} {} {}", row["external_id"], row["spans"], row["text"], row["mark"].is_null()))
        .collect();
    assert_eq!(
        places,
        [
            "\"1\" [[13,21]] \"delirium\" false",
            "\"1\" [[23,31]] \"DELIRIUM\" true",
            "\"2\" [[3,11]] \"delirium\" false"
        ]
    );
    assert_eq!(server.post(&path, ask("project", true)).await["applied"], 3);
    assert!(server.post(&path, ask("project", false)).await["matches"].as_array().unwrap().is_empty());
    assert_eq!(mark_lines(&server.document(ids[1]).await), ["USER accepted [[3,11]] delirium T:4"]);
    server.post(&format!("/documents/{}/undo", ids[1]), json!({})).await;
    assert_eq!(mark_lines(&server.document(ids[1]).await), ["PRED open [[3,11]] delirium T:2"]);
}

#[tokio::test]
async fn candidates_come_from_model_names_and_recent_choices() {
    let (server, _, [id, ..]) = Server::with_corpus().await;
    server.decide(id, json!({"kind": "add", "spans": [[2, 12]], "concept": "T:6"})).await;
    let show = |answer: Value| -> Vec<String> {
        let rows = answer["candidates"].as_array().unwrap().clone();
        rows.iter().map(|row| format!("{} {}", row["id"].as_str().unwrap(), row["how"].as_str().unwrap())).collect()
    };
    let choices = server.get(&format!("/documents/{id}/candidates?start=41&end=49")).await;
    assert_eq!(choices["candidates"][1]["definition"], "A state of being confused.");
    assert_eq!(choices["candidates"][0]["path"], json!(["Mental disorder", "Delirium", "Emergence Delirium"]));
    assert_eq!(choices["candidates"][2]["n_chosen"], 1);
    let matched = json!({"name": "Delirium", "scope": "preferred", "how": "exact", "similarity": 1.0});
    assert_eq!(choices["candidates"][1]["matched"], matched);
    assert_eq!(show(choices), ["T:4 model", "T:2 model", "T:6 recent"]);
    let typed = server.get(&format!("/documents/{id}/candidates?start=41&end=49&q=conf")).await;
    assert_eq!(show(typed), ["T:3 prefix", "T:2 prefix"]);
}

#[tokio::test]
async fn documents_are_paged_without_gaps() {
    let server = Server::temporary();
    let corpus: String = (0..7).map(|n| format!("{n}|t|Title {n}.\n{n}|a|\n\n")).collect();
    let project = server.project(&corpus).await;
    let (mut cursor, mut seen) = (String::new(), Vec::new());
    loop {
        let page = server.get(&format!("/projects/{project}/documents?limit=3&cursor={cursor}")).await;
        seen.extend(
            page["documents"].as_array().unwrap().iter().map(|row| row["external_id"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["0", "1", "2", "3", "4", "5", "6"]);
}

#[tokio::test]
async fn documents_and_projects_are_renamed_and_deleted() {
    let server = Server::temporary();
    let (project, other) = (server.project(CORPUS).await, server.project(CORPUS).await);
    let ids = server.documents(project).await;
    server.predict(project).await;
    for id in [ids[0], ids[2]] {
        server.decide(id, json!({"kind": "add", "spans": [[2, 5]], "concept": "T:2"})).await;
        server.decide(id, json!({"kind": "finish", "value": true, "seconds": 5.0})).await;
        server.post(&format!("/documents/{id}/comments"), json!({"text": "done"})).await;
    }
    let renamed = server.patch(&format!("/documents/{}", ids[0]), json!({"external_id": " ward-1 "})).await;
    assert_eq!(renamed["external_id"], "ward-1");
    let body = json!({"external_id": "2"}).to_string();
    let (status, answer) = server.fail(Method::PATCH, &format!("/documents/{}", ids[0]), body).await;
    assert_eq!((status, &answer["error"]["message"]), (409, &json!("document “2” already exists in this project")));
    // The number of a deleted document is not reused, and its events are not counted.
    server.delete(&format!("/documents/{}", ids[2])).await;
    assert_eq!(server.fail(Method::GET, &format!("/documents/{}", ids[2]), "").await.0, 404);
    let stats = server.get(&format!("/projects/{project}/stats")).await;
    assert_eq!((&stats["n_documents"], &stats["n_finished"]), (&json!(2), &json!(1)));
    assert_eq!(stats["by_decision"], json!({"add": 1, "finish": 1}));
    assert_eq!(stats["by_source"], json!({"GOLD": 3, "USER": 3, "PRED": 1}));
    server.app.store.write(|transaction| canonym_serve::store::events::rebuild(transaction)).unwrap();
    assert_eq!(server.get(&format!("/projects/{project}/stats")).await, stats);
    server.import(project, "format=text&filename=new.txt", b"New.").await;
    let ids_now = server.documents(project).await;
    assert!(ids_now[2] > *server.documents(other).await.last().unwrap(), "{ids_now:?}");
    server.delete(&format!("/projects/{project}")).await;
    assert_eq!(server.fail(Method::GET, &format!("/projects/{project}"), "").await.0, 404);
    assert_eq!(server.documents(other).await.len(), 3);
    assert!(server.post("/projects", json!({"name": "New"})).await["id"].as_i64().unwrap() > other);
}

#[tokio::test]
async fn comments_and_settings_are_stored() {
    let (server, project, [id, ..]) = Server::with_corpus().await;
    let comment = server.post(&format!("/documents/{id}/comments"), json!({"text": " look here "})).await;
    assert_eq!((&comment["text"], &comment["by"]), (&json!("look here"), &json!("local")));
    assert_eq!(server.document(id).await["comments"], json!([comment]));
    let patched =
        server.patch(&format!("/projects/{project}"), json!({"strategy": "margin", "guideline": "Mark it."})).await;
    assert_eq!((&patched["strategy"], &patched["guideline"]), (&json!("margin"), &json!("Mark it.")));
    assert_eq!(server.get(&format!("/projects/{project}/queue")).await["strategy"], "margin");
}

#[tokio::test]
async fn measured_time_is_stored_when_a_document_is_finished() {
    let (server, project, ids) = Server::with_corpus().await;
    let path = format!("/projects/{project}/annotation-speed");
    assert_eq!(server.get(&path).await["all"], Value::Null);
    server.decide(ids[0], json!({"kind": "finish", "value": true, "seconds": 30.5})).await;
    server.predict(project).await;
    server.decide(ids[1], json!({"kind": "finish", "value": true, "seconds": 10})).await;
    // Reopened and finished again: the times add up.
    server.decide(ids[1], json!({"kind": "finish", "value": false})).await;
    server.decide(ids[1], json!({"kind": "finish", "value": true, "seconds": 4.5})).await;
    // The third was not measured, so its time is estimated from its decisions.
    server.decide(ids[2], json!({"kind": "add", "spans": [[0, 1]]})).await;
    server.decide(ids[2], json!({"kind": "finish", "value": true})).await;
    let pace = server.get(&path).await;
    assert_eq!((&pace["n_measured"], &pace["n_estimated"]), (&json!(2), &json!(1)));
    assert_eq!(pace["all"]["median"], 14.5);
    assert_eq!((&pace["people"][0]["name"], &pace["people"][0]["n"]), (&json!("local"), &json!(3)));
    let models: Vec<(&Value, &Value)> =
        pace["models"].as_array().unwrap().iter().map(|one| (&one["name"], &one["seconds"]["median"])).collect();
    assert_eq!(models, [(&Value::Null, &json!(30.5)), (&json!("first"), &json!(14.5))]);
    let points: Vec<&Value> = pace["points"].as_array().unwrap().iter().map(|one| &one["external_id"]).collect();
    assert_eq!(points, ["1", "2"]);
    // A wrong clock counts as a day at most.
    server.decide(ids[2], json!({"kind": "finish", "value": true, "seconds": 1e9})).await;
    assert_eq!(server.get(&path).await["points"][2]["seconds"], 86400.0);
}
