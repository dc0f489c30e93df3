//! `evaluate`: scores predictions against gold annotations.

use canonym::eval::bootstrap::{BootstrapConfig, SplitMix64};
use canonym::eval::ids::IdPolicy;
use canonym::eval::matching::{MatchConfig, Measure};
use canonym::eval::report::{self, EvalConfig};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::documents::{counted, from_json_text};
use crate::errors::OrRaise;
use crate::inputs::{Options, annotated};
use crate::threads;

/// Scores `predicted` against `gold`: files in any corpus format, `Documents`, or dictionaries of the shape of a JSON line.
///
/// Documents are paired by id. Options: ids (`any`, `first` or `exact`), measures, by_type, resamples, seed.
///
/// >>> text = {"id": "1", "text": "She has asthma.", "annotations": [{"spans": [[8, 14]], "ids": ["MESH:D001249"]}]}
/// >>> found = canonym.System.open("lexical").annotate([text["text"]])
/// >>> canonym.evaluate([text], found).metrics["strict"]["f1"]
/// 1.0
#[pyfunction]
#[pyo3(signature = (gold, predicted, **options))]
pub fn evaluate(
    py: Python<'_>,
    gold: &Bound<'_, PyAny>,
    predicted: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Report> {
    let mut options = Options::new("evaluate", options)?;
    let ids: Option<String> = options.take("ids")?;
    let measures: Vec<String> = options.take_list("measures")?;
    let measures = measures.iter().map(|name| name.parse()).collect::<canonym::Result<Vec<Measure>>>().or_raise(py)?;
    let bootstrap = BootstrapConfig::default();
    let config = EvalConfig {
        matching: MatchConfig {
            ids: ids.map_or(Ok(IdPolicy::default()), |name| name.parse()).or_raise(py)?,
            ..MatchConfig::default()
        },
        measures,
        by_type: options.take("by_type")?.unwrap_or_default(),
        bootstrap: BootstrapConfig {
            n_resamples: options.take("resamples")?.unwrap_or(bootstrap.n_resamples),
            ..bootstrap
        },
        ..EvalConfig::default()
    };
    let seed = options.take("seed")?.unwrap_or(13);
    options.finish()?;
    let (gold, predicted) = (annotated(gold, "gold")?, annotated(predicted, "predicted")?);
    threads::work(py, || report::evaluate(&gold, &predicted, &config, &mut SplitMix64::new(seed)).map(Report))
}

/// The scores of an evaluation.
#[pyclass(frozen, module = "canonym")]
pub struct Report(report::Report);

#[pymethods]
impl Report {
    /// The report that `canonym eval --json` prints.
    fn to_json(&self) -> String {
        serde_json::to_string(&self.0).expect("reports hold strings and numbers")
    }

    /// The fields of the report.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json_text(py, &self.to_json())
    }

    /// Precision, recall and F1 by measure.
    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.get_item("metrics")
    }

    fn __str__(&self) -> String {
        self.0.table()
    }

    fn __repr__(&self) -> String {
        let strict = self.0.metrics.get(&Measure::Strict).map(|score| format!(", strict F1 {:.3}", score.f1));
        format!("<Report: {}{}>", counted(self.0.n_documents as usize, "document"), strict.unwrap_or_default())
    }

    #[staticmethod]
    fn _read(py: Python<'_>, json: &str) -> PyResult<Report> {
        let report =
            serde_json::from_str(json).map_err(|error| canonym::Error::damaged(format!("invalid report: {error}")));
        report.map(Report).or_raise(py)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((py.get_type::<Report>().getattr("_read")?, (self.to_json(),)))
    }
}
