#!/usr/bin/env python3
"""Recall and latency of the index of names beside faiss and usearch, on the same vectors.

    pip install -r benches/scale/dense.txt
    make bench-dense
    benches/scale/dense.py --bert CHECKPOINT --report experiments/reports/dense-minilm.json

The names are those of the open terminologies without NCBI Taxonomy, about 1.1 million distinct ones. Queries are mentions of
MedMentions, BC5CDR and NCBI disease that are no name (hard: half of them have nothing close), and misspelled names (easy). Recall is
measured against the exact nearest names by vectors in half precision; a hit with the same inner product counts. A third set, mentions
with gold concepts (`gold.py`), gives the share of mentions whose gold concept has a name among the nearest ones. Everything is measured
on one thread, one query at a time, one system after the other.

Vectors are those of the default encoder. With `--bert` they are those of another encoder, mean-pooled, for a sample of 250,000 names; gold
concepts are then left out. Vectors, indexes and graphs are kept in runs/scale and reused.
"""

import argparse
import json
import os
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
import gold  # noqa: E402
import linking  # noqa: E402

MADE = linking.ROOT / "runs" / "scale"
CORPORA = ("medmentions-st21pv/train.pubtator.txt", "bc5cdr/dev.pubtator.txt", "ncbi-disease/dev.pubtator.txt")
N_QUERIES = 1000
N_GOLD = 2000
N_SAMPLED = 250_000
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


def gold_queries(concepts):
    """Mentions with a gold concept that the knowledge base has, and counts by corpus."""
    known = set().union(*concepts)
    pairs, counts = [], {}
    for title, found in gold.pairs().items():
        in_kb = [pair for pair in found if pair[1] in known]
        counts[title] = {"mentions": len(found), "in_kb": len(in_kb), "concepts": len({one for _, one in found}),
                         "concepts_in_kb": len({one for _, one in in_kb})}
        pairs += in_kb
    pairs = random.Random(linking.SEED).sample(sorted(set(pairs)), min(N_GOLD, len(pairs)))
    return pairs, counts


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


def gold_row(title, times, found, pairs, concepts, is_name):
    """Shares of mentions whose gold concept is among those of the nearest k names."""
    first = {}
    for query, hits in enumerate(found):
        ranks = (rank for rank, hit in enumerate(hits) if hit >= 0 and pairs[query][1] in concepts[hit])
        first[query] = next(ranks, K)
    one = {"title": title, "median_ms": statistics.median(times), "p99_ms": sorted(times)[int(len(times) * 0.99)]}
    for name, of in (("", list(first)), ("_no_name", [query for query in first if not is_name[query]])):
        for k in (1, K):
            one[f"at_{k}{name}"] = sum(first[query] < k for query in of) / len(of)
    return one


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


def peers(rows, folder):
    """Other indexes, with files in a folder, as (title, search for each setting, bytes)."""
    n_rows, dim = rows.shape
    flat = faiss.IndexFlatIP(dim)
    flat.add(rows)
    yield "faiss flat f32", [("", faiss_search(flat))], flat.ntotal * dim * 4
    path = folder / "hnsw.faiss"
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
    # Subvectors of 4 dimensions, or of 8 if there are many.
    n_bytes = dim // (4 if dim <= 160 else 8)
    pq_path = folder / "ivfpq.faiss"
    if pq_path.exists():
        pq = faiss.read_index(str(pq_path))
    else:
        quantiser = faiss.IndexFlatIP(dim)
        pq = faiss.IndexIVFPQ(quantiser, dim, 1024, n_bytes, 8, faiss.METRIC_INNER_PRODUCT)
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
    yield f"faiss IVF-PQ, 1,024 lists, {n_bytes} bytes", settings + [("256 probes, 200 compared", with_probes(256, True))], pq_path.stat().st_size
    u_path = folder / "hnsw.usearch"
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


