//! What an attacker of the server tried, point by point.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{Method, Request, StatusCode};
use canonym_serve::abandon::{self, Waiting};
use canonym_serve::guard::Peer;
use canonym_serve::{App, ServeConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tower::ServiceExt;

use crate::flow::CORPUS;
use crate::people::{PASSWORD, login, number_of, three};
use crate::support::{Ruled, Server, config, rules};

#[tokio::test]
async fn a_new_password_by_the_command_line_ends_logins_and_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let [ada, ..] = three(&server).await;
    let token = ada.post("/tokens", json!({"name": "script"})).await["token"].as_str().unwrap().to_owned();
    let script = server.asked_with(&[("authorization", &format!("Bearer {token}"))]);
    script.get("/projects").await;
    server.app.put_admin("ada", "another horse").unwrap();
    for gone in [&ada, &script] {
        assert_eq!(gone.fail(Method::GET, "/projects", "").await.0, 401);
    }
}

/// The status of a login from an address.
async fn login_from(server: &Server, address: [u8; 4], cookie: &str, (name, password): (&str, &str)) -> StatusCode {
    let request = Request::builder()
        .method(Method::POST)
        .uri("/api/v1/login")
        .header("host", "127.0.0.1:7878")
        .header("x-canonym", "1")
        .header("cookie", cookie)
        .extension(Peer(SocketAddr::from((address, 4711))))
        .body(Body::from(json!({"name": name, "password": password}).to_string()));
    server.router.clone().oneshot(request.unwrap()).await.unwrap().status()
}

#[tokio::test]
async fn strangers_cannot_keep_anybody_from_logging_in() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::at_one_time(folder.path());
    server.app.put_admin("ada", PASSWORD).unwrap();
    let (stranger, home) = ([203, 0, 113, 9], [198, 51, 100, 7]);
    let body = json!({"name": "ada", "password": PASSWORD}).to_string();
    let answer = server.send(Method::POST, "/api/v1/login", body).await;
    let device = answer.headers().get_all("set-cookie").iter().nth(1).unwrap().to_str().unwrap().to_owned();
    assert!(device.contains("HttpOnly; SameSite=Strict; Path=/api/v1/login"), "{device}");
    let device = device.split(';').next().unwrap();
    // Many names, and one again and again.
    let mut statuses = Vec::new();
    for row in 0..60 {
        statuses.push(login_from(&server, stranger, "", (&format!("name {row}"), "wrong horse")).await);
        statuses.push(login_from(&server, stranger, "", ("ada", "wrong horse")).await);
    }
    assert!(statuses.iter().filter(|status| **status == 401).count() <= 40, "{statuses:?}");
    assert_eq!(statuses.last().unwrap(), &StatusCode::TOO_MANY_REQUESTS);
    // Others are not kept out, and a browser that is known not even from the address of the attack.
    assert_eq!(login_from(&server, home, "", ("ada", PASSWORD)).await, 200);
    assert_eq!(login_from(&server, stranger, "", ("ada", PASSWORD)).await, 429);
    assert_eq!(login_from(&server, stranger, device, ("ada", PASSWORD)).await, 200);
    // Being known lets nobody in, and is of one person.
    assert_eq!(login_from(&server, home, device, ("ada", "wrong horse")).await, 401);
    assert_eq!(login_from(&server, stranger, device, ("name 3", "wrong horse")).await, 429);
    let known = server.asked_with(&[("cookie", &device.replace("canonym_device", "canonym_session"))]);
    assert_eq!(known.fail(Method::GET, "/projects", "").await.0, 401);
}

#[tokio::test]
async fn names_and_passwords_are_bounded_before_anything_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    server.app.put_admin("ada", PASSWORD).unwrap();
    let body = |name: &str, password: &str| json!({"name": name, "password": password}).to_string();
    for (long, status) in [(100, 400), (1_000_000, 413)] {
        let name = "x".repeat(long);
        assert_eq!(server.fail(Method::POST, "/login", body(&name, "wrong horse")).await.0, status);
        let password = "x".repeat(20 * long);
        assert_eq!(server.fail(Method::POST, "/login", body("ada", &password)).await.0, status);
    }
    login(&server, "ada").await;
}

