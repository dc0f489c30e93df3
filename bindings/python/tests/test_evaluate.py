"""Predictions are scored against gold annotations."""

import pickle

import pytest
from conftest import NOTE

import canonym

GOLD = {
    "id": "1",
    "text": NOTE,
    "annotations": [
        {"spans": [[11, 23]], "ids": ["CLINIC:L3"]},
        {"spans": [[25, 37]], "ids": ["CLINIC:L4"]},
        {"spans": [[55, 64]], "ids": ["CLINIC:L1"]},
    ],
}


def test_documents_files_and_dictionaries_are_scored(lexical, tmp_path):
    predicted = lexical.annotate([NOTE])
    report = canonym.evaluate([GOLD], predicted)
    assert report.metrics["strict"]["f1"] == pytest.approx(2 / 3, abs=1e-4)
    assert repr(report) == "<Report: 1 document, strict F1 0.667>"
    assert "strict" in str(report)
    path = tmp_path / "predicted.jsonl"
    path.write_text(predicted.to_jsonl())
    assert canonym.evaluate([GOLD], path).to_dict() == report.to_dict()
    assert pickle.loads(pickle.dumps(report)).to_json() == report.to_json()


def test_documents_that_do_not_belong_together_are_refused(lexical):
    with pytest.raises(canonym.MismatchError) as caught:
        canonym.evaluate([GOLD], lexical.annotate([NOTE], ids=["other"]))
    assert "other" in str(caught.value) or "1" in str(caught.value)


def test_an_error_in_a_dictionary_is_located():
    with pytest.raises(canonym.FormatError, match="gold"):
        canonym.evaluate([{"id": "1", "text": "x", "annotations": [{"spans": [[0, 9]]}]}], [])


def test_a_wrong_measure_is_named():
    with pytest.raises(canonym.UsageError, match="no-such"):
        canonym.evaluate([GOLD], [GOLD], measures=["no-such"])
