//! Export and import: the sources and review states of annotations are preserved.

use axum::http::Method;
use expect_test::expect;
use serde_json::{Value, json};

use crate::support::{Server, mark_lines, mark_of};

/// A project with gold annotations, an accepted prediction that is unsure and has a comment, a NIL annotation, and open predictions.
async fn reviewed_project(server: &Server) -> i64 {
    let (project, ids) = server.corpus().await;
    server.predict(project).await;
    let first = server.document(ids[0]).await;
    let delirium = mark_of(&first, "delirium");
    server.decide(ids[0], json!({"kind": "accept", "mark": delirium})).await;
    server.decide(ids[0], json!({"kind": "unsure", "mark": delirium, "value": true})).await;
    let remark = json!({"mark": delirium, "text": "ask\nthe author"});
    server.post(&format!("/documents/{}/comments", ids[0]), remark).await;
    server.decide(ids[1], json!({"kind": "add", "spans": [[14, 19]], "is_nil": true})).await;
    project
}

async fn all_marks(server: &Server, project: i64) -> Vec<String> {
    let mut lines = Vec::new();
    for id in server.documents(project).await {
        let document = server.document(id).await;
        let marks = document["marks"].as_array().unwrap();
        let told = |mark: &Value| if mark["is_unsure"] == true { " unsure" } else { "" };
        lines.extend(mark_lines(&document).into_iter().zip(marks).map(|(line, mark)| line + told(mark)));
    }
    lines
}

