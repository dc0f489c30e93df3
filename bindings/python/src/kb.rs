//! `KnowledgeBase`: opens, builds and searches compiled terminologies.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use canonym::{BuildConfig, ConceptId, Error, Meta, SubsetConfig, search};
use canonym_core::input::Input;
use canonym_core::kb::build::code_system;
use canonym_core::kb::code_system::coding;
use canonym_core::kb::import::{ImportConfig, Report, SourceFormat};
use canonym_core::kb::sources::{SourceArgument, bare_prefix, named_format};
use canonym_core::kb::translate::{PredicateMappings, Translator};
use canonym_neural::system::terminology::{self, STARTER, STARTER_TABLE};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::errors::{OrRaise, usage};
use crate::inputs::{Options, one_or_many, utf8};
use crate::threads;

/// A terminology compiled into one file, which opens without parsing.
///
/// A mapping from ids to concepts: `kb["MESH:D003693"]`, `id in kb`, `len(kb)`. Pickles by its path.
#[pyclass(frozen, module = "canonym")]
pub struct KnowledgeBase {
    /// The opened file.
    pub kb: Arc<canonym::KnowledgeBase>,
    /// Its path; `None` for the starter.
    path: Option<PathBuf>,
    /// Whether its memory is shared with other processes.
    is_shared: bool,
    report: Option<Report>,
}

impl KnowledgeBase {
    /// Opens the file at `path`, or the starter.
    pub fn at(py: Python<'_>, path: Option<PathBuf>) -> PyResult<KnowledgeBase> {
        let path = path.filter(|path| path != Path::new(STARTER));
        let kb = threads::work(py, || terminology::open(path.as_deref()))?;
        Ok(KnowledgeBase { kb, path, is_shared: false, report: None })
    }

    /// Opens the file at `path`, whose memory all processes share that open it like this. The starter is never shared.
    fn shared(py: Python<'_>, path: Option<PathBuf>) -> PyResult<KnowledgeBase> {
        let Some(path) = path.filter(|path| path != Path::new(STARTER)) else { return KnowledgeBase::at(py, None) };
        let kb = threads::work(py, || terminology::open_shared(&path))?;
        Ok(KnowledgeBase { kb, path: Some(path), is_shared: true, report: None })
    }

    /// The knowledge base that `model` was trained with, if its folder has one, else the starter.
    pub fn of_model(py: Python<'_>, model: &str) -> PyResult<KnowledgeBase> {
        let own = Path::new(model).join(terminology::TERMINOLOGY);
        KnowledgeBase::at(py, own.exists().then_some(own))
    }

    fn concept(&self, concept: ConceptId) -> Concept {
        let kb = &self.kb;
        let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
        Concept {
            id: kb.id(concept).to_owned(),
            name: kb.preferred_name(concept).to_owned(),
            names: kb.names(concept).map(|name| kb.name(name).to_owned()).collect(),
            types: owned(kb.types(concept).collect()),
            definition: kb.definition(concept).map(str::to_owned),
            parents: kb.parents(concept).map(|parent| kb.id(parent).to_owned()).collect(),
            alternative_ids: owned(kb.alternative_ids(concept).collect()),
            xrefs: kb.xrefs(concept).map(|xref| (xref.id.to_owned(), xref.predicate.name().to_owned())).collect(),
            code_system: coding(kb, concept).system,
            source: kb.source(concept).to_owned(),
        }
    }

    fn find(&self, id: &str) -> Option<ConceptId> {
        self.kb.find(id)
    }

    /// The concept with this id; a `KeyError` if there is none.
    fn concept_of(&self, id: &Bound<'_, PyString>) -> PyResult<ConceptId> {
        let id = utf8(id, || "the id".to_owned())?;
        self.find(id).ok_or_else(|| PyKeyError::new_err(id.to_owned()))
    }
}

/// A code of another code system, and how it relates to the concept.
pub type Code = (String, String);

/// Translates concepts into the code system `system`, also by the SSSOM files `mappings`.
pub fn translator(kb: &canonym::KnowledgeBase, system: &str, mappings: &[PathBuf]) -> canonym::Result<Translator> {
    let mut all = PredicateMappings::default();
    for path in mappings {
        all.read(&mut Input::open(path)?, &mut Report::default())?;
    }
    Translator::new(kb, system, all)
}

/// The codes of a concept.
pub fn codes_of(kb: &canonym::KnowledgeBase, translator: &Translator, concept: ConceptId) -> Vec<Code> {
    let codes = translator.codes(kb, concept).into_iter();
    codes.map(|code| (code.id, code.predicate.name().to_owned())).collect()
}

