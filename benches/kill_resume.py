"""Kills `canonym` with SIGKILL at random moments, runs it again, and compares the result with that of an uninterrupted run.

    python3 benches/kill_resume.py target/release/canonym --kills 200 --what link kb index

`link` links a folder into a run folder and resumes the run, `kb` builds a knowledge base over an older one, `index` an index of its names,
which goes on where it stopped. After each kill the file at the path has to be the old or the new one, whole. Prints the numbers of kills, of
finished runs, of differences, and of hidden files left. Needs no data: texts and names are made up, with a fixed seed.
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


def timed(command, place):
    started = time.monotonic()
    subprocess.run(command, cwd=place, check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - started


def kill_at(command, place, most):
    """Kills a command after up to `most` seconds. Returns whether it was killed; it may have been faster."""
    child = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE)
    time.sleep(random.uniform(0, most))
    child.send_signal(signal.SIGKILL)
    _, said = child.communicate()
    if child.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(said.decode())
    return child.returncode != 0


def hidden(place):
    return [path.name for path in place.iterdir() if path.name.startswith(".")]


def report(what, n_kills, n_runs, n_different, n_left):
    print(f"{what}: {n_kills} kills, {n_runs} runs finished after them: {n_different} differ, {n_left} temporary files left")


def kill_link(program, place, arguments):
    make_inputs(place / "in", arguments.files, arguments.documents)
    link = [program, "link", "--quiet", "--model", "lexical", "in", "--output"]
    whole_time = timed([*link, "whole/"], place)
    expected = outputs(place / "whole")
    n_kills = n_runs = n_different = n_left = 0
    while n_kills < arguments.kills:
        command = [*link, "run/"]
        while kill_at(command, place, whole_time / 3):
            n_kills += 1
            if (place / "run" / "run.json").exists():
                command = [program, "link", "--quiet", "--resume", "run"]
        n_runs += 1
        found = outputs(place / "run")
        n_left += sum(path.endswith(".tmp") for path in found)
        n_different += found != expected
        shutil.rmtree(place / "run")
    report("link", n_kills, n_runs, n_different, n_left)
    return n_different + n_left


def kill_build(what, command, check, out, old, place, arguments):
    """Kills a build of the file `out` over the file `old` up to three times, then lets it finish."""
    whole_time = timed(command, place)
    expected = (place / out).read_bytes()
    before = old.read_bytes() if old else None
    n_kills = n_runs = n_different = n_left = 0
    while n_kills < arguments.kills:
        (place / out).unlink(missing_ok=True)
        if before is not None:
            (place / out).write_bytes(before)
        for _ in range(random.randint(1, 3)):
            n_kills += kill_at(command, place, whole_time * 1.05)
            found = (place / out).read_bytes() if (place / out).exists() else None
            if found not in (before, expected):
                n_different += 1
            elif found is not None:
                subprocess.run([command[0], *check], cwd=place, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(command, cwd=place, check=True, stderr=subprocess.DEVNULL)
        n_runs += 1
        n_different += (place / out).read_bytes() != expected
        n_left += len(hidden(place))
    report(what, n_kills, n_runs, n_different, n_left)
    return n_different + n_left


def kill_kb(program, place, arguments):
    make_table(place / "old.tsv", arguments.concepts // 50)
    make_table(place / "new.tsv", arguments.concepts)
    build = [program, "kb", "build", "--quiet", "--out"]
    timed([*build, "old.kb", "old.tsv"], place)
    command = [*build, "k.kb", "new.tsv"]
    return kill_build("kb build", command, ["kb", "info", "k.kb", "--verify"], "k.kb", place / "old.kb", place, arguments)


def kill_index(program, place, arguments):
    make_table(place / "k.tsv", arguments.concepts // 4)
    timed([program, "kb", "build", "--quiet", "k.tsv", "--out", "k.kb"], place)
    command = [program, "index", "build", "--quiet", "--kb", "k.kb"]
    return kill_build("index build", command, ["index", "info", "k.index"], "k.index", None, place, arguments)


PARTS = {"link": kill_link, "kb": kill_kb, "index": kill_index}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=200, help="kills of each kind")
    parser.add_argument("--what", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--concepts", type=int, default=40_000)
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    n_faults = 0
    for what in arguments.what:
        random.seed(7)
        with tempfile.TemporaryDirectory() as name:
            n_faults += PARTS[what](program, pathlib.Path(name), arguments)
    raise SystemExit(1 if n_faults else 0)


if __name__ == "__main__":
    main()
