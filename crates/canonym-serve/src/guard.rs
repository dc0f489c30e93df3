//! The checks that every request passes: host, origin, header, sign-in and timeout.
//!
//! On loopback the `Host` must name this machine, which prevents DNS rebinding. Requests that change data need the header `X-Canonym`, which pages of
//! other origins cannot send, and an `Origin`, if any, that is this server. Browsers do not send tokens on their own, so requests with a token need
//! neither.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::abort::{self, RequestState};
use crate::auth::key_hash;
use crate::error::{ApiError, ApiResult};
use crate::fhir;
use crate::state::App;
use crate::store::people;
use crate::wire::{Person, Role};

/// The session cookie.
pub const COOKIE: &str = "canonym_session";

/// The header that only pages of this server and programs send.
pub const HEADER: &str = "x-canonym";

/// Routes that need no sign-in.
const PUBLIC_ROUTES: [&str; 4] = ["/api/v1/about", "/api/v1/login", "/api/v1/openapi.json", "/api/v1/logout"];

/// POST routes of the API that change nothing.
const READ_ONLY_POSTS: [&str; 6] = [
    "/api/v1/link",
    "/api/v1/link/stream",
    "/api/v1/map",
    "/api/v1/ground",
    "/api/v1/ground_multi",
    "/api/v1/annotate",
];

/// Routes outside the API that read the terminology and change nothing.
const SERVICES: [&str; 6] = ["/mcp", "/ground", "/ground_multi", "/annotate", "/fhir", "/inception"];

/// How long a timed-out request that is committing may still take.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(30);

const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; \
    object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// Middleware: lets a request pass or responds with an error.
pub async fn check(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let reads_data = !is_public(&path);
    let mut response = match authorize(&app, &mut request).await {
        Ok(()) => with_timeout(app.config.timeout, next.run(request)).await,
        Err(error) => refusal(&path, error),
    };
    // Nothing read from a modified knowledge base file is returned.
    if reads_data && let Err(error) = app.check_kb() {
        response = refusal(&path, error.hint("restart the server, then check whether this request took effect"));
    }
    set_security_headers(response.headers_mut());
    app.metrics.answered(method.as_str(), response.status().as_u16(), started.elapsed());
    response
}

/// An error, in the form that clients of the path expect.
fn refusal(path: &str, error: ApiError) -> Response {
    match path == "/fhir" || path.starts_with("/fhir/") {
        true => {
            let headers = [(header::CONTENT_TYPE, "application/fhir+json")];
            (error.status, headers, fhir::outcome(&error).to_string()).into_response()
        }
        false => error.into_response(),
    }
}

/// The response to a request, or a timeout. A timed-out request is aborted; one that is already committing is awaited.
async fn with_timeout(timeout: Duration, answer: impl Future<Output = Response>) -> Response {
    let request_state = Arc::new(RequestState::default());
    // If the client disconnects, all of this is dropped.
    let _client = abort::Client(request_state.clone());
    let mut answer = pin!(abort::REQUEST.scope(request_state.clone(), answer));
    if let Ok(response) = tokio::time::timeout(timeout, &mut answer).await {
        return response;
    }
    let seconds = timeout.as_secs();
    if request_state.abort() {
        return ApiError::unavailable(format!("the request took more than {seconds} s"))
            .hint("send less at once, or try again later; nothing was changed")
            .into_response();
    }
    match tokio::time::timeout(COMMIT_TIMEOUT, &mut answer).await {
        Ok(response) => response,
        Err(_) => ApiError::unavailable(format!("the request took more than {seconds} s and may have taken effect"))
            .hint("check whether it took effect")
            .into_response(),
    }
}

