//! `canonym serve`: it starts, answers, and ends when it is asked to.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::Workplace;

/// Asks a server and gives back all that it says.
pub fn ask(address: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nX-Canonym: 1\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The body of a whole answer with status 200; `None` where the server went away meanwhile.
fn answered(address: &str, path: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nX-Canonym: 1\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    (length == Some(body.len())).then(|| {
        assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
        body.to_owned()
    })
}

/// Starts a server in `place`; where it listens.
fn start(place: &Workplace) -> (Child, String) {
    start_with(place, "lexical")
}

/// Starts a server with a model.
pub fn start_with(place: &Workplace, model: &str) -> (Child, String) {
    let arguments = ["serve", "--kb", "shapes.kb", "--model", model, "--bind", "127.0.0.1:0", "--data", "kept"];
    let mut child = place.command(&arguments).stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect(&line).to_owned();
    (child, address)
}

/// What a server with a model links in a text; the server ends afterwards.
pub fn linked_by_server(place: &Workplace, model: &str, text: &str) -> String {
    let (mut child, address) = start_with(place, model);
    let answer = ask(&address, "POST", "/api/v1/link", &format!("{{\"text\": \"{text}\"}}"));
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    answer
}

#[test]
fn a_server_that_is_killed_while_people_decide_loses_nothing_that_it_answered() {
    const PEOPLE: usize = 4;
    let place = Workplace::with_shapes();
    let (mut child, mut address) = start(&place);
    ask(&address, "POST", "/api/v1/projects", "{\"name\": \"Shapes\"}");
    let lines: String = (0..PEOPLE).map(|row| format!("{{\"id\": \"{row}\", \"text\": \"Pie slices.\"}}\n")).collect();
    ask(&address, "POST", "/api/v1/projects/1/import?format=jsonl", &lines);
    let known: Mutex<Vec<(usize, String, String)>> = Mutex::default();
    // Somebody kills it after so many answers, whatever the others are waiting for just then.
    for (round, n_answers) in [7, 1, 24].into_iter().enumerate() {
        let (n_answered, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let process = child.id().to_string();
        std::thread::scope(|scope| {
            for person in 0..PEOPLE {
                let (address, known, n_answered, is_over, process) =
                    (&address, &known, &n_answered, &is_over, &process);
                scope.spawn(move || {
                    for row in 0.. {
                        let id = format!("{round}-{person}-{row}");
                        let body = format!(
                            "{{\"client_id\": \"{id}\", \"decisions\": [{{\"kind\": \"add\", \"spans\": [[0, 3]]}}]}}"
                        );
                        let path = format!("/api/v1/documents/{}/decisions", person + 1);
                        let Some(answer) = answered(address, &path, &body) else { return };
                        known.lock().unwrap().push((person, body, answer));
                        if n_answered.fetch_add(1, Ordering::Relaxed) + 1 == n_answers {
                            Command::new("kill").args(["-KILL", process]).status().unwrap();
                            is_over.store(true, Ordering::Relaxed);
                        }
                        if is_over.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                });
            }
        });
        child.wait().unwrap();
        (child, address) = start(&place);
        for (person, body, answer) in known.lock().unwrap().iter() {
            // The same request again is no new decision, and has the same answer.
            let path = format!("/api/v1/documents/{}/decisions", person + 1);
            assert_eq!(answered(&address, &path, body).as_ref(), Some(answer), "round {round}: {body}");
        }
    }
    let mut n_marks = 0;
    for person in 0..PEOPLE {
        let document = ask(&address, "GET", &format!("/api/v1/documents/{}", person + 1), "");
        n_marks += document.matches("\"source\":\"USER\"").count();
    }
    // What was not answered may be there or not, one request of each person in each round.
    let n_known = known.lock().unwrap().len();
    assert!((n_known..=n_known + 3 * PEOPLE).contains(&n_marks), "{n_known} were answered, {n_marks} are there");
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
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
    let nothing = ask(&address, "POST", "/api/v1/map", "{\"names\": [\"-\", \"of the\"]}");
    assert_eq!(nothing.matches("\"nil\":true,\"candidates\":[]").count(), 2, "{nothing}");
    let unlinked = |nil: &str| {
        let body = format!("{{\"text\": \"A square.\", \"min_score\": 1, \"nil\": \"{nil}\"}}");
        ask(&address, "POST", "/api/v1/link", &body)
    };
    assert!(unlinked("keep").contains("\"nil\":true"), "{}", unlinked("keep"));
    assert!(unlinked("drop").contains("\"annotations\":[]"), "{}", unlinked("drop"));
    assert!(unlinked("maybe").starts_with("HTTP/1.1 400"), "{}", unlinked("maybe"));
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
    // Enough for a test set that shows the gain.
    for at in 10..25 {
        let title = format!("Patient {at} was given a zorbomat and felt well.");
        corpus += &format!("{at}|t|{title}\n{at}|a|\n{at}\t23\t31\tzorbomat\tGadget\tMESH:D000005\n\n");
    }
    corpus += "new|t|Nobody else was given a zorbomat and felt well.\nnew|a|\n\n";
    let report = ask(
        &address,
        "POST",
        "/api/v1/projects/1/import?format=pubtator&annotations=gold&filename=gadgets.txt",
        &corpus,
    );
    assert!(report.contains("\"n_documents\":16"), "{report}");
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
    let document = ask(&address, "GET", "/api/v1/documents/16", "");
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
    assert!(String::from_utf8_lossy(&output.stderr).contains("there are no accounts"));
    let add = ["serve", "--kb", "shapes.kb", "--add-admin", "ada"];
    let weak = place.run(&add, "short\n");
    assert_eq!(weak.status.code(), Some(2));
    let output = place.run(&add, "correct horse\n");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ada is now an admin in canonym-data"));
}

#[test]
fn a_folder_of_data_is_copied_while_it_is_used_and_examined_when_it_is_not() {
    let place = Workplace::with_shapes();
    let (mut child, address) = start(&place);
    assert!(ask(&address, "POST", "/api/v1/projects", "{\"name\": \"Shapes\"}").starts_with("HTTP/1.1 201"));
    let told = |arguments: &[&str]| {
        let output = place.run(arguments, "");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let second = ["serve", "--kb", "shapes.kb", "--model", "lexical", "--bind", "127.0.0.1:0", "--data", "kept"];
    let (status, _, message) = told(&second);
    assert!(status == Some(1) && message.contains(&format!("process {}", child.id())), "{message}");
    let (status, _, message) = told(&["backup", "--data", "kept", "--out", "copy"]);
    assert!(status == Some(0) && message.contains("backed up kept to copy, including 0 trained models"), "{message}");
    assert!(told(&["doctor", "--data", "kept"]).2.contains("in use by another server"));
    Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    for data in ["kept", "copy"] {
        let (status, faults, message) = told(&["doctor", "--data", data]);
        assert_eq!((status, faults.as_str()), (Some(0), ""), "{message}");
        assert!(message.contains(&format!("no problems found in {data}")), "{message}");
    }
    std::fs::create_dir_all(place.path("copy/models/job-7")).unwrap();
    let (status, faults, message) = told(&["doctor", "--data", "copy"]);
    assert_eq!((status, faults.as_str()), (Some(1), "fault\tcopy/models/job-7 belongs to no model\n"), "{message}");
    assert!(message.contains("hint: run `canonym doctor --data copy --repair`"), "{message}");
    let (status, faults, _) = told(&["doctor", "--data", "copy", "--repair"]);
    assert_eq!((status, faults.as_str()), (Some(0), "repaired\tcopy/models/job-7 belongs to no model\n"));
    assert!(!place.path("copy/models/job-7").exists());
    assert!(told(&["backup", "--data", "none", "--out", "other"]).2.contains("hint: "));
}

#[test]
fn a_public_name_needs_an_account_and_no_path() {
    let place = Workplace::with_shapes();
    let run = |url: &str| {
        let arguments =
            ["serve", "--kb", "shapes.kb", "--model", "lexical", "--bind", "127.0.0.1:0", "--public-url", url];
        let output = place.run(&arguments, "");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, message) = run("https://links.example.org/canonym");
    assert!(status == Some(2) && message.contains("invalid server URL"), "{message}");
    let (status, message) = run("https://links.example.org");
    assert!(status == Some(2) && message.contains("there are no accounts"), "{message}");
}
