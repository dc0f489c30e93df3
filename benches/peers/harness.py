"""Shared code of the peers: command line, input and output formats, and timing.

A peer is a program `NAME_peer.py` with three steps, each a separate process so that memory and startup can be measured:

    NAME_peer.py build --terms TERMS --index DIR
    NAME_peer.py map   --terms TERMS --index DIR --names NAMES --out OUT
    NAME_peer.py link  --terms TERMS --index DIR --documents DOCUMENTS --out OUT

TERMS has a line `id<tab>name` per name, NAMES one name per line, DOCUMENTS one JSON object with `id` and `text` per line.
OUT has the format of `canonym map` or `canonym link`, so that all systems are scored by the same program. Each step
prints its measurements as one JSON line. Standard library only.
"""

import argparse
import json
import os
import time

TOP_K = 5


def main(peer):
    """Runs the step given on the command line. `peer` has `version`, `build`, `open`, and `map` or `link`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=["build", "map", "link"])
    for option in ("--terms", "--index", "--names", "--documents", "--out"):
        parser.add_argument(option)
    parser.add_argument("--started", type=float, default=time.time(), help="when the process was asked for")
    args = parser.parse_args()
    figures = {"version": peer.version()}
    if args.step == "build":
        os.makedirs(args.index, exist_ok=True)
        peer.build(list(read_terms(args.terms)), args.index)
        print(json.dumps(figures))
        return
    system = peer.open(args.index, args.terms)
    figures["ready_seconds"] = time.time() - args.started
    # Warm up with one query: lazy initialisation is not part of the rate.
    if args.step == "map":
        names = [line.rstrip("\n") for line in open(args.names, encoding="utf-8")]
        list(peer.map(system, names[:1]))
        started = time.perf_counter()
        answers = list(peer.map(system, names))
        lines = [{"query": name, "nil": not found, "candidates": candidates(found)}
                 for name, found in zip(names, answers, strict=True)]
    else:
        documents = [json.loads(line) for line in open(args.documents, encoding="utf-8")]
        list(peer.link(system, documents[0]["text"]))
        started = time.perf_counter()
        found = [list(peer.link(system, document["text"])) for document in documents]
        lines = [{"id": document["id"], "text": document["text"], "annotations": [
                     {"spans": [[start, end]], "text": document["text"][start:end], "type": "", "score": score,
                      "nil": False, "candidates": candidates([(concept, score)])}
                     for start, end, concept, score in annotations]}
                 for document, annotations in zip(documents, found, strict=True)]
    figures["seconds"] = time.perf_counter() - started
    figures["n"] = len(lines)
    with open(args.out, "w", encoding="utf-8") as out:
        out.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    print(json.dumps(figures))


def read_terms(path):
    """Pairs of an id and a name."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            concept, name = line.rstrip("\n").split("\t", 1)
            yield concept, name


def candidates(found):
    """The best `TOP_K` pairs of an id and a score, without duplicate ids."""
    best = {}
    for concept, score in found:
        best.setdefault(concept, float(score))
    return [{"id": concept, "name": "", "score": score} for concept, score in list(best.items())[:TOP_K]]
