//! Training data of ResCNN: terminologies, queries that may become names, and held-out queries.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use canonym_core::kb::KnowledgeBase;
use canonym_core::kb::import::SourceFormat;
use serde::{Deserialize, Serialize};

use super::checkpoints::data_file;
use super::data::{Source, compile_all};
use super::run_folder::write_text;
use crate::recipes::queries::{MentionQuery, read_mentions};
use crate::status;
use crate::system::terminology::bare;

/// Value of `format` for the JSON read by the code of ResCNN: `{"id": [["primary", "name"], …], …}`.
const ONTOLOGY: &str = "rescnn";

/// Input files and options; paths are relative to the data root.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// The target terminology. Optional if the queries are used as names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminology: Option<TerminologyConfig>,
    /// More terminologies for synonym pre-training.
    #[serde(default)]
    pub synonyms: Vec<TerminologyConfig>,
    /// Queries, in any format that [`read_mentions`] supports.
    pub queries: PathBuf,
    /// Held-out queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev_queries: Option<PathBuf>,
    /// Instead of `dev_queries`: the queries of every n-th document are held out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_out: Option<usize>,
    /// Whether the queries are added as names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub query_names: bool,
    /// Terminology for the held-out queries; the target terminology if missing.
    pub dev_terminology: Option<TerminologyConfig>,
    /// Whether the model is trained again on all queries after settings were selected on the held-out ones (the protocol of BioSyn).
    #[serde(default)]
    pub refit: bool,
}

/// Path and format of a terminology.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminologyConfig {
    /// Relative to the data root or the current folder.
    pub path: PathBuf,
    /// A format of `kb build`, or `rescnn`.
    pub format: String,
    /// Prefix for ids that have none, such as `MESH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// The queries of an experiment.
pub struct Queries {
    /// Training set.
    pub train: Vec<MentionQuery>,
    /// Held-out set.
    pub dev: Vec<MentionQuery>,
    /// Number of lines in each file that are not UTF-8.
    pub n_decoded: BTreeMap<String, u64>,
}

impl DataConfig {
    /// All input files.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let terminologies = self.terminology.iter().chain(&self.dev_terminology).chain(&self.synonyms);
        std::iter::once(&self.queries).chain(&self.dev_queries).chain(terminologies.map(|one| &one.path))
    }
}

/// Reads the queries and holds out some of them.
pub fn read_queries(data: &DataConfig, root: &Path) -> canonym_core::Result<Queries> {
    let refused = |message: &str| {
        let error = canonym_core::Error::config(message.to_owned());
        error.with_hint("set `dev_queries`, or `hold_out = 10` for queries with document ids")
    };
    let mut n_decoded = BTreeMap::new();
    let mut read = |path: &PathBuf| -> canonym_core::Result<Vec<MentionQuery>> {
        let mentions = read_mentions(&root.join(path))?;
        if mentions.n_decoded > 0 {
            status::say(&format!(
                "{}: {} lines were not UTF-8 and were read as Windows-1252",
                path.display(),
                mentions.n_decoded
            ));
            n_decoded.insert(path.display().to_string(), mentions.n_decoded);
        }
        Ok(mentions.rows)
    };
    let train = read(&data.queries)?;
    let (train, dev) = match (&data.dev_queries, data.hold_out) {
        (Some(path), None) => (train, read(path)?),
        (None, Some(n)) if n > 1 => held_out(train, n),
        (None, Some(_)) => return Err(refused("`hold_out` is less than 2")),
        (None, None) => return Err(refused("no queries are held out")),
        (Some(_), Some(_)) => return Err(refused("both `dev_queries` and `hold_out` are set")),
    };
    if dev.is_empty() || train.is_empty() {
        return Err(refused("too few documents to hold some out"));
    }
    Ok(Queries { train, dev, n_decoded })
}

/// Assigns documents to `n` folds round-robin, in order; the last fold is held out.
fn held_out(mentions: Vec<MentionQuery>, n: usize) -> (Vec<MentionQuery>, Vec<MentionQuery>) {
    let mut place_of: HashMap<String, usize> = HashMap::new();
    mentions.into_iter().partition(|mention| {
        let next = place_of.len();
        let place = *place_of.entry(mention.document.clone()).or_insert(next);
        !(place + 1).is_multiple_of(n)
    })
}

