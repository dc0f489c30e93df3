//! `canonym kb export`: converts a compiled file to a text format that `canonym kb build` can read.

use canonym_neural::system::terminology;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use canonym_core::artifact::PackedFile;
use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::export::{ExportFormat, check_exported, export};
use canonym_core::kb::import::Report;

use crate::output::{Lines, Sheet, counted};
use crate::progress;

/// Arguments of `canonym kb export`.
#[derive(Debug, clap::Args)]
pub struct ExportArguments {
    /// Knowledge base file; `starter` is the embedded one.
    #[arg(value_name = "FILE.kb")]
    file: PathBuf,
    /// Format: jsonl (lossless), obo (no semantic types), tsv (names, types, definitions), biosyn (names only).
    #[arg(long, value_name = "F", default_value = "jsonl", value_parser = parse_format)]
    to: ExportFormat,
    /// Output file [default: standard output]. A name ending in `.gz` or `.zst` is compressed.
    #[arg(long, short, visible_alias = "output", value_name = "PATH")]
    out: Option<PathBuf>,
}

fn parse_format(word: &str) -> Result<ExportFormat, String> {
    ExportFormat::from_name(word)
        .ok_or_else(|| format!("use one of {}", ExportFormat::ALL.map(|f| f.name()).join(", ")))
}

/// Runs the command.
pub fn run(arguments: &ExportArguments) -> anyhow::Result<()> {
    let kb = terminology::open(Some(&arguments.file))?;
    let report = match &arguments.out {
        Some(path) => {
            let mut file = PackedFile::create(path)?;
            let report =
                write(&kb, arguments.to, &mut file).map_err(|error| canonym_core::Error::io("write", path, error))?;
            check_exported(&kb, arguments.to, &report)?;
            file.commit()?;
            report
        }
        None => {
            let mut out = Lines::default();
            let report = write(&kb, arguments.to, &mut out).context("cannot write to standard output")?;
            check_exported(&kb, arguments.to, &report)?;
            report
        }
    };
    progress::say(summary(&kb, arguments.to, &report).trim_end());
    Ok(())
}

fn write(kb: &KnowledgeBase, format: ExportFormat, out: &mut dyn Write) -> std::io::Result<Report> {
    let bar = progress::counter("concepts", Some(kb.n_concepts() as u64));
    let report = export(kb, format, out, &mut |n| bar.set_position(n))?;
    progress::finish(&bar, "concepts");
    out.flush()?;
    Ok(report)
}

fn summary(kb: &KnowledgeBase, format: ExportFormat, report: &Report) -> String {
    let mut sheet = Sheet::default();
    sheet.line("wrote", format!("{} as {}", counted(report.n_read, "concept"), format.name()));
    let lost: Vec<(u64, String)> =
        report.dropped.iter().map(|((kind, reason), n)| (*n, format!("{kind}: {reason}"))).collect();
    sheet.counts("lost in export", &lost);
    match &kb.meta().added_prefixes[..] {
        [] => {}
        // Exported ids have the prefix already, so `--prefix` adds no second one.
        [prefix] => sheet.line("raw ids", format!("restored by `kb build --prefix {prefix}`")),
        prefixes => sheet.line("raw ids", format!("lost: ids have several prefixes ({})", prefixes.join(", "))),
    }
    sheet.text()
}
