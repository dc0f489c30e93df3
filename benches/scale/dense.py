#!/usr/bin/env python3
"""Recall and latency of the index of names beside faiss and usearch, on the same vectors of the default encoder.

    pip install -r benches/scale/dense.txt
    make bench-dense

The names are those of the open terminologies without NCBI Taxonomy, about 1.1 million distinct ones. Queries are mentions of MedMentions,
BC5CDR and NCBI disease that are no name (hard: half of them have nothing close), and misspelled names (easy). Recall is measured against the
exact nearest names by vectors in half precision; a hit with the same inner product counts. Everything is measured on one thread, one query at a
time, in turns of one system after the other; HNSW graphs are built once, in runs/scale.
"""

import argparse
import json
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import time

import faiss
import numpy as np
from usearch.index import Index

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

import bench  # noqa: E402
import linking  # noqa: E402

MADE = linking.ROOT / "runs" / "scale"
CORPORA = ("medmentions-st21pv/train.pubtator.txt", "bc5cdr/dev.pubtator.txt", "ncbi-disease/dev.pubtator.txt")
N_QUERIES = 1000
K = 20


def sections(path):
    """Offset and length of each section of a container."""
    with open(path, "rb") as file:
        header = file.read(64)
        n_sections, table = struct.unpack("<I", header[16:20])[0], struct.unpack("<Q", header[24:32])[0]
        file.seek(table)
        entries = [file.read(40) for _ in range(n_sections)]
    return {entry[:16].rstrip(b"\0").decode(): struct.unpack("<QQ", entry[16:32]) for entry in entries}


def forms(binary, path):
    """The distinct names of a knowledge base in lower case."""
    names = set()
    with subprocess.Popen([binary, "kb", "export", str(path)], stdout=subprocess.PIPE, text=True, encoding="utf-8") as export:
        for line in export.stdout:
            concept = json.loads(line)
            synonyms = concept.get("synonyms", [])
            names.update(name.lower() for name in [concept["name"], *(one if isinstance(one, str) else one["text"] for one in synonyms)])
    return sorted(names)


def mentions():
    """Distinct mentions of the corpora."""
    found = set()
    for name in CORPORA:
        for line in open(linking.DATA / name, encoding="utf-8"):
            cells = line.rstrip("\n").split("\t")
            if len(cells) >= 6 and cells[1].isdigit():
                found.add(" ".join(cells[3].split()))
    return sorted(mention for mention in found if 2 < len(mention) < 80)


def queries(names):
    """Two lists: mentions that are no name, and misspelled names."""
    rng, known = random.Random(linking.SEED), set(names)
    hard = [mention for mention in mentions() if mention.lower() not in known]
    drawn = rng.sample([name for name in names if len(name) > 5], 2 * N_QUERIES)
    easy = [name for name in bench.misspelled(drawn, linking.SEED) if name not in known]
    return {"mentions": rng.sample(hard, N_QUERIES), "misspelled": easy[:N_QUERIES]}