def searched(options, place, indexes, asked, rows, only_usual=False):
    """Searches of all systems as (title, milliseconds, hits, exact hits, bytes, ms in batches), and the vectors of the queries."""
    found, truth = [], None
    for precision, index in indexes.items():
        command = [options.speed, *(["--usual"] if only_usual else []), str(index), str(asked), str(place)]
        subprocess.run(command, check=True)
        ours = json.loads((place / "ours.json").read_text())
        truth = truth or ours
        for one in ours["results"]:
            name = "exact_tenth" if "tenth" in one["title"] else "exact_half" if "half" in one["title"] else "exact"
            hits = [np.asarray(hits, dtype=np.int64) for hits in one["hits"]]
            if one["title"] == "exact" and only_usual:
                hits = [np.asarray(hits, dtype=np.int64) for hits in ours["exact"]]
            title = f"canonym {precision}, {one['title']}"
            found.append((title, one["alone_ms"], hits, truth[name][:len(hits)], index.stat().st_size, one["batch_ms"]))
    queries = np.fromfile(place / "queries.f32", np.float32).reshape(-1, rows.shape[1])
    for system, settings, n_bytes in peers(rows, indexes["f16"].parent if options.bert else MADE):
        for setting, search in settings:
            is_flat = system.startswith("faiss flat")
            if is_flat and only_usual:
                continue
            times, hits = timed(search, queries[:100] if is_flat else queries)
            found.append((f"{system} {setting}".strip(), times, hits, truth["exact"][:len(hits)], n_bytes, None))
    return found, queries


def show(title, measured):
    print(f"\n| {title} | recall@1 | recall@20 | median, ms | 99 %, ms | in batches, ms | MiB |\n| --- | --- | --- | --- | --- | --- | --- |")
    for one in measured:
        batch = f"{one['batch_ms']:.2f}" if one["batch_ms"] else "–"
        print(f"| {one['title']} | {one['recall_at_1']:.3f} | {one['recall_at_20']:.3f} | {one['median_ms']:.2f} | "
              f"{one['p99_ms']:.2f} | {batch} | {one['bytes'] / 2**20:.0f} |", flush=True)


def show_gold(measured):
    print("\n| gold concept among the nearest, % | 1 | 20 | 1, no name | 20, no name | median, ms |\n" + "| --- " * 6 + "|")
    for one in measured:
        shares = " | ".join(f"{100 * one[key]:.1f}" for key in ("at_1", f"at_{K}", "at_1_no_name", f"at_{K}_no_name"))
        print(f"| {one['title']} | {shares} | {one['median_ms']:.2f} |", flush=True)


def default_indexes(options, kb, results):
    """Indexes of all names by the default encoder."""
    indexes = {precision: MADE / f"names-{precision}.index" for precision in ("f16", "int8")}
    for precision, index in indexes.items():
        if not index.exists():
            command = [options.binary, "index", "build", "--kb", str(kb), "--out", str(index), "--precision", precision]
            started = time.perf_counter()
            subprocess.run(command, check=True)
            results["precisions"][precision] = {"build_seconds": time.perf_counter() - started}
    return indexes


def bert_indexes(options, names, folder):
    """Indexes of a sample of the names by a BERT, and the sample, in random order."""
    sample = random.Random(linking.SEED).sample(names, min(options.names, len(names)))
    texts, values = folder / "names.txt", folder / "names.f32"
    texts.write_text("\n".join(sample) + "\n", encoding="utf-8")
    encode(options, texts, values)
    indexes = {precision: folder / f"names-{precision}.index" for precision in ("f16", "int8")}
    for precision, index in indexes.items():
        if not index.exists():
            subprocess.run([options.bert_index, "build", precision, str(texts), str(values), str(index)], check=True)
    return indexes, sample


