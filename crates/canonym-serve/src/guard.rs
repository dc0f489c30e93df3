//! What every request passes: who asks, from where, and how long it may take.
//!
//! On loopback the name by which the server is called must be one of this machine: a page that makes its own name point here (DNS rebinding) is
//! refused. What changes something needs the header `X-Canonym`, which a page from elsewhere cannot send, and an `Origin`, where there is one, that is
//! this server. Tokens are not sent by browsers on their own and need neither.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::abandon::{self, Waiting};
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::people::key_hash;
use crate::store::people::{self, Person, Role};

/// The cookie of a login.
pub const COOKIE: &str = "canonym_session";

/// The header that only our own pages and programs send.
pub const HEADER: &str = "x-canonym";

/// What may be asked without a login.
const OPEN: [&str; 4] = ["/api/v1/about", "/api/v1/login", "/api/v1/openapi.json", "/api/v1/logout"];

/// Questions that are posted because they are long; they change nothing.
const QUESTIONS: [&str; 3] = ["/api/v1/link", "/api/v1/link/stream", "/api/v1/map"];

/// How long a change is waited for that is being kept when its time is over.
const COMMIT: Duration = Duration::from_secs(30);

const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; \
    object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// Lets a request pass, or answers it with an error.
pub async fn check(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let asks_data = request.uri().path().starts_with("/api/") && !is_open(request.uri().path());
    let mut response = match admit(&app, &mut request).await {
        Ok(()) => in_time(app.config.timeout, next.run(request)).await,
        Err(error) => error.into_response(),
    };
    // What was read of a knowledge base while somebody wrote into its file is not told.
    if asks_data && let Err(error) = app.check_kb() {
        response = error.hint("restart the server, and read again what this request was to change").into_response();
    }
    protect(response.headers_mut());
    app.metrics.answered(method.as_str(), response.status().as_u16(), started.elapsed());
    response
}

/// The answer to a request, or that it took too long. What was given up changes nothing; where a change is being kept, the answer is waited for.
async fn in_time(timeout: Duration, answer: impl Future<Output = Response>) -> Response {
    let waiting = Arc::new(Waiting::default());
    // Where the client leaves, all of this is dropped.
    let _client = abandon::Client(waiting.clone());
    let mut answer = pin!(abandon::REQUEST.scope(waiting.clone(), answer));
    if let Ok(response) = tokio::time::timeout(timeout, &mut answer).await {
        return response;
    }
    let seconds = timeout.as_secs();
    if waiting.abandon() {
        return ApiError::unavailable(format!("the request took more than {seconds} s"))
            .hint("nothing was changed; send less at once, or try again later")
            .into_response();
    }
    match tokio::time::timeout(COMMIT, &mut answer).await {
        Ok(response) => response,
        Err(_) => ApiError::unavailable(format!("the request took more than {seconds} s, and may have been done"))
            .hint("read again what it was to change")
            .into_response(),
    }
}

