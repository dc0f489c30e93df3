//! What a running server offers to other programs, with a real model: options of linking, Gilda, FHIR, tools, health.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::serve::ask;
use crate::support::Workplace;

/// A server that ends with the test.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn start(place: &Workplace) -> Running {
        Running::start_with(place, &[])
    }

    fn start_with(place: &Workplace, options: &[&str]) -> Running {
        let arguments = ["serve", "--kb", "shapes.kb", "--bind", "127.0.0.1:0", "--data", "kept"];
        let arguments: Vec<&str> = arguments.iter().chain(options).copied().collect();
        Running::of(place, &arguments)
    }

    fn of(place: &Workplace, arguments: &[&str]) -> Running {
        let mut child = place.command(arguments).stdin(Stdio::null()).spawn().unwrap();
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "the server ended");
            if let Some(rest) = line.split_once("://").map(|(_, rest)| rest) {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        // What it says later has to be read.
        std::thread::spawn(move || told.read_to_end(&mut Vec::new()));
        Running { child, address }
    }

    fn json(&self, method: &str, path: &str, body: &str) -> Value {
        let answer = ask(&self.address, method, path, body);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        serde_json::from_str(body).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn requests_take_the_options_of_the_program() {
    let place = Workplace::with_shapes();
    let server = Running::start(&place);
    let link = |body: Value| {
        let linked = server.json("POST", "/api/v1/link", &body.to_string());
        let row = |one: &Value| {
            let attributes: Vec<&str> =
                one["attributes"].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str()).collect();
            format!("{} {} {}", one["text"].as_str().unwrap(), one["candidates"][0]["id"], attributes.join(" "))
        };
        linked["annotations"].as_array().unwrap().iter().map(row).collect::<Vec<String>>()
    };
    let text = "No pie slices. A trigon.";
    for model in [json!(null), json!("lexical"), json!("default")] {
        let body = json!({"text": text, "context": true, "model": model});
        assert_eq!(link(body), ["pie slices \"X:S3\" negated", "trigon \"X:S4\" "], "{model}");
    }
    let only = json!({"text": text, "filters": {"only_types": ["Curve"]}, "nil": "drop", "model": "lexical"});
    assert_eq!(link(only), ["pie slices \"X:S3\" "]);
    let given = json!({"text": text, "mentions": [{"spans": [[17, 23]]}], "top_k": 1});
    assert_eq!(link(given), ["trigon \"X:S4\" "]);
    let unknown = ask(
        &server.address,
        "POST",
        "/api/v1/link",
        &json!({"text": text, "filters": {"only_types": ["Blob"]}}).to_string(),
    );
    assert!(unknown.starts_with("HTTP/1.1 400") && unknown.contains("Blob"), "{unknown}");
    // The stream has the same filters.
    let streamed = ask(
        &server.address,
        "POST",
        "/api/v1/link/stream?only_types=Curve&nil=drop&model=lexical&context=true",
        &json!({"text": text}).to_string(),
    );
    assert!(streamed.contains("\"negated\"") && !streamed.contains("X:S4"), "{streamed}");
}

#[test]
fn other_programs_are_answered_in_their_own_form() {
    let place = Workplace::with_shapes();
    let server = Running::start(&place);
    let matches = server.json("POST", "/ground", "{\"text\": \"ring shape\"}");
    assert_eq!((&matches[0]["term"]["db"], &matches[0]["term"]["id"]), (&json!("X"), &json!("S1")));
    assert_eq!(server.json("POST", "/ground", "{\"text\": \"zeppelin\"}"), json!([]));
    let mentions = server.json("POST", "/annotate", "{\"text\": \"A trigon.\"}");
    assert_eq!((&mentions[0]["text"], &mentions[0]["start"]), (&json!("trigon"), &json!(2)));
    let set = server.json("GET", "/fhir/ValueSet/$expand?filter=square", "");
    assert_eq!(set["expansion"]["contains"][0]["code"], "S2");
}

