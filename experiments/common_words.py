#!/usr/bin/env python3
"""Prints crates/canonym-core/assets/common-words.txt: in how many of a thousand abstracts each frequent word occurs.

    experiments/common_words.py ../shared/data > crates/canonym-core/assets/common-words.txt

Reads only texts, no annotations: PubMed abstracts, and the training sets of three corpora.
"""

import argparse
import collections
import json
import re

# Minimum number of abstracts, of a thousand, for a word to be listed.
LEAST = 2

# Articles are split into pieces of the length of an abstract, each counted as one.
PIECE = 1500


def documents(root):
    with open(f"{root}/formats/pubmed-abstracts-1000.jsonl", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]
    for name in ("bc5cdr/train.pubtator.txt", "ncbi-disease/train.pubtator.txt"):
        with open(f"{root}/{name}", encoding="utf-8") as file:
            for line in file:
                fields = line.split("|", 2)
                if len(fields) == 3 and fields[1] == "a":
                    yield fields[2]
    # The files for UBERON and CL contain the same articles.
    with open(f"{root}/craft/uberon.train.jsonl", encoding="utf-8") as file:
        for line in file:
            text = json.loads(line)["text"]
            for start in range(0, len(text), PIECE):
                yield text[start:start + PIECE]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="the data folder")
    arguments = parser.parse_args()
    counts, n_documents = collections.Counter(), 0
    for text in documents(arguments.root):
        counts.update(set(re.findall(r"[a-z]+", text.lower())))
        n_documents += 1
    for word, count in sorted(counts.items()):
        share = 1000 * count / n_documents
        if share >= LEAST and len(word) > 1:
            print(f"{word}\t{share:.0f}")


if __name__ == "__main__":
    main()