/// A stream of events, of which the first line was read.
async fn listen(server: &Server) -> BodyDataStream {
    let response = server.send(Method::GET, "/api/v1/events", Body::empty()).await;
    assert_eq!(response.status(), 200);
    let mut stream = response.into_body().into_data_stream();
    assert_eq!(&stream.next().await.unwrap().unwrap()[..], b": listening\n\n");
    stream
}

/// Reads what is left of a stream that ends.
async fn ends(mut stream: BodyDataStream, of: &str) {
    let rest = async { while stream.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(10), rest).await.unwrap_or_else(|_| panic!("the stream of {of} goes on"));
}

#[tokio::test]
async fn streams_end_with_the_login_of_the_one_who_listens() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let local = listen(&server).await;
    let [ada, cyd, ann] = three(&server).await;
    ends(local, "the time before accounts").await;
    let mut stays = listen(&ada).await;

    let streams = [listen(&ann).await, listen(&cyd).await];
    ann.post("/logout", json!({})).await;
    let path = format!("/people/{}", number_of(&ada, "cyd").await);
    ada.patch(&path, json!({"is_active": false})).await;
    for (stream, of) in streams.into_iter().zip(["a logout", "a deactivation"]) {
        ends(stream, of).await;
    }
    ada.patch(&path, json!({"is_active": true})).await;
    let cyd = login(&server, "cyd").await;
    let elsewhere = login(&server, "cyd").await;
    let stream = listen(&elsewhere).await;
    cyd.post("/password", json!({"old": PASSWORD, "new": "another horse"})).await;
    ends(stream, "a new password").await;
    let token = ada.post("/tokens", json!({"name": "script"})).await["token"].as_str().unwrap().to_owned();
    let script = server.asked_with(&[("authorization", &format!("Bearer {token}"))]);
    let stream = listen(&script).await;
    let id = ada.get("/tokens").await["tokens"][0]["id"].as_str().unwrap().to_owned();
    ada.delete(&format!("/tokens/{id}")).await;
    ends(stream, "a token").await;
    // Who may still listen does.
    ada.project(CORPUS).await;
    while !String::from_utf8_lossy(&stays.next().await.unwrap().unwrap()).contains("event: import") {}
}

#[tokio::test]
async fn a_change_that_was_answered_as_too_late_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    config.timeout = Duration::from_millis(300);
    let server = Server::with(Ruled::new("first", rules()), None, config);
    let project = server.project(CORPUS).await;
    let id = server.documents(project).await[0];
    let before = server.document(id).await;
    // Somebody else writes all the time.
    let (held, holds) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let app = server.app.clone();
    let other = std::thread::spawn(move || {
        app.store.write(|_| {
            held.send(()).unwrap();
            released.recv().unwrap();
            Ok(())
        })
    });
    holds.recv().unwrap();
    let body = json!({"decisions": [{"kind": "add", "spans": [[0, 1]]}]}).to_string();
    let (status, answer) = server.fail(Method::POST, &format!("/documents/{id}/decisions"), body).await;
    assert_eq!(status, 503);
    assert!(answer["error"]["hint"].as_str().unwrap().contains("nothing was changed"), "{answer}");
    release.send(()).unwrap();
    other.join().unwrap().unwrap();
    // What waited for its turn has it before the runtime ends; none of it is kept.
    tokio::task::spawn_blocking(|| ()).await.unwrap();
    server.app.store.write(|_| Ok(())).unwrap();
    assert_eq!(server.document(id).await, before);
}

#[tokio::test]
async fn what_nobody_waits_for_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";
    let waiting = Arc::new(Waiting::default());
    assert!(waiting.abandon());
    let read = abandon::during(Some(waiting), || {
        server.app.store.read(|connection| Ok(connection.query_row(endless, [], |row| row.get::<_, i64>(0))?))
    });
    assert_eq!(read.unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
    // What is being kept cannot be given up any more.
    let waiting = Arc::new(Waiting::default());
    abandon::during(Some(waiting.clone()), || server.app.store.write(|_| Ok(()))).unwrap();
    assert!(!waiting.abandon());
}

