#!/usr/bin/env python3
"""Makes many documents of a few abstracts, for `bench.py`: the same number and seed give the same documents.

A document has the sentences of one abstract in order; some are replaced by sentences of other abstracts, and digits of numbers by others.

    vary.py --abstracts $CANONYM_DATA/formats/pubmed-abstracts-1000.jsonl --n 1000000 --out runs/spark/documents
"""

import argparse
import json
import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z(])")
NUMBER = re.compile(r"\d+")

# Share of the sentences that come from other abstracts.
REPLACED = 0.3


def abstracts(path):
    """The sentences of each abstract."""
    with open(path, encoding="utf-8") as lines:
        return [SENTENCE_END.split(json.loads(line)["text"]) for line in lines]


def documents(sentences, first, n, seed):
    """The texts of documents `first` to `first + n`; each depends on its number and the seed alone."""
    every = [sentence for abstract in sentences for sentence in abstract]
    for number in range(first, first + n):
        rng = random.Random(seed * 1_000_003 + number)
        chosen = sentences[number % len(sentences)]
        made = [rng.choice(every) if rng.random() < REPLACED else sentence for sentence in chosen]
        text = " ".join(made)
        # Another number of as many digits.
        yield NUMBER.sub(lambda found: "".join(rng.choice("123456789") for _ in found.group()), text)


def write(sentences, arguments):
    """Writes Parquet files for Spark, and the same as JSON lines for the program."""
    out, n = arguments.out, arguments.n
    out.mkdir(parents=True, exist_ok=True)
    for first in range(0, n, arguments.per_file):
        numbers = range(first, min(first + arguments.per_file, n))
        texts = list(documents(sentences, first, len(numbers), arguments.seed))
        name = f"{first:08}"
        columns = {"n": pa.array(numbers, pa.int64()), "text": texts}
        pa.parquet.write_table(pa.table(columns), out / f"{name}.parquet", compression="zstd")
        with open(out / f"{name}.jsonl", "w", encoding="utf-8") as lines:
            for number, text in zip(numbers, texts):
                lines.write(json.dumps({"id": str(number), "text": text}, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--abstracts", type=Path, required=True)
    parser.add_argument("--n", type=int, required=True)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--per-file", type=int, default=10_000, help="documents of a file, which is a task of Spark")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    write(abstracts(arguments.abstracts), arguments)


if __name__ == "__main__":
    main()
