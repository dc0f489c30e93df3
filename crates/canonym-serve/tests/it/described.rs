//! Every route of the OpenAPI document gets generated requests, valid and invalid ones: no response is a server error, every response matches its schema,
//! and the stored data stays consistent. The requests depend only on a seed.

use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode, header};
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_serve::store::events;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::scale::derived;
use crate::schema::{Schemas, below};
use crate::support::Server;

/// Requests per path and method.
const N_REQUESTS: usize = 120;

/// A generated request, shown if its response is wrong.
struct GeneratedRequest {
    method: Method,
    address: String,
    kind: Option<&'static str>,
    body: Vec<u8>,
}

impl std::fmt::Display for GeneratedRequest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body: String = String::from_utf8_lossy(&self.body).chars().take(300).collect();
        write!(out, "{} {} as {:?}: {body}", self.method, self.address, self.kind)
    }
}

#[tokio::test]
async fn responses_match_openapi_for_generated_requests() {
    let (server, project, _) = Server::with_corpus().await;
    server.predict(project).await;
    server.app.put_admin("ada", "correct horse").unwrap();
    let token = token(&server).await;
    // Generated requests may add admins and change the role of this one.
    server.with_headers(&[("authorization", &format!("Bearer {token}"))]).add_all_members(project).await;
    let description = server.get("/openapi.json").await;
    let schemas = Schemas(&description["components"]["schemas"]);
    let texts = |server: &Server| {
        server.app.store.read(|connection| {
            let mut statement = connection.prepare("SELECT text FROM documents WHERE project_id = 1 AND id < 4")?;
            let texts = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<String>, _>>()?;
            Ok(texts)
        })
    };
    let before = texts(&server).unwrap();
    let mut faults = Vec::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let mut rng = SplitMix64::new(path.bytes().map(u64::from).sum::<u64>() ^ 7);
            let mut n_good = 0;
            for row in 0..N_REQUESTS {
                let asked = request(&schemas, path, method, operation, row % 2 == 1, &mut rng);
                match answer(&server, &token, &schemas, operation, &asked).await {
                    Ok(status) => n_good += usize::from(status.is_success()),
                    Err(fault) => faults.push(format!("{asked}\n    {fault}")),
                }
            }
            if n_good == 0 && method != "delete" && !NEVER_GOOD.contains(&path.as_str()) {
                faults.push(format!("nothing that was asked of {method} {path} was right"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults[..faults.len().min(20)].join("\n"));
    server.run_jobs().await;
    assert_eq!(texts(&server).unwrap(), before);
    let rows = |server: &Server| server.app.store.read(|connection| Ok(derived(connection))).unwrap();
    let kept = rows(&server);
    server.app.store.write(|transaction| events::rebuild(transaction)).unwrap();
    assert_eq!(rows(&server), kept, "what follows from the events is not what is kept");
    let whole = server
        .app
        .store
        .read(|connection| Ok(connection.pragma_query_value(None, "integrity_check", |row| row.get::<_, String>(0))?));
    assert_eq!(whole.unwrap(), "ok");
}

/// Routes for which no valid request is generated, because the tests train no models.
const NEVER_GOOD: [&str; 8] = [
    "/api/v1/login",
    "/api/v1/password",
    "/api/v1/tokens/{t}",
    "/api/v1/jobs/{j}/cancel",
    "/api/v1/projects/{p}/groups/undo",
    "/api/v1/projects/{p}/training",
    "/api/v1/projects/{p}/models/{m}",
    "/api/v1/projects/{p}/models/{m}/file",
];

async fn token(server: &Server) -> String {
    let body = json!({"name": "ada", "password": "correct horse"}).to_string();
    let response = server.send(Method::POST, "/api/v1/login", body).await;
    let cookie = response.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let ada = server.with_headers(&[("x-canonym", "1"), ("cookie", &cookie)]);
    ada.post("/tokens", json!({"name": "tests"})).await["token"].as_str().unwrap().to_owned()
}

/// A request that matches the schema, or a hostile one.
fn request<'a>(
    schemas: &Schemas<'a>,
    path: &str,
    method: &str,
    operation: &'a Value,
    is_hostile: bool,
    rng: &mut SplitMix64,
) -> GeneratedRequest {
    let mut address = path.to_owned();
    let mut query = Vec::new();
    for parameter in operation["parameters"].as_array().unwrap() {
        let name = parameter["name"].as_str().unwrap();
        let odd = is_hostile && below(rng, 3) == 0;
        let value = match parameter["schema"]["type"].as_str().unwrap() {
            _ if odd => INVALID_VALUES[below(rng, INVALID_VALUES.len())].to_owned(),
            // Keeps the data that other requests use.
            "integer" if parameter["in"] == "path" && method == "delete" => (90 + below(rng, 3)).to_string(),
            "integer" if parameter["in"] == "path" => (1 + below(rng, 3)).to_string(),
            _ if name == "id" => ["T:2", "T:1", "X:9"][below(rng, 3)].to_owned(),
            _ if name == "format" => {
                ["pubtator", "auto", "jsonl", "bioc-xml", "brat", "text"][below(rng, 6)].to_owned()
            }
            "integer" => below(rng, 30).to_string(),
            "number" => "0.25".to_owned(),
            "boolean" => "true".to_owned(),
            _ => ["", "delirium", "open", "margin", "gold,pred", "1"][below(rng, 6)].to_owned(),
        };
        match parameter["in"].as_str() {
            Some("path") => address = address.replace(&format!("{{{name}}}"), &encoded(&value)),
            Some("query") if below(rng, 2) == 0 => query.push(format!("{name}={}", encoded(&value))),
            _ => {}
        }
    }
    if is_hostile && below(rng, 8) == 0 {
        query.push("more=%F0%9F%A7%AA&=&%zz".to_owned());
    }
    if !query.is_empty() {
        address = format!("{address}?{}", query.join("&"));
    }
    let kinds =
        [Some("application/json"), None, Some("text/plain; charset=utf-16"), Some("multipart/form-data"), Some("🧪")];
    let kind = if is_hostile { kinds[below(rng, kinds.len())] } else { kinds[0] };
    let content = operation["requestBody"]["content"].as_object().and_then(|content| content.iter().next());
    let body = match content {
        None if is_hostile => BODIES[below(rng, BODIES.len())].to_vec(),
        None => Vec::new(),
        Some((kind, _)) if kind != "application/json" => match is_hostile {
            true => BODIES[below(rng, BODIES.len())].to_vec(),
            false => FILES[below(rng, FILES.len())].as_bytes().to_vec(),
        },
        Some((_, content)) => {
            let mut value = schemas.example(&content["schema"], rng);
            match is_hostile && below(rng, 5) == 0 {
                true => BODIES[below(rng, BODIES.len())].to_vec(),
                false => {
                    if is_hostile {
                        mutate(&mut value, rng);
                    }
                    value.to_string().into_bytes()
                }
            }
        }
    };
    GeneratedRequest { method: method.to_uppercase().parse().unwrap(), address, kind, body }
}

/// Invalid values of parameters.
const INVALID_VALUES: [&str; 20] = [
    "",
    "-1",
    "0",
    "99999",
    "9223372036854775807",
    "9223372036854775808",
    "1e3",
    "NaN",
    "inf",
    "-0",
    "0x1",
    " 1",
    "٣",
    "null",
    "../../etc/passwd",
    "\u{0}",
    "a\nb",
    "🧪",
    "' OR 1=1 --",
    "true,false",
];

/// Files, some of which can be imported or linked.
const FILES: [&str; 6] = [
    "x1|t|Delirium.\nx1|a|\nx1\t0\t8\tDelirium\tDisorder\tT:2\n\n",
    "{\"id\": \"x2\", \"text\": \"She was confused.\"}\n",
    "She took pepcid.",
    "{\"id\": \"x3\", \"text\": \"Pain.\"}\n{\"id\": \"x4\", \"text\": \"delirium\"}\n",
    "x5|t|Pain.\nx5|a|\nx5\t0\t9\tPain\tX\tT:2\n\n",
    "<collection><document><id>x6</id></document></collection>",
];

/// Invalid bodies.
const BODIES: [&[u8]; 14] = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"7",
    b"\"x\"",
    b"{\"a\":1,\"a\":2}",
    b"\xff\xfe\x00",
    b"PK\x03\x04",
    b"\x1f\x8b\x08\x00",
    b"{\"text\": \"\\ud800\"}",
    b"{\"decisions\": [{\"kind\": \"add\", \"spans\": [[0, 1e999]]}]}",
    b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    b"{\"name\": \"a\\u0000b\\n\"}",
];

