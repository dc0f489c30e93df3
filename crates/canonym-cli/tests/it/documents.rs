//! Runs the commands of the documents and compares their output. `UPDATE_DOCS=1 cargo test -p canonym-cli --test it documents` updates the
//! documents. Also checks every link between documents.
//!
//! Commands are in ```` ```console ```` blocks, followed by their output; a line `…` stands for any number of lines. They run in the order of
//! [`DOCUMENTS`], in one folder that contains the files shown in the guide and those of [`FILES`]. Scores may differ by [`LEEWAY`], so that a
//! refit does not have to touch every document.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::Workplace;

/// Documents with commands, in the order in which they run: pages of the guide as in its index, formats, README.
const DOCUMENTS: [&str; 32] = [
    "docs/guide/first-steps.md",
    "docs/guide/terminology.md",
    "docs/guide/map.md",
    "docs/guide/corpora.md",
    "docs/guide/tables.md",
    "docs/guide/health-records.md",
    "docs/guide/codes.md",
    "docs/guide/batch.md",
    "docs/guide/umls.md",
    "docs/guide/link-options.md",
    "docs/guide/abbreviations.md",
    "docs/guide/context.md",
    "docs/guide/explain.md",
    "docs/guide/evaluate.md",
    "docs/guide/compare.md",
    "docs/guide/train.md",
    "docs/guide/train-name-encoder.md",
    "docs/guide/train-tagger.md",
    "docs/guide/train-dual-encoder.md",
    "docs/guide/train-multitask.md",
    "docs/guide/rerank.md",
    "docs/guide/expect.md",
    "docs/guide/check-terminology.md",
    "docs/guide/serve.md",
    "docs/guide/agents.md",
    "docs/guide/gilda.md",
    "docs/guide/fhir.md",
    "docs/guide/annotate.md",
    "docs/guide/operate.md",
    "docs/guide/troubleshooting.md",
    "docs/formats.md",
    "README.md",
];

/// Largest accepted difference of a number with a decimal point.
const LEEWAY: f64 = 0.25;

/// Files shown in the guide, and the start of each.
const SHOWN: [(&str, &str); 14] = [
    ("ward.jsonl", "{\"id\":\"WARD:1\""),
    ("lab.txt", "LAB:1⇥"),
    ("messages.jsonl", "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\""),
    ("release.toml", "[[text]]"),
    ("clinic.tsv", "L1⇥"),
    ("papers.pubtator", "101|t|"),
    (
        "gold.pubtator",
        "101|t|Two weeks of dry cough.\n101|a|There were night sweats, too. Orthostatic dizziness came later.\n101⇥",
    ),
    ("notes/7.txt", "Family history: asthma"),
    ("notes/8.txt", "Past medical history:"),
    ("ward.tsv", "# Lines that begin"),
    ("codes.tsv", "D009203⇥"),
    ("icd.tsv", "B01⇥"),
    ("same.sssom.tsv", "subject_id⇥"),
    ("ward-new.obo", "[Term]"),
];

/// Files that the documents mention without showing them.
const FILES: [(&str, &str); 11] = [
    (
        "CONCEPT.csv",
        "concept_id\tconcept_name\tvocabulary_id\tstandard_concept\tconcept_code\tinvalid_reason\n\
         2000000001\tpostural dizziness\tCLINIC\tS\tL1\t\n2000000002\tdry cough\tCLINIC\tS\tL2\t\n",
    ),
    (
        "wrong.toml",
        "[[text]]\nid = \"visit\"\ntext = \"A dry cough.\"\nrequire = [{ mention = \"dry cough\", id = \"CLINIC:L3\" }]\n",
    ),
    (
        "typo.toml",
        "[[text]]\nid = \"visit\"\ntext = \"A dry cough.\"\nforbid = [{ mention = \"dry caugh\", id = \"CLINIC:L3\" }]\n",
    ),
    (
        "day.jsonl",
        "{\"id\":\"1\",\"text\":\"Dry cough at night.\"}\n{\"id\":\"2\",\"text\":\"Dry cou\n\
         {\"id\":\"1\",\"text\":\"Barking.\"}\n{\"id\":\"3\",\"text\":\"Night sweats.\"}\n",
    ),
    ("visit.txt", "She reports dry coughs and nocturnal sweating, but no dizziness when standing.\n"),
    ("bad.pubtator", "101|t|Two weeks of dry cough.\n101|a|\n101\t14\t23\tdry cough\tSymptom\tCLINIC:L2\n"),
    ("names.txt", "sweating at night\ndry couhg\nrash\n"),
    (
        "ward.obo",
        "format-version: 1.2\n\n[Term]\nid: WARD:1\nname: dizziness\nsynonym: \"lightheadedness\" EXACT []\n\n[Term]\nid: WARD:2\n\
         name: postural dizziness\nis_a: WARD:1\n\n[Term]\nid: WARD:3\nname: unproductive cough\n\n[Term]\nid: WARD:4\nname: giddiness\n\
         is_obsolete: true\n",
    ),
    (
        "dev.concept",
        "1||0|5||Disease||faint feeling||L1\n1||9|18||Disease||dry cough||L2\n1||20|32||Disease||night sweats||L3\n",
    ),
    ("clean.txt", "L1||postural dizziness\nL2||dry cough\nL3||night sweats\n"),
    ("leaky.txt", "L1||postural dizziness\nL1||faint feeling\nL2||dry cough\nL3||night sweats\n"),
];

