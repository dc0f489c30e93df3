//! Databases of every version that was released are opened.

use std::fs::Permissions;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;

use canonym_core::input::Input;

use super::*;

/// A data folder with a database of a version, made from one of an earlier version by the migrations between the two.
fn folder(database: &[u8], from: usize, version: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    std::fs::write(&path, database).unwrap();
    for (path, mode) in [(folder.path(), 0o700), (&path, 0o600)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let connection = Connection::open(&path).unwrap();
    MIGRATIONS[from..version].iter().for_each(|sql| connection.execute_batch(sql).unwrap());
    connection.pragma_update(None, "user_version", version as i64).unwrap();
    folder
}

/// All rows of all tables, as text.
fn rows(store: &Store) -> Vec<String> {
    let read = |connection: &Connection| {
        let mut tables = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")?;
        let tables = tables.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
        let mut all = Vec::new();
        for table in tables {
            let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\""))?;
            let n_columns = statement.column_count();
            let shown = |row: &Row<'_>| {
                let values = (0..n_columns).map(|column| row.get_ref(column).map(|value| format!("{value:?}")));
                Ok(format!("{table}: {}", values.collect::<rusqlite::Result<Vec<String>>>()?.join(" ")))
            };
            let mut of_table = statement.query_map([], shown)?.collect::<rusqlite::Result<Vec<String>>>()?;
            of_table.sort_unstable();
            all.append(&mut of_table);
        }
        Ok(all)
    };
    store.read(read).unwrap()
}

#[test]
fn databases_of_every_version_open_with_all_their_rows() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../canonym-cli/tests/data/formats/database-5/canonym.sqlite.gz");
    let mut database = Vec::new();
    Input::open(&path).unwrap().read_to_end(&mut database).unwrap();
    let expected = rows(&Store::open(folder(&database, 5, 5).path()).unwrap());
    assert!(expected.iter().any(|row| row.starts_with("events: ")), "{expected:?}");
    for version in 6..MIGRATIONS.len() {
        assert_eq!(rows(&Store::open(folder(&database, 5, version).path()).unwrap()), expected, "{version}");
    }
}

#[test]
fn an_empty_database_of_every_version_becomes_a_new_one() {
    let new = rows(&Store::open(folder(&[], 0, 0).path()).unwrap());
    for version in 1..MIGRATIONS.len() {
        assert_eq!(rows(&Store::open(folder(&[], 0, version).path()).unwrap()), new, "{version}");
    }
}
