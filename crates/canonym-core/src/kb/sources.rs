//! Sources of a knowledge base as a user writes them: paths with optional settings per source.

use std::path::{Path, PathBuf};

use super::compile::CompileSource;
use super::import::{ImportConfig, SourceFormat, check_config};
use crate::input::Source;
use crate::{Error, Result};

/// A source argument: `PATH`, or `format=tsv,prefix=MESH,name=mesh,version=2026@PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceArgument {
    /// The file or folder.
    pub path: PathBuf,
    format: Option<SourceFormat>,
    prefix: Option<String>,
    name: Option<String>,
    version: Option<String>,
}

impl SourceArgument {
    /// Parses an argument. An existing path is never parsed as settings.
    pub fn parse(argument: &Path) -> Result<SourceArgument> {
        let path = argument.to_path_buf();
        let mut source = SourceArgument { path, format: None, prefix: None, name: None, version: None };
        let Some((settings, path)) = argument.to_str().and_then(|text| text.split_once('@')) else { return Ok(source) };
        if !settings.contains('=') || argument.exists() {
            return Ok(source);
        }
        source.path = PathBuf::from(path);
        for setting in settings.split(',').map(str::trim) {
            match setting.split_once('=').map(|(key, value)| (key.trim(), value.trim())) {
                Some(("format", word)) => source.format = Some(named_format(word)?),
                Some(("prefix", prefix)) => source.prefix = Some(bare_prefix(prefix)),
                Some(("name", name)) => source.name = Some(name.to_owned()),
                Some(("version", version)) => source.version = Some(version.to_owned()),
                _ => {
                    let message = format!("invalid source setting `{setting}`");
                    let hint = "use format=…, prefix=…, name=… or version=…, as in prefix=MESH@mesh.tsv";
                    return Err(Error::usage(message, hint));
                }
            }
        }
        Ok(source)
    }
}

/// Parses the name of a format.
pub fn named_format(word: &str) -> Result<SourceFormat> {
    let word = word.to_ascii_lowercase();
    if let Some(format) = SourceFormat::from_name(&word) {
        return Ok(format);
    }
    Err(Error::usage(format!("unknown source format `{word}`"), format!("use one of {}", SourceFormat::list())))
}

/// A prefix without whitespace and trailing colon.
pub fn bare_prefix(prefix: &str) -> String {
    prefix.trim().trim_end_matches(':').to_owned()
}

/// Determines formats, settings and names of the sources; earlier sources have priority.
///
/// Consecutive files that belong together, such as RRF tables, form one source. A single source has a name only if one
/// is given; several sources get distinct names from their files.
pub fn resolve(
    arguments: &[SourceArgument],
    format: Option<SourceFormat>,
    import: &ImportConfig,
) -> Result<Vec<CompileSource>> {
    let mut sources: Vec<(CompileSource, &SourceArgument)> = Vec::new();
    for argument in arguments {
        let format = match argument.format.or(format) {
            Some(format) => format,
            None => SourceFormat::detect(&argument.path)?,
        };
        if let Some((last, of)) = sources.last_mut()
            && belongs_together(format)
            && last.format == format
            && (&of.prefix, &of.name, &of.version) == (&argument.prefix, &argument.name, &argument.version)
        {
            last.paths.push(argument.path.clone());
            continue;
        }
        let mut import = import.clone();
        import.prefix = argument.prefix.clone().or(import.prefix);
        let name = argument.name.clone().unwrap_or_default();
        let (paths, name_wins) = (vec![argument.path.clone()], !name.is_empty());
        let version = argument.version.clone().unwrap_or_default();
        sources.push((CompileSource { paths, format, import, name, name_wins, version }, argument));
    }
    if sources.len() > 1 {
        name_by_file(sources.iter_mut().map(|(source, _)| source).collect());
    }
    let mut sources: Vec<CompileSource> = sources.into_iter().map(|(source, _)| source).collect();
    assign_filters(&mut sources)?;
    Ok(sources)
}

fn belongs_together(format: SourceFormat) -> bool {
    matches!(format, SourceFormat::Rrf | SourceFormat::Rf2 | SourceFormat::Taxonomy)
}

