//! `canonym kb fetch`, against a server on this machine that says what each test needs.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Output;
use std::thread::JoinHandle;

use expect_test::expect;

use crate::support::Workplace;

const BODY: &str = "X:1\tCircle\tring\nX:2\tSquare\tquad\n";
const SHA256: &str = "9d54a9d9c4f4b2ad0e4d42a4fcf6c8e8f4f6d1a2c0b5c6a1b0f1e2d3c4b5a697";

/// A server that gives each answer once, in order, and tells the requests when it is done.
struct Server {
    url: String,
    requests: JoinHandle<Vec<String>>,
}

impl Server {
    fn start(answers: Vec<String>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/shapes.tsv", listener.local_addr().unwrap());
        let requests = std::thread::spawn(move || {
            let answer = |answer: String| {
                let mut stream = listener.accept().unwrap().0;
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request: Vec<String> =
                    lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                // A client that has read enough may be gone.
                stream.write_all(answer.as_bytes()).ok();
                request.join("\n").to_lowercase()
            };
            answers.into_iter().map(answer).collect()
        });
        Server { url, requests }
    }

    /// Waits until every answer was given; one that nobody asked for counts as an empty request, so that a test fails and
    /// does not hang.
    fn requests(self) -> Vec<String> {
        let address = self.url.split('/').nth(2).unwrap();
        while !self.requests.is_finished() {
            drop(std::net::TcpStream::connect(address));
        }
        self.requests.join().unwrap()
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n{body}")
}

/// The whole file, of which only the first `n_bytes` arrive.
fn whole(etag: &str, n_bytes: usize) -> String {
    let headers = format!("content-length: {}\r\netag: {etag}\r\ndate: today\r\n", BODY.len());
    answer("200 OK", &headers, &BODY[..n_bytes])
}

fn fetch(place: &Workplace, url: &str, options: &[&str]) -> Output {
    let mut arguments = vec!["kb", "fetch", "--url", url];
    arguments.extend(options);
    let mut command = place.command(&arguments);
    for variable in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env_remove(variable);
    }
    command.output().unwrap()
}

/// What the program said, without the port.
fn said(place: &Workplace, url: &str, output: &Output) -> String {
    let host = url.split('/').nth(2).unwrap();
    place.describe(output).replace(host, "[HOST]")
}

fn content(place: &Workplace) -> String {
    std::fs::read_to_string(place.path("shapes.tsv")).unwrap()
}

