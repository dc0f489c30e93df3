"""Arrow data is linked in worker processes."""

import pickle
import subprocess
import sys

import pytest
from conftest import NOTE

import canonym

pa = pytest.importorskip("pyarrow")

from canonym import distributed  # noqa: E402
from canonym.distributed import Linker  # noqa: E402

TEXTS = [NOTE, "", "No elbow.", "dry cough " * 3]


@pytest.fixture(scope="module")
def link(kb):
    return Linker(kb.path, "lexical")


def table(texts, kind=None):
    return pa.table({"visit": list(range(len(texts))), "text": pa.array(texts, kind or pa.string())})


def test_rows_keep_their_columns_and_get_what_the_system_finds(link, lexical):
    linked = link(table(TEXTS))
    assert linked.column_names == ["visit", "text", "mentions", "error", "provenance"]
    assert linked.schema == link.schema(table(TEXTS).schema)
    for row, document in zip(linked.to_pylist(), lexical.annotate(TEXTS)):
        assert row["text"] == document.text and row["error"] is None
        assert len(row["mentions"]) == len(document)
        for found, mention in zip(row["mentions"], document):
            assert [(span["start"], span["end"]) for span in found["spans"]] == mention.spans
            for name in ("start", "end", "text", "type", "id", "name", "score", "p_mention", "p_link", "nil", "negated", "family"):
                assert found[name] == getattr(mention, name)
            assert [canonym.Candidate(**one) for one in found["candidates"]] == mention.candidates


def test_mentions_have_codes_of_another_system(tmp_path):
    source, mapping = tmp_path / "ward.jsonl", tmp_path / "more.sssom.tsv"
    source.write_text('{"id":"WARD:1","name":"gout"}\n{"id":"WARD:2","name":"dry cough"}\n')
    mapping.write_text("subject_id\tpredicate_id\tobject_id\nWARD:1\tskos:exactMatch\tICD10CM:M10.9\n")
    kb = canonym.KnowledgeBase.build(source, tmp_path / "ward.kb")
    linker = Linker(kb.path, "lexical", options={"to_system": "ICD10CM", "mappings": [str(mapping)]})
    mentions = linker(table(["Gout and a dry cough."]))["mentions"].to_pylist()[0]
    assert [one["codes"] for one in mentions] == [[{"id": "ICD10CM:M10.9", "predicate": "skos:exactMatch"}], []]


def test_every_row_says_what_linked_it(link, kb, lexical):
    assert link(table(["elbow"]))["provenance"].to_pylist() == [
        {
            "version": canonym.__version__,
            "kb": "clinic",
            "kb_fingerprint": kb.fingerprint,
            "model": "lexical",
            "model_fingerprint": lexical.fingerprint,
        }
    ]
    info = subprocess.run(
        [sys.executable, "-m", "canonym", "kb", "info", str(kb.path), "--json"], check=True, capture_output=True, text=True
    )
    assert kb.fingerprint in info.stdout


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_batches_and_kinds_of_strings_are_equal(link, kind):
    texts = TEXTS * 700
    expected = link(table(texts)).select(["mentions", "error"])
    data = table(texts, getattr(pa, kind)())
    assert link(data).select(["mentions", "error"]) == expected
    batch = link(data.combine_chunks().to_batches()[0])
    assert isinstance(batch, pa.RecordBatch) and batch.num_rows == 2800
    assert pa.Table.from_batches([batch]).select(["mentions", "error"]) == expected
    parts = list(link.batches(iter(data.to_batches(max_chunksize=1500))))
    assert [part.num_rows for part in parts] == [1000, 500, 1000, 300]
    assert pa.Table.from_batches(parts).select(["mentions", "error"]) == expected
    assert link(table([])).num_rows == 0 and link(table([])).schema == link.schema(table([]).schema)


def not_utf8():
    """A column of two texts, the first of which is not UTF-8."""
    offsets = pa.array([0, 2, 7], pa.int32()).buffers()[1]
    return pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"\xff\xfeelbow"))


def test_a_row_at_fault_is_a_row_with_an_error(link):
    limited = Linker(link.kb, "lexical", max_bytes=40)
    linked = limited(table(["elbow", None, "elbow " * 9, "elbow"])).to_pylist()
    assert [row["error"] for row in linked] == [
        None,
        "the text is missing",
        "the text has 54 bytes, at most 40 are allowed",
        None,
    ]
    assert [row["mentions"] and len(row["mentions"]) for row in linked] == [1, None, None, 1]
    linked = link(pa.table({"text": not_utf8()}))
    assert linked["error"].to_pylist() == ["the text is not UTF-8", None]
    assert linked["mentions"][1][0]["id"].as_py() == "CLINIC:L5"
    with pytest.raises(canonym.UsageError, match="text 0 is not valid UTF-8"):
        canonym.System.open("lexical", link.kb).annotate(pa.table({"text": not_utf8()}))


class Failing:
    """A system that some text breaks."""

    def __init__(self, system, error):
        self.system, self.error = system, error

    def annotate(self, texts):
        if any("poison" in text for text in texts):
            raise self.error
        return self.system.annotate(texts)


