#!/usr/bin/env python3
"""Strict F1 and accuracy on given mentions of CRAFT without an index of names, and with one of each precision.

    benches/scale/end_to_end.py --report experiments/reports/dense-end-to-end.json

The terminologies are those of `dense.py`; run it first, because this script uses its knowledge base and indexes. The gold annotations
are those of UBERON and CL in the development articles of CRAFT that no part of the default model has seen. Only concepts of the same
terminology are linked, because others, such as MeSH, have concepts of the same names.
"""

import argparse
import json
import os
import pathlib
import subprocess
import time

import dense
import linking

# The tagger has learned from this article; `canonym eval` refuses it.
SEEN = "17244351"
GOLD = {"UBERON": ("uberon", "uberon-2026-04"), "CL": ("cl", "cl-2026-03")}


def write(path, documents):
    path.write_text("".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents), encoding="utf-8")


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default=str(linking.ROOT / "target" / "release" / "canonym"))
    parser.add_argument("--report", type=pathlib.Path)
    tables = ("no index", "f16", "int8")
    parser.add_argument("--only", nargs="*", choices=tables, default=tables)
    options = parser.parse_args()
    kb, place = dense.MADE / "names.kb", dense.MADE / "end-to-end"
    place.mkdir(exist_ok=True)
    for name, _ in GOLD.values():
        documents = read(linking.DATA / "craft" / f"{name}.dev.jsonl")
        write(place / f"{name}.gold.jsonl", [document for document in documents if document["id"] != SEEN])
    # An index beside the knowledge base is used.
    index = kb.with_suffix(".index")
    results = json.loads(options.report.read_text()) if options.report and options.report.exists() else {}
    for title in options.only:
        index.unlink(missing_ok=True)
        if title != "no index":
            os.link(dense.MADE / f"names-{title}.index", index)
        results[title] = {}
        for system, (name, source) in GOLD.items():
            gold, links = place / f"{name}.gold.jsonl", place / f"{name}.{title.replace(' ', '-')}.jsonl"
            command = [options.binary, "link", "--kb", str(kb), "--only-sources", source, "--to", "jsonl", str(gold)]
            started = time.perf_counter()
            with open(links, "w", encoding="utf-8") as out:
                subprocess.run(command, check=True, stdout=out)
            seconds = time.perf_counter() - started
            command = [options.binary, "eval", "--gold", str(gold), "--pred", str(links), "--kb", str(kb), "--json"]
            report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            counts = report["counts"]["strict"]
            command = [options.binary, "eval", "--mentions", "gold", "--model", "default", "--gold", str(gold), "--kb", str(kb), "--json",
                       "--only-sources", source]
            given = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            results[title][system] = {"strict": report["metrics"]["strict"], "ci": report["ci"]["strict"]["f1"],
                                      "given": given["metrics"]["strict"]["recall"], "n_gold": counts["n_gold"],
                                      "n_pred": counts["n_pred"], "seconds": seconds}
        print(title, json.dumps(results[title]), flush=True)
    index.unlink(missing_ok=True)
    if options.report:
        options.report.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
