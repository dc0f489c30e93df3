#!/usr/bin/env python3
"""Measures whether names of terminologies are linked in simple sentences, and mapped without context.

    make bench-names
    benches/names.py --binary target/release/canonym --report experiments/reports/names.json
    benches/names.py --synonyms --only MONDO MeSH

Up to 600 names are drawn with a fixed seed from each terminology and each type of the starter; with 600, a percentage is
accurate to four points. MeSH headings with one comma are put in natural word order, and half of the ordinary
capitalised words are written in lower case. A name is right if a link to its concept, or to another with the same name,
covers it in its sentence; wrong if only other links overlap it; else missed. For `map`, the first candidate counts.
Terminologies are read from CANONYM_DATA, else ../shared/data, and compiled once per program (runs/linking). Standard
library only.
"""

import collections
import re

import linking

N_NAMES = 600
OPEN = "terminologies/open"

# Title, file below the data folder, options of `kb build`.
TERMINOLOGIES = [
    ("MONDO", f"{OPEN}/mondo-2026-05.jsonl.zst", ["--format", "jsonl"]),
    ("HPO", f"{OPEN}/hp-2025-01-16.obo.zst", ["--format", "obo"]),
    ("DOID", "terminologies/doid-2016-09-01.obo", ["--format", "obo"]),
    ("UBERON", f"{OPEN}/uberon-2026-04.jsonl.zst", ["--format", "jsonl"]),
    ("CL", f"{OPEN}/cl-2026-03.jsonl.zst", ["--format", "jsonl"]),
    ("GO", f"{OPEN}/go-2022-07.jsonl.zst", ["--format", "jsonl"]),
    ("MeSH", linking.MESH, ["--format", "tsv", "--prefix", "MESH"]),
    ("ICD-10-CM", f"{OPEN}/icd10-cm-2022.jsonl.zst", ["--format", "jsonl"]),
    ("ChEBI", f"{OPEN}/chebi-2026-05.jsonl.zst", ["--format", "jsonl"]),
    ("human genes", f"{OPEN}/human-genes-2022-09.jsonl.zst", ["--format", "jsonl"]),
    ("NCBI taxa", f"{OPEN}/ncbitaxon-2025-09.jsonl.zst", ["--format", "jsonl"]),
    ("EFO", f"{OPEN}/efo-3.90.jsonl.zst", ["--format", "jsonl"]),
    ("Cellosaurus", f"{OPEN}/cellosaurus-55.jsonl.zst", ["--format", "jsonl"]),
]

# Sentences without other biomedical names.
CARRIERS = [
    "The second chapter deals with {} at some length.",
    "We asked the registry for all records on {}.",
    "Data on {} were collected over two years.",
    "So far there is little published about {}.",
    "In this group, {} was noted more often than expected.",
    "Earlier reports on {} gave mixed results.",
    "It remains unclear how {} changed over the years.",
    "Please add {} to the list before Monday.",
    "Two reviewers looked for {} in every file.",
    "Nobody had asked about {} before the meeting.",
    "The link with {} was weak but consistent.",
    "My sister wrote to me about {} and sent a photo.",
]

# Types whose names keep their capitals in running text.
PROPER = {"Organism", "Species", "Gene", "CellLine"}
ORDINARY = re.compile(r"[A-Z][a-z]{2,}")


def natural_order(concept_id, name):
    """The natural word order of inverted MeSH headings such as `Renal Insufficiency, Chronic`."""
    if concept_id.startswith("MESH:") and name.count(",") == 1 and ", " in name:
        last, first = name.split(", ")
        return f"{first} {last}"
    return name


def written(concept, name, rng):
    """A name as written in running text."""
    name = natural_order(concept["id"], name)
    in_lower_case = rng.random() < 0.5
    capitalised = [word for word in re.findall(r"[^\W\d_]+", name) if word != word.lower()]
    ordinary = all(ORDINARY.fullmatch(word) for word in capitalised)
    if in_lower_case and ordinary and not PROPER & set(concept.get("types", [])):
        return name.lower()
    return name


def groups(tested, kb, by_type, synonyms):
    """Title and pairs (concept, name) of each sampling group: all concepts, or one group per type."""
    found = collections.defaultdict(list)
    for concept in tested.concepts(kb):
        names = linking.names_of(concept)
        title = concept.get("types", ["no type"])[0] if by_type else ""
        slim = {"id": concept["id"], "types": concept.get("types", [])}
        found[title] += [(slim, name) for name in (names[1:] if synonyms else names[:1])]
    return sorted(found.items())