def encode(options, texts, values):
    """Vectors of the lines of a file by a BERT, those that the file of vectors lacks."""
    subprocess.run([options.bert_index, "encode", options.bert, str(texts), str(values)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    examples = linking.ROOT / "target" / "release" / "examples"
    parser.add_argument("--binary", default=str(linking.ROOT / "target" / "release" / "canonym"))
    parser.add_argument("--speed", default=str(examples / "index_speed"))
    parser.add_argument("--bert-index", default=str(examples / "bert_index"))
    parser.add_argument("--bert", help="folder of the checkpoint of an encoder to be measured in place of the default one")
    parser.add_argument("--names", type=int, default=N_SAMPLED, help="number of names that `--bert` encodes")
    tables = ("mentions", "misspelled", "gold")
    parser.add_argument("--only", nargs="*", choices=tables, default=tables, help="tables to measure")
    parser.add_argument("--report", type=pathlib.Path, help="report to write; tables that are not measured are kept")
    options = parser.parse_args()
    home = MADE / f"{pathlib.Path(options.bert).name}-{options.names}" if options.bert else MADE
    home.mkdir(parents=True, exist_ok=True)
    folder = linking.DATA / "terminologies"
    sources = [folder / "open" / name for name in bench.OPEN if not name.startswith("ncbitaxon")]
    sources += [folder / name for name in bench.MORE]
    kb = MADE / "names.kb"
    if not kb.exists():
        subprocess.run([options.binary, "kb", "build", *map(str, sources), "--out", str(kb)], check=True)
    results = {"queries": N_QUERIES, "precisions": {}, "tables": {}}
    if options.report and options.report.exists():
        results |= json.loads(options.report.read_text())
    all_names = forms(options.binary, kb)
    if options.bert:
        indexes, names = bert_indexes(options, all_names, home)
        results["encoder"] = pathlib.Path(options.bert).name
    else:
        indexes, names = default_indexes(options, kb, results), all_names
    rows = vectors(indexes["f16"])
    results["names"], results["dimensions"] = rows.shape
    results["load_average"] = results.get("load_average", {})
    faiss.omp_set_num_threads(1)
    for title, texts in queries(names).items():
        if title not in options.only:
            continue
        place = home / title
        place.mkdir(exist_ok=True)
        asked = place / "names.txt"
        asked.write_text("\n".join(texts) + "\n", encoding="utf-8")
        if options.bert:
            encode(options, asked, place / "names.f32")
            asked = place / "names.f32"
        before = os.getloadavg()[0]
        found, asked = searched(options, place, indexes, asked, rows)
        results["load_average"][title] = [before, os.getloadavg()[0]]
        results["tables"][title] = [row(system, times, hits, truth, asked[:len(hits)], rows, n_bytes, batch)
                                    for system, times, hits, truth, n_bytes, batch in found]
        show(title, results["tables"][title])
    if "gold" in options.only and not options.bert:
        place = home / "gold"
        place.mkdir(exist_ok=True)
        if not (place / "concepts.txt").exists():
            one = place / "one.txt"
            one.write_text("fever\n", encoding="utf-8")
            subprocess.run([options.speed, "--usual", str(indexes["f16"]), str(one), str(place), str(kb)], check=True)
        with open(place / "concepts.txt", encoding="utf-8") as lines:
            concepts = [frozenset(line.rstrip("\t\n").split("\t")) for line in lines]
        pairs, counts = gold_queries(concepts)
        known = set(names)
        is_name = [mention.lower() in known for mention, _ in pairs]
        asked = place / "names.txt"
        asked.write_text("".join(f"{mention}\n" for mention, _ in pairs), encoding="utf-8")
        before = os.getloadavg()[0]
        found, _ = searched(options, place, indexes, asked, rows, only_usual=True)
        results["load_average"]["gold"] = [before, os.getloadavg()[0]]
        results["gold"] = {"queries": len(pairs), "no_name": len(pairs) - sum(is_name), "counts": counts,
                           "table": [gold_row(system, times, hits, pairs, concepts, is_name) for system, times, hits, *_ in found]}
        print(json.dumps({key: results["gold"][key] for key in ("queries", "no_name", "counts")}))
        show_gold(results["gold"]["table"])
    if options.report:
        options.report.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
