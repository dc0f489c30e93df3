//! From source files to a compiled knowledge base in one call.

use std::io::Read;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

use super::builder::KnowledgeBaseBuilder;
use super::format::{Meta, SourceFile};
use super::import::{ImportConfig, Report, SourceFormat, default_prefixes, import};
use crate::{Error, Result};

/// What to compile, and what to write beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileConfig {
    /// The source format.
    pub format: SourceFormat,
    /// What to keep.
    pub import: ImportConfig,
    /// The short name; the first file's stem where `None`.
    pub name: Option<String>,
    /// The release, where the user names one.
    pub version: String,
    /// What users are to be told about the licence.
    pub licence: String,
    /// The options as the user would write them.
    pub options: Vec<String>,
}

/// Imports `sources` and writes the knowledge base to `out`; `progress` hears the number of records now and then.
pub fn compile(
    sources: &[PathBuf],
    config: &CompileConfig,
    out: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<(Meta, Report)> {
    let mut builder = KnowledgeBaseBuilder::new();
    let mut report = Report::default();
    let mut n_records = 0u64;
    import(config.format, sources, &config.import, &mut report, &mut |record| {
        n_records += 1;
        if n_records.is_multiple_of(4096) {
            progress(n_records);
        }
        builder.add(record)
    })?;
    progress(n_records);
    if builder.n_names() == 0 {
        return Err(nothing_left(&report));
    }
    let (meta, built) = builder.write(describe(sources, config)?, out)?;
    for ((kind, reason), n) in built.dropped {
        report.drop_many(&kind, &reason, n);
    }
    Ok((meta, report))
}

/// What was dropped is all that tells why nothing is left.
fn nothing_left(report: &Report) -> Error {
    let drops: Vec<String> =
        report.dropped.iter().map(|((kind, reason), n)| format!("{n} × {kind}: {reason}")).collect();
    let error = Error::invalid("no concept with a name is left to compile");
    match drops.is_empty() {
        true => error.with_hint("check the source format and the filters"),
        false => error.with_hint(format!("check the source format and the filters; dropped: {}", drops.join(", "))),
    }
}

fn describe(sources: &[PathBuf], config: &CompileConfig) -> Result<Meta> {
    let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let added_prefixes = match &config.import.prefix {
        Some(prefix) => vec![prefix.clone()],
        None => default_prefixes(config.format).iter().map(|&prefix| prefix.to_owned()).collect(),
    };
    let mut files = Vec::new();
    for path in sources.iter().filter(|path| path.as_os_str() != "-" && path.is_file()) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        files.push(SourceFile { name, xxh3: hash_file(path)? });
    }
    Ok(Meta {
        name: config.name.clone().or_else(|| sources.first().and_then(stem)).unwrap_or_default(),
        source_format: config.format.name().to_owned(),
        files,
        version: config.version.clone(),
        licence: config.licence.clone(),
        added_prefixes,
        options: config.options.clone(),
        ..Meta::default()
    })
}

/// The XXH3-128 of the bytes of a file, in hexadecimal.
pub fn hash_file(path: &Path) -> Result<String> {
    let mut file = std::fs::File::open(path).map_err(|source| Error::io("open", path, source))?;
    let mut hasher = Xxh3::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(|source| Error::io("read", path, source))? {
            0 => return Ok(format!("{:032x}", hasher.digest128())),
            n => hasher.update(&buffer[..n]),
        }
    }
}