def answers(tested, kb, names):
    """For each of `names`, the concepts that have it, ignoring case and punctuation."""
    keys = {linking.words_of(name) for name in names}
    ids = collections.defaultdict(set)
    for concept in tested.concepts(kb):
        for name in linking.names_of(concept):
            for form in (name, natural_order(concept["id"], name)):
                key = linking.words_of(form)
                if key in keys:
                    ids[key].add(concept["id"])
    return ids


def draw(pool, title):
    """A sample of (concept id, name as written, sentence, start of the name)."""
    rng = linking.seeded("names", title)
    pool = sorted(pool, key=lambda pair: (pair[0]["id"], pair[1]))
    drawn = []
    for concept, name in rng.sample(pool, min(N_NAMES, len(pool))):
        carrier = rng.choice(CARRIERS)
        name = written(concept, name, rng)
        drawn.append((concept["id"], name, carrier.format(name), carrier.index("{}")))
    return drawn


def outcome(text, name, start, annotations, right):
    links = [link for link in annotations if link.id]
    end = start + len(name)
    # A link need not cover punctuation at the ends of a name.
    first = start + len(name) - len(name.lstrip("([{'\" -"))
    last = end - len(name) + len(name.rstrip(")]}'\" .,-+"))
    if any(link.id in right and link.start <= first and last <= link.end for link in links):
        return "right"
    return "wrong" if any(link.overlaps(start, end) for link in links) else "missed"


def measure(tested, kb, drawn, ids):
    """For each model, counts of outcomes in sentences and of correct first candidates."""
    found = {}
    right = [ids[linking.words_of(name)] | {concept} for concept, name, _, _ in drawn]
    for model in linking.MODELS:
        annotations = tested.link(kb, model, [(str(at), text) for at, (_, _, text, _) in enumerate(drawn)])
        outcomes = collections.Counter(
            outcome(text, name, start, annotations[str(at)], right[at])
            for at, (_, name, text, start) in enumerate(drawn)
        )
        mapped = tested.map(kb, model, [name for _, name, _, _ in drawn])
        found[model] = {
            **{which: outcomes[which] for which in ("right", "wrong", "missed")},
            "mapped": sum(candidate in of for (candidate, _, _), of in zip(mapped, right)),
        }
    return found


def runs(tested, arguments):
    """Title, compiled terminology and whether to group by type, for each requested terminology that is available."""
    wanted = arguments.only
    if not wanted or "starter" in wanted:
        yield "starter", "starter", True
    for title, source, options in TERMINOLOGIES:
        if wanted and title not in wanted:
            continue
        if not (linking.DATA / source).exists():
            linking.say(f"{linking.DATA / source} is absent; {title} is skipped")
            continue
        name = source.rsplit("/", 1)[1].split(".")[0]
        yield title, tested.build(name, linking.DATA / source, *options), False


def row(found):
    n = found["n"]
    cells = [found["title"], found["names"], f"{n:,}"]
    for model in linking.MODELS:
        cells.append(" / ".join(linking.percent(found[model][which], n) for which in ("right", "wrong", "missed")))
    return cells + [linking.percent(found[model]["mapped"], n) for model in linking.MODELS]


def main():
    parser = linking.options(__doc__)
    parser.add_argument("--synonyms", action="store_true", help="also measure synonyms")
    titles = ["starter", *(title for title, _, _ in TERMINOLOGIES)]
    parser.add_argument("--only", nargs="+", choices=titles, help="only these terminologies")
    arguments = parser.parse_args()
    tested = linking.program(arguments)
    figures = []
    for title, kb, by_type in runs(tested, arguments):
        for names in ["preferred", "synonym"] if arguments.synonyms else ["preferred"]:
            linking.say(f"{title}, {names} names")
            drawn = [
                (f"{title}, {group}" if group else title, draw(pool, f"{title} {group} {names}"))
                for group, pool in groups(tested, kb, by_type, names == "synonym") if pool
            ]
            ids = answers(tested, kb, [name for _, sample in drawn for _, name, _, _ in sample])
            for group, sample in drawn:
                figures.append({"title": group, "names": names, "n": len(sample), **measure(tested, kb, sample, ids)})
    head = ["terminology", "names", "n", *(f"{model}: correct / wrong / missed, %" for model in linking.MODELS),
            *(f"`map`, {model}: accuracy@1" for model in linking.MODELS)]
    print(linking.table(head, [row(found) for found in figures]))
    linking.write_report(arguments, tested, {"names": N_NAMES, "seed": linking.SEED, "runs": figures})


if __name__ == "__main__":
    main()
