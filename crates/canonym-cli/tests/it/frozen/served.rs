//! What the server answers: its description, one answer of each endpoint that reads, and a data folder that an earlier version wrote.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Map, Value};

use super::{check, place};
use crate::serve::ask;
use crate::support::Workplace;

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(place: &Workplace, arguments: &[&str]) -> Server {
        let mut command = place.command(&[&["serve", "--bind", "127.0.0.1:0"], arguments].concat());
        let child = command.env("CANONYM_CACHE", place.path("cache")).stdin(Stdio::null()).spawn().unwrap();
        let mut server = Server { child, address: String::new() };
        let mut told = Vec::new();
        for line in BufReader::new(server.child.stderr.take().unwrap()).lines().map_while(Result::ok) {
            if let Some((_, rest)) = line.split_once("http://") {
                server.address = rest.split('/').next().unwrap().to_owned();
                return server;
            }
            told.push(line);
        }
        panic!("the server does not start: {told:?}");
    }

    /// The answers to requests, `METHOD path` or `POST path body`, under the requests.
    fn answers(&self, requests: &[&str]) -> Value {
        let mut answers = Map::new();
        for request in requests {
            let mut parts = request.splitn(3, ' ');
            let mut part = || parts.next().unwrap_or_default();
            let answer = ask(&self.address, part(), &format!("/api/v1{}", part()), part());
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 200"), "{request}: {answer}");
            answers.insert((*request).to_owned(), serde_json::from_str(body).unwrap());
        }
        Value::Object(answers)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn description_and_answers() {
    let place = Workplace::new();
    let server = Server::start(&place, &["--data", "data"]);
    check("openapi", server.answers(&["GET /openapi.json"])["GET /openapi.json"].clone());
    let answers = server.answers(&[
        "GET /about",
        r#"POST /link {"text": "She has HTN and a fever; 😀 zolbenaprine was given."}"#,
        r#"POST /link {"text": "No fever.", "explain": true, "top_k": 2, "nested": true}"#,
        r#"POST /map {"names": ["high blood presure", "qwertz"]}"#,
        "GET /kb/search?q=heart%20attack&top_k=3",
        "GET /kb/concepts/MESH:D006973",
        "GET /kb/concepts/MESH:D006973/near?top_k=3",
        "GET /projects",
        "GET /models",
    ]);
    check("served", answers);
}

#[test]
fn data_folder_of_format_4() {
    check_data_folder("database-4", "knowledge-base-1");
}

#[test]
fn data_folder_of_format_5() {
    check_data_folder("database-5", "knowledge-base-1");
}

#[test]
fn data_folder_of_format_12() {
    check_data_folder("database-12", "knowledge-base-3");
}

#[test]
fn data_folder_of_format_13() {
    check_data_folder("database-13", "knowledge-base-3");
}

#[test]
fn data_folder_of_format_14() {
    check_data_folder("database-14", "knowledge-base-3");
}

/// Opens a data folder and compares what the server says of it with the snapshot of the same name.
fn check_data_folder(name: &str, kb: &str) {
    let place = place();
    // Files of a repository are readable by other users; those of a server may not be.
    assert!(place.run(&["doctor", "--data", name, "--repair"], "").status.success());
    let examined = place.run(&["doctor", "--data", name], "");
    assert!(examined.status.success(), "{}", String::from_utf8_lossy(&examined.stdout));
    let kb = format!("{kb}/ailments.kb");
    let arguments = ["--model", "dual-encoder-1", "--kb", &kb, "--data", name];
    let server = Server::start(&place, &arguments);
    let answers = server.answers(&[
        "GET /projects",
        "GET /projects/1/documents?limit=30",
        "GET /projects/1/stats",
        "GET /projects/1/jobs",
        "GET /projects/1/mentions?concept=A2",
        "GET /models?project=1",
        "GET /documents/1",
        "GET /documents/25",
        "GET /documents/25/history",
        "GET /documents/26",
        "GET /documents/28",
        // The model that the project trained.
        r#"POST /link {"text": "The patient has circlitis.", "project": 1}"#,
    ]);
    check(name, answers);
    // The decision that was undone can be redone.
    let redone = &server.answers(&["POST /documents/25/redo {}"])["POST /documents/25/redo {}"];
    assert_eq!(redone["marks"][0]["concept"]["id"], "A5", "{redone}");
}
