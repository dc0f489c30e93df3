//! `System`: a model on a knowledge base.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use canonym::{
    AnnotatedDocument, Annotation, Document as Text, Error, Explanation, Link, LinkConfig, MentionSource, Models,
    NameLinker, Nested, SenseInventory, Span, Subset, SystemConfig, add_contexts,
};
use canonym_core::kb::translate::Translator;
use canonym_core::records::codes;
use canonym_core::text::offsets::OffsetMap;
use canonym_neural::system::{DEFAULT, rerank};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::prelude::*;

use crate::documents::{Document, Documents};
use crate::errors::{OrRaise, usage};
use crate::inputs::{Options, Texts};
use crate::kb::{KnowledgeBase, filters, translator};
use crate::names::NameLink;
use crate::threads::{BatchSize, in_batches, work};

/// Model and knowledge base.
type Positional = (PathBuf, Py<KnowledgeBase>);

/// Limits of a batch: enough for all cores, little work until an interrupt is noticed.
const TEXTS: BatchSize<AnnotatedDocument> =
    BatchSize { n_items: 256, n_bytes: 256 << 10, bytes_of: |document| document.document.text.len() };
const NAMES: BatchSize<String> = BatchSize { n_items: 4096, n_bytes: 1 << 20, bytes_of: String::len };

/// A model that finds mentions and links them to the concepts of a knowledge base. Pickles by paths and options.
#[pyclass(frozen, module = "canonym")]
pub struct System {
    kb: Py<KnowledgeBase>,
    models: Models,
    config: SystemConfig,
    /// Into the code system whose codes are added.
    translator: Option<Translator>,
    /// The systems that were used so far.
    detecting: OnceLock<Arc<canonym::System>>,
    given: OnceLock<Arc<canonym::System>>,
    names: OnceLock<Arc<NameLinker>>,
    /// The arguments, for pickles.
    model: String,
    options: Py<PyDict>,
}

