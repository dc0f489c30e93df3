"""Rows of the BigBio schema come in and go out."""

import copy

import pytest
from conftest import NOTE

import canonym
from canonym import bigbio

ROW = {
    "id": "0",
    "document_id": "101",
    "passages": [
        {"id": "1", "type": "title", "text": ["Dry cough."], "offsets": [[0, 10]]},
        {"id": "2", "type": "abstract", "text": ["Sweats at night."], "offsets": [[11, 27]]},
    ],
    "entities": [
        {
            "id": "3",
            "type": "Symptom",
            "text": ["Dry cough"],
            "offsets": [[0, 9]],
            "normalized": [{"db_name": "CLINIC", "db_id": "L2"}],
        },
        {
            "id": "4",
            "type": "Symptom",
            "text": ["Sweats", "night"],
            "offsets": [[11, 17], [21, 26]],
            "normalized": [{"db_name": "CLINIC", "db_id": "CLINIC:L3"}],
        },
        {"id": "5", "type": "Symptom", "text": ["night"], "offsets": [[21, 26]], "normalized": []},
    ],
    "events": [],
    "coreferences": [],
    "relations": [],
}


def test_rows_become_gold_documents(lexical):
    (document,) = bigbio.documents([ROW])
    assert (document.id, document.text) == ("101", "Dry cough. Sweats at night.")
    assert [(mention.text, mention.id) for mention in document] == [
        ("Dry cough", "CLINIC:L2"),
        ("Sweats night", "CLINIC:L3"),
        ("night", None),
    ]
    found = lexical.annotate([document])
    assert found[0].id == "101"
    assert canonym.evaluate(bigbio.documents([ROW]), found).metrics["strict"]["precision"] == 1.0


def test_reading_and_writing_keep_annotations():
    (again,) = bigbio.rows(bigbio.documents([ROW]))
    assert again["passages"][1] == {**ROW["passages"][1], "id": "1_P2"}
    assert again["entities"][0] == ROW["entities"][0]
    assert again["entities"][1]["normalized"] == [{"db_name": "CLINIC", "db_id": "L3"}]
    assert again["entities"][2] == ROW["entities"][2]


def test_predictions_become_rows(lexical):
    (row,) = bigbio.rows(lexical.annotate(NOTE))
    assert row["passages"] == [{"id": "1_P1", "type": "document", "text": [NOTE], "offsets": [[0, len(NOTE)]]}]
    assert [entity["normalized"][0]["db_id"] for entity in row["entities"]] == ["L3", "L4", "L2"]
    assert [entity["id"] for entity in row["entities"]] == ["1_T1", "1_T2", "1_T3"]


def test_datasets_hold_the_rows(lexical):
    datasets = pytest.importorskip("datasets")
    texts = [NOTE, "dry cough"]
    data = datasets.Dataset.from_list(bigbio.rows(lexical.annotate(texts)))
    assert [document.text for document in bigbio.documents(data)] == texts
    annotated = lexical.annotate(datasets.Dataset.from_dict({"text": texts})["text"])
    assert annotated == lexical.annotate(texts)
    assert lexical.annotate(datasets.Dataset.from_dict({"text": texts})) == annotated


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row.pop("passages"), "KeyError: 'passages'"),
        (lambda row: row.update(passages=3), "not of the schema"),
        (lambda row: row["passages"][1].update(offsets=[[3, 19]]), r"passage of 16 characters at 3\.\.19, after 10"),
        (lambda row: row["passages"][1].update(offsets=[[10**12, 10**12 + 16]]), "passage of 16 characters"),
        (lambda row: row["entities"][0].update(offsets=[[0, 99]]), "99"),
        (lambda row: row["entities"][0].update(offsets=[["a", "b"]]), "document"),
    ],
)
def test_malformed_rows_are_located(change, message):
    row = copy.deepcopy(ROW)
    change(row)
    with pytest.raises(canonym.FormatError, match=message):
        bigbio.documents([row])