#[tokio::test]
async fn damaged_rows_are_told_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let project = server.project(CORPUS).await;
    let ids = server.documents(project).await;
    server.decide(ids[0], json!({"kind": "add", "spans": [[0, 1]]})).await;
    server.predict(project).await;
    let damage = |sql: &str| server.app.store.write(|transaction| Ok(transaction.execute(sql, [])?)).unwrap();
    let asks = [
        (
            "UPDATE events SET changes = '{\"ma' WHERE kind = 'add'",
            Method::POST,
            format!("/documents/{}/undo", ids[0]),
            "events",
        ),
        (
            "UPDATE events SET changes = '' WHERE kind = 'import'",
            Method::GET,
            format!("/documents/{}/history", ids[0]),
            "events",
        ),
        ("UPDATE jobs SET curve = '[1'", Method::GET, "/jobs/1".to_owned(), "jobs"),
        ("UPDATE documents SET beside = '[]' WHERE id = 2", Method::GET, "/documents/2".to_owned(), "documents"),
        ("UPDATE marks SET body = '{}' WHERE document_id = 3", Method::GET, "/documents/3".to_owned(), "marks"),
    ];
    for (sql, method, path, table) in asks {
        assert!(damage(sql) > 0, "{sql}");
        let response = server.send(method, &format!("/api/v1{path}"), "").await;
        assert_eq!(response.status(), 500, "{sql}");
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(answer["error"]["code"], "damaged");
        assert!(answer["error"]["message"].as_str().unwrap().contains(&format!("`{table}`")), "{answer}");
    }
    // Nothing was taken back of what could not be read.
    assert_eq!(
        server.document(ids[0]).await["marks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|mark| mark["source"] == "USER")
            .count(),
        1
    );
}

#[tokio::test]
async fn the_first_admin_closes_a_server_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    server.get("/projects").await;
    // Another process, as `canonym serve --add-admin` is.
    let looks_in = ServeConfig { owns_jobs: false, ..config(folder.path()) };
    let other = App::open(Ruled::new("first", rules()), None, looks_in).unwrap();
    other.put_admin("ada", PASSWORD).unwrap();
    assert_eq!(server.fail(Method::GET, "/projects", "").await.0, 401);
    assert_eq!(server.get("/about").await["needs_login"], true);
    login(&server, "ada").await.get("/projects").await;
}

#[tokio::test]
async fn a_folder_of_data_has_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let project = server.project(CORPUS).await;
    server.post(&format!("/projects/{project}/jobs"), json!({"kind": "predict"})).await;
    server.app.store.write(|transaction| canonym_serve::store::jobs::start(transaction, 1, 0)).unwrap();
    let error = App::open(Ruled::new("first", rules()), None, config(folder.path())).unwrap_err();
    assert!(error.to_string().contains(&format!("another server uses it, process {}", std::process::id())), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(server.get("/jobs/1").await["state"], "RUNNING");
    drop(server);
    assert_eq!(Server::new(folder.path()).get("/jobs/1").await["state"], "FAILED");
}

#[tokio::test]
async fn the_end_of_a_job_is_kept_as_soon_as_it_can_be() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let project = server.project(CORPUS).await;
    let sql = |sql: &str| server.app.store.write(|transaction| Ok(transaction.execute_batch(sql)?)).unwrap();
    sql("CREATE TRIGGER full BEFORE UPDATE OF ended_at ON jobs BEGIN SELECT RAISE(ABORT, 'no room'); END");
    server.post(&format!("/projects/{project}/jobs"), json!({"kind": "predict"})).await;
    server.run_jobs().await;
    assert_eq!(server.get("/jobs/1").await["state"], "RUNNING");
    sql("DROP TRIGGER full");
    server.run_jobs().await;
    assert_eq!(server.get("/jobs/1").await["state"], "SUCCEEDED");
    // One that cannot be read is not the next one for ever.
    server.post(&format!("/projects/{project}/jobs"), json!({"kind": "predict"})).await;
    sql("UPDATE jobs SET settings = '{' WHERE id = 2");
    server.run_jobs().await;
    sql("UPDATE jobs SET settings = 'null' WHERE id = 2");
    assert_eq!(server.get("/jobs/2").await["state"], "FAILED");
}

