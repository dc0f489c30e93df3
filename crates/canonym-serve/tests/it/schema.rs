//! JSON Schema as far as the OpenAPI document uses it: validates values and generates examples.

use canonym_core::eval::bootstrap::SplitMix64;
use serde_json::{Map, Value, json};

/// The maximum depth of generated examples.
const MAX_DEPTH: usize = 12;

/// The named schemas of the OpenAPI document.
pub struct Schemas<'a>(pub &'a Value);

impl<'a> Schemas<'a> {
    fn named(&self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => {
                let schema = &self.0[name.rsplit('/').next().unwrap()];
                assert!(!schema.is_null(), "the description has no {name}");
                self.named(schema)
            }
            None => schema,
        }
    }

    /// Validates a value against a schema.
    pub fn check(&self, schema: &'a Value, value: &Value) -> Result<(), String> {
        self.check_at(schema, value, "$")
    }

    fn check_at(&self, schema: &'a Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = self.named(schema);
        let wrong = |what: String| Err(format!("{at}: {what}, but it is {value}"));
        for (word, needs_one) in [("oneOf", true), ("anyOf", false)] {
            if let Some(schemas) = schema[word].as_array() {
                let n = schemas.iter().filter(|schema| self.check_at(schema, value, at).is_ok()).count();
                if n == 0 || (needs_one && n > 1) {
                    return wrong(format!("{n} of its schemas fit"));
                }
                return Ok(());
            }
        }
        if let Some(names) = schema["enum"].as_array()
            && !names.contains(value)
        {
            return wrong(format!("it has to be one of {names:?}"));
        }
        if let Some(constant) = schema.get("const")
            && constant != value
        {
            return wrong(format!("it has to be {constant}"));
        }
        let kinds = kinds(schema);
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(kind, value)) {
            return wrong(format!("it has to be {kinds:?}"));
        }
        if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
            && number < least
        {
            return wrong(format!("it has to be {least} or more"));
        }
        match value {
            Value::Array(items) => match schema.get("items") {
                Some(schema) => items
                    .iter()
                    .enumerate()
                    .try_for_each(|(row, item)| self.check_at(schema, item, &format!("{at}[{row}]"))),
                None => Ok(()),
            },
            Value::Object(members) => self.check_members(schema, members, at),
            _ => Ok(()),
        }
    }

    fn check_members(&self, schema: &'a Value, members: &Map<String, Value>, at: &str) -> Result<(), String> {
        let (properties, required) = self.members(schema);
        if let Some(missing) = required.iter().find(|name| !members.contains_key(**name)) {
            return Err(format!("{at}: `{missing}` is missing"));
        }
        let others = schema.get("additionalProperties");
        for (name, value) in members {
            let at = format!("{at}.{name}");
            match (properties.iter().find(|(known, _)| known == name), others) {
                (Some((_, schema)), _) => self.check_at(schema, value, &at)?,
                (None, Some(schema)) if schema.is_object() => self.check_at(schema, value, &at)?,
                (None, None) if !properties.is_empty() => {
                    return Err(format!("{at}: the description does not name it"));
                }
                (None, _) => {}
            }
        }
        Ok(())
    }

    /// The properties of an object and the names of the required ones, including those of `allOf`.
    fn members(&self, schema: &'a Value) -> (Vec<(&'a str, &'a Value)>, Vec<&'a str>) {
        let schema = self.named(schema);
        let own = schema["properties"].as_object().into_iter().flatten();
        let mut properties: Vec<(&str, &Value)> = own.map(|(name, schema)| (name.as_str(), schema)).collect();
        let mut required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            let (more, needed) = self.members(part);
            properties.extend(more);
            required.extend(needed);
        }
        (properties, required)
    }

    /// A random value that matches a schema; optional properties are present at random.
    pub fn example(&self, schema: &'a Value, rng: &mut SplitMix64) -> Value {
        self.example_at(schema, rng, 0)
    }

    fn example_at(&self, schema: &'a Value, rng: &mut SplitMix64, depth: usize) -> Value {
        let schema = self.named(schema);
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        for word in ["oneOf", "anyOf"] {
            if let Some(schemas) = schema[word].as_array() {
                return self.example_at(&schemas[below(rng, schemas.len())], rng, depth + 1);
            }
        }
        if let Some(names) = schema["enum"].as_array() {
            return names[below(rng, names.len())].clone();
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        let kinds = kinds(schema);
        let kind = if kinds.is_empty() { "object" } else { kinds[below(rng, kinds.len())] };
        match kind {
            "null" => Value::Null,
            "boolean" => json!(below(rng, 2) == 0),
            "integer" => json!(below(rng, 9)),
            "number" => json!(below(rng, 100) as f64 / 100.0),
            "string" => json!(STRINGS[below(rng, STRINGS.len())]),
            "array" => {
                let n = below(rng, 4);
                (0..n).map(|_| self.example_at(&schema["items"], rng, depth + 1)).collect()
            }
            _ => {
                let (properties, required) = self.members(schema);
                let mut members = Map::new();
                for (name, schema) in properties {
                    if required.contains(&name) || below(rng, 2) == 0 {
                        members.insert(name.to_owned(), self.example_at(schema, rng, depth + 1));
                    }
                }
                Value::Object(members)
            }
        }
    }
}

/// Strings with a meaning for the server, and others.
const STRINGS: [&str; 12] = [
    "delirium",
    "T:2",
    "T:4",
    "She was confused.",
    "margin",
    "random",
    "a b",
    "",
    "🧪 e\u{301}",
    "correct horse",
    "project",
    "x",
];

fn kinds(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    }
}

/// A random number below `n`.
pub fn below(rng: &mut SplitMix64, n: usize) -> usize {
    (rng.next_u64() % n.max(1) as u64) as usize
}

#[test]
fn schema_check_reports_what_is_wrong() {
    let schemas = json!({
        "Named": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "minimum": 0}}},
        "Row": {"allOf": [{"$ref": "#/Named"}, {"type": "object", "required": ["how"],
            "properties": {"how": {"enum": ["a", "b"]}, "list": {"type": ["array", "null"], "items": {"type": "string"}}}}]},
    });
    let schemas = Schemas(&schemas);
    let row = json!({"$ref": "#/Row"});
    let check = |value: Value| schemas.check(&row, &value).err().unwrap_or_default();
    assert_eq!(check(json!({"id": 1, "how": "a", "list": ["x"]})), "");
    assert_eq!(check(json!({"id": 1, "how": "a", "list": null})), "");
    assert_eq!(check(json!({"id": 1})), "$: `how` is missing");
    assert_eq!(check(json!({"id": -1, "how": "a"})), "$.id: it has to be 0 or more, but it is -1");
    assert_eq!(check(json!({"id": 1, "how": "a", "list": [1]})), "$.list[0]: it has to be [\"string\"], but it is 1");
    assert_eq!(check(json!({"id": 1, "how": "a", "more": 1})), "$.more: the description does not name it");
    let mut rng = SplitMix64::new(1);
    for _ in 0..50 {
        assert_eq!(check(schemas.example(&row, &mut rng)), "");
    }
}