/// The training terminology, and the one without names that were added from queries, if they differ.
pub fn compile_main(
    data: &DataConfig,
    root: &Path,
    folder: &Path,
    queries: &[MentionQuery],
) -> canonym_core::Result<(Arc<KnowledgeBase>, Option<Arc<KnowledgeBase>>)> {
    let out = folder.join("terminology.kb");
    match (&data.terminology, data.query_names) {
        (Some(config), false) => Ok((compile_terminology(config, root, &out)?, None)),
        (Some(config), true) => {
            let clean = compile_terminology(config, root, &folder.join("clean.kb"))?;
            let all = with_names(&[config], Some(&clean), root, &out, queries)?;
            Ok((all, Some(clean)))
        }
        (None, true) => Ok((with_names(&[], None, root, &out, queries)?, None)),
        (None, false) => {
            let error = canonym_core::Error::config("no terminology to link to");
            Err(error.with_hint("set `terminology`, or `query_names = true` to link to the names of the queries"))
        }
    }
}

/// Compiles a terminology to the file `out`.
pub fn compile_terminology(
    config: &TerminologyConfig,
    root: &Path,
    out: &Path,
) -> canonym_core::Result<Arc<KnowledgeBase>> {
    compile(&[config], root, out, None)
}

/// Merges several terminologies: for the same id, the first one gives the preferred name.
pub fn compile_merged(
    configs: &[&TerminologyConfig],
    root: &Path,
    out: &Path,
) -> canonym_core::Result<Arc<KnowledgeBase>> {
    compile(configs, root, out, None)
}

fn compile(
    configs: &[&TerminologyConfig],
    root: &Path,
    out: &Path,
    names: Option<String>,
) -> canonym_core::Result<Arc<KnowledgeBase>> {
    let mut sources = Vec::new();
    let mut made = Vec::new();
    let folder = out.parent().unwrap_or(Path::new("."));
    for (at, config) in configs.iter().enumerate() {
        let path = data_file(&config.path, root);
        let prefix = config.prefix.clone();
        if config.format == ONTOLOGY {
            let file = format!("ontology-{at}.jsonl");
            write_text(folder, &file, &ontology(&path)?)?;
            made.push(folder.join(&file));
            sources.push(Source { path: folder.join(file), format: SourceFormat::Jsonl, prefix });
        } else {
            let missing = || {
                let error = canonym_core::Error::not_found(format!("unknown source format `{}`", config.format));
                error.with_hint(format!("use one of {ONTOLOGY}, {}", SourceFormat::list()))
            };
            let format = SourceFormat::from_name(&config.format).ok_or_else(missing)?;
            sources.push(Source { path, format, prefix });
        }
    }
    if let Some(names) = names {
        write_text(folder, "names.jsonl", &names)?;
        made.push(folder.join("names.jsonl"));
        let prefix = configs.first().and_then(|config| config.prefix.clone());
        sources.push(Source { path: folder.join("names.jsonl"), format: SourceFormat::Jsonl, prefix });
    }
    let kb = compile_all(&sources, out);
    // Removed on errors as well.
    for path in made {
        std::fs::remove_file(&path).map_err(|error| canonym_core::Error::io("remove", &path, error))?;
    }
    Ok(Arc::new(kb?))
}

/// Converts an ontology in the JSON format of ResCNN to JSON lines.
fn ontology(path: &Path) -> canonym_core::Result<String> {
    let text = std::fs::read_to_string(path).map_err(|error| canonym_core::Error::io("read", path, error))?;
    let names_of: BTreeMap<String, Vec<(String, String)>> = serde_json::from_str(&text).map_err(|error| {
        let error =
            canonym_core::Error::parse(path, error.line().max(1) as u64, format!("invalid ResCNN ontology: {error}"));
        error.with_hint("it maps each id to pairs of kind and name: `{\"7\": [[\"primary\", \"fever\"]]}`")
    })?;
    let record = |(id, names): (&String, &Vec<(String, String)>)| {
        let names: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
        record(id, names.first().copied(), names.get(1..).unwrap_or_default())
    };
    Ok(names_of.iter().map(record).collect())
}

fn record(id: &str, name: Option<&str>, synonyms: &[&str]) -> String {
    format!("{}\n", serde_json::json!({"id": id, "name": name, "synonyms": synonyms}))
}