def vectors(index):
    """The vectors in an index of half precision."""
    offset, length = sections(index)["values"]
    with open(index, "rb") as file:
        file.seek(sections(index)["meta"][0])
        meta = json.loads(file.read(sections(index)["meta"][1]))
    halves = np.fromfile(index, np.float16, length // 2, offset=offset)
    return halves.reshape(meta["n_rows"], meta["n_cols"]).astype(np.float32)


def recall(found, truth, queries, rows, k):
    """Share of the k nearest that were found; a row with the same inner product as the last of them counts."""
    share = 0.0
    for hits, wanted, query in zip(found, truth, queries):
        if len(wanted):
            least = float(rows[wanted[:k][-1]] @ query) - 1e-6
            hits = np.asarray([hit for hit in hits[:k] if hit >= 0], dtype=np.int64)
            share += min(int((rows[hits] @ query >= least).sum()), k) / k
    return share / len(truth)


def timed(search, queries):
    """Milliseconds of each search, and what was found."""
    search(queries[:1])
    times, found = [], []
    for row in range(len(queries)):
        started = time.perf_counter()
        found.append(search(queries[row:row + 1])[0])
        times.append((time.perf_counter() - started) * 1e3)
    return times, found


def row(title, times, found, truth, queries, rows, n_bytes, batch=None):
    ordered = sorted(times)
    return {
        "title": title, "recall_at_1": recall(found, truth, queries, rows, 1), "recall_at_20": recall(found, truth, queries, rows, K),
        "median_ms": statistics.median(times), "p99_ms": ordered[int(len(ordered) * 0.99)], "batch_ms": batch, "bytes": n_bytes,
    }


def faiss_search(index):
    return lambda queries: index.search(queries, K)[1]


def peers(rows):
    """Other indexes as (title, search for each setting, bytes)."""
    n_rows, dim = rows.shape
    flat = faiss.IndexFlatIP(dim)
    flat.add(rows)
    yield "faiss flat f32", [("", faiss_search(flat))], flat.ntotal * dim * 4
    path = MADE / "hnsw.faiss"
    if path.exists():
        hnsw = faiss.read_index(str(path))
    else:
        hnsw = faiss.IndexHNSWFlat(dim, 16, faiss.METRIC_INNER_PRODUCT)
        hnsw.hnsw.efConstruction = 40
        faiss.omp_set_num_threads(2)
        hnsw.add(rows)
        faiss.omp_set_num_threads(1)
        faiss.write_index(hnsw, str(path))

    def with_ef(ef):
        def search(queries):
            hnsw.hnsw.efSearch = ef
            return hnsw.search(queries, K)[1]
        return search

    yield "faiss HNSW, M 16, built with ef 40", [(f"ef {ef}", with_ef(ef)) for ef in (32, 100, 400, 1600)], path.stat().st_size
    pq_path = MADE / "ivfpq.faiss"
    if pq_path.exists():
        pq = faiss.read_index(str(pq_path))
    else:
        quantiser = faiss.IndexFlatIP(dim)
        pq = faiss.IndexIVFPQ(quantiser, dim, 1024, 40, 8, faiss.METRIC_INNER_PRODUCT)
        faiss.omp_set_num_threads(2)
        pq.train(rows[:: max(1, n_rows // 50_000)])
        pq.add(rows)
        faiss.omp_set_num_threads(1)
        faiss.write_index(pq, str(pq_path))

    def with_probes(n, rescored):
        def search(queries):
            pq.nprobe = n
            near = pq.search(queries, K * 10 if rescored else K)[1]
            if not rescored:
                return near
            near = near[:, near[0] >= 0]
            scores = np.einsum("qkd,qd->qk", rows[near], queries)
            return np.take_along_axis(near, np.argsort(-scores, axis=1)[:, :K], axis=1)
        return search

    settings = [(f"{n} probes", with_probes(n, False)) for n in (16, 64)]
    yield "faiss IVF-PQ, 1,024 lists, 40 bytes", settings + [("256 probes, 200 compared", with_probes(256, True))], pq_path.stat().st_size
    u_path = MADE / "hnsw.usearch"
    graph = Index(ndim=dim, metric="ip", dtype="i8", connectivity=16, expansion_add=100)
    if u_path.exists():
        graph.load(str(u_path))
    else:
        graph.add(np.arange(n_rows), rows, threads=2)
        graph.save(str(u_path))

    def with_expansion(ef):
        def search(queries):
            graph.expansion_search = ef
            return [graph.search(queries[0], K, threads=1).keys.astype(np.int64)]
        return search

    yield "usearch HNSW int8, M 16", [(f"ef {ef}", with_expansion(ef)) for ef in (100, 400)], u_path.stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default=str(linking.ROOT / "target" / "release" / "canonym"))
    parser.add_argument("--speed", default=str(linking.ROOT / "target" / "release" / "examples" / "index_speed"))
    parser.add_argument("--report", type=pathlib.Path)
    options = parser.parse_args()
    MADE.mkdir(parents=True, exist_ok=True)
    folder = linking.DATA / "terminologies"
    sources = [folder / "open" / name for name in bench.OPEN if not name.startswith("ncbitaxon")]
    sources += [folder / name for name in bench.MORE]
    kb = MADE / "names.kb"
    if not kb.exists():
        subprocess.run([options.binary, "kb", "build", *map(str, sources), "--out", str(kb)], check=True)
    results = {"queries": N_QUERIES, "precisions": {}}
    tables = {}
    for precision in ("f16", "int8"):
        index = MADE / f"names-{precision}.index"
        if not index.exists():
            command = [options.binary, "index", "build", "--kb", str(kb), "--out", str(index), "--precision", precision]
            started = time.perf_counter()
            subprocess.run(command, check=True)
            results["precisions"][precision] = {"build_seconds": time.perf_counter() - started}
    rows = vectors(MADE / "names-f16.index")
    results["names"], results["dimensions"] = rows.shape
    faiss.omp_set_num_threads(1)
    for title, texts in queries(forms(options.binary, kb)).items():
        place = MADE / title
        place.mkdir(exist_ok=True)
        (place / "names.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
        measured, truth = [], None
        for precision in ("f16", "int8"):
            index = MADE / f"names-{precision}.index"
            subprocess.run([options.speed, str(index), str(place / "names.txt"), str(place)], check=True)
            ours = json.loads((place / "ours.json").read_text())
            vector = np.fromfile(place / "queries.f32", np.float32).reshape(-1, rows.shape[1])
            truth = truth or ours
            for one in ours["results"]:
                name = "exact_tenth" if "tenth" in one["title"] else "exact_half" if "half" in one["title"] else "exact"
                wanted = truth[name][:len(one["hits"])]
                found = [np.asarray(hits, dtype=np.int64) for hits in one["hits"]]
                measured.append(row(f"canonym {precision}, {one['title']}", one["alone_ms"], found, wanted, vector, rows,
                                    index.stat().st_size, one["batch_ms"]))
        for system, settings, n_bytes in peers(rows):
            for setting, search in settings:
                some = vector[:100] if system.startswith("faiss flat") else vector
                times, found = timed(search, some)
                measured.append(row(f"{system} {setting}".strip(), times, found, truth["exact"][:len(some)], some, rows, n_bytes))
        tables[title] = measured
        print(f"\n| {title} | recall@1 | recall@20 | median, ms | 99 %, ms | in batches, ms | MiB |\n| --- | --- | --- | --- | --- | --- | --- |")
        for one in measured:
            batch = f"{one['batch_ms']:.2f}" if one["batch_ms"] else "–"
            print(f"| {one['title']} | {one['recall_at_1']:.3f} | {one['recall_at_20']:.3f} | {one['median_ms']:.2f} | "
                  f"{one['p99_ms']:.2f} | {batch} | {one['bytes'] / 2**20:.0f} |", flush=True)
    results["tables"] = tables
    if options.report:
        options.report.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