#[tokio::test]
async fn nothing_is_acknowledged_that_would_be_lost() {
    for gone in ["canonym.sqlite", "canonym.sqlite-wal"] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::new(folder.path());
        let project = server.project(CORPUS).await;
        let id = server.documents(project).await[0];
        server.get("/ready").await;
        std::fs::rename(folder.path().join(gone), folder.path().join("elsewhere")).unwrap();
        let body = json!({"decisions": [{"kind": "add", "spans": [[0, 1]]}]}).to_string();
        let path = format!("/documents/{id}/decisions");
        assert_eq!(server.fail(Method::POST, &path, body.clone()).await.0, 503, "{gone}");
        std::fs::write(folder.path().join(gone), "something else").unwrap();
        assert_eq!(server.fail(Method::POST, &path, body.clone()).await.0, 503, "{gone}");
        for _ in 0..5 {
            server.app.now();
        }
        assert_eq!(server.fail(Method::GET, "/ready", "").await.0, 503, "{gone}");
        // What comes back whole goes on.
        std::fs::rename(folder.path().join("elsewhere"), folder.path().join(gone)).unwrap();
        server.post(&path, serde_json::from_str(&body).unwrap()).await;
    }
}

#[tokio::test]
async fn a_full_disk_is_told_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let project = server.project(CORPUS).await;
    let id = server.documents(project).await[0];
    server
        .app
        .store
        .write(|transaction| {
            let n: i64 = transaction.query_row("PRAGMA page_count", [], |row| row.get(0))?;
            Ok(transaction.query_row(&format!("PRAGMA max_page_count = {n}"), [], |_| Ok(()))?)
        })
        .unwrap();
    let text = "x".repeat(9_000);
    let path = format!("/documents/{id}/comments");
    let (status, answer) = loop {
        let body = json!({"text": text}).to_string();
        let answer = server.send(Method::POST, &format!("/api/v1{path}"), body.clone()).await;
        if !answer.status().is_success() {
            break server.fail(Method::POST, &path, body).await;
        }
    };
    assert_eq!((status, &answer["error"]["message"]), (503, &json!("the disk is full")));
    assert_eq!(server.get(&format!("/projects/{project}")).await["n_documents"], 3);
}

#[test]
fn a_damaged_database_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let open = || App::open(Ruled::new("first", rules()), None, config(folder.path()));
    drop(open().unwrap());
    let path = folder.path().join("canonym.sqlite");
    let mut bytes = std::fs::read(&path).unwrap();
    let at = bytes.len() - 4096;
    bytes[at..at + 200].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let error = open().unwrap_err();
    assert!(error.to_string().contains("damaged") || error.to_string().contains("malformed"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("canonym doctor")), "{error}");
}

#[cfg(unix)]
#[test]
fn the_folder_of_data_is_closed_to_others() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("a/b");
    let open = || App::open(Ruled::new("first", rules()), None, config(&data));
    let app = open().unwrap();
    let mode = |name: &str| std::fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    let modes = ["", "canonym.sqlite", "canonym.sqlite-wal", "canonym.lock"].map(mode);
    assert_eq!(modes.map(|mode| format!("{mode:o}")), ["700", "600", "600", "600"]);
    drop(app);
    for (name, wide, closed) in [("", 0o755, 0o700), ("canonym.sqlite", 0o644, 0o600)] {
        std::fs::set_permissions(data.join(name), PermissionsExt::from_mode(wide)).unwrap();
        let error = open().unwrap_err();
        assert!(
            error.to_string().contains("others than its owner may read it")
                && error.hint().is_some_and(|hint| hint.contains("chmod"))
        );
        std::fs::set_permissions(data.join(name), PermissionsExt::from_mode(closed)).unwrap();
    }
    open().unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_does_not_finish_asking_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(canonym_serve::connections::serve(listener, server.app.clone()));
    let ask = async |text: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // The clock runs ahead wherever everybody waits.
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(
        ask("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.starts_with("HTTP/1.1 200")
    );
    let cut_off = ask("GET /health HTTP/1.1\r\nHost: loc").await;
    assert!(!cut_off.contains("200"), "{cut_off}");
    let head = "POST /api/v1/projects HTTP/1.1\r\nHost: localhost\r\nX-Canonym: 1\r\nConnection: close\r\n";
    let slow = ask(&format!("{head}Content-Length: 100\r\n\r\n{{\"name\"")).await;
    assert!(slow.starts_with("HTTP/1.1 400") && slow.contains("too slowly"), "{slow}");
    server.app.stop();
    serving.await.unwrap().unwrap();
}