#[test]
fn health_tells_whether_a_server_is_ready() {
    let place = Workplace::with_shapes();
    let server = Running::start(&place);
    let health = |address: &str| place.run(&["health", "--address", address], "");
    let done = health(&server.address);
    assert_eq!((done.status.code(), done.stdout.as_slice()), (Some(0), b"ready\n".as_slice()));
    let address = server.address.clone();
    drop(server);
    let done = health(&address);
    let told = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(told.contains("no answer from") && told.contains("hint:"), "{told}");
    assert_eq!(health("192.0.2.1:7878").status.code(), Some(2));
    assert_eq!(health("nonsense").status.code(), Some(2));
    // Something else listens there.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || {
        for answer in ["HTTP/1.1 503 Service Unavailable\r\n\r\n", "SSH-2.0-x 200 OK\r\n", ""] {
            let (mut stream, _) = listener.accept().unwrap();
            assert_ne!(stream.read(&mut [0; 512]).unwrap(), 0);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    for expected in ["is not ready", "is not a canonym server", "is not a canonym server"] {
        let done = health(&address);
        let told = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.code() == Some(1) && told.contains(expected), "{told}");
    }
    other.join().unwrap();
}

#[test]
fn batches_and_streams_have_what_the_program_links() {
    let place = Workplace::with_shapes();
    let line = |row: usize| {
        let text = ["No pie slices. A trigon.", "", "A regular quadrilateral 😷 of pie slices."][row % 3];
        json!({"id": row.to_string(), "text": text}).to_string()
    };
    let lines: Vec<String> = (0..300).map(line).collect();
    let program = place.run(&["link", "--kb", "shapes.kb", "--context", "--format", "jsonl", "-"], &lines.join("\n"));
    assert!(program.status.success(), "{}", String::from_utf8_lossy(&program.stderr));
    let read = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    let expected = read(&String::from_utf8(program.stdout).unwrap());
    assert!(expected.len() == 300 && expected[0]["annotations"].as_array().unwrap().len() == 2, "{}", expected[0]);
    let server = Running::start(&place);
    let body = format!("{{\"context\": true, \"documents\": [{}]}}", lines.join(","));
    let batch = server.json("POST", "/api/v1/link", &body);
    assert_eq!(batch["documents"].as_array().unwrap(), &expected);
    let stream = ask(&server.address, "POST", "/api/v1/link/stream?context=true", &lines.join("\n"));
    let (head, chunks) = stream.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.to_lowercase().contains("transfer-encoding: chunked"), "{head}");
    assert_eq!(read(&unchunked(chunks)), expected);
}

/// The content of a chunked body.
fn unchunked(mut chunks: &str) -> String {
    let mut content = String::new();
    loop {
        let (length, rest) = chunks.split_once("\r\n").unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return content;
        }
        content.push_str(&rest[..length]);
        chunks = &rest[length + 2..];
    }
}

#[test]
fn limits_of_requests_are_options() {
    let place = Workplace::with_shapes();
    let server = Running::start_with(&place, &["--model", "lexical", "--max-body", "3", "--max-text", "1"]);
    let link = |n_bytes: usize| {
        let body = json!({"text": "x".repeat(n_bytes)}).to_string();
        ask(&server.address, "POST", "/api/v1/link", &body).lines().next().unwrap().to_owned()
    };
    assert!(link(1 << 20).starts_with("HTTP/1.1 200"));
    assert!(link((1 << 20) + 1).starts_with("HTTP/1.1 413"));
    // The length alone is enough.
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let head =
        format!("POST /api/v1/link HTTP/1.1\r\nHost: {}\r\nX-Canonym: 1\r\nConnection: close\r\n", server.address);
    write!(stream, "{head}Content-Length: 3145729\r\n\r\n").unwrap();
    let mut whole = String::new();
    stream.read_to_string(&mut whole).unwrap();
    assert!(whole.starts_with("HTTP/1.1 413") && whole.contains("3145728"), "{whole}");
    drop(server);
    for wrong in [["--max-body", "0"], ["--max-queue", "0"], ["--max-text", "65"], ["--tls-cert", "x.pem"]] {
        let done = place.run(&[&["serve", "--kb", "shapes.kb"], &wrong[..]].concat(), "");
        assert_eq!(done.status.code(), Some(2), "{wrong:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn a_server_presents_its_certificate_and_health_checks_it() {
    let place = Workplace::with_shapes();
    let made = concat!(env!("CARGO_MANIFEST_DIR"), "/../canonym-serve/tests/data/tls");
    let [certificate, key, other] = ["certificate.pem", "key.pem", "renewed.pem"].map(|name| format!("{made}/{name}"));
    let server = Running::start_with(&place, &["--model", "lexical", "--tls-cert", &certificate, "--tls-key", &key]);
    let health =
        |certificate: &str| place.run(&["health", "--address", &server.address, "--tls-cert", certificate], "");
    let done = health(&certificate);
    assert!(done.status.success() && done.stdout == b"ready\n", "{}", String::from_utf8_lossy(&done.stderr));
    let done = health(&other);
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(1) && told.contains("presents another certificate"), "{told}");
    let done = place.run(&["health", "--address", &server.address], "");
    assert_eq!(done.status.code(), Some(1));
    let done = place.run(&["serve", "--kb", "shapes.kb", "--tls-cert", &other, "--tls-key", &key], "");
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(1) && told.contains("key.pem") && told.contains("hint:"), "{told}");
}

