#!/usr/bin/env python3
"""Measures speed, size and accuracy; writes docs/results.json and the tables of README.md and docs/results/.

    make bench                                   build and measure everything; about ten minutes on two cores
    benches/results.py --only speed              one part: speed, accuracy, peers
    benches/results.py --binary target/release/canonym

Real corpora and terminologies are read from CANONYM_DATA, else ../shared/data; without that folder, the script prints a
note and exits successfully. Generated files are in runs/bench. Standard library only; the peers need scikit-learn and
rapidfuzz and are skipped if these are not installed.
"""

import argparse
import datetime
import json
import os
import platform
import random
import shutil
import subprocess
import sys
from pathlib import Path

import process
import tables

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CANONYM_DATA", ROOT.parent / "shared" / "data")).resolve()
MADE = Path("runs/bench")
RESULTS = ROOT / "docs" / "results.json"

N_RUNS = 5
N_FOLD = 20
SEED = 13
N_SAMPLE = 500
# The example sentence of README.md.
SENTENCE = ("Two sisters with anaemia and chronic kidney disease (CKD) took ibuprofen for headaches; "
            "the CKD grew worse.")

MESH = "terminologies/mesh-descriptors-2019.tsv"
MEDIC = "terminologies/medic-2012-07-06.txt"
ABSTRACTS = "formats/pubmed-abstracts-1000.jsonl"
BIOSYN = ("ncbi-disease", "bc5cdr-disease")

# Name, format, options, source in the data folder or generated here.
KNOWLEDGE_BASES = [
    ("mesh", "tsv", ["--prefix", "MESH"], MESH),
    ("mesh-c-d-f03", "tsv", ["--prefix", "MESH"], "mesh-c-d-f03.tsv"),
    ("medic", "biosyn", [], MEDIC),
    ("uberon", "obo", [], "craft/UBERON.obo.zip"),
    ("cl", "obo", [], "craft/CL.obo.zip"),
    *((f"{corpus}-{part}", "biosyn", [], f"biosyn-{corpus}/{part}_dictionary.txt")
      for corpus in BIOSYN for part in ("dev", "train")),
]

# Title, gold, knowledge base.
RECOGNITION = [
    ("BC5CDR dev, MeSH trees C, D, F03", "bc5cdr/dev.pubtator.txt", "mesh-c-d-f03"),
    ("NCBI disease dev, MEDIC 2012", "ncbi-disease/dev.pubtator.txt", "medic"),
    ("CRAFT dev, UBERON", "craft/uberon.dev.jsonl", "uberon"),
    ("CRAFT dev, CL", "craft/cl.dev.jsonl", "cl"),
]


def say(text):
    print(text, file=sys.stderr, flush=True)


def made(name):
    return str(MADE / name)


def kb(name):
    return made(f"{name}.kb")


def source(path):
    """Path of a generated file, else of one in the data folder."""
    return made(path) if (MADE / path).exists() else str(DATA / path)


def typed(command):
    """A command as shown in docs/results.md: relative to the repository root, without local paths."""
    return process.shown(command).replace(str(DATA), "$CANONYM_DATA")


