#!/usr/bin/env python3
"""Measures how often a name that the terminology lacks is linked to one that merely looks similar.

    make bench-lookalikes
    benches/lookalikes.py --binary target/release/canonym --report experiments/reports/lookalikes.json

The names are in benches/lookalikes.tsv (kind, queried name, look-alike, its id), made by benches/make_lookalikes.py. Each
is linked alone (`canonym map`), where an answer with a score of at least 0.3 counts as a link, and in a sentence
(`canonym link`), where any overlapping link counts. Every link is wrong. Sixty misspellings (benches/misspellings.tsv:
misspelling, correct id), which should be linked, serve as a control. Tested with the starter and with MeSH without the
queried concepts (CANONYM_DATA, else ../shared/data). Names that a terminology has, wholly or in part, are left out for
it. Standard library only.
"""

import collections

import linking

HERE = linking.ROOT / "benches"
LEAST_SCORE = 0.3
# `CD36 antigens` and `smad7 protein` mean the same as CD36 and SMAD7.
KINDS = ("antigen", "antigens", "chemokine", "protein", "proteins")
SENTENCES = {
    "drug": "She has been taking {} since the spring.",
    "disease": "His father was found to have {} ten years ago.",
    "organism": "The second sample grew {} after four days.",
    "gene": "The level of {} was higher in the first group.",
    "misspelling": "The note of the next day mentions {} and nothing else.",
}


def rows(name):
    with open(HERE / name, encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split("\t")) for line in file]


def known(tested, kb):
    """All names of a terminology, as tuples of words."""
    return {linking.words_of(name) for concept in tested.concepts(kb) for name in linking.names_of(concept)}


def has_part(names, name):
    """Whether a terminology has the name, a sequence of its words, its plural, or the name with a word of KINDS."""
    words = linking.words_of(name)
    kinds = [words[:-1] + (words[-1] + "s",), *(words + (kind,) for kind in KINDS), *((kind,) + words for kind in KINDS)]
    parts = [words[first:last] for first in range(len(words)) for last in range(first + 1, len(words) + 1)]
    return any(part in names for part in parts + kinds)


def mesh_without(tested, asked):
    """MeSH without the concepts that have one of the queried names."""
    keys = {linking.words_of(name) for name in asked}
    tested.make_folder()
    source = tested.folder / "mesh-without-lookalikes.tsv"
    with open(linking.DATA / linking.MESH, encoding="utf-8") as whole, open(source, "w", encoding="utf-8") as rest:
        for line in whole:
            _, name, synonyms, *_ = line.rstrip("\n").split("\t") + [""]
            if not keys & {linking.words_of(one) for one in [name, *synonyms.split("|")]}:
                rest.write(line)
    # The content depends on the list of names, so do not reuse an older file.
    (tested.folder / "mesh-without-lookalikes.kb").unlink(missing_ok=True)
    return tested.build("mesh-without-lookalikes", source, "--format", "tsv", "--prefix", "MESH")


def measure(tested, kb, model, asked):
    """For each queried (kind, name): the answer of `map` if its score suffices, and the overlapping links."""
    mapped = tested.map(kb, model, [name for _, name in asked])
    texts = [(str(at), SENTENCES[kind].format(name)) for at, (kind, name) in enumerate(asked)]
    annotations = tested.link(kb, model, texts)
    found = []
    for at, (kind, name) in enumerate(asked):
        concept, score, unlinked = mapped[at]
        start = SENTENCES[kind].index("{}")
        over = [link for link in annotations[str(at)] if link.id and link.overlaps(start, start + len(name))]
        found.append((None if unlinked or score < LEAST_SCORE else concept, over))
    return found


def main():
    parser = linking.options(__doc__)
    parser.add_argument("--errors", action="store_true", help="also print every name that is linked")
    arguments = parser.parse_args()
    tested = linking.program(arguments)
    lookalikes, misspellings = rows("lookalikes.tsv"), rows("misspellings.tsv")
    terminologies = [("starter", "starter")]
    if (linking.DATA / linking.MESH).exists():
        terminologies.append((mesh_without(tested, [name for _, name, *_ in lookalikes]), "MeSH 2019 without them"))
    else:
        linking.say(f"{linking.DATA / linking.MESH} is absent; set CANONYM_DATA to measure with MeSH, too")
    figures = []
    for kb, title in terminologies:
        names, ids = known(tested, kb), tested.ids(kb)
        asked = [(kind, name) for kind, name, *_ in lookalikes if not has_part(names, name)]
        meant = [(name, concept) for name, concept in misspellings
                 if concept in ids and linking.words_of(name) not in names]
        linking.say(f"{title}: {len(lookalikes) - len(asked)} of {len(lookalikes)} names left out, which it has in part")
        for model in linking.MODELS:
            found = measure(tested, kb, model, asked)
            typed = measure(tested, kb, model, [("misspelling", name) for name, _ in meant])
            counts = collections.defaultdict(lambda: {"n": 0, "map": 0, "link": 0})
            for (kind, name), (concept, over) in zip(asked, found):
                for of in (counts[kind], counts["all"]):
                    of["n"] += 1
                    of["map"] += concept is not None
                    of["link"] += bool(over)
                if arguments.errors and (concept or over):
                    links = " ".join(f"{link.id} {link.score:.2f}" for link in over)
                    print(f"{title}\t{model}\t{kind}\t{name}\tmap: {concept or '–'}\tlink: {links or '–'}")
            right = {
                "n": len(meant),
                "map": sum(concept == wanted for (concept, _), (_, wanted) in zip(typed, meant)),
                "link": sum(any(link.id == wanted for link in over) for (_, over), (_, wanted) in zip(typed, meant)),
            }
            figures.append({"terminology": title, "model": model, "linked": dict(counts), "misspellings_right": right})
    kinds = ["all", *dict.fromkeys(kind for kind, *_ in lookalikes)]
    head = ["terminology", "model", "command", *(f"{kind}, % linked" for kind in kinds), "misspellings, % correct"]
    lines = []
    for found in figures:
        for way in ("map", "link"):
            of, right = found["linked"], found["misspellings_right"]
            lines.append([
                found["terminology"], found["model"], way,
                *(f"{linking.percent(of[kind][way], of[kind]['n'])} of {of[kind]['n']}" for kind in kinds),
                f"{linking.percent(right[way], right['n'])} of {right['n']}",
            ])
    print(linking.table(head, lines))
    linking.write_report(arguments, tested, {"least_score_of_map": LEAST_SCORE, "runs": figures})


if __name__ == "__main__":
    main()
