//! `canonym kb lint`: likely problems in the content of a knowledge base.

use canonym_neural::status::Stage;
use canonym_neural::system::terminology;
use std::path::PathBuf;

use canonym_core::kb::lint::{Check, Example, Findings, lint};
use serde::Serialize;

use crate::errors::usage;
use crate::output::{self, thousands};

/// Arguments of `canonym kb lint`.
#[derive(Debug, clap::Args)]
pub struct LintArguments {
    /// Knowledge base file; `starter` is the embedded one.
    #[arg(value_name = "FILE.kb")]
    file: PathBuf,
    /// Checks to run, comma-separated [default: all].
    #[arg(long, value_name = "CHECK", value_delimiter = ',')]
    only: Vec<String>,
    /// Examples per check.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    limit: u32,
    /// Exit with status 1 if there are findings; missing definitions or types in the source do not count.
    #[arg(long)]
    strict: bool,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    n_concepts: u64,
    n_names: u64,
    checks: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    check: &'static str,
    about: &'static str,
    note: bool,
    n: Option<u64>,
    examples: &'a [Example],
}

/// Runs the command.
pub fn run(arguments: &LintArguments) -> anyhow::Result<()> {
    let checks = checks(&arguments.only)?;
    let kb = terminology::open(Some(&arguments.file))?;
    let stage = Stage::start();
    let findings = lint(&kb, &checks, arguments.limit as usize);
    stage.done(format_args!("made {} checks", findings.len()));
    if arguments.json {
        let checks = findings.iter().map(row).collect();
        let (n_concepts, n_names) = (kb.n_concepts() as u64, kb.n_names() as u64);
        output::print_json(&Report { name: &kb.meta().name, n_concepts, n_names, checks })?;
    } else {
        output::print(&text(&findings))?;
    }
    let n_found: u64 = findings.iter().filter(|one| !one.check.is_note()).filter_map(|one| one.n_found).sum();
    if arguments.strict && n_found > 0 {
        let error =
            canonym_core::Error::invalid(format!("{} has findings: {}", arguments.file.display(), thousands(n_found)));
        return Err(error.with_hint("select checks with `--only`, or omit `--strict`").into());
    }
    Ok(())
}

fn checks(words: &[String]) -> anyhow::Result<Vec<Check>> {
    if words.is_empty() {
        return Ok(Check::ALL.to_vec());
    }
    let known = |word: &String| {
        Check::from_name(word.trim()).ok_or_else(|| {
            let all = Check::ALL.map(|check| check.name_and_description().0).join(", ");
            usage(format!("unknown check `{}`", word.trim()), &format!("use one of {all}"))
        })
    };
    words.iter().map(known).collect()
}

fn row(findings: &Findings) -> Row<'_> {
    let (check, about) = findings.check.name_and_description();
    Row { check, about, note: findings.check.is_note(), n: findings.n_found, examples: &findings.examples }
}

fn text(findings: &[Findings]) -> String {
    let number = |findings: &Findings| findings.n_found.map_or("unknown".to_owned(), thousands);
    let numbers: Vec<String> = findings.iter().map(number).collect();
    let width = numbers.iter().map(String::len).max().unwrap_or_default();
    let name_width =
        findings.iter().map(|findings| findings.check.name_and_description().0.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (findings, number) in findings.iter().zip(&numbers) {
        let (check, about) = findings.check.name_and_description();
        text += &format!("{number:>width$}  {check:name_width$}  {about}\n");
        for Example { ids, name, note } in &findings.examples {
            let note = if note.is_empty() { String::new() } else { format!("  [{note}]") };
            text += &format!("{:width$}    {}  {name}{note}\n", "", ids.join(", "));
        }
    }
    text
}
