#!/usr/bin/env python3
"""Measures linking in everyday text: notes, lay questions, news, abstracts, methods, case reports.

    make bench-everyday
    benches/everyday/bench.py --binary target/release/canonym --report experiments/reports/everyday.json
    benches/everyday/bench.py --texts experiments/everyday/dev       the development texts

benches/everyday/README.md describes the texts and the scoring. The models default and lexical link to the starter and,
if CANONYM_DATA or ../shared/data has it, to MeSH 2019. Standard library only.
"""

import collections
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import linking

# Maximum sum of the differences between the boundaries of a correct link and of the mention, in characters.
SLACK = 12
N_BINS = 10
CONFIDENT = 0.9


def read(folder):
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        raise SystemExit(f"{folder} holds no texts")
    return [linking.parse(path.stem, path.read_text(encoding="utf-8")) for path in paths]


def fits(link, mention):
    """Whether the span of a link equals that of the mention, up to SLACK, or contains it."""
    apart = abs(link.start - mention.start) + abs(link.end - mention.end)
    return apart <= SLACK or (link.start <= mention.start and mention.end <= link.end)


def score(document, annotations, ids):
    """Outcomes of the mentions and links of one document; `ids` are those of the terminology."""
    links = [annotation for annotation in annotations if annotation.id]
    unlinked = [annotation for annotation in annotations if not annotation.id]
    outcomes, right, settled, marked = [], set(), set(), set()
    for mention in document.mentions:
        known = set(mention.ids) & ids
        over = [at for at, link in enumerate(links) if link.overlaps(mention.start, mention.end)]
        marked.update(over)
        good = [at for at in over if links[at].id in known and fits(links[at], mention)]
        right.update(good)
        if good:
            settled.update(at for at in over if links[at].within(mention.start, mention.end))
        outcome = "right" if good else "wrong" if over else "missed"
        outcomes.append((mention, outcome if known else "absent, linked" if over else "absent"))
    return {
        "outcomes": outcomes,
        # Score, whether the link is correct, whether it overlaps a mention; links nested in a correctly linked mention are left out.
        "links": [(link.score, at in right, at in marked) for at, link in enumerate(links)
                  if at in right or at not in settled],
        "unlinked": [any(one.overlaps(of.start, of.end) for of in document.mentions) for one in unlinked],
    }


def calibration_error(links):
    """Expected calibration error of the scores, in N_BINS bins of equal width."""
    bins = collections.defaultdict(list)
    for value, right, _ in links:
        bins[min(int(value * N_BINS), N_BINS - 1)].append((value, right))
    return sum(abs(sum(value - right for value, right in one)) for one in bins.values()) / len(links) if links else 0.0


def shares(outcomes):
    """Counts of right, wrong and missed mentions, among those whose concept the terminology has."""
    counts = collections.Counter(outcome for _, outcome in outcomes)
    n = counts["right"] + counts["wrong"] + counts["missed"]
    return {"n": n, "right": counts["right"], "wrong": counts["wrong"], "missed": counts["missed"]}


def measure(documents, annotations, ids):
    """All scores of one model with one terminology."""
    scored = [score(document, annotations[document.id], ids) for document in documents]
    outcomes = [outcome for one in scored for outcome in one["outcomes"]]
    links = [link for one in scored for link in one["links"]]
    unlinked = [overlaps for one in scored for overlaps in one["unlinked"]]
    absent = [outcome for _, outcome in outcomes if outcome.startswith("absent")]
    confident = [right for value, right, _ in links if value > CONFIDENT]
    by_category, by_kind = collections.defaultdict(list), collections.defaultdict(list)
    for document, one in zip(documents, scored):
        by_kind[document.id.split("-")[0]] += one["outcomes"]
        for mention, outcome in one["outcomes"]:
            by_category[mention.category].append((mention, outcome))
    pairs = [(found["right"], found["n"]) for found in (shares(one["outcomes"]) for one in scored)]
    return {
        **shares(outcomes),
        "right_interval": linking.interval(pairs, linking.seeded("everyday")),
        "absent": len(absent), "absent_linked": absent.count("absent, linked"),
        "links": len(links), "links_unmarked": sum(not marked for _, _, marked in links),
        "unlinked": len(unlinked), "unlinked_marked": sum(unlinked),
        "calibration_error": calibration_error(links),
        "calibration_error_marked": calibration_error([link for link in links if link[2]]),
        "confident": len(confident), "confident_wrong": confident.count(False),
        "by_category": {category: shares(of) for category, of in sorted(by_category.items())},
        "by_kind": {kind: shares(of) for kind, of in sorted(by_kind.items())},
    }


