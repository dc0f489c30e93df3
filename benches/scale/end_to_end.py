#!/usr/bin/env python3
"""Strict F1 of `canonym link` on CRAFT with the terminologies of `dense.py`, without an index and with one of each precision.

    benches/scale/end_to_end.py --report experiments/reports/dense-end-to-end.json

The gold annotations are those of UBERON and CL in the development articles of CRAFT that no part of the default model has seen; links to
other terminologies do not count. Run `dense.py` first: this script uses its knowledge base and indexes.
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
KEPT = {"UBERON": "uberon", "CL": "cl"}


def write(path, documents):
    path.write_text("".join(json.dumps(document, ensure_ascii=False) + "\n" for document in documents), encoding="utf-8")


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def is_of(prefix, annotation):
    return not annotation["nil"] and annotation["candidates"] and annotation["candidates"][0]["id"].startswith(f"{prefix}:")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", default=str(linking.ROOT / "target" / "release" / "canonym"))
    parser.add_argument("--report", type=pathlib.Path)
    options = parser.parse_args()
    kb, place = dense.MADE / "names.kb", dense.MADE / "end-to-end"
    place.mkdir(exist_ok=True)
    for name in KEPT.values():
        documents = read(linking.DATA / "craft" / f"{name}.dev.jsonl")
        write(place / f"{name}.gold.jsonl", [document for document in documents if document["id"] != SEEN])
    texts = place / f"{KEPT['UBERON']}.gold.jsonl"
    # An index beside the knowledge base is used.
    index = kb.with_suffix(".index")
    results = {}
    for title in ("no index", "f16", "int8"):
        index.unlink(missing_ok=True)
        if title != "no index":
            os.link(dense.MADE / f"names-{title}.index", index)
        links = place / f"{title.replace(' ', '-')}.jsonl"
        started = time.perf_counter()
        with open(links, "w", encoding="utf-8") as out:
            subprocess.run([options.binary, "link", "--kb", str(kb), "--to", "jsonl", str(texts)], check=True, stdout=out)
        results[title] = {"seconds": time.perf_counter() - started}
        for prefix, name in KEPT.items():
            documents = read(links)
            for document in documents:
                document["annotations"] = [one for one in document["annotations"] if is_of(prefix, one)]
            kept = place / f"{name}.kept.jsonl"
            write(kept, documents)
            command = [options.binary, "eval", "--gold", str(place / f"{name}.gold.jsonl"), "--pred", str(kept), "--kb", str(kb), "--json"]
            report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            results[title][prefix] = {"strict": report["metrics"]["strict"], "ci": report["ci"]["strict"]["f1"],
                                      "n_gold": report["counts"]["strict"]["n_gold"], "n_pred": report["counts"]["strict"]["n_pred"]}
        print(title, json.dumps(results[title]), flush=True)
    index.unlink(missing_ok=True)
    if options.report:
        options.report.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