#[tokio::test]
async fn slow_uploads_keep_nobody_from_importing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let project = server.project(CORPUS).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let request = Request::post(format!("/api/v1/projects/{project}/import?format=text"))
            .header("host", "localhost")
            .header("x-canonym", "1")
            .body(Body::from_stream(ReceiverStream::new(receiver)));
        let answer = tokio::spawn(server.router.clone().oneshot(request.unwrap()));
        sender.send(Ok("Pain".into())).await.unwrap();
        // It was taken: there is room for the next.
        sender.send(Ok(" ".into())).await.unwrap();
        slow.push((sender, answer));
    }
    server.project(CORPUS).await;
    // What all of them may hold together is bounded.
    let room = server.app.uploads.available_permits();
    let much = server.app.uploads.clone().try_acquire_many_owned(room as u32).unwrap();
    let path = format!("/projects/{project}/import?format=text");
    assert_eq!(server.fail(Method::POST, &path, "Pain.").await.0, 429);
    drop(much);
    for (sender, answer) in slow {
        drop(sender);
        drop(answer.await.unwrap().unwrap());
    }
    assert_eq!(server.app.uploads.available_permits(), room + 20);
}

#[tokio::test]
async fn behind_a_proxy_the_server_has_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let config = ServeConfig {
        public_url: Some("https://links.example.org".parse().unwrap()),
        trusted_proxies: vec!["127.0.0.1".parse().unwrap()],
        ..config(folder.path())
    };
    let server = Server::with(Ruled::new("first", rules()), None, config);
    server.app.put_admin("ada", PASSWORD).unwrap();
    let page = ("origin", "https://links.example.org");
    let body = json!({"name": "ada", "password": PASSWORD}).to_string();
    // Proxies hand the name on, or call the server by that of this machine.
    for host in ["links.example.org", "127.0.0.1:7878"] {
        let asked = server.asked_with(&[("host", host), page, ("x-canonym", "1")]);
        let answer = asked.send(Method::POST, "/api/v1/login", body.clone()).await;
        assert_eq!(answer.status(), 200, "{host}");
        assert!(
            answer.headers().get_all("set-cookie").iter().all(|cookie| cookie.to_str().unwrap().ends_with("; Secure"))
        );
    }
    for (host, origin) in [
        ("evil.example", page.1),
        ("links.example.org", "http://links.example.org"),
        ("links.example.org", "https://evil.example"),
    ] {
        let asked = server.asked_with(&[("host", host), ("origin", origin), ("x-canonym", "1")]);
        let status = asked.send(Method::POST, "/api/v1/login", body.clone()).await.status();
        // A name with another scheme is the same server, asked without TLS on the way.
        assert_eq!(status, if origin.starts_with("http://links") { 200 } else { 403 }, "{host} {origin}");
    }
}

#[tokio::test]
async fn who_came_in_and_who_may_do_what_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let [ada, cyd, _] = three(&server).await;
    let project = ada.project(CORPUS).await;
    ada.let_all_in(project).await;
    server.fail(Method::POST, "/login", json!({"name": "ada", "password": "wrong horse"}).to_string()).await;
    let path = format!("/people/{}", number_of(&ada, "ann").await);
    ada.patch(&path, json!({"role": "curator"})).await;
    cyd.text(&format!("/projects/{project}/export?format=jsonl")).await;
    cyd.post("/tokens", json!({"name": "script"})).await;
    let record = std::fs::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> = record.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let did = |who: &str, did: &str, what: &str| {
        let found = lines.iter().any(|line| line["who"] == who && line["did"] == did && line["what"] == what);
        assert!(found, "{who} {did} {what}: {record}");
    };
    did("command line", "admin put", "ada");
    did("ada", "login", "");
    did("ada", "login refused", "");
    did("ada", "person added", "cyd as curator");
    did("ada", "person changed", "ann: role curator, active as before");
    did("cyd", "export", &format!("project {project}"));
    did("cyd", "token made", "script");
    assert!(!record.contains("horse"));
}