/// Manual edits before a command: start of the command, file, appended text.
const BY_HAND: [(&str, &str, &str); 1] = [(
    "canonym convert review reviewed.xml",
    "review/102.ann",
    "T9\tSymptom 0 7\tBarking\nN9\tReference T9 CLINIC:L2\tdry cough\n",
)];

/// A command of a document and its shown output.
#[derive(Debug, PartialEq)]
struct Said {
    /// The command, without the prompt.
    command: String,
    /// Lines of the output in the document.
    lines: std::ops::Range<usize>,
}

#[test]
fn the_documents_show_what_the_program_says() {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let place = Workplace::new();
    prepare(&place);
    let mut wrong = Vec::new();
    for name in DOCUMENTS {
        let path = root().join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mut new: Vec<String> = Vec::new();
        let mut done = 0;
        for said in commands(&lines) {
            let old = &lines[said.lines.clone()];
            let got = run(&place, &said.command, old);
            let Some(got) = got else { continue };
            if update {
                let place = || format!("{name}:{}: `{}`", said.lines.start, said.command);
                let shown = renew(old, &got).unwrap_or_else(|missing| {
                    wrong.push(format!("{}: nothing like {missing:?} in\n{}", place(), got.join("\n")));
                    old.iter().map(|line| (*line).to_owned()).collect()
                });
                new.extend(lines[done..said.lines.start].iter().map(|line| (*line).to_owned()));
                new.extend(shown);
                done = said.lines.end;
            } else if !agrees(old, &got) {
                let (old, got) = (old.join("\n"), got.join("\n"));
                wrong.push(format!(
                    "{name}:{}: `{}`\n--- shown\n{old}\n--- said\n{got}",
                    said.lines.start, said.command
                ));
            }
        }
        new.extend(lines[done..].iter().map(|line| (*line).to_owned()));
        if update {
            std::fs::write(&path, new.join("\n") + "\n").unwrap();
        }
    }
    let hint = "UPDATE_DOCS=1 cargo test -p canonym-cli --test it documents";
    assert!(wrong.is_empty(), "`{hint}` writes what the program says\n{}", wrong.join("\n\n"));
}

