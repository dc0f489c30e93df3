//! Data of an experiment: dictionaries, queries and held-out sets.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use canonym_core::corpus::AnnotatedDocument;
use canonym_core::error::Context;
use canonym_core::eval::bootstrap::SplitMix64;
use canonym_core::eval::queries::read_queries;
use canonym_core::input::Input;
use canonym_core::kb::compile::{CompileConfig, CompileSource, compile};
use canonym_core::kb::format::Meta;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat, import, import_sources};
use canonym_core::kb::{KnowledgeBase, KnowledgeBaseBuilder};
use canonym_core::link::fit::Labelled;
use serde::{Deserialize, Serialize};

use super::adapt::held_out;

/// Role of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Weights are fitted on it.
    Fit,
    /// Settings are selected, calibration is fitted and accuracy is reported on it.
    Dev,
}

/// A set of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetConfig {
    /// Name in the report.
    pub name: String,
    /// Role.
    pub role: Role,
    /// The dictionary, relative to the data root.
    pub dictionary: PathBuf,
    /// The queries, relative to the data root; without them, synonyms are held out of the dictionary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries: Option<PathBuf>,
    /// A corpus with the texts of the queries' documents, for the record of training documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<PathBuf>,
    /// Number of folds; with 2 or more, documents are split, and the mentions of the other folds are added as names.
    #[serde(default)]
    pub folds: usize,
    /// Number of concepts of which a synonym is held out as query.
    #[serde(default)]
    pub held_out: usize,
    /// Weight of a query in the fit.
    #[serde(default = "one")]
    pub weight: f32,
}

fn one() -> f32 {
    1.0
}

/// A mention to link, as the queries of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct CorpusQuery {
    /// The document, which is the unit of resampling.
    pub document: String,
    /// The parts of a composite mention, or one.
    pub parts: Vec<Labelled>,
}

/// Selects concepts by their tree numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trees {
    /// A table of id, name and tree number, relative to the data root.
    pub table: PathBuf,
    /// Prefixes of the tree numbers to keep.
    pub keep: Vec<String>,
}

/// Queries against one knowledge base.
#[derive(Debug)]
pub struct Fold {
    /// The knowledge base.
    pub kb: KnowledgeBase,
    /// The mentions.
    pub asked: Vec<CorpusQuery>,
}

/// Reads the folds of a set; knowledge bases are compiled in the folder `work`.
pub fn read(set: &SetConfig, root: &Path, work: &Path, rng: &mut SplitMix64) -> canonym_core::Result<Vec<Fold>> {
    let dictionary = root.join(&set.dictionary);
    match &set.queries {
        Some(queries) => read_queried(set, &dictionary, &root.join(queries), work),
        None => Ok(vec![hold_out(set, &dictionary, work, rng)?]),
    }
}

fn read_queried(set: &SetConfig, dictionary: &Path, queries: &Path, work: &Path) -> canonym_core::Result<Vec<Fold>> {
    let mut asked = Vec::new();
    for query in read_queries(&mut Input::open(queries)?)? {
        let ids: BTreeSet<String> = query.ids.iter().map(str::to_owned).collect();
        let parts = query.parts.into_iter().map(|part| Labelled { query: part, ids: ids.clone() }).collect();
        asked.push(CorpusQuery { document: query.document, parts });
    }
    if set.folds < 2 {
        return Ok(vec![Fold { kb: compile_one(dictionary, SourceFormat::Biosyn, &work.join("fold.kb"))?, asked }]);
    }
    // Documents are assigned to folds round-robin, in order.
    let mut fold_of: HashMap<String, usize> = HashMap::new();
    for one in &asked {
        let next = fold_of.len() % set.folds;
        fold_of.entry(one.document.clone()).or_insert(next);
    }
    let text = std::fs::read_to_string(dictionary).with_context(|| format!("cannot read {}", dictionary.display()))?;
    let mut folds = Vec::new();
    for fold in 0..set.folds {
        let (here, others): (Vec<&CorpusQuery>, Vec<&CorpusQuery>) =
            asked.iter().partition(|one| fold_of[&one.document] == fold);
        let path = work.join("fold.txt");
        std::fs::write(&path, extended(&text, &others)).with_context(|| format!("cannot write {}", path.display()))?;
        let kb = compile_one(&path, SourceFormat::Biosyn, &work.join("fold.kb"))?;
        folds.push(Fold { kb, asked: here.into_iter().cloned().collect() });
    }
    Ok(folds)
}

