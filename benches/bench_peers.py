#!/usr/bin/env python3
"""Measures canonym and other linkers side by side; writes docs/results-peers.json and the table of docs/results/peers.md.

    make bench-peers                                build, install the peers, measure; about fifteen minutes on two cores
    benches/bench_peers.py --only gilda,canonym     selected systems

Every system gets the same names and abstracts, indexes the same terms, and is scored by `canonym eval`. The peers are
installed from PyPI into folders of runs/peers, each with the versions of its file in benches/peers; one that cannot be
installed, or fails, is reported with the reason. Runs of the systems are interleaved, so that load on the machine affects
all. Real data are read from CANONYM_DATA, else ../shared/data; without them, the script prints a note and exits
successfully. Standard library only.
"""

import argparse
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import tables

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CANONYM_DATA", ROOT.parent / "shared" / "data")).resolve()
MADE = ROOT / "runs" / "peers"
RESULTS = ROOT / "docs" / "results-peers.json"
PEERS = ["scispacy", "quickumls", "gilda", "rapidfuzz"]
CORPORA = ["ncbi-disease", "bc5cdr-disease"]
ABSTRACTS = "formats/pubmed-abstracts-1000.jsonl"
GOLD = "bc5cdr/dev.pubtator.txt"
N_RUNS = 3
SETUP_SECONDS = 900
STEP_SECONDS = 1200
# One thread each, as far as this can be configured.
ENVIRONMENT = os.environ | {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


def say(text):
    print(text, file=sys.stderr, flush=True)


class Failed(Exception):
    """A step of a peer failed."""


def call(*command):
    """Runs a setup command."""
    try:
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=SETUP_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"no end after {SETUP_SECONDS} s") from error
    if done.returncode != 0:
        raise Failed((done.stderr.strip().splitlines() or ["no message"])[-1][:200])


def measured(command):
    """Runs a step; returns the JSON it printed, its wall seconds and its peak memory in bytes."""
    wrapper = (
        "import resource, subprocess, sys\n"
        "status = subprocess.call(sys.argv[1:])\n"
        "print('\\n{\"peak_bytes\": %d}' % (resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024),"
        " file=sys.stderr)\n"
        "sys.exit(status)\n")
    started = time.perf_counter()
    words = [sys.executable, "-c", wrapper, *map(str, command)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT, timeout=STEP_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"no end after {STEP_SECONDS} s") from error
    seconds = time.perf_counter() - started
    lines = done.stderr.strip().splitlines()
    if done.returncode != 0:
        raise Failed((lines[-2:-1] or lines or ["no message"])[0][:200])
    printed = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return (json.loads(printed[-1]) if printed else {}) | json.loads(lines[-1]) | {"wall_seconds": seconds}


class Peer:
    """A program of benches/peers with its own virtual environment."""

    def __init__(self, name):
        self.name = name
        self.folder = MADE / name
        self.python = self.folder / "venv" / "bin" / "python"
        self.program = ROOT / "benches" / "peers" / f"{name}_peer.py"
        self.finds_mentions = name in ("quickumls", "gilda")

    def set_up(self):
        wanted_file = ROOT / "benches" / "peers" / f"{self.name}.txt"
        wanted = wanted_file.read_text(encoding="utf-8")
        done = self.folder / "installed.txt"
        if done.exists() and done.read_text(encoding="utf-8") == wanted:
            return
        say(f"install {self.name}")
        self.folder.mkdir(parents=True, exist_ok=True)
        call(sys.executable, "-m", "venv", "--clear", self.folder / "venv")
        call(self.python, "-m", "pip", "install", "--quiet", "--requirement", wanted_file)
        done.write_text(wanted, encoding="utf-8")

    def build(self, terms):
        """Builds the index, or reuses that of an earlier run with the same versions and terms, with its recorded cost."""
        index = self.folder / terms.stem
        made_of = hashlib.sha256(terms.read_bytes() + (self.folder / "installed.txt").read_bytes()).hexdigest()
        note = self.folder / f"{terms.stem}.json"
        if note.exists() and json.loads(note.read_text(encoding="utf-8"))["made_of"] == made_of:
            return json.loads(note.read_text(encoding="utf-8"))
        shutil.rmtree(index, ignore_errors=True)
        cost = measured([self.python, self.program, "build", "--terms", terms, "--index", index]) | {"made_of": made_of}
        note.write_text(json.dumps(cost), encoding="utf-8")
        return cost

    def run(self, what, terms, given, out):
        option = "--names" if what == "map" else "--documents"
        return measured([self.python, self.program, what, "--terms", terms, "--index", self.folder / terms.stem,
                         option, given, "--out", out, "--started", time.time()])


