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
        match format {
            // JSONL holds threads.
            "jsonl" => assert_eq!((text, &comment["by"]), ("ask\nthe author", &json!("local"))),
            _ => {
                assert!(
                    text.starts_with("[local, 2023-11-14T") && text.ends_with("] ask the author"),
                    "{format}: {text}"
                );
            }
        }
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
            (&lines[1]["review"]["rejected"][0]["text"], &lines[2]["review"]["finished"]),
            (&json!("cancer"), &json!(true))
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

#[tokio::test]
async fn document_is_finished_in_a_file_that_has_all_its_reviewed_annotations() {
    let server = Server::temporary();
    let project = reviewed_project(&server).await;
    let [first, _, third] = server.documents(project).await[..] else { panic!("three documents") };
    for id in [first, third] {
        server.decide(id, json!({"kind": "finish", "value": true})).await;
    }
    // The first one has annotations of a person, too.
    for (sources, finished, lost) in [
        ("gold,user", [true, false, true], json!([])),
        ("gold", [false, false, true], json!(["the finished status of 1 document is lost"])),
    ] {
        let query = format!("format=jsonl&sources={sources}");
        let exported = server.export(project, &query).await;
        let again = server.empty_project().await;
        server.import(again, "format=jsonl", &exported).await;
        let mut found = Vec::new();
        for id in server.documents(again).await {
            found.push(server.document(id).await["is_finished"] == true);
        }
        assert_eq!(found, finished, "{sources}");
        assert_eq!(server.get(&format!("/projects/{project}/export/losses?{query}")).await["lines"], lost, "{sources}");
    }
}

#[tokio::test]
async fn types_come_back_from_every_format_with_types() {
    let server = Server::temporary();
    let kinds = ["Sign, or Symptom", "", "Größe", "T:1", "Sign__or_Symptom", "Mention"];
    let text = "pain fever cough rash ache fits";
    let mut at = 0;
    let annotations: Vec<Value> = text
        .split(' ')
        .zip(kinds)
        .map(|(word, kind)| {
            at += word.len() + 1;
            json!({"spans": [[at - word.len() - 1, at - 1]], "text": word, "type": kind, "ids": ["T:2"]})
        })
        .collect();
    let project = server.empty_project().await;
    let line = json!({"id": "1", "text": text, "annotations": annotations}).to_string();
    server.import(project, "format=jsonl&annotations=gold", line.as_bytes()).await;
    for format in ["jsonl", "pubtator", "bioc-xml", "bioc-json", "brat", "conll", "texoo"] {
        let exported = server.export(project, &format!("format={format}")).await;
        let again = server.empty_project().await;
        let named = if format == "brat" { "filename=x.zip".to_owned() } else { format!("format={format}") };
        server.import(again, &format!("{named}&annotations=gold"), &exported).await;
        let copy = server.document(server.documents(again).await[0]).await;
        let found: Vec<&str> =
            copy["marks"].as_array().unwrap().iter().map(|mark| mark["type"].as_str().unwrap()).collect();
        assert_eq!(found, kinds, "{format}");
        let lost = server.get(&format!("/projects/{project}/export/losses?format={format}")).await["lines"].to_string();
        assert!(!lost.contains("type"), "{format}: {lost}");
    }
}

#[tokio::test]
async fn type_that_was_changed_in_brat_is_kept() {
    let server = Server::temporary();
    let project = server.project("1|t|Delirium.\n1|a|\n1\t0\t8\tDelirium\tSign, or Symptom\tT:2\n\n").await;
    let exported = server.export(project, "format=brat").await;
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(exported)).unwrap();
    let lines = std::io::read_to_string(archive.by_name("1.ann").unwrap()).unwrap();
    let changed = lines.replace("Sign__or_Symptom 0", "Finding 0");
    assert_ne!(changed, lines);
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in [("1.txt", "Delirium. "), ("1.ann", changed.as_str())] {
        writer.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
    }
    let again = server.empty_project().await;
    server.import(again, "filename=x.zip", &writer.finish().unwrap().into_inner()).await;
    assert_eq!(server.document(server.documents(again).await[0]).await["marks"][0]["type"], "Finding");
}

#[tokio::test]
async fn rejected_mentions_with_wrong_offsets_are_counted_and_repaired() {
    let server = Server::temporary();
    let line = json!({"id": "1", "text": "No fever, no rash.", "annotations": [], "review": {"rejected": [
        {"spans": [[3, 8]], "text": "fever"}, {"spans": [[12, 16]], "text": "rash"}
    ]}});
    let rejected = async |project: i64| -> usize {
        let id = server.documents(project).await[0];
        let document = server.get(&format!("/documents/{id}?all=1")).await;
        document["marks"].as_array().unwrap().iter().filter(|mark| mark["state"] == "rejected").count()
    };
    let project = server.empty_project().await;
    let report = server.import(project, "format=jsonl", line.to_string().as_bytes()).await;
    assert_eq!((&report["n_skipped_annotations"], &report["n_fixed"]), (&json!(1), &json!(0)));
    let problem = &report["problems"][0];
    assert_eq!(problem["document"], "1");
    assert!(problem["message"].as_str().unwrap().starts_with("rejected mention: "), "{problem}");
    assert_eq!(rejected(project).await, 1);
    let project = server.empty_project().await;
    let report = server.import(project, "format=jsonl&offsets=fix", line.to_string().as_bytes()).await;
    assert_eq!((&report["n_skipped_annotations"], &report["n_fixed"]), (&json!(0), &json!(1)));
    assert_eq!(rejected(project).await, 2);
}