fn set_security_headers(headers: &mut HeaderMap) {
    let rows = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in rows {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Responses hold texts that must not be cached; files of the application set their own header.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

async fn authorize(app: &Arc<App>, request: &mut Request) -> ApiResult<()> {
    let headers = request.headers();
    let host = text(headers, header::HOST.as_str()).or_else(|| request.uri().authority().map(|host| host.as_str()));
    let public = app.config.public_url.as_ref();
    let is_public_host = |host: &str| public.is_some_and(|public| public.host().eq_ignore_ascii_case(host));
    if app.config.is_loopback && !host.is_none_or(|host| is_this_machine(host) || is_public_host(host)) {
        return Err(ApiError::forbidden("host not allowed")
            .hint("use 127.0.0.1 or localhost; behind a proxy, start the server with `--public-url`"));
    }
    if let (Some(origin), Some(host)) = (text(headers, header::ORIGIN.as_str()), host)
        && origin.split_once("://").map(|(_, rest)| rest) != Some(host)
        && public.is_none_or(|public| !public.origin().eq_ignore_ascii_case(origin))
    {
        return Err(ApiError::forbidden("cross-origin request not allowed"));
    }
    let token = text(headers, header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
    let path = request.uri().path();
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let reads = *request.method() == Method::POST && (READ_ONLY_POSTS.contains(&path) || is_service(path));
    if changes && token.is_none() && !reads && text(headers, HEADER) != Some("1") {
        return Err(ApiError::forbidden("requests that change data need the header `X-Canonym: 1`")
            .hint("add the header, or send a token as `Authorization: Bearer …`"));
    }
    let is_about = path == "/api/v1/about";
    let is_public = is_public(path);
    let session = cookie(headers, COOKIE);
    let client = client(request, &app.config.trusted_proxies);
    let key = match (token, session) {
        (Some(token), _) => Some((key_hash(token.trim()), "token")),
        (None, Some(session)) => Some((key_hash(session), "session")),
        (None, None) => None,
    };
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(Key(key.clone()));
    // These need no user, so they work even if the database cannot be read.
    if is_public && !is_about {
        return Ok(());
    }
    if !is_public {
        app.check_kb()?;
    }
    let person = app.blocking(move |app| current_user(app, &Key(key))).await?;
    match person {
        Some(person) => {
            request.extensions_mut().insert(person);
            Ok(())
        }
        None if is_public => Ok(()),
        None => Err(ApiError::unauthorized()),
    }
}

/// Whether a path needs no sign-in: files of the application, and some routes of the API.
fn is_public(path: &str) -> bool {
    let is_data = path.starts_with("/api/") || is_service(path);
    !is_data || PUBLIC_ROUTES.contains(&path) || matches!(path, "/api/v1/health" | "/api/v1/ready" | "/api/v1/metrics")
}

/// Whether a path is one of [`SERVICES`] or below it.
fn is_service(path: &str) -> bool {
    SERVICES
        .iter()
        .any(|service| path.strip_prefix(service).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// The peer address of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// The address of the client.
#[derive(Debug, Clone, Copy)]
pub struct Client(pub IpAddr);

/// The client's address. Each trusted proxy appends its peer to `X-Forwarded-For`; entries before the first untrusted address are ignored.
fn client(request: &Request, trusted: &[IpAddr]) -> Client {
    let peer = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |peer| peer.0.ip());
    let values = request.headers().get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let forwarded: Vec<&str> = values.flat_map(|value| value.split(',')).collect();
    let mut client = peer.to_canonical();
    for address in forwarded.iter().rev() {
        let (true, Ok(address)) = (trusted.contains(&client), address.trim().parse::<IpAddr>()) else { break };
        client = address.to_canonical();
    }
    Client(client)
}

/// The hash and kind of the key of a request.
#[derive(Debug, Clone)]
pub struct Key(pub Option<(String, &'static str)>);

/// The user of a request: the holder of its key, or the local user if there are no accounts.
pub fn current_user(app: &App, key: &Key) -> ApiResult<Option<Person>> {
    let now = app.now();
    app.store.read(|connection| {
        // Another process may have added the first account.
        if !app.has_accounts() && people::has_accounts(connection)? {
            app.accounts_exist();
        }
        match &key.0 {
            // A token always stands for its holder, even without accounts.
            None | Some((_, "session")) if !app.has_accounts() => people::local(connection).map(Some),
            Some((hash, kind)) => people::by_key(connection, hash, kind, now),
            None => Ok(None),
        }
    })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The value of a cookie.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = text(headers, header::COOKIE.as_str())?;
    cookies.split(';').find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Whether a `Host` names this machine.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_address = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    name.eq_ignore_ascii_case("localhost") || is_address
}

impl<S: Send + Sync> FromRequestParts<S> for Person {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Person> {
        parts.extensions.get::<Person>().cloned().ok_or_else(ApiError::unauthorized)
    }
}

/// A user with at least the role of a curator.
pub struct Curator(pub Person);

/// A user with the role of an admin.
pub struct Admin(pub Person);

fn at_least(parts: &Parts, role: Role) -> ApiResult<Person> {
    let person = parts.extensions.get::<Person>().cloned().ok_or_else(ApiError::unauthorized)?;
    match person.role >= role {
        true => Ok(person),
        false => Err(ApiError::forbidden("not allowed for your role").hint("ask an admin")),
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Curator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Curator> {
        at_least(parts, Role::Curator).map(Curator)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Admin> {
        at_least(parts, Role::Admin).map(Admin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_address_is_taken_only_from_trusted_proxies() {
        let trusted: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let of = |peer: &str, forwarded: &[&str]| {
            let mut request = Request::builder().extension(Peer(format!("{peer}:80").parse().unwrap()));
            for value in forwarded {
                request = request.header("x-forwarded-for", *value);
            }
            client(&request.body(axum::body::Body::empty()).unwrap(), &trusted).0.to_string()
        };
        assert_eq!(of("203.0.113.9", &["192.0.2.1"]), "203.0.113.9");
        assert_eq!(of("127.0.0.1", &[]), "127.0.0.1");
        assert_eq!(of("127.0.0.1", &["192.0.2.1"]), "192.0.2.1");
        assert_eq!(of("127.0.0.1", &["1.1.1.1, 192.0.2.1", "10.0.0.2"]), "192.0.2.1");
        assert_eq!(of("127.0.0.1", &["192.0.2.1, nonsense"]), "127.0.0.1");
        assert_eq!(of("[::ffff:127.0.0.1]", &["2001:db8::1"]), "2001:db8::1");
    }

    #[test]
    fn loopback_hosts_are_recognised() {
        for host in ["localhost", "localhost:7878", "127.0.0.1:7878", "127.8.0.1", "[::1]:7878", "LOCALHOST:1"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:7878", "192.168.0.7", "", "localhost.evil.example"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
