#!/usr/bin/env python3
"""Common ways of looking up misspelled names in millions of names, beside `canonym map`, on the files of `bench.py`.

    pip install -r benches/scale/peers.txt
    benches/scale/peers.py --report experiments/reports/scale-peers.json

Systems: `rapidfuzz` (every name is compared), SQLite with a full-text index of trigrams ranked by BM25, and TF-IDF of character trigrams with
exact cosines, which is the search of scispaCy without its approximate index. The last two only on the open terminologies: at UMLS size they
need minutes a query, or more memory than a laptop has. Each runs in a process of its own on one thread. Columns are the time to get ready
from the list of names (for canonym, `kb build` from the source files), the time to open what was stored, the time of a query, peak memory,
and for how many misspelled names the name is the first answer, or among twenty.
"""

import argparse
import importlib.util
import json
import pathlib
import resource
import sqlite3
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent))

import bench  # noqa: E402
import linking  # noqa: E402
import process  # noqa: E402

MADE = bench.MADE
K = 20
N_QUERIES = {"rapidfuzz": 25, "sqlite": 25}


def names_of(path):
    """The distinct names in lower case."""
    return list(dict.fromkeys(line.rstrip("\n") for line in open(path, encoding="utf-8")))


def rapidfuzz(names, _):
    from rapidfuzz import fuzz, process as search
    listed = names_of(names)
    return lambda query: [hit[0] for hit in search.extract(query, listed, scorer=fuzz.ratio, limit=K)]


def sqlite(names, place):
    path = place.with_suffix(".trigrams.sqlite")
    fresh = not path.exists()
    base = sqlite3.connect(path)
    if fresh:
        base.execute("PRAGMA journal_mode = OFF")
        base.execute("CREATE VIRTUAL TABLE names USING fts5(name, tokenize = 'trigram', detail = none)")
        base.executemany("INSERT INTO names VALUES (?)", ((name,) for name in names_of(names)))
        base.commit()

    def search(query):
        grams = dict.fromkeys(query[at:at + 3].replace('"', '""') for at in range(len(query) - 2))
        if not grams:
            return []
        wanted = " OR ".join(f'"{gram}"' for gram in grams)
        return [row[0] for row in base.execute("SELECT name FROM names WHERE names MATCH ? ORDER BY rank LIMIT ?", (wanted, K))]

    return search


def tfidf(names, _):
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    listed = names_of(names)
    vectoriser = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), dtype=np.float32)
    columns = vectoriser.fit_transform(listed).T.tocsr()

    def search(query):
        cosines = (vectoriser.transform([query]) @ columns).toarray()[0]
        best = np.argpartition(-cosines, K)[:K]
        return [listed[row] for row in best[np.argsort(-cosines[best])]]

    return search


SYSTEMS = {"rapidfuzz": rapidfuzz, "sqlite": sqlite, "tfidf": tfidf}


def child(system, names, place, n):
    """Runs one system; prints its figures."""
    started = time.perf_counter()
    search = SYSTEMS[system](names, pathlib.Path(place))
    ready = time.perf_counter() - started
    wanted = (MADE / "names.txt").read_text(encoding="utf-8").lower().splitlines()[:n]
    asked = (MADE / "misspelled.txt").read_text(encoding="utf-8").lower().splitlines()[:n]
    times, ranks = [], []
    for name, query in zip(wanted, asked):
        before = time.perf_counter()
        found = search(query)
        times.append((time.perf_counter() - before) * 1e3)
        ranks.append(found.index(name) if name in found else K)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(figures(ready, times, ranks, peak)))


def figures(ready, times, ranks, peak):
    n = len(ranks)
    return {
        "ready_seconds": ready, "queries": n, "median_ms": statistics.median(times), "peak_bytes": peak,
        "first": sum(rank == 0 for rank in ranks) / n, "among_20": sum(rank < K for rank in ranks) / n,
    }


def canonym(binary, kb, build_seconds):
    """`map` with the lexical model: a candidate counts if it is a concept with that name."""
    out, one = MADE / "peers-map.jsonl", MADE / "peers-one.jsonl"
    command = [binary, "map", "--kb", str(kb), "--model", "lexical", "--threads", "1", "--top-k", str(K)]
    whole, alone = process.repeat(3, lambda: process.run([*command, str(MADE / "misspelled.txt")], out),
                                  lambda: process.run([*command, str(MADE / "one.txt")], one))
    wanted = (MADE / "names.txt").read_text(encoding="utf-8").lower().splitlines()
    ranks = []
    for name, line in zip(wanted, open(out, encoding="utf-8")):
        found = [candidate["name"].lower() for candidate in json.loads(line)["candidates"]]
        ranks.append(found.index(name) if name in found else K)
    start = statistics.median(run.seconds for run in alone)
    each = (statistics.median(run.seconds for run in whole) - start) / (len(wanted) - 1) * 1e3
    return figures(build_seconds, [each], ranks, process.peak(whole)) | {"open_seconds": start}


def export(binary, kb, to):
    """All names of a knowledge base, one a line, in lower case."""
    with subprocess.Popen([binary, "kb", "export", str(kb)], stdout=subprocess.PIPE, text=True, encoding="utf-8") as source:
        with open(to, "w", encoding="utf-8") as out:
            for line in source.stdout:
                concept = json.loads(line)
                synonyms = (one if isinstance(one, str) else one["text"] for one in concept.get("synonyms", []))
                out.writelines(f"{name.lower()}\n" for name in (concept["name"], *synonyms))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default=str(linking.ROOT / "target" / "release" / "canonym"))
    parser.add_argument("--scale", type=pathlib.Path, default=linking.ROOT / "experiments" / "reports" / "scale.json")
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        system, names, place, n = options.child
        child(system, names, place, int(n))
        return
    scale = json.loads(options.scale.read_text())
    results = {}
    for title, kb in (("open terminologies", MADE / "open.kb"), ("UMLS size, synthetic", MADE / "umls-size.kb")):
        names = kb.with_suffix(".names")
        if not names.exists():
            export(options.binary, kb, names)
        found = {"canonym": canonym(options.binary, kb, scale[title]["build_seconds"])}
        for system in SYSTEMS:
            module = {"tfidf": "sklearn"}.get(system, system)
            if module != "sqlite" and importlib.util.find_spec(module) is None:
                print(f"left out: {system} is not installed", file=sys.stderr)
                continue
            if system != "rapidfuzz" and title.startswith("UMLS"):
                continue
            command = [sys.executable, __file__, "--child", system, str(names), str(kb), str(N_QUERIES.get(system, 200))]
            print(f"{title}: {system}", file=sys.stderr, flush=True)
            if system == "sqlite":
                kb.with_suffix(".trigrams.sqlite").unlink(missing_ok=True)
            first = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            if system == "sqlite":
                again = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                first = again | {"ready_seconds": first["ready_seconds"], "open_seconds": again["ready_seconds"]}
            found[system] = first
        results[title] = found
    for title, found in results.items():
        print(f"\n| {title} | ready, s | opened, s | a query, ms | peak memory, GiB | first, % | among 20, % |\n"
              "| --- | --- | --- | --- | --- | --- | --- |")
        for system, one in found.items():
            opened = f"{one['open_seconds']:.2f}" if "open_seconds" in one else f"{one['ready_seconds']:.0f}"
            print(f"| {system} | {one['ready_seconds']:.0f} | {opened} | {one['median_ms']:.1f} | {one['peak_bytes'] / 2**30:.2f} | "
                  f"{100 * one['first']:.0f} | {100 * one['among_20']:.0f} |")
    if options.report:
        options.report.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