def test_a_text_that_breaks_the_model_leaves_the_others_alone(link, lexical, monkeypatch):
    def broken(error):
        opened = distributed._opened(link)
        monkeypatch.setattr(distributed, "_SYSTEMS", {repr(link): distributed._Opened(Failing(lexical, error), opened.provenance)})

    texts = ["elbow"] * 1500
    texts[3] = texts[1200] = "poison"
    broken(RuntimeError("no way"))
    linked = link(table(texts))
    errors = linked["error"].to_pylist()
    assert [row for row, error in enumerate(errors) if error] == [3, 1200] and errors[3] == "RuntimeError: no way"
    assert [len(found) if found is not None else None for found in linked["mentions"].to_pylist()[2:5]] == [1, None, 1]
    monkeypatch.undo()
    # A file that changes meanwhile is not the fault of a text.
    broken(canonym.FormatError("it was modified while in use"))
    with pytest.raises(canonym.FormatError):
        link(table(texts))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"note": ["x"]}, "no column `text`, only `note`"),
        ({"text": [1]}, "the column `text` holds int64, not strings"),
        ({"text": ["x"], "error": ["x"]}, "there is a column `error` already"),
    ],
)
def test_what_cannot_be_linked_is_refused(link, data, message):
    with pytest.raises(canonym.UsageError, match=message):
        link(pa.table(data))


def test_a_linker_is_small_and_workers_with_other_files_fail(link, kb, lexical):
    expected = distributed.Provenance.of(lexical)
    again = pickle.loads(pickle.dumps(Linker(kb.path, "lexical", expected=expected)))
    assert again(table(TEXTS)) == link(table(TEXTS))
    assert len(pickle.dumps(again)) < 2000
    other = Linker(kb.path, "lexical", expected=distributed.Provenance("0", "", kb.fingerprint, "", lexical.fingerprint))
    with pytest.raises(canonym.MismatchError, match=f"canonym on this worker is {canonym.__version__}, expected 0"):
        other(table(TEXTS))
    with pytest.raises(canonym.MismatchError, match="the model on this worker is"):
        Linker(kb.path, "bm25", expected=expected).open()


MAPPED = """
import sys
import pyarrow as pa
from canonym.distributed import Linker

linked = Linker(sys.argv[1], "default", cache=sys.argv[2])(pa.table({"text": ["She denies night sweat."]}))
print(linked["mentions"][0][0]["id"], linked["mentions"][0][0]["score"])
maps = {line.split()[-1].rsplit(".", 1)[-1] for line in open("/proc/self/maps")}
print(*sorted(maps & {"kb", "vectors"}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_processes_map_the_same_files(kb, tmp_path):
    mention = canonym.System.open("default", kb).annotate("She denies night sweat.")[0]
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", MAPPED, str(kb.path), str(tmp_path)], capture_output=True, text=True, check=True
        )
        assert run.stdout.split("\n")[:2] == [f"{mention.id} {mention.score}", "kb vectors"]
    assert len(list(tmp_path.glob("*.vectors"))) == 1


def test_a_shared_knowledge_base_is_equal(kb):
    shared = canonym.KnowledgeBase.open(kb.path, shared=True)
    again = pickle.loads(pickle.dumps(shared))
    assert list(again) == list(kb) and again.fingerprint == kb.fingerprint
    systems = [canonym.System.open("default", one) for one in (kb, shared)]
    texts = TEXTS * 20 + ["unproductve cough", "dizzy on standing"]
    assert systems[0].annotate(texts) == systems[1].annotate(texts)
    assert systems[1].embedding_files and systems[1].embedding_files == systems[0].embedding_files
    assert len(canonym.KnowledgeBase.open(shared=True)) > 5000


def test_ray_data(link, lexical):
    ray = pytest.importorskip("ray")
    import ray.data

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        data = ray.data.from_arrow(table(TEXTS * 50)).repartition(4).map_batches(link, batch_format="pyarrow")
        rows = sorted(data.take_all(), key=lambda row: row["visit"])
    finally:
        ray.shutdown()
    assert [row["visit"] for row in rows] == list(range(200))
    found = [[mention["id"] for mention in row["mentions"]] for row in rows]
    assert found == [[mention.id for mention in document] for document in lexical.annotate(TEXTS * 50)]


def test_dask(link, lexical):
    distributed_ = pytest.importorskip("distributed")
    tables = [table(TEXTS).slice(row, 1) for row in range(len(TEXTS))]
    with distributed_.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, cluster.get_client() as client:
        # Dask gives all slices of a table the same key, so with `pure=True` they would all get the result of one.
        linked = pa.concat_tables(client.gather(client.map(link, tables, pure=False)))
    assert linked.drop_columns("provenance") == link(table(TEXTS)).drop_columns("provenance")
    assert [len(found) for found in linked["mentions"].to_pylist()] == [len(document) for document in lexical.annotate(TEXTS)]
