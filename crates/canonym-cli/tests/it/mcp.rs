//! `canonym mcp`: messages in, answers out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::Workplace;

/// The messages with which a client introduces itself.
fn hello() -> String {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params});
    format!("{hello}\n{}\n", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

/// Sends lines to the program; its answers by ID, and those without.
fn answers(place: &Workplace, lines: &[String]) -> (BTreeMap<String, Value>, Vec<Value>) {
    let input = hello() + &lines.join("\n") + "\n";
    let output = place.run(&["mcp", "--kb", "shapes.kb", "--model", "lexical"], &input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Standard output has messages and nothing else.
    let all: Vec<Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (known, others): (Vec<Value>, Vec<Value>) = all.into_iter().partition(|answer| !answer["id"].is_null());
    (known.into_iter().map(|answer| (answer["id"].to_string(), answer)).collect(), others)
}

fn call(id: usize, name: &str, arguments: &Value) -> String {
    let params = json!({"name": name, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

/// The structured content of each call.
fn results(place: &Workplace, calls: &[(&str, Value)]) -> Vec<Value> {
    let lines: Vec<String> =
        calls.iter().enumerate().map(|(row, (name, arguments))| call(row, name, arguments)).collect();
    let (mut answers, others) = answers(place, &lines);
    assert!(others.is_empty(), "{others:?}");
    let result = |row: usize| {
        let answer = answers.remove(&row.to_string()).unwrap();
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{answer}");
        // The text is the same for clients that know no structured content.
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        text
    };
    (0..calls.len()).map(result).collect()
}

#[test]
fn tools_are_described_and_only_read() {
    let place = Workplace::with_shapes();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}).to_string();
    let (answers, _) = answers(&place, &[list, ping]);
    let hello = &answers["\"hello\""]["result"];
    assert_eq!((&hello["protocolVersion"], &hello["serverInfo"]["name"]), (&json!("2025-06-18"), &json!("canonym")));
    assert_eq!(answers["2"]["result"], json!({}));
    let tools = answers["1"]["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["annotate_text", "ground_terms", "search_concepts", "get_concept", "validate_ids"]);
    for tool in tools {
        let hints = &tool["annotations"];
        assert_eq!((&hints["readOnlyHint"], &hints["destructiveHint"]), (&json!(true), &json!(false)), "{tool}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
            assert_eq!(schema["type"], "object", "{tool}");
            assert!(schema["properties"].as_object().is_some_and(|properties| !properties.is_empty()), "{tool}");
        }
    }
}

#[test]
fn tools_return_concepts_and_say_where_there_is_none() {
    let place = Workplace::with_shapes();
    let done = results(
        &place,
        &[
            ("annotate_text", json!({"text": "No pie slices. A qüad."})),
            ("ground_terms", json!({"terms": ["ring shape", "zeppelin", "-"], "top_k": 1})),
            ("search_concepts", json!({"query": "tri"})),
            ("search_concepts", json!({"query": "\u{0}🧪"})),
            ("search_concepts", json!({"query": "circus trick"})),
            ("get_concept", json!({"id": "X:S2"})),
            ("get_concept", json!({"id": "X:S22\n'; DROP"})),
            ("validate_ids", json!({"ids": ["X:S1", " X:S3 ", "X:S9", "", "🧪\u{0}"]})),
        ],
    );
    let mention = &done[0]["mentions"][0];
    assert_eq!((&mention["text"], &mention["concept"]["id"]), (&json!("pie slices"), &json!("X:S3")));
    assert_eq!((&mention["spans"], &mention["context"]), (&json!([[3, 13]]), &json!(["negated"])));
    let rows: Vec<(&Value, &Value)> =
        done[1]["results"].as_array().unwrap().iter().map(|row| (&row["status"], &row["concept"]["id"])).collect();
    let none = (&json!("no_match"), &Value::Null);
    assert_eq!(rows, [(&json!("match"), &json!("X:S1")), none, none]);
    assert_eq!(done[2]["results"][0]["id"], "X:S4");
    assert_eq!(done[3], json!({"status": "no_match", "results": []}));
    assert_eq!(done[4], done[3]);
    assert_eq!(done[5]["concept"]["synonyms"], json!(["regular quadrilateral", "quad"]));
    assert_eq!((&done[6]["status"], &done[6]["concept"]), (&json!("no_match"), &Value::Null));
    let valid: Vec<&Value> = done[7]["results"].as_array().unwrap().iter().map(|row| &row["valid"]).collect();
    assert_eq!(valid, [true, true, false, false, false]);
    assert_eq!(done[7]["results"][2]["concept"], Value::Null);
}

/// Every ID in an answer, except those that are given back.
fn ids(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("id").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| ids(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| ids(value, found)),
        _ => {}
    }
}

#[test]
fn no_tool_returns_an_id_that_the_terminology_lacks() {
    let place = Workplace::with_shapes();
    let odd = ["", " ", "S1", "X:S1", "x:s1", "X:S5", "X:S11", "http://x/S1", "circle", "null", "🧪", "MESH:D003693"];
    let mut calls: Vec<(&str, Value)> = Vec::new();
    for text in odd {
        calls.push(("get_concept", json!({"id": text})));
        calls.push(("search_concepts", json!({"query": text})));
        calls.push(("annotate_text", json!({"text": text, "min_score": 0.0})));
    }
    calls.push(("validate_ids", json!({"ids": odd})));
    calls.push(("ground_terms", json!({"terms": odd, "min_score": 0})));
    let mut found = Vec::new();
    results(&place, &calls).iter().for_each(|result| ids(result, &mut found));
    assert!(found.len() > 10);
    found.retain(|id| !["X:S1", "X:S2", "X:S3", "X:S4"].contains(&id.as_str()));
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn wrong_arguments_are_errors_that_a_model_can_read() {
    let place = Workplace::with_shapes();
    let many: Vec<String> = (0..1001).map(|row| row.to_string()).collect();
    let cases = [
        ("annotate_text", json!({}), "missing field `text`"),
        ("annotate_text", json!({"text": 7}), "invalid type: integer `7`, expected a string"),
        ("annotate_text", json!({"text": "x", "typo": 1}), "unknown field `typo`"),
        ("annotate_text", json!({"text": "x", "top_k": 0}), "`top_k` must be between 1 and 50, not 0"),
        ("annotate_text", json!({"text": "x", "min_score": 2}), "`min_score` must be between 0 and 1, not 2"),
        ("annotate_text", json!({"text": "x".repeat((2 << 20) + 1)}), "`text` may have at most 2097152 bytes"),
        ("ground_terms", json!({"terms": []}), "`terms` must have between 1 and 1000 entries, not 0"),
        ("ground_terms", json!({"terms": many}), "`terms` must have between 1 and 1000 entries, not 1001"),
        ("ground_terms", json!({"terms": [null]}), "invalid type: null, expected a string"),
        ("search_concepts", json!({"query": "x".repeat(501)}), "`query` may have at most 500 bytes, not 501"),
        ("get_concept", json!({"id": ["X:S1"]}), "invalid type: sequence, expected a string"),
        ("validate_ids", json!({"ids": {"0": "X:S1"}}), "invalid type: map, expected a sequence"),
    ];
    let lines: Vec<String> =
        cases.iter().enumerate().map(|(row, (name, arguments, _))| call(row, name, arguments)).collect();
    let (answers, others) = answers(&place, &lines);
    assert!(others.is_empty(), "{others:?}");
    for (row, (_, _, expected)) in cases.iter().enumerate() {
        let result = &answers[&row.to_string()]["result"];
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(result["isError"] == true && text.contains(expected), "{expected}: {text}");
        assert!(text.len() < 500, "{} bytes", text.len());
    }
}

#[test]
fn messages_that_cannot_be_read_are_answered_and_the_next_one_works() {
    let place = Workplace::with_shapes();
    let deep = "[".repeat(100_000);
    let long = format!("{{\"jsonrpc\": \"2.0\", \"id\": 9, \"method\": \"{}\"}}", "x".repeat(17 << 20));
    let lines = [
        "{\"jsonrpc\": \"2.0\", \"id\": 1,".to_owned(),
        "not JSON".to_owned(),
        deep,
        long,
        "[{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": \"ping\"}]".to_owned(),
        String::new(),
        "{\"jsonrpc\": \"2.0\", \"method\": \"notifications/unheard\"}".to_owned(),
        "{\"jsonrpc\": \"2.0\", \"id\": 3, \"method\": \"tools/call\", \"params\": 7}".to_owned(),
        "{\"jsonrpc\": \"2.0\", \"id\": 4, \"method\": \"tools/explode\"}".to_owned(),
        call(5, "delete_everything", &json!({})),
        call(6, "get_concept", &json!({"id": "X:S1"})),
    ];
    let (answers, others) = answers(&place, &lines);
    let codes: Vec<i64> = others.iter().map(|answer| answer["error"]["code"].as_i64().unwrap()).collect();
    assert_eq!(codes, [-32700, -32700, -32700, -32600, -32600]);
    assert!(others.iter().all(|answer| answer["error"]["message"].as_str().is_some_and(|text| text.len() < 200)));
    for id in ["3", "4", "5"] {
        assert!(answers[id]["error"]["code"].is_number(), "{}", answers[id]);
    }
    let unknown = answers["5"]["error"]["message"].as_str().unwrap();
    assert!(unknown.starts_with("unknown tool `delete_everything`; the tools are annotate_text,"), "{unknown}");
    assert_eq!(answers["6"]["result"]["structuredContent"]["status"], "match");
}

#[test]
fn an_answered_error_is_not_logged() {
    let place = Workplace::with_shapes();
    let input = hello() + &call(1, "nonsense", &json!({})) + "\n";
    let output = place.run(&["mcp", "--kb", "shapes.kb", "--model", "lexical"], &input);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("unknown tool") && !told.contains("unknown tool"),
        "{told}"
    );
    let output =
        place.run(&["mcp", "--kb", "shapes.kb", "--model", "lexical", "--quiet"], &format!("{input}nonsense\n"));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_client_that_goes_away_ends_the_program() {
    let place = Workplace::with_shapes();
    for input in ["", "\n", "{}\n", "nonsense"] {
        let output = place.run(&["mcp", "--kb", "shapes.kb", "--model", "lexical", "--quiet"], input);
        assert!(output.status.success(), "{input:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let output = place.run(&["mcp", "--kb", "missing.kb"], "");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
}