fn protect(headers: &mut HeaderMap) {
    let rows = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in rows {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // Answers hold texts that nobody else is to find in a cache; files of the application say otherwise.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

async fn admit(app: &Arc<App>, request: &mut Request) -> ApiResult<()> {
    let headers = request.headers();
    let host = text(headers, header::HOST.as_str()).or_else(|| request.uri().authority().map(|host| host.as_str()));
    let public = app.config.public_url.as_ref();
    let is_public = |host: &str| public.is_some_and(|public| public.host().eq_ignore_ascii_case(host));
    if app.config.is_loopback && !host.is_none_or(|host| is_this_machine(host) || is_public(host)) {
        return Err(ApiError::forbidden("the server was called by the name of another machine")
            .hint("call it as 127.0.0.1 or localhost; for a proxy, start it with `--public-url`"));
    }
    if let (Some(origin), Some(host)) = (text(headers, header::ORIGIN.as_str()), host)
        && origin.split_once("://").map(|(_, rest)| rest) != Some(host)
        && public.is_none_or(|public| !public.0.eq_ignore_ascii_case(origin))
    {
        return Err(ApiError::forbidden("the request comes from a page of another server"));
    }
    let token = text(headers, header::AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
    let path = request.uri().path();
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes && token.is_none() && !QUESTIONS.contains(&path) && text(headers, HEADER) != Some("1") {
        return Err(ApiError::forbidden("what changes something needs the header `X-Canonym: 1`")
            .hint("add the header, or send a token as `Authorization: Bearer …`"));
    }
    let is_about = path == "/api/v1/about";
    let is_open = !path.starts_with("/api/") || is_open(path);
    let session = cookie(headers, COOKIE);
    let client = client(request, &app.config.trusted_proxies);
    let key = match (token, session) {
        (Some(token), _) => Some((key_hash(token.trim()), "token")),
        (None, Some(session)) => Some((key_hash(session), "session")),
        (None, None) => None,
    };
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(Key(key.clone()));
    // These do not ask who asks: they are answered also where the data cannot be read.
    if is_open && !is_about {
        return Ok(());
    }
    if !is_open {
        app.check_kb()?;
    }
    let person = app.blocking(move |app| who(app, &Key(key))).await?;
    match person {
        Some(person) => {
            request.extensions_mut().insert(person);
            Ok(())
        }
        None if is_open => Ok(()),
        None => Err(ApiError::no_login()),
    }
}

/// Whether an address of the interface may be asked without a login.
fn is_open(path: &str) -> bool {
    OPEN.contains(&path) || matches!(path, "/api/v1/health" | "/api/v1/ready" | "/api/v1/metrics")
}

/// How people call the server, such as `https://links.example.org`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl(String);

impl std::str::FromStr for PublicUrl {
    type Err = ApiError;

    fn from_str(text: &str) -> ApiResult<PublicUrl> {
        let origin = text.strip_suffix('/').unwrap_or(text).to_ascii_lowercase();
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ', '\\']);
        match host.is_some_and(is_host) {
            true => Ok(PublicUrl(origin)),
            false => Err(ApiError::bad(format!("`{text}` is no address of a server"))
                .hint("give scheme and name without a path, such as https://links.example.org")),
        }
    }
}

impl PublicUrl {
    fn host(&self) -> &str {
        self.0.split_once("://").map_or(&self.0, |(_, host)| host)
    }

    /// Whether what goes there is encrypted.
    pub fn is_https(&self) -> bool {
        self.0.starts_with("https://")
    }
}

/// Where a request comes from: the other end of its connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// The address of the one who asks.
#[derive(Debug, Clone, Copy)]
pub struct Client(pub IpAddr);

/// A proxy adds the address of who asked it to `X-Forwarded-For`; what stands before that of the first one that is not trusted is hearsay.
fn client(request: &Request, trusted: &[IpAddr]) -> Client {
    let peer = request.extensions().get::<Peer>().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |peer| peer.0.ip());
    let values = request.headers().get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
    let told: Vec<&str> = values.flat_map(|value| value.split(',')).collect();
    let mut client = peer.to_canonical();
    for address in told.iter().rev() {
        let (true, Ok(address)) = (trusted.contains(&client), address.trim().parse::<IpAddr>()) else { break };
        client = address.to_canonical();
    }
    Client(client)
}

/// The hash and kind of the key with which somebody asks.
#[derive(Debug, Clone)]
pub struct Key(pub Option<(String, &'static str)>);

/// Who asks: the holder of a key, or where there are no accounts the one who works at this machine.
pub fn who(app: &App, key: &Key) -> ApiResult<Option<Person>> {
    let now = app.now();
    app.store.read(|connection| {
        // Another process may have added the first account.
        if !app.has_accounts() && people::has_accounts(connection)? {
            app.accounts_exist();
        }
        match &key.0 {
            // Whoever sends a token is its holder or nobody.
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

/// Whether a name and port name this machine.
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
        parts.extensions.get::<Person>().cloned().ok_or_else(ApiError::no_login)
    }
}

/// Somebody who may change projects.
pub struct Curator(pub Person);

/// Somebody who may add people.
pub struct Admin(pub Person);

fn at_least(parts: &Parts, role: Role) -> ApiResult<Person> {
    let person = parts.extensions.get::<Person>().cloned().ok_or_else(ApiError::no_login)?;
    match person.role >= role {
        true => Ok(person),
        false => Err(ApiError::forbidden("your role does not allow this").hint("ask somebody who is an admin")),
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
    fn the_address_of_a_client_is_told_by_proxies_that_are_trusted_alone() {
        let trusted: Vec<IpAddr> = vec!["127.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap()];
        let of = |peer: &str, told: &[&str]| {
            let mut request = Request::builder().extension(Peer(format!("{peer}:80").parse().unwrap()));
            for value in told {
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
    fn a_public_address_is_scheme_and_name() {
        let of = |text: &str| text.parse::<PublicUrl>();
        assert_eq!(of("https://Links.example.org/").unwrap().host(), "links.example.org");
        assert!(!of("http://links.example.org:8080").unwrap().is_https());
        for text in ["links.example.org", "ftp://x", "https://", "https://x/path", "https://user@x", "https://x y"] {
            assert!(of(text).unwrap_err().hint.is_some(), "{text}");
        }
    }

    #[test]
    fn names_of_this_machine_are_known() {
        for host in ["localhost", "localhost:7878", "127.0.0.1:7878", "127.8.0.1", "[::1]:7878", "LOCALHOST:1"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:7878", "192.168.0.7", "", "localhost.evil.example"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