#[pymethods]
impl KnowledgeBase {
    #[new]
    #[pyo3(signature = (path=None, shared=false))]
    fn new(py: Python<'_>, path: Option<PathBuf>, shared: bool) -> PyResult<KnowledgeBase> {
        KnowledgeBase::open(py, path, shared)
    }

    /// Opens the compiled file at `path`, or the starter terminology of about 15,000 common concepts with MeSH ids.
    ///
    /// With `shared`, the file and the cached embeddings of its names are memory-mapped, so that processes that open it share one copy.
    ///
    /// >>> kb = canonym.KnowledgeBase.open()
    /// >>> kb["MESH:D003693"].name
    /// 'Delirium'
    #[staticmethod]
    #[pyo3(signature = (path=None, shared=false))]
    fn open(py: Python<'_>, path: Option<PathBuf>, shared: bool) -> PyResult<KnowledgeBase> {
        if shared { KnowledgeBase::shared(py, path) } else { KnowledgeBase::at(py, path) }
    }

    /// Compiles files of a terminology into the file `out` and opens it.
    ///
    /// `sources` is one path or a list of them, in any format that `canonym kb build` reads: OBO, OWL, OBO Graphs, UMLS RRF, SNOMED CT
    /// RF2, MeSH, CTD, NCBI Gene and Taxonomy, BioSyn, TSV or JSON lines. Options are those of the command: format, prefix, vocabularies
    /// (`--sources`), languages, semantic_types, term_types, keep_obsolete, xrefs, xrefs_from, code_systems (`--code-system`), join,
    /// join_predicates, with_starter, names_as_written, name, licence and version (`--source-version`).
    ///
    /// >>> _ = open("clinic.tsv", "w").write("CLINIC:1\ttennis elbow\tlateral epicondylitis\n")
    /// >>> kb = canonym.KnowledgeBase.build("clinic.tsv", "clinic.kb")
    /// >>> len(kb), kb.search("epicondylitis")[0].id
    /// (1, 'CLINIC:1')
    #[staticmethod]
    #[pyo3(signature = (sources, out, **options))]
    fn build(
        py: Python<'_>,
        sources: &Bound<'_, PyAny>,
        out: PathBuf,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<KnowledgeBase> {
        let config = build_config(py, one_or_many(sources)?, options)?;
        let (_, report) = threads::cancellable(py, |is_cancelled| {
            let mut progress = |_| match is_cancelled.load(Ordering::Relaxed) {
                true => Err(Error::cancelled("interrupted")),
                false => Ok(()),
            };
            canonym::build_kb(&config, &out, &mut progress)
        })?;
        let mut opened = KnowledgeBase::at(py, Some(out))?;
        opened.report = Some(report);
        Ok(opened)
    }

    /// Path of the file; `None` for the starter.
    #[getter]
    fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Short name.
    #[getter]
    fn name(&self) -> &str {
        &self.kb.meta().name
    }

    /// Release given by the source or the user; may be empty.
    #[getter]
    fn version(&self) -> &str {
        &self.kb.meta().version
    }

    /// Hash of its content, as `canonym kb info` prints it.
    #[getter]
    fn fingerprint(&self) -> String {
        format!("{:032x}", self.kb.container().fingerprint())
    }

    /// Semantic types of its concepts.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.kb.meta().types.clone()
    }

    /// Source vocabularies of its concepts; empty if there is only one.
    #[getter]
    fn sources(&self) -> Vec<String> {
        self.kb.meta().sources.clone()
    }

    /// Number of names.
    #[getter]
    fn n_names(&self) -> usize {
        self.kb.n_names()
    }

