//! Accounts, roles, tokens, and inter-annotator agreement.

use axum::body::{Body, to_bytes};
use axum::http::Method;
use serde_json::{Value, json};

use crate::support::{CORPUS, Server, mark_of};

pub const PASSWORD: &str = "correct horse";

/// Signs in; requests to the returned server send the cookie.
pub async fn login(server: &Server, name: &str) -> Server {
    login_with(server, name, PASSWORD).await
}

async fn login_with(server: &Server, name: &str, password: &str) -> Server {
    let body = json!({"name": name, "password": password}).to_string();
    let response = server.send(Method::POST, "/api/v1/login", body).await;
    assert_eq!(response.status(), 200);
    let cookie = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    server.with_headers(&[("x-canonym", "1"), ("cookie", cookie)])
}

#[tokio::test]
async fn sign_in_is_required_once_an_account_exists() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let person = |name: &str, role: &str| json!({"name": name, "password": PASSWORD, "role": role});
    assert_eq!(server.fail(Method::POST, "/people", person("ann", "annotator").to_string()).await.0, 409);
    assert_eq!(
        server
            .fail(Method::POST, "/people", json!({"name": "x", "password": "short", "role": "admin"}).to_string())
            .await
            .0,
        400
    );
    server.post("/people", person("ada", "admin")).await;
    let (status, answer) = server.fail(Method::GET, "/projects", "").await;
    assert_eq!((status, &answer["error"]["code"]), (401, &json!("unauthorized")));
    let about = server.get("/about").await;
    assert_eq!((&about["needs_login"], &about["user"]), (&json!(true), &Value::Null));
    let admin = login(&server, "ada").await;
    assert_eq!(admin.get("/about").await["user"]["name"], "ada");
    admin.post("/people", person("ann", "annotator")).await;
    assert_eq!(admin.fail(Method::POST, "/people", person("ann", "curator").to_string()).await.0, 409);

    // An annotator can annotate, but not add projects or accounts.
    let project = admin.project(CORPUS).await;
    admin.add_all_members(project).await;
    let ann = login(&server, "ann").await;
    let id = ann.documents(project).await[0];
    let decided = ann.decide(id, json!({"kind": "add", "spans": [[0, 1]]})).await;
    assert_eq!(decided["marks"][0]["by"], "ann");
    // Others see who is annotating a document.
    ann.document(id).await;
    let locked = async |server: &Server| {
        server.get(&format!("/projects/{project}/documents")).await["documents"][0]["locked_by"].clone()
    };
    assert_eq!((locked(&admin).await, locked(&ann).await), (json!("ann"), Value::Null));
    assert_eq!(ann.fail(Method::POST, "/projects", json!({"name": "x"}).to_string()).await.0, 403);
    assert_eq!(ann.fail(Method::POST, "/people", person("eve", "admin").to_string()).await.0, 403);
    // Nobody can undo the decisions of another person.
    assert_eq!(admin.fail(Method::POST, &format!("/documents/{id}/undo"), "").await.0, 409);

    // Requests with a token need no CSRF header.
    let token = ann.post("/tokens", json!({"name": "script"})).await["token"].as_str().unwrap().to_owned();
    let script = server.with_headers(&[("authorization", &format!("Bearer {token}"))]);
    script.decide(id, json!({"kind": "add", "spans": [[1, 2]]})).await;
    let wrong = server.with_headers(&[("authorization", "Bearer 00")]);
    assert_eq!(wrong.fail(Method::GET, "/projects", "").await.0, 401);

    // Signing out invalidates the cookie; accounts persist over a restart.
    ann.post("/logout", json!({})).await;
    assert_eq!(ann.fail(Method::GET, "/projects", "").await.0, 401);
    drop((admin, ann, script, wrong, server));
    let again = Server::new(folder.path());
    assert_eq!(again.fail(Method::GET, "/projects", "").await.0, 401);
    assert!(again.app.has_admin());
}

#[tokio::test]
async fn repeated_failed_logins_are_rate_limited() {
    let server = Server::with_stopped_clock();
    server.app.put_admin("ada", PASSWORD).unwrap();
    let wrong = json!({"name": "ada", "password": "wrong horse"}).to_string();
    for _ in 0..5 {
        assert_eq!(server.fail(Method::POST, "/login", wrong.clone()).await.0, 401);
    }
    let response = server.send(Method::POST, "/api/v1/login", wrong).await;
    assert_eq!(response.status(), 429);
    assert!(response.headers().contains_key("retry-after"));
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert!(String::from_utf8_lossy(&bytes).contains("too many failed logins"));
    // The response for an unknown name is the same.
    let nobody = json!({"name": "nobody", "password": "wrong horse"}).to_string();
    assert_eq!(server.fail(Method::POST, "/login", nobody).await.1["error"]["message"], "wrong name or password");
    let no_header = server.with_headers(&[]).send(Method::POST, "/api/v1/login", Body::from("{}")).await;
    assert_eq!(no_header.status(), 403);
}

