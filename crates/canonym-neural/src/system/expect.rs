//! Release tests for linking: reads files of expectations, links their texts and names, and compares.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use canonym_core::corpus::{Annotation, CandidateRecord};
use canonym_core::eval::expect::{Expectations, Failure, Fault, Step, check_denied, check_names, check_text};
use canonym_core::input::Input;
use canonym_core::kb::KnowledgeBase;
use canonym_core::link::Candidate;
use canonym_core::link::lexical::LinkConfig;
use canonym_core::numbers::counted;
use canonym_core::text::Document;
use canonym_core::{Error, Result};

use super::linked::{System, SystemConfig};
use super::{Models, NameLinker, terminology};
use crate::status::Stage;

/// Reads a file of expectations as text.
///
/// # Errors
/// If it cannot be read as UTF-8.
pub fn read(file: &Path) -> Result<String> {
    let mut bytes = Vec::new();
    Input::open(file)?.read_to_end(&mut bytes).map_err(|error| Error::io("read", file, error))?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        Error::parse(file, line, "invalid UTF-8").with_hint("convert the file to UTF-8")
    })
}

/// Parses the text of a file.
///
/// # Errors
/// [`Error::Parse`], also for expectations that can never fail.
pub fn parse(file: &Path, text: &str) -> Result<Expectations> {
    let expectations: Expectations = toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        Error::parse(file, line_at(text, start), error.message().replace('\n', " "))
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

/// The error for an expectation that can never fail, with its line.
pub fn error_of(file: &Path, text: &str, fault: Fault) -> Error {
    let start = toml::de::DeTable::parse(text).ok().and_then(|root| start_of(&root, &fault.path)).unwrap_or(0);
    Error::parse(file, line_at(text, start), fault.message).with_hint(fault.hint)
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

/// Links the texts and names of a file and compares; mentions below `min_score` are left unlinked.
///
/// # Errors
/// If the model does not fit the knowledge base, or linking fails.
pub fn check(
    expectations: &Expectations,
    models: &Models,
    kb: &Arc<KnowledgeBase>,
    min_score: Option<f32>,
) -> Result<Vec<Failure>> {
    let stage = Stage::start();
    let mut failures = Vec::new();
    if !expectations.text.is_empty() {
        let config = SystemConfig { min_score, ..SystemConfig::default() };
        let system = System::new(kb, models.clone(), &config)?;
        let document = |text: &str| Document { text: text.to_owned(), ..Document::default() };
        let linked = system.annotate(expectations.text.iter().map(|text| document(&text.text)).collect())?;
        for (row, (text, linked)) in expectations.text.iter().zip(linked).enumerate() {
            failures.extend(check_text(text, row, &linked.annotations));
            failures.extend(check_denied(&expectations.names, text, row, &linked.annotations));
        }
    }
    if !expectations.names.is_empty() {
        let config = LinkConfig { top_k: 1, min_score: min_score.unwrap_or_default() };
        let linker = NameLinker::new(kb, models, config, None)?;
        for list in &expectations.names {
            failures.extend(check_names(list, |name| link_name(&linker, kb, name))?);
        }
    }
    stage.done(format_args!("checked {}", counted(expectations.n() as u64, "expectation")));
    Ok(failures)
}

fn link_name(linker: &NameLinker, kb: &KnowledgeBase, name: &str) -> Result<Annotation> {
    let link = linker.link_names(&[name])?.remove(0);
    let record = |candidate: &Candidate| CandidateRecord {
        id: terminology::shown_id(kb, candidate.concept, false),
        name: kb.preferred_name(candidate.concept).to_owned(),
        p_link: candidate.p_link,
        p_both: None,
    };
    let candidates = link.candidates.iter().map(record).collect();
    let p_link = link.candidates.first().map(|best| best.p_link);
    Ok(Annotation { text: name.to_owned(), p_link, nil: link.nil, candidates, ..Annotation::default() })
}
