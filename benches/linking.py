"""Shared code of the linking benches: annotated texts, runs of canonym, compiled terminologies, tables and reports.

Used by benches/everyday/bench.py, benches/names.py, benches/lookalikes.py and benches/ambiguous.py. Compiled
terminologies are cached in runs/linking, in one folder per program under test; the folders of the two most recently used
programs are kept.
"""

import argparse
import datetime
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CANONYM_DATA", ROOT.parent / "shared" / "data")).resolve()
MADE = ROOT / "runs" / "linking"
MESH = "terminologies/mesh-descriptors-2019.tsv"

MODELS = ("default", "lexical")
SEED = 13
N_RESAMPLES = 1000
N_PROGRAMS_KEPT = 2

# `[[form|ids]]` or `[[form|category|ids]]`; ids are separated by `/`, and `-` means no id.
MARK = re.compile(r"\[\[([^\[\]|]+)\|(?:(\w+)\|)?([^\[\]|]*)\]\]")


@dataclass(frozen=True)
class Mention:
    """A gold mention: code points from `start` to `end`, and all correct ids."""

    start: int
    end: int
    category: str
    ids: tuple


@dataclass(frozen=True)
class Document:
    id: str
    text: str
    mentions: tuple


@dataclass(frozen=True)
class Link:
    """An annotation by canonym; `id` is None if the mention is unlinked."""

    spans: tuple
    id: str | None
    score: float

    @property
    def start(self):
        return self.spans[0][0]

    @property
    def end(self):
        return self.spans[-1][1]

    def overlaps(self, start, end):
        return any(first < end and start < last for first, last in self.spans)

    def within(self, start, end):
        return start <= self.start and self.end <= end


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse(name, marked):
    """Parses marked text into a document: the text without marks, and the mentions."""
    text, mentions, at = "", [], 0
    for mark in MARK.finditer(marked):
        text += marked[at:mark.start()]
        form, category, ids = mark[1], mark[2] or "", mark[3].strip()
        known = () if ids == "-" else tuple(ids.split("/"))
        mentions.append(Mention(len(text), len(text) + len(form), category, known))
        text += form
        at = mark.end()
    text += marked[at:]
    if "[[" in text or "]]" in text:
        raise SystemExit(f"{name}: a mark is not of the form [[form|ids]] or [[form|category|ids]]")
    return Document(name, text, tuple(mentions))


def words_of(name):
    """The words of a name in lower case, letters and digits only: equal for names that differ in case or punctuation."""
    return tuple(re.findall(r"[^\W_]+", name.casefold()))


