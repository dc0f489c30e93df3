#!/usr/bin/env python3
"""Baseline: rapidfuzz `extractOne` with `ratio` and `WRatio`, on a sample of the queries.

    benches/peers/edit_distance.py dictionary.txt dev.concept [SAMPLE]

Prints one JSON line per scorer. Needs rapidfuzz; without it, prints only a note on standard error.
"""

import json
import sys

import biosyn


def main(dictionary, concepts, n_sample="500"):
    try:
        import rapidfuzz
        from rapidfuzz import fuzz, process
    except ImportError as error:
        print(f"left out: {error}", file=sys.stderr)
        return
    ids, names = biosyn.read_dictionary(dictionary)
    queries = biosyn.sample(biosyn.read_queries(concepts), int(n_sample))
    for scorer in (fuzz.ratio, fuzz.WRatio):

        def answer(parts):
            return [ids[process.extractOne(part, names, scorer=scorer)[2]] for part in parts]

        print(json.dumps(biosyn.judge(f"rapidfuzz {rapidfuzz.__version__} {scorer.__name__}", queries, answer)))


if __name__ == "__main__":
    main(*sys.argv[1:])