#[pymethods]
impl System {
    #[new]
    #[pyo3(
        signature = (model=PathBuf::from(DEFAULT), kb=None, **options),
        text_signature = "(model='default', kb=None, **options)"
    )]
    fn new(
        py: Python<'_>,
        model: PathBuf,
        kb: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<System> {
        System::open(py, model, kb, options)
    }

    /// Opens a model on a knowledge base.
    ///
    /// `model` is `default`, `lexical`, `bm25` (given mentions only), or the path of a trained model; `kb` is a `KnowledgeBase`, the path
    /// of one, or `None` for the starter. Options: top_k, min_score, nested (`none`, `other-types` or `all`), raw_ids, abbreviations,
    /// rerank, and the concept filters only_sources, only_types, only_under, not_sources, not_types and not_under. With `to_system`, a
    /// prefix such as `ICD10CM` or the URI of a code system, mentions and names get the codes of their concepts in it, by cross-references
    /// and by the SSSOM files `mappings`.
    ///
    /// >>> system = canonym.System.open("lexical", only_types="T047")
    /// >>> [mention.name for mention in system.annotate("Asthma, treated with cortisone.")]
    /// ['Asthma']
    #[staticmethod]
    #[pyo3(
        signature = (model=PathBuf::from(DEFAULT), kb=None, **options),
        text_signature = "(model='default', kb=None, **options)"
    )]
    fn open(
        py: Python<'_>,
        model: PathBuf,
        kb: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<System> {
        let kept = options.map_or_else(|| Ok(PyDict::new(py)), |options| options.copy())?.unbind();
        let model = model.to_str().ok_or_else(|| PyTypeError::new_err("the path of the model is not UTF-8"))?;
        let kb = knowledge_base(py, model, kb)?;
        let mut options = Options::new("System", options)?;
        let subset = filters(&mut options)?;
        let nested: Option<String> = options.take("nested")?;
        let abbreviations: Vec<PathBuf> = options.take_list("abbreviations")?;
        let reranker: Option<PathBuf> = options.take("rerank")?;
        let mut config = SystemConfig {
            top_k: in_range(py, "top_k", options.take("top_k")?.unwrap_or(5), 1..=100)?,
            min_score: options.take("min_score")?,
            nested: nested.map_or(Ok(Nested::default()), |word| parse_nested(py, &word))?,
            raw_ids: options.take("raw_ids")?.unwrap_or_default(),
            ..SystemConfig::default()
        };
        let to_system: Option<String> = options.take("to_system")?;
        let mappings: Vec<PathBuf> = options.take_list("mappings")?;
        options.finish()?;
        if to_system.is_none() && !mappings.is_empty() {
            return Err(usage(py, "`mappings` without `to_system`", "name the code system with `to_system`"));
        }
        if let Some(score) = config.min_score.filter(|score| !(0.0..=1.0).contains(score)) {
            return Err(usage(py, format!("invalid min_score: {score}"), "use a probability between 0 and 1"));
        }
        let opened = work(py, || {
            if !subset.is_all() {
                config.subset = Some(Arc::new(Subset::choose(&kb.get().kb, &subset)?));
            }
            let mut models = Models::named(model)?;
            models.rerank = reranker.as_deref().map(rerank::open).transpose()?;
            models.senses = SenseInventory::of_files(&abbreviations)?;
            let translator = to_system.map(|to| translator(linker_kb(&kb), &to, &mappings)).transpose()?;
            Ok((models, config, translator))
        });
        let (models, config, translator) = opened?;
        let system = System {
            kb,
            models,
            config,
            translator,
            detecting: OnceLock::new(),
            given: OnceLock::new(),
            names: OnceLock::new(),
            model: model.to_owned(),
            options: kept,
        };
        // Models that only link given mentions say so when they are asked to detect some.
        match work(py, || Ok(system.detecting().map(drop)))? {
            Ok(()) => Ok(system),
            Err(error) if matches!(error.root(), Error::Usage { .. }) => Ok(system),
            Err(error) => Err(error).or_raise(py),
        }
    }

    /// The knowledge base.
    #[getter]
    fn kb(&self, py: Python<'_>) -> Py<KnowledgeBase> {
        self.kb.clone_ref(py)
    }

    /// The model, as it was opened.
    #[getter]
    fn model(&self) -> &str {
        &self.model
    }

    /// Kind and hash of the model, as in run folders of `canonym link`.
    #[getter]
    fn fingerprint(&self) -> String {
        self.models.fingerprint()
    }

    /// The cache files with embeddings of the names of the knowledge base that the model reads.
    #[getter]
    fn embedding_files(&self) -> Vec<PathBuf> {
        let files = self.models.linking.embedding_files(linker_kb(&self.kb));
        files.into_iter().filter(|file| file.exists()).collect()
    }

    /// Finds the mentions of texts and links them.
    ///
    /// `texts` is a string, which gives one `Document`, or an iterable of strings or an Arrow table with a column `text`, which give
    /// `Documents`. Uses all threads and releases the interpreter lock.
    ///
    /// >>> canonym.System.open("lexical").annotate(["She has asthma.", "No fever."])
    /// <Documents: 2 documents, 2 mentions>
    #[pyo3(signature = (texts, *, ids=None))]
    fn annotate<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        ids: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Texts { documents, is_one } = Texts::new(texts, ids)?;
        let bare = |document| AnnotatedDocument { document, ..AnnotatedDocument::default() };
        let documents = documents.into_iter().map(bare).collect();
        let linked = in_batches(py, documents, TEXTS, |batch| {
            let system = self.detecting()?;
            self.completed(system, system.link(batch)?)
        })?;
        returned(py, linked.into_iter().map(|document| (document, Vec::new())), is_one)
    }

    /// Links given mentions of texts.
    ///
    /// `spans` has one list of mentions for each text, in characters: `(start, end)`, or a list of such pairs for a discontinuous mention.
    ///
    /// >>> canonym.System.open("lexical").link("Delirium after surgery", [(0, 8)])[0].id
    /// 'MESH:D003693'
    #[pyo3(signature = (texts, spans, *, ids=None))]
    fn link<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        spans: &Bound<'py, PyAny>,
        ids: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Texts { documents, is_one } = Texts::new(texts, ids)?;
        let spans = spans_of(spans, is_one)?;
        if spans.len() != documents.len() {
            let message = format!("spans of {} texts for {} texts", spans.len(), documents.len());
            return Err(usage(py, message, "give one list of spans per text; it may be empty"));
        }
        let marked = documents.into_iter().zip(spans).map(|(document, spans)| marked(document, &spans));
        let documents = marked.collect::<canonym::Result<_>>().or_raise(py)?;
        let linked = in_batches(py, documents, TEXTS, |batch| {
            let system = self.given()?;
            self.completed(system, system.link(batch)?)
        })?;
        returned(py, linked.into_iter().map(|document| (document, Vec::new())), is_one)
    }

    /// Like `annotate`, or `link` if `spans` is given, with an `explanation` of each mention. Slower.
    ///
    /// >>> document = canonym.System.open("lexical").explain("She has asthma.")
    /// >>> document[0].explanation["compared"]
    /// 'asthma'
    #[pyo3(signature = (texts, spans=None, *, ids=None))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        spans: Option<&Bound<'py, PyAny>>,
        ids: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Texts { documents, is_one } = Texts::new(texts, ids)?;
        let is_given = spans.is_some();
        let spans = match spans {
            Some(spans) => spans_of(spans, is_one)?,
            None => vec![Vec::new(); documents.len()],
        };
        let marked = documents.into_iter().zip(spans).map(|(document, spans)| marked(document, &spans));
        let documents = marked.collect::<canonym::Result<_>>().or_raise(py)?;
        let explained = in_batches(py, documents, TEXTS, |batch| {
            let system = if is_given { self.given()? } else { self.detecting()? };
            let (documents, explanations): (Vec<_>, Vec<_>) = system.explain(batch)?.into_iter().unzip();
            Ok(self.completed(system, documents)?.into_iter().zip(explanations).collect())
        })?;
        returned(py, explained.into_iter(), is_one)
    }

    /// Links names without context, such as the terms of a table.
    ///
    /// >>> [link.name for link in canonym.System.open("lexical").map(["heart attack", "n/a"])]
    /// ['Myocardial Infarction', None]
    #[pyo3(signature = (names, *, explain=false))]
    fn map<'py>(&self, py: Python<'py>, names: &Bound<'py, PyAny>, explain: bool) -> PyResult<Bound<'py, PyAny>> {
        let Texts { documents, is_one } = Texts::new(names, None)?;
        let names = documents.into_iter().map(|document| document.text).collect();
        let links = in_batches(py, names, NAMES, |names| {
            let linker = self.names()?;
            let links: Vec<(Link, Option<Explanation>)> = match explain {
                false => linker.link_names(&names)?.into_iter().map(|link| (link, None)).collect(),
                true => {
                    let explained = linker.explain_names(&names)?.into_iter();
                    explained.map(|(link, explanation)| (link, Some(explanation))).collect()
                }
            };
            linker_kb(&self.kb).container().check_unchanged()?;
            Ok(names.into_iter().zip(links).collect())
        })?;
        let into = (linker_kb(&self.kb), self.translator.as_ref());
        let mut links = links.into_iter().map(|(query, link)| NameLink::new(into, query, link, self.config.raw_ids));
        match is_one {
            true => Ok(Bound::new(py, links.next().expect("one name has one link"))?.into_any()),
            false => Ok(links.collect::<Vec<_>>().into_pyobject(py)?),
        }
    }

    fn __repr__(&self) -> String {
        format!("<System {} on {}>", self.model, linker_kb(&self.kb).meta().name)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Positional, Bound<'py, PyDict>)> {
        // Another process may have another current folder.
        let model = Path::new(&self.model);
        let model = if model.exists() { std::path::absolute(model)? } else { model.to_path_buf() };
        Ok(((model, self.kb.clone_ref(py)), self.options.bind(py).clone()))
    }
}