/// Adds, removes or replaces a random part of a value.
fn mutate(value: &mut Value, rng: &mut SplitMix64) {
    let goes_deeper = below(rng, 3) > 0;
    match value {
        Value::Object(members) if goes_deeper && !members.is_empty() => {
            let name = members.keys().nth(below(rng, members.len())).unwrap().clone();
            match below(rng, 6) {
                0 => drop(members.remove(&name)),
                1 => drop(members.insert("no such member".to_owned(), json!(1))),
                _ => mutate(&mut members[&name], rng),
            }
        }
        Value::Array(items) if goes_deeper && !items.is_empty() => {
            let row = below(rng, items.len());
            match below(rng, 4) {
                0 => drop(items.remove(row)),
                1 => *items = vec![items[row].clone(); 1100],
                _ => mutate(&mut items[row], rng),
            }
        }
        _ => {
            let odd = [
                Value::Null,
                json!(-1),
                json!(i64::MIN),
                json!(u64::MAX),
                json!(9_007_199_254_740_993_u64),
                json!(1e308),
                json!(0.5),
                json!("NaN"),
                json!(""),
                json!("x".repeat(20_000)),
                json!("🧪\u{0}\u{202e}\u{301}"),
                json!([]),
                json!({}),
                json!([[[[]]]]),
                json!([[0, u64::MAX]]),
                json!(true),
            ];
            *value = odd[below(rng, odd.len())].clone();
        }
    }
}

