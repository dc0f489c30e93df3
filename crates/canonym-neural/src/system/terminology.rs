//! Which knowledge base is linked to: a compiled file, or the embedded starter.

use std::path::Path;
use std::sync::Arc;

use canonym_core::Result;
use canonym_core::error::Context;
use canonym_core::input::Source;
use canonym_core::kb::format::Meta;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import_sources};
use canonym_core::kb::{ConceptId, KnowledgeBase, KnowledgeBaseBuilder};

/// The word that stands for the embedded knowledge base where a file is expected.
pub const STARTER: &str = "starter";

/// The knowledge base in the folder of a run.
pub const TERMINOLOGY: &str = "terminology.kb";

/// About 5,500 common concepts; `canonym-default/assets/README.md` tells how they were chosen.
pub const STARTER_TABLE: &str = canonym_default::STARTER;

/// Opens `path`, or the starter knowledge base where none or its name is given.
pub fn open(path: Option<&Path>) -> Result<Arc<KnowledgeBase>> {
    let kb = match path {
        Some(path) if path != Path::new(STARTER) => KnowledgeBase::open(path),
        _ => starter(),
    };
    Ok(Arc::new(kb.context("cannot open the knowledge base")?))
}

/// As [`open`]; where no knowledge base is given and the model brings the one along that it was trained with, that one.
pub fn open_for(path: Option<&Path>, model: &str) -> Result<Arc<KnowledgeBase>> {
    let own = Path::new(model).join(TERMINOLOGY);
    match path {
        None if own.exists() => open(Some(&own)),
        _ => open(path),
    }
}

/// Compiles the starter knowledge base in memory, which takes less time than reading a larger one from disk.
fn starter() -> Result<KnowledgeBase> {
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
    KnowledgeBase::from_vec(builder.to_bytes(meta)?, STARTER)
}

/// The id to show: as stored, or as the source wrote it.
pub fn shown_id(kb: &KnowledgeBase, concept: ConceptId, raw: bool) -> String {
    if raw { kb.raw_id(concept) } else { kb.id(concept).to_owned() }
}

/// Every id of a concept, its own first, as stored, or as the source wrote them.
pub fn all_ids(kb: &KnowledgeBase, concept: ConceptId, raw: bool) -> Vec<String> {
    let added = &kb.meta().added_prefixes;
    let strip = |id: &str| match id.split_once(':') {
        Some((prefix, rest)) if raw && added.iter().any(|added| added == prefix) => rest.to_owned(),
        _ => id.to_owned(),
    };
    [shown_id(kb, concept, raw)].into_iter().chain(kb.alternative_ids(concept).map(strip)).collect()
}