    /// Numbers of merged and dropped items by kind and reason; `None` unless just built.
    #[getter]
    fn build_report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(report) = &self.report else { return Ok(None) };
        let counts = PyDict::new(py);
        counts.set_item("read", report.n_read)?;
        counts.set_item("joined", report.n_joined)?;
        for (name, rows) in [("merged", &report.merged), ("dropped", &report.dropped)] {
            let reasons = PyDict::new(py);
            for ((kind, reason), n) in rows {
                reasons.set_item(format!("{kind}: {reason}"), n)?;
            }
            counts.set_item(name, reasons)?;
        }
        Ok(Some(counts))
    }

    /// Finds concepts by id or name: exact names first, then names that start with the query, then similarly spelled ones.
    ///
    /// >>> canonym.KnowledgeBase.open().search("delirum", top_k=1)
    /// [<SearchHit MESH:D003693 Delirium (fuzzy, 0.70)>]
    #[pyo3(signature = (query, top_k=10))]
    fn search(&self, query: &Bound<'_, PyString>, top_k: usize) -> PyResult<Vec<SearchHit>> {
        let (py, query) = (query.py(), utf8(query, || "the query".to_owned())?);
        let hit = |hit: &canonym::SearchHit| SearchHit {
            id: self.kb.id(hit.concept).to_owned(),
            name: self.kb.preferred_name(hit.concept).to_owned(),
            matched: self.kb.name(hit.name).to_owned(),
            kind: hit.kind.name().to_owned(),
            similarity: canonym_core::numbers::rounded(hit.similarity),
        };
        threads::work(py, || Ok(search(&self.kb, query.trim(), top_k).iter().map(hit).collect()))
    }

    /// The concept with this id or alternative id, or `default`.
    #[pyo3(signature = (id, default=None))]
    fn get(&self, id: &Bound<'_, PyString>, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let py = id.py();
        match self.find(utf8(id, || "the id".to_owned())?) {
            Some(concept) => Ok(Py::new(py, self.concept(concept))?.into_any()),
            None => Ok(default.unwrap_or_else(|| py.None())),
        }
    }

    /// The codes of a concept in another code system, each with its predicate, the strongest first.
    ///
    /// `system` is a prefix such as `ICD10CM`, or the URI of a code system; `mappings` is one SSSOM file or several, followed in either
    /// direction. For the codes of many concepts, pass `to_system` and `mappings` to `System.open`.
    ///
    /// >>> source = open("ward.jsonl", "w").write('{"id": "WARD:1", "name": "gout", "xrefs": ["ICD10CM:M10.9"]}')
    /// >>> kb = canonym.KnowledgeBase.build("ward.jsonl", "ward.kb")
    /// >>> kb.codes("WARD:1", "ICD10CM")
    /// [('ICD10CM:M10.9', 'oboInOwl:hasDbXref')]
    #[pyo3(signature = (id, system, mappings=None))]
    fn codes(
        &self,
        id: &Bound<'_, PyString>,
        system: &Bound<'_, PyString>,
        mappings: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Code>> {
        let concept = self.concept_of(id)?;
        let system = utf8(system, || "the code system".to_owned())?;
        let mappings = mappings.map_or(Ok(Vec::new()), one_or_many)?;
        let codes = || Ok(codes_of(&self.kb, &translator(&self.kb, system, &mappings)?, concept));
        threads::work(id.py(), codes)
    }

    fn __getitem__(&self, id: &Bound<'_, PyString>) -> PyResult<Concept> {
        Ok(self.concept(self.concept_of(id)?))
    }

    fn __contains__(&self, id: &Bound<'_, PyString>) -> bool {
        id.to_str().is_ok_and(|id| self.find(id).is_some())
    }

    fn __len__(&self) -> usize {
        self.kb.n_concepts()
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let ids: Vec<&str> = self.kb.concepts().map(|concept| self.kb.id(concept)).collect();
        Ok(PyTuple::new(py, ids)?.try_iter()?.into_any().unbind())
    }

    fn __repr__(&self) -> String {
        let Meta { name, n_concepts, n_names, .. } = self.kb.meta();
        format!("<KnowledgeBase {name}: {n_concepts} concepts, {n_names} names>")
    }

    fn __getnewargs__(&self) -> PyResult<(Option<PathBuf>, bool)> {
        // Another process may have another current folder.
        let path = self.path.as_deref().map(std::path::absolute).transpose()?;
        Ok((path, self.is_shared))
    }
}

