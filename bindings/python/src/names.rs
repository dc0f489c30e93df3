//! `NameLink`: a name that was linked without a text.

use canonym::{Explanation, KnowledgeBase, Link};
use canonym_core::kb::translate::Translator;
use canonym_core::numbers::rounded;
use canonym_neural::system::terminology;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::documents::{Candidate, from_json_text};
use crate::kb::{Code, codes_of};

/// A name with the concepts that it may mean.
#[pyclass(frozen, module = "canonym")]
pub struct NameLink {
    query: String,
    nil: bool,
    candidates: Vec<Candidate>,
    /// Of the linked concept, if they were asked for.
    codes: Vec<Code>,
    explanation: Option<Explanation>,
}

impl NameLink {
    /// The link of a name; `raw` shows ids as the source writes them.
    pub fn new(
        (kb, translator): (&KnowledgeBase, Option<&Translator>),
        query: String,
        (link, mut explanation): (Link, Option<Explanation>),
        raw: bool,
    ) -> NameLink {
        let best = link.candidates.first().filter(|_| !link.nil);
        let codes = translator.zip(best).map(|(translator, best)| codes_of(kb, translator, best.concept));
        let candidate = |one: &canonym::Candidate| Candidate {
            id: terminology::shown_id(kb, one.concept, raw),
            name: kb.preferred_name(one.concept).to_owned(),
            score: rounded(one.p_link),
            p_link: rounded(one.p_link),
        };
        let candidates: Vec<Candidate> = link.candidates.iter().map(candidate).collect();
        if let Some(explanation) = &mut explanation {
            for (explained, candidate) in explanation.candidates.iter_mut().zip(&candidates) {
                explained.id.clone_from(&candidate.id);
            }
        }
        NameLink { query, nil: link.nil, candidates, codes: codes.unwrap_or_default(), explanation }
    }

    fn best(&self) -> Option<&Candidate> {
        self.candidates.first().filter(|_| !self.nil)
    }
}

#[pymethods]
impl NameLink {
    /// The name that was looked up.
    #[getter]
    fn query(&self) -> &str {
        &self.query
    }

    /// Id of the linked concept; `None` if the name is not linked.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.best().map(|best| best.id.as_str())
    }

    /// Preferred name of the linked concept; `None` if the name is not linked.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.best().map(|best| best.name.as_str())
    }

    /// Probability that the best candidate is meant.
    #[getter]
    fn score(&self) -> f64 {
        self.candidates.first().map_or(0.0, |best| best.score)
    }

    /// The same as `score`, by the name that links of mentions have it under; `None` without candidates.
    #[getter]
    fn p_link(&self) -> Option<f64> {
        self.candidates.first().map(|best| best.p_link)
    }

    /// Whether the name was left unlinked.
    #[getter]
    fn nil(&self) -> bool {
        self.nil
    }

    /// The candidate concepts, best first.
    #[getter]
    fn candidates(&self) -> Vec<Candidate> {
        self.candidates.clone()
    }

    /// Codes of the linked concept in the code system `to_system` of the system, each with its predicate, the strongest first.
    #[getter]
    fn codes(&self) -> Vec<Code> {
        self.codes.clone()
    }

    /// Why it was linked so; `None` without `explain=True`.
    #[getter]
    fn explanation<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(explanation) = &self.explanation else { return Ok(None) };
        let text = serde_json::to_string(explanation).expect("explanations hold strings and numbers");
        from_json_text(py, &text).map(Some)
    }

    fn __repr__(&self) -> String {
        match self.best() {
            Some(Candidate { id, name, score, .. }) => format!("<NameLink {} {id} {name} ({score:.2})>", self.query),
            None => format!("<NameLink {} unlinked>", self.query),
        }
    }

    #[staticmethod]
    fn _new(query: String, nil: bool, candidates: Vec<Candidate>, codes: Vec<Code>) -> NameLink {
        NameLink { query, nil, candidates, codes, explanation: None }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let fields = (&self.query, self.nil, self.candidates.clone(), &self.codes).into_pyobject(py)?;
        Ok((py.get_type::<NameLink>().getattr("_new")?, fields))
    }
}