impl System {
    fn detecting(&self) -> canonym::Result<&canonym::System> {
        built(&self.detecting, || self.with_mentions(MentionSource::Detect))
    }

    fn given(&self) -> canonym::Result<&canonym::System> {
        built(&self.given, || self.with_mentions(MentionSource::Given))
    }

    fn with_mentions(&self, mentions: MentionSource) -> canonym::Result<canonym::System> {
        let mut models = self.models.clone();
        if mentions == MentionSource::Given {
            // Abbreviations are a part of detection.
            models.senses = None;
        }
        canonym::System::new(&self.kb.get().kb, models, &SystemConfig { mentions, ..self.config.clone() })
    }

    /// Adds contexts, and codes if they are asked for, to linked documents.
    fn completed(
        &self,
        system: &canonym::System,
        mut documents: Vec<AnnotatedDocument>,
    ) -> canonym::Result<Vec<AnnotatedDocument>> {
        system.check_kb()?;
        documents.par_iter_mut().for_each(|document| {
            add_contexts(document);
            if let Some(translator) = &self.translator {
                codes::add(linker_kb(&self.kb), translator, document);
            }
        });
        Ok(documents)
    }

    fn names(&self) -> canonym::Result<&NameLinker> {
        let config = LinkConfig { top_k: self.config.top_k, min_score: self.config.min_score.unwrap_or(0.0) };
        built(&self.names, || NameLinker::new(&self.kb.get().kb, &self.models, config, self.config.subset.clone()))
    }
}

/// The value of a cell, computed if it is empty.
fn built<T>(cell: &OnceLock<Arc<T>>, build: impl FnOnce() -> canonym::Result<T>) -> canonym::Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    // Two threads may build it at once; one result is kept.
    let value = Arc::new(build()?);
    Ok(cell.get_or_init(|| value))
}

fn linker_kb(kb: &Py<KnowledgeBase>) -> &canonym::KnowledgeBase {
    &kb.get().kb
}

