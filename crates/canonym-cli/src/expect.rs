//! `canonym expect`: release tests for linking.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use canonym_core::corpus::{Annotation, CandidateRecord};
use canonym_core::eval::expect::{Expectations, Failure, Fault, Step, check_denied, check_names, check_text};
use canonym_core::input::Input;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::text::Document;
use canonym_neural::system::linked::{System, SystemConfig};
use canonym_neural::system::{Models, NameLinker, terminology};
use serde::Serialize;

use crate::output::{self, counted};
use crate::{options, progress};

/// Arguments of `canonym expect`.
#[derive(Debug, clap::Args)]
pub struct ExpectArguments {
    /// Files of expectations (TOML).
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compiled knowledge base [default: the embedded `starter`].
    #[arg(long, value_name = "FILE.kb")]
    kb: Option<PathBuf>,
    /// Model: `default`, `lexical`, or a bundle.
    #[arg(long, value_name = "BUNDLE", default_value = "default")]
    model: String,
    /// Leave mentions below this probability unlinked.
    #[arg(long, value_name = "P", value_parser = options::parse_probability)]
    min_score: Option<f32>,
    /// Print as JSON.
    #[arg(long)]
    json: bool,
    /// Number of threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// The result as JSON.
#[derive(Serialize)]
struct Report<'a> {
    terminology: &'a str,
    kb: String,
    model: String,
    version: &'static str,
    n_expectations: usize,
    n_failed: usize,
    n_for_other_terminologies: usize,
    failures: Vec<InFile<'a>>,
}

#[derive(Serialize)]
struct InFile<'a> {
    file: String,
    #[serde(flatten)]
    failure: &'a Failure,
    message: String,
}

/// Runs the command; fails if an expectation does not hold.
pub fn run(arguments: &ExpectArguments) -> anyhow::Result<()> {
    let texts = arguments.files.iter().map(|file| read(file)).collect::<anyhow::Result<Vec<String>>>()?;
    let files = arguments.files.iter().zip(&texts);
    let mut all = files.clone().map(|(file, text)| parse(file, text)).collect::<anyhow::Result<Vec<Expectations>>>()?;
    options::use_threads(arguments.threads)?;
    let models = Models::named(&arguments.model)?;
    let model = models.fingerprint();
    let kb = terminology::open_for(arguments.kb.as_deref(), &arguments.model)?;
    let name = kb.meta().name.clone();
    let written = |id: &str| kb.find(id).map(|concept| terminology::shown_id(&kb, concept, false));
    for ((file, text), expectations) in files.zip(&all) {
        if let Some(fault) = expectations.unknown(&name, written) {
            return Err(error_of(file, text, fault));
        }
    }
    let n_for_others: usize = all.iter().map(|expectations| expectations.n_for_others(&name)).sum();
    all.iter_mut().for_each(|expectations| expectations.retain(&name));
    let n: usize = all.iter().map(Expectations::n).sum();
    if n == 0 {
        let error = canonym_core::Error::invalid(format!("no expectations for the terminology `{name}`"));
        let hint = "add texts or names, or correct their `terminology`; `canonym kb info` prints the name";
        return Err(error.with_hint(hint).into());
    }
    let mut failures: Vec<(&Path, Failure)> = Vec::new();
    for (file, expectations) in arguments.files.iter().zip(&all) {
        let found = check(expectations, &models, &kb, arguments)?;
        failures.extend(found.into_iter().map(|failure| (file.as_path(), failure)));
    }
    if arguments.json {
        let in_file = |(file, failure): &'_ (&Path, Failure)| (file.display().to_string(), failure.to_string());
        let rows = failures.iter().map(|row| {
            let (file, message) = in_file(row);
            InFile { file, failure: &row.1, message }
        });
        output::print_json(&Report {
            terminology: &name,
            kb: format!("{:032x}", kb.container().fingerprint()),
            model,
            version: env!("CARGO_PKG_VERSION"),
            n_expectations: n,
            n_failed: failures.len(),
            n_for_other_terminologies: n_for_others,
            failures: rows.collect(),
        })?;
    } else {
        let lines = failures.iter().map(|(file, failure)| format!("{}: {failure}\n", file.display()));
        output::print(&lines.collect::<String>())?;
    }
    if n_for_others > 0 {
        let what = counted(n_for_others as u64, "text or list");
        progress::say(&format!("skipped {what} for other terminologies than {name}"));
    }
    if failures.is_empty() {
        progress::say(&format!("{} passed on {name}", counted(n as u64, "expectation")));
        return Ok(());
    }
    let failed = counted(failures.len() as u64, "failure");
    let message = format!("{failed} in {} on {name}", counted(n as u64, "expectation"));
    let hint = "see what came close with `canonym link --explain`, or correct the expectations";
    Err(canonym_core::Error::invalid(message).with_hint(hint).into())
}

