//! `canonym kb build`: from the files of a terminology to one compiled file, with a report of what was left out.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use canonym::kb::compile::{CompileConfig, compile};
use canonym::kb::format::Meta;
use canonym::kb::import::{ImportConfig, Report, SourceFormat, check_config};

use crate::errors::{usage, wrong_usage};
use crate::output::{Sheet, bytes, thousands};
use crate::progress;

/// Arguments of `canonym kb build`.
#[derive(Debug, clap::Args)]
pub struct BuildArguments {
    /// Files (plain, .gz, .zst, .zip, .tar), or a folder of RRF tables or of an NCBI taxonomy; `-` is standard input.
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Where to write; an older file is replaced when the new one is complete.
    #[arg(long, value_name = "FILE.kb")]
    out: PathBuf,
    /// The source format: rrf, rf2, mesh-xml, mesh-ascii, obo, obographs, owl, ctd, gene-info, taxonomy, biosyn, tsv or
    /// jsonl; told from name and content where not given.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// The prefix for ids that have none, such as MESH.
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Source vocabularies to keep (RRF: SAB; OBO: namespace; NCBI genes: taxon), by commas; all where not given.
    #[arg(long = "sources", id = "sources_kept", value_name = "A,B", value_delimiter = ',')]
    sources_kept: Vec<String>,
    /// Languages to keep (RRF), such as en,de; English where not given.
    #[arg(long, value_name = "en", value_delimiter = ',')]
    languages: Vec<String>,
    /// Semantic types to keep, such as T047,T191 (MeSH, CTD: C04; taxonomy: rank); all where not given.
    #[arg(long, value_name = "T047", value_delimiter = ',')]
    semantic_types: Vec<String>,
    /// Term types to keep (RRF: TTY), such as PT,SY; all where not given.
    #[arg(long, value_name = "PT", value_delimiter = ',')]
    term_types: Vec<String>,
    /// Keep obsolete and suppressible entries.
    #[arg(long)]
    keep_obsolete: bool,
    /// Take cross-references to other terminologies as alternative ids.
    #[arg(long)]
    xrefs: bool,
    /// The name of the knowledge base; the name of the first source where not given.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What users are to be told about the licence of the content.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    licence: String,
    /// The release of the source, such as 2019AB.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    source_version: String,
}

/// Runs the command.
pub fn run(arguments: &BuildArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    check_out(arguments)?;
    let format = match arguments.format.as_deref() {
        Some(word) => named_format(word)?,
        None => detected_format(&arguments.sources)?,
    };
    let config = config(arguments, format);
    check_config(format, &config.import).map_err(wrong_usage)?;
    let bar = progress::counter("concepts", None);
    let built = compile(&arguments.sources, &config, &arguments.out, &mut |n| bar.set_position(n));
    bar.finish_and_clear();
    let (meta, report) = built.context("the knowledge base could not be built")?;
    let len = std::fs::metadata(&arguments.out).map(|metadata| metadata.len()).unwrap_or_default();
    progress::say(summary(&arguments.out, len, &meta, &report, started.elapsed()).trim_end());
    Ok(())
}

/// Refuses a destination that cannot be written, before any work is done.
fn check_out(arguments: &BuildArguments) -> anyhow::Result<()> {
    let out = &arguments.out;
    if std::fs::metadata(out).is_ok_and(|metadata| !metadata.is_file()) {
        let message = format!("{} exists and is not a regular file", out.display());
        return Err(usage(message, "give `--out` the name of a file to write"));
    }
    let folder = match out.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        return Err(usage(format!("there is no folder {}", folder.display()), "create it, or write elsewhere"));
    }
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    if real(out).is_some_and(|written| arguments.sources.iter().any(|source| real(source).as_ref() == Some(&written))) {
        let message = format!("{} is a source and cannot be written", out.display());
        return Err(usage(message, "give `--out` another name"));
    }
    Ok(())
}

