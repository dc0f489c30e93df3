//! Derived tables, which keep large projects fast, always match the events.

use canonym_core::active::Strategy;
use canonym_serve::marks::MarkState;
use canonym_serve::queue::{self, confidence};
use canonym_serve::store::{FILE, documents, events};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::support::{Server, create_data_folder, mark_of};

/// Queries for every derived table.
const DERIVED: [&str; 7] = [
    "SELECT * FROM mark_counts ORDER BY 1, 2, 3",
    "SELECT * FROM decision_counts ORDER BY 1, 2, 3",
    "SELECT * FROM work ORDER BY 1, 2, 3",
    "SELECT * FROM said ORDER BY 1, 2",
    "SELECT * FROM chosen ORDER BY 1, 2, 3",
    "SELECT id, document_id, source, state, is_deleted, event_id, body, kind, p_mention, margin, was_read FROM marks ORDER BY id",
    "SELECT id, is_finished, version FROM documents ORDER BY id",
];

/// All rows of the tables as text.
pub fn derived(connection: &Connection) -> Vec<String> {
    let mut all = Vec::new();
    for sql in DERIVED {
        let mut statement = connection.prepare(sql).unwrap();
        let n_columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let cells = (0..n_columns).map(|at| format!("{:?}", row.get_ref(at).unwrap()));
            all.push(format!("{} | {}", sql, cells.collect::<Vec<String>>().join(" | ")));
        }
    }
    all
}

/// A project with every kind of decision, by two people.
async fn annotated_project(server: &Server) -> (i64, [i64; 3]) {
    let (project, ids) = server.corpus().await;
    server.predict(project).await;
    server.app.put_admin("ada", "correct horse").unwrap();
    server.app.put_admin("bob", "correct horse").unwrap();
    let ada = login(server, "ada").await;
    let bob = login(server, "bob").await;
    let shown = ada.document(ids[0]).await;
    let (delirium, confused) = (mark_of(&shown, "delirium"), mark_of(&shown, "confused"));
    ada.decide(ids[0], json!({"kind": "accept", "mark": delirium})).await;
    bob.decide(ids[0], json!({"kind": "concept", "mark": delirium, "concept": "T:3"})).await;
    bob.decide(ids[0], json!({"kind": "reject", "mark": confused})).await;
    let added = ada.decide(ids[0], json!({"kind": "add", "spans": [[0, 1]], "is_nil": true})).await;
    let own = added["marks"][0]["id"].as_i64().unwrap();
    ada.decide(ids[0], json!({"kind": "type", "mark": own, "type": "Sign"})).await;
    ada.decide(ids[0], json!({"kind": "delete", "mark": own})).await;
    ada.post(&format!("/documents/{}/undo", ids[0]), json!({})).await;
    bob.post(&format!("/documents/{}/undo", ids[0]), json!({})).await;
    bob.post(&format!("/documents/{}/redo", ids[0]), json!({})).await;
    bob.decide(ids[1], json!({"kind": "finish", "value": true})).await;
    ada.post(&format!("/documents/{}/comments", ids[1]), json!({"text": "Why?"})).await;
    ada.post(
        &format!("/projects/{project}/identical-mentions"),
        json!({"mark": own, "scope": "project", "apply": true, "version": i64::MAX}),
    )
    .await;
    (project, ids)
}

async fn login(server: &Server, name: &str) -> Server {
    let body = json!({"name": name, "password": "correct horse"});
    let response = server.send(axum::http::Method::POST, "/api/v1/login", body.to_string()).await;
    let cookie = response.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    server.with_headers(&[("x-canonym", "1"), ("cookie", &cookie)])
}

#[tokio::test]
async fn derived_tables_match_a_rebuild_from_events() {
    let server = Server::temporary();
    annotated_project(&server).await;
    let before = server.app.store.read(|connection| Ok(derived(connection))).unwrap();
    assert!(DERIVED.iter().all(|sql| before.iter().any(|row| row.starts_with(*sql))), "{before:#?}");
    server.app.store.write(|transaction| events::rebuild(transaction)).unwrap();
    assert_eq!(server.app.store.read(|connection| Ok(derived(connection))).unwrap(), before);
}

#[tokio::test]
async fn statistics_match_marks_and_events() {
    let server = Server::temporary();
    let (project, ids) = annotated_project(&server).await;
    let ada = login(&server, "ada").await;
    let stats = ada.get(&format!("/projects/{project}/stats")).await;
    let mut by_source = json!({"GOLD": 0, "USER": 0, "PRED": 0});
    let mut by_type = json!({});
    for id in &ids {
        for mark in ada.document(*id).await["marks"].as_array().unwrap() {
            let source = &mut by_source[mark["source"].as_str().unwrap()];
            *source = json!(source.as_i64().unwrap_or(0) + 1);
            let kind = &mut by_type[mark["type"].as_str().unwrap()];
            *kind = json!(kind.as_i64().unwrap_or(0) + 1);
        }
    }
    assert_eq!((&stats["by_source"], &stats["by_type"]), (&by_source, &by_type));
    let of = |name: &str| stats["by_decision"][name].as_i64().unwrap_or(0);
    assert_eq!((of("accept"), of("concept"), of("reject"), of("add"), of("delete")), (1, 1, 1, 1, 1), "{stats}");
    assert_eq!(stats["by_decision"]["undo"], Value::Null);
    let n_decisions: i64 = stats["by_decision"].as_object().unwrap().values().map(|n| n.as_i64().unwrap()).sum();
    assert_eq!(ada.get(&format!("/projects/{project}")).await["n_decisions"], n_decisions);
    assert!(stats["seconds_per_document"]["median"].as_f64().unwrap() > 0.0);
    assert!(stats["agreement"].is_object());
}

