#!/usr/bin/env python3
"""Writes assets/common-words.txt: in how many of a thousand abstracts each frequent word stands.

Reads texts only, never their annotations:  experiments/common_words.py ../shared/data > assets/common-words.txt
"""
import collections
import json
import re
import sys

root = sys.argv[1]
texts = []
for line in open(f"{root}/formats/pubmed-abstracts-1000.jsonl", encoding="utf-8"):
    texts.append(json.loads(line)["text"])
for name in ("bc5cdr/train.pubtator.txt", "ncbi-disease/train.pubtator.txt"):
    for line in open(f"{root}/{name}", encoding="utf-8"):
        fields = line.split("|", 2)
        if len(fields) == 3 and fields[1] == "a":
            texts.append(fields[2])
for name in ("uberon", "cl"):
    for line in open(f"{root}/craft/{name}.train.jsonl", encoding="utf-8"):
        text = json.loads(line)["text"]
        # Pieces as long as an abstract, so that an article does not count as one.
        texts.extend(text[start:start + 1500] for start in range(0, len(text), 1500))
    break

documents = collections.Counter()
for text in texts:
    documents.update(set(re.findall(r"[a-z]+", text.lower())))
for word, count in sorted(documents.items()):
    share = 1000 * count / len(texts)
    if share >= 2 and len(word) > 1:
        print(f"{word}\t{share:.0f}")
