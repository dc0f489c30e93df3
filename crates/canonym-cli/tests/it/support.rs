//! Runs the program in a folder of its own and writes down what it said.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;

use expect_test::Expect;
use tempfile::TempDir;

/// A table of made-up concepts.
pub const SHAPES: &str = concat!(
    "S1\tCircle\tround|ring shape\tCurve\tAll points at one distance from a centre.\n",
    "S2\tSquare\tregular quadrilateral|quad\tPolygon\n",
    "S3\tCircular sector\tpie slice\tCurve\n",
    "S4\tTriangle\ttrigon|Trigon\tPolygon\n",
);

/// A folder in which the program runs.
pub struct Workplace {
    folder: TempDir,
}

impl Workplace {
    /// An empty folder.
    pub fn new() -> Workplace {
        Workplace { folder: TempDir::with_prefix("canonym-").unwrap() }
    }

    /// A folder with `shapes.tsv` and `shapes.kb`.
    pub fn with_shapes() -> Workplace {
        let place = Workplace::new();
        place.write("shapes.tsv", SHAPES);
        let output = place.run(&["kb", "build", "shapes.tsv", "--prefix", "X", "--out", "shapes.kb"], "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        place
    }

    /// Writes a file into the folder.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// The path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The names in the folder, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// The program, ready to run in the folder. The starter and the vectors of its names are kept for all tests, and made before the first
    /// one, which would report it.
    pub fn command(&self, arguments: &[&str]) -> Command {
        static CACHED: Once = Once::new();
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
        CACHED.call_once(|| {
            let mut first = Command::new(env!("CARGO_BIN_EXE_canonym"));
            first.args(["link", "--text", "fever"]).env("CANONYM_CACHE", &cache).stdin(Stdio::null());
            assert!(first.output().unwrap().status.success());
        });
        let mut command = Command::new(env!("CARGO_BIN_EXE_canonym"));
        command.args(arguments).current_dir(self.folder.path()).env("CANONYM_CACHE", cache).env_remove("CANONYM_DATA");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program with `input` on standard input.
    pub fn run(&self, arguments: &[&str], input: &str) -> Output {
        Workplace::finish(&mut self.command(arguments), input)
    }

    /// Runs a command with `input` on standard input.
    pub fn finish(command: &mut Command, input: &str) -> Output {
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A program that does not read its input closes the pipe; one that answers meanwhile is read.
            scope.spawn(move || stdin.write_all(input.as_bytes()).ok());
            child.wait_with_output().unwrap()
        })
    }

    /// Runs the program and compares status, output and messages.
    pub fn check(&self, arguments: &[&str], expected: Expect) {
        self.check_input(arguments, "", expected);
    }

    /// [`Workplace::check`] with something on standard input.
    pub fn check_input(&self, arguments: &[&str], input: &str, expected: Expect) {
        expected.assert_eq(&self.describe(&self.run(arguments, input)));
    }

    /// What the program said, with everything taken out that differs from run to run.
    pub fn describe(&self, output: &Output) -> String {
        let status = output.status.code().map_or_else(|| "killed".to_owned(), |code| code.to_string());
        let mut text = format!("status {status}\n");
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            let said = self.filter(&String::from_utf8_lossy(bytes));
            if !said.is_empty() {
                text += &format!("--- {name}\n{said}");
            }
        }
        text
    }

    /// Times, sizes of compiled files and fingerprints differ, and so does the folder.
    fn filter(&self, text: &str) -> String {
        let text = text.replace(&self.folder.path().display().to_string(), "[DIR]");
        let mut lines: String = text.split_inclusive('\n').map(filter_line).collect();
        if let Some(at) = lines.find("\nsection bytes ") {
            lines.truncate(at + 1);
            lines += "[SECTIONS]\n";
        }
        lines
    }
}

fn filter_line(line: &str) -> String {
    let end = if line.ends_with('\n') { "\n" } else { "" };
    let words = line.trim_end_matches('\n').split(' ').map(|word| {
        let is_hash = |word: &str| word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_hash(word.trim_end_matches(')')) {
            word.replace(word.trim_end_matches(')'), "[HASH]")
        } else {
            word.to_owned()
        }
    });
    let mut words: Vec<String> = words.collect();
    for place in 0..words.len() {
        let unit = words.get(place + 1).cloned().unwrap_or_default();
        if unit.starts_with("KiB") || unit.starts_with("MiB") {
            words[place] = if words[place].starts_with('(') { "([SIZE]".to_owned() } else { "[SIZE]".to_owned() };
        }
        if words[place].len() > 4 && words[place].bytes().all(|byte| byte.is_ascii_digit()) {
            words[place] = "[NUMBER]".to_owned();
        }
        if unit == "s" && words[place].parse::<f64>().is_ok() {
            words[place] = "[TIME]".to_owned();
        }
    }
    words.join(" ") + end
}

/// The bytes of a file, to be damaged.
pub fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

/// A made-up abstract that the embedded weights learned from, as JSON without mentions: those of recognition from the first, those of
/// evidence from the eighth.
pub fn everyday(id: &str, number: usize) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/everyday/train/abstract.txt");
    let texts = std::fs::read_to_string(path).unwrap();
    let marked = texts.split("\n%%\n").nth(number - 1).unwrap();
    let mut parts = marked.split("[[");
    let mut text = parts.next().unwrap().to_owned();
    for piece in parts {
        let (mark, rest) = piece.split_once("]]").unwrap();
        text += mark.split('|').next().unwrap();
        text += rest;
    }
    serde_json::json!({"id": id, "text": text, "annotations": []}).to_string() + "\n"
}
