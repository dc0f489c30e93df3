#!/usr/bin/env python3
"""Adds the words of `sense-contexts.tsv` as cues to the senses of `crates/canonym-core/assets/senses.tsv`.

    python3 experiments/everyday/context_cues.py
    UPDATE_EXPECT=1 cargo test -p canonym-core --lib word_topics

`sense-contexts.tsv` has made-up texts in which a form of the inventory stands undefined in one of its senses: form, first
long form of the sense (`-` if it is no concept), and the text with the form in double brackets. A word becomes a cue of
the sense if it is a cue of some sense already and does not occur in the texts of another sense of the form. Running the
script again changes nothing. Standard library only.
"""

import collections
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
SENSES = HERE.parent.parent / "crates/canonym-core/assets/senses.tsv"
# Words of every kind of text.
COMMON = set(
    """about across again against all along also among and any are around away back bad been before began begin behind
    being best better between beyond big both but call called calls came can come comes could day days did does doing done
    down during each eight even evening every few find first five for found four from gave get gets give given goes going
    gone good got had has have her here high his hour hours how into its just keep kept large last left let like little
    long look looks low made make makes many may might minutes month months more morning most much must near need needs
    new next night nine not off old one only onto other our out over own per put right said same saw says see seen set
    seven shall she short should show showed shown shows since six small some start started still stop stopped such take
    taken takes tell ten than that the their them then there these they this those three through time times today told
    tomorrow too took two under until upon use used uses using very via want wants was week weeks well went were what when
    where which while who why will with within without work works working would year years yesterday you your""".split()
)


def words_of(text):
    text = re.sub(r"\[\[.*?\]\]", " ", text)
    return [word.lower() for word in re.findall(r"[A-Za-z][a-z]{3,}", text) if word.lower() not in COMMON]


def main():
    rows = [line.split("\t") for line in SENSES.read_text(encoding="utf-8").splitlines()]
    cues = {word for row in rows for cue in row[4].split("|") for word in cue.lower().split()}
    words = collections.defaultdict(dict)
    for line in (HERE / "sense-contexts.tsv").read_text(encoding="utf-8").splitlines():
        form, long_form, text = line.split("\t")
        words[form].setdefault(long_form, {}).update(dict.fromkeys(word for word in words_of(text) if word != form.lower()))
    n_added = 0
    for row in rows:
        form, long_form = row[0], row[1].split("|")[0]
        others = {word for of, found in words[form].items() if of != long_form for word in found}
        known = row[4].lower().split("|")
        new = [word for word in words[form].get(long_form, ()) if word in cues and word not in known and word not in others]
        n_added += len(new)
        row[4] = "|".join(filter(None, [row[4], *new]))
    SENSES.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{n_added} cues added")


main()
