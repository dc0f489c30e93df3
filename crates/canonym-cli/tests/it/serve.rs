//! `canonym serve`: it starts, answers, and ends when it is asked to.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::support::Workplace;

/// Asks a server and gives back all that it says.
fn ask(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nX-Canonym: 1\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_server_links_keeps_projects_and_stops_when_asked() {
    let place = Workplace::with_shapes();
    let arguments = ["serve", "--kb", "shapes.kb", "--model", "lexical", "--bind", "127.0.0.1:0", "--data", "kept"];
    let mut child = place.command(&arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect(&line).to_owned();
    assert!(ask(&address, "GET", "/health", "").starts_with("HTTP/1.1 200 OK"));
    let linked = ask(&address, "POST", "/api/v1/link", "{\"text\": \"A regular quadrilateral.\"}");
    assert!(linked.contains("\"id\":\"X:S2\""), "{linked}");
    let mapped = ask(&address, "POST", "/api/v1/map", "{\"names\": [\"pie slices\"]}");
    assert!(mapped.contains("\"id\":\"X:S3\""), "{mapped}");
    assert!(ask(&address, "POST", "/api/v1/projects", "{\"name\": \"Shapes\"}").starts_with("HTTP/1.1 201"));
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(place.path("kept/canonym.sqlite").exists());
}

#[test]
fn a_project_trains_a_model_and_gets_its_predictions() {
    let place = Workplace::new();
    let arguments = ["serve", "--bind", "127.0.0.1:0", "--data", "kept"];
    let mut child = place.command(&arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("http://") {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "the server ended");
    }
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect(&line).to_owned();
    ask(&address, "POST", "/api/v1/projects", "{\"name\": \"Gadgets\"}");
    let mut corpus = String::new();
    for at in 0..9 {
        let title = format!("Patient {at} was given a zorbomat and felt well.");
        corpus += &format!("{at}|t|{title}\n{at}|a|\n{at}\t22\t30\tzorbomat\tGadget\tMESH:D000005\n\n");
    }
    corpus += "new|t|Nobody else was given a zorbomat and felt well.\nnew|a|\n\n";
    let report = ask(&address, "POST", "/api/v1/projects/1/import?format=pubtator&filename=gadgets.txt", &corpus);
    assert!(report.contains("\"n_documents\":10"), "{report}");
    // What happens is heard from before the job exists.
    let mut events = TcpStream::connect(&address).unwrap();
    write!(events, "GET /api/v1/events?project=1 HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut events = BufReader::new(events).lines().map_while(Result::ok);
    assert!(events.next().unwrap().contains("200 OK"));
    let job = ask(&address, "POST", "/api/v1/projects/1/jobs", "{\"kind\": \"train\"}");
    assert!(job.starts_with("HTTP/1.1 202"), "{job}");
    let ended = |line: &String| ["SUCCEEDED", "FAILED", "CANCELLED"].iter().any(|state| line.contains(state));
    let last = events.find(ended).unwrap();
    assert!(last.contains("SUCCEEDED") && last.contains("\"curve\":[{"), "{last}");
    let document = ask(&address, "GET", "/api/v1/documents/10", "");
    assert!(document.contains("\"text\":\"zorbomat\"") && document.contains("\"source\":\"PRED\""), "{document}");
    assert!(document.contains("\"concept\":{\"id\":\"MESH:D000005\""), "{document}");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn others_are_let_in_only_where_somebody_has_an_account() {
    let place = Workplace::with_shapes();
    let arguments = ["serve", "--kb", "shapes.kb", "--model", "lexical", "--bind", "0.0.0.0:0"];
    let output = place.run(&arguments, "");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("nobody has an account"));
    let add = ["serve", "--kb", "shapes.kb", "--add-admin", "ada"];
    let weak = place.run(&add, "short\n");
    assert_eq!(weak.status.code(), Some(2));
    let output = place.run(&add, "correct horse\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ada is an admin in canonym-data"));
}
