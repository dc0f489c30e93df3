#!/usr/bin/env python3
"""Gilda with custom terms and default settings: `Grounder.ground` for names, `gilda.annotate` for texts."""

import importlib.metadata
import os

import harness

# Gilda needs a data folder on import.
os.environ.setdefault("PYSTOW_HOME", os.path.join(os.path.dirname(os.path.abspath(__file__)), ".pystow"))
from gilda.grounder import Grounder
from gilda.ner import annotate
from gilda.process import normalize
from gilda.term import Term, dump_terms


class Peer:
    def version(self):
        return importlib.metadata.version("gilda")

    def build(self, terms, index):
        first = {}
        for concept, name in terms:
            first.setdefault(concept, name)
        made = [Term(normalize(name), name, "TERMS", concept, first[concept],
                     "name" if first[concept] == name else "synonym", "terms")
                for concept, name in terms if normalize(name).strip()]
        dump_terms(made, os.path.join(index, "terms.tsv.gz"))

    def open(self, index, terms):
        grounder = Grounder(os.path.join(index, "terms.tsv.gz"))
        # Its disambiguation models are for its own terms; this prevents downloading them at the first ambiguous name.
        grounder.gilda_disambiguators = {}
        return grounder

    def map(self, grounder, names):
        for name in names:
            yield [(match.term.id, match.score) for match in grounder.ground(name)]

    def link(self, grounder, text):
        for found in annotate(text, grounder=grounder):
            best = found.matches[0]
            yield found.start, found.end, best.term.id, best.score


if __name__ == "__main__":
    harness.main(Peer())
