//! Which knowledge base a command works on: a compiled file, or the embedded starter.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use canonym::kb::KnowledgeBase;

/// Opens `path`, or the starter knowledge base where none is given.
pub fn open(path: Option<&Path>) -> anyhow::Result<Arc<KnowledgeBase>> {
    let kb = match path {
        Some(path) => KnowledgeBase::open(path).context("the knowledge base could not be opened")?,
        None => anyhow::bail!("the embedded starter is to come"),
    };
    Ok(Arc::new(kb))
}

/// The id to show: as stored, or as the source wrote it.
pub fn shown_id(kb: &KnowledgeBase, concept: canonym::kb::ConceptId, raw: bool) -> String {
    if raw { kb.raw_id(concept) } else { kb.id(concept).to_owned() }
}

/// Refuses a model this program does not have.
pub fn check_model(model: &str) -> anyhow::Result<()> {
    match model {
        "default" | "lexical" => Ok(()),
        other => Err(canonym::Error::invalid(format!("there is no model `{other}`"))
            .with_hint("built-in models are `default` and `lexical`")
            .into()),
    }
}

/// Sets the number of threads for the whole process.
pub fn use_threads(threads: Option<usize>) -> anyhow::Result<()> {
    let Some(threads) = threads else { return Ok(()) };
    if threads == 0 || threads > 1024 {
        let error = canonym::Error::invalid(format!("{threads} is no usable number of threads"));
        return Err(error.with_hint("give a number from 1 to 1024, or leave `--threads` out for all cores").into());
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("cannot start the threads")
}