fn read(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut Input::open(file)?, &mut text)
        .with_context(|| format!("cannot read {}", file.display()))?;
    Ok(text)
}

fn parse(file: &Path, text: &str) -> anyhow::Result<Expectations> {
    let expectations: Expectations = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        canonym_core::Error::parse(file, line_at(text, start), error.message().replace('\n', " "))
            .with_hint("a file has tables `[[text]]` and `[[names]]`; see `docs/guide/expect.md`")
    })?;
    match expectations.fault() {
        None => Ok(expectations),
        Some(fault) => Err(error_of(file, text, fault)),
    }
}

/// The line of the byte at `at`, from 1.
fn line_at(text: &str, at: usize) -> u64 {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() as u64 + 1
}

/// An expectation that can never fail, with its line.
fn error_of(file: &Path, text: &str, fault: Fault) -> anyhow::Error {
    let start = toml::de::DeTable::parse(text).ok().and_then(|root| start_of(&root, &fault.path)).unwrap_or(0);
    canonym_core::Error::parse(file, line_at(text, start), fault.message).with_hint(fault.hint).into()
}

/// Where the part of a file at `path` starts, or the last part above it that is there.
fn start_of(root: &toml::Spanned<toml::de::DeTable<'_>>, path: &[Step]) -> Option<usize> {
    let (Step::Key(first), rest) = path.split_first()? else { return None };
    let mut value = root.get_ref().get(first.as_str())?;
    for step in rest {
        let inner = match step {
            Step::Key(key) => value.get_ref().get(key.as_str()),
            Step::At(row) => value.get_ref().get(*row),
        };
        let Some(inner) = inner else { break };
        value = inner;
    }
    Some(value.span().start)
}

/// Links the texts and names of a file and compares.
fn check(
    expectations: &Expectations,
    models: &Models,
    kb: &Arc<KnowledgeBase>,
    arguments: &ExpectArguments,
) -> anyhow::Result<Vec<Failure>> {
    let mut failures = Vec::new();
    if !expectations.text.is_empty() {
        let config = SystemConfig { min_score: arguments.min_score, ..SystemConfig::default() };
        let system = System::new(kb, models.clone(), &config)?;
        let document = |text: &str| Document { text: text.to_owned(), ..Document::default() };
        let linked = system.annotate(expectations.text.iter().map(|text| document(&text.text)).collect())?;
        for (row, (text, linked)) in expectations.text.iter().zip(linked).enumerate() {
            failures.extend(check_text(text, row, &linked.annotations));
            failures.extend(check_denied(&expectations.names, text, row, &linked.annotations));
        }
    }
    if !expectations.names.is_empty() {
        let config = LinkConfig { top_k: 1, min_score: arguments.min_score.unwrap_or_default() };
        let linker = NameLinker::new(kb, models, config, None)?;
        for list in &expectations.names {
            failures.extend(check_names(list, |name| link_name(&linker, kb, name))?);
        }
    }
    Ok(failures)
}

fn link_name(linker: &NameLinker, kb: &KnowledgeBase, name: &str) -> canonym_core::Result<Annotation> {
    let link = linker.link_names(&[name])?.remove(0);
    let record = |candidate: &canonym_core::link::Candidate| CandidateRecord {
        id: terminology::shown_id(kb, candidate.concept, false),
        name: kb.preferred_name(candidate.concept).to_owned(),
        score: candidate.p_link,
    };
    let candidates = link.candidates.iter().map(record).collect();
    Ok(Annotation { text: name.to_owned(), nil: link.nil, candidates, ..Annotation::default() })
}