/// One document, or all.
fn returned<'py>(
    py: Python<'py>,
    linked: impl Iterator<Item = (AnnotatedDocument, Vec<Explanation>)>,
    is_one: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let mut documents = linked.map(|(document, explanations)| Document::new(document, explanations));
    match is_one {
        true => Ok(Bound::new(py, documents.next().expect("one text is one document"))?.into_any()),
        false => {
            let documents = documents.map(|document| Py::new(py, document)).collect::<PyResult<_>>()?;
            Ok(Bound::new(py, Documents(documents))?.into_any())
        }
    }
}

/// The spans of each mention in code points.
type Spans = Vec<Vec<(usize, usize)>>;

/// The spans of each text. A mention is a pair of offsets, or a list of pairs if it is discontinuous.
fn spans_of(spans: &Bound<'_, PyAny>, is_one: bool) -> PyResult<Vec<Spans>> {
    if is_one {
        return Ok(vec![mentions_of(spans)?]);
    }
    spans.try_iter()?.map(|of_text| mentions_of(&of_text?)).collect()
}

fn mentions_of(spans: &Bound<'_, PyAny>) -> PyResult<Spans> {
    let mention = |span: PyResult<Bound<'_, PyAny>>| {
        let span = span?;
        if let Ok(pair) = span.extract::<(usize, usize)>() {
            return Ok(vec![pair]);
        }
        let pairs: PyResult<Vec<(usize, usize)>> =
            span.try_iter().and_then(|pairs| pairs.map(|pair| pair?.extract()).collect());
        match pairs {
            Ok(pairs) if !pairs.is_empty() => Ok(pairs),
            _ => {
                let message = format!("{} is not a span", span.repr()?);
                Err(usage(span.py(), message, "a span is a pair of offsets, or a list of pairs if it is discontinuous"))
            }
        }
    };
    spans.try_iter()?.map(mention).collect()
}

/// A document whose mentions are to be linked.
fn marked(document: Text, spans: &Spans) -> canonym::Result<AnnotatedDocument> {
    let map = OffsetMap::new(&document.text);
    let byte = |&(start, end): &(usize, usize)| match (map.char_to_byte(start), map.char_to_byte(end)) {
        (Some(first), Some(last)) if first < last => Ok(Span::new(first, last)),
        _ => {
            let (id, n) = (&document.id, map.n_chars());
            let error = Error::invalid(format!("document `{id}`: {start}..{end} is not a span of its {n} characters"));
            Err(error.with_hint("a span has a start and an end, in characters from 0; the end is exclusive"))
        }
    };
    let annotation = |spans: &Vec<(usize, usize)>| -> canonym::Result<Annotation> {
        let mut spans = spans.iter().map(byte).collect::<canonym::Result<Vec<Span>>>()?;
        spans.sort_unstable();
        let parts: Vec<&str> = spans.iter().map(|span| span.of(&document.text)).collect();
        Ok(Annotation { text: parts.join(" "), spans, ..Annotation::default() })
    };
    let annotations = spans.iter().map(annotation).collect::<canonym::Result<_>>()?;
    Ok(AnnotatedDocument { document, annotations, ..AnnotatedDocument::default() })
}

fn knowledge_base(py: Python<'_>, model: &str, kb: Option<&Bound<'_, PyAny>>) -> PyResult<Py<KnowledgeBase>> {
    let Some(kb) = kb else { return Py::new(py, KnowledgeBase::of_model(py, model)?) };
    if let Ok(kb) = kb.cast::<KnowledgeBase>() {
        return Ok(kb.clone().unbind());
    }
    match kb.extract::<PathBuf>() {
        Ok(path) => Py::new(py, KnowledgeBase::at(py, Some(path))?),
        Err(_) => {
            let kind = kb.get_type().name()?;
            Err(PyTypeError::new_err(format!("argument 'kb': expected a KnowledgeBase or a path, not {kind}")))
        }
    }
}

fn in_range(py: Python<'_>, name: &str, n: usize, range: std::ops::RangeInclusive<usize>) -> PyResult<usize> {
    match range.contains(&n) {
        true => Ok(n),
        false => {
            let hint = format!("use a number between {} and {}", range.start(), range.end());
            Err(usage(py, format!("invalid {name}: {n}"), hint))
        }
    }
}

fn parse_nested(py: Python<'_>, word: &str) -> PyResult<Nested> {
    match word {
        "none" => Ok(Nested::None),
        "other-types" => Ok(Nested::OtherTypes),
        "all" => Ok(Nested::All),
        _ => Err(usage(py, format!("invalid nested: `{word}`"), "use none, other-types or all")),
    }
}
