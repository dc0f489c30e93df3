//! `canonym kb diff`: differences between two knowledge bases.

use canonym_neural::status::Stage;
use canonym_neural::system::terminology;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::diff::{Change, ChangeKind, Summary, diff};

use crate::errors;
use crate::output::{self, Lines, Sheet, counted, singular_if_one, thousands};

/// Default of `--limit` for text output.
const DEFAULT_LIMIT: u64 = 20;

/// Arguments of `canonym kb diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArguments {
    /// Older knowledge base.
    #[arg(value_name = "OLD.kb")]
    old: PathBuf,
    /// Newer knowledge base.
    #[arg(value_name = "NEW.kb")]
    new: PathBuf,
    /// Concepts to show; counts always include all [default: 20, or all with `--json`].
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print as JSON: one object, one line per concept.
    #[arg(long)]
    json: bool,
    /// Exit with status 1 if there are changes, and with 2 if the files cannot be compared.
    #[arg(long)]
    exit_code: bool,
}

/// Runs the command.
pub fn run(arguments: &DiffArguments) -> anyhow::Result<()> {
    let compared = compare(arguments);
    let n_changes = if arguments.exit_code { compared.context(errors::CannotCompare)? } else { compared? };
    status(arguments, n_changes)
}

/// Prints the differences and returns the number of changed concepts.
fn compare(arguments: &DiffArguments) -> anyhow::Result<u64> {
    let old = terminology::open(Some(&arguments.old))?;
    let new = terminology::open(Some(&arguments.new))?;
    let stage = Stage::start();
    if arguments.json {
        let mut out = Lines::default();
        let n_changes = write_json(&old, &new, arguments.limit, &mut out).context("cannot write to standard output")?;
        stage.done("compared the concepts");
        return Ok(n_changes);
    }
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    let (mut list, mut n_seen) = (String::new(), 0);
    let summary = diff(&old, &new, &mut |change| -> anyhow::Result<()> {
        n_seen += 1;
        if n_seen <= limit {
            list += &lines(change);
        }
        Ok(())
    })?;
    stage.done("compared the concepts");
    if n_seen > limit {
        list += &format!("and {} more (use `--limit` to show more)\n", thousands(n_seen - limit));
    }
    output::print(&(sheet(&old, &new, &summary) + &list))?;
    Ok(n_seen)
}

/// Fails with `--exit-code` if there are changes.
fn status(arguments: &DiffArguments, n_changes: u64) -> anyhow::Result<()> {
    if !arguments.exit_code || n_changes == 0 {
        return Ok(());
    }
    let message = format!("{} in {}", counted(n_changes, "changed concept"), arguments.new.display());
    Err(canonym_core::Error::invalid(message).with_hint("omit `--exit-code` if changes are expected").into())
}

/// Streams the JSON object, since there may be many changes.
fn write_json(
    old: &KnowledgeBase,
    new: &KnowledgeBase,
    limit: Option<u64>,
    out: &mut impl Write,
) -> std::io::Result<u64> {
    let name = |kb: &KnowledgeBase| serde_json::to_string(&kb.meta().name);
    write!(out, "{{\n\"old\": {},\n\"new\": {},\n\"changes\": [", name(old)?, name(new)?)?;
    let mut n_seen = 0;
    let summary = diff(old, new, &mut |change| -> std::io::Result<()> {
        n_seen += 1;
        if limit.is_some_and(|limit| n_seen > limit) {
            return Ok(());
        }
        out.write_all(if n_seen == 1 { b"\n" } else { b",\n" })?;
        Ok(serde_json::to_writer(&mut *out, change)?)
    })?;
    writeln!(out, "\n],\n\"n_changes\": {n_seen},\n\"n_equal\": {},", summary.n_equal)?;
    writeln!(out, "\"counts\": {}\n}}", serde_json::to_string(&summary.counts)?)?;
    out.flush()?;
    Ok(n_seen)
}

fn sheet(old: &KnowledgeBase, new: &KnowledgeBase, summary: &Summary) -> String {
    let describe = |kb: &KnowledgeBase| {
        let version = if kb.meta().version.is_empty() { String::new() } else { format!(" {}", kb.meta().version) };
        format!("{}{version}, {}", kb.meta().name, counted(kb.n_concepts() as u64, "concept"))
    };
    let mut sheet = Sheet::default();
    sheet.line("old", describe(old));
    sheet.line("new", describe(new));
    let unchanged = (summary.n_equal, "concepts unchanged");
    let counts = std::iter::once(unchanged).chain(summary.counts.iter().map(|(what, n)| (*n, what.as_str())));
    sheet.counts("counts", &counts.map(|(n, what)| (n, singular_if_one(n, what))).collect::<Vec<_>>());
    sheet.text()
}

/// A changed concept and its differences, one per line.
fn lines(change: &Change) -> String {
    let sign = match change.kind {
        ChangeKind::Added => '+',
        ChangeKind::Removed => '-',
        ChangeKind::Merged => '>',
        ChangeKind::Changed => '~',
    };
    let into = change.into.as_ref().map(|into| format!("  [now {into}]")).unwrap_or_default();
    let mut text = format!("{sign} {}  {}{into}\n", change.id, change.name);
    if let Some(old) = &change.old_name {
        text += &format!("    preferred name was {old}\n");
    }
    for list in &change.lists {
        let signed = [('+', &list.added), ('-', &list.removed)];
        for (sign, entries) in signed {
            text.extend(entries.iter().map(|entry| format!("    {sign} {}: {entry}\n", list.list)));
        }
    }
    for value in &change.values {
        for (sign, value_text) in [('+', &value.new), ('-', &value.old)] {
            if !value_text.is_empty() {
                text += &format!("    {sign} {}: {value_text}\n", value.value);
            }
        }
    }
    text
}
