//! What `ARCHITECTURE.md` says of the code holds: import rules, dependencies, forbidden names, lengths of files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The longest a source file may be, in lines.
const MAX_LINES: usize = 600;

/// Names that no code of the library has, and the reason.
const FORBIDDEN: [(&str, &str); 10] = [
    ("async fn", "the library is not asynchronous"),
    ("std::net", "the library opens no sockets"),
    ("std::time", "results do not depend on a clock"),
    ("std::process::exit", "only the program ends itself"),
    ("println!", "the library does not print"),
    ("print!(", "the library does not print"),
    ("eprintln!", "the library does not print"),
    ("eprint!(", "the library does not print"),
    ("dbg!", "the library does not print"),
    ("super::super::super", "paths that long start at `crate`"),
];

/// Crates that the library never depends on: tensors, sockets, asynchronous runtimes.
const FORBIDDEN_CRATES: [&str; 14] = [
    "burn",
    "candle-core",
    "candle-nn",
    "tch",
    "ort",
    "tract-onnx",
    "ndarray",
    "safetensors",
    "tokenizers",
    "tokio",
    "hyper",
    "axum",
    "reqwest",
    "rand",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn architecture() -> String {
    std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The first two cells of each row of the table behind the heading that starts with `heading`.
fn table(text: &str, heading: &str) -> Vec<(String, String)> {
    let section = text.split_once(&format!("# {heading}")).unwrap_or_else(|| panic!("no heading {heading}")).1;
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let mut cells = line.trim_matches('|').split(" | ").map(str::trim);
            (cells.next().unwrap().to_owned(), cells.next().unwrap().to_owned())
        })
        .collect()
}

/// The words between back quotes.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Every Rust file below `folder`, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(folder) = waiting.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The lines of a file that are code of the library: no comments, nothing behind the module of its tests.
fn code(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..tests].lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The modules of the crate that `code` names behind `crate::`; `error` for what stands at the root.
fn imports(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, start) in code.match_indices("crate::") {
        let rest = &code[at + start.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(first_word(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for letter in group.chars() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    names.insert(first_word(&item));
                    item.clear();
                    continue;
                }
                _ => {}
            }
            item.push(letter);
        }
        names.insert(first_word(&item));
    }
    names.remove("");
    names.into_iter().map(|name| if name.starts_with(char::is_uppercase) { "error".to_owned() } else { name }).collect()
}

fn first_word(text: &str) -> String {
    text.trim_start().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// The top-level module that a file of the library belongs to.
fn module_of(path: &Path, source: &Path) -> String {
    let below = path.strip_prefix(source).unwrap();
    let first = below.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.strip_suffix(".rs").map(str::to_owned).unwrap_or(first)
}

/// The crates that each `Cargo.toml` of the workspace names, those of the workspace left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    named(|section| section.ends_with("dependencies]"), |name| !name.starts_with("canonym"))
}

/// The crates that each `Cargo.toml` of the workspace names in the sections wanted, by the name of its folder.
fn named(section: impl Fn(&str) -> bool, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, BTreeSet<String>> {
    let mut manifests = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        manifests.push(entry.unwrap().path().join("Cargo.toml"));
    }
    manifests.push(root().join("fuzz/Cargo.toml"));
    manifests.push(root().join("bindings/python/Cargo.toml"));
    let mut named = BTreeMap::new();
    for manifest in manifests.iter().filter(|manifest| manifest.exists()) {
        let text = std::fs::read_to_string(manifest).unwrap();
        let mut inside = false;
        let mut crates = BTreeSet::new();
        for line in text.lines() {
            if line.starts_with('[') {
                inside = section(line);
            } else if let Some((name, _)) = line.split_once('=').filter(|_| inside)
                && wanted(name)
            {
                crates.insert(name.trim().trim_end_matches(".workspace").to_owned());
            }
        }
        let owner = manifest.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        named.insert(owner, crates);
    }
    named
}

