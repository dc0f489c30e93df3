#!/usr/bin/env python3
"""Links many documents on a Spark cluster of this machine and with the program, compares the results and adds the times to a report.

The cluster is a master and workers of one core each, on loopback. Parts of the documents can be done one after the other:

    bench.py link --kb mesh.kb --model lexical --documents runs/spark/documents --from 0 --to 250000 --report spark.json
    bench.py link … --from 250000 --to 500000 --kill      # a worker dies in the middle
    bench.py scale --kb mesh.kb --model lexical --documents runs/spark/documents --to 20000 --report spark.json

`link` compares every field of every mention. `scale` runs the program with one and two threads and clusters of one and two workers, in turns,
after a run that opens the files. The Python environment is that of `make spark`, with a wheel in release mode.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.json
import pyarrow.parquet

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bindings/python/tests"))
os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")

import pyspark  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402
from spark_cluster import Cluster  # noqa: E402

import canonym  # noqa: E402
from canonym.distributed import CANDIDATE, SPAN  # noqa: E402
from canonym.spark import linker  # noqa: E402

CONTEXTS = ("negated", "possible", "historical", "hypothetical", "family")

# Fields of a mention that the program writes; contexts are compared as one text.
FIELDS = ("text", "type", "score", "p_mention", "p_link", "nil", "candidates")

LINE = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        (
            "annotations",
            pa.list_(
                pa.struct(
                    [
                        ("spans", pa.list_(pa.list_(pa.int64()))),
                        *((name, pa.string()) for name in ("text", "type")),
                        *((name, pa.float64()) for name in ("score", "p_mention", "p_link")),
                        ("nil", pa.bool_()),
                        ("candidates", pa.list_(CANDIDATE)),
                        ("attributes", pa.struct([(n, pa.string()) for n in ("negation", "certainty", "temporality", "experiencer")])),
                    ]
                )
            ),
        ),
    ]
)


def session(url, **settings):
    builder = SparkSession.builder.master(url).appName("canonym")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.memory": "1g",
        "spark.executor.cores": "1",
        # One file is one task.
        "spark.sql.files.maxPartitionBytes": "6m",
        "spark.sql.files.openCostInBytes": "6m",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
        **settings,
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def files(arguments, kind):
    """The files with the documents that are to be linked."""
    every = sorted(arguments.documents.glob(f"*.{kind}"))
    return [str(path) for path in every if arguments.first <= int(path.stem) < arguments.to]


def spark_run(started, arguments, out):
    """Links the files with Spark into Parquet; the seconds."""
    link = linker(arguments.kb, arguments.model, spark=started, top_k=arguments.top_k)
    frame = started.read.parquet(*files(arguments, "parquet"))
    begin = time.perf_counter()
    frame.mapInArrow(link, link.schema(frame)).drop("text").write.mode("overwrite").parquet(str(out))
    return time.perf_counter() - begin


def program_run(arguments, n_threads, out):
    """Links the files with the program; the seconds of the whole process."""
    command = [arguments.binary, "link", "--quiet", "--context", "--kb", arguments.kb, "--model", arguments.model]
    command += ["--top-k", arguments.top_k, "--threads", n_threads, "--to", "jsonl", *files(arguments, "jsonl")]
    begin = time.perf_counter()
    with open(out, "wb") as target:
        subprocess.run([str(part) for part in command], check=True, stdout=target)
    return time.perf_counter() - begin


def program_mentions(path):
    """Ids, and mentions as columns, of blocks of lines of the program."""
    options = pa.json.ParseOptions(explicit_schema=LINE, unexpected_field_behavior="error")
    with pa.json.open_json(path, pa.json.ReadOptions(block_size=64 << 20), options) as reader:
        for batch in reader:
            mentions = batch.column("annotations")
            flat = mentions.flatten()
            spans = flat.field("spans")
            pairs = spans.flatten()
            ends = pa.StructArray.from_arrays([pa.compute.list_element(pairs, at) for at in (0, 1)], fields=list(SPAN))
            columns = {name: flat.field(name) for name in FIELDS}
            columns["spans"] = pa.ListArray.from_arrays(spans.offsets, ends, type=pa.list_(SPAN))
            found = flat.field("attributes")
            columns["contexts"] = [
                {value for value in row.values() if value} if row else set() for row in found.to_pylist()
            ]
            yield batch.column("id").cast(pa.int64()), pa.compute.list_value_length(mentions), columns


def compare(path, out):
    """Compares the lines of the program with the rows of Spark; numbers of documents, mentions and errors."""
    rows = pa.parquet.ParquetDataset(out)
    n_documents = n_mentions = n_errors = 0
    for ids, counts, expected in program_mentions(path):
        low, high = ids[0].as_py(), ids[-1].as_py()
        table = pa.parquet.read_table(out, filters=[("n", ">=", low), ("n", "<=", high)]).sort_by("n").combine_chunks()
        same("numbers", table["n"].combine_chunks(), ids)
        mentions = table["mentions"].combine_chunks()
        same("counts", pa.compute.list_value_length(mentions), counts)
        flat = mentions.flatten()
        for name in (*FIELDS, "spans"):
            same(name, flat.field(name), expected[name])
        flags = [flat.field(name).to_pylist() for name in CONTEXTS]
        found = [{name for name, is_set in zip(CONTEXTS, row) if is_set} for row in zip(*flags)]
        if found != expected["contexts"]:
            sys.exit(f"contexts of documents {low} to {high} differ")
        n_documents += len(ids)
        n_mentions += len(flat)
        n_errors += table.num_rows - table["error"].null_count
    n_rows = sum(fragment.metadata.num_rows for fragment in rows.fragments)
    if n_rows != n_documents:
        sys.exit(f"{n_rows} rows for {n_documents} documents")
    return {"documents": n_documents, "mentions": n_mentions, "errors": n_errors}


def same(name, one, other):
    """Exits where two columns differ."""
    if isinstance(one, pa.ChunkedArray):
        one = one.combine_chunks()
    # Names of the elements of lists may differ.
    if not one.cast(other.type).equals(other):
        sys.exit(f"{name} differ")


def link(arguments, folder):
    """Links a part on two workers and with the program."""
    out, lines = folder / "linked", folder / "lines.jsonl"
    row = {"what": "link", **about(arguments), "workers": 2, "from": arguments.first, "killed": arguments.kill}
    with Cluster(folder, 2) as cluster:
        started = session(cluster.url)
        try:
            if arguments.kill:
                killer = threading.Thread(target=kill_in_the_middle, args=(cluster, out, len(files(arguments, "parquet"))))
                killer.start()
            row["spark_seconds"] = spark_run(started, arguments, out)
            if arguments.kill:
                killer.join()
                row["workers_killed"] = sum(worker.poll() is not None for worker in cluster.workers)
        finally:
            started.stop()
    row["program_seconds"] = program_run(arguments, 2, lines)
    row |= compare(lines, out)
    row["equal"] = True
    row["spark_rate"] = row["documents"] / row["spark_seconds"]
    row["program_rate"] = row["documents"] / row["program_seconds"]
    return row


def kill_in_the_middle(cluster, out, n_files):
    """Kills a worker when half of the files are linked, and starts another, as cluster managers do."""
    while len(list(out.rglob("part-*.parquet"))) < n_files // 2:
        time.sleep(0.1)
    cluster.kill_worker(0)
    cluster.add_worker()


def scale(arguments, folder):
    """Times the program with one and two threads and clusters of one and two workers, in turns."""
    row = {"what": "scale", **about(arguments), "runs": arguments.runs}
    seconds = {name: [] for name in ("program_1", "program_2", "workers_1", "workers_2")}
    for run in range(arguments.runs):
        for n in (1, 2):
            seconds[f"program_{n}"].append(program_run(arguments, n, folder / "lines.jsonl"))
            place = folder / f"{run}-{n}"
            place.mkdir()
            with Cluster(place, n) as cluster:
                started = session(cluster.url)
                try:
                    # Opens the files on every worker.
                    first = argparse.Namespace(**{**vars(arguments), "to": min(arguments.to, 20_000)})
                    spark_run(started, first, folder / "warm")
                    seconds[f"workers_{n}"].append(spark_run(started, arguments, folder / "linked"))
                finally:
                    started.stop()
    row["documents"] = pa.parquet.ParquetDataset(folder / "linked").read(columns=["n"]).num_rows
    row |= {f"{name}_seconds": values for name, values in seconds.items()}
    median = {name: statistics.median(values) for name, values in seconds.items()}
    row |= {f"{name}_rate": row["documents"] / value for name, value in median.items()}
    row["speed_up_program"] = median["program_1"] / median["program_2"]
    row["speed_up_workers"] = median["workers_1"] / median["workers_2"]
    row["against_program_1"] = median["program_1"] / median["workers_1"]
    row["against_program_2"] = median["program_2"] / median["workers_2"]
    return row


def about(arguments):
    system = canonym.System.open(arguments.model, arguments.kb)
    return {
        "model": arguments.model,
        "kb": system.kb.name,
        "kb_fingerprint": system.kb.fingerprint,
        "model_fingerprint": system.fingerprint,
        "top_k": arguments.top_k,
        "date": time.strftime("%Y-%m-%d"),
        "spark": pyspark.__version__,
        "machine": f"{os.cpu_count()} cores {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["link", "scale"])
    parser.add_argument("--kb", type=Path, required=True)
    parser.add_argument("--model", default="lexical")
    parser.add_argument("--documents", type=Path, required=True, help="the folder that vary.py made")
    parser.add_argument("--from", dest="first", type=int, default=0, help="number of the first document")
    parser.add_argument("--to", type=int, required=True, help="number after the last document")
    parser.add_argument("--top-k", type=int, default=5)
    parser.add_argument("--kill", action="store_true", help="kill a worker in the middle")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--binary", type=Path, default=ROOT / "target/release/canonym")
    parser.add_argument("--report", type=Path, default=ROOT / "experiments/reports/spark.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        row = {"link": link, "scale": scale}[arguments.what](arguments, Path(folder))
    rows = json.loads(arguments.report.read_text()) if arguments.report.exists() else []
    rounded = {name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()}
    arguments.report.write_text(json.dumps([*rows, rounded], indent=1) + "\n")
    print(json.dumps(rounded, indent=1))


if __name__ == "__main__":
    main()