#[tokio::test]
async fn small_holes_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    // A token is of somebody, also where nobody has an account.
    let wrong = server.asked_with(&[("authorization", "Bearer 00")]);
    assert_eq!(wrong.fail(Method::GET, "/projects", "").await.0, 401);
    let own = server.post("/tokens", json!({"name": "own"})).await["token"].as_str().unwrap().to_owned();
    server.asked_with(&[("authorization", &format!("Bearer {own}"))]).get("/projects").await;
    let [ada, cyd, _] = three(&server).await;
    for row in 0..100 {
        cyd.post("/tokens", json!({"name": format!("script {row}")})).await;
    }
    assert_eq!(cyd.fail(Method::POST, "/tokens", json!({"name": "more"}).to_string()).await.0, 409);
    let person =
        |name: &str, password: &str| json!({"name": name, "password": password, "role": "curator"}).to_string();
    for (name, password, status) in [
        ("bob", "        ", 400),
        ("bob", "password", 400),
        ("b\u{200b}ob", PASSWORD, 400),
        ("Ada", PASSWORD, 409),
        ("аԁа", PASSWORD, 409),
    ] {
        assert_eq!(ada.fail(Method::POST, "/people", person(name, password)).await.0, status, "{name} {password}");
    }
    let path = format!("/people/{}", number_of(&ada, "cyd").await);
    assert_eq!(ada.fail(Method::PATCH, &path, json!({"password": "12345678"}).to_string()).await.0, 400);
    assert!(server.app.put_admin("eve", "password").is_err());
    // Methods that clients make up are counted as one.
    for row in 0..50 {
        server.send(Method::from_bytes(format!("M{row}").as_bytes()).unwrap(), "/health", "").await;
    }
    assert!(!server.text("/metrics").await.contains("M4"));
}

#[tokio::test]
async fn the_answer_to_a_long_text_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ServeConfig { max_text_bytes: 1000, max_answer_bytes: 20_000, ..config(folder.path()) };
    let server = Server::with(Ruled::new("first", rules()), None, limits);
    let ask = |texts: &[String]| {
        let documents: Vec<_> = texts.iter().map(|text| json!({"text": text})).collect();
        json!({"documents": documents}).to_string()
    };
    let short = "delirium. ".repeat(10);
    server.post("/link", json!({"documents": [{"text": short}]})).await;
    let (status, answer) = server.fail(Method::POST, "/link", ask(&["x".repeat(1001)])).await;
    assert_eq!(status, 413);
    assert!(answer["error"]["message"].as_str().unwrap().contains("a text may have 1000 bytes"), "{answer}");
    let (status, answer) = server.fail(Method::POST, "/link", ask(&vec![short.clone(); 40])).await;
    assert_eq!(status, 413);
    assert!(answer["error"]["hint"].as_str().unwrap().contains("top_k"), "{answer}");
    // A stream answers text by text.
    let lines: Vec<String> = [&short, &"x".repeat(1001), &short].map(|text| json!({"text": text}).to_string()).to_vec();
    let response = server.send(Method::POST, "/api/v1/link/stream", lines.join("\n")).await;
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!((text.lines().count(), text.matches("too_large").count()), (3, 1), "{text}");
    // Such a text is not imported: it could not be predicted in.
    let project = server.empty_project().await;
    let long = json!({"id": "long", "text": "x".repeat(1001)}).to_string();
    let report = server
        .import(project, "format=jsonl", format!("{long}\n{}", json!({"id": "short", "text": "x"})).as_bytes())
        .await;
    assert_eq!((&report["n_documents"], &report["n_skipped_documents"]), (&json!(1), &json!(1)));
    assert!(report["problems"][0]["hint"].as_str().unwrap().contains("split"), "{report}");
}

#[tokio::test]
async fn a_document_has_no_more_marks_than_can_be_shown() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let project = server.empty_project().await;
    let document = |n: usize| {
        let annotations: Vec<_> = (0..n).map(|at| json!({"spans": [[at, at + 1]]})).collect();
        json!({"id": n.to_string(), "text": "a".repeat(n), "annotations": annotations}).to_string()
    };
    let file = format!("{}\n{}\n", document(100_001), document(100));
    let report = server.import(project, "format=jsonl", file.as_bytes()).await;
    assert_eq!((&report["n_documents"], &report["n_annotations"]), (&json!(1), &json!(100)));
    assert!(report["problems"][0]["message"].as_str().unwrap().contains("100000 annotations"), "{report}");
}

