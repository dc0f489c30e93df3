#!/usr/bin/env python3
"""Counts abbreviation definitions in real texts: short form, long form, number of documents.

    experiments/senses_counted.py ../shared/data runs/senses-counted.tsv

Reads only texts, no annotations: PubMed abstracts and the training sets of corpora. Definitions are found with the
algorithm of Schwartz and Hearst (2003), "A simple algorithm for identifying abbreviation definitions in biomedical text":
a short form in brackets after its long form, or a long form in brackets after its short form.

Lines are sorted by descending count. Long forms that differ only in case, hyphens or the plural of their last word are
merged; the most frequent spelling is written, in the singular if it occurs. A document in several corpora counts once.
"""

import argparse
import collections
import glob
import json
import re

# Text lines of PubTator files: id, t or a, and the text, separated by pipes.
PUBTATOR = (
    "bc5cdr/train.pubtator.txt",
    "ncbi-disease/train.pubtator.txt",
    "medmentions-st21pv/train.pubtator.txt",
    "other-corpora/*_Train*.pubtator.txt",
)

JSON_LINES = (
    "formats/pubmed-abstracts-1000.jsonl",
    # The files for UBERON and CL contain the same articles.
    "craft/uberon.train.jsonl",
)

# A BioID document id is the id of the article plus four digits for figure and panel.
CAPTION = re.compile(r"\d{10,}")

SENTENCE_END = re.compile(r"(?<=[a-z0-9)\]][.?!])\s+(?=[A-Z])|\n")
# Innermost brackets.
BRACKET = re.compile(r"\(([^()]*)\)")


def documents(root):
    """Yields each text with its document id."""
    for name in JSON_LINES:
        with open(f"{root}/{name}", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                yield row["id"], row["text"]
    for pattern in PUBTATOR:
        for path in sorted(glob.glob(f"{root}/{pattern}")):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    fields = line.rstrip("\n").split("|", 2)
                    if len(fields) == 3 and fields[1] in ("t", "a"):
                        document = fields[0]
                        yield document[:-4] if CAPTION.fullmatch(document) else document, fields[2]


def untokenised(text):
    """Removes the spaces that tokenised corpora have inside brackets and around hyphens and commas."""
    text = re.sub(r"([(\[]) ", r"\1", text)
    text = re.sub(r" ([)\],;:])", r"\1", text)
    return re.sub(r"(?<=\w) ([-/]) (?=\w)", r"\1", text)


def is_short_form(text):
    """2 to 10 characters, at most two words, at least one letter, starting with a letter or digit."""
    return (2 <= len(text) <= 10 and len(text.split()) <= 2 and text[0].isalnum()
            and any(character.isalpha() for character in text))


def long_form(short, before):
    """The shortest suffix of `before` with the letters and digits of `short` in order, the first one at the start of a word.

    This is findBestLongForm of the paper: both are read from the right.
    """
    place = len(before)
    for index in range(len(short) - 1, -1, -1):
        character = short[index].lower()
        if not character.isalnum():
            continue
        place -= 1
        while place >= 0 and (before[place].lower() != character
                              or index == 0 and place > 0 and before[place - 1].isalnum()):
            place -= 1
        if place < 0:
            return None
    return before[before.rfind(" ", 0, place) + 1 if place else 0:]


def definition(short, before):
    """The short form and its long form at the end of `before`, or None."""
    short = short.rstrip(".")
    if not is_short_form(short):
        return None
    # Maximum number of words, as in the paper.
    n_most = min(len(short) + 5, 2 * len(short))
    words = before.split()[-n_most:]
    found = long_form(short, " ".join(words))
    if not found:
        return None
    found = found.strip(" ,;:.\"'[]")
    if len(found) <= len(short) or "(" in found or ")" in found:
        return None
    # A long form that contains its short form is not a definition.
    if short.lower() in found.lower().replace("-", " ").split():
        return None
    return short, found


def definitions(text):
    for sentence in SENTENCE_END.split(untokenised(text)):
        for match in BRACKET.finditer(sentence):
            before = sentence[:match.start()].rstrip()
            # "(SF; other)" and "(SF, other)" define SF.
            inside = re.split(r"[;,]\s", match.group(1).strip())[0].strip().strip("\"'")
            if not before or not inside:
                continue
            if len(inside.split()) <= 2 and len(inside) <= 10:
                found = definition(inside, before)
            else:
                # "SF (long form)": the word before the bracket is the short form, unless it is an ordinary word.
                short = before.split()[-1].strip("\"'")
                found = definition(short, inside) if any(letter.isupper() for letter in short) else None
            if found:
                yield found


def singular(text):
    if text.endswith("ies") and len(text) > 5:
        return text[:-3] + "y"
    if re.search(r"(?:ch|sh|ss|x|z)es$", text):
        return text[:-2]
    if text.endswith("s") and not re.search(r"(?:ss|us|is|as|os|ics|itis|sis)$", text):
        return text[:-1]
    return text


def normalised(text):
    """Key shared by all spellings of a long form."""
    text = re.sub(r"[-‐-―/]", " ", text.lower())
    return singular(" ".join(text.split()))


def spelling(spellings):
    """The preferred spelling: singular if it occurs, then the most frequent, then with most lower-case letters."""
    of = normalised(next(iter(spellings)))
    best = max(spellings, key=lambda one: (re.sub(r"[-‐-―/]", " ", one.lower()) == of, spellings[one],
                                           sum(letter.islower() for letter in one), one))
    return best


def count(root):
    """The documents that define each pair of forms, and the spellings of its long form."""
    pairs = collections.defaultdict(set)
    spellings = collections.defaultdict(collections.Counter)
    for document, text in documents(root):
        for short, long in definitions(text):
            pair = short, normalised(long)
            if document not in pairs[pair]:
                pairs[pair].add(document)
                spellings[pair][long] += 1
    return pairs, spellings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("root", help="the data folder")
    parser.add_argument("output", help="the table that is written")
    arguments = parser.parse_args()
    pairs, spellings = count(arguments.root)
    rows = [(short, spelling(spellings[short, long]), len(held)) for (short, long), held in pairs.items()]
    with open(arguments.output, "w", encoding="utf-8") as file:
        for short, long, number in sorted(rows, key=lambda row: (-row[2], row[0], row[1])):
            file.write(f"{short}\t{long}\t{number}\n")


if __name__ == "__main__":
    main()