#[tokio::test]
async fn queue_order_matches_the_confidence_of_open_marks() {
    let (server, project, ids) = Server::with_corpus().await;
    server.predict(project).await;
    for strategy in Strategy::ALL {
        let least = |id: i64| {
            let marks = server.app.store.read(|connection| documents::marks(connection, id)).unwrap();
            let open: Vec<MarkState> = marks.into_values().map(|held| held.mark).filter(MarkState::is_open).collect();
            open.iter().map(|mark| confidence(strategy, mark)).reduce(f64::min)
        };
        let kept =
            server.app.store.read(|connection| documents::unfinished(connection, project, queue::measure(strategy)));
        let kept: Vec<(i64, Option<f64>)> =
            kept.unwrap().into_iter().map(|one| (one.id, one.waiting.min_confidence)).collect();
        let marks: Vec<(i64, Option<f64>)> = ids.iter().map(|id| (*id, least(*id))).collect();
        assert_eq!(kept, marks, "{strategy:?}");
        let queue = server.get(&format!("/projects/{project}/queue?strategy={}", strategy.name())).await;
        assert_eq!(queue["documents"].as_array().unwrap().len(), 3, "{queue}");
    }
}

#[tokio::test]
async fn database_version_1_is_migrated() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old");
    create_data_folder(&old);
    let server = Server::new(&folder.path().join("new"));
    annotated_project(&server).await;
    let connection = Connection::open(old.join(FILE)).unwrap();
    connection.execute_batch(include_str!("../../src/store/001.sql")).unwrap();
    connection.execute_batch("DELETE FROM counters; PRAGMA user_version = 1").unwrap();
    let path = folder.path().join("new").join(FILE);
    connection.execute("ATTACH ?1 AS new", [path.to_str().unwrap()]).unwrap();
    for (table, columns) in [
        ("people", "id, name, role, password, made_at"),
        ("projects", "id, name, description, guideline, strategy, kb_fingerprint, model_id, made_at"),
        ("models", "*"),
        ("documents", "id, project_id, external_id, text, beside, is_finished, version"),
        ("events", "id, document_id, batch, person_id, at, kind, model, client_id, job_id, undoes, changes"),
        ("marks", "id, document_id, source, state, is_deleted, event_id, body"),
        ("counters", "*"),
    ] {
        connection.execute(&format!("INSERT INTO {table} SELECT {columns} FROM new.{table}"), []).unwrap();
    }
    drop(connection);
    let opened = Server::new(&old);
    let rows = |server: &Server| server.app.store.read(|connection| Ok(derived(connection))).unwrap();
    assert_eq!(rows(&opened), rows(&server));
}

#[tokio::test]
async fn queries_of_large_projects_use_indexes() {
    let server = Server::temporary();
    let open = "m.is_deleted = 0 AND m.state = 'open' AND m.source = 'PRED'";
    for (sql, index) in [
        (
            format!("SELECT min(coalesce(p_mention, 1.0) + margin) FROM marks m WHERE m.document_id = 1 AND {open}"),
            "COVERING INDEX marks_at_a_glance",
        ),
        ("SELECT 1 FROM marks m WHERE m.document_id = 1 AND m.was_read".to_owned(), "COVERING INDEX marks_at_a_glance"),
        (
            "SELECT count(*) FROM marks m WHERE m.document_id = 1 AND m.is_deleted = 0 AND m.state <> 'rejected'"
                .to_owned(),
            "COVERING INDEX marks_at_a_glance",
        ),
        (
            "SELECT count(*) FROM documents d WHERE d.project_id = 1 AND d.is_finished = 1".to_owned(),
            "COVERING INDEX documents_by_state",
        ),
        (
            "SELECT text FROM documents WHERE project_id = 1 AND id > 5 ORDER BY id LIMIT 9".to_owned(),
            "documents_in_order",
        ),
        (
            "SELECT label FROM said WHERE project_id = 1 AND is_shared ORDER BY mark_id, person_id".to_owned(),
            "shared_marks",
        ),
        (
            "SELECT concept FROM chosen WHERE project_id = 1 AND person_id = 1 ORDER BY event_id DESC LIMIT 5"
                .to_owned(),
            "last_chosen",
        ),
    ] {
        let plan = server.app.store.read(|connection| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
            let rows = statement.query_map([], |row| row.get::<_, String>(3))?;
            Ok(rows.collect::<Result<Vec<String>, _>>()?.join("; "))
        });
        let plan = plan.unwrap();
        assert!(plan.contains(index) && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
    }
}