fn named_format(word: &str) -> anyhow::Result<SourceFormat> {
    let word = word.to_ascii_lowercase();
    if let Some(format) = SourceFormat::from_name(&word) {
        return Ok(format);
    }
    Err(usage(format!("there is no source format `{word}`"), &format!("formats are {}", SourceFormat::list())))
}

/// The format that all sources show.
fn detected_format(sources: &[PathBuf]) -> anyhow::Result<SourceFormat> {
    let mut found: Option<(SourceFormat, &Path)> = None;
    for path in sources {
        let format = SourceFormat::detect(path)?;
        match found {
            Some((first, earlier)) if first != format => {
                let message = format!(
                    "{} looks like {}, and {} like {}",
                    earlier.display(),
                    first.name(),
                    path.display(),
                    format.name()
                );
                return Err(usage(message, "name one format with `--format`, or build two knowledge bases"));
            }
            _ => found = Some((format, path)),
        }
    }
    Ok(found.expect("one source is required").0)
}

fn config(arguments: &BuildArguments, format: SourceFormat) -> CompileConfig {
    let trimmed = |list: &[String]| -> Vec<String> {
        list.iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
    };
    let import = ImportConfig {
        prefix: arguments.prefix.as_deref().map(|prefix| prefix.trim().trim_end_matches(':').to_owned()),
        sources: trimmed(&arguments.sources_kept),
        languages: trimmed(&arguments.languages),
        semantic_types: trimmed(&arguments.semantic_types),
        term_types: trimmed(&arguments.term_types),
        keep_obsolete: arguments.keep_obsolete,
        xrefs: arguments.xrefs,
    };
    let options = options(format, &import);
    CompileConfig {
        format,
        import,
        name: arguments.name.clone(),
        version: arguments.source_version.clone(),
        licence: arguments.licence.clone(),
        options,
    }
}

/// The options that shaped the content, as the user would write them.
fn options(format: SourceFormat, import: &ImportConfig) -> Vec<String> {
    let mut options = vec![format!("--format {}", format.name())];
    if let Some(prefix) = &import.prefix {
        options.push(format!("--prefix {prefix}"));
    }
    let lists = [
        ("--sources", &import.sources),
        ("--languages", &import.languages),
        ("--semantic-types", &import.semantic_types),
        ("--term-types", &import.term_types),
    ];
    let given = lists.iter().filter(|(_, list)| !list.is_empty());
    options.extend(given.map(|(option, list)| format!("{option} {}", list.join(","))));
    let flags = [("--keep-obsolete", import.keep_obsolete), ("--xrefs", import.xrefs)];
    options.extend(flags.iter().filter(|(_, given)| *given).map(|(option, _)| (*option).to_owned()));
    options
}

fn summary(out: &Path, len: u64, meta: &Meta, report: &Report, took: Duration) -> String {
    let mut sheet = Sheet::default();
    sheet.line("built", format!("{} ({}) in {:.1} s", out.display(), bytes(len), took.as_secs_f64()));
    sheet.line("format", meta.source_format.clone());
    let mut kept = vec![
        (u64::from(meta.n_concepts), "concepts".to_owned()),
        (u64::from(meta.n_names), "names".to_owned()),
        (u64::from(meta.n_forms), "distinct names, case and punctuation aside".to_owned()),
    ];
    let lists = [(meta.types.len(), "semantic types"), (meta.sources.len(), "source vocabularies")];
    kept.extend(lists.iter().filter(|(n, _)| *n > 0).map(|(n, what)| (*n as u64, (*what).to_owned())));
    sheet.line("read", format!("{} records", thousands(report.n_read)));
    sheet.counts("kept", &kept);
    let dropped: Vec<(u64, String)> =
        report.dropped.iter().map(|((kind, reason), n)| (*n, format!("{kind}: {reason}"))).collect();
    sheet.counts("dropped", &dropped);
    if dropped.is_empty() {
        sheet.line("dropped", "nothing");
    }
    sheet.text()
}