class Program:
    """The canonym under test."""

    def __init__(self, binary):
        self.binary = str(binary)
        with open(self.binary, "rb") as file:
            self.fingerprint = hashlib.file_digest(file, "sha256").hexdigest()
        self.folder = MADE / self.fingerprint[:12]

    def run(self, *words, text=None):
        """Standard output of one call; exits with the error message if it fails."""
        done = subprocess.run([self.binary, "--quiet", *map(str, words)], input=text, encoding="utf-8",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise SystemExit(f"canonym {' '.join(map(str, words))} failed:\n{done.stderr}")
        return done.stdout

    def link(self, kb, model, texts):
        """Links of `texts` (pairs of id and text), by id."""
        lines = "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts)
        out = self.run("link", "--kb", kb, "--model", model, "--format", "jsonl", "--to", "jsonl", "-", text=lines)
        links = {}
        for line in out.splitlines():
            document = json.loads(line)
            links[document["id"]] = [link_of(annotation) for annotation in document["annotations"]]
        return links

    def map(self, kb, model, names):
        """First candidate of each of `names`: (id, score, unlinked); the id is None if there is no candidate."""
        out = self.run("map", "--kb", kb, "--model", model, "-", text="".join(f"{name}\n" for name in names))
        answers = [json.loads(line) for line in out.splitlines()]
        if len(answers) != len(names):
            raise SystemExit(f"canonym map gave {len(answers)} answers to {len(names)} names")
        return [
            (answer["candidates"][0]["id"], answer["candidates"][0]["score"], answer["nil"])
            if answer["candidates"] else (None, 0.0, True)
            for answer in answers
        ]

    def concepts(self, kb):
        """Concepts of a compiled terminology: JSON objects with `id`, `name`, and optionally `synonyms` and `types`."""
        words = [self.binary, "--quiet", "kb", "export", kb, "--to", "jsonl"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, encoding="utf-8") as export:
            for line in export.stdout:
                yield json.loads(line)
        if export.returncode != 0:
            raise SystemExit(f"canonym kb export {kb} failed")

    def ids(self, kb):
        """All ids of the concepts of a compiled terminology."""
        concepts = self.concepts(kb)
        return {known for concept in concepts for known in [concept["id"], *concept.get("alternative_ids", [])]}

    def build(self, name, source, *options):
        """Path of the compiled terminology of `source`, compiled on first use."""
        path = self.folder / f"{name}.kb"
        if not path.exists():
            self.make_folder()
            say(f"compile {name}")
            self.run("kb", "build", *options, source, "--out", path)
        return path

    def mesh(self):
        """MeSH with the names of the starter, and its title; plain MeSH if `kb build` cannot add them."""
        if "--with-starter" in self.run("kb", "build", "--help"):
            options = ["--format", "tsv", "--prefix", "MESH", "--with-starter"]
            return self.build("mesh-with-starter", DATA / MESH, *options), "MeSH 2019 with starter"
        say("this canonym has no `kb build --with-starter`: MeSH without the names of the starter")
        return self.build("mesh-descriptors-2019", DATA / MESH, "--format", "tsv", "--prefix", "MESH"), "MeSH 2019"

    def terminologies(self):
        """Path and title of the starter and, if the data are available, of MeSH."""
        found = [("starter", "starter")]
        if (DATA / MESH).exists():
            found.append(self.mesh())
        else:
            say(f"{DATA / MESH} is absent; set CANONYM_DATA to measure with MeSH, too")
        return found

    def make_folder(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        os.utime(self.folder)
        folders = sorted((path for path in MADE.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
        for old in folders[:-N_PROGRAMS_KEPT]:
            shutil.rmtree(old)


def names_of(concept):
    """All names of an exported concept, the preferred one first."""
    synonyms = concept.get("synonyms", [])
    return [concept["name"], *(name if isinstance(name, str) else name["text"] for name in synonyms)]


def link_of(annotation):
    candidates = annotation.get("candidates", [])
    linked = candidates and not annotation["nil"]
    spans = tuple(map(tuple, annotation["spans"]))
    return Link(spans, candidates[0]["id"] if linked else None, annotation["score"])


def options(doc, report=None):
    """Parser of the common options; `doc` is the docstring of the script."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--binary", default=ROOT / "target" / "release" / "canonym", help="the program to measure")
    parser.add_argument("--report", type=Path, default=report, help="where to write the figures as JSON")
    return parser


def program(arguments):
    """The program given by the arguments."""
    if not Path(arguments.binary).is_file():
        raise SystemExit(f"{arguments.binary} is absent; run `cargo build --release`, or name one by --binary")
    return Program(Path(arguments.binary).resolve())


def write_report(arguments, tested, figures):
    """If a report is requested, writes the figures with date and environment."""
    if arguments.report is None:
        return
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True,
                            check=False)
    about = {
        "date": datetime.date.today().isoformat(), "commit": commit.stdout.strip(),
        "version": tested.run("--version").strip(), "program": tested.fingerprint,
    }
    arguments.report.parent.mkdir(parents=True, exist_ok=True)
    arguments.report.write_text(json.dumps({"about": about, **figures}, indent=2, ensure_ascii=False) + "\n",
                                encoding="utf-8")


def table(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "–"


def interval(pairs, rng):
    """95 % bootstrap interval of the ratio of sums of `pairs` (part, whole)."""
    ratios = []
    for _ in range(N_RESAMPLES):
        drawn = rng.choices(pairs, k=len(pairs))
        whole = sum(pair[1] for pair in drawn)
        ratios.append(sum(pair[0] for pair in drawn) / whole if whole else 0.0)
    ratios.sort()
    return ratios[int(0.025 * N_RESAMPLES)], ratios[int(0.975 * N_RESAMPLES) - 1]


def seeded(*names):
    """A random generator seeded by `names`, independent of earlier draws."""
    return random.Random(f"{SEED} {' '.join(names)}")
