//! Blind annotation: assignment, answers that come together, and adjudication in groups.

use axum::http::Method;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::people::{account_id, three_accounts};
use crate::support::{Server, mark_lines, mark_of};

/// A project with predictions, assigned to cyd and ann: admin, curator, annotator, the project, and the projects of the two.
async fn assigned() -> ([Server; 3], i64, [i64; 2]) {
    let (_, [ada, cyd, ann]) = three_accounts().await;
    let (project, _) = ada.corpus().await;
    ada.add_all_members(project).await;
    ada.predict(project).await;
    let people = [account_id(&ada, "cyd").await, account_id(&ada, "ann").await];
    let page = cyd.post(&format!("/projects/{project}/assignments"), json!({"people": people})).await;
    assert_eq!((&page["n_assigned"], &page["n_unassigned"]), (&json!(3), &json!(0)));
    let of = |row: usize| page["people"][row]["project"].as_i64().unwrap();
    ([ada, cyd, ann], project, [of(0), of(1)])
}

async fn disagreements(server: &Server, project: i64) -> String {
    let page = server.get(&format!("/projects/{project}/disagreements")).await;
    let mut text = String::new();
    for row in page["disagreements"].as_array().unwrap() {
        text += &format!("{} {}", row["external_id"].as_str().unwrap(), row["text"].as_str().unwrap());
        for answer in row["answers"].as_array().unwrap() {
            let names = answer["people"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap());
            let claims = answer["claims"].as_array().unwrap().iter();
            let claims: Vec<&str> = claims.map(|claim| claim["concept"]["id"].as_str().unwrap_or("NIL")).collect();
            text += &format!(" | {}: {}", names.collect::<Vec<_>>().join("+"), claims.join(", "));
        }
        text += "\n";
    }
    text
}

fn check(found: &str, expected: Expect) {
    expected.assert_eq(found);
}

