"""Compares `canonym eval` with neleval, the origin of the measures `strict` and `partial-maxmax`.

    python3 benches/peers/neleval.py --venv FOLDER --canonym target/debug/canonym --gold dev.pubtator.txt [--pred links.jsonl]

Installs neleval from PyPI in a virtual environment in FOLDER unless it exists. Without --pred, the predictions are those
of `canonym link` with the embedded knowledge base or that of --kb. Gold and predictions are converted to rows
`document, first, last, ids, score, NA` in characters, `last` inclusive. Several ids are joined to one sorted word, so that
both programs compare sets of ids (`canonym eval --ids exact`); annotations without a concept are left out.

Scores must agree to 1e-4. neleval finds overlaps by a sweep over sorted annotations that misses some nested and duplicate
ones, while canonym compares all pairs. So `partial-maxmax` is compared twice: on everything, where canonym may be higher,
and without annotations that share a character with an earlier one of the same ids. The exit status is 1 if other scores
differ.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import venv

LIMIT = 1e-4

# neleval 3.1.1 imports names that moved in Python 3.10.
RUN = """
import collections, collections.abc, sys
for name in ("Callable", "Iterable", "Mapping", "Sequence"):
    setattr(collections, name, getattr(collections.abc, name))
from neleval.__main__ import main
sys.exit(main())
"""


def python_with_neleval(folder):
    """The Python executable of a virtual environment with neleval."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if subprocess.run([python, "-c", "import importlib.metadata as m; m.version('neleval')"], capture_output=True).returncode:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "neleval==3.1.1"], check=True)
    return python


def ids_of(texts):
    """The ids joined to one word, normalised as in canonym; empty for no concept."""
    ids = set()
    for text in "|".join(texts).replace("+", "|").split("|"):
        text = text.strip()
        for prefix in ("MESH:", "OMIM:", "UMLS:"):
            if text.upper().startswith(prefix):
                text = text[len(prefix):].strip()
                break
        if text and text != "-1" and not text.startswith("NIL") and text.lower() != "cui-less":
            ids.add(text)
    return "|".join(sorted(ids))


