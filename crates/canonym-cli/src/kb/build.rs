//! `canonym kb build`: compiles the files of a terminology into one file, and reports merged and dropped rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use canonym_core::kb::BuildStep;
use canonym_core::kb::build::{BuildConfig, WITH_STARTER, build, code_system};
use canonym_core::kb::format::Meta;
use canonym_core::kb::import::{ImportConfig, Report};
use canonym_core::kb::sources::{SourceArgument, bare_prefix, named_format};

use crate::output::{Sheet, bytes, counted, singular_if_one};
use crate::progress;
use canonym_neural::status;
use canonym_neural::system::terminology::STARTER_TABLE;
use indicatif::ProgressBar;

/// Arguments of `canonym kb build`.
#[derive(Debug, clap::Args)]
pub struct BuildArguments {
    /// Files (plain, .gz, .zst, .zip, .tar), or a folder with RRF, RF2 or NCBI Taxonomy tables; `-` is standard input.
    ///
    /// Several sources are merged; for equal ids, the first source provides the preferred name and the definition.
    /// Settings for one source precede an `@`: `prefix=MESH,name=mesh,version=2026,format=tsv@mesh.tsv`. `name` is
    /// the source vocabulary of its concepts if the format has none [default: the file name], `version` its release.
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Output file; an existing file is replaced once the new one is complete.
    #[arg(long, value_name = "FILE.kb")]
    out: PathBuf,
    /// Source format: rrf, rf2, mesh-xml, mesh-ascii, obo, obographs, owl, ctd, gene-info, taxonomy, biosyn, tsv or
    /// jsonl [default: detected from name and content].
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
    /// Prefix for ids without one, such as MESH.
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Source vocabularies to keep, comma-separated (RRF: SAB; OBO and OWL: namespace; NCBI Gene: taxon) [default:
    /// all].
    #[arg(long = "sources", id = "sources_kept", value_name = "A,B", value_delimiter = ',')]
    sources_kept: Vec<String>,
    /// Languages to keep (RRF, RF2, OWL), such as en,de; for RF2 also en-US, en-GB or the id of a language reference
    /// set [default: en].
    #[arg(long, value_name = "LANGUAGE,…", value_delimiter = ',')]
    languages: Vec<String>,
    /// Semantic types to keep, such as T047,T191 (RF2: disorder; MeSH, CTD: C04; taxonomy: rank) [default: all].
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',')]
    semantic_types: Vec<String>,
    /// Term types to keep (RRF: TTY), such as PT,SY [default: all].
    #[arg(long, value_name = "TERM_TYPE,…", value_delimiter = ',')]
    term_types: Vec<String>,
    /// Keep obsolete and suppressible entries.
    #[arg(long)]
    keep_obsolete: bool,
    /// Also use cross-references as alternative ids for lookup and joins.
    #[arg(long)]
    xrefs: bool,
    /// Add SSSOM mappings (TSV) as cross-references of the concepts that they are about.
    #[arg(long, value_name = "MAPPING.sssom.tsv")]
    xrefs_from: Vec<PathBuf>,
    /// URI and release of a code system: PREFIX=URI, or PREFIX=URI|VERSION [default: the URI that FHIR has for the prefix,
    /// and the release in the source].
    #[arg(long, value_name = "PREFIX=URI|VERSION")]
    code_system: Vec<String>,
    /// Merge concepts of different sources that these SSSOM mappings (TSV) declare equivalent, also through ids of no
    /// source. The id of the first source is kept; the others become alternative ids.
    #[arg(long, value_name = "MAPPING.sssom.tsv")]
    join: Vec<PathBuf>,
    /// Predicates of mappings to use, comma-separated [default: skos:exactMatch].
    #[arg(long, value_name = "PREDICATE", value_delimiter = ',', requires = "join")]
    join_predicates: Vec<String>,
    /// Add names of the embedded starter (abbreviations, brand names, lay terms) as exact synonyms of concepts with the
    /// same id or alternative id, such as MESH:D005334. Names of other concepts are not added.
    #[arg(long)]
    with_starter: bool,
    /// Keep names as written. By default, `Varicella [chickenpox]` also gets the names `Varicella` and `chickenpox`, and `Asthma,
    /// unspecified` the name `Asthma`, unless another concept has them.
    #[arg(long)]
    names_as_written: bool,
    /// Name of the knowledge base [default: the name of the first source].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Licence of the content, shown to users.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    licence: String,
    /// Release of the source, such as 2019AB.
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    source_version: String,
}

