"""Kills `canonym` with SIGKILL at random moments, runs it again, and compares the result with that of an uninterrupted run.

    python3 benches/kill_resume.py target/release/canonym --kills 200 --report experiments/reports/kill-resume.json

`link` links a folder into a run folder and resumes the run, `kb` builds a knowledge base over an older one, `index` an index of its names,
which goes on where it stopped. After each kill, every file that has its final name has to be the old or the new one, whole. Prints a line
for each kill, and in the end the numbers of kills, of files found after them (old, new, none), of finished runs, of differences, and of
temporary files left. Needs no data: texts and names are made up, with a fixed seed.
"""

import argparse
import json
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

WORDS = "asthma fever of the patient was treated with metformin and aspirin for type 2 diabetes mellitus".split()

# Kills before a run is left to finish; without a bound a run on a busy machine might never end.
MAX_KILLS_PER_RUN = 4

JOURNAL = "run.journal"

def make_inputs(folder, n_files, n_documents):
    folder.mkdir()
    for number in range(n_files):
        with open(folder / f"{number:03}.jsonl", "w") as out:
            for row in range(n_documents):
                text = " ".join(random.choices(WORDS, k=60))
                out.write(json.dumps({"id": f"{number}-{row}", "text": text}) + "\n")


def make_table(path, n_concepts):
    with open(path, "w") as out:
        for row in range(n_concepts):
            names = [" ".join(random.choices(WORDS, k=4)) + f" {row}" for _ in range(3)]
            out.write(f"S{row}\t{names[0]}\t{names[1]}|{names[2]}\n")


