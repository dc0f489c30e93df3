#!/usr/bin/env python3
"""scispaCy's candidate generator with default settings: TF-IDF of character trigrams in an approximate index of nmslib.

Its mention detection models are not on PyPI, so there is no step `link`. Its builder stores vectors in half precision,
which SciPy dropped in 1.11; without a path it stores nothing, and the vectors are stored here in full precision.
"""

import importlib.metadata
import json
import os

import joblib
import nmslib
import scipy.sparse
from scispacy import candidate_generation
from scispacy.candidate_generation import CandidateGenerator, create_tfidf_ann_index
from scispacy.linking_utils import Entity, KnowledgeBase

import harness

BATCH = 200
K = 30
EF_SEARCH = 200

candidate_generation.scipy_supports_sparse_float16 = lambda: True


def knowledge_base(terms):
    names = {}
    for concept, name in terms:
        names.setdefault(concept, []).append(name)
    return KnowledgeBase([Entity(concept, known[0], known[1:], []) for concept, known in names.items()])


def new_index(vectors):
    index = nmslib.init(method="hnsw", space="cosinesimil_sparse", data_type=nmslib.DataType.SPARSE_VECTOR)
    index.addDataPointBatch(vectors)
    return index


class Peer:
    def version(self):
        return importlib.metadata.version("scispacy")

    def build(self, terms, index):
        aliases, vectorizer, ann = create_tfidf_ann_index(None, knowledge_base(terms))
        scipy.sparse.save_npz(os.path.join(index, "vectors.npz"), vectorizer.transform(aliases))
        joblib.dump(vectorizer, os.path.join(index, "vectorizer.joblib"))
        ann.saveIndex(os.path.join(index, "index.bin"))
        with open(os.path.join(index, "aliases.json"), "w", encoding="utf-8") as file:
            json.dump(aliases, file)

    def open(self, index, terms):
        ann = new_index(scipy.sparse.load_npz(os.path.join(index, "vectors.npz")))
        ann.loadIndex(os.path.join(index, "index.bin"))
        ann.setQueryTimeParams({"efSearch": EF_SEARCH})
        with open(os.path.join(index, "aliases.json"), encoding="utf-8") as file:
            aliases = json.load(file)
        vectorizer = joblib.load(os.path.join(index, "vectorizer.joblib"))
        return CandidateGenerator(ann, vectorizer, aliases, knowledge_base(harness.read_terms(terms)))

    def map(self, generator, names):
        for start in range(0, len(names), BATCH):
            for found in generator(names[start:start + BATCH], K):
                pairs = [(max(candidate.similarities), candidate.concept_id) for candidate in found]
                yield [(concept, score) for score, concept in sorted(pairs, key=lambda one: -one[0])]


if __name__ == "__main__":
    harness.main(Peer())
