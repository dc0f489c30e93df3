#!/usr/bin/env python3
"""Measures whether context disambiguates forms with several meanings, such as `cold` and `CA`.

    make bench-ambiguous
    benches/ambiguous.py --binary target/release/canonym --report experiments/reports/ambiguous.json
    benches/ambiguous.py --texts experiments/everyday/ambiguous-dev.txt      the development texts

benches/ambiguous.txt has made-up texts, one per line, with the form marked `[[form|ids]]`: MeSH ids separated by `/`, or
`-` if no concept is meant. If the terminology has one of the ids, the form is right if a link to it overlaps, wrong if
only other links do, and missed if none does. If it has none of the ids, no link is right and any link is wrong. Tested
with the starter and, if CANONYM_DATA or ../shared/data has it, MeSH 2019. Standard library only.
"""

import collections
from pathlib import Path

import linking

TEXTS = linking.ROOT / "benches" / "ambiguous.txt"


def read(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        linking.parse(f"{path.stem}-{number}", line)
        for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")
    ]


def outcome(mention, annotations, ids):
    """Whether the terminology has the meant concept, the outcome, and the links that overlap the form."""
    over = [link for link in annotations if link.id and link.overlaps(mention.start, mention.end)]
    known = set(mention.ids) & ids
    if not known:
        return False, "wrong" if over else "right", over
    if any(link.id in known for link in over):
        return True, "right", over
    return True, "wrong" if over else "missed", over


def forms_apart(outcomes):
    """Number of forms with several meanings whose texts are all right, and number of such forms."""
    by_form = collections.defaultdict(list)
    for document, mention, _, which, _ in outcomes:
        by_form[document.text[mention.start:mention.end].casefold()].append((mention.ids, which))
    several = [of for of in by_form.values() if len({ids for ids, _ in of}) > 1]
    return sum(all(which == "right" for _, which in of) for of in several), len(several)


def measure(documents, annotations, ids):
    outcomes = [
        (document, mention, *outcome(mention, annotations[document.id], ids))
        for document in documents for mention in document.mentions
    ]
    counts = {part: collections.Counter() for part in ("concept", "none")}
    for _, _, has, which, _ in outcomes:
        counts["concept" if has else "none"][which] += 1
    pairs = [(which == "right", 1) for _, _, _, which, _ in outcomes]
    right, several = forms_apart(outcomes)
    return outcomes, {
        "n": len(outcomes), "right": sum(right for right, _ in pairs),
        "right_interval": linking.interval(pairs, linking.seeded("ambiguous")),
        "concept": {"n": counts["concept"].total(), **counts["concept"]},
        "none": {"n": counts["none"].total(), **counts["none"]},
        "forms": several, "forms_right": right,
    }


def row(title, model, found):
    low, high = found["right_interval"]
    concept, none = found["concept"], found["none"]
    return [
        title, model, found["n"],
        f"{linking.percent(found['right'], found['n'])} ({100 * low:.1f}–{100 * high:.1f})", concept["n"],
        *(linking.percent(concept.get(which, 0), concept["n"]) for which in ("right", "wrong", "missed")), none["n"],
        *(linking.percent(none.get(which, 0), none["n"]) for which in ("right", "wrong")),
        f"{found['forms_right']} of {found['forms']}",
    ]


def main():
    parser = linking.options(__doc__)
    parser.add_argument("--texts", type=Path, default=TEXTS, help="the file of annotated texts")
    parser.add_argument("--errors", action="store_true", help="also print every text that is not correct")
    arguments = parser.parse_args()
    tested = linking.program(arguments)
    documents = read(arguments.texts)
    rows, runs = [], []
    for kb, title in tested.terminologies():
        ids = tested.ids(kb)
        for model in linking.MODELS:
            annotations = tested.link(kb, model, [(document.id, document.text) for document in documents])
            outcomes, found = measure(documents, annotations, ids)
            rows.append(row(title, model, found))
            runs.append({"terminology": title, "model": model, **found})
            for document, mention, _, which, over in outcomes:
                if arguments.errors and which != "right":
                    links = " ".join(f"{link.id} {link.score:.2f}" for link in over)
                    marked = f"{document.text[:mention.start]}[{document.text[mention.start:mention.end]}]"
                    print(f"{title}\t{model}\t{which}\t{'/'.join(mention.ids) or '-'}\t{links or '–'}\t{marked}"
                          f"{document.text[mention.end:]}")
    head = ["terminology", "model", "forms in text", "correct, % (95 % CI)", "sense has a concept", "correct, %", "wrong, %",
            "missed, %", "sense has none", "unlinked, %", "linked, %", "forms correct in all texts"]
    print(linking.table(head, rows))
    linking.write_report(arguments, tested, {"texts": len(documents), "seed": linking.SEED, "runs": runs})


if __name__ == "__main__":
    main()