#[test]
fn packaging_names_options_that_exist() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging");
    let place = Workplace::new();
    let help = |command: &str| String::from_utf8(place.run(&[command, "--help"], "").stdout).unwrap();
    let (serve, health) = (help("serve"), help("health"));
    for name in ["canonym.service", "Containerfile"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        let code = text.lines().filter(|line| !line.starts_with('#'));
        let lines: Vec<&str> = code.filter(|line| line.contains("serve ") || line.contains("\"serve\"")).collect();
        assert!(!lines.is_empty(), "{name} does not start the server");
        let options = lines.iter().flat_map(|line| line.split(['"', ' ', ',']));
        for option in options.filter(|word| word.starts_with("--")) {
            assert!(serve.contains(option) || health.contains(option), "{name}: {option}");
        }
    }
    // systemd checks its unit itself, where it is installed.
    if let Ok(done) =
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(root.join("canonym.service")).output()
    {
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(!told.contains("Unknown") && !told.contains("Failed to parse"), "{told}");
    }
}

#[test]
fn names_are_mapped_with_the_options_of_the_program() {
    let place = Workplace::with_shapes();
    let server = Running::start(&place);
    let map = |options: Value| {
        let mut body = json!({"names": ["pie slices"]});
        body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        server.json("POST", "/api/v1/map", &body.to_string())["results"][0].clone()
    };
    let lexical = map(json!({"model": "lexical", "top_k": 1}));
    assert_eq!((&lexical["nil"], lexical["candidates"].as_array().unwrap().len()), (&json!(false), 1));
    assert_eq!(map(json!({"model": "lexical", "min_score": 1}))["nil"], true);
    let under = json!({"names": ["pie slices"], "filters": {"not_under": [lexical["candidates"][0]["id"]]}});
    let answer = ask(&server.address, "POST", "/api/v1/map", &under.to_string());
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("has no hierarchy"), "{answer}");
    let answer = ask(&server.address, "POST", "/api/v1/link", "{\"text\": \"pie\", \"nil\": true}");
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("drop"), "{answer}");
}

#[test]
fn tools_over_http_are_for_programs_of_this_machine() {
    let place = Workplace::with_shapes();
    let options = ["mcp", "--kb", "shapes.kb", "--model", "lexical", "--bind"];
    let with = |address| options.into_iter().chain([address]).collect::<Vec<&str>>();
    let server = Running::of(&place, &with("127.0.0.1:0"));
    let params = json!({"name": "ground_terms", "arguments": {"terms": ["pie"]}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let post = |path: &str, host: &str, more: &str| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}");
        let types = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        write!(stream, "{head}{types}Content-Length: {}\r\n\r\n{call}", call.len()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = post("/mcp", &server.address, "");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("structuredContent"), "{answer}");
    for (host, more) in [("example.org", ""), (server.address.as_str(), "Origin: http://example.org\r\n")] {
        let answer = post("/mcp", host, more);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
    assert!(post("/api/v1/projects", &server.address, "").starts_with("HTTP/1.1 404"));
    let output = place.run(&with("0.0.0.0:0"), "");
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("is reachable from other machines"), "{told}");
}

#[test]
fn tools_over_http_end_with_a_signal() {
    let place = Workplace::with_shapes();
    let mut server = Running::of(&place, &["mcp", "--kb", "shapes.kb", "--model", "lexical", "--bind", "127.0.0.1:0"]);
    Command::new("kill").arg(server.child.id().to_string()).status().unwrap();
    assert!(server.child.wait().unwrap().success());
}
