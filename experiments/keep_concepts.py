#!/usr/bin/env python3
"""Prints linked documents with only those links whose concept is in a table, and without unlinked mentions.

    experiments/keep_concepts.py LINKED.jsonl TABLE.tsv --prefix MESH > KEPT.jsonl

The first column of the table has the ids, without the prefix. Used to count links to some trees of MeSH alone.
"""

import argparse
import json


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("linked", help="output of `canonym link --to jsonl`")
    parser.add_argument("table", help="concepts to keep, such as those that experiments/mesh_subset.py prints")
    parser.add_argument("--prefix", required=True, help="prefix of the ids in the links")
    arguments = parser.parse_args()
    with open(arguments.table, encoding="utf-8") as file:
        kept = {f"{arguments.prefix}:{line.split(chr(9), 1)[0]}" for line in file}
    with open(arguments.linked, encoding="utf-8") as file:
        for line in file:
            document = json.loads(line)
            document["annotations"] = [one for one in document["annotations"]
                                       if not one["nil"] and one["candidates"] and one["candidates"][0]["id"] in kept]
            print(json.dumps(document, ensure_ascii=False))


if __name__ == "__main__":
    main()
