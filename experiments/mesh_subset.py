#!/usr/bin/env python3
"""Prints the MeSH descriptors of some trees as TSV, the trees as types.

    experiments/mesh_subset.py ../shared/data C D F03 > runs/mesh-c-d-f03.tsv
"""
import collections
import sys

root, wanted = sys.argv[1], sys.argv[2:]
trees = collections.defaultdict(set)
for line in open(f"{root}/terminologies/mesh-tree-numbers-2015.tsv", encoding="utf-8"):
    fields = line.rstrip("\n").split("\t")
    trees[fields[0]].update(tree for tree in wanted if fields[2].startswith(tree))
for line in open(f"{root}/terminologies/mesh-descriptors-2019.tsv", encoding="utf-8"):
    fields = line.rstrip("\n").split("\t")
    if trees[fields[0]]:
        print("\t".join(fields[:3] + ["|".join(sorted(trees[fields[0]]))]))