fn encoded(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}

/// The status of a response, or what is wrong with it.
async fn answer(
    server: &Server,
    token: &str,
    schemas: &Schemas<'_>,
    operation: &Value,
    asked: &GeneratedRequest,
) -> Result<StatusCode, String> {
    let mut request = Request::builder()
        .method(asked.method.clone())
        .uri(&asked.address)
        .header(header::HOST, "127.0.0.1:7878")
        .header(header::AUTHORIZATION, format!("Bearer {token}"));
    if let Some(kind) = asked.kind {
        request = request.header(header::CONTENT_TYPE, axum::http::HeaderValue::from_bytes(kind.as_bytes()).unwrap());
    }
    let request = request.body(Body::from(asked.body.clone())).map_err(|error| format!("no request: {error}"))?;
    let response = server.router.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
    if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
        return Err(format!("status {status}"));
    }
    if kind.as_deref() == Some("text/event-stream") {
        return Ok(status);
    }
    let bytes = to_bytes(response.into_body(), usize::MAX).await.map_err(|error| error.to_string())?;
    let json = || serde_json::from_slice::<Value>(&bytes).map_err(|error| format!("{status}, no JSON: {error}"));
    if !status.is_success() {
        let mut value = json()?;
        // Extra fields of an error: the current document, or the report of an import.
        if let Some(members) = value.as_object_mut() {
            members.retain(|name, _| !["document", "report"].contains(&name.as_str()));
        }
        let schema = &operation["responses"]["default"]["content"]["application/json"]["schema"];
        schemas.check(schema, &value).map_err(|wrong| format!("{status}: {wrong}"))?;
        let message = value["error"]["message"].as_str().unwrap();
        return match message.is_empty() || message.len() > 4000 {
            true => Err(format!("{status} with a message of {} bytes", message.len())),
            false => Ok(status),
        };
    }
    let described = &operation["responses"][status.as_str()];
    if described.is_null() {
        return Err(format!("{status} is not described"));
    }
    if let Some(schema) = described["content"]["application/json"].get("schema") {
        schemas.check(schema, &json()?).map_err(|wrong| format!("{status}: {wrong}"))?;
    }
    Ok(status)
}