/// Names unnamed sources after their files. Names that collide keep the file extension; if they still collide, a
/// number is appended.
fn name_by_file(mut sources: Vec<&mut CompileSource>) {
    let short: Vec<String> = sources
        .iter()
        .map(|source| match source.name.is_empty() {
            true => short_name(&source.paths[0]),
            false => source.name.clone(),
        })
        .collect();
    for row in 0..sources.len() {
        if !sources[row].name.is_empty() {
            continue;
        }
        let is_shared = short.iter().enumerate().any(|(other, name)| other != row && *name == short[row]);
        let path = sources[row].paths[0].clone();
        let name = if is_shared { Source::from_path(&path).file_name().to_owned() } else { short[row].clone() };
        let mut free = name.clone();
        let mut number = 2;
        while sources.iter().any(|source| source.name == free) {
            free = format!("{name}-{number}");
            number += 1;
        }
        sources[row].name = free;
    }
}

/// The name of a file without its extensions.
fn short_name(path: &Path) -> String {
    let source = Source::from_path(path);
    let name = source.file_name();
    let ending = |name: &str| name.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && end.len() <= 9);
    let mut stem = name;
    while ending(stem) {
        stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    }
    stem.to_owned()
}

/// Clears each filter for sources whose format does not support it; fails if no source supports it.
fn assign_filters(sources: &mut [CompileSource]) -> Result<()> {
    let filters: [fn(&mut ImportConfig) -> &mut Vec<String>; 4] = [
        |config| &mut config.sources,
        |config| &mut config.languages,
        |config| &mut config.semantic_types,
        |config| &mut config.term_types,
    ];
    for filter in filters {
        let mut unsupported = None;
        let mut usable = false;
        for source in sources.iter_mut() {
            let mut alone = ImportConfig::default();
            filter(&mut alone).clone_from(filter(&mut source.import));
            match check_config(source.format, &alone) {
                Ok(()) => usable = true,
                Err(error) => {
                    filter(&mut source.import).clear();
                    unsupported = unsupported.or(Some(error));
                }
            }
        }
        if let Some(error) = unsupported.filter(|_| !usable) {
            let hint = error.hint().map(str::to_owned);
            return Err(Error::Usage { message: error.to_string(), hint });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_precede_an_at_sign() {
        let parse = |text: &str| SourceArgument::parse(Path::new(text)).unwrap();
        let path = PathBuf::from("a@b.tsv");
        let plain = SourceArgument { path, format: None, prefix: None, name: None, version: None };
        assert_eq!(parse("a@b.tsv"), plain);
        let full = parse("format=tsv,prefix=MESH:,name=mesh@a@b.tsv");
        let prefix = Some("MESH".to_owned());
        assert_eq!(
            full,
            SourceArgument { format: Some(SourceFormat::Tsv), prefix, name: Some("mesh".to_owned()), ..plain }
        );
        assert_eq!(parse("version=2026@b.tsv").version.as_deref(), Some("2026"));
        assert!(SourceArgument::parse(Path::new("colour=red@b.tsv")).is_err());
        assert!(SourceArgument::parse(Path::new("format=xls@b.tsv")).is_err());
    }

    #[test]
    fn source_names_are_distinct_and_explicit_ones_win() {
        let names = |sources: &[&str]| {
            let parsed: Vec<SourceArgument> =
                sources.iter().map(|text| SourceArgument::parse(Path::new(text)).unwrap()).collect();
            let sources = resolve(&parsed, Some(SourceFormat::Tsv), &ImportConfig::default()).unwrap();
            sources.into_iter().map(|source| (source.name, source.name_wins)).collect::<Vec<_>>()
        };
        let by_file = |name: &str| (name.to_owned(), false);
        assert_eq!(names(&["clinic.tsv"]), [by_file("")]);
        assert_eq!(
            names(&["clinic.obo.gz", "ward.tsv", "clinic.tsv"]),
            ["clinic.obo", "ward", "clinic.tsv"].map(by_file)
        );
        assert_eq!(names(&["a/x.tsv", "b/x.tsv"]), ["x.tsv", "x.tsv-2"].map(by_file));
        assert_eq!(names(&["name=x@y.tsv", "x.tsv"]), [("x".to_owned(), true), by_file("x.tsv")]);
    }

    #[test]
    fn short_names_have_no_extensions() {
        let cases =
            [("a/doid-2018.obographs.json.gz", "doid-2018"), ("hp.obo", "hp"), (".obo", ".obo"), ("META", "META")];
        for (path, name) in cases {
            assert_eq!(short_name(Path::new(path)), name);
        }
    }
}
