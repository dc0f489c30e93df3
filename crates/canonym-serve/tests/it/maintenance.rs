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
    let helps: Vec<Help> = damage.iter().map(|finding| finding.help).collect();
    assert_eq!(helps, [Help::Restore, Help::Skipped, Help::Restore], "{damage:?}");
    assert!(damage[0].what.contains("row 1 of table `events`"), "{damage:?}");
    assert_eq!(damage[1].what, SKIPPED);
    assert!(damage[2].what.contains("is missing"), "{damage:?}");
}

const SKIPPED: &str =
    "canonym.sqlite: because of the damaged events, the tables that follow from them were not checked";

#[tokio::test]
async fn doctor_reads_every_value_that_the_server_parses() {
    let (folder, server, _) = server_with_predictions().await;
    let data = folder.path().join("data");
    let damage = "UPDATE documents SET beside = '{bad' WHERE id = 3; UPDATE jobs SET curve = '[bad' WHERE id = 1;
        UPDATE people SET role = 'king' WHERE id = 0; UPDATE projects SET scope = '{\"types\":7}' WHERE id = 1;
        INSERT INTO answers VALUES (0, 'a', 1, '');
        INSERT INTO models (name, card, made_at, dev) VALUES ('m', '', 0, '[]');
        UPDATE documents SET beside = json_set(beside, '$.residue', json('[\"none\", 1]')) WHERE id = 2";
    server.app.store.write(|transaction| Ok(transaction.execute_batch(damage)?)).unwrap();
    drop(server);
    let findings = examine(&data, false).unwrap();
    assert!(findings.iter().all(|finding| finding.help == Help::Restore), "{findings:?}");
    let start = |finding: &Finding| finding.what.split(": ").take(2).collect::<Vec<_>>().join(": ");
    let rows = ["0 of table `people`", "1 of table `projects`", "2 of table `documents`", "3 of table `documents`"];
    let more = ["1 of table `answers`", "1 of table `jobs`", "2 of table `models`"];
    let expected = rows.iter().chain(&more).map(|row| format!("canonym.sqlite: cannot read row {row}"));
    assert_eq!(findings.iter().map(start).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

/// A data folder with the database of version 12 that is kept for tests, changed by `sql`.
fn database_12(sql: &str) -> TempDir {
    use std::io::Read as _;
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../canonym-cli/tests/data/formats/database-12/canonym.sqlite.gz");
    let mut database = Vec::new();
    canonym_core::input::Input::open(kept.as_ref()).unwrap().read_to_end(&mut database).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("canonym.sqlite");
    std::fs::write(&path, database).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(&format!("UPDATE models SET folder = NULL; {sql}")).unwrap();
    drop(connection);
    examine(folder.path(), true).unwrap();
    folder
}

#[test]
fn doctor_says_what_is_damaged_in_an_older_database_and_what_it_did_not_check() {
    let whole = database_12("");
    let findings = examine(whole.path(), false).unwrap();
    assert_eq!(findings.iter().map(|finding| finding.help).collect::<Vec<_>>(), [Help::Skipped]);
    assert!(findings[0].what.contains("has version 12, this program version"), "{findings:?}");
    drop(canonym_serve::store::Store::open(whole.path()).unwrap());
    assert_eq!(examine(whole.path(), false).unwrap(), []);

    let damaged =
        database_12("UPDATE events SET changes = '{bad' WHERE id = 4; UPDATE jobs SET curve = '[bad' WHERE id = 1");
    let findings = examine(damaged.path(), false).unwrap();
    let lines: Vec<&str> = findings.iter().map(|finding| finding.what.as_str()).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("canonym.sqlite: cannot read row 4 of table `events`: "), "{lines:?}");
    assert!(lines[1].starts_with("canonym.sqlite: cannot read row 1 of table `jobs`: "), "{lines:?}");
    assert_eq!(lines[2], "canonym.sqlite: `changes` of row 4 of table `events` does not match its checksum");
    assert_eq!(lines[3], SKIPPED);
    let error = canonym_serve::store::Store::open(damaged.path()).unwrap_err();
    let hint = error.hint().unwrap_or_default();
    assert!(error.to_string().contains("cannot read row 4 of table `events`"), "{error}");
    assert!(hint.contains(&format!("`canonym doctor --data {}`", damaged.path().display())), "{hint}");

    let newer = database_12("");
    let connection = rusqlite::Connection::open(newer.path().join("canonym.sqlite")).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert!(examine(newer.path(), false).unwrap_err().to_string().contains("version 99 is newer than"));
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
    let expected = [(Help::Restore, text), (Help::Restore, event), (Help::Skipped, SKIPPED)];
    assert_eq!(lines(&examine(&data, true).unwrap()), expected);
    let server = Server::new(&data);
    assert_eq!(mark_lines(&server.document(id).await), mark_lines(&before));
}

#[tokio::test]
async fn a_database_without_checksums_gets_them() {
    let (folder, server, _) = server_with_predictions().await;
    let data = folder.path().join("data");
    let older = "DROP INDEX marks_by_text; ALTER TABLE documents DROP COLUMN split;
        ALTER TABLE documents DROP COLUMN text_checksum; ALTER TABLE events DROP COLUMN changes_checksum";
    server.app.store.write(|transaction| Ok(transaction.execute_batch(older)?)).unwrap();
    // The last version without checksums.
    server.app.store.write(|transaction| Ok(transaction.pragma_update(None, "user_version", 11)?)).unwrap();
    drop(server);
    drop(Server::new(&data));
    assert_eq!(examine(&data, true).unwrap(), []);
}
