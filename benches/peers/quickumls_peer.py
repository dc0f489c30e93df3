#!/usr/bin/env python3
"""QuickUMLS with custom terms: its matcher with default settings (Jaccard 0.7, windows of five tokens).

The databases are built with its own classes, in lower case and without accents as its installer recommends. Its spaCy
model and NLTK's stop words are not on PyPI, so a blank English pipeline and the stop words of spaCy replace them; its
part-of-speech rules then have no effect. A name is matched as a whole, or by its parts if the whole has no match.
"""

import importlib.metadata
import os
import types

import nltk
import spacy
from spacy.lang.en.stop_words import STOP_WORDS
from unidecode import unidecode

import harness

spacy.load = lambda name: spacy.blank("en")
nltk.corpus.stopwords = types.SimpleNamespace(words=lambda *languages: sorted(STOP_WORDS))

from quickumls import QuickUMLS  # noqa: E402
from quickumls.toolbox import CuiSemTypesDB, SimstringDBWriter  # noqa: E402


class Peer:
    def version(self):
        return importlib.metadata.version("quickumls")

    def build(self, terms, index):
        folders = [os.path.join(index, name) for name in ("umls-simstring.db", "cui-semtypes.db")]
        for folder in folders:
            os.makedirs(folder)
        names, concepts = SimstringDBWriter(folders[0]), CuiSemTypesDB(folders[1], database_backend="unqlite")
        known, seen = set(), set()
        for concept, name in terms:
            name = unidecode(name.lower())
            if name not in known:
                names.insert(name)
                known.add(name)
            concepts.insert(name, concept, ["T047"], concept not in seen)
            seen.add(concept)
        for flag, content in (("lowercase", ""), ("normalize-unicode", ""), ("language", "ENG"),
                              ("database_backend", "unqlite")):
            with open(os.path.join(index, f"{flag}.flag"), "w", encoding="utf-8") as file:
                file.write(content)

    def open(self, index, terms):
        return QuickUMLS(index, accepted_semtypes=None)

    def map(self, matcher, names):
        for name in names:
            groups = matcher._get_all_matches([(0, len(name), name)]) or matcher.match(name)
            found = [(match["similarity"], match["cui"]) for group in groups for match in group]
            yield [(concept, score) for score, concept in sorted(found, key=lambda one: -one[0])]

    def link(self, matcher, text):
        for group in matcher.match(text):
            best = group[0]
            yield best["start"], best["end"], best["cui"], best["similarity"]


if __name__ == "__main__":
    harness.main(Peer())