#[tokio::test]
async fn statistics_include_inter_annotator_agreement() {
    let (server, project, _) = Server::with_corpus().await;
    assert_eq!(server.get(&format!("/projects/{project}/stats")).await["agreement"], Value::Null);
    for name in ["ada", "bob"] {
        server.app.put_admin(name, PASSWORD).unwrap();
    }
    let (ada, bob) = (login(&server, "ada").await, login(&server, "bob").await);
    let ids = ada.documents(project).await;
    let drug = mark_of(&ada.document(ids[0]).await, "Famotidine");
    let cancer = mark_of(&ada.document(ids[1]).await, "cancer");
    for person in [&ada, &bob] {
        person.decide(ids[0], json!({"kind": "accept", "mark": drug})).await;
    }
    ada.decide(ids[1], json!({"kind": "accept", "mark": cancer})).await;
    bob.decide(ids[1], json!({"kind": "reject", "mark": cancer})).await;
    let stats = ada.get(&format!("/projects/{project}/stats")).await;
    assert_eq!(stats["by_decision"], json!({"accept": 3, "reject": 1}));
    assert_eq!(stats["by_source"], json!({"GOLD": 2, "USER": 1, "PRED": 0}));
    assert_eq!(stats["decisions_per_day"], json!([{"day": "2023-11-14", "n": 4}]));
    let agreement = &stats["agreement"];
    // Observed agreement 1/2, expected 1/4: kappa is (1/2 - 1/4) / (3/4). Two spans against one in common: F1 is 2/3.
    assert!((agreement["cohen_kappa"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{agreement}");
    assert!((agreement["span_f1"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9, "{agreement}");
    assert_eq!(
        (&agreement["n_both"], &agreement["n_several"], &agreement["n_people"]),
        (&json!(2), &json!(2), &json!(2))
    );
}

/// Adds an admin `ada`, a curator `cyd` and an annotator `ann`, and signs each of them in.
pub async fn sign_in_three(server: &Server) -> [Server; 3] {
    server.app.put_admin("ada", PASSWORD).unwrap();
    let ada = login(server, "ada").await;
    for (name, role) in [("cyd", "curator"), ("ann", "annotator")] {
        ada.post("/people", json!({"name": name, "password": PASSWORD, "role": role})).await;
    }
    [ada, login(server, "cyd").await, login(server, "ann").await]
}

/// A server with these three accounts.
pub async fn three_accounts() -> (Server, [Server; 3]) {
    let server = Server::temporary();
    let accounts = sign_in_three(&server).await;
    (server, accounts)
}

pub async fn account_id(server: &Server, name: &str) -> i64 {
    let people = server.get("/people").await;
    let people = people["people"].as_array().unwrap();
    people.iter().find(|person| person["name"] == name).unwrap()["id"].as_i64().unwrap()
}

#[tokio::test]
async fn tokens_are_listed_without_secrets_and_revoked_only_by_their_owner() {
    let (server, [ada, cyd, _]) = three_accounts().await;
    let secret =
        cyd.post("/tokens", json!({"name": "nightly", "days": 30})).await["token"].as_str().unwrap().to_owned();
    cyd.post("/tokens", json!({"name": "for ever"})).await;
    let listed = cyd.get("/tokens").await;
    let rows = listed["tokens"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["name"], &rows[1]["expires_at"]), (2, &json!("nightly"), &Value::Null));
    assert!(rows[0]["expires_at"].as_str().unwrap().starts_with("2023-12-14"), "{listed}");
    assert!(!listed.to_string().contains(&secret));
    let id = rows[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(ada.get("/tokens").await["tokens"], json!([]));
    assert_eq!(ada.fail(Method::DELETE, &format!("/tokens/{id}"), "").await.0, 404);
    for days in [0, 4000] {
        assert_eq!(cyd.fail(Method::POST, "/tokens", json!({"name": "x", "days": days}).to_string()).await.0, 400);
    }
    let script = server.with_headers(&[("authorization", &format!("Bearer {secret}"))]);
    script.get("/projects").await;
    cyd.delete(&format!("/tokens/{id}")).await;
    assert_eq!(script.fail(Method::GET, "/projects", "").await.0, 401);
    assert_eq!(cyd.get("/tokens").await["tokens"].as_array().unwrap().len(), 1);
    // An account has a limited number of tokens.
    for _ in 1..100 {
        cyd.post("/tokens", json!({"name": "more"})).await;
    }
    let (status, error) = cyd.fail(Method::POST, "/tokens", json!({"name": "too many"}).to_string()).await;
    assert!(status == 409 && error.to_string().contains("at most 100 tokens"), "{error}");
}

#[tokio::test]
async fn deactivated_account_is_signed_out_and_its_history_stays() {
    let (server, [ada, cyd, ann]) = three_accounts().await;
    let (project, [id, ..]) = ada.corpus().await;
    ada.add_all_members(project).await;
    ann.decide(id, json!({"kind": "add", "spans": [[0, 1]]})).await;
    let token = ann.post("/tokens", json!({"name": "script"})).await["token"].as_str().unwrap().to_owned();
    let script = server.with_headers(&[("authorization", &format!("Bearer {token}"))]);
    let path = format!("/people/{}", account_id(&ada, "ann").await);
    for other in [&cyd, &ann] {
        assert_eq!(other.fail(Method::PATCH, &path, json!({"is_active": false}).to_string()).await.0, 403);
    }
    let changed = ada.patch(&path, json!({"is_active": false})).await;
    assert_eq!((&changed["name"], &changed["is_active"]), (&json!("ann"), &json!(false)));
    for gone in [&ann, &script] {
        assert_eq!(gone.fail(Method::GET, "/projects", "").await.0, 401);
    }
    let again = json!({"name": "ann", "password": PASSWORD}).to_string();
    assert_eq!(server.fail(Method::POST, "/login", again).await.1["error"]["message"], "wrong name or password");
    assert!(ada.get(&format!("/documents/{id}/history")).await.to_string().contains("\"by\":\"ann\""));
    // A reactivated account has to sign in again; its old keys are deleted.
    ada.patch(&path, json!({"is_active": true, "role": "curator"})).await;
    assert_eq!(script.fail(Method::GET, "/projects", "").await.0, 401);
    login(&server, "ann").await.post("/projects", json!({"name": "Her own"})).await;
}

#[tokio::test]
async fn last_admin_cannot_be_removed() {
    let (server, [ada, ..]) = three_accounts().await;
    let of = |id: i64| format!("/people/{id}");
    let (admin, curator) = (account_id(&ada, "ada").await, account_id(&ada, "cyd").await);
    for change in [json!({"role": "curator"}), json!({"is_active": false})] {
        assert_eq!(ada.fail(Method::PATCH, &of(admin), change.to_string()).await.0, 409);
    }
    ada.patch(&of(curator), json!({"role": "admin"})).await;
    ada.patch(&of(admin), json!({"role": "annotator"})).await;
    assert_eq!(ada.fail(Method::PATCH, &of(curator), json!({"role": "curator"}).to_string()).await.0, 403);
    assert_eq!(ada.fail(Method::PATCH, &of(999), "{}").await.0, 403);
    let cyd = login(&server, "cyd").await;
    assert_eq!(cyd.fail(Method::PATCH, &of(999), "{}").await.0, 404);
    assert_eq!(cyd.fail(Method::PATCH, &of(0), json!({"role": "admin"}).to_string()).await.0, 400);
}

#[tokio::test]
async fn password_is_changed_by_its_owner_or_reset_by_an_admin() {
    let server = Server::temporary();
    let change = |old: &str, new: &str| json!({"old": old, "new": new}).to_string();
    assert_eq!(server.fail(Method::POST, "/password", change("x", "another horse")).await.0, 409);
    let [ada, _, ann] = sign_in_three(&server).await;
    let elsewhere = login(&server, "ann").await;
    assert_eq!(ann.fail(Method::POST, "/password", change("wrong horse", "another horse")).await.0, 400);
    assert_eq!(ann.fail(Method::POST, "/password", change(PASSWORD, "short")).await.0, 400);
    ann.post("/password", json!({"old": PASSWORD, "new": "another horse"})).await;
    ann.get("/projects").await;
    assert_eq!(elsewhere.fail(Method::GET, "/projects", "").await.0, 401);
    let old = json!({"name": "ann", "password": PASSWORD}).to_string();
    assert_eq!(server.fail(Method::POST, "/login", old).await.0, 401);
    login_with(&server, "ann", "another horse").await;
    let path = format!("/people/{}", account_id(&ada, "ann").await);
    assert_eq!(ada.fail(Method::PATCH, &path, json!({"password": "short"}).to_string()).await.0, 400);
    ada.patch(&path, json!({"password": "a third horse"})).await;
    assert_eq!(ann.fail(Method::GET, "/projects", "").await.0, 401);
    login_with(&server, "ann", "a third horse").await;
}