def read_pubtator(path):
    """Rows `(document, first, last, ids)`."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) >= 6 and fields[1].isdigit() and fields[2].isdigit():
                rows.append((fields[0], int(fields[1]), int(fields[2]) - 1, ids_of([fields[5]])))
    return [row for row in rows if row[3]]


def read_jsonl(path):
    """Rows of the output of `canonym link`; discontinuous mentions are left out and counted."""
    rows, n_gaps = [], 0
    with open(path, encoding="utf-8") as file:
        for document in map(json.loads, file):
            for one in document["annotations"]:
                candidates = one.get("candidates") or []
                ids = "" if one.get("nil") else ids_of([candidates[0]["id"]] if candidates else one.get("ids", []))
                if len(one["spans"]) > 1:
                    n_gaps += 1
                elif ids:
                    (start, end), = one["spans"]
                    rows.append((str(document["id"]), start, end - 1, ids))
    return rows, n_gaps


def without_nesting(rows):
    """Drops rows that overlap an earlier one, or a longer one with the same start, of the same document and ids."""
    kept = {}
    for document, first, last, ids in sorted(rows, key=lambda row: (row[0], row[3], row[1], -row[2])):
        others = kept.setdefault((document, ids), [])
        if not others or others[-1][2] < first:
            others.append((document, first, last, ids))
    return sorted(row for others in kept.values() for row in others)


def write_rows(rows, path):
    with open(path, "w", encoding="utf-8") as file:
        for document, first, last, ids in rows:
            file.write(f"{document}\t{first}\t{last}\t{ids}\t1.0\tNA\n")


def write_jsonl(documents, rows, path):
    """Writes the rows as documents without text, which canonym scores by offsets alone."""
    by_document = {document: [] for document in documents}
    for document, first, last, ids in rows:
        by_document[document].append({"spans": [[first, last + 1]], "text": "x" * (last + 1 - first), "ids": [ids]})
    n_letters = 1 + max((row[2] for row in rows), default=0)
    with open(path, "w", encoding="utf-8") as file:
        for document, annotations in by_document.items():
            annotations.sort(key=lambda one: one["spans"])
            file.write(json.dumps({"id": document, "text": "x" * n_letters, "annotations": annotations}) + "\n")


def judge(python, canonym, folder, label, documents, gold, pred):
    """Scores of both programs: `{measure: (ours, theirs)}`, each `[precision, recall, F1]`."""
    files = {}
    for side, rows in (("gold", gold), ("pred", pred)):
        files[side] = (folder / f"{label}.{side}.tsv", folder / f"{label}.{side}.jsonl")
        write_rows(rows, files[side][0])
        write_jsonl(documents, rows, files[side][1])
    names = {"strict": "strong_all_match", "partial-maxmax": "overlap-maxmax::span+kbid"}
    measures = [word for name in names.values() for word in ("-m", name)]
    command = [python, "-W", "ignore", "-c", RUN, "evaluate", *measures, "-f", "json", "-g", files["gold"][0], files["pred"][0]]
    theirs = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    command = [canonym, "--quiet", "eval", "--gold", files["gold"][1], "--pred", files["pred"][1], "--format", "jsonl",
               "--ids", "exact", "--match", ",".join(names), "--resamples", "0", "--json"]
    ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["metrics"]
    found = {}
    for name, other in names.items():
        their = [theirs[other][key] for key in ("precision", "recall", "fscore")]
        found[name] = ([ours[name][key] for key in ("precision", "recall", "f1")], their)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--venv", type=pathlib.Path, required=True, help="folder of the virtual environment")
    parser.add_argument("--canonym", default="target/debug/canonym", help="the program")
    parser.add_argument("--gold", type=pathlib.Path, required=True, help="gold in PubTator")
    parser.add_argument("--pred", type=pathlib.Path, help="predictions as canonym links them, in JSON lines")
    parser.add_argument("--kb", help="the knowledge base of the predictions that are made here")
    args = parser.parse_args()
    python = python_with_neleval(args.venv.resolve())
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        pred_path = args.pred or folder / "links.jsonl"
        if not args.pred:
            kb = ["--kb", args.kb] if args.kb else []
            with open(pred_path, "w", encoding="utf-8") as file:
                subprocess.run([args.canonym, "--quiet", "link", args.gold, *kb, "--to", "jsonl"], check=True, stdout=file)
        gold = read_pubtator(args.gold)
        pred, n_gaps = read_jsonl(pred_path)
        documents = sorted({row[0] for row in gold} | {row[0] for row in pred})
        print(f"{len(documents)} documents, {len(gold)} gold, {len(pred)} predicted, {n_gaps} predicted with gaps left out")
        flat = [without_nesting(rows) for rows in (gold, pred)]
        print(f"without nesting {len(flat[0])} gold, {len(flat[1])} predicted")
        for label, (left, right) in (("everything", (gold, pred)), ("without nesting", flat)):
            scores = judge(python, args.canonym, folder, label.replace(" ", "-"), documents, left, right)
            for measure, (ours, theirs) in scores.items():
                distance = max(abs(a - b) for a, b in zip(ours, theirs))
                may_differ = label == "everything" and measure == "partial-maxmax"
                higher = all(a >= b - LIMIT for a, b in zip(ours, theirs))
                agree = distance <= LIMIT or may_differ and higher
                failed |= not agree
                verdict = "agree" if distance <= LIMIT else "higher, as it may be" if agree else "DIFFER"
                shown = ["  ".join(f"{value:.6f}" for value in values) for values in (ours, theirs)]
                print(f"{label:<16} {measure:<15} canonym {shown[0]}   neleval {shown[1]}   {verdict}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
