#!/usr/bin/env python3
"""Baseline for `canonym map`: TF-IDF of character 1- to 3-grams within words, nearest name by cosine.

    benches/peers/tfidf.py dictionary.txt dev.concept

Prints one JSON line. Needs scikit-learn; without it, prints only a note on standard error.
"""

import json
import sys
import time

import biosyn

BATCH = 200


def main(dictionary, concepts):
    try:
        import sklearn
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        print(f"left out: {error}", file=sys.stderr)
        return
    ids, names = biosyn.read_dictionary(dictionary)
    started = time.perf_counter()
    vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3))
    rows = vectorizer.fit_transform(names)
    build_seconds = time.perf_counter() - started
    columns = rows.T.tocsr()

    def answer(parts):
        queries = vectorizer.transform(parts)
        for start in range(0, len(parts), BATCH):
            cosines = (queries[start:start + BATCH] @ columns).toarray()
            yield from (ids[row] for row in cosines.argmax(axis=1))

    judged = biosyn.judge(f"scikit-learn {sklearn.__version__} TF-IDF", biosyn.read_queries(concepts), answer)
    print(json.dumps(judged | {"build_seconds": build_seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