/// Adds mentions to a dictionary as names, as in the published protocol: known names get more ids, others a new line.
fn extended(dictionary: &str, mentions: &[&CorpusQuery]) -> String {
    let mut added: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for mention in mentions {
        let Some(first) = mention.parts.first() else { continue };
        let name = mention.parts.iter().map(|part| part.query.as_str()).collect::<Vec<_>>().join(" ");
        let ids = added.entry(name).or_default();
        for id in &first.ids {
            if !ids.contains(&id.as_str()) {
                ids.push(id);
            }
        }
    }
    let mut text = String::with_capacity(dictionary.len() + 64 * added.len());
    for line in dictionary.lines() {
        let Some((ids, name)) = line.split_once("||") else { continue };
        text.push_str(ids);
        if let Some(more) = added.remove(name) {
            for id in more.into_iter().filter(|id| !ids.split(['|', '+']).any(|known| known == *id)) {
                text.push('|');
                text.push_str(id);
            }
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "||{name}");
    }
    for (name, ids) in added {
        let _ = writeln!(text, "{}||{name}", ids.join("|"));
    }
    text
}

/// Splits training documents: about one in `share`, sampled by seed and document id, is split off for model selection; none if `share` is
/// `None`.
pub fn held_apart(
    documents: Vec<AnnotatedDocument>,
    share: Option<usize>,
    seed: u64,
) -> canonym_core::Result<(Vec<AnnotatedDocument>, Vec<AnnotatedDocument>)> {
    let Some(share) = share else { return Ok((documents, Vec::new())) };
    if share < 2 {
        let error = canonym_core::Error::config(format!("`data.tune_share` must be at least 2, not {share}"));
        return Err(error.with_hint("one of this many documents is held out for model selection; 10 is usual"));
    }
    let ids: Vec<String> = documents.iter().map(|one| format!("{seed} {}", one.document.id)).collect();
    let mut is_apart = held_out(ids.iter().map(String::as_str), share).into_iter();
    Ok(documents.into_iter().partition(|_| is_apart.next() != Some(true)))
}

/// Compiles a source to the file `out` and opens it from memory.
pub fn compile_one(source: &Path, format: SourceFormat, out: &Path) -> canonym_core::Result<KnowledgeBase> {
    compile_all(&[Source { path: source.to_path_buf(), format, prefix: None }], out)
}

/// A source of a terminology.
pub struct Source {
    pub path: PathBuf,
    pub format: SourceFormat,
    /// Prefix for ids that have none.
    pub prefix: Option<String>,
}

/// Compiles sources to the file `out` and opens it from memory; concepts with the same id are merged.
pub fn compile_all(sources: &[Source], out: &Path) -> canonym_core::Result<KnowledgeBase> {
    let from = |Source { path, format, prefix }: &Source| CompileSource {
        paths: vec![path.clone()],
        format: *format,
        import: ImportConfig { prefix: prefix.clone(), ..ImportConfig::default() },
        name: String::new(),
        name_wins: false,
        version: String::new(),
    };
    let shown = sources.iter().map(|source| source.path.display().to_string()).collect::<Vec<_>>().join(", ");
    let sources: Vec<CompileSource> = sources.iter().map(from).collect();
    compile(&sources, &CompileConfig { names_as_written: true, ..CompileConfig::default() }, out, &mut |_| Ok(()))
        .with_context(|| format!("cannot compile {shown}"))?;
    let bytes = std::fs::read(out).with_context(|| format!("cannot read {}", out.display()))?;
    KnowledgeBase::from_vec(bytes, &shown)
}

