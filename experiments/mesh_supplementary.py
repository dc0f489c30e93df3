#!/usr/bin/env python3
"""Prints the supplementary records of a MeSH mapping table for `canonym kb build --format tsv`: id, name, synonyms.

    experiments/mesh_supplementary.py ../shared/data/terminologies/mesh-mappings.tsv > runs/mesh-supplementary.tsv

The table has a line per mapping: `MESH`, an id, its name, another vocabulary, the id there, the name there. Descriptors (ids that start
with D) are left out; names from other vocabularies become synonyms.
"""

import argparse
import collections


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mappings", help="the table of mappings")
    arguments = parser.parse_args()
    names = collections.defaultdict(dict)
    with open(arguments.mappings, encoding="utf-8") as file:
        for line in file:
            _, identifier, name, _, _, other = line.rstrip("\n").split("\t")
            if identifier.startswith("C"):
                names[identifier].update({name: None, other: None})
    for identifier, each in names.items():
        first, *others = (name.replace("|", " ") for name in each)
        print(identifier, first, "|".join(others), sep="\t")


if __name__ == "__main__":
    main()