#[tokio::test]
async fn comment_threads_come_back_from_jsonl() {
    let server = Server::temporary();
    let project = reviewed_project(&server).await;
    let id = server.documents(project).await[0];
    let confused = mark_of(&server.document(id).await, "confused");
    server.decide(id, json!({"kind": "reject", "mark": confused})).await;
    let path = format!("/documents/{id}/comments");
    let first = server.post(&path, json!({"mark": confused, "text": "an adjective?"})).await;
    server.post(&path, json!({"parent": first["id"], "text": "yes"})).await;
    server.patch(&format!("{path}/{}", first["id"]), json!({"is_resolved": true})).await;
    server.post(&path, json!({"text": "[sic] a title"})).await;
    let told = async |id: i64| -> Vec<Value> {
        let document = server.get(&format!("/documents/{id}?all=1")).await;
        let text_of = |mark: &Value| {
            let marks = document["marks"].as_array().unwrap();
            marks.iter().find(|one| one["id"] == *mark).map_or(Value::Null, |mark| mark["text"].clone())
        };
        let comments = document["comments"].as_array().unwrap();
        let one = |one: &Value| {
            json!([
                text_of(&one["mark"]),
                one["by"],
                one["at"],
                one["text"],
                one["parent"].is_null(),
                one["resolved_by"]
            ])
        };
        comments.iter().map(one).collect()
    };
    let before = told(id).await;
    assert_eq!(before.len(), 4);
    let exported = server.export(project, "format=jsonl&sources=gold,user,pred").await;
    let again = server.empty_project().await;
    server.import(again, "format=jsonl", &exported).await;
    assert_eq!(told(server.documents(again).await[0]).await, before);
    let lost = async |format: &str| {
        server.get(&format!("/projects/{project}/export/losses?format={format}")).await["lines"].to_string()
    };
    assert_eq!(lost("jsonl").await, "[]");
    let told = "1 comment thread will be written as one comment, without its resolution";
    assert!(lost("bioc-json").await.contains(told), "{}", lost("bioc-json").await);
    // Those of somebody else name them, and do so once.
    let mut line: Value = serde_json::from_slice(exported.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
    for thread in line["review"]["threads"].as_array_mut().unwrap() {
        thread["comments"][0]["by"] = json!("anna");
    }
    let other = server.empty_project().await;
    server.import(other, "format=jsonl", line.to_string().as_bytes()).await;
    let exported = server.export(other, "format=jsonl&sources=gold,user,pred").await;
    let exported: Value = serde_json::from_slice(&exported).unwrap();
    assert_eq!(exported["review"]["threads"], {
        for thread in line["review"]["threads"].as_array_mut().unwrap() {
            if thread["resolved_by"].is_string() {
                thread["resolved_by"] = json!("local");
            }
        }
        line["review"]["threads"].clone()
    });
    let document = server.document(server.documents(other).await[0]).await;
    let text = document["comments"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("[anna, 2023-11-14T"), "{text}");
}

#[tokio::test]
async fn export_losses_name_changed_ids_and_added_line_breaks() {
    let server = Server::temporary();
    let project = server.empty_project().await;
    let lines = [("a/b", "No fever. No cough. No rash."), ("c", "No fever."), ("C", "Cough.\nRash.")];
    let lines = lines.map(|(id, text)| json!({"id": id, "text": text, "annotations": []}).to_string());
    server.import(project, "format=jsonl", lines.join("\n").as_bytes()).await;
    let lost = async |format: &str| {
        server.get(&format!("/projects/{project}/export/losses?format={format}")).await["lines"].clone()
    };
    assert_eq!(
        lost("brat").await,
        json!(["2 document IDs will be changed to valid file names (first: `a/b` to `a_b`)"])
    );
    assert_eq!(
        lost("conll").await,
        json!([
            "1 text with line breaks, tabs or repeated spaces will be written with normalised whitespace (first in document `C`)",
            "2 line breaks will be added between sentences (first in document `a/b`)"
        ])
    );
    // The line breaks that were announced.
    let exported = server.export(project, "format=conll").await;
    let again = server.empty_project().await;
    server.import(again, "format=conll", &exported).await;
    let ids = server.documents(again).await;
    assert_eq!(server.document(ids[0]).await["text"], "No fever.\nNo cough.\nNo rash.");
    assert_eq!(server.document(ids[2]).await["text"], "Cough.\nRash.");
    // As read, nothing is added.
    assert_eq!(server.get(&format!("/projects/{again}/export/losses?format=conll")).await["lines"], json!([]));
    assert_eq!(server.export(again, "format=conll").await, exported);
}