/// Compiles terminologies with single-part queries as additional names. `own` is the compiled terminology without them: queries with an id
/// that it lacks are skipped. If it is `None`, queries create concepts.
pub fn with_names(
    configs: &[&TerminologyConfig],
    own: Option<&KnowledgeBase>,
    root: &Path,
    out: &Path,
    queries: &[MentionQuery],
) -> canonym_core::Result<Arc<KnowledgeBase>> {
    let mut concepts_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    if let Some(kb) = own {
        for concept in kb.concepts() {
            let id = kb.id(concept);
            id.split('|').for_each(|part| concepts_of.entry(bare(part)).or_default().push(id));
        }
    }
    let mut names_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut n_unknown = 0;
    for query in queries.iter().filter(|query| query.parts.len() == 1).map(|query| &query.parts[0]) {
        for id in &query.ids {
            match concepts_of.get(id.as_str()) {
                Some(known) => known.iter().for_each(|id| names_of.entry(id).or_default().push(&query.query)),
                None if own.is_none() => names_of.entry(id).or_default().push(&query.query),
                None => n_unknown += 1,
            }
        }
    }
    if n_unknown > 0 {
        status::say(&format!(
            "{n_unknown} ids of queries are not in the terminology; their phrases are not used as names"
        ));
    }
    let names: String = names_of.iter().map(|(id, names)| record(id, None, names)).collect();
    let names = Some(names).filter(|names| !names.is_empty());
    compile(configs, root, out, names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use canonym_core::link::fit::Labelled;

    fn mention(document: &str, name: &str, id: &str) -> MentionQuery {
        let part = Labelled { query: name.to_owned(), ids: [id.to_owned()].into() };
        MentionQuery { document: document.to_owned(), parts: vec![part] }
    }

    fn names(kb: &KnowledgeBase) -> Vec<String> {
        let line = |concept| {
            let names: Vec<&str> = kb.names(concept).map(|name| kb.name(name)).collect();
            format!("{}: {}", kb.id(concept), names.join(", "))
        };
        kb.concepts().map(line).collect()
    }

    #[test]
    fn queries_become_names_of_known_concepts_or_a_terminology_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("shapes.json", r#"{"7": [["primary", "Circle"], ["secondary", "disc"]], "8": [["primary", "Square"]]}"#);
        let mut data = DataConfig {
            terminology: Some(TerminologyConfig {
                path: "shapes.json".into(),
                format: ONTOLOGY.to_owned(),
                prefix: None,
            }),
            synonyms: Vec::new(),
            queries: "queries.tsv".into(),
            dev_queries: None,
            hold_out: None,
            query_names: true,
            dev_terminology: None,
            refit: false,
        };
        let queries = [mention("", "round thing", "7"), mention("", "cube", "9")];
        let compiled = |data: &DataConfig| compile_main(data, folder.path(), folder.path(), &queries);
        let (all, clean) = compiled(&data).unwrap();
        assert_eq!(names(&all), ["7: Circle, disc, round thing", "8: Square"]);
        assert_eq!(names(&clean.unwrap()), ["7: Circle, disc", "8: Square"]);
        data.terminology = None;
        let (all, clean) = compiled(&data).unwrap();
        assert!(clean.is_none());
        assert_eq!(names(&all), ["7: round thing", "9: cube"]);
        let mut left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["clean.kb", "shapes.json", "terminology.kb"]);
        data.query_names = false;
        assert!(compiled(&data).unwrap_err().to_string().contains("no terminology to link to"));
        write("shapes.json", "{\n\"7\": \"Circle\"}");
        data.terminology =
            Some(TerminologyConfig { path: "shapes.json".into(), format: ONTOLOGY.to_owned(), prefix: None });
        assert!(compiled(&data).unwrap_err().to_string().contains("shapes.json:2: invalid ResCNN ontology"));
    }

    #[test]
    fn the_first_of_merged_terminologies_gives_the_preferred_name() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        // The first source has only a synonym for the circle.
        write("first.jsonl", "{\"id\": \"7\", \"synonyms\": [\"ring\"]}\n{\"id\": \"8\", \"name\": \"Square\"}\n");
        write("second.tsv", "8\tBox\tSquare\n7\tCircle\tdisc\n9\tCube\n");
        let terminology =
            |path: &str, format: &str| TerminologyConfig { path: path.into(), format: format.to_owned(), prefix: None };
        let (first, second) = (terminology("first.jsonl", "jsonl"), terminology("second.tsv", "tsv"));
        let merged = |configs: &[&TerminologyConfig]| {
            names(&compile_merged(configs, folder.path(), &folder.path().join("merged.kb")).unwrap())
        };
        assert_eq!(merged(&[&first, &second]), ["7: ring, Circle, disc", "8: Square, Box", "9: Cube"]);
        assert_eq!(merged(&[&second, &first]), ["7: Circle, disc, ring", "8: Box, Square", "9: Cube"]);
    }

    #[test]
    fn whole_documents_are_held_out() {
        let mentions = ["a", "b", "a", "c", "d", "b"].map(|document| mention(document, "x", "1")).into();
        let (train, dev) = held_out(mentions, 2);
        let documents = |mentions: &[MentionQuery]| mentions.iter().map(|one| one.document.clone()).collect::<String>();
        assert_eq!((documents(&train), documents(&dev)), ("aac".to_owned(), "bdb".to_owned()));
    }
}