class Bench:
    """The program under test and its results."""

    def __init__(self, binary):
        self.binary = binary
        self.results = {}

    def command(self, *words):
        return [self.binary, "--quiet", *map(str, words)]

    def shown(self, *words):
        return typed(["canonym", *map(str, words)])

    def prepare(self):
        """Builds the knowledge bases and generates inputs that are not in the data folder."""
        MADE.mkdir(parents=True, exist_ok=True)
        with open(made("mesh-c-d-f03.tsv"), "wb") as out:
            subset = [sys.executable, "experiments/mesh_subset.py", str(DATA), "C", "D", "F03"]
            subprocess.run(subset, stdout=out, check=True)
        commands = []
        for name, source_format, options, path in KNOWLEDGE_BASES:
            words = ["kb", "build", "--format", source_format, source(path), *options, "--out", kb(name)]
            say(f"build {name}")
            process.run(self.command(*words))
            commands.append(self.shown(*words))
        abstracts = (DATA / ABSTRACTS).read_bytes()
        with open(made("abstracts-repeated.jsonl"), "wb") as out:
            for _ in range(N_FOLD):
                out.write(abstracts)
        write_lines(made("map-names.txt"), map_names())
        for corpus in BIOSYN:
            write_lines(made(f"{corpus}-queries.txt"), dev_queries(corpus))
        self.results["knowledge_bases"] = commands

    def speed(self):
        self.results["speed"] = {
            "compile": self.compile_speed(),
            "open": self.open_speed(),
            "start": self.start_speed(),
            "link": self.link_speed(),
            "default": self.default_speed(),
            "map": self.map_speed(),
        }
        self.results["sizes"] = {name: os.path.getsize(kb(name)) for name, *_ in KNOWLEDGE_BASES}
        self.results["sizes"]["binary"] = os.path.getsize(self.binary)

    def compile_speed(self):
        say("compile")
        words = ["kb", "build", "--format", "tsv", DATA / MESH, "--prefix", "MESH", "--out", kb("mesh")]
        [runs] = process.repeat(N_RUNS, lambda: process.run(self.command(*words)))
        return {"command": self.shown(*words), "seconds": process.seconds(runs), "peak": process.peak(runs)}

    def open_speed(self):
        """Time to open a knowledge base: in process, by a bench of the library, and with `kb info`."""
        say("open")
        bench = ["cargo", "bench", "-q", "-p", "canonym-core", "--bench", "open", "--"]
        opened = subprocess.run([*bench, os.path.abspath(kb("mesh"))], stdout=subprocess.PIPE, check=True, text=True)
        micros = json.loads(opened.stdout.splitlines()[-1])
        info = ["kb", "info", kb("mesh")]
        [runs] = process.repeat(N_RUNS, lambda: process.run(self.command(*info)))
        return {
            "command": typed([*bench, f"$PWD/{kb('mesh')}"]),
            "seconds": {key: value / 1e6 if key != "n" else value for key, value in micros.items()},
            "info_command": self.shown(*info), "info_seconds": process.seconds(runs), "peak": process.peak(runs),
        }

    def start_speed(self):
        say("start")
        words = ["link", "--text", SENTENCE]
        lexical = [*words, "--model", "lexical"]
        runs, of_lexical = process.repeat(
            4 * N_RUNS + 1, lambda: process.run(self.command(*words)), lambda: process.run(self.command(*lexical)))
        table = subprocess.run(self.command(*words, "--to", "table"), stdout=subprocess.PIPE, check=True, text=True)
        self.results["example"] = table.stdout.rstrip()
        return {"command": self.shown(*words), "seconds": process.seconds(runs), "peak": process.peak(runs),
                "lexical_seconds": process.seconds(of_lexical)}

    def link_speed(self):
        say("link")
        once, repeated = str(DATA / ABSTRACTS), made("abstracts-repeated.jsonl")
        n = sum(1 for _ in open(once, "rb"))

        def link(path, threads, out):
            words = ["link", "--model", "lexical", "--kb", kb("mesh"), path, "--to", "jsonl", "--threads", threads]
            return process.run(self.command(*words), made(out))

        runs = process.repeat(
            N_RUNS,
            lambda: link(once, 1, "link-1.jsonl"), lambda: link(once, 2, "link-2.jsonl"),
            lambda: link(repeated, 1, "link-repeated-1.jsonl"), lambda: link(repeated, 2, "link-repeated-2.jsonl"),
        )
        link(once, 4, "link-4.jsonl")
        same = [process.sha256(made(f"link-{threads}.jsonl")) for threads in (1, 2, 4)]
        same_repeated = [process.sha256(made(f"link-repeated-{threads}.jsonl")) for threads in (1, 2)]
        times = [process.seconds(of) for of in runs]
        return {
            "command": self.shown(
                "link", "--model", "lexical", "--kb", kb("mesh"), once, "--to", "jsonl", "--threads", "N"),
            "n_abstracts": n, "n_fold": N_FOLD,
            "once_1": times[0], "once_2": times[1], "repeated_1": times[2], "repeated_2": times[3],
            "rate_1": process.rate(N_FOLD * n, times[2]), "rate_2": process.rate(N_FOLD * n, times[3]),
            "rate_once_2": process.rate(n, times[1]),
            "scaling": times[2]["median"] / times[3]["median"],
            "same_output": len(set(same)) == 1 and len(set(same_repeated)) == 1,
            "peak_1": process.peak(runs[2]), "peak_2": process.peak(runs[3]),
        }

    def default_speed(self):
        """Speed of the default model; the first run computes the name vectors and is reported separately."""
        say("link with the default model")
        once = str(DATA / ABSTRACTS)
        n = sum(1 for _ in open(once, "rb"))
        cache = os.path.abspath(made("cache"))
        shutil.rmtree(cache, ignore_errors=True)
        os.environ["CANONYM_CACHE"] = cache

        def link(path, threads, out):
            words = ["link", "--kb", kb("mesh-c-d-f03"), path, "--to", "jsonl", "--threads", threads]
            return process.run(self.command(*words), made(out))

        first = link(once, 2, "default-first.jsonl")
        runs = process.repeat(
            3, lambda: link(once, 1, "default-1.jsonl"), lambda: link(once, 2, "default-2.jsonl"),
        )
        times = [process.seconds(of) for of in runs]
        same = [process.sha256(made(f"default-{which}.jsonl")) for which in ("first", 1, 2)]
        return {
            "command": self.shown("link", "--kb", kb("mesh-c-d-f03"), once, "--to", "jsonl", "--threads", "N"),
            "first": process.seconds([first]), "once_1": times[0], "once_2": times[1],
            "rate_1": process.rate(n, times[0]), "rate_2": process.rate(n, times[1]),
            "scaling": times[0]["median"] / times[1]["median"],
            "same_output": len(set(same)) == 1, "peak": process.peak(runs[1]),
        }

    def map_speed(self):
        say("map")
        names = made("map-names.txt")
        n = sum(1 for _ in open(names, "rb"))

        def mapped(threads, *model):
            words = ["map", "--kb", kb("medic"), names, "--threads", threads, *model]
            return process.run(self.command(*words), made(f"map-{threads}.jsonl"))

        [of_default] = process.repeat(3, lambda: mapped(1, "--model", "default"))
        runs = process.repeat(3, lambda: mapped(1), lambda: mapped(2))
        times = [process.seconds(of) for of in runs]
        return {
            "command": self.shown("map", "--kb", kb("medic"), names, "--threads", "N"), "n_names": n,
            "rate_1": process.rate(n, times[0]), "rate_2": process.rate(n, times[1]),
            "default_rate_1": process.rate(n, process.seconds(of_default)),
            "scaling": times[0]["median"] / times[1]["median"],
            "same_output": process.sha256(made("map-1.jsonl")) == process.sha256(made("map-2.jsonl")),
            "peak": process.peak(runs[0] + runs[1]),
        }

    def accuracy(self):
        self.results["accuracy"] = {"map": self.map_accuracy(), "recognition": self.recognition()}

    def map_accuracy(self):
        rows = []
        for corpus in BIOSYN:
            for part in ("dev", "train"):
                say(f"map accuracy of {corpus}, {part} dictionary")
                lexical, commands = self.mapped(corpus, part)
                rows.append({
                    "corpus": corpus, "dictionary": part, "n": lexical["n_mentions"],
                    "accuracy_1": lexical["accuracy"]["1"], "accuracy_5": lexical["accuracy"]["5"],
                    "ci_1": lexical["accuracy_ci"]["1"], "commands": commands,
                })
        return rows

    def mapped(self, corpus, part):
        """Ranking of the dev queries of a corpus by the lexical model, and the commands. Parts of the default model were trained or
        tuned on these documents: it is not measured on them."""
        answers = f"{corpus}-{part}-lexical.answers.jsonl"
        words = ["map", "--model", "lexical", "--kb", kb(f"{corpus}-{part}"), made(f"{corpus}-queries.txt")]
        process.run(self.command(*words), made(answers))
        gold = DATA / f"biosyn-{corpus}" / "dev.concept"
        judge = ["eval", "--format", "biosyn", "--gold", gold, "--pred", made(answers)]
        return self.judged(judge)["ranking"]["all"], [f"{self.shown(*words)} > {made(answers)}", self.shown(*judge)]

    def recognition(self):
        rows = []
        for title, gold, name in RECOGNITION:
            say(f"recognition: {title}")
            out = f"{name}.links.jsonl"
            words = ["link", "--model", "lexical", "--kb", kb(name), DATA / gold, "--to", "jsonl"]
            process.run(self.command(*words), made(out))
            judge = ["eval", "--gold", DATA / gold, "--pred", made(out), "--kb", kb(name)]
            report = self.judged(judge)
            rows.append({
                "title": title, "n_gold": report["counts"]["strict"]["n_gold"], "n_pred": report["n_pred"],
                "strict": report["metrics"]["strict"], "partial": report["metrics"]["partial-binary"],
                "ci_strict": report["ci"]["strict"]["f1"], "kb": report["kb"],
                "commands": [f"{self.shown(*words)} > {made(out)}", self.shown(*judge)],
            })
        return rows

    def judged(self, words):
        answer = subprocess.run(self.command(*words, "--json"), stdout=subprocess.PIPE, check=True)
        return json.loads(answer.stdout)

    def peers(self):
        """Other programs on the same queries and dictionaries, measured in this run; canonym is scored by the same code."""
        sys.path.insert(0, str(ROOT / "benches" / "peers"))
        import biosyn
        rows = []
        for corpus in BIOSYN:
            for part, scripts in (("dev", ["tfidf", "edit_distance"]), ("train", ["tfidf"])):
                about_row = {"corpus": corpus, "dictionary": part}
                rows += [row | about_row for row in self.own_rows(biosyn, corpus, part)]
                folder = DATA / f"biosyn-{corpus}"
                files = [str(folder / f"{part}_dictionary.txt"), str(folder / "dev.concept")]
                for script in scripts:
                    say(f"{script} on {corpus}, {part} dictionary")
                    words = [sys.executable, f"benches/peers/{script}.py", *files]
                    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
                    printed = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, env=one_thread)
                    rows += [json.loads(line) | about_row for line in printed.stdout.splitlines()]
        self.results["peers"] = rows

    def own_rows(self, biosyn, corpus, part):
        """canonym on all queries, and on the sample that slower peers get, with the dev dictionary."""
        queries = biosyn.read_queries(DATA / f"biosyn-{corpus}" / "dev.concept")
        rows = []
        for of in [queries, biosyn.sample(queries, N_SAMPLE)] if part == "dev" else [queries]:
            distinct = sorted({part for parts, _ in of for part in parts})
            path, out = made(f"{corpus}-distinct.txt"), made(f"{corpus}-distinct.jsonl")
            write_lines(path, distinct)
            words = ["map", "--kb", kb(f"{corpus}-{part}"), path, "--threads", 1]
            [runs] = process.repeat(N_RUNS, lambda: process.run(self.command(*words), out))
            rows.append({
                "system": "canonym", "accuracy": biosyn.accuracy(of, first_answers(biosyn, out)), "n_queries": len(of),
                "n_names": len(distinct), "names_per_second": len(distinct) / process.seconds(runs)["median"],
            })
        return rows