#[tokio::test]
async fn annotation_sources_round_trip_through_formats() {
    let server = Server::temporary();
    let project = reviewed_project(&server).await;
    let before = all_marks(&server, project).await;
    expect![[r#"
        GOLD accepted [[2,12]] Famotidine T:5
        USER accepted [[41,49]] delirium T:2 unsure
        PRED open [[58,66]] confused T:3
        GOLD accepted [[0,13]] Breast cancer T:6
        GOLD accepted [[7,13]] cancer T:6
        USER accepted [[14,19]] cells NIL
        PRED open [[32,38]] pepcid T:5
        GOLD accepted [[6,14]] syndrome NIL"#]]
    .assert_eq(&before.join("\n"));
    for format in ["jsonl", "bioc-xml", "bioc-json", "brat", "texoo"] {
        let query = format!("format={format}&sources=gold,user,pred");
        let exported = server.export(project, &query).await;
        let again = server.empty_project().await;
        let named = if format == "brat" { "filename=x.zip".to_owned() } else { format!("format={format}") };
        server.import(again, &named, &exported).await;
        let mut after = all_marks(&server, again).await;
        if format == "texoo" {
            // The unsure flag, which TeXoo cannot hold, is reported before the export.
            after.iter_mut().filter(|line| line.contains("delirium")).for_each(|line| line.push_str(" unsure"));
            let lost = server.get(&format!("/projects/{project}/export/losses?{query}")).await["lines"].to_string();
            assert!(lost.contains("lost: 1 “unsure” flags"), "{lost}");
        }
        assert_eq!(after, before, "{format}");
        // A second export equals the first.
        if format != "brat" {
            assert_eq!(
                String::from_utf8(server.export(again, &query).await).unwrap(),
                String::from_utf8(exported).unwrap(),
                "{format}"
            );
        }
    }
}

#[tokio::test]
async fn annotator_time_and_comments_round_trip() {
    let server = Server::temporary();
    let project = reviewed_project(&server).await;
    for format in ["jsonl", "bioc-xml", "brat"] {
        let exported = server.export(project, &format!("format={format}&sources=gold,user,pred")).await;
        let again = server.empty_project().await;
        server.import(again, "filename=x", &exported).await;
        let document = server.document(server.documents(again).await[0]).await;
        let delirium = mark_of(&document, "delirium");
        let mark = document["marks"].as_array().unwrap().iter().find(|mark| mark["id"] == delirium).unwrap();
        assert_eq!(mark["by"], "local", "{format}");
        let comment = &document["comments"][0];
        assert_eq!(comment["mark"], delirium, "{format}");
        let text = comment["text"].as_str().unwrap();
        assert!(text.starts_with("[local, 2023-11-14T") && text.ends_with("] ask the author"), "{format}: {text}");
    }
}

#[tokio::test]
async fn annotations_without_source_are_predictions_by_default() {
    let server = Server::temporary();
    let project = reviewed_project(&server).await;
    let all = server.export(project, "format=pubtator&sources=gold,user,pred").await;
    let lost = server.get(&format!("/projects/{project}/export/losses?format=pubtator&sources=gold,user,pred")).await;
    assert_eq!(lost["lines"][0], "2 unreviewed predictions will be indistinguishable from 6 reviewed annotations");
    for (query, source) in [("", "PRED open"), ("annotations=pred", "PRED open"), ("annotations=gold", "GOLD accepted")]
    {
        let again = server.empty_project().await;
        let report = server.import(again, query, &all).await;
        assert_eq!((&report["n_annotations"], &report["n_unmarked"]), (&json!(8), &json!(8)));
        assert_eq!(report["n_predictions"], if source == "PRED open" { 8 } else { 0 });
        assert!(all_marks(&server, again).await.iter().all(|line| line.starts_with(source)), "{query}");
    }
    // Annotations of a system stay predictions, whatever the request says.
    let again = server.empty_project().await;
    let jsonl = server.export(project, "format=jsonl&sources=pred").await;
    server.import(again, "annotations=gold", &jsonl).await;
    assert!(all_marks(&server, again).await.iter().all(|line| line.starts_with("PRED open")));
    let (status, answer) =
        server.fail(Method::POST, &format!("/projects/{again}/import?annotations=silver"), "x").await;
    assert_eq!((status, &answer["error"]["hint"]), (400, &json!("use auto, pred or gold")));
}

#[tokio::test]
async fn silver_annotations_stay_silver_until_reviewed() {
    let server = Server::temporary();
    let texoo = r#"{"name":"x","documents":[{"begin":0,"length":16,"text":"Delirium, pepcid","id":"1","annotations":[
        {"begin":0,"length":8,"text":"Delirium","source":"SILVER","confidence":0.5,"refId":"T:2"},
        {"begin":10,"length":6,"text":"pepcid","source":"SILVER","confidence":0.5,"refId":"T:5"}]}],"queries":[]}"#;
    let project = server.empty_project().await;
    server.import(project, "format=texoo", texoo.as_bytes()).await;
    let id = server.documents(project).await[0];
    let document = server.document(id).await;
    assert_eq!(mark_lines(&document), ["PRED open [[0,8]] Delirium T:2", "PRED open [[10,16]] pepcid T:5"]);
    server.decide(id, json!({"kind": "accept", "mark": mark_of(&document, "pepcid")})).await;
    let exported = String::from_utf8(server.export(project, "format=texoo&sources=gold,user,pred").await).unwrap();
    let exported: Value = serde_json::from_str(&exported).unwrap();
    let sources = &exported["documents"][0]["annotations"];
    assert_eq!((&sources[0]["source"], &sources[1]["source"]), (&json!("SILVER"), &json!("USER")));
}

