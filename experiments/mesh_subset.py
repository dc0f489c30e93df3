#!/usr/bin/env python3
"""Prints the MeSH descriptors of some trees as a table for `canonym kb build --format tsv`, with the trees as types.

    experiments/mesh_subset.py ../shared/data C D F03 > runs/mesh-c-d-f03.tsv

The first argument is the data folder, with `terminologies/mesh-tree-numbers-2015.tsv` and
`terminologies/mesh-descriptors-2019.tsv`; the others are prefixes of tree numbers.
"""

import argparse
import collections


def rows(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n").split("\t")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="the data folder")
    parser.add_argument("trees", nargs="+", help="beginnings of tree numbers, such as C or F03")
    arguments = parser.parse_args()
    trees = collections.defaultdict(set)
    for row in rows(f"{arguments.root}/terminologies/mesh-tree-numbers-2015.tsv"):
        trees[row[0]].update(tree for tree in arguments.trees if row[2].startswith(tree))
    for row in rows(f"{arguments.root}/terminologies/mesh-descriptors-2019.tsv"):
        if trees[row[0]]:
            print("\t".join(row[:3] + ["|".join(sorted(trees[row[0]]))]))


if __name__ == "__main__":
    main()