def first_answers(biosyn, path):
    """The ids of the first candidate of each name."""
    answers = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            answer = json.loads(line)
            joined = answer["candidates"][0]["id"] if answer["candidates"] else ""
            answers[answer["query"]] = biosyn.ids_of(joined)
    return answers


def write_lines(path, lines):
    with open(path, "w", encoding="utf-8") as out:
        out.writelines(f"{line}\n" for line in lines)


def dev_queries(corpus):
    """The parts of all mentions of the development set, in order."""
    with open(DATA / f"biosyn-{corpus}" / "dev.concept", encoding="utf-8") as file:
        return [part for line in file for part in line.rstrip("\n").split("||")[-2].split("|")]


def map_names():
    """The queries of both development sets, then every name of MEDIC with one typo."""
    rng = random.Random(SEED)
    names = [query for corpus in BIOSYN for query in dev_queries(corpus)]
    with open(DATA / MEDIC, encoding="utf-8") as file:
        for line in file:
            names += [mistyped(name, rng) for name in line.rstrip("\n").split("||")[1].split("|") if name]
    return names


def mistyped(name, rng):
    """`name` with one letter dropped, doubled or replaced, or two swapped."""
    place = rng.randrange(len(name))
    kind = rng.randrange(4)
    if kind == 0 and len(name) > 1:
        return name[:place] + name[place + 1:]
    if kind == 1:
        return name[:place] + name[place] + name[place:]
    if kind == 2:
        return name[:place] + rng.choice("abcdefghijklmnopqrstuvwxyz") + name[place + 1:]
    return name[:place] + name[place:place + 2][::-1] + name[place + 2:]