#[tokio::test]
async fn wrong_offset_skips_one_annotation_and_is_reported() {
    let server = Server::temporary();
    let file = "1|t|Pepcid and delirium.\n1|a|\n1\t0\t6\tPepcid\tDrug\tT:5\n1\t12\t20\tdelirium\tDisorder\tT:2\n1\tCID\tT:5\tT:2\n\n";
    let project = server.empty_project().await;
    let report = server.import(project, "filename=notes.txt&annotations=gold", file.as_bytes()).await;
    assert_eq!(
        (&report["n_documents"], &report["n_annotations"], &report["n_skipped_annotations"], &report["n_relations"]),
        (&json!(1), &json!(1), &json!(1), &json!(1))
    );
    assert_eq!(report["problems"][0]["line"], 4);
    let message = report["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("the annotation is `delirium` at 12..20"), "{message}");
    assert!(!report.to_string().contains("--"), "no option of the command line: {report}");
    let project = server.empty_project().await;
    let report = server.import(project, "offsets=fix", file.as_bytes()).await;
    assert_eq!((&report["n_annotations"], &report["n_fixed"], &report["problems"]), (&json!(2), &json!(1), &json!([])));
}

#[tokio::test]
async fn document_with_an_existing_id_is_skipped_or_renamed() {
    let server = Server::temporary();
    let project = server.empty_project().await;
    let path = "format=text&filename=pasted.txt";
    server.import(project, path, b"Delirium.").await;
    let (status, answer) = server.fail(Method::POST, &format!("/projects/{project}/import?{path}"), "Confusion.").await;
    assert_eq!(
        (status, &answer["error"]["message"]),
        (422, &json!("document “pasted” already exists in this project"))
    );
    for text in ["Confusion.", "Pepcid."] {
        server.import(project, &format!("{path}&existing=rename"), text.as_bytes()).await;
    }
    let rows = server.get(&format!("/projects/{project}/documents")).await;
    let ids: Vec<&str> =
        rows["documents"].as_array().unwrap().iter().map(|row| row["external_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["pasted", "pasted-2", "pasted-3"]);
}

#[tokio::test]
async fn application_files_are_gzipped_if_accepted() {
    use std::io::Read;
    let server = Server::temporary();
    let get = async |server: &Server, path: &str| {
        let response = server.send(Method::GET, path, "").await;
        let encoding = response.headers().get("content-encoding").map(|value| value.to_str().unwrap().to_owned());
        (encoding, axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec())
    };
    let page = String::from_utf8(get(&server, "/").await.1).unwrap();
    let script = page.split("src=\"").find(|part| part.starts_with("/assets/")).unwrap().split('"').next().unwrap();
    let (encoding, plain) = get(&server, script).await;
    assert_eq!(encoding, None);
    let (encoding, packed) = get(&server.with_headers(&[("accept-encoding", "br, gzip;q=0.8")]), script).await;
    assert_eq!(encoding.as_deref(), Some("gzip"));
    assert!(packed.len() < plain.len() / 2);
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain);
    assert_eq!(get(&server.with_headers(&[("accept-encoding", "gzip;q=0")]), script).await.0, None);
}

#[tokio::test]
async fn export_losses_name_discontinuous_mentions() {
    let server = Server::temporary();
    let project = server.project("1|t|Breast and ovarian cancer.\n1|a|\n\n").await;
    let id = server.documents(project).await[0];
    server.decide(id, json!({"kind": "add", "spans": [[0, 6], [19, 25]], "concept": "T:6"})).await;
    let lost = |format: &str| format!("/projects/{project}/export/losses?format={format}");
    let lines = server.get(&lost("pubtator")).await["lines"].to_string();
    assert!(lines.contains("1 discontinuous mention will be written as one span"), "{lines}");
    assert_eq!(server.get(&lost("jsonl")).await["lines"], json!([]));
    assert_eq!(
        server.get(&lost("brat")).await["lines"],
        json!(["2 text sections will be dropped (first in document `1`)"])
    );
}

#[tokio::test]
async fn jsonl_export_comes_back_as_it_left() {
    let server = Server::temporary();
    let project = reviewed_project(&server).await;
    let [first, second, third] = server.documents(project).await[..] else { panic!("three documents") };
    // A rejected prediction with a comment, rejected gold, a finished document, and a comment on a document.
    let confused = mark_of(&server.document(first).await, "confused");
    server.decide(first, json!({"kind": "reject", "mark": confused})).await;
    server.post(&format!("/documents/{first}/comments"), json!({"mark": confused, "text": "an adjective"})).await;
    let cancer = mark_of(&server.document(second).await, "cancer");
    server.decide(second, json!({"kind": "reject", "mark": cancer})).await;
    server.decide(third, json!({"kind": "finish", "value": true})).await;
    server.post(&format!("/documents/{third}/comments"), json!({"text": "short"})).await;

    for query in ["format=jsonl&sources=gold,user,pred", "format=jsonl"] {
        let lost = server.get(&format!("/projects/{project}/export/losses?{query}")).await;
        assert_eq!(lost["lines"], json!([]));
        let exported = String::from_utf8(server.export(project, query).await).unwrap();
        let lines: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let rejected = &lines[0]["review"]["rejected"][0];
        assert_eq!((&rejected["text"], &rejected["spans"]), (&json!("confused"), &json!([[58, 66]])));
        let attributes: Value = match rejected["attributes"].as_array() {
            Some(pairs) => pairs.iter().map(|pair| (pair[0].as_str().unwrap().to_owned(), pair[1].clone())).collect(),
            None => rejected["attributes"].clone(),
        };
        assert_eq!(
            (&attributes["source"], &attributes["annotator"], &attributes["model"]),
            (&json!("PRED"), &json!("local"), &json!("first"))
        );
        assert!(attributes["updated_at"].as_str().unwrap().starts_with("2023-11-14T"));
        assert_eq!(
            (&lines[1]["review"]["rejected"][0]["text"], &lines[2]["review"]),
            (&json!("cancer"), &json!({"finished": true}))
        );

        let again = server.empty_project().await;
        server.import(again, query, exported.as_bytes()).await;
        let copies = server.documents(again).await;
        assert_eq!(String::from_utf8(server.export(again, query).await).unwrap(), exported);
        // Times and models are those of the decisions, not of the import.
        let of = async |id: i64| server.document(id).await["marks"].as_array().unwrap().clone();
        let told = |marks: Vec<Value>| -> Vec<(Value, Value, Value)> {
            let marks = marks.into_iter().filter(|mark| mark["text"] == "delirium");
            marks.map(|mark| (mark["at"].clone(), mark["by"].clone(), mark["model"].clone())).collect()
        };
        assert_eq!(told(of(copies[0]).await), told(of(first).await));
        // A document that came finished can be reopened, and loses nothing.
        let n_marks = of(copies[2]).await.len();
        assert!(server.document(copies[2]).await["is_finished"] == true && n_marks == 1);
        server.decide(copies[2], json!({"kind": "finish", "value": false})).await;
        assert_eq!(of(copies[2]).await.len(), n_marks);
    }
}

#[tokio::test]
async fn other_columns_of_a_table_become_metadata() {
    let server = Server::temporary();
    let project = server.empty_project().await;
    let table = "note_id\tward\tnote\n7\tB2, north\tShe had delirium.\n8\t\tNo fever.\n";
    let (status, answer) =
        server.fail(Method::POST, &format!("/projects/{project}/import?filename=notes.tsv"), table).await;
    assert_eq!(
        (status, &answer["error"]["hint"]),
        (422, &json!("name the column with “Text column”; the columns are `note_id`, `ward`, `note`"))
    );
    server.import(project, "filename=notes.tsv&text_column=note&id_column=note_id", table.as_bytes()).await;
    let rows = server.get(&format!("/projects/{project}/documents")).await;
    let row = |at: usize| (rows["documents"][at]["external_id"].clone(), rows["documents"][at]["metadata"].clone());
    assert_eq!(row(0), (json!("7"), json!([{"name": "ward", "value": "B2, north"}])));
    assert_eq!(row(1), (json!("8"), json!([])));
    let found = server.get(&format!("/projects/{project}/documents?q=north")).await;
    assert_eq!(found["documents"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn types_that_brat_cannot_hold_come_back() {
    let server = Server::temporary();
    let project =
        server.project("1|t|Delirium and pepcid cells.\n1|a|\n1\t0\t8\tDelirium\tSign, or Symptom\tT:2\n\n").await;
    let id = server.documents(project).await[0];
    server.decide(id, json!({"kind": "add", "spans": [[20, 25]], "is_nil": true})).await;
    let kinds = |document: Value| -> Vec<Value> {
        document["marks"].as_array().unwrap().iter().map(|mark| mark["type"].clone()).collect()
    };
    let query = "format=brat&sources=gold,user,pred";
    let exported = server.export(project, query).await;
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(exported.clone())).unwrap();
    let lines = std::io::read_to_string(archive.by_name("1.ann").unwrap()).unwrap();
    let words: Vec<&str> = lines
        .lines()
        .filter(|line| line.starts_with('T'))
        .map(|line| line.split(['\t', ' ']).nth(1).unwrap())
        .collect();
    assert_eq!(words, ["Sign__or_Symptom", "Mention"]);
    let lost = server.get(&format!("/projects/{project}/export/losses?{query}")).await["lines"].to_string();
    assert!(!lost.contains("type"), "{lost}");
    let again = server.empty_project().await;
    server.import(again, "filename=x.zip", &exported).await;
    let copy = server.document(server.documents(again).await[0]).await;
    assert_eq!(kinds(copy), ["Sign, or Symptom", ""]);
    assert_eq!(kinds(server.document(id).await), ["Sign, or Symptom", ""]);
}
