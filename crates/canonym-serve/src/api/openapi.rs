//! The OpenAPI document, made from the list of routes and their request and response types.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{Route, routes};

/// Schemas by name.
pub type Schemas = BTreeMap<String, Value>;

/// Adds the schema of a type and of the types in it; returns a reference to it.
pub fn schema<T: ToSchema>(schemas: &mut Schemas) -> Value {
    let mut found = Vec::new();
    T::schemas(&mut found);
    found.push((T::name().into_owned(), T::schema()));
    for (name, schema) in found {
        schemas.insert(name, serde_json::to_value(schema).unwrap_or_default());
    }
    json!({"$ref": format!("#/components/schemas/{}", T::name())})
}

/// The OpenAPI document.
pub fn document() -> Value {
    let mut schemas = Schemas::new();
    let error = schema::<crate::error::ErrorAnswer>(&mut schemas);
    let mut paths: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for route in routes() {
        let operation = operation(&route, &error, &mut schemas);
        paths.entry(format!("/api/v1{}", route.path)).or_default().insert(route.method.to_lowercase(), operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "canonym", "version": env!("CARGO_PKG_VERSION"),
            "description": "Offsets count Unicode code points; ends are exclusive. Requests that change data need the header `X-Canonym: 1` or a token."},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": crate::guard::COOKIE},
                "token": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{}, {"session": []}, {"token": []}],
    })
}

fn operation(route: &Route, error: &Value, schemas: &mut Schemas) -> Value {
    let in_path = route.path.split(['{', '}']).skip(1).step_by(2).map(|name| {
        let is_word = ["/concepts/", "/tokens/"].iter().any(|part| route.path.contains(part));
        let kind = if is_word { "string" } else { "integer" };
        json!({"name": name, "in": "path", "required": true, "schema": {"type": kind}})
    });
    let in_query = route
        .query
        .iter()
        .map(|(name, kind)| json!({"name": name, "in": "query", "required": false, "schema": {"type": kind}}));
    let mut parameters: Vec<Value> = in_path.chain(in_query).collect();
    if route.method != "GET" {
        parameters.push(
            json!({"name": "X-Canonym", "in": "header", "required": false, "schema": {"type": "string", "const": "1"}}),
        );
    }
    let name = route.path.replace(['/', '{', '}', '.'], " ");
    let words: Vec<&str> = name.split_whitespace().collect();
    let success = match route.response {
        Some(response) => {
            json!({"description": "success", "content": {"application/json": {"schema": response(schemas)}}})
        }
        None => json!({"description": "success"}),
    };
    let status = route.status.to_string();
    let mut operation = json!({
        "summary": route.summary,
        "operationId": format!("{}_{}", route.method.to_lowercase(), words.join("_")),
        "parameters": parameters,
        "responses": {
            status: success,
            "default": {"description": "error", "content": {"application/json": {"schema": error}}},
        },
    });
    if let Some(body) = route.body {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/json": {"schema": body(schemas)}}});
    } else if let Some(kind) = route.bytes {
        operation["requestBody"] = json!({"required": true, "content": {kind: {"schema": {"type": "string"}}}});
    }
    operation
}