/// The modules that each module of a crate names, and the lines that break the rules of its table.
fn wrong_imports(name: &str) -> Vec<String> {
    let folder = if name == "python" { "bindings" } else { "crates" };
    let source = root().join(folder).join(name).join("src");
    let rows: BTreeMap<String, BTreeSet<String>> = table(&architecture(), &format!("{name}\n"))
        .iter()
        .map(|(module, uses)| (module.trim_matches('`').to_owned(), quoted(uses)))
        .collect();
    let mut wrong = Vec::new();
    let mut modules = BTreeSet::new();
    for path in rust_files(&source)
        .iter()
        .filter(|path| !["src/lib.rs", "src/main.rs", "tests.rs"].iter().any(|end| path.ends_with(end)))
    {
        let module = module_of(path, &source);
        modules.insert(module.clone());
        let Some(allowed) = rows.get(&module) else {
            wrong.push(format!("module `{module}` of {name} is not in the table"));
            continue;
        };
        for used in imports(&code(path)) {
            if used != module && used != "error" && !allowed.contains(&used) {
                wrong.push(format!("{} uses `{used}`, the table does not allow it", path.display()));
            }
        }
    }
    let stale = rows.keys().filter(|module| !modules.contains(*module));
    wrong.extend(stale.map(|module| format!("the table of {name} has `{module}`, the code has not")));
    // Modules that use nothing that is left are taken away; what cannot be taken away is a cycle.
    let mut left = rows;
    while let Some(module) = left.iter().find(|(_, uses)| !uses.iter().any(|used| left.contains_key(used))) {
        let module = module.0.clone();
        left.remove(&module);
    }
    if !left.is_empty() {
        wrong.push(format!("modules of {name} use each other in a circle: {:?}", left.keys()));
    }
    wrong
}

#[test]
fn modules_import_what_the_architecture_allows() {
    let wrong: Vec<String> = ["canonym-core", "canonym-neural", "canonym-serve", "canonym", "canonym-cli", "python"]
        .into_iter()
        .flat_map(wrong_imports)
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_depend_on_what_the_architecture_allows() {
    let allowed: BTreeMap<String, BTreeSet<String>> = table(&architecture(), "Crates")
        .iter()
        .map(|(name, uses)| (name.trim_matches('`').to_owned(), quoted(uses)))
        .collect();
    let named = named(|section| section == "[dependencies]", |name| name.starts_with("canonym"));
    let wrong: Vec<String> = named
        .iter()
        .filter(|(name, uses)| allowed.get(*name) != Some(uses))
        .map(|(name, uses)| format!("{name} depends on {uses:?}, the table says {:?}", allowed.get(name)))
        .collect();
    assert!(wrong.is_empty() && allowed.len() == named.len(), "{}", wrong.join("\n"));
}

#[test]
fn library_has_no_forbidden_names() {
    let mut wrong = Vec::new();
    for path in rust_files(&root().join("crates/canonym-core/src")) {
        let code = code(&path);
        for (name, reason) in FORBIDDEN.iter().filter(|(name, _)| code.contains(name)) {
            wrong.push(format!("{} has `{name}`: {reason}", path.display()));
        }
        let words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        if words.into_iter().any(|word| word == "unsafe") && !path.ends_with("src/artifact.rs") {
            wrong.push(format!("{} has `unsafe`, which only artifact.rs may", path.display()));
        }
    }
    let crates = dependencies().remove("canonym-core").unwrap();
    wrong.extend(
        FORBIDDEN_CRATES.iter().filter(|name| crates.contains(**name)).map(|name| format!("canonym needs {name}")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_dependency_is_explained_and_used() {
    let explained: BTreeSet<String> =
        table(&architecture(), "Dependencies").iter().flat_map(|(names, _)| quoted(names)).collect();
    let named: BTreeSet<String> = dependencies().into_values().flatten().collect();
    let missing: Vec<_> = named.difference(&explained).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md does not explain {missing:?}");
    let stale: Vec<_> = explained.difference(&named).collect();
    assert!(stale.is_empty(), "ARCHITECTURE.md explains {stale:?}, which no Cargo.toml names");
}

#[test]
fn no_file_is_longer_than_the_limit() {
    let mut long = Vec::new();
    let folders = [root().join("crates"), root().join("bindings")];
    for path in folders.iter().flat_map(|folder| rust_files(folder)) {
        let n_lines = std::fs::read_to_string(&path).unwrap().lines().count();
        if n_lines > MAX_LINES {
            long.push(format!("{} has {n_lines} lines, {MAX_LINES} are allowed", path.display()));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn imports_of_groups_and_paths_are_seen() {
    let code = "use crate::kb::{A, B};\nuse crate::{Error, text::{x, y}, link};\nfn f() { crate::eval::g() }";
    let seen: Vec<String> = imports(code).into_iter().collect();
    assert_eq!(seen, ["error", "eval", "kb", "link", "text"]);
}
