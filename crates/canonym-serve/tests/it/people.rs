//! Accounts, roles, tokens, and how far people agree.

use axum::body::{Body, to_bytes};
use axum::http::Method;
use serde_json::{Value, json};

use crate::flow::CORPUS;
use crate::support::{Server, mark_of};

const PASSWORD: &str = "correct horse";

/// Logs in; a server that is asked with the cookie.
async fn login(server: &Server, name: &str) -> Server {
    let body = json!({"name": name, "password": PASSWORD}).to_string();
    let response = server.send(Method::POST, "/api/v1/login", body).await;
    assert_eq!(response.status(), 200);
    let cookie = response.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    server.asked_with(&[("x-canonym", "1"), ("cookie", cookie)])
}

#[tokio::test]
async fn from_the_first_account_on_everybody_logs_in() {
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

    // Roles: an annotator decides, and neither makes projects nor adds people.
    let project = admin.project(CORPUS).await;
    let ann = login(&server, "ann").await;
    let id = ann.documents(project).await[0];
    let decided = ann.decide(id, json!({"kind": "add", "spans": [[0, 1]]})).await;
    assert_eq!(decided["marks"][0]["by"], "ann");
    // Others are told who works on a document.
    ann.document(id).await;
    let locked = async |server: &Server| {
        server.get(&format!("/projects/{project}/documents")).await["documents"][0]["locked_by"].clone()
    };
    assert_eq!((locked(&admin).await, locked(&ann).await), (json!("ann"), Value::Null));
    assert_eq!(ann.fail(Method::POST, "/projects", json!({"name": "x"}).to_string()).await.0, 403);
    assert_eq!(ann.fail(Method::POST, "/people", person("eve", "admin").to_string()).await.0, 403);
    // Nobody undoes what another decided.
    assert_eq!(admin.fail(Method::POST, &format!("/documents/{id}/undo"), "").await.0, 409);

    // A token is an account without a browser, and needs no header against forgery.
    let token = ann.post("/tokens", json!({"name": "script"})).await["token"].as_str().unwrap().to_owned();
    let script = server.asked_with(&[("authorization", &format!("Bearer {token}"))]);
    script.decide(id, json!({"kind": "add", "spans": [[1, 2]]})).await;
    let wrong = server.asked_with(&[("authorization", "Bearer 00")]);
    assert_eq!(wrong.fail(Method::GET, "/projects", "").await.0, 401);

    // After a logout the cookie is worth nothing; accounts are there after a restart.
    ann.post("/logout", json!({})).await;
    assert_eq!(ann.fail(Method::GET, "/projects", "").await.0, 401);
    drop((admin, ann, script, wrong, server));
    let again = Server::new(folder.path());
    assert_eq!(again.fail(Method::GET, "/projects", "").await.0, 401);
    assert!(again.app.has_admin());
}

#[tokio::test]
async fn guessing_passwords_is_slowed_down() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    server.app.put_admin("ada", PASSWORD).unwrap();
    let wrong = json!({"name": "ada", "password": "wrong horse"}).to_string();
    for _ in 0..5 {
        assert_eq!(server.fail(Method::POST, "/login", wrong.clone()).await.0, 401);
    }
    let response = server.send(Method::POST, "/api/v1/login", wrong).await;
    assert_eq!(response.status(), 429);
    assert!(response.headers().contains_key("retry-after"));
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert!(String::from_utf8_lossy(&bytes).contains("too many logins"));
    // What is not one's own is not told: the answer for a name that nobody has is the same.
    let nobody = json!({"name": "nobody", "password": "wrong horse"}).to_string();
    assert_eq!(server.fail(Method::POST, "/login", nobody).await.1["error"]["message"], "name or password is wrong");
    let no_header = server.asked_with(&[]).send(Method::POST, "/api/v1/login", Body::from("{}")).await;
    assert_eq!(no_header.status(), 403);
}

#[tokio::test]
async fn statistics_tell_how_far_people_agree() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::new(folder.path());
    let project = server.project(CORPUS).await;
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
    // One of two things alike; by chance 1/4 would be: (1/2 - 1/4) / (3/4). Two places and one in common: 2/3.
    assert!((agreement["cohen_kappa"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9, "{agreement}");
    assert!((agreement["span_f1"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9, "{agreement}");
}
