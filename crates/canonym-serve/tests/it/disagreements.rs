//! Conflicts between annotators, and how they are settled.

use axum::http::Method;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::people::three_accounts;
use crate::support::{Server, mark_lines, mark_of};

/// The disagreements of a project as lines.
async fn lines(server: &Server, project: i64) -> Vec<String> {
    let page = server.get(&format!("/projects/{project}/disagreements")).await;
    let rows = page["disagreements"].as_array().unwrap();
    assert_eq!(page["n_open"], rows.len());
    rows.iter().map(line).collect()
}

fn line(row: &Value) -> String {
    let mut text = format!(
        "{} “{}” {}..{}",
        row["external_id"].as_str().unwrap(),
        row["text"].as_str().unwrap(),
        row["start"],
        row["end"]
    );
    for answer in row["answers"].as_array().unwrap() {
        let people: Vec<&str> =
            answer["people"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
        let claim = |claim: &Value| format!("{} {}", claim["spans"], claim["concept"]["id"].as_str().unwrap_or("NIL"));
        let claims: Vec<String> = answer["claims"].as_array().unwrap().iter().map(claim).collect();
        text += &format!(" | {}: {}", people.join("+"), claims.join(", "));
    }
    text
}

fn check(lines: &[String], expected: Expect) {
    expected.assert_eq(&lines.join("\n"));
}

#[tokio::test]
async fn conflict_stays_open_until_settled() {
    let (_, [ada, cyd, ann]) = three_accounts().await;
    let (project, ids) = ada.corpus().await;
    ada.add_all_members(project).await;
    assert_eq!(lines(&ann, project).await, [""; 0]);
    // Different concepts, after an emoji.
    let drug = mark_of(&ada.document(ids[0]).await, "Famotidine");
    ann.decide(ids[0], json!({"kind": "concept", "mark": drug, "concept": "T:1"})).await;
    cyd.decide(ids[0], json!({"kind": "concept", "mark": drug, "concept": "T:5"})).await;
    ada.decide(ids[0], json!({"kind": "accept", "mark": drug})).await;
    let agreed = ada.document(ids[0]).await["agreed"].clone();
    assert_eq!(agreed, json!({drug.to_string(): ["ada", "cyd"]}));
    // Different boundaries, each in a mark of its own.
    ann.decide(ids[1], json!({"kind": "add", "spans": [[21, 31]], "concept": "T:5"})).await;
    ada.decide(ids[1], json!({"kind": "add", "spans": [[25, 31]], "concept": "T:5"})).await;
    // A mention, and not a mention.
    let syndrome = mark_of(&ada.document(ids[2]).await, "syndrome");
    ann.decide(ids[2], json!({"kind": "accept", "mark": syndrome})).await;
    ada.decide(ids[2], json!({"kind": "reject", "mark": syndrome})).await;
    check(
        &lines(&ann, project).await,
        expect![[r#"
            1 “Famotidine” 2..12 | ada+cyd: [[2,12]] T:5 | ann: [[2,12]] T:1
            2 “Nothing of” 21..31 | ada: [[25,31]] T:5 | ann: [[21,31]] T:5
            3 “syndrome” 6..14 | ann: [[6,14]] NIL | ada: "#]],
    );

    // Page by page.
    let first = ann.get(&format!("/projects/{project}/disagreements?limit=2")).await;
    assert_eq!((first["disagreements"].as_array().unwrap().len(), &first["n_open"]), (2, &json!(3)));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = ann.get(&format!("/projects/{project}/disagreements?limit=2&cursor={cursor}")).await;
    assert_eq!((line(&second["disagreements"][0]).chars().next(), &second["next_cursor"]), (Some('3'), &Value::Null));
    let wrong = format!("/projects/{project}/disagreements?cursor=1.x.2");
    assert_eq!(ann.fail(Method::GET, &wrong, "").await.0, 400);

    // Only curators settle, and only the version that they saw.
    let row = &first["disagreements"][1];
    let settle = |version: &Value, keep: Value| json!({"version": version, "decisions": [{"kind": "settle", "marks": row["marks"], "keep": keep}]});
    let path = format!("/documents/{}/decisions", ids[1]);
    let keep = json!([{"spans": [[21, 31]], "concept": "T:5"}]);
    assert_eq!(ann.fail(Method::POST, &path, settle(&row["version"], keep.clone()).to_string()).await.0, 403);
    assert_eq!(cyd.fail(Method::POST, &path, settle(&json!(1), keep.clone()).to_string()).await.0, 409);
    cyd.post(&path, settle(&row["version"], keep)).await;
    let kept = mark_lines(&cyd.document(ids[1]).await);
    assert!(kept.contains(&"USER accepted [[21,31]] Nothing of T:5".to_owned()), "{kept:?}");
    assert!(!kept.iter().any(|mark| mark.contains("[[25,31]]")), "{kept:?}");
    assert_eq!(lines(&ann, project).await.len(), 2);
    let history = cyd.get(&format!("/documents/{}/history", ids[1])).await;
    let last = history["events"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&last["by"], &last["what"]), (&json!("cyd"), &json!("resolved “Nothing of” as Famotidine (T:5)")));

    // Undo restores the marks and the conflict, redo removes them again.
    cyd.post(&format!("/documents/{}/undo", ids[1]), json!({})).await;
    assert_eq!(lines(&ann, project).await.len(), 3);
    cyd.post(&format!("/documents/{}/redo", ids[1]), json!({})).await;
    assert_eq!(lines(&ann, project).await.len(), 2);

    // A later decision reopens the conflict; earlier ones do not.
    let settled = mark_of(&ann.document(ids[1]).await, "Nothing of");
    ann.decide(ids[1], json!({"kind": "accept", "mark": settled})).await;
    assert_eq!(lines(&ann, project).await.len(), 2);
    ann.decide(ids[1], json!({"kind": "nil", "mark": settled})).await;
    let again = ann.get(&format!("/projects/{project}/disagreements")).await["disagreements"][1].clone();
    assert_eq!(again["is_reopened"], true);
    check(&[line(&again)], expect!["2 “Nothing of” 21..31 | cyd: [[21,31]] T:5 | ann: [[21,31]] NIL"]);
}

#[tokio::test]
async fn conflict_is_settled_as_none_nil_or_other_mentions() {
    let (_, [ada, _, ann]) = three_accounts().await;
    let (project, [_, id, _]) = ada.corpus().await;
    ada.add_all_members(project).await;
    let cancer = mark_of(&ada.document(id).await, "cancer");
    ann.decide(id, json!({"kind": "accept", "mark": cancer})).await;
    ada.decide(id, json!({"kind": "reject", "mark": cancer})).await;
    let before = mark_lines(&ada.get(&format!("/documents/{id}?all=1")).await);
    let keeps = [
        (json!([]), None),
        (json!([{"spans": [[7, 13]], "is_nil": true}]), Some("USER accepted [[7,13]] cancer NIL")),
        (json!([{"spans": [[7, 19]], "concept": "T:1"}]), Some("USER accepted [[7,19]] cancer cells T:1")),
        (
            json!([{"spans": [[0, 6]], "concept": "T:1"}, {"spans": [[7, 13]], "concept": "T:6"}]),
            Some("USER accepted [[0,6]] Breast T:1"),
        ),
    ];
    for (keep, expected) in keeps {
        ada.decide(id, json!({"kind": "settle", "marks": [cancer], "keep": keep})).await;
        assert_eq!(lines(&ada, project).await, [""; 0], "{keep}");
        let marks = mark_lines(&ada.document(id).await);
        match expected {
            Some(expected) => assert!(marks.contains(&expected.to_owned()), "{keep}: {marks:?}"),
            None => assert_eq!(marks, ["GOLD accepted [[0,13]] Breast cancer T:6"]),
        }
        ada.post(&format!("/documents/{id}/undo"), json!({})).await;
        assert_eq!(mark_lines(&ada.get(&format!("/documents/{id}?all=1")).await), before, "{keep}");
        assert_eq!(lines(&ada, project).await.len(), 1);
    }
    let path = format!("/documents/{id}/decisions");
    let wrong = [
        (json!([]), json!([]), 400),
        (json!([999]), json!([]), 404),
        (json!([cancer]), json!([{"spans": [[7, 13]], "concept": "T:77"}]), 400),
        (json!([cancer]), json!([{"spans": [[7, 999]]}]), 400),
    ];
    for (marks, keep, status) in wrong {
        let settle = json!({"kind": "settle", "marks": marks, "keep": keep});
        let body = json!({"version": 1_000_000, "decisions": [settle]}).to_string();
        assert_eq!(ada.fail(Method::POST, &path, body).await.0, status);
    }
}
