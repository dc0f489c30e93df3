#!/usr/bin/env python3
"""Prints names of UMLS concepts from open terminologies as a table for `canonym kb build --format tsv`: id, name, synonyms.

    experiments/umls_names.py ../shared/data/terminologies > runs/umls-names.tsv

Reads the SSSOM table of exact matches of MONDO, and DOID, HPO and SYMP in OBO format, which have UMLS ids as cross-references.
"""

import argparse
import collections
import re

ONTOLOGIES = ["doid-2016-09-01.obo", "hp-2014-11-26.obo", "symp.obo"]
XREF = re.compile(r"xref: UMLS(?:_CUI)?:(C\d{7})\b")
SYNONYM = re.compile(r'synonym: "((?:[^"\\]|\\.)*)" EXACT')


def of_mappings(path):
    """Ids and names in a mapping table."""
    with open(path, encoding="utf-8") as file:
        lines = (line.rstrip("\n").split("\t") for line in file if not line.startswith("#"))
        header = next(lines)
        label, concept = header.index("subject_label"), header.index("object_id")
        for row in lines:
            yield row[concept].removeprefix("UMLS:"), row[label]


def of_ontology(path):
    """Ids and names of the terms of an OBO ontology."""
    with open(path, encoding="utf-8") as file:
        for term in file.read().split("\n\n"):
            name = re.search(r"^name: (.*)$", term, re.MULTILINE)
            if term.startswith("[Term]") and name and "is_obsolete: true" not in term:
                for concept in XREF.findall(term):
                    yield from ((concept, each) for each in [name[1], *SYNONYM.findall(term)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="the folder with the terminologies")
    folder = parser.parse_args().folder
    names = collections.defaultdict(dict)
    for concept, name in of_mappings(f"{folder}/mondo_exactmatch_umls.sssom.tsv"):
        names[concept][name] = None
    for ontology in ONTOLOGIES:
        for concept, name in of_ontology(f"{folder}/{ontology}"):
            names[concept][name] = None
    for concept, each in sorted(names.items()):
        first, *others = (name.replace("|", " ") for name in each)
        print(concept, first, "|".join(others), sep="\t")


if __name__ == "__main__":
    main()
