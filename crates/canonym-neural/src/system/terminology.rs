//! Opening the target knowledge base: a compiled file, or the embedded starter.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use canonym_core::artifact::AtomicFile;
use canonym_core::error::Context;
use canonym_core::input::Source;
use canonym_core::kb::format::Meta;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import_sources};
use canonym_core::kb::{ConceptId, KnowledgeBase, KnowledgeBaseBuilder};
pub use canonym_core::link::system::shown_id;
use canonym_core::numbers::counted;
use canonym_core::{Error, Result};

use crate::index::cache::cache_folder;
use crate::program;
use crate::status::Stage;

/// Name of the embedded knowledge base in place of a path.
pub const STARTER: &str = "starter";

/// File name of the knowledge base in a run folder.
pub const TERMINOLOGY: &str = "terminology.kb";

/// About 15,000 common concepts; `canonym-default/assets/README.md` describes how they were selected.
pub const STARTER_TABLE: &str = canonym_default::STARTER;

/// Opens the knowledge base at `path`; the starter if `path` is `None` or `starter`.
pub fn open(path: Option<&Path>) -> Result<Arc<KnowledgeBase>> {
    opened(|| match path {
        Some(path) if path != Path::new(STARTER) => KnowledgeBase::open_verified_once(path, cache_folder().as_deref()),
        _ => open_starter(),
    })
}

/// Opens the starter knowledge base.
pub fn starter() -> Result<Arc<KnowledgeBase>> {
    open(None)
}

/// Opens the knowledge base at `path` so that all processes that open it share its memory, and that of the embeddings of its names.
pub fn open_shared(path: &Path) -> Result<Arc<KnowledgeBase>> {
    opened(|| KnowledgeBase::open_shared(path, cache_folder().as_deref()))
}

fn opened(open: impl FnOnce() -> Result<KnowledgeBase>) -> Result<Arc<KnowledgeBase>> {
    let stage = Stage::start();
    let kb = open().context("cannot open the knowledge base")?;
    let (concepts, names) = (counted(kb.n_concepts() as u64, "concept"), counted(kb.n_names() as u64, "name"));
    stage.done(format_args!("opened {}: {concepts}, {names}", kb.meta().name));
    Ok(Arc::new(kb))
}

/// Like [`open`], but without a path the knowledge base in the model's run folder is preferred, if it has one.
pub fn open_for(path: Option<&Path>, model: &str) -> Result<Arc<KnowledgeBase>> {
    let own = Path::new(model).join(TERMINOLOGY);
    match path {
        None if own.exists() => open(Some(&own)),
        _ => open(path),
    }
}

/// From the cache, else compiled. Errors of the cache are not fatal.
fn open_starter() -> Result<KnowledgeBase> {
    let file = cache_folder().zip(version()).map(|(folder, version)| folder.join(format!("{STARTER}-{version}.kb")));
    let Some(file) = file else { return KnowledgeBase::from_vec(compiled_starter()?, STARTER) };
    if let Ok(kb) = KnowledgeBase::open(&file) {
        return Ok(kb);
    }
    let bytes = compiled_starter()?;
    if let Err(error) = cache_starter(&file, &bytes) {
        Stage::start().done(format_args!("the starter is not cached: {error}"));
    }
    KnowledgeBase::from_vec(bytes, STARTER)
}

/// Distinguishes programs, which may compile the starter differently: size and time of the file.
fn version() -> Option<String> {
    let metadata = program::current().and_then(|program| std::fs::metadata(program.file)).ok()?;
    let changed = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{:x}-{:x}", metadata.len(), changed.as_nanos()))
}

fn compiled_starter() -> Result<Vec<u8>> {
    let source = Source::from_bytes(STARTER, STARTER_TABLE.as_bytes().to_vec());
    let mut builder = KnowledgeBaseBuilder::new();
    let mut add = |record| builder.add(record);
    import_sources(SourceFormat::Tsv, &[source], &ImportConfig::default(), &mut Report::default(), &mut add)?;
    let meta = Meta {
        name: STARTER.to_owned(),
        source_format: SourceFormat::Tsv.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        added_prefixes: vec!["MESH".to_owned()],
        ..Meta::default()
    };
    builder.to_bytes(meta)
}

/// Writes the compiled starter in place of those of other programs.
fn cache_starter(file: &Path, bytes: &[u8]) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("starter-") && name.ends_with(".kb") {
            // Another process may have removed it first.
            drop(std::fs::remove_file(entry.path()));
        }
    }
    let mut to = AtomicFile::create(file)?;
    to.write_all(bytes).map_err(|error| Error::io("write", file, error))?;
    to.commit()
}

/// An id without the prefix of MeSH, OMIM or UMLS, which many corpora leave out. Other prefixes stay, since numbers of several ontologies
/// collide.
pub fn bare(id: &str) -> &str {
    ["MESH:", "OMIM:", "UMLS:"].into_iter().find_map(|source| id.strip_prefix(source)).unwrap_or(id)
}

/// All ids of a concept, the primary one first: as stored, or as in the source if `raw`.
pub fn all_ids(kb: &KnowledgeBase, concept: ConceptId, raw: bool) -> Vec<String> {
    let added = &kb.meta().added_prefixes;
    let strip = |id: &str| match id.split_once(':') {
        Some((prefix, rest)) if raw && added.iter().any(|added| added == prefix) => rest.to_owned(),
        _ => id.to_owned(),
    };
    [shown_id(kb, concept, raw)].into_iter().chain(kb.alternative_ids(concept).map(strip)).collect()
}