#[test]
fn example_and_manuals_show_the_same_program() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let example = read("crates/canonym/examples/link.rs");
    let program = &example[example.find("use canonym").unwrap()..];
    for path in ["README.md", "crates/canonym/README.md"] {
        assert!(
            read(path).contains(&format!("```rust\n{program}```")),
            "{path} shows another program than the example"
        );
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes the input files of the commands.
fn prepare(place: &Workplace) {
    let pages = DOCUMENTS.iter().filter(|name| name.starts_with("docs/guide/"));
    let guide: String = pages.map(|name| std::fs::read_to_string(root().join(name)).unwrap()).collect();
    std::fs::create_dir(place.path("notes")).unwrap();
    for (name, start) in SHOWN {
        let begin = format!("\n```text\n{start}");
        let at = guide.find(&begin).unwrap_or_else(|| panic!("the guide shows no {name}")) + "\n```text\n".len();
        let length = guide[at..].find("```").unwrap();
        place.write(name, guide[at..at + length].replace('⇥', "\t"));
    }
    for (name, text) in FILES {
        place.write(name, text);
    }
    // The other system misses the last mention.
    let gold = std::fs::read_to_string(place.path("gold.pubtator")).unwrap();
    let (theirs, _) = gold.trim_end().rsplit_once('\n').unwrap();
    place.write("theirs.pubtator", format!("{theirs}\n"));
    // The release before that of the guide: night sweats had no synonym yet.
    let clinic = std::fs::read_to_string(place.path("clinic.tsv")).unwrap();
    place.write("old.tsv", clinic.replace("\tnocturnal sweating\t", "\t\t"));
    let built = place.run(&["kb", "build", "old.tsv", "--prefix", "CLINIC", "--out", "old.kb"], "");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    for name in ["clean", "leaky"] {
        let (source, out) = (format!("{name}.txt"), format!("{name}.kb"));
        let built = place.run(&["kb", "build", &source, "--format", "biosyn", "--out", &out], "");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    }
}

/// Every command of a document with its output.
fn commands(lines: &[&str]) -> Vec<Said> {
    let mut found: Vec<Said> = Vec::new();
    let mut inside = false;
    let mut shell = "";
    for (row, line) in lines.iter().enumerate() {
        if let Some(language) = line.strip_prefix("```") {
            inside = language == "console";
            let is_shell = language == "sh";
            shell = if is_shell { lines[row + 1] } else { shell };
            // The example of README.md has its command in a block of its own.
            if language == "text" && row > 0 && lines[row - 1] == "<!-- example -->" {
                let length = lines[row + 1..].iter().position(|line| *line == "```").unwrap();
                let command = shell.replace("cargo run --release --", "canonym");
                found.push(Said { command, lines: row + 1..row + 1 + length });
            }
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            found.push(Said { command: command.to_owned(), lines: row + 1..row + 1 });
        } else if let Some(last) = found.last_mut().filter(|_| inside) {
            last.lines.end = row + 1;
        }
    }
    found
}

/// Output of a command without trailing blank lines; `None` if it cannot run here.
fn run(place: &Workplace, command: &str, shown: &[&str]) -> Option<Vec<String>> {
    let first = command.split(' ').next().unwrap_or_default();
    let has_jq = || Command::new("jq").arg("--version").stdout(Stdio::null()).status().is_ok();
    let runs = ["canonym", "cat", "echo"].contains(&first) && !command.starts_with("canonym serve") || first == "jq";
    if !runs || command.contains("jq ") && !has_jq() {
        return None;
    }
    for (_, name, text) in BY_HAND.iter().filter(|(before, _, _)| command.starts_with(before)) {
        let written = std::fs::read_to_string(place.path(name)).unwrap();
        place.write(name, written + text);
    }
    let mut command = command.to_owned();
    // On a terminal the output is a table.
    let elsewhere = ["--to ", "--output ", "--resume ", " -o ", " | ", " > "];
    if command.starts_with("canonym link ") && !elsewhere.iter().any(|option| command.contains(option)) {
        command += " --to table";
    }
    let program = Path::new(env!("CARGO_BIN_EXE_canonym"));
    let mut paths = vec![program.parent().unwrap().to_owned()];
    paths.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("({command}) 2>&1")]).current_dir(place.path(""));
    shell.env("PATH", std::env::join_paths(paths).unwrap()).stdin(Stdio::null());
    shell.env("CANONYM_CACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    let text = String::from_utf8(shell.output().unwrap().stdout).unwrap();
    let mut lines: Vec<String> = text.lines().map(timeless).collect();
    if shown.iter().any(|line| line.contains('⇥')) {
        lines.iter_mut().for_each(|line| *line = line.replace('\t', "⇥"));
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    Some(lines)
}

/// A line with its time replaced by zero.
fn timeless(line: &str) -> String {
    match line.strip_suffix(" s").and_then(|line| line.rsplit_once(" in ")) {
        Some((start, seconds)) if seconds.parse::<f64>().is_ok() => format!("{start} in 0.0 s"),
        _ => line.to_owned(),
    }
}

/// The parts of the shown output between lines `…`, without trailing blank lines; the first or last part is empty if the output begins or ends with
/// such a line.
fn parts<'a>(shown: &[&'a str]) -> Vec<Vec<&'a str>> {
    let n = shown.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    shown[..n].split(|line| *line == "…").map(<[&str]>::to_vec).collect()
}

/// Position of each shown part in the actual output, given a comparison of lines.
fn places<'a>(
    parts: &[Vec<&'a str>],
    got: &[String],
    alike: impl Fn(&str, &str) -> bool,
) -> Result<Vec<usize>, &'a str> {
    let fits = |part: &[&str], at: usize| {
        at + part.len() <= got.len() && part.iter().zip(&got[at..]).all(|(one, other)| alike(one, other))
    };
    let mut places = Vec::new();
    let mut at = 0;
    for (row, part) in parts.iter().enumerate() {
        let (is_first, is_last) = (row == 0, row + 1 == parts.len());
        let found = match (is_first, is_last) {
            (true, true) => (part.len() == got.len() && fits(part, 0)).then_some(0),
            (true, false) => fits(part, 0).then_some(0),
            (false, true) => got.len().checked_sub(part.len()).filter(|start| *start >= at && fits(part, *start)),
            (false, false) => (at..=got.len()).find(|start| fits(part, *start)),
        };
        // After the last `…` more output may follow.
        let found =
            found.or_else(|| (is_last && !is_first).then(|| (at..=got.len()).find(|start| fits(part, *start)))?);
        let start = found.ok_or_else(|| part.first().copied().unwrap_or_default())?;
        at = start + part.len();
        places.push(start);
    }
    Ok(places)
}