#[tokio::test]
async fn annotators_work_blind_and_their_answers_come_together() {
    let ([ada, cyd, ann], project, [of_cyd, of_ann]) = assigned().await;
    // Each sees the own copies alone; the curator sees the originals, too.
    let names = async |server: &Server| -> Vec<String> {
        let all = server.get("/projects").await;
        all["projects"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&ann).await, ["Test – ann"]);
    assert_eq!(names(&cyd).await, ["Test", "Test – cyd"]);
    assert_eq!(ann.fail(Method::GET, &format!("/projects/{project}"), "").await.0, 404);
    assert_eq!(cyd.fail(Method::GET, &format!("/projects/{of_ann}"), "").await.0, 404);
    let shown = ann.get(&format!("/projects/{of_ann}")).await;
    assert_eq!((&shown["parent"], &shown["annotator"]), (&json!(project), &json!("ann")));

    let [original, copy_of_cyd, copy_of_ann] =
        [ada.documents(project).await[0], cyd.documents(of_cyd).await[0], ann.documents(of_ann).await[0]];
    let copy = ann.document(copy_of_ann).await;
    assert_eq!(mark_lines(&copy), mark_lines(&ada.document(original).await));
    let mark = |text: &str| mark_of(&copy, text);
    ann.decide(copy_of_ann, json!({"kind": "concept", "mark": mark("confused"), "concept": "T:2"})).await;
    ann.decide(copy_of_ann, json!({"kind": "reject", "mark": mark("delirium")})).await;
    ann.post(&format!("/documents/{copy_of_ann}/comments"), json!({"mark": mark("confused"), "text": "Sure?"})).await;
    ann.decide(copy_of_ann, json!({"kind": "finish", "value": true})).await;
    // Nothing comes together before everybody has finished.
    assert_eq!(disagreements(&cyd, project).await, "");
    let page = cyd.get(&format!("/projects/{project}/assignments")).await;
    assert_eq!(
        page["documents"][0]["annotators"],
        json!([{"name": "cyd", "is_finished": false}, {"name": "ann", "is_finished": true}])
    );
    assert_eq!(page["people"][1]["n_finished"], 1);
    cyd.decide(copy_of_cyd, json!({"kind": "finish", "value": true})).await;
    check(
        &disagreements(&cyd, project).await,
        expect![[r#"
            1 delirium | cyd: T:2 | ann: 
            1 confused | cyd: T:3 | ann: T:2
        "#]],
    );
    let together = cyd.document(original).await;
    check(
        &mark_lines(&together).join("\n"),
        expect![[r#"
        GOLD accepted [[2,12]] Famotidine T:5
        USER accepted [[41,49]] delirium T:2
        USER accepted [[58,66]] confused T:3"#]],
    );
    assert_eq!((&together["is_finished"], &together["comments"][0]["text"]), (&json!(false), &json!("Sure?")));
    let agreement = cyd.get(&format!("/projects/{project}/stats")).await["agreement"].clone();
    assert_eq!((&agreement["n_both"], &agreement["n_people"]), (&json!(2), &json!(2)));

    // The last conflict that is resolved finishes the document, and undo opens both again.
    let page = cyd.get(&format!("/projects/{project}/disagreements")).await;
    for row in page["disagreements"].as_array().unwrap() {
        let version = cyd.document(original).await["version"].clone();
        let keep = json!([{"spans": [[row["start"], row["end"]]], "concept": "T:2"}]);
        let settle =
            json!({"version": version, "decisions": [{"kind": "settle", "marks": row["marks"], "keep": keep}]});
        cyd.post(&format!("/documents/{original}/decisions"), settle).await;
    }
    assert_eq!(cyd.document(original).await["is_finished"], true);
    let page = cyd.get(&format!("/projects/{project}/assignments")).await;
    assert_eq!(
        (&page["documents"][0]["n_conflicts"], &page["documents"][0]["is_collected"]),
        (&json!(0), &json!(true))
    );
    cyd.post(&format!("/documents/{original}/undo"), json!({})).await;
    assert_eq!(cyd.document(original).await["is_finished"], false);
}

#[tokio::test]
async fn document_that_all_agree_on_is_finished() {
    let ([ada, cyd, ann], project, [of_cyd, of_ann]) = assigned().await;
    for (server, of) in [(&cyd, of_cyd), (&ann, of_ann)] {
        let copy = server.documents(of).await[1];
        server.decide(copy, json!({"kind": "add", "spans": [[0, 6]], "concept": "T:6"})).await;
        server.decide(copy, json!({"kind": "finish", "value": true})).await;
    }
    let original = ada.documents(project).await[1];
    let document = ada.document(original).await;
    assert_eq!((disagreements(&ada, project).await.as_str(), &document["is_finished"]), ("", &json!(true)));
    check(
        &mark_lines(&document).join("\n"),
        expect![[r#"
        USER accepted [[0,6]] Breast T:6
        GOLD accepted [[0,13]] Breast cancer T:6
        GOLD accepted [[7,13]] cancer T:6
        USER accepted [[32,38]] pepcid T:5"#]],
    );
}

#[tokio::test]
async fn documents_are_spread_evenly_and_withdrawn() {
    let (_, [ada, cyd, ann]) = three_accounts().await;
    let (project, _) = ada.corpus().await;
    ada.add_all_members(project).await;
    let people = [account_id(&ada, "ada").await, account_id(&ada, "cyd").await, account_id(&ada, "ann").await];
    let path = format!("/projects/{project}/assignments");
    let body = json!({"people": people, "n_annotators": 2, "predictions": false});
    assert_eq!(ann.fail(Method::POST, &path, body.to_string()).await.0, 403);
    let page = cyd.post(&path, body.clone()).await;
    let counts: Vec<&Value> = page["people"].as_array().unwrap().iter().map(|one| &one["n_documents"]).collect();
    assert_eq!(counts, [2, 2, 2]);
    assert_eq!(cyd.fail(Method::POST, &path, body.to_string()).await.0, 400, "nothing is left to assign");
    let inner = page["people"][0]["project"].as_i64().unwrap();
    assert_eq!(ada.fail(Method::POST, &format!("/projects/{inner}/assignments"), body.to_string()).await.0, 400);
    for wrong in [json!({"people": []}), json!({"people": people, "n_annotators": 4}), json!({"people": [99]})] {
        let (status, _) = cyd.fail(Method::POST, &path, wrong.to_string()).await;
        assert!([400, 404].contains(&status), "{wrong}");
    }
    // Without her, the finished answers of the others count.
    let of = |row: usize| page["people"][row]["project"].as_i64().unwrap();
    for (server, project) in [(&ada, of(0)), (&cyd, of(1))] {
        for copy in server.documents(project).await {
            server.decide(copy, json!({"kind": "finish", "value": true})).await;
        }
    }
    let collected = |page: &Value| {
        let rows = page["documents"].as_array().unwrap().iter();
        rows.filter(|row| row["is_collected"] == true).count()
    };
    assert_eq!(collected(&cyd.get(&path).await), 1);
    let page = cyd.delete(&format!("{path}/{}", people[2])).await;
    assert_eq!((collected(&page), &page["people"][2]["n_documents"]), (3, &json!(0)));
    assert_eq!(cyd.fail(Method::DELETE, &format!("{path}/{}", people[2]), "").await.0, 404);
    // Guideline and scope reach the copies; deleting the project deletes them.
    ada.patch(&format!("/projects/{project}"), json!({"guideline": "All.", "scope": {"types": ["Disorder"]}})).await;
    let copies = ada.get(&format!("/projects/{}", of(1))).await;
    assert_eq!((&copies["guideline"], &copies["scope"]["types"]), (&json!("All."), &json!(["Disorder"])));
    ada.delete(&format!("/projects/{project}")).await;
    assert_eq!(ada.get("/projects").await["projects"], json!([]));
}

#[tokio::test]
async fn conflicts_with_the_same_answers_are_resolved_together_and_undone_as_one() {
    let (_, [ada, cyd, ann]) = three_accounts().await;
    let project =
        ada.project("1|t|delirium\n1|a|Delirium, again.\n\n2|t|delirium\n2|a|\n\n3|t|confused\n3|a|\n\n").await;
    ada.add_all_members(project).await;
    ada.predict(project).await;
    for id in ada.documents(project).await {
        for mark in ada.document(id).await["marks"].as_array().unwrap() {
            cyd.decide(id, json!({"kind": "accept", "mark": mark["id"]})).await;
            ann.decide(id, json!({"kind": "concept", "mark": mark["id"], "concept": "T:4"})).await;
        }
    }
    let groups = async || cyd.get(&format!("/projects/{project}/disagreements/groups")).await["groups"].clone();
    let all = groups().await;
    let shown: Vec<String> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|group| {
            let answers = group["answers"].as_array().unwrap().iter().map(|one| {
                let concepts = one["concepts"].as_array().unwrap().iter();
                let ids: Vec<&str> = concepts.map(|one| one["id"].as_str().unwrap_or("NIL")).collect();
                format!("{} by {}", ids.join(","), one["people"])
            });
            format!("{} × {}: {}", group["n_conflicts"], group["text"], answers.collect::<Vec<_>>().join(" / "))
        })
        .collect();
    check(
        &shown.join("\n"),
        expect![[r#"
        2 × "delirium": T:2 by ["cyd"] / T:4 by ["ann"]
        1 × "confused": T:3 by ["cyd"] / T:4 by ["ann"]"#]],
    );
    let key = all[0]["key"].as_str().unwrap();
    let page = cyd.get(&format!("/projects/{project}/disagreements?group={}", key.replace('\u{1f}', "%1F"))).await;
    assert_eq!(page["n_open"], all[0]["n_conflicts"]);
    let path = format!("/projects/{project}/disagreements/decisions");
    let body = |rest: Value| {
        let mut body = json!({"group": key});
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        body
    };
    assert_eq!(ann.fail(Method::POST, &path, body(json!({"answer": "T:2"})).to_string()).await.0, 403);
    assert_eq!(cyd.fail(Method::POST, &path, body(json!({})).to_string()).await.0, 400);
    let first = &page["disagreements"][0];
    let only = json!([[first["document"], first["marks"][0]]]);
    let one = cyd.post(&path, body(json!({"answer": "T:4", "only": only}))).await;
    assert_eq!(one["n_mentions"], 1);
    let rest = cyd.post(&path, body(json!({"concept": "T:3"}))).await;
    assert_eq!((groups().await.as_array().unwrap().len(), &rest["n_skipped"]), (1, &json!(0)));
    let undo = format!("/projects/{project}/groups/undo");
    cyd.post(&undo, json!({"batch": rest["batch"]})).await;
    cyd.post(&undo, json!({"batch": one["batch"]})).await;
    assert_eq!(groups().await, all);
}
