//! Outputs that stay as they are: what each kind of model links, how each recipe trains, what the server answers, and files that earlier versions
//! wrote. `UPDATE_EXPECT=1 cargo test -p canonym-cli --test it frozen` rewrites the snapshots in `tests/data/frozen/`.
//!
//! Nothing here knows how the libraries are organised: the tests run the program and compare JSON.

mod formats;
mod linking;
#[cfg(unix)]
mod served;
mod training;

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Workplace;

/// The most that a measured number may differ: absolutely, or relative to itself where it is larger than 1. Processors round differently.
const TOLERANCE: f64 = 1e-3;

/// Fields that differ from run to run, or with the version of the program.
const VOLATILE: [&str; 5] = ["bytes", "fingerprint", "made_at", "seconds", "version"];

/// The widest line of a snapshot that holds a whole object or array.
const WIDTH: usize = 200;

/// The folder of inputs, snapshots and fixtures.
fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// A folder with the made-up inputs, their knowledge bases and the files of every format number.
fn place() -> Workplace {
    let place = Workplace::new();
    copy(&data().join("frozen/given"), &place.path(""));
    copy(&data().join("formats"), &place.path(""));
    for name in ["ailments", "gadgets"] {
        json_lines(&place, &["kb", "build", &format!("{name}.tsv"), "--out", &format!("{name}.kb")]);
    }
    place
}

/// Copies what is in a folder; files that end in `.gz` are decompressed.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        match name.strip_suffix(".gz") {
            Some(name) => {
                let mut bytes = Vec::new();
                flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_end(&mut bytes).unwrap();
                std::fs::write(to.join(name), bytes).unwrap();
            }
            None if path.is_dir() => copy(&path, &to.join(name)),
            None => {
                std::fs::copy(&path, to.join(name)).unwrap();
            }
        }
    }
}

/// Runs a command that has to succeed, and gives back the JSON that it prints.
fn json_lines(place: &Workplace, arguments: &[&str]) -> Value {
    let mut command = place.command(arguments);
    command.env("CANONYM_CACHE", place.path("cache")).env("CANONYM_MODELS", place.path(""));
    let output = Workplace::finish(&mut command, "");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let values = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    values.map(|value| value.unwrap_or_else(|error| panic!("{arguments:?}: {error}"))).collect()
}

/// Compares JSON with the snapshot of that name, or rewrites the snapshot where it differs and `UPDATE_EXPECT` is set.
fn check(name: &str, mut got: Value) {
    mask(&mut got);
    let path = data().join("frozen").join(format!("{name}.json"));
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|_| "null".to_owned());
    let mut differences = Vec::new();
    compare(String::new(), &serde_json::from_str(&expected).unwrap(), &got, &mut differences);
    if !differences.is_empty() && std::env::var_os("UPDATE_EXPECT").is_some() {
        return std::fs::write(path, written(&got, 0) + "\n").unwrap();
    }
    let n = differences.len();
    differences.truncate(20);
    assert!(n == 0, "{n} differences from {}\n{}", path.display(), differences.join("\n"));
}

/// Replaces the values of [`VOLATILE`] fields, not what a schema says of them.
fn mask(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_measured = match value {
                    Value::Object(parts) => parts.values().all(Value::is_number),
                    Value::Array(_) => false,
                    _ => true,
                };
                match is_measured && VOLATILE.contains(&name.as_str()) {
                    true => *value = "…".into(),
                    false => mask(value),
                }
            }
        }
        _ => {}
    }
}

/// Collects the places where two values differ by more than [`TOLERANCE`]. Whole numbers, such as offsets and counts, are compared exactly.
fn compare(at: String, expected: &Value, got: &Value, differences: &mut Vec<String>) {
    let null = Value::Null;
    match (expected, got) {
        (Value::Array(old), Value::Array(new)) => {
            for row in 0..old.len().max(new.len()) {
                compare(
                    format!("{at}/{row}"),
                    old.get(row).unwrap_or(&null),
                    new.get(row).unwrap_or(&null),
                    differences,
                );
            }
        }
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let (old, new) = (old.get(name).unwrap_or(&null), new.get(name).unwrap_or(&null));
                compare(format!("{at}/{name}"), old, new, differences);
            }
        }
        (Value::Number(old), Value::Number(new)) if old.is_f64() || new.is_f64() => {
            let (old, new) = (old.as_f64().unwrap(), new.as_f64().unwrap());
            if (old - new).abs() > TOLERANCE * old.abs().max(1.0) {
                differences.push(format!("{at}: {old} was expected, got {new}"));
            }
        }
        (old, new) if old != new => differences.push(format!("{at}: {old} was expected, got {new}")),
        _ => {}
    }
}

/// JSON with sorted keys; what fits a line stands on one, and so do lists of numbers.
fn written(value: &Value, indent: usize) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), written(value, indent + 2)));
            surrounded('{', fields.collect(), '}', indent)
        }
        Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_number) => value.to_string(),
        Value::Array(items) => {
            surrounded('[', items.iter().map(|item| written(item, indent + 2)).collect(), ']', indent)
        }
        other => other.to_string(),
    }
}

fn surrounded(open: char, items: Vec<String>, close: char, indent: usize) -> String {
    let line = format!("{open}{}{close}", items.join(", "));
    if indent + line.chars().count() <= WIDTH && !line.contains('\n') {
        return line;
    }
    let pad = " ".repeat(indent + 2);
    format!("{open}\n{pad}{}\n{}{close}", items.join(&format!(",\n{pad}")), " ".repeat(indent))
}

#[test]
fn only_measured_numbers_have_a_tolerance() {
    let differences = |old: Value, new: Value| {
        let mut differences = Vec::new();
        compare(String::new(), &old, &new, &mut differences);
        differences
    };
    let value = serde_json::json!({"a": [1, 0.5, "x"], "b": null, "c": 300.0});
    assert_eq!(differences(value.clone(), serde_json::json!({"a": [1, 0.5009, "x"], "c": 300.2})), [""; 0]);
    let other = serde_json::json!({"a": [2, 0.502, "y", true], "b": [], "c": 301.0, "d": 1});
    let places =
        differences(value, other).iter().map(|told| told.split(':').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(places, ["/a/0", "/a/1", "/a/2", "/a/3", "/b", "/c", "/d"]);
}

#[test]
fn a_snapshot_is_read_as_it_was_written() {
    let value = serde_json::json!({"b": [1.5, 2], "a": {"x": "😀\n\"", "y": [], "z": {}}, "long": ["x".repeat(WIDTH)]});
    let text = written(&value, 0);
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    assert!(
        text.starts_with("{\n  \"a\": {\"x\": ") && text.contains("\n  \"b\": [1.5,2],\n  \"long\": [\n    \"xxx"),
        "{text}"
    );
}
