//! Archives are read in place; hostile ones are errors that name the member.

use std::io::Write;

use axum::body::to_bytes;
use axum::http::Method;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;

use crate::support::Server;

fn zipped(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        archive.start_file(*name, SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// Imports into a new project; returns its number, the status and the response.
async fn import(server: &Server, query: &str, bytes: Vec<u8>) -> (i64, u16, Value) {
    let project = server.post("/projects", json!({"name": "Test"})).await["id"].as_i64().unwrap();
    let response = server.send(Method::POST, &format!("/api/v1/projects/{project}/import?{query}"), bytes).await;
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (project, status, serde_json::from_slice(&bytes).unwrap())
}

/// The message of an archive that is rejected and imports nothing.
async fn refused(server: &Server, bytes: Vec<u8>) -> String {
    let (project, status, answer) = import(server, "filename=a.zip", bytes).await;
    assert_eq!(status, 422, "{answer}");
    assert!(answer["error"]["hint"].is_string(), "{answer}");
    assert_eq!(server.get(&format!("/projects/{project}")).await["n_documents"], 0);
    answer["error"]["message"].as_str().unwrap().to_owned()
}

async fn names(server: &Server, project: i64) -> Vec<String> {
    let list = server.get(&format!("/projects/{project}/documents")).await;
    list["documents"].as_array().unwrap().iter().map(|row| row["external_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn brat_archive_is_imported_with_its_folders() {
    let server = Server::temporary();
    let bytes = zipped(&[
        ("wards/annotation.conf", b"[entities]\n"),
        ("wards/a/1.txt", b"She had delirium."),
        ("wards/a/1.ann", b"T1\tDisorder 8 16\tdelirium\nN1\tReference T1 T:2\tDelirium\n"),
        ("wards/b/2.txt", b"No marks."),
        ("wards/b/2.ann", b""),
    ]);
    let (project, status, report) = import(&server, "filename=wards.zip&annotations=gold", bytes).await;
    assert_eq!((status, &report["n_documents"], &report["n_annotations"]), (200, &json!(2), &json!(1)), "{report}");
    assert_eq!(names(&server, project).await, ["1", "2"]);
    let first = server.documents(project).await[0];
    assert_eq!(server.document(first).await["marks"][0]["concept"]["id"], "T:2");
    // A brat export can be imported again.
    let export = format!("/api/v1/projects/{project}/export?format=brat");
    let exported = to_bytes(server.send(Method::GET, &export, "").await.into_body(), usize::MAX).await.unwrap();
    let (_, status, report) = import(&server, "filename=again.zip&format=brat", exported.to_vec()).await;
    assert_eq!((status, &report["n_annotations"]), (200, &json!(1)), "{report}");
}

#[tokio::test]
async fn archive_may_mix_formats_and_files_may_be_gzipped() {
    let server = Server::temporary();
    let pubtator = b"7|t|Delirium.\n7|a|\n7\t0\t8\tDelirium\tDisorder\tT:2\n\n";
    let lines = gzipped(b"{\"id\": \"8\", \"text\": \"Pepcid.\"}\n");
    let mixed = zipped(&[("a.pubtator", pubtator), ("deep/er/b.jsonl.gz", &lines), ("c.txt", b"Pain.")]);
    let (project, status, _) = import(&server, "filename=mixed.zip", mixed).await;
    assert_eq!((status, names(&server, project).await), (200, ["7", "8", "c"].map(str::to_owned).to_vec()));
    let (project, status, _) = import(&server, "filename=notes.pubtator.gz", gzipped(pubtator)).await;
    assert_eq!((status, names(&server, project).await), (200, vec!["7".to_owned()]));
}

#[tokio::test]
async fn member_names_are_never_used_as_paths() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(&folder.path().join("data"));
    let hostile = ["../../up.txt", "/etc/absolute.txt", "..\\..\\back.txt", "C:\\drive.txt", "a/../b/./dots.txt"];
    let members: Vec<(&str, &[u8])> = hostile.iter().map(|name| (*name, &b"Pain."[..])).collect();
    let (project, status, report) = import(&server, "filename=..%2F..%2Fx.zip", zipped(&members)).await;
    assert_eq!((status, &report["n_documents"]), (200, &json!(5)), "{report}");
    for name in names(&server, project).await {
        assert!(!name.contains('/') && name != "..", "{name}");
    }
    // Nothing was written outside the data folder, and only the database inside it.
    let there = |path: &std::path::Path| -> Vec<String> {
        let entries = std::fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    };
    assert_eq!(there(folder.path()), ["data"]);
    assert!(there(&folder.path().join("data")).iter().all(|name| name.starts_with("canonym.")));
    // Control characters of a member name are not repeated.
    let (_, status, report) =
        import(&server, "filename=x.zip", zipped(&[("a\nb\u{7}.pubtator", b"1|t|x\n1|q|\n\n")])).await;
    assert_eq!(status, 422);
    let message = report["error"]["message"].as_str().unwrap();
    assert!(!message.chars().any(char::is_control), "{message:?}");
}

#[tokio::test]
async fn problems_name_the_archive_member() {
    let server = Server::temporary();
    let bytes = zipped(&[
        ("a/good.txt", b"Pain."),
        ("a/bad.pubtator", b"1|t|Pain.\n1|a|\n1\t?\t9\tPain\tX\tT:2\n\n"),
        ("a/notes.bin.txt", b"\xff\xfe\x00"),
        ("b/lonely.ann", b"T1\tX 0 1\tx\n"),
        ("b/within.zip", b"PK\x03\x04 another archive \x00"),
    ]);
    let (_, status, report) = import(&server, "filename=mixed.zip", bytes).await;
    assert_eq!(
        (status, &report["n_documents"], &report["n_skipped_documents"]),
        (200, &json!(1), &json!(3)),
        "{report}"
    );
    let shown: Vec<&str> =
        report["problems"].as_array().unwrap().iter().map(|problem| problem["message"].as_str().unwrap()).collect();
    assert!(shown[0].contains("a/bad.pubtator: "), "{shown:?}");
    assert!(shown[1].contains("a/notes.bin.txt: "), "{shown:?}");
    assert!(shown[2].contains("b/lonely.ann"), "{shown:?}");
    assert_eq!(report["problems"][0]["line"], 3);
}

#[tokio::test]
async fn decompression_bombs_are_rejected() {
    let server = Server::configured(|config| config.max_unpacked_bytes = 4 << 20);
    let zeros = vec![b' '; 3 << 20];
    // One stream that expands a thousandfold.
    let message = refused(&server, gzipped(&zeros)).await;
    assert!(message.contains("more than 200-fold"), "{message}");
    // Such a member among others.
    let bytes = zipped(&[("good.txt", b"Pain."), ("bomb.txt", &zeros)]);
    let (_, status, report) = import(&server, "filename=a.zip", bytes).await;
    assert_eq!((status, &report["n_documents"]), (200, &json!(1)), "{report}");
    assert!(report["problems"][0]["message"].as_str().unwrap().contains("bomb.txt"), "{report}");
    // Members that exceed the limit together.
    let names = ["a.txt", "b.txt"];
    let message = refused(&server, zipped(&names.map(|name| (name, &zeros[..])))).await;
    assert!(message.contains("the limit is 4194304"), "{message}");
    // Too many members.
    let many: Vec<String> = (0..50_001).map(|at| format!("{at}.txt")).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|name| (name.as_str(), &b""[..])).collect();
    assert!(refused(&server, zipped(&many)).await.contains("the limit is 50000"));
    // Expands less, but is too long.
    let mut state = 1u32;
    let letters = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b"abcd efgh\n"[(state >> 24) as usize % 10]
    });
    let noise: Vec<u8> = letters.take(5 << 20).collect();
    assert!(refused(&server, gzipped(&noise)).await.contains("more than 4194304 bytes"));
}

#[tokio::test]
async fn damaged_archives_are_rejected() {
    let server = Server::temporary();
    let good = zipped(&[("a.txt", b"She had delirium, and was confused.")]);
    assert!(refused(&server, good[..good.len() - 30].to_vec()).await.contains("damaged"));
    assert!(refused(&server, zipped(&[])).await.contains("no documents"));
    assert!(refused(&server, zipped(&[("__MACOSX/._a.txt", b"x")])).await.contains("no documents"));
    // The text does not match its checksum.
    let mut changed = good.clone();
    let at = changed.windows(5).position(|window| window == b"a.txt").unwrap() + 12;
    changed[at] ^= 0x55;
    refused(&server, changed).await;
    let mut packed = gzipped(b"Pain.");
    packed.truncate(packed.len() - 6);
    assert!(refused(&server, packed).await.contains("damaged or truncated"));
}