/// Runs the command.
pub fn run(arguments: &BuildArguments) -> anyhow::Result<()> {
    let started = Instant::now();
    let config = config(arguments)?;
    let bar = progress::counter("concepts", None);
    let mut step = None;
    let mut progress = |now| {
        let what = match now {
            BuildStep::Read(n) => {
                bar.set_position(n);
                return Ok(());
            }
            BuildStep::Sort => {
                progress::finish(&bar, "concepts read");
                "sorting concepts and names"
            }
            BuildStep::Index => "indexing names",
            BuildStep::Write => "writing the file",
        };
        drop(step.take());
        step = Some(Working::on(what));
        Ok(())
    };
    let built = build(&config, &arguments.out, &mut progress);
    bar.finish_and_clear();
    drop(step);
    let (meta, report) = built?;
    let len = std::fs::metadata(&arguments.out).map(|metadata| metadata.len()).unwrap_or_default();
    progress::say(summary(&arguments.out, len, &meta, &report, started.elapsed()).trim_end());
    Ok(())
}

/// A step with a spinner; when it ends, `-v` tells its time.
struct Working {
    what: &'static str,
    spinner: ProgressBar,
}

impl Working {
    fn on(what: &'static str) -> Working {
        Working { what, spinner: progress::spinner(what) }
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.spinner.finish_and_clear();
        tracing::info!("{}: {}", self.what, status::exact(self.spinner.elapsed()));
    }
}

/// Import settings for all sources.
fn import_config(arguments: &BuildArguments) -> ImportConfig {
    ImportConfig {
        prefix: arguments.prefix.as_deref().map(bare_prefix),
        sources: trimmed(&arguments.sources_kept),
        languages: trimmed(&arguments.languages),
        semantic_types: trimmed(&arguments.semantic_types),
        term_types: trimmed(&arguments.term_types),
        keep_obsolete: arguments.keep_obsolete,
        xrefs: arguments.xrefs,
    }
}

fn trimmed(list: &[String]) -> Vec<String> {
    list.iter().map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

fn config(arguments: &BuildArguments) -> anyhow::Result<BuildConfig> {
    let sources = arguments.sources.iter().map(|source| SourceArgument::parse(source));
    Ok(BuildConfig {
        sources: sources.collect::<canonym_core::Result<_>>()?,
        format: arguments.format.as_deref().map(named_format).transpose()?,
        import: import_config(arguments),
        mappings: arguments.join.clone(),
        predicates: trimmed(&arguments.join_predicates),
        starter: arguments.with_starter.then(|| STARTER_TABLE.as_bytes().to_vec()),
        name: arguments.name.clone(),
        licence: arguments.licence.clone(),
        version: arguments.source_version.clone(),
        xrefs_from: arguments.xrefs_from.clone(),
        code_systems: arguments
            .code_system
            .iter()
            .map(|text| code_system(text))
            .collect::<canonym_core::Result<_>>()?,
        names_as_written: arguments.names_as_written,
    })
}

fn summary(out: &Path, len: u64, meta: &Meta, report: &Report, took: Duration) -> String {
    let mut sheet = Sheet::default();
    sheet.line("built", format!("{} ({}) in {:.1} s", out.display(), bytes(len), took.as_secs_f64()));
    sheet.line("format", meta.source_format.clone());
    let mut kept = vec![
        (u64::from(meta.n_concepts), "concepts".to_owned()),
        (u64::from(meta.n_names), "names".to_owned()),
        (u64::from(meta.n_forms), "distinct names, ignoring case and punctuation".to_owned()),
    ];
    let lists = [(meta.types.len(), "semantic types"), (meta.sources.len(), "source vocabularies")];
    kept.extend(lists.iter().filter(|(n, _)| *n > 0).map(|(n, what)| (*n as u64, (*what).to_owned())));
    sheet.line("read", counted(report.n_read, "record"));
    let kept = kept.iter().map(|(n, what)| (*n, singular_if_one(*n, what)));
    sheet.counts("kept", &kept.collect::<Vec<_>>());
    if meta.options.iter().any(|option| option.starts_with("--join ")) {
        sheet.line("joined", format!("{} with an equivalent one", counted(report.n_joined, "concept")));
    }
    if meta.options.iter().any(|option| option == WITH_STARTER) {
        sheet.line("starter", starter_line(report));
    }
    if report.n_variants > 0 {
        let added = counted(report.n_variants, "name");
        sheet.line("variants", format!("{added} added without words in brackets or words such as `unspecified`"));
    }
    let rows = |counts: &BTreeMap<(String, String), u64>| -> Vec<(u64, String)> {
        counts.iter().map(|(what, n)| (*n, format!("{}: {}{}", what.0, what.1, report.first_of(what)))).collect()
    };
    sheet.counts("merged", &rows(&report.merged));
    let dropped = rows(&report.dropped);
    sheet.counts("dropped", &dropped);
    if dropped.is_empty() {
        sheet.line("dropped", "nothing");
    }
    sheet.text()
}

fn starter_line(report: &Report) -> String {
    match (report.n_added_names, report.n_supplemented) {
        (0, _) => {
            "no names added; the starter uses ids such as MESH:D005334 (`--prefix MESH` adds the prefix)".to_owned()
        }
        (n_names, n_concepts) => {
            format!("{} added to {}", counted(n_names, "name"), counted(n_concepts, "concept"))
        }
    }
}