/// Whether the actual output matches the shown one.
fn agrees(shown: &[&str], got: &[String]) -> bool {
    places(&parts(shown), got, |one, other| {
        let (one, other) = (pieces(one), pieces(other));
        one.len() == other.len() && one.iter().zip(&other).all(|(one, other)| is_near(one, other))
    })
    .is_ok()
}

/// The shown output, updated; with lines left out as before. On failure, the first line that matches nothing.
fn renew(shown: &[&str], got: &[String]) -> Result<Vec<String>, String> {
    let parts = parts(shown);
    let n_blank = shown.len() - shown.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    let mut new = Vec::new();
    if parts.len() == 1 {
        new.extend(got.iter().cloned());
    } else {
        let places = places(&parts, got, |one, other| outline(one) == outline(other))?;
        for (row, (part, at)) in parts.iter().zip(places).enumerate() {
            if row > 0 {
                new.push("…".to_owned());
            }
            new.extend(got[at..at + part.len()].iter().cloned());
        }
    }
    new.extend((0..n_blank).map(|_| String::new()));
    Ok(new)
}

/// Signed numbers and the text between them. Runs of blanks, which depend on column widths, become one.
fn pieces(line: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let mut last = None;
    let letters: Vec<char> = line.trim().chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let is_digit = |at: usize| letters.get(at).is_some_and(char::is_ascii_digit);
        let is_sign = matches!(letter, '+' | '-') && is_digit(at + 1) && (at == 0 || letters[at - 1] == ' ');
        let is_point = matches!(letter, '.' | ',') && is_digit(at + 1) && at > 0 && is_digit(at - 1);
        let kind = (is_digit(at) || is_sign || is_point, letter.is_whitespace());
        if last == Some(kind) {
            if !kind.1 {
                pieces.last_mut().expect("there is a piece before").push(*letter);
            }
        } else {
            pieces.push(if kind.1 { " ".to_owned() } else { letter.to_string() });
        }
        last = Some(kind);
    }
    pieces
}

/// A line without numbers and blanks.
fn outline(line: &str) -> String {
    pieces(line)
        .into_iter()
        .filter(|piece| piece != " " && !piece.contains(|letter: char| letter.is_ascii_digit()))
        .collect()
}

/// Whether two pieces are equal, or decimal numbers that differ by at most [`LEEWAY`].
fn is_near(one: &str, other: &str) -> bool {
    let number = |piece: &str| piece.parse::<f64>().ok().filter(|_| piece.contains('.'));
    one == other || number(one).zip(number(other)).is_some_and(|(one, other)| (one - other).abs() <= LEEWAY)
}

#[test]
fn links_between_documents_lead_somewhere() {
    let documents = markdown(&root());
    assert!(documents.len() > 30, "{documents:?}");
    let mut broken = Vec::new();
    for path in &documents {
        let text = prose(&std::fs::read_to_string(path).unwrap());
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if target.contains("://") {
                continue;
            }
            let page = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let leads = page.exists() && (anchor.is_empty() || anchors(&page).iter().any(|heading| heading == anchor));
            if !leads {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

/// Every Markdown file of the repository, outside of build outputs and dependencies.
fn markdown(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "runs", "node_modules", "shared"].contains(&name.as_str()) {
                found.extend(markdown(&path));
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// A document without its code blocks.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let mut kept = String::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !is_code && !is_fence {
            kept.push_str(line);
            kept.push('\n');
        }
        is_code ^= is_fence;
    }
    kept
}

/// Anchors of the headings of a document, as GitHub makes them.
fn anchors(path: &Path) -> Vec<String> {
    let text = prose(&std::fs::read_to_string(path).unwrap_or_default());
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let slug = |heading: &str| -> String {
        let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.flat_map(char::to_lowercase).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    headings.map(slug).collect()
}

#[test]
fn outputs_are_compared_and_renewed_around_what_is_left_out() {
    let got: Vec<String> = ["built  3 names", "a  0.51", "b", "c  0.40"].map(str::to_owned).to_vec();
    assert!(agrees(&["built 3 names", "…", "c  0.44", ""], &got));
    assert!(!agrees(&["built 4 names", "…"], &got));
    assert!(!agrees(&["built 3 names", "…", "c  0.90"], &got));
    assert_eq!(renew(&["built 4 names", "…", "c  0.90", ""], &got).unwrap(), ["built  3 names", "…", "c  0.40", ""]);
    assert_eq!(renew(&["x", ""], &got).unwrap(), ["built  3 names", "a  0.51", "b", "c  0.40", ""]);
    assert_eq!(renew(&["…", "d  0.9"], &got).unwrap_err(), "d  0.9");
}