fn build_config(py: Python<'_>, sources: Vec<PathBuf>, options: Option<&Bound<'_, PyDict>>) -> PyResult<BuildConfig> {
    if sources.is_empty() {
        return Err(usage(py, "no sources", "give one file or folder, or a list of them"));
    }
    let mut options = Options::new("build", options)?;
    let format: Option<String> = options.take("format")?;
    let format: Option<SourceFormat> = format.map(|word| named_format(&word)).transpose().or_raise(py)?;
    let prefix: Option<String> = options.take("prefix")?;
    let config = BuildConfig {
        sources: sources
            .iter()
            .map(|source| SourceArgument::parse(source))
            .collect::<canonym::Result<_>>()
            .or_raise(py)?,
        format,
        import: ImportConfig {
            prefix: prefix.as_deref().map(bare_prefix),
            sources: options.take_list("vocabularies")?,
            languages: options.take_list("languages")?,
            semantic_types: options.take_list("semantic_types")?,
            term_types: options.take_list("term_types")?,
            keep_obsolete: options.take("keep_obsolete")?.unwrap_or_default(),
            xrefs: options.take("xrefs")?.unwrap_or_default(),
        },
        mappings: options.take_list("join")?,
        predicates: options.take_list("join_predicates")?,
        starter: options.take::<bool>("with_starter")?.unwrap_or_default().then(|| STARTER_TABLE.as_bytes().to_vec()),
        names_as_written: options.take("names_as_written")?.unwrap_or_default(),
        name: options.take("name")?,
        licence: options.take("licence")?.unwrap_or_default(),
        version: options.take("version")?.unwrap_or_default(),
        xrefs_from: options.take_list("xrefs_from")?,
        code_systems: options
            .take_list::<String>("code_systems")?
            .iter()
            .map(|text| code_system(text))
            .collect::<canonym::Result<_>>()
            .or_raise(py)?,
    };
    options.finish()?;
    Ok(config)
}

/// The concept filters among the options of a system.
pub fn filters(options: &mut Options<'_>) -> PyResult<SubsetConfig> {
    Ok(SubsetConfig {
        only_sources: options.take_list("only_sources")?,
        only_types: options.take_list("only_types")?,
        only_under: options.take_list("only_under")?,
        not_sources: options.take_list("not_sources")?,
        not_types: options.take_list("not_types")?,
        not_under: options.take_list("not_under")?,
    })
}

/// A concept of a knowledge base.
#[pyclass(frozen, get_all, eq, module = "canonym")]
#[derive(PartialEq)]
pub struct Concept {
    /// Its id, such as `MESH:D003693`.
    id: String,
    /// Preferred name.
    name: String,
    /// All names, the preferred one first.
    names: Vec<String>,
    /// Semantic types.
    types: Vec<String>,
    /// Definition, if the terminology has one.
    definition: Option<String>,
    /// Ids of the parents.
    parents: Vec<String>,
    /// Other ids of the same concept.
    alternative_ids: Vec<String>,
    /// Codes of other code systems, each with its predicate, such as `skos:exactMatch`.
    xrefs: Vec<(String, String)>,
    /// URI of the code system of its id.
    code_system: String,
    /// Source vocabulary; empty if the terminology has only one.
    source: String,
}

#[pymethods]
impl Concept {
    #[staticmethod]
    #[allow(clippy::too_many_arguments, reason = "one for each field, for pickle")]
    fn _new(
        id: String,
        name: String,
        names: Vec<String>,
        types: Vec<String>,
        definition: Option<String>,
        parents: Vec<String>,
        others: (Vec<String>, Vec<(String, String)>, String),
        source: String,
    ) -> Concept {
        let (alternative_ids, xrefs, code_system) = others;
        Concept { id, name, names, types, definition, parents, alternative_ids, xrefs, code_system, source }
    }

    fn __repr__(&self) -> String {
        format!("<Concept {} {}>", self.id, self.name)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let Concept { id, name, names, types, definition, parents, alternative_ids, xrefs, code_system, source } = self;
        let others = (alternative_ids, xrefs, code_system);
        let fields = (id, name, names, types, definition, parents, others, source).into_pyobject(py)?;
        Ok((py.get_type::<Concept>().getattr("_new")?, fields))
    }
}

/// A concept found by its name or id.
#[pyclass(frozen, get_all, eq, module = "canonym")]
#[derive(PartialEq)]
pub struct SearchHit {
    /// Id of the concept.
    id: String,
    /// Its preferred name.
    name: String,
    /// The name that matches the query.
    matched: String,
    /// How it matches: `id`, `exact`, `prefix` or `fuzzy`.
    kind: String,
    /// Similarity to the query, from 0 to 1.
    similarity: f64,
}

#[pymethods]
impl SearchHit {
    #[staticmethod]
    fn _new(id: String, name: String, matched: String, kind: String, similarity: f64) -> SearchHit {
        SearchHit { id, name, matched, kind, similarity }
    }

    fn __repr__(&self) -> String {
        format!("<SearchHit {} {} ({}, {:.2})>", self.id, self.name, self.kind, self.similarity)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let fields = (&self.id, &self.name, &self.matched, &self.kind, self.similarity).into_pyobject(py)?;
        Ok((py.get_type::<SearchHit>().getattr("_new")?, fields))
    }
}
