"""Reads files in the format of BioSyn and scores answers by its protocol. Standard library only."""

import random
import time


def ids_of(joined):
    """The ids of a name as compared in canonym's evaluation: split at `|` and `+`, without prefixes and spaces."""
    return frozenset(part.split(":")[-1].strip() for part in joined.replace("+", "|").split("|"))


def read_dictionary(path):
    """Id sets and names of a dictionary, in order."""
    ids, names = [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            joined, name = line.rstrip("\n").split("||", 1)
            ids.append(ids_of(joined))
            names.append(name)
    return ids, names


def read_queries(path):
    """The parts of each mention (several if it is composite) and its ids."""
    queries = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("||")
            queries.append((fields[-2].split("|"), ids_of(fields[-1])))
    return queries


def sample(queries, n):
    """A fixed sample of `n` queries."""
    return random.Random(13).sample(queries, min(n, len(queries)))


def accuracy(queries, answers):
    """Fraction of mentions for which the answer to every part shares an id with gold.

    `answers` maps each part to the ids of its first answer.
    """
    right = sum(all(answers[part] & gold for part in parts) for parts, gold in queries)
    return right / len(queries)


def judge(name, queries, answer):
    """Times `answer` on the distinct parts of `queries`; reports accuracy and names per second."""
    parts = sorted({part for parts, _ in queries for part in parts})
    started = time.perf_counter()
    answers = dict(zip(parts, answer(parts)))
    seconds = time.perf_counter() - started
    return {"system": name, "accuracy": accuracy(queries, answers), "n_queries": len(queries),
            "n_names": len(parts), "names_per_second": len(parts) / seconds}