def about():
    """Date and environment of the measurement, without host names."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True, check=False)
    return {
        "date": datetime.date.today().isoformat(), "commit": commit.stdout.strip(),
        "cores": os.cpu_count(), "architecture": platform.machine(), "system": platform.system(),
        "python": platform.python_version(), "load_before": round(os.getloadavg()[0], 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", help="measure this program instead of building one")
    parser.add_argument("--only", nargs="*", choices=["speed", "accuracy", "peers"], help="the parts to measure")
    arguments = parser.parse_args()
    if not DATA.is_dir():
        say(f"{DATA} is absent; set CANONYM_DATA to the folder of corpora and terminologies to measure")
        return
    binary = os.path.abspath(arguments.binary or ROOT / "target" / "release" / "canonym")
    os.chdir(ROOT)
    if not arguments.binary:
        subprocess.run(["cargo", "build", "--release"], check=True)
    bench = Bench(binary)
    found = about()
    bench.prepare()
    for part in arguments.only or ["speed", "accuracy", "peers"]:
        getattr(bench, part)()
    # Parts that were not measured keep their earlier figures, which include their date.
    older = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() and arguments.only else {}
    results = older | bench.results
    results["about"] = older.get("about", {}) | {part: found for part in arguments.only or ["speed", "accuracy", "peers"]}
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    tables.write(ROOT, results)


if __name__ == "__main__":
    main()