#[tokio::test]
async fn texts_are_linked_in_parts_and_answered_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Ruled::new("first", rules());
    let server = Server::with(engine.clone(), None, config(folder.path()));
    let documents: Vec<_> =
        (0..5).map(|row| json!({"id": row.to_string(), "text": "delirium ".repeat(30_000)})).collect();
    let answer = server.post("/link", json!({"documents": documents, "top_k": 1})).await;
    let ids: Vec<&str> =
        answer["documents"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["0", "1", "2", "3", "4"]);
    assert_eq!(*engine.batches.lock().unwrap(), [1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn a_stream_of_texts_ends_with_the_login() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let [ada, cyd, ann] = three(&server).await;
    let project = cyd.project(CORPUS).await;
    let number = number_of(&ada, "ann").await;
    cyd.post(&format!("/projects/{project}/people"), json!({"id": number})).await;
    for turn in ["out of the project", "logout"] {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let path = if turn == "logout" {
            "/api/v1/link/stream".to_owned()
        } else {
            format!("/api/v1/link/stream?project={project}")
        };
        let response = ann.send(Method::POST, &path, Body::from_stream(ReceiverStream::new(receiver))).await;
        let mut answers = response.into_body().into_data_stream();
        let line = Bytes::from_static(b"{\"text\": \"delirium\"}\n");
        sender.send(Ok(line.clone())).await.unwrap();
        assert!(String::from_utf8_lossy(&answers.next().await.unwrap().unwrap()).contains("\"annotations\":[{"));
        match turn {
            "logout" => ann.post("/logout", json!({})).await,
            _ => cyd.delete(&format!("/projects/{project}/people/{number}")).await,
        };
        // What is sent afterwards is not linked.
        sender.send(Ok(line)).await.ok();
        let mut rest = String::new();
        while let Some(Ok(part)) = answers.next().await {
            rest += &String::from_utf8_lossy(&part);
        }
        assert!(rest.contains("\"error\"") && !rest.contains("annotations"), "{turn}: {rest}");
    }
}

#[tokio::test]
async fn a_knowledge_base_that_is_changed_under_the_server_is_an_error() {
    use std::time::SystemTime;

    for is_cut in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.kb");
        std::fs::write(&path, crate::support::kb_bytes()).unwrap();
        let kb = canonym::kb::KnowledgeBase::open_up_to(0, &path).unwrap();
        let server = Server::with(Ruled::on(kb, "first", rules()), None, config(&folder.path().join("data")));
        let project = server.project(CORPUS).await;
        let id = server.documents(project).await[0];
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        match is_cut {
            true => file.set_len(4096).unwrap(),
            false => file.set_modified(SystemTime::UNIX_EPOCH).unwrap(),
        }
        let add = json!({"decisions": [{"kind": "add", "spans": [[0, 1]], "concept": "T:1"}]}).to_string();
        for (method, path, body) in [
            (Method::POST, "/link".to_owned(), json!({"text": "delirium"}).to_string()),
            (Method::GET, "/kb/search?q=delirium".to_owned(), String::new()),
            (Method::POST, format!("/documents/{id}/decisions"), add),
            (Method::GET, "/ready".to_owned(), String::new()),
        ] {
            let (status, answer) = server.fail(method, &path, body).await;
            assert_eq!(status, 503, "{path}: {answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains("knowledge base was changed"), "{answer}");
        }
        server.get("/health").await;
    }
}

#[tokio::test]
async fn the_log_of_the_database_is_emptied_after_a_large_import() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let project = server.empty_project().await;
    let line = |row: usize| {
        let annotations: Vec<_> = (0..400).map(|at| json!({"spans": [[5 * at, 5 * at + 4]]})).collect();
        format!("{}\n", json!({"id": row.to_string(), "text": "ache ".repeat(400), "annotations": annotations}))
    };
    let file: String = (0..30).map(line).collect();
    let report = server.import(project, "format=jsonl", file.as_bytes()).await;
    assert_eq!(report["n_annotations"], 12_000);
    let log = std::fs::metadata(folder.path().join("canonym.sqlite-wal")).unwrap().len();
    assert!(log < 1 << 20, "{log}");
}

#[tokio::test]
async fn a_server_that_stops_leaves_no_log_behind() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let serving = tokio::spawn(canonym_serve::connections::serve(listener, server.app.clone()));
    let project = server.project(CORPUS).await;
    server.app.stop();
    serving.await.unwrap().unwrap();
    // Nobody has closed the database yet.
    assert_eq!(std::fs::metadata(folder.path().join("canonym.sqlite-wal")).unwrap().len(), 0);
    assert_eq!(server.documents(project).await.len(), 3);
}
