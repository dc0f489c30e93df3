"""Spark links data frames, in one process and on a cluster of which a worker dies. Run by `make spark`."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest
from conftest import NOTE

import canonym

pytest.importorskip("pyspark")

from pyspark.sql import SparkSession  # noqa: E402
from spark_cluster import Cluster  # noqa: E402

from canonym.spark import linker  # noqa: E402

TEXTS = [NOTE, "", "No elbow.", "unproductve cough and dizziness on standing"]


def session(master, **settings):
    builder = SparkSession.builder.master(master).appName("canonym")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        **settings,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


@pytest.fixture(scope="module")
def spark():
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    started = session("local[2]")
    yield started
    started.stop()


def frame(spark, texts, n_parts=2):
    rows = [(row, f"N{row}", text) for row, text in enumerate(texts)]
    return spark.createDataFrame(rows, "n bigint, note_id string, text string").repartition(n_parts)


def collected(linked):
    rows = [row.asDict(recursive=True) for row in linked.collect()]
    return sorted(rows, key=lambda row: row["n"])


def lines(rows):
    """Rows as the lines that the program writes."""
    contexts = ("negated", "possible", "historical", "hypothetical", "family")
    for row in rows:
        yield row["note_id"], [
            (
                [[span["start"], span["end"]] for span in one["spans"]],
                *(one[name] for name in ("text", "type", "score", "nil")),
                sorted(name for name in contexts if one[name]),
                one["candidates"],
            )
            for one in row["mentions"]
        ]


def program(folder, kb, model, texts):
    """What the program links."""
    file = folder / "notes.jsonl"
    file.write_text("".join(json.dumps({"id": f"N{row}", "text": text}) + "\n" for row, text in enumerate(texts)))
    command = [sys.executable, "-m", "canonym", "link", "--context", "--model", model, "--kb", str(kb.path), str(file)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for line in map(json.loads, printed.splitlines()):
        yield line["id"], [
            (
                one["spans"],
                *(one.get(name, "") for name in ("text", "type", "score", "nil")),
                sorted(one.get("attributes", {}).values()),
                one["candidates"],
            )
            for one in line["annotations"]
        ]


@pytest.mark.parametrize("model", ["lexical", "default"])
@pytest.mark.parametrize("is_sent", [True, False])
def test_results_are_those_of_the_program(spark, kb, tmp_path, model, is_sent):
    link = linker(kb.path, model, spark=spark if is_sent else None)
    texts = TEXTS * 5
    notes = frame(spark, texts)
    rows = collected(notes.mapInArrow(link, link.schema(notes)))
    assert list(lines(rows)) == list(program(tmp_path, kb, model, texts))
    assert [row["text"] for row in rows] == texts and {row["error"] for row in rows} == {None}
    system = canonym.System.open(model, kb)
    assert {tuple(row["provenance"].values()) for row in rows} == {
        (canonym.__version__, "clinic", kb.fingerprint, model, system.fingerprint)
    }


def test_the_schema_can_be_queried(spark, kb):
    link = linker(kb.path, "lexical", spark=spark, top_k=1)
    notes = frame(spark, TEXTS)
    notes.mapInArrow(link, link.schema(notes)).createOrReplaceTempView("linked")
    found = spark.sql(
        """select note_id, mention.id, mention.candidates[0].name as name, mention.negated
           from linked lateral view explode(mentions) as mention where mention.start < 20 order by n, mention.start"""
    )
    assert [tuple(row) for row in found.collect()][:2] == [
        ("N0", "CLINIC:L3", "night sweats", True),
        ("N2", "CLINIC:L5", "elbow", True),
    ]


def test_mappings_are_sent_to_the_workers(spark, kb, tmp_path):
    mapping = tmp_path / "more.sssom.tsv"
    mapping.write_text("subject_id\tpredicate_id\tobject_id\nCLINIC:L5\tskos:exactMatch\tSNOMEDCT:16953009\n")
    link = linker(kb.path, "lexical", spark=spark, to_system="SNOMEDCT", mappings=str(mapping))
    mapping.unlink()
    notes = frame(spark, ["No elbow."], 1)
    (row,) = collected(notes.mapInArrow(link, link.schema(notes)))
    assert row["mentions"][0]["codes"] == [{"id": "SNOMEDCT:16953009", "predicate": "skos:exactMatch"}]


def test_a_task_has_the_threads_of_its_cores(spark, kb):
    from canonym.spark import SparkLinker

    def threads(batches):
        import pyarrow as pa

        for _ in batches:
            yield pa.record_batch({"threads": [SparkLinker(link.linker)._here().threads]})

    link = linker(kb.path, "lexical")
    assert [row.threads for row in frame(spark, ["x"], 1).mapInArrow(threads, "threads bigint").collect()] == [1]


def test_a_row_at_fault_is_a_row_with_an_error(spark, kb):
    link = linker(kb.path, "lexical", spark=spark, max_bytes=100)
    notes = spark.sql(
        """select * from values (1, 'dry cough'), (2, null), (3, repeat('elbow ', 100)), (4, cast(unhex('FFFE') as string)),
           (5, 'elbow') as notes(n, text)"""
    )
    rows = collected(notes.mapInArrow(link, link.schema(notes)))
    assert [row["error"] for row in rows] == [
        None,
        "the text is missing",
        "the text has 600 bytes, at most 100 are allowed",
        "the text is not UTF-8",
        None,
    ]
    assert [row["mentions"] and row["mentions"][0]["id"] for row in rows] == ["CLINIC:L2", None, None, None, "CLINIC:L5"]


def test_wrong_frames_are_refused_before_the_job(spark, kb):
    link = linker(kb.path, "lexical")
    with pytest.raises(canonym.UsageError, match="no column `text`, only `note`"):
        link.schema(spark.createDataFrame([("x",)], "note string"))
    with pytest.raises(canonym.UsageError, match="the column `text` holds bigint"):
        link.schema(spark.createDataFrame([(1,)], "text bigint"))
    with pytest.raises(canonym.UsageError, match="there is a column `mentions` already"):
        link.schema(spark.createDataFrame([("x", 1)], "text string, mentions int"))


def test_nothing_large_is_pickled(spark, kb):
    from pyspark.cloudpickle import dumps

    for is_sent in (True, False):
        link = linker(kb.path, "default", spark=spark if is_sent else None)
        assert len(dumps(link)) < 3000
    # The same files again are not sent again.
    linker(kb.path, "default", spark=spark)


def test_a_cluster_loses_no_row_when_a_worker_dies(spark, kb, tmp_path):
    spark.stop()
    texts = [f"{NOTE} Visit {row}." for row in range(4000)]
    with Cluster(tmp_path, 2) as cluster:
        started = session(cluster.url, **{"spark.executor.memory": "700m", "spark.executor.cores": "1"})
        try:
            link = linker(kb.path, "lexical", spark=started)
            notes = frame(started, texts, 40)

            def slowed(batches):
                for batch in link(batches):
                    time.sleep(0.2)
                    yield batch

            out = tmp_path / "linked"
            job = threading.Thread(
                target=lambda: notes.mapInArrow(slowed, link.schema(notes)).write.parquet(str(out)), daemon=True
            )
            job.start()
            while len(list(out.rglob("part-*.parquet"))) < 4:
                assert job.is_alive()
                time.sleep(0.1)
            cluster.kill_worker(0)
            assert job.is_alive()
            job.join(300)
            rows = collected(started.read.parquet(str(out)))
            assert cluster.workers[0].poll() is not None and cluster.workers[1].poll() is None
        finally:
            started.stop()
    assert [row["n"] for row in rows] == list(range(4000))
    assert list(lines(rows)) == list(program(tmp_path, kb, "lexical", texts))
