#!/usr/bin/env python3
"""Grows real terminologies to the size of UMLS, written as Rich Release Format.

    canonym kb export all.kb --to jsonl --out all.jsonl
    benches/scale/generate.py all.jsonl --out umls-size --concepts 4500000 --names 12000000

The result is synthetic: its identifiers, relations and most names mean nothing. What it keeps from the terminologies
that it was grown from are the distributions that size and speed depend on: words and their frequencies, lengths,
characters, and names that several concepts share.

Every concept of the input is kept with all its names. Further concepts repeat a drawn one with one of these changes to
all names: a word is replaced by another that follows or precedes the same neighbour somewhere in the input, or a
qualifier is added in front or behind. Names that are still missing are added to drawn concepts as synonyms: word order
inverted at a comma, hyphens for spaces, a plural, initials, or "NOS" behind it. All draws come from one generator with
a fixed seed; the same input and options give the same files. Writes MRCONSO, MRSTY, MRREL (PAR) and MRDEF. Standard
library only; about a minute for 12 million names.
"""

import argparse
import json
import pathlib
import random

SOURCES = ("SNOMEDCT_US", "MSH", "NCI", "ICD10CM", "LNC", "RXNORM", "MDR", "OMIM")
TYPES = ("T047", "T121", "T023", "T061", "T033", "T109", "T028", "T204", "T191", "T184")
FRONT = (
    "acute", "chronic", "recurrent", "left", "right", "bilateral", "congenital", "acquired", "severe", "mild",
    "suspected", "history of", "family history of", "screening for", "anterior", "posterior", "distal", "proximal",
    "juvenile", "neonatal", "secondary", "primary", "benign", "malignant", "structure of", "entire",
)
BEHIND = (
    "in pregnancy", "in remission", "with complications", "without complications", "of lower limb", "of upper limb",
    "due to infection", "due to drug", "type 1", "type 2", "type 3", "10 mg", "25 mg", "500 mg oral tablet",
    "subtype a", "subtype b", "stage ii", "stage iv", "initial encounter", "subsequent encounter", "sequela",
    "measurement", "procedure", "disorder", "finding",
)


def read(path):
    """Names, type and definition of every concept."""
    concepts = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            names = [record["name"]]
            for name in record.get("synonyms", []):
                names.append(name["text"] if isinstance(name, dict) else name)
            names = [" ".join(name.split()).replace("|", "/") for name in names]
            concepts.append((names, record.get("definition", "").replace("|", "/").replace("\n", " ")))
    return concepts


class Words:
    """Words that stand beside the same word."""

    def __init__(self, concepts, rng):
        self.after = {}
        for names, _ in rng.sample(concepts, min(len(concepts), 400_000)):
            words = names[0].split()
            for left, right in zip(words, words[1:]):
                known = self.after.setdefault(left.lower(), [])
                if len(known) < 64:
                    known.append(right)

    def other(self, left, rng):
        known = self.after.get(left.lower())
        return known and rng.choice(known)


def vary(names, words, rng):
    """The names of a new concept."""
    if rng.random() < 0.5:
        swaps = names[0].split()
        if len(swaps) > 1:
            at = rng.randrange(1, len(swaps))
            other = words.other(swaps[at - 1], rng)
            if other and other != swaps[at]:
                old = swaps[at]
                return [" ".join(other if word == old else word for word in name.split()) for name in names]
    if rng.random() < 0.5:
        front = rng.choice(FRONT)
        return [f"{front} {name}" for name in names]
    behind = rng.choice(BEHIND)
    return [f"{name} {behind}" for name in names]


def synonym(name, rng):
    """Another way to write a name."""
    words = name.split()
    kind = rng.randrange(5)
    if kind == 0 and len(words) > 1:
        return f"{words[-1]}, {' '.join(words[:-1])}"
    if kind == 1 and len(words) > 1:
        return "-".join(words[:2]) + "".join(f" {word}" for word in words[2:])
    if kind == 2 and len(words) > 2:
        return "".join(word[0] for word in words).upper()
    if kind == 3:
        return f"{name}, NOS"
    return name + ("es" if name.endswith("s") else "s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("concepts_jsonl", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--concepts", type=int, default=4_500_000)
    parser.add_argument("--names", type=int, default=12_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    rng = random.Random(options.seed)
    real = read(options.concepts_jsonl)
    words = Words(real, rng)
    options.out.mkdir(parents=True, exist_ok=True)

    def opened(name):
        return open(options.out / f"{name}.RRF", "w", encoding="utf-8", newline="\n")

    n_names, row = 0, 0
    with opened("MRCONSO") as conso, opened("MRSTY") as types, opened("MRREL") as relations, opened("MRDEF") as defs:
        for number in range(1, options.concepts + 1):
            if number <= len(real):
                names, definition = real[number - 1]
                names = list(names)
            else:
                base, definition = real[rng.randrange(len(real))]
                names, definition = vary(base, words, rng), ""
            wanted = (options.names - n_names) / (options.concepts - number + 1)
            missing = wanted - len(names)
            n_new = int(missing) + (rng.random() < missing % 1) if missing > 0 else 0
            for _ in range(n_new):
                names.append(synonym(rng.choice(names[:2]), rng))
            names = list(dict.fromkeys(name for name in names if name))
            n_names += len(names)
            concept = f"C{number:07}"
            source = SOURCES[number % len(SOURCES)]
            for place, name in enumerate(names):
                row += 1
                rank, kind = ("P", "PF") if place == 0 else ("S", "VO")
                conso.write(
                    f"{concept}|ENG|{rank}|L{row}|{kind}|S{row}|{'Y' if place == 0 else 'N'}|A{row}||||{source}|"
                    f"{'PT' if place == 0 else 'SY'}|{number}|{name}|0|N||\n"
                )
            types.write(f"{concept}|{TYPES[number % len(TYPES)]}|||||\n")
            if number > 1:
                parent = f"C{rng.randrange(1, number):07}"
                relations.write(f"{concept}||CUI|PAR|{parent}||CUI||R{number}||{source}|{source}|||N||\n")
            if definition:
                defs.write(f"{concept}|A{row}|AT{number}||{source}|{definition}|N||\n")
    print(f"{options.concepts:,} concepts, {n_names:,} names: {options.out}")


if __name__ == "__main__":
    main()