def outputs(folder):
    kept = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in (".lock", "run.json"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


class Tally:
    """What was counted for one command, printed after each kill."""

    def __init__(self, what, n_wanted):
        self.what, self.n_wanted, self.started = what, n_wanted, time.monotonic()
        self.counts = {"kills": 0, "too_late": 0, "old": 0, "new": 0, "none": 0, "damaged": 0}
        self.counts |= {"finished_runs": 0, "equal": 0, "different": 0, "temporary_files_left": 0}
        self.run_times = []
        self.seconds = 0

    def is_done(self):
        return self.counts["kills"] >= self.n_wanted

    def kill(self, command, place):
        """Starts a command and kills it while it should run. Returns whether it was killed; it may have been faster."""
        usual = sorted(self.run_times)[len(self.run_times) // 2]
        child = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE)
        try:
            child.wait(random.uniform(0, usual * 1.05))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        _, said = child.communicate()
        if child.returncode not in (0, -signal.SIGKILL):
            raise SystemExit(said.decode())
        self.counts["kills" if child.returncode else "too_late"] += 1
        return child.returncode != 0

    def finish(self, command, place):
        """Runs a command to its end."""
        started = time.monotonic()
        subprocess.run(command, cwd=place, check=True, stderr=subprocess.DEVNULL)
        self.run_times.append(time.monotonic() - started)

    def found(self, state, n=1):
        self.counts[state] += n

    def line(self):
        counts = self.counts
        left = f"{counts['temporary_files_left']} temporary files left"
        after = f"old {counts['old']}, new {counts['new']}, none {counts['none']}, damaged {counts['damaged']}"
        runs = f"{counts['finished_runs']} runs finished: {counts['equal']} equal, {counts['different']} different, {left}"
        return f"{self.what}: {counts['kills']} of {self.n_wanted} kills in {self.seconds} s; files {after}; {runs}"

    def show(self):
        self.seconds = round(time.monotonic() - self.started)
        print(self.line(), flush=True)

    def n_faults(self):
        return self.counts["damaged"] + self.counts["different"] + self.counts["temporary_files_left"]


def kill_link(program, place, arguments, tally):
    make_inputs(place / "in", arguments.files, arguments.documents)
    link = [program, "link", "--quiet", "--model", "lexical", "in", "--output"]
    tally.finish([*link, "whole/"], place)
    expected = outputs(place / "whole")

    def resumed(command):
        return [program, "link", "--quiet", "--resume", "run"] if (place / "run" / "run.json").exists() else command

    while not tally.is_done():
        command = [*link, "run/"]
        for _ in range(random.randint(1, MAX_KILLS_PER_RUN)):
            if not tally.kill(command, place):
                break
            found = outputs(place / "run")
            found = {name: found[name] for name in found if not name.endswith(".tmp") and name != JOURNAL}
            n_whole = sum(expected.get(name) == found[name] for name in found)
            tally.found("new", n_whole)
            tally.found("none", arguments.files - len(found))
            tally.found("damaged", len(found) - n_whole)
            tally.show()
            if tally.is_done():
                break
            command = resumed(command)
        subprocess.run(resumed(command), cwd=place, check=True, stderr=subprocess.DEVNULL)
        found = outputs(place / "run")
        tally.found("finished_runs")
        tally.found("temporary_files_left", sum(path.endswith(".tmp") for path in found))
        tally.found("equal" if found == expected else "different")
        shutil.rmtree(place / "run")


def kill_build(command, check, out, old, place, tally):
    """Kills a build of the file `out` over the file `old` a few times, then lets it finish."""
    tally.finish(command, place)
    expected = (place / out).read_bytes()
    before = old.read_bytes() if old else None
    while not tally.is_done():
        (place / out).unlink(missing_ok=True)
        if before is not None:
            (place / out).write_bytes(before)
        for _ in range(random.randint(1, MAX_KILLS_PER_RUN)):
            if not tally.kill(command, place):
                break
            found = (place / out).read_bytes() if (place / out).exists() else None
            tally.found({before: "old", expected: "new"}.get(found, "damaged") if found is not None else "none")
            if found is not None:
                subprocess.run([command[0], *check], cwd=place, check=True, stdout=subprocess.DEVNULL)
            tally.show()
            if tally.is_done():
                break
        subprocess.run(command, cwd=place, check=True, stderr=subprocess.DEVNULL)
        tally.found("finished_runs")
        tally.found("equal" if (place / out).read_bytes() == expected else "different")
        tally.found("temporary_files_left", sum(path.name.startswith(".") for path in place.iterdir()))


def kill_kb(program, place, arguments, tally):
    make_table(place / "old.tsv", arguments.concepts // 50)
    make_table(place / "new.tsv", arguments.concepts)
    build = [program, "kb", "build", "--quiet", "--out"]
    subprocess.run([*build, "old.kb", "old.tsv"], cwd=place, check=True, stderr=subprocess.DEVNULL)
    command = [*build, "k.kb", "new.tsv"]
    kill_build(command, ["kb", "info", "k.kb", "--verify"], "k.kb", place / "old.kb", place, tally)


def kill_index(program, place, arguments, tally):
    make_table(place / "k.tsv", arguments.concepts // 10)
    build = [program, "kb", "build", "--quiet", "k.tsv", "--out", "k.kb"]
    subprocess.run(build, cwd=place, check=True, stderr=subprocess.DEVNULL)
    command = [program, "index", "build", "--quiet", "--kb", "k.kb"]
    kill_build(command, ["index", "info", "k.index"], "k.index", None, place, tally)


PARTS = {"link": kill_link, "kb": kill_kb, "index": kill_index}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=200, help="kills of each command")
    parser.add_argument("--what", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--files", type=int, default=16)
    parser.add_argument("--documents", type=int, default=60, help="documents of each file")
    parser.add_argument("--concepts", type=int, default=8_000, help="concepts of the knowledge base; the index has a tenth")
    parser.add_argument("--report", type=pathlib.Path, help="write the counts to this file as JSON")
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.strip()
    report = {"version": version, "settings": {name: getattr(arguments, name) for name in ("kills", "files", "documents", "concepts")}}
    tallies = []
    for what in arguments.what:
        random.seed(7)
        tally = Tally(what, arguments.kills)
        tallies.append(tally)
        with tempfile.TemporaryDirectory() as name:
            PARTS[what](program, pathlib.Path(name), arguments, tally)
        tally.show()
        report[what] = tally.counts | {"seconds": tally.seconds}
    print("", *(tally.line() for tally in tallies), sep="\n")
    if arguments.report:
        arguments.report.write_text(json.dumps(report, indent=2) + "\n")
    raise SystemExit(1 if any(tally.n_faults() for tally in tallies) else 0)


if __name__ == "__main__":
    main()