#[test]
fn a_file_comes_with_a_note_of_where_it_came_from() {
    let (place, server) = (Workplace::new(), Server::start(vec![whole("\"one\"", BODY.len())]));
    let url = server.url.clone();
    let output = fetch(&place, &url, &[]);
    expect![[r#"
        status 0
        --- stderr
        fetched  shapes.tsv (32 bytes)
        sha256   a25751e574745da6b0fecfad400980783f6d541114ae2aefbb90629bb43be890, not verified (no published checksum)
        next     canonym kb build shapes.tsv --out terminology.kb
    "#]]
    .assert_eq(&said(&place, &url, &output));
    assert_eq!((content(&place).as_str(), place.names()), (BODY, vec!["shapes.tsv".into(), "shapes.tsv.json".into()]));
    let note = std::fs::read_to_string(place.path("shapes.tsv.json")).unwrap();
    let note: serde_json::Value = serde_json::from_str(&note).unwrap();
    assert_eq!((&note["etag"], &note["size"], &note["date"]), (&"\"one\"".into(), &BODY.len().into(), &"today".into()));
    assert!(!server.requests()[0].contains("range"));
}

#[test]
fn a_cut_download_goes_on_where_it_was() {
    let rest = answer(
        "206 Partial Content",
        &format!("content-length: {}\r\ncontent-range: bytes 9-{}/{}\r\n", BODY.len() - 9, BODY.len() - 1, BODY.len()),
        &BODY[9..],
    );
    let (place, server) = (Workplace::new(), Server::start(vec![whole("\"one\"", 9), rest]));
    let url = server.url.clone();
    let output = fetch(&place, &url, &[]);
    expect![[r#"
        status 1
        --- stderr
        error: download of http://[HOST]/shapes.tsv interrupted after 9 bytes of 32 bytes
        hint: run the same command again to resume
    "#]]
    .assert_eq(&said(&place, &url, &output));
    assert_eq!(place.names(), ["shapes.tsv.part", "shapes.tsv.part.json"]);
    assert!(fetch(&place, &url, &[]).status.success());
    assert_eq!((content(&place).as_str(), place.names().len()), (BODY, 2));
    let second = server.requests().remove(1);
    assert!(second.contains("range: bytes=9-") && second.contains("if-range: \"one\""), "{second}");
}

#[test]
fn a_file_that_changed_meanwhile_starts_over() {
    let answers = vec![whole("\"one\"", 9), whole("\"two\"", BODY.len())];
    let (place, server) = (Workplace::new(), Server::start(answers));
    let url = server.url.clone();
    assert!(!fetch(&place, &url, &[]).status.success());
    assert!(fetch(&place, &url, &[]).status.success());
    assert_eq!(content(&place), BODY);
    server.requests();
}

#[test]
fn a_part_that_the_server_knows_nothing_of_starts_over() {
    let unknown = answer("416 Range Not Satisfiable", "content-length: 0\r\ncontent-range: bytes */5\r\n", "");
    let answers = vec![whole("\"one\"", 9), unknown, whole("\"two\"", BODY.len())];
    let (place, server) = (Workplace::new(), Server::start(answers));
    let url = server.url.clone();
    assert!(!fetch(&place, &url, &[]).status.success());
    assert!(fetch(&place, &url, &[]).status.success());
    assert_eq!(content(&place), BODY);
    server.requests();
}

#[test]
fn another_checksum_keeps_nothing() {
    let (place, server) = (Workplace::new(), Server::start(vec![whole("\"one\"", BODY.len())]));
    let url = server.url.clone();
    let output = fetch(&place, &url, &["--sha256", SHA256]);
    expect![[r#"
        status 1
        --- stderr
        error: checksum mismatch for http://[HOST]/shapes.tsv: got a25751e574745da6b0fecfad400980783f6d541114ae2aefbb90629bb43be890, but `--sha256` says 9d54a9d9c4f4b2ad0e4d42a4fcf6c8e8f4f6d1a2c0b5c6a1b0f1e2d3c4b5a697
        hint: the download was deleted; try again, or check the expected checksum
    "#]].assert_eq(&said(&place, &url, &output));
    assert!(place.names().is_empty());
    server.requests();
}

#[test]
fn what_cannot_be_had_is_told() {
    let place = Workplace::new();
    let mut all = String::new();
    let turn = answer("302 Found", "location: /shapes.tsv\r\ncontent-length: 0\r\n", "");
    let chunked = format!("transfer-encoding: chunked\r\n\r\n{:x}\r\n{BODY}\r\n0\r\n", BODY.len());
    let cases = [
        (vec![answer("404 Not Found", "content-length: 0\r\n", "")], vec![]),
        (vec![turn; 9], vec![]),
        (vec![whole("\"one\"", BODY.len())], vec!["--max-bytes", "9"]),
        (vec![format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{chunked}\r\n")], vec!["--max-bytes", "9"]),
    ];
    for (answers, options) in cases {
        let server = Server::start(answers);
        let output = fetch(&place, &server.url, &options);
        all += &said(&place, &server.url, &output);
        server.requests();
    }
    expect![[r#"
        status 1
        --- stderr
        error: http://[HOST]/shapes.tsv returned HTTP status 404
        hint: the file may have moved; find its new address on the publisher's site and specify it with `--url`
        status 1
        --- stderr
        error: http://[HOST]/shapes.tsv redirects more than 8 times
        hint: the file may have moved; specify its address with `--url`
        status 1
        --- stderr
        error: http://[HOST]/shapes.tsv is larger than 9 bytes
        hint: check the address; if it is correct, raise `--max-bytes`
        status 1
        --- stderr
        error: http://[HOST]/shapes.tsv is larger than 9 bytes
        hint: check the address; if it is correct, raise `--max-bytes`
    "#]]
    .assert_eq(&all);
}

#[test]
fn without_a_network_the_error_says_what_to_do() {
    let place = Workplace::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/shapes.tsv", listener.local_addr().unwrap());
    drop(listener);
    let output = fetch(&place, &url, &[]);
    expect![[r#"
        status 1
        --- stderr
        error: cannot get http://[HOST]/shapes.tsv: io: Connection refused (os error 111)
        hint: without network access, copy http://[HOST]/shapes.tsv here from another machine and run `canonym kb build shapes.tsv --out terminology.kb`
    "#]]
    .assert_eq(&said(&place, &url, &output));
    assert!(place.names().is_empty());
}

#[test]
fn the_list_names_addresses_and_licences() {
    let place = Workplace::new();
    let output = place.run(&["kb", "fetch", "--list"], "");
    let list = String::from_utf8(output.stdout).unwrap();
    assert!(
        list.contains("doid ") && list.contains("https://purl.obolibrary.org/obo/doid.obo") && list.contains("CC0")
    );
    place.check(
        &["kb", "fetch", "umls"],
        expect![[r#"
        status 2
        --- stderr
        error: unknown terminology `umls`
        hint: list terminologies with `canonym kb fetch --list`, or specify an address with `--url`
    "#]],
    );
}