class Canonym:
    """The program under test, on one thread like the others."""

    name = "canonym"
    finds_mentions = True

    def __init__(self, binary):
        self.binary = binary
        self.ready = {}

    def set_up(self):
        """Nothing to install."""

    def build(self, terms):
        source = terms.with_suffix(".biosyn")
        with open(terms, encoding="utf-8") as rows, open(source, "w", encoding="utf-8") as out:
            out.writelines(row.replace("\t", "||", 1) for row in rows)
        command = [self.binary, "--quiet", "kb", "build", "--format", "biosyn", source, "--out", self.kb(terms)]
        return measured(command) | {"version": self.version()}

    def version(self):
        return subprocess.run([self.binary, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]

    def kb(self, terms):
        return terms.with_suffix(".kb")

    def run(self, what, terms, given, out):
        """Runs a step; its time is that of the process minus that of the same process on a single line."""
        one = MADE / f"one.{given.name}"
        with open(given, "rb") as lines:
            one.write_bytes(lines.readline())
        ready = measured(self.command(what, terms, one, MADE / "one.out"))
        whole = measured(self.command(what, terms, given, out))
        n = sum(1 for _ in open(given, "rb"))
        seconds = max(whole["wall_seconds"] - ready["wall_seconds"], 1e-4)
        return whole | {"ready_seconds": ready["wall_seconds"], "seconds": seconds, "n": n}

    def command(self, what, terms, given, out):
        words = [self.binary, "--quiet", what, "--model", "lexical", "--kb", self.kb(terms), given, "--threads", "1"]
        shape = ["--to", "jsonl", "--output", out] if what == "link" else []
        return [*words, *shape] if shape else ["sh", "-c", f'"$0" "$@" > {out}', *words]


def write_lines(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def terms_of_dictionary(corpus):
    """Names of the train dictionary, which has none of the development set; corpora with equal dictionaries share an index."""
    text = (DATA / f"biosyn-{corpus}" / "train_dictionary.txt").read_text(encoding="utf-8").replace("||", "\t")
    path = MADE / f"terms-{hashlib.sha256(text.encode()).hexdigest()[:8]}.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def queries(corpus):
    lines = (DATA / f"biosyn-{corpus}" / "dev.concept").read_text(encoding="utf-8").splitlines()
    return write_lines(MADE / f"{corpus}.names.txt", [part for line in lines for part in line.split("||")[-2].split("|")])


def terms_of_mesh():
    """MeSH trees C, D and F03: diseases, chemicals, mental disorders."""
    subset = subprocess.run([sys.executable, "experiments/mesh_subset.py", DATA, "C", "D", "F03"], cwd=ROOT,
                            capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in subset.splitlines()]
    pairs = [(row[0], name) for row in rows for name in [row[1], *(row[2].split("|") if len(row) > 2 else [])] if name]
    return write_lines(MADE / "terms-mesh.tsv", [f"{concept}\t{name}" for concept, name in pairs])


def gold_documents():
    """Title and abstract of each document, joined in accordance with the offsets."""
    texts = {}
    for line in (DATA / GOLD).read_text(encoding="utf-8").splitlines():
        fields = line.split("|", 2)
        if len(fields) == 3 and fields[1] in ("t", "a") and "\t" not in fields[0]:
            texts.setdefault(fields[0], []).append(fields[2])
    lines = [json.dumps({"id": name, "text": " ".join(parts)}, ensure_ascii=False) for name, parts in texts.items()]
    return write_lines(MADE / "gold.jsonl", lines)


def judged(binary, *words):
    done = subprocess.run([binary, "--quiet", "eval", *map(str, words), "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)


def summary(runs):
    """Medians of repeated measurements."""
    median = {key: statistics.median(run[key] for run in runs) for key in ("ready_seconds", "seconds")}
    return median | {"rate": runs[0]["n"] / median["seconds"], "peak_bytes": max(run["peak_bytes"] for run in runs),
                     "n_runs": len(runs)}


def rounds(systems, failed, task, work):
    """Calls `work` for each system `N_RUNS` times, interleaved; drops systems that fail."""
    runs = {}
    for turn in range(N_RUNS):
        for system in systems:
            if (system.name, task) in failed:
                continue
            say(f"{task}, {system.name}, {turn + 1} of {N_RUNS}")
            try:
                runs.setdefault(system.name, []).append(work(system))
            except Failed as error:
                failed[system.name, task] = str(error)
                runs.pop(system.name, None)
    return runs


def measure(binary, names):
    systems = [Canonym(binary), *(Peer(name) for name in PEERS)]
    systems = [system for system in systems if not names or system.name in names]
    failed, rows, versions = {}, [], {}
    for system in list(systems):
        try:
            system.set_up()
        except Failed as error:
            failed[system.name, "setup"] = str(error)
            systems.remove(system)
    terms = {corpus: terms_of_dictionary(corpus) for corpus in CORPORA} | {"mesh": terms_of_mesh()}
    built = {}
    for system in systems:
        for key, path in terms.items():
            say(f"build {key}, {system.name}")
            if key == "mesh" and not system.finds_mentions:
                continue
            try:
                built[system.name, key] = system.build(path)
                versions[system.name] = built[system.name, key]["version"]
            except Failed as error:
                failed[system.name, "abstracts" if key == "mesh" else f"names of {key}"] = str(error)
    for corpus in CORPORA:
        task, given = f"names of {corpus}", queries(corpus)
        out = {system.name: MADE / f"{corpus}.{system.name}.map.jsonl" for system in systems}
        runs = rounds(systems, failed, task, lambda system: system.run("map", terms[corpus], given, out[system.name]))
        for name, of in runs.items():
            report = judged(binary, "--format", "biosyn", "--gold", DATA / f"biosyn-{corpus}" / "dev.concept",
                            "--pred", out[name])["ranking"]["all"]
            build = built[name, corpus]
            rows.append(summary(of) | {
                "task": task, "system": name, "build_seconds": build["wall_seconds"],
                "build_peak_bytes": build["peak_bytes"], "accuracy_1": report["accuracy"]["1"],
                "accuracy_5": report["accuracy"]["5"], "ci_1": report["accuracy_ci"]["1"]})
    gold, task = gold_documents(), "abstracts"
    finders = [system for system in systems if system.finds_mentions]
    given = write_lines(MADE / "abstracts.jsonl", (DATA / ABSTRACTS).read_text(encoding="utf-8").splitlines())
    runs = rounds(finders, failed, task,
                  lambda system: system.run("link", terms["mesh"], given, MADE / f"abstracts.{system.name}.jsonl"))
    for system in finders:
        if system.name not in runs:
            continue
        out = MADE / f"gold.{system.name}.jsonl"
        system.run("link", terms["mesh"], gold, out)
        metrics = judged(binary, "--gold", DATA / GOLD, "--pred", out, "--pred-format", "jsonl")
        build = built[system.name, "mesh"]
        rows.append(summary(runs[system.name]) | {
            "task": task, "system": system.name, "build_seconds": build["wall_seconds"],
            "build_peak_bytes": build["peak_bytes"], "strict": metrics["metrics"]["strict"],
            "partial": metrics["metrics"]["partial-binary"], "ci_strict": metrics["ci"]["strict"]["f1"]})
    notes = [{"system": system, "task": task, "reason": reason} for (system, task), reason in failed.items()]
    return {"rows": rows, "failed": notes, "versions": versions, "n_runs": N_RUNS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="target/release/canonym")
    parser.add_argument("--only", default="", help="names of systems, separated by commas")
    args = parser.parse_args()
    if not (DATA / GOLD).exists():
        say(f"left out: {DATA} is missing; set CANONYM_DATA to the folder of corpora")
        return
    binary = str((ROOT / args.binary).resolve())
    MADE.mkdir(parents=True, exist_ok=True)
    results = measure(binary, [name for name in args.only.split(",") if name])
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    tables.write_peers(ROOT, results)
    print(tables.beside_peers(results))


if __name__ == "__main__":
    main()
