//! One test for each attack on the server.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::{Method, Request, StatusCode};
use canonym_serve::ServeConfig;
use canonym_serve::abort::{self, RequestState};
use canonym_serve::guard::Peer;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tower::ServiceExt;

use crate::people::{PASSWORD, account_id, login, sign_in_three, three_accounts};
use crate::support::{CORPUS, Server, config, open};

#[tokio::test]
async fn command_line_password_reset_ends_sessions_and_tokens() {
    let (server, [ada, ..]) = three_accounts().await;
    let token = ada.post("/tokens", json!({"name": "script"})).await["token"].as_str().unwrap().to_owned();
    let script = server.with_headers(&[("authorization", &format!("Bearer {token}"))]);
    script.get("/projects").await;
    server.app.put_admin("ada", "another horse").unwrap();
    for gone in [&ada, &script] {
        assert_eq!(gone.fail(Method::GET, "/projects", "").await.0, 401);
    }
}

/// The status of a login from an address.
async fn login_from(server: &Server, address: [u8; 4], cookie: &str, name: &str, password: &str) -> StatusCode {
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
async fn attackers_cannot_lock_out_known_browsers() {
    let server = Server::with_stopped_clock();
    server.app.put_admin("ada", PASSWORD).unwrap();
    let (stranger, home) = ([203, 0, 113, 9], [198, 51, 100, 7]);
    let body = json!({"name": "ada", "password": PASSWORD}).to_string();
    let answer = server.send(Method::POST, "/api/v1/login", body).await;
    let device = answer.headers().get_all("set-cookie").iter().nth(1).unwrap().to_str().unwrap().to_owned();
    assert!(device.contains("HttpOnly; SameSite=Strict; Path=/api/v1/login"), "{device}");
    let device = device.split(';').next().unwrap();
    // Many names, and one name many times.
    let mut statuses = Vec::new();
    for row in 0..60 {
        statuses.push(login_from(&server, stranger, "", &format!("name {row}"), "wrong horse").await);
        statuses.push(login_from(&server, stranger, "", "ada", "wrong horse").await);
    }
    assert!(statuses.iter().filter(|status| **status == 401).count() <= 40, "{statuses:?}");
    assert_eq!(statuses.last().unwrap(), &StatusCode::TOO_MANY_REQUESTS);
    // Other addresses can sign in, and a known browser can even from the address of the attack.
    assert_eq!(login_from(&server, home, "", "ada", PASSWORD).await, 200);
    assert_eq!(login_from(&server, stranger, "", "ada", PASSWORD).await, 429);
    assert_eq!(login_from(&server, stranger, device, "ada", PASSWORD).await, 200);
    // A known browser still needs the password, and belongs to one account.
    assert_eq!(login_from(&server, home, device, "ada", "wrong horse").await, 401);
    assert_eq!(login_from(&server, stranger, device, "name 3", "wrong horse").await, 429);
    let known = server.with_headers(&[("cookie", &device.replace("canonym_device", "canonym_session"))]);
    assert_eq!(known.fail(Method::GET, "/projects", "").await.0, 401);
}

#[tokio::test]
async fn overlong_credentials_are_rejected() {
    let server = Server::temporary();
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

/// Opens an event stream and reads its first line.
async fn listen(server: &Server) -> BodyDataStream {
    let response = server.send(Method::GET, "/api/v1/events", Body::empty()).await;
    assert_eq!(response.status(), 200);
    let mut stream = response.into_body().into_data_stream();
    assert_eq!(&stream.next().await.unwrap().unwrap()[..], b": listening\n\n");
    stream
}

/// Fails if a stream does not end.
async fn assert_stream_ends(mut stream: BodyDataStream, of: &str) {
    let rest = async { while stream.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(10), rest).await.unwrap_or_else(|_| panic!("the stream of {of} goes on"));
}

#[tokio::test]
async fn event_streams_end_with_their_session() {
    let server = Server::temporary();
    let local = listen(&server).await;
    let [ada, cyd, ann] = sign_in_three(&server).await;
    assert_stream_ends(local, "the time before accounts").await;
    let mut stays = listen(&ada).await;

    let streams = [listen(&ann).await, listen(&cyd).await];
    ann.post("/logout", json!({})).await;
    let path = format!("/people/{}", account_id(&ada, "cyd").await);
    ada.patch(&path, json!({"is_active": false})).await;
    for (stream, of) in streams.into_iter().zip(["a logout", "a deactivation"]) {
        assert_stream_ends(stream, of).await;
    }
    ada.patch(&path, json!({"is_active": true})).await;
    let cyd = login(&server, "cyd").await;
    let elsewhere = login(&server, "cyd").await;
    let stream = listen(&elsewhere).await;
    cyd.post("/password", json!({"old": PASSWORD, "new": "another horse"})).await;
    assert_stream_ends(stream, "a new password").await;
    let token = ada.post("/tokens", json!({"name": "script"})).await["token"].as_str().unwrap().to_owned();
    let script = server.with_headers(&[("authorization", &format!("Bearer {token}"))]);
    let stream = listen(&script).await;
    let id = ada.get("/tokens").await["tokens"][0]["id"].as_str().unwrap().to_owned();
    ada.delete(&format!("/tokens/{id}")).await;
    assert_stream_ends(stream, "a token").await;
    // Other streams continue.
    ada.project(CORPUS).await;
    while !String::from_utf8_lossy(&stays.next().await.unwrap().unwrap()).contains("event: import") {}
}

#[tokio::test]
async fn timed_out_change_is_rolled_back() {
    let server = Server::configured(|config| config.timeout = Duration::from_millis(300));
    let (_, [id, ..]) = server.corpus().await;
    let before = server.document(id).await;
    // Another thread holds the writer.
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
    // The waiting write runs before the runtime ends, and is rolled back.
    tokio::task::spawn_blocking(|| ()).await.unwrap();
    server.app.store.write(|_| Ok(())).unwrap();
    assert_eq!(server.document(id).await, before);
}

#[tokio::test]
async fn aborted_query_is_interrupted() {
    let server = Server::temporary();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";
    let request = Arc::new(RequestState::default());
    assert!(request.abort());
    let read = abort::during(Some(request), || {
        server.app.store.read(|connection| Ok(connection.query_row(endless, [], |row| row.get::<_, i64>(0))?))
    });
    assert_eq!(read.unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
    // A committed request cannot be aborted.
    let request = Arc::new(RequestState::default());
    abort::during(Some(request.clone()), || server.app.store.write(|_| Ok(()))).unwrap();
    assert!(!request.abort());
}

#[tokio::test]
async fn damaged_rows_are_errors_and_change_nothing() {
    let (server, project, ids) = Server::with_corpus().await;
    server.decide(ids[0], json!({"kind": "add", "spans": [[0, 1]]})).await;
    server.post(&format!("/documents/{}/undo", ids[0]), json!({"client_id": "c"})).await;
    server.post(&format!("/documents/{}/redo", ids[0]), json!({})).await;
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
        (
            "UPDATE answers SET answer = '{' WHERE client_id = 'c'",
            Method::POST,
            format!("/documents/{}/undo", ids[0]),
            "answers",
        ),
        ("UPDATE said SET is_shared = 1, spans = '[['", Method::GET, format!("/projects/{project}/stats"), "said"),
        (
            "UPDATE documents SET beside = json_set(beside, '$.residue', json_array('unheard-of', 1)) WHERE id = 1",
            Method::GET,
            format!("/projects/{project}/export?format=jsonl"),
            "documents",
        ),
        ("UPDATE models SET dev = '{'", Method::GET, "/models".to_owned(), "models"),
        ("UPDATE projects SET strategy = 'odd'", Method::GET, "/documents/1".to_owned(), "projects"),
        ("UPDATE jobs SET state = 'ODD'", Method::GET, "/jobs/1".to_owned(), "jobs"),
        ("UPDATE jobs SET state = 'FAILED', curve = '[1'", Method::GET, "/jobs/1".to_owned(), "jobs"),
        ("UPDATE documents SET beside = '[]' WHERE id = 2", Method::GET, "/documents/2".to_owned(), "documents"),
        ("UPDATE marks SET body = '{}' WHERE document_id = 3", Method::GET, "/documents/3".to_owned(), "marks"),
    ];
    for (sql, method, path, table) in asks {
        assert!(damage(sql) > 0, "{sql}");
        let body = if table == "answers" { r#"{"client_id": "c"}"# } else { "" };
        let response = server.send(method, &format!("/api/v1{path}"), body).await;
        assert_eq!(response.status(), 500, "{sql}");
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(answer["error"]["code"], "damaged");
        assert!(answer["error"]["message"].as_str().unwrap().contains(&format!("`{table}`")), "{answer}");
    }
    assert!(damage("UPDATE projects SET strategy = 'margin'") > 0);
    // Nothing was undone that could not be read.
    assert_eq!(
        server.document(ids[0]).await["marks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|mark| mark["source"] == "USER")
            .count(),
        1
    );
    assert!(damage("UPDATE people SET role = 'odd'") > 0);
    let response = server.send(Method::GET, "/api/v1/people", "").await;
    assert_eq!(response.status(), 500);
}

#[tokio::test]
async fn first_admin_requires_sign_in_on_a_running_server() {
    let server = Server::temporary();
    server.get("/projects").await;
    // Another process, as `canonym serve --add-admin` is.
    let other = open(ServeConfig { owns_jobs: false, ..config(server.folder()) }).unwrap();
    other.put_admin("ada", PASSWORD).unwrap();
    assert_eq!(server.fail(Method::GET, "/projects", "").await.0, 401);
    assert_eq!(server.get("/about").await["needs_login"], true);
    login(&server, "ada").await.get("/projects").await;
}

#[tokio::test]
async fn data_folder_is_locked_by_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let project = server.project(CORPUS).await;
    server.post(&format!("/projects/{project}/jobs"), json!({"kind": "predict"})).await;
    server.app.store.write(|transaction| canonym_serve::store::jobs::start(transaction, 1, 0)).unwrap();
    let error = open(config(folder.path())).unwrap_err();
    assert!(
        error.to_string().contains(&format!("in use by another server, process {}", std::process::id())),
        "{error}"
    );
    assert!(error.hint().is_some());
    assert_eq!(server.get("/jobs/1").await["state"], "RUNNING");
    drop(server);
    assert_eq!(Server::new(folder.path()).get("/jobs/1").await["state"], "FAILED");
}

#[tokio::test]
async fn end_of_a_job_is_stored_once_writing_works_again() {
    let (server, project, _) = Server::with_corpus().await;
    let sql = |sql: &str| server.app.store.write(|transaction| Ok(transaction.execute_batch(sql)?)).unwrap();
    sql("CREATE TRIGGER full BEFORE UPDATE OF ended_at ON jobs BEGIN SELECT RAISE(ABORT, 'no room'); END");
    server.post(&format!("/projects/{project}/jobs"), json!({"kind": "predict"})).await;
    server.run_jobs().await;
    assert_eq!(server.get("/jobs/1").await["state"], "RUNNING");
    sql("DROP TRIGGER full");
    server.run_jobs().await;
    assert_eq!(server.get("/jobs/1").await["state"], "SUCCEEDED");
    // A job that cannot be read fails instead of blocking the queue.
    server.post(&format!("/projects/{project}/jobs"), json!({"kind": "predict"})).await;
    sql("UPDATE jobs SET settings = '{' WHERE id = 2");
    server.run_jobs().await;
    sql("UPDATE jobs SET settings = 'null' WHERE id = 2");
    assert_eq!(server.get("/jobs/2").await["state"], "FAILED");
}

#[tokio::test]
async fn nothing_is_acknowledged_once_database_files_are_gone() {
    for gone in ["canonym.sqlite", "canonym.sqlite-wal"] {
        let (server, _, [id, ..]) = Server::with_corpus().await;
        let folder = server.folder();
        server.get("/ready").await;
        std::fs::rename(folder.join(gone), folder.join("elsewhere")).unwrap();
        let body = json!({"decisions": [{"kind": "add", "spans": [[0, 1]]}]}).to_string();
        let path = format!("/documents/{id}/decisions");
        assert_eq!(server.fail(Method::POST, &path, body.clone()).await.0, 503, "{gone}");
        std::fs::write(folder.join(gone), "something else").unwrap();
        assert_eq!(server.fail(Method::POST, &path, body.clone()).await.0, 503, "{gone}");
        for _ in 0..5 {
            server.app.now();
        }
        assert_eq!(server.fail(Method::GET, "/ready", "").await.0, 503, "{gone}");
        // Writes work again once the file is restored.
        std::fs::rename(folder.join("elsewhere"), folder.join(gone)).unwrap();
        server.post(&path, serde_json::from_str(&body).unwrap()).await;
    }
}

#[tokio::test]
async fn full_disk_is_reported_and_changes_nothing() {
    let (server, project, [id, ..]) = Server::with_corpus().await;
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
fn damaged_database_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let open = || open(config(folder.path()));
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
fn data_folder_is_private_to_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("a/b");
    let open = || open(config(&data));
    let app = open().unwrap();
    let mode = |name: &str| std::fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    let modes = ["", "canonym.sqlite", "canonym.sqlite-wal", "canonym.lock"].map(mode);
    assert_eq!(modes.map(|mode| format!("{mode:o}")), ["700", "600", "600", "600"]);
    drop(app);
    for (name, wide, closed) in [("", 0o755, 0o700), ("canonym.sqlite", 0o644, 0o600)] {
        std::fs::set_permissions(data.join(name), PermissionsExt::from_mode(wide)).unwrap();
        let error = open().unwrap_err();
        assert!(
            error.to_string().contains("readable by other users")
                && error.hint().is_some_and(|hint| hint.contains("chmod"))
        );
        std::fs::set_permissions(data.join(name), PermissionsExt::from_mode(closed)).unwrap();
    }
    open().unwrap();
}

#[tokio::test(start_paused = true)]
async fn incomplete_requests_time_out() {
    let server = Server::temporary();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(canonym_serve::server::serve(listener, server.app.clone()));
    let ask = async |text: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        // The paused clock advances while all tasks wait.
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
async fn slow_uploads_do_not_block_imports() {
    let (server, project, _) = Server::with_corpus().await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let request = Request::post(format!("/api/v1/projects/{project}/import?format=text"))
            .header("host", "localhost")
            .header("x-canonym", "1")
            .body(Body::from_stream(ReceiverStream::new(receiver)));
        let answer = tokio::spawn(server.router.clone().oneshot(request.unwrap()));
        sender.send(Ok("Pain".into())).await.unwrap();
        // The first chunk was read, so the channel has room for the next.
        sender.send(Ok(" ".into())).await.unwrap();
        slow.push((sender, answer));
    }
    server.project(CORPUS).await;
    // The memory of all uploads together is limited.
    let room = server.app.upload_permits.available_permits();
    let much = server.app.upload_permits.clone().try_acquire_many_owned(room as u32).unwrap();
    let path = format!("/projects/{project}/import?format=text");
    assert_eq!(server.fail(Method::POST, &path, "Pain.").await.0, 429);
    drop(much);
    for (sender, answer) in slow {
        drop(sender);
        drop(answer.await.unwrap().unwrap());
    }
    assert_eq!(server.app.upload_permits.available_permits(), room + 20);
}

#[tokio::test]
async fn public_url_is_accepted_behind_a_proxy() {
    let server = Server::configured(|config| {
        config.public_url = Some("https://links.example.org".parse().unwrap());
        config.trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    });
    server.app.put_admin("ada", PASSWORD).unwrap();
    let page = ("origin", "https://links.example.org");
    let body = json!({"name": "ada", "password": PASSWORD}).to_string();
    // Proxies forward the public host, or use the local one.
    for host in ["links.example.org", "127.0.0.1:7878"] {
        let asked = server.with_headers(&[("host", host), page, ("x-canonym", "1")]);
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
        let asked = server.with_headers(&[("host", host), ("origin", origin), ("x-canonym", "1")]);
        let status = asked.send(Method::POST, "/api/v1/login", body.clone()).await.status();
        // The same host with another scheme is this server, behind a proxy that ends TLS.
        assert_eq!(status, if origin.starts_with("http://links") { 200 } else { 403 }, "{host} {origin}");
    }
}

#[tokio::test]
async fn sign_ins_and_permission_changes_are_audited() {
    let (server, [ada, cyd, _]) = three_accounts().await;
    let project = ada.project(CORPUS).await;
    ada.add_all_members(project).await;
    server.fail(Method::POST, "/login", json!({"name": "ada", "password": "wrong horse"}).to_string()).await;
    let path = format!("/people/{}", account_id(&ada, "ann").await);
    ada.patch(&path, json!({"role": "curator"})).await;
    cyd.text(&format!("/projects/{project}/export?format=jsonl")).await;
    cyd.post("/tokens", json!({"name": "script"})).await;
    let record = std::fs::read_to_string(server.folder().join("audit.jsonl")).unwrap();
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
async fn wrong_tokens_weak_passwords_and_lookalike_names_are_rejected() {
    let server = Server::temporary();
    // A wrong token is rejected even without accounts.
    let wrong = server.with_headers(&[("authorization", "Bearer 00")]);
    assert_eq!(wrong.fail(Method::GET, "/projects", "").await.0, 401);
    let own = server.post("/tokens", json!({"name": "own"})).await["token"].as_str().unwrap().to_owned();
    server.with_headers(&[("authorization", &format!("Bearer {own}"))]).get("/projects").await;
    let [ada, cyd, _] = sign_in_three(&server).await;
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
    let path = format!("/people/{}", account_id(&ada, "cyd").await);
    assert_eq!(ada.fail(Method::PATCH, &path, json!({"password": "12345678"}).to_string()).await.0, 400);
    assert!(server.app.put_admin("eve", "password").is_err());
    // Unknown methods share one counter.
    for row in 0..50 {
        server.send(Method::from_bytes(format!("M{row}").as_bytes()).unwrap(), "/health", "").await;
    }
    assert!(!server.text("/metrics").await.contains("M4"));
}

#[tokio::test]
async fn link_stream_ends_with_its_session() {
    let (_, [ada, cyd, ann]) = three_accounts().await;
    let project = cyd.project(CORPUS).await;
    let number = account_id(&ada, "ann").await;
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
        // Lines sent afterwards are not linked.
        sender.send(Ok(line)).await.ok();
        let mut rest = String::new();
        while let Some(Ok(part)) = answers.next().await {
            rest += &String::from_utf8_lossy(&part);
        }
        assert!(rest.contains("\"error\"") && !rest.contains("annotations"), "{turn}: {rest}");
    }
}