/// A terminology in memory, optionally restricted to some trees; the tree table is relative to `root`.
pub fn compile_trees(
    name: &str,
    source: &Path,
    prefix: Option<&str>,
    trees: Option<&Trees>,
    root: &Path,
) -> canonym_core::Result<KnowledgeBase> {
    let wanted = trees.map(|trees| ids_of_trees(root, trees)).transpose()?;
    let config = ImportConfig { prefix: prefix.map(str::to_owned), ..ImportConfig::default() };
    let mut builder = KnowledgeBaseBuilder::new();
    let format = SourceFormat::detect(source)?;
    import(format, &[source.to_path_buf()], &config, &mut Report::default(), &mut |record| {
        let id = record.id.rsplit(':').next().unwrap_or(&record.id);
        match &wanted {
            Some(wanted) if !wanted.contains(id) => Ok(()),
            _ => builder.add(record),
        }
    })?;
    let bytes = builder.to_bytes(Meta { name: name.to_owned(), ..Meta::default() })?;
    KnowledgeBase::from_vec(bytes, name)
}

/// Ids of the concepts in the selected trees.
pub fn ids_of_trees(root: &Path, trees: &Trees) -> canonym_core::Result<BTreeSet<String>> {
    let mut input = Input::open(&root.join(&trees.table))?;
    let mut rows: BTreeMap<String, bool> = BTreeMap::new();
    while let Some((_, line)) = input.next_line()? {
        let fields: Vec<&str> = line.split('\t').collect();
        let (Some(id), Some(number)) = (fields.first(), fields.get(2)) else {
            return Err(input.error("a row of tree numbers needs id, name and number"));
        };
        *rows.entry((*id).to_owned()).or_default() |= trees.keep.iter().any(|tree| number.starts_with(tree));
    }
    Ok(rows.into_iter().filter(|(_, kept)| *kept).map(|(id, _)| id).collect())
}

/// A terminology without one synonym of each of some concepts, and these synonyms as queries.
fn hold_out(set: &SetConfig, dictionary: &Path, work: &Path, rng: &mut SplitMix64) -> canonym_core::Result<Fold> {
    let format = match dictionary.extension().is_some_and(|end| end == "obo") {
        true => SourceFormat::Obo,
        false => SourceFormat::Tsv,
    };
    let source = canonym_core::input::Source::from_path(dictionary);
    let mut concepts: Vec<(String, Vec<String>)> = Vec::new();
    import_sources(format, &[source], &ImportConfig::default(), &mut Report::default(), &mut |record| {
        let names = record.names.into_iter().map(|name| name.text.replace(['|', '\t'], " ")).collect();
        concepts.push((record.id, names));
        Ok(())
    })?;
    let many: Vec<usize> = (0..concepts.len()).filter(|row| concepts[*row].1.len() >= 3).collect();
    let mut chosen: BTreeMap<usize, usize> = BTreeMap::new();
    while !many.is_empty() && chosen.len() < set.held_out.min(many.len()) {
        let row = many[rng.below(many.len())];
        let name = 1 + rng.below(concepts[row].1.len() - 1);
        chosen.entry(row).or_insert(name);
    }
    let mut asked = Vec::new();
    let mut text = String::new();
    for (row, (id, names)) in concepts.iter().enumerate() {
        let out = chosen.get(&row).copied();
        let kept = |(place, _): &(usize, &String)| Some(*place) != out;
        let kept: Vec<&str> = names.iter().enumerate().filter(kept).map(|(_, name)| name.as_str()).collect();
        let _ =
            writeln!(text, "{id}\t{}\t{}", kept.first().unwrap_or(&""), kept.get(1..).unwrap_or_default().join("|"));
        if let Some(out) = out {
            // Without its prefix, as the fit compares bare ids.
            let bare = id.rsplit(':').next().unwrap_or(id).to_owned();
            let labelled = Labelled { query: names[out].clone(), ids: BTreeSet::from([bare]) };
            asked.push(CorpusQuery { document: id.clone(), parts: vec![labelled] });
        }
    }
    let path = work.join("fold.tsv");
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Fold { kb: compile_one(&path, SourceFormat::Tsv, &work.join("fold.kb"))?, asked })
}
