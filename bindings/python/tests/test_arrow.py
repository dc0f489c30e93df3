"""Linked mentions go into tables, and texts come from them, by the Arrow PyCapsule interface."""

import pytest
from conftest import NOTE

import canonym

TEXTS = [NOTE, "", "No elbow."]
COLUMNS = ["row", "document", "start", "end", "spans", "text", "type", "id", "name", "score", "p_mention", "p_link", "nil"]
COLUMNS += ["negated", "possible", "historical", "hypothetical", "family", "candidates", "codes"]
IDS = ["CLINIC:L3", "CLINIC:L4", "CLINIC:L2", "CLINIC:L5"]


def test_pyarrow_reads_a_row_per_mention(lexical):
    pyarrow = pytest.importorskip("pyarrow")
    documents = lexical.annotate(TEXTS, ids=["a", "b", "c"])
    table = pyarrow.table(documents)
    assert table.column_names == COLUMNS
    assert table["id"].to_pylist() == IDS
    assert table["row"].to_pylist() == [0, 0, 0, 2] and table["document"].to_pylist() == ["a", "a", "a", "c"]
    assert table["negated"].to_pylist() == [True, False, False, True]
    first = table.to_pylist()[0]
    mention = documents[0][0]
    assert (first["start"], first["end"], first["spans"]) == (11, 23, [{"start": 11, "end": 23}])
    assert (first["score"], first["name"]) == (mention.score, "night sweats")
    assert first["candidates"][0] == {"id": "CLINIC:L3", "name": "night sweats", "score": mention.score}
    assert pyarrow.table(documents[1]).num_rows == 0
    assert pyarrow.table(documents[0]).num_rows == 3


def test_codes_of_another_system_are_a_column(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    source = tmp_path / "ward.jsonl"
    source.write_text('{"id":"WARD:1","name":"gout","xrefs":["ICD10CM:M10.9"]}\n{"id":"WARD:2","name":"dry cough"}\n')
    kb = canonym.KnowledgeBase.build(source, tmp_path / "ward.kb")
    system = canonym.System.open("lexical", kb, to_system="ICD10CM")
    table = pyarrow.table(system.annotate(["Gout and a dry cough."]))
    assert table["codes"].to_pylist() == [[{"id": "ICD10CM:M10.9", "predicate": "oboInOwl:hasDbXref"}], []]


def test_pyarrow_tables_and_columns_are_read(lexical):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"id": [7, 8, 9], "text": TEXTS})
    expected = lexical.annotate(TEXTS, ids=[7, 8, 9])
    assert lexical.annotate(table) == expected
    batches = pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))
    assert lexical.annotate(batches) == expected
    assert lexical.annotate(table["text"]) == lexical.annotate(TEXTS)
    for kind in (pyarrow.large_string(), pyarrow.string_view()):
        assert lexical.annotate(pyarrow.table({"text": pyarrow.array(TEXTS, kind)})) == lexical.annotate(TEXTS)


def test_tables_without_texts_are_refused(lexical):
    pyarrow = pytest.importorskip("pyarrow")
    with pytest.raises(canonym.UsageError, match="no column `text`, only `note`") as caught:
        lexical.annotate(pyarrow.table({"note": TEXTS}))
    assert "rename the column" in caught.value.hint
    with pytest.raises(TypeError, match="text 1 is missing; drop such rows"):
        lexical.annotate(pyarrow.table({"text": ["cough", None]}))
    with pytest.raises(TypeError, match="the column `text` holds Int64, not strings; pass texts"):
        lexical.annotate(pyarrow.table({"text": [1, 2]}))


def test_pandas(lexical):
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"id": ["a", "b", "c"], "text": TEXTS})
    documents = lexical.annotate(frame["text"], ids=frame["id"])
    assert documents == lexical.annotate(frame)
    linked = pyarrow.table(documents).to_pandas()
    assert list(linked["id"]) == IDS
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert list(pandas.DataFrame.from_arrow(documents)["id"]) == IDS


def test_polars(lexical):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": ["a", "b", "c"], "text": TEXTS})
    documents = lexical.annotate(frame)
    assert documents == lexical.annotate(frame["text"], ids=["a", "b", "c"])
    assert polars.DataFrame(documents)["id"].to_list() == IDS


def test_duckdb(lexical):
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    relation = duckdb.from_query("select 'a' as id, 'dry cough' as text union all select 'b', 'elbow' order by id")
    documents = lexical.annotate(relation)
    assert [document.id for document in documents] == ["a", "b"]
    rows = duckdb.sql("select document, id, candidates[1].name from documents order by document").fetchall()
    assert rows == [("a", "CLINIC:L2", "dry cough"), ("b", "CLINIC:L5", "elbow")]
