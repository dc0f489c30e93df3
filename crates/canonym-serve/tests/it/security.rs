//! Cross-origin requests, `Host` headers, and security headers.

use axum::body::Body;
use axum::http::Method;
use serde_json::json;

use crate::support::Server;

#[tokio::test]
async fn cross_origin_requests_change_nothing() {
    let server = Server::temporary();
    let new = json!({"name": "x"}).to_string();
    // Without the header, like a form of another page.
    let plain = server.with_headers(&[("content-type", "text/plain")]);
    let (status, answer) = plain.fail(Method::POST, "/projects", new.clone()).await;
    assert_eq!(status, 403);
    assert!(answer["error"]["message"].as_str().unwrap().contains("X-Canonym"));
    let foreign = server.with_headers(&[("x-canonym", "1"), ("origin", "http://evil.example")]);
    assert_eq!(foreign.fail(Method::POST, "/projects", new.clone()).await.0, 403);
    let null = server.with_headers(&[("x-canonym", "1"), ("origin", "null")]);
    assert_eq!(null.fail(Method::POST, "/projects", new.clone()).await.0, 403);
    let own = server.with_headers(&[("x-canonym", "1"), ("origin", "http://127.0.0.1:7878")]);
    own.post("/projects", json!({"name": "x"})).await;
    // Requests that change nothing need no header.
    plain.post("/link", json!({"text": "x"})).await;
    assert_eq!(server.get("/projects").await["projects"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn foreign_host_header_is_rejected_on_loopback() {
    let server = Server::temporary();
    for host in ["evil.example", "evil.example:7878", "127.0.0.1.evil.example:7878"] {
        let rebound = server.with_headers(&[("host", host), ("x-canonym", "1")]);
        assert_eq!(rebound.fail(Method::GET, "/projects", "").await.0, 403, "{host}");
        assert_eq!(rebound.send(Method::GET, "/", Body::empty()).await.status(), 403);
    }
    for host in ["localhost:7878", "[::1]:7878"] {
        server.with_headers(&[("host", host)]).get("/projects").await;
    }
}

#[tokio::test]
async fn responses_have_security_headers() {
    let server = Server::temporary();
    for path in ["/", "/api/v1/about", "/api/v1/nothing"] {
        let response = server.send(Method::GET, path, Body::empty()).await;
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        let policy = header("content-security-policy");
        assert!(policy.contains("script-src 'self';") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(response.headers().get("access-control-allow-origin").is_none());
    }
    let api = server.send(Method::GET, "/api/v1/about", Body::empty()).await;
    assert_eq!(api.headers()["cache-control"], "no-store");
}