def errors(documents, annotations, ids):
    """One line per mention that is not right, and per link that overlaps no mention."""
    for document in documents:
        links = [link for link in annotations[document.id] if link.id]
        for mention, outcome in score(document, annotations[document.id], ids)["outcomes"]:
            if outcome in ("wrong", "missed", "absent, linked"):
                over = [link for link in links if link.overlaps(mention.start, mention.end)]
                yield document, outcome, mention, over
        for link in links:
            if not any(link.overlaps(mention.start, mention.end) for mention in document.mentions):
                yield document, "unmarked", link, [link]


def print_errors(*of):
    for document, outcome, place, links in errors(*of):
        said = "; ".join(f"{document.text[link.start:link.end]!r} {link.id} {link.score:.2f}" for link in links)
        print(f"{document.id}\t{outcome}\t{document.text[place.start:place.end]!r}\t{said}")


def summary_row(terminology, model, found):
    low, high = found["right_interval"]
    n = found["n"]
    return [
        terminology, model, n, f"{linking.percent(found['right'], n)} ({100 * low:.1f}–{100 * high:.1f})",
        linking.percent(found["wrong"], n), linking.percent(found["missed"], n),
        f"{found['absent_linked']} of {found['absent']}", found["links_unmarked"],
        f"{found['unlinked_marked']} of {found['unlinked']}",
        f"{found['calibration_error']:.3f}", f"{found['calibration_error_marked']:.3f}",
        f"{linking.percent(found['confident_wrong'], found['confident'])} of {found['confident']}",
    ]


def breakdown(part, figures):
    """Table of right / wrong / missed by category or kind, with one column per terminology and model."""
    keys = sorted({key for _, _, found in figures for key in found[part]})
    head = [part.removeprefix("by_"), *(f"{terminology}, {model}" for terminology, model, _ in figures)]
    rows = []
    for key in keys:
        cells = []
        for _, _, found in figures:
            of = found[part].get(key, shares([]))
            each = " / ".join(linking.percent(of[outcome], of["n"]) for outcome in ("right", "wrong", "missed"))
            cells.append(f"{each} of {of['n']}" if of["n"] else "–")
        rows.append([key, *cells])
    return linking.table(head, rows)


def main():
    parser = linking.options(__doc__)
    parser.add_argument("--texts", type=Path, default=HERE / "texts", help="the folder of annotated texts")
    parser.add_argument("--errors", action="store_true", help="also print every mention that is not correct")
    arguments = parser.parse_args()
    tested = linking.program(arguments)
    documents = read(arguments.texts)
    figures = []
    for kb, title in tested.terminologies():
        ids = tested.ids(kb)
        for model in linking.MODELS:
            annotations = tested.link(kb, model, [(document.id, document.text) for document in documents])
            figures.append((title, model, measure(documents, annotations, ids)))
            if arguments.errors:
                print(f"\n{title}, {model}\n")
                print_errors(documents, annotations, ids)
    print(f"{len(documents)} texts, {sum(len(document.mentions) for document in documents)} annotated mentions\n")
    head = ["terminology", "model", "mentions", "correct, % (95 % CI)", "wrong, %", "missed, %", "absent mentions linked",
            "links outside of annotations", "unlinked mentions that are annotated", "ECE", "ECE on annotated mentions",
            "wrong among links scored above 0.9, %"]
    print(linking.table(head, [summary_row(*figure) for figure in figures]))
    print("\nCorrect / wrong / missed, %:\n")
    print(breakdown("by_category", figures))
    print()
    print(breakdown("by_kind", figures))
    linking.write_report(arguments, tested, {
        "texts": len(documents), "seed": linking.SEED,
        "runs": [{"terminology": title, "model": model, **found} for title, model, found in figures],
    })


if __name__ == "__main__":
    main()
