#!/usr/bin/env python3
"""Measures canonym on all open terminologies together, and on a terminology of the size of UMLS grown from them.

    make bench-scale
    benches/scale/bench.py --binary target/release/canonym --report experiments/reports/scale.json

For each terminology: time, memory and file size of `kb build`; time of `kb info`; time and memory of `map` for names that
are in it and for misspelled names, on one thread; recall and time of its n-gram search beside all names; the first answer of
`link`, with the lexical and with the default model without an index. `--what rates` measures abstracts a second on one thread
and on two, on MeSH as well. `--what index` measures time and size of `index build`, `map` with the default model and the index,
and recall and time of a search in the index beside an exact one, for misspelled names and mentions. Each takes half an hour or
more; they use the knowledge bases of `--what tables`, the default, and add their figures to the report.
The time of a name is that of a run with all names less that of a run with one, divided by their number; figures
are medians of five interleaved runs. Terminologies are read from CANONYM_DATA, else ../shared/data; files of several
gigabytes are made once, in runs/scale. Standard library only.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import linking  # noqa: E402
import process  # noqa: E402

MADE = linking.ROOT / "runs" / "scale"
OPEN = (
    "ncbitaxon-2025-09.jsonl.zst", "chebi-2026-05.jsonl.zst", "cellosaurus-55.jsonl.zst", "go-2022-07.jsonl.zst",
    "human-genes-2022-09.jsonl.zst", "mondo-2026-05.jsonl.zst", "icd10-cm-2022.jsonl.zst", "efo-3.90.jsonl.zst",
    "hp-2025-01-16.obo.zst", "uberon-2026-04.jsonl.zst", "cl-2026-03.jsonl.zst",
)
MORE = ("mesh-descriptors-2019.tsv", "doid-2016-09-01.obo")
N_RUNS = 5
N_RATES = 3
ABSTRACTS = "formats/pubmed-abstracts-1000.jsonl"
# Abstracts of PubMed.
PUBMED = 36e6
N_QUERIES = 500
N_MENTIONS = 200
N_NEAREST = 20


def misspelled(names, seed):
    """A letter dropped, a letter added or the order of words turned."""
    rng = random.Random(seed)
    for name in names:
        at, kind = rng.randrange(len(name)), rng.randrange(3)
        if kind == 0 and len(name) > 3:
            yield name[:at] + name[at + 1:]
        elif kind == 1:
            yield name[:at] + rng.choice("aeiorstn") + name[at:]
        else:
            yield " ".join(reversed(name.split()))


def mentions():
    """Some mentions of MedMentions."""
    with open(linking.DATA / "medmentions-st21pv" / "train.pubtator.txt", encoding="utf-8") as lines:
        cells = [line.rstrip("\n").split("\t") for line in lines]
    found = sorted({" ".join(one[3].split()) for one in cells if len(one) >= 6 and one[1].isdigit()})
    return random.Random(linking.SEED).sample([mention for mention in found if 2 < len(mention) < 80], N_MENTIONS)


def queries(jsonl):
    """Two files of names for `map`: as they are, and misspelled."""
    with open(jsonl, encoding="utf-8") as lines:
        names = [json.loads(line)["name"] for line in lines]
    drawn = random.Random(linking.SEED).sample(names, N_QUERIES)
    files = {}
    for title, lines in (("names", drawn), ("misspelled", list(misspelled(drawn, linking.SEED)))):
        files[title] = MADE / f"{title}.txt"
        files[title].write_text("\n".join(lines) + "\n", encoding="utf-8")
    files["one"] = MADE / "one.txt"
    files["one"].write_text(drawn[0] + "\n", encoding="utf-8")
    files["mentions"] = MADE / "mentions.txt"
    files["mentions"].write_text("\n".join(mentions()) + "\n", encoding="utf-8")
    files["text"] = MADE / "text.txt"
    files["text"].write_text("She was given metformin for diabetes and has chest pain.\n", encoding="utf-8")
    return files


def measure(binary, kb, files):
    """Figures of one knowledge base."""
    def of_map(file):
        return lambda: process.run([binary, "map", str(file), "--kb", str(kb), "--model", "lexical", "--threads", "1"])

    def of_link(model):
        return lambda: process.run([binary, "link", str(files["text"]), "--kb", str(kb), "--model", model])

    info = lambda: process.run([binary, "kb", "info", str(kb)])  # noqa: E731
    names, misspelt, one, infos, lexical, default = process.repeat(
        N_RUNS, of_map(files["names"]), of_map(files["misspelled"]), of_map(files["one"]), info, of_link("lexical"),
        of_link("default"),
    )
    base = statistics.median(run.seconds for run in one)

    def each(runs):
        return process.spread((run.seconds - base) / N_QUERIES for run in runs)

    return {
        "file_bytes": kb.stat().st_size,
        "info_seconds": process.seconds(infos),
        "map_seconds_per_name": each(names),
        "map_seconds_per_misspelled_name": each(misspelt),
        "map_peak_bytes": max(run.peak_bytes for run in misspelt),
        "link_first_seconds": {"lexical": process.seconds(lexical), "default": process.seconds(default)},
        "link_peak_bytes": {"lexical": max(run.peak_bytes for run in lexical), "default": max(run.peak_bytes for run in default)},
    }


def search(program, kb, files):
    """Figures of the search by n-grams."""
    text = subprocess.run([program, str(kb), str(files["misspelled"])], check=True, capture_output=True, text=True).stdout
    return {"search": json.loads(text)}


def rates(binary, kb):
    """Abstracts a second of `link` by model and number of threads, without the start."""
    whole, one = linking.DATA / ABSTRACTS, MADE / "one.jsonl"
    with open(whole, encoding="utf-8") as lines:
        first = lines.readline()
        n = 1 + sum(1 for _ in lines)
    one.write_text(first, encoding="utf-8")
    found = {}
    for model in ("lexical", "default"):
        for threads in ("1", "2"):
            command = [binary, "link", "--kb", str(kb), "--model", model, "--threads", threads, "--to", "jsonl"]
            runs = process.repeat(N_RATES, *(lambda path=path: process.run([*command, str(path)]) for path in (one, whole)))
            start = statistics.median(run.seconds for run in runs[0])
            found[f"{model}, {threads}"] = process.spread((n - 1) / (run.seconds - start) for run in runs[1])
            found[f"{model}, {threads}"]["peak_bytes"] = max(run.peak_bytes for run in runs[1])
    return found


def build(binary, kb, sources):
    made = process.run([binary, "kb", "build", *map(str, sources), "--out", str(kb)])
    return {"build_seconds": made.seconds, "build_peak_bytes": made.peak_bytes}


def index_search(speed, path, files):
    """Recall and time of a search in an index with default settings, by the exact search."""
    place, figures = MADE / "search", {}
    place.mkdir(exist_ok=True)
    for title in ("misspelled", "mentions"):
        subprocess.run([speed, "--usual", str(path), str(files[title]), str(place)], check=True)
        ours = json.loads((place / "ours.json").read_text())
        usual, exact = ours["results"]
        pairs = list(zip(usual["scores"], ours["exact_scores"]))

        def recall(k):
            # A name as near as the last of the nearest k counts.
            return sum(sum(score >= nearest[k - 1] - 1e-6 for score in found[:k]) for found, nearest in pairs) / (k * len(pairs))

        figures[title] = {
            "queries": len(pairs), "rows_compared": ours["usual"],
            "recall_at_1": recall(1), "recall_at_20": recall(N_NEAREST),
            "median_ms": statistics.median(usual["alone_ms"]), "p99_ms": sorted(usual["alone_ms"])[int(len(pairs) * 0.99)],
            "exact_median_ms": statistics.median(exact["alone_ms"]),
        }
    return {"index_search": figures}


def index(binary, speed, kb, files):
    """Figures of the index of a knowledge base, which is removed afterwards, and of `map` with the default model."""
    made = process.run([binary, "index", "build", "--kb", str(kb)])
    path = kb.with_suffix(".index")
    command = [binary, "map", "--kb", str(kb), "--model", "default", "--threads", "1"]
    one, misspelt = process.repeat(
        N_RUNS, *(lambda name=name: process.run([*command, str(files[name])]) for name in ("one", "misspelled"))
    )
    base = statistics.median(run.seconds for run in one)
    figures = {
        "index_seconds": made.seconds, "index_peak_bytes": made.peak_bytes, "index_bytes": path.stat().st_size,
        "index_map_seconds": process.spread((run.seconds - base) / N_QUERIES for run in misspelt),
        "index_map_peak_bytes": max(run.peak_bytes for run in misspelt), "index_first_seconds": process.seconds(one),
    }
    figures |= index_search(speed, path, files)
    path.unlink()
    return figures


def counts(binary, kb):
    text = subprocess.run([binary, "kb", "info", str(kb), "--json"], check=True, capture_output=True, text=True).stdout
    info = json.loads(text)
    return {key: info[key] for key in ("n_concepts", "n_names", "n_forms") if key in info}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default=str(linking.ROOT / "target" / "release" / "canonym"))
    parser.add_argument("--search", default=str(linking.ROOT / "target" / "release" / "examples" / "gram_speed"))
    parser.add_argument("--speed", default=str(linking.ROOT / "target" / "release" / "examples" / "index_speed"))
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--what", nargs="*", choices=("tables", "rates", "index"), default=("tables",))
    options = parser.parse_args()
    MADE.mkdir(parents=True, exist_ok=True)
    folder = linking.DATA / "terminologies"
    sources = [*(folder / "open" / name for name in OPEN), *(folder / name for name in MORE)]
    real, jsonl, grown = MADE / "open.kb", MADE / "open.jsonl", MADE / "umls-size.kb"
    results = json.loads(options.report.read_text()) if options.report and options.report.exists() else {}
    bases = {"open terminologies": real, "UMLS size, synthetic": grown}
    for title in bases:
        results.setdefault(title, {})
    if "tables" in options.what:
        results["open terminologies"] |= build(options.binary, real, sources)
    if not jsonl.exists():
        process.run([options.binary, "kb", "export", str(real), "--to", "jsonl", "--out", str(jsonl)])
    if not (MADE / "umls-size").exists():
        process.run([sys.executable, str(HERE / "generate.py"), str(jsonl), "--out", str(MADE / "umls-size")])
    if "tables" in options.what:
        results["UMLS size, synthetic"] |= build(options.binary, grown, [MADE / "umls-size"])
    files = queries(jsonl)
    for title, kb in bases.items():
        if "tables" in options.what:
            results[title] |= counts(options.binary, kb) | measure(options.binary, kb, files) | search(options.search, kb, files)
        if "rates" in options.what:
            results[title]["rates"] = rates(options.binary, kb)
        if "index" in options.what:
            results[title] |= index(options.binary, options.speed, kb, files)
    if "rates" in options.what:
        mesh = MADE / "mesh.kb"
        build(options.binary, mesh, [folder / MORE[0]])
        results["MeSH"] = {"rates": rates(options.binary, mesh)}
    if "tables" in options.what:
        taxa = MADE / "taxa.kb"
        results["NCBI Taxonomy"] = build(options.binary, taxa, [folder / "open" / OPEN[0]]) | {"file_bytes": taxa.stat().st_size}
    if options.report:
        options.report.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    show(options.what, {title: results[title] for title in bases}, results)


def show(what, bases, results):
    """Prints the tables."""
    if "tables" in what or "index" in what:
        show_bases(what, bases)
    if "rates" in what:
        show_rates(results)
    if "tables" in what:
        taxa = results["NCBI Taxonomy"]
        print(f"\nNCBI Taxonomy alone: built in {taxa['build_seconds']:.1f} s, {taxa['file_bytes'] / 1e6:.0f} MB")


def span(spread, unit=1.0, digits=1):
    return f"{spread['median'] * unit:.{digits}f} ({spread['min'] * unit:.{digits}f}–{spread['max'] * unit:.{digits}f})"


def show_bases(what, results):
    print("| | " + " | ".join(results) + " |\n| --- | " + " | ".join("---" for _ in results) + " |")

    def row(title, show):
        print(f"| {title} | " + " | ".join(show(one) for one in results.values()) + " |")

    if "tables" in what:
        row("concepts", lambda one: f"{one['n_concepts']:,}")
        row("names", lambda one: f"{one['n_names']:,}")
        row("`kb build`, s", lambda one: f"{one['build_seconds']:.0f}")
        row("its peak memory, GiB", lambda one: f"{one['build_peak_bytes'] / 2**30:.1f}")
        row("size of the file, GiB", lambda one: f"{one['file_bytes'] / 2**30:.2f}")
        row("bytes a name", lambda one: f"{one['file_bytes'] / one['n_names']:.0f}")
        row("`kb info`, ms", lambda one: span(one["info_seconds"], 1000, 0))
        row("`map` of a name it has, ms", lambda one: span(one["map_seconds_per_name"], 1000, 2))
        row("`map` of a misspelled name, ms", lambda one: span(one["map_seconds_per_misspelled_name"], 1000, 2))
        row("search by n-grams alone, median ms", lambda one: f"{one['search']['median_ms']:.2f}")
        row("… 99th percentile, ms", lambda one: f"{one['search']['p99_ms']:.1f}")
        row("… share of the 20 nearest of all names that it finds, %", lambda one: f"{100 * one['search']['recall_at_20']:.1f}")
        row("look-up of an exact name, microseconds", lambda one: f"{one['search']['exact_microseconds']:.1f}")
        row("peak memory of `map`, GiB", lambda one: f"{one['map_peak_bytes'] / 2**30:.2f}")
        for model in ("lexical", "default"):
            row(f"first answer of `link`, {model}, s", lambda one: span(one["link_first_seconds"][model], 1, 2))
    if "index" in what:
        row("`index build`, s", lambda one: f"{one['index_seconds']:.0f}")
        row("its peak memory, GiB", lambda one: f"{one['index_peak_bytes'] / 2**30:.2f}")
        row("size of the index, GiB", lambda one: f"{one['index_bytes'] / 2**30:.2f}")
        row("`map` of a misspelled name, default model, ms", lambda one: span(one["index_map_seconds"], 1000, 2))
        row("its peak memory, GiB", lambda one: f"{one['index_map_peak_bytes'] / 2**30:.2f}")
        row("first answer of `map`, s", lambda one: span(one["index_first_seconds"], 1, 2))
        for title in ("misspelled", "mentions"):
            row(f"recall of the nearest name, {title}, %", lambda one: f"{100 * one['index_search'][title]['recall_at_1']:.1f}")
            row(f"recall of the 20 nearest, {title}, %", lambda one: f"{100 * one['index_search'][title]['recall_at_20']:.1f}")
            row(f"search in the index, {title}, median ms", lambda one: f"{one['index_search'][title]['median_ms']:.1f}")
            row(f"exact search in it, {title}, median ms", lambda one: f"{one['index_search'][title]['exact_median_ms']:.0f}")


def show_rates(results):
    print("\n| abstracts a second, with | model | one thread | two threads | ratio | hours for PubMed on two |\n| --- | --- | --- | --- | --- | --- |")
    for title in ("MeSH", "open terminologies", "UMLS size, synthetic"):
        for model in ("lexical", "default"):
            one, two = (results[title]["rates"][f"{model}, {n}"] for n in (1, 2))
            cells = [span(one, 1, 0), span(two, 1, 0), f"{two['median'] / one['median']:.2f}", f"{PUBMED / two['median'] / 3600:.1f}"]
            print(f"| {title} | {model} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
