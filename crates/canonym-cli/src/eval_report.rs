//! Report files of `canonym eval`: an HTML page, and the outcome of every annotation as JSON.

use canonym_neural::system::terminology;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use canonym_core::artifact::AtomicFile;
use canonym_core::corpus::AnnotatedDocument;
use canonym_core::eval::curves::{CurveConfig, curves, links};
use canonym_core::eval::errors::{ErrorAnalysis, ErrorConfig, Terminology, analyse};
use canonym_core::eval::html::{self, Page};
use canonym_core::eval::ids::IdSet;
use canonym_core::eval::pairing::Paired;
use canonym_core::eval::report::Report;
use canonym_core::kb::{ConceptId, KnowledgeBase};

use crate::progress;

/// Options for report files.
#[derive(Debug, Clone, clap::Args)]
pub struct ReportArgs {
    /// Write an HTML report with plots and examples in context.
    #[arg(long, value_name = "FILE.html", help_heading = "Reports")]
    pub report: Option<PathBuf>,
    /// Write the outcome of every gold annotation and prediction as JSON.
    #[arg(long, value_name = "FILE.json", help_heading = "Reports")]
    pub errors: Option<PathBuf>,
    /// Examples in context per error class.
    #[arg(long, value_name = "N", default_value_t = 50, help_heading = "Reports",
        value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub examples: u16,
}

impl ReportArgs {
    /// Whether any file is requested.
    pub fn is_wanted(&self) -> bool {
        self.report.is_some() || self.errors.is_some()
    }
}

/// The documents of an evaluation.
#[derive(Debug)]
pub struct Evaluated<'a> {
    /// Gold annotations.
    pub gold: &'a [AnnotatedDocument],
    /// Predictions of the system.
    pub predicted: Vec<AnnotatedDocument>,
    /// Gold and predictions, paired.
    pub paired: Paired,
}

/// The terminology that provides names for examples.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// Names and concepts.
    pub kb: &'a KnowledgeBase,
    /// Whether ids are written as in the source.
    pub raw_ids: bool,
}

/// Writes the requested files; `judged` is `None` if only rankings were scored.
pub fn write(
    args: &ReportArgs,
    report: &Report,
    evaluated: Option<&Evaluated<'_>>,
    terms: Option<Terms<'_>>,
    facts: &[(String, String)],
) -> anyhow::Result<()> {
    if !args.is_wanted() {
        return Ok(());
    }
    let config = ErrorConfig { ids: report.policy.ids, n_examples: args.examples.into(), ..ErrorConfig::default() };
    let errors = evaluated.map(|evaluated| analyse_with(terms, evaluated, &config));
    if let Some(path) = &args.report {
        let scored = evaluated.filter(|evaluated| has_scores(&evaluated.predicted));
        let curves =
            scored.map(|evaluated| curves(&links(&evaluated.paired.documents, config.ids), &CurveConfig::default()));
        let page = Page { report, errors: errors.as_ref(), curves: curves.as_ref(), facts };
        write_file(path, html::page(&page).as_bytes()).context("cannot write the report")?;
    }
    if let (Some(path), Some(errors)) = (&args.errors, &errors) {
        let mut bytes = serde_json::to_vec_pretty(errors).context("cannot write the errors as JSON")?;
        bytes.push(b'\n');
        write_file(path, &bytes).context("cannot write the errors")?;
    }
    Ok(())
}

fn write_file(path: &Path, bytes: &[u8]) -> canonym_core::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(|error| canonym_core::Error::io("write", path, error))?;
    file.commit()?;
    progress::say(&format!("wrote {}", path.display()));
    Ok(())
}

/// Whether any annotation has a score.
pub fn has_scores(documents: &[AnnotatedDocument]) -> bool {
    documents.iter().flat_map(|document| &document.annotations).any(|annotation| annotation.score.is_some())
}

fn analyse_with(terms: Option<Terms<'_>>, evaluated: &Evaluated<'_>, config: &ErrorConfig) -> ErrorAnalysis {
    let Evaluated { gold, predicted, paired } = evaluated;
    let Some(terms) = terms else { return analyse(gold, predicted, paired, None, config) };
    let kb = terms.kb;
    let concepts = concepts_of_ids(terms, paired);
    let name = |id: &str| concepts.get(id).map(|&concept| kb.preferred_name(concept).to_owned());
    let concepts_of_form = |form: &str| -> Vec<IdSet> {
        let Some(form) = kb.find_form(form) else { return Vec::new() };
        let ids = |name| all_ids(terms, kb.concept_of(name));
        kb.names_of_form(form).map(ids).collect()
    };
    analyse(gold, predicted, paired, Some(&Terminology { name: &name, concepts_of_form: &concepts_of_form }), config)
}

fn all_ids(terms: Terms<'_>, concept: ConceptId) -> IdSet {
    IdSet::parse(&terminology::all_ids(terms.kb, concept, terms.raw_ids))
}

/// The concept of every id in gold or predictions; the first one if several share an id.
fn concepts_of_ids(terms: Terms<'_>, paired: &Paired) -> HashMap<String, ConceptId> {
    let entries = paired.documents.iter().flat_map(|document| document.gold.iter().chain(&document.predicted));
    let wanted: HashSet<&str> = entries.flat_map(|entry| entry.ids.iter()).collect();
    let mut concepts = HashMap::new();
    for concept in terms.kb.concepts() {
        let ids = all_ids(terms, concept);
        for id in ids.iter().filter(|id| wanted.contains(id)) {
            concepts.entry(id.to_owned()).or_insert(concept);
        }
    }
    concepts
}
