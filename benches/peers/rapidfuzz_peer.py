#!/usr/bin/env python3
"""rapidfuzz: compares every name with the query by `ratio` after `default_process`, using `process.extract`."""

import rapidfuzz
from rapidfuzz import fuzz, process, utils

import harness


class Peer:
    def version(self):
        return rapidfuzz.__version__

    def build(self, terms, index):
        """No index is needed."""

    def open(self, index, terms):
        ids, names = zip(*harness.read_terms(terms))
        return ids, [utils.default_process(name) for name in names]

    def map(self, system, names):
        ids, known = system
        for name in names:
            found = process.extract(utils.default_process(name), known, scorer=fuzz.ratio, limit=4 * harness.TOP_K)
            yield [(ids[row], score / 100) for _, score, row in found]


if __name__ == "__main__":
    harness.main(Peer())
