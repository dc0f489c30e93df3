//! Backup, checks and repair of a data folder.

use axum::http::Method;
use canonym_serve::maintenance::{Finding, Help, backup, examine};
use canonym_serve::store::checksums::checksum;
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Server, mark_lines, mark_of};

/// A server with predictions in the subfolder `data` of a temporary folder, and its first document.
async fn server_with_predictions() -> (TempDir, Server, i64) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(&folder.path().join("data"));
    let (project, [id, ..]) = server.corpus().await;
    server.predict(project).await;
    (folder, server, id)
}

#[tokio::test]
async fn backup_works_while_the_server_runs() {
    let (folder, server, id) = server_with_predictions().await;
    let data = folder.path().join("data");
    let model = "INSERT INTO models (name, project_id, folder, card, made_at) VALUES ('own', 1, '/elsewhere/models/job-7', '', 0)";
    server.app.store.write(|transaction| Ok(transaction.execute(model, [])?)).unwrap();
    std::fs::create_dir_all(data.join("models/job-7/deep")).unwrap();
    std::fs::write(data.join("models/job-7/deep/weights"), "1 2 3").unwrap();
    std::fs::create_dir_all(data.join("models/job-8")).unwrap();
    let before = server.document(id).await;
    let copy = folder.path().join("copy");
    assert_eq!(backup(&data, &copy).unwrap(), 1);
    // Later changes are not in the backup, and an existing folder is not overwritten.
    server.decide(id, json!({"kind": "accept", "mark": mark_of(&before, "delirium")})).await;
    assert!(backup(&data, &copy).is_err());
    assert!(backup(&folder.path().join("none"), &folder.path().join("other")).unwrap_err().hint().is_some());
    let again = Server::new(&copy);
    assert_eq!(again.document(id).await, before);
    assert_eq!(again.app.model_path("/elsewhere/models/job-7".as_ref()), copy.join("models/job-7"));
    assert_eq!(std::fs::read_to_string(copy.join("models/job-7/deep/weights")).unwrap(), "1 2 3");
    assert!(!copy.join("models/job-8").exists());
    drop(again);
    assert_eq!(examine(&copy, false).unwrap(), []);
}

fn lines(findings: &[Finding]) -> Vec<(Help, &str)> {
    findings.iter().map(|finding| (finding.help, finding.what.rsplit('/').next().unwrap_or_default())).collect()
}

#[cfg(unix)]
#[tokio::test]
async fn doctor_repairs_faults_or_reports_them() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, server, id) = server_with_predictions().await;
    let data = folder.path().join("data");
    server.decide(id, json!({"kind": "add", "spans": [[0, 1]]})).await;
    let before = server.document(id).await;
    assert!(examine(&data, true).unwrap_err().to_string().contains("in use by another server"));
    let sql =
        |server: &Server, sql: &str| server.app.store.write(|transaction| Ok(transaction.execute_batch(sql)?)).unwrap();
    sql(
        &server,
        "DELETE FROM marks WHERE source = 'PRED'; UPDATE mark_counts SET n = n + 1; UPDATE documents SET is_finished = 1",
    );
    assert_ne!(mark_lines(&server.document(id).await), mark_lines(&before));
    drop(server);
    std::fs::create_dir_all(data.join("models/job-9")).unwrap();
    std::fs::write(data.join(".x.7-ab.tmp"), "half").unwrap();
    for path in [data.clone(), data.join(".x.7-ab.tmp")] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o700)).unwrap();
    }
    std::fs::set_permissions(data.join("canonym.sqlite"), PermissionsExt::from_mode(0o644)).unwrap();
    let rows = |help: Help| {
        vec![
            (help, "canonym.sqlite is readable by other users"),
            (help, "canonym.sqlite: table `marks` does not match the events"),
            (help, "canonym.sqlite: table `documents` does not match the events"),
            (help, "canonym.sqlite: table `mark_counts` does not match the events"),
            (help, "job-9 belongs to no model"),
            (help, ".x.7-ab.tmp is incomplete"),
        ]
    };
    // Checking changes nothing.
    for _ in 0..2 {
        assert_eq!(lines(&examine(&data, false).unwrap()), rows(Help::Repair));
    }
    assert_eq!(lines(&examine(&data, true).unwrap()), rows(Help::Repaired));
    assert_eq!(examine(&data, false).unwrap(), []);
    let server = Server::new(&data);
    assert_eq!(server.document(id).await, before);
    // Damaged events cannot be repaired.
    let json = "{";
    sql(&server, &format!("UPDATE events SET changes = '{json}', changes_checksum = {} WHERE id = 1", checksum(json)));
    sql(&server, "UPDATE models SET folder = 'models/job-1'");
    server.fail(Method::GET, "/projects/99", "").await;
    drop(server);
    let damage = examine(&data, true).unwrap();
    assert!(damage.iter().all(|finding| finding.help == Help::Restore), "{damage:?}");
    assert!(damage[0].what.contains("row 1 of table `events`"), "{damage:?}");
    assert!(damage[1].what.contains("is missing"), "{damage:?}");
}

#[tokio::test]
async fn doctor_finds_changed_letters_of_texts_and_events() {
    let (folder, server, id) = server_with_predictions().await;
    let data = folder.path().join("data");
    server.decide(id, json!({"kind": "add", "spans": [[0, 1]]})).await;
    let before = server.document(id).await;
    let change = |server: &Server, sql: &str| {
        assert_eq!(server.app.store.write(|transaction| Ok(transaction.execute(sql, [])?)).unwrap(), 1, "{sql}");
    };
    // A letter of a text, and one of an event, which SQLite does not notice and JSON allows.
    change(&server, "UPDATE documents SET text = 'X' || substr(text, 2) WHERE id = 2");
    drop(server);
    let text = "canonym.sqlite: `text` of row 2 of table `documents` does not match its checksum";
    assert_eq!(lines(&examine(&data, true).unwrap()), [(Help::Restore, text)]);
    let server = Server::new(&data);
    change(&server, "UPDATE events SET changes = changes || ' ' WHERE id = 2");
    drop(server);
    // The marks are right where the event is not: a repair leaves them alone.
    let event = "canonym.sqlite: `changes` of row 2 of table `events` does not match its checksum";
    assert_eq!(lines(&examine(&data, true).unwrap()), [(Help::Restore, text), (Help::Restore, event)]);
    let server = Server::new(&data);
    assert_eq!(mark_lines(&server.document(id).await), mark_lines(&before));
}

#[tokio::test]
async fn a_database_without_checksums_gets_them() {
    let (folder, server, _) = server_with_predictions().await;
    let data = folder.path().join("data");
    let older = "ALTER TABLE documents DROP COLUMN text_checksum; ALTER TABLE events DROP COLUMN changes_checksum";
    server.app.store.write(|transaction| Ok(transaction.execute_batch(older)?)).unwrap();
    // The last version without checksums.
    server.app.store.write(|transaction| Ok(transaction.pragma_update(None, "user_version", 11)?)).unwrap();
    drop(server);
    drop(Server::new(&data));
    assert_eq!(examine(&data, true).unwrap(), []);
}
