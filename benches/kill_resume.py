"""Kills `canonym link` with SIGKILL at random moments, resumes it, and compares the run folder with an uninterrupted run.

    python3 benches/kill_resume.py target/release/canonym --kills 200

Prints the number of kills, of resumed runs, and of differences. Needs no data: texts are made up, with a fixed seed.
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


def make_inputs(folder, n_files, n_documents):
    random.seed(7)
    words = "asthma fever of the patient was treated with metformin and aspirin for type 2 diabetes mellitus".split()
    folder.mkdir()
    for number in range(n_files):
        with open(folder / f"{number:03}.jsonl", "w") as out:
            for row in range(n_documents):
                text = " ".join(random.choices(words, k=60))
                out.write(json.dumps({"id": f"{number}-{row}", "text": text}) + "\n")


def outputs(folder):
    kept = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in (".lock", "run.json"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--documents", type=int, default=500)
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        make_inputs(place / "in", arguments.files, arguments.documents)
        link = [program, "link", "--quiet", "--model", "lexical", "in", "--output"]
        started = time.monotonic()
        subprocess.run([*link, "whole/"], cwd=place, check=True)
        whole_time = time.monotonic() - started
        expected = outputs(place / "whole")
        n_kills = n_runs = n_different = n_left = 0
        while n_kills < arguments.kills:
            command = [*link, "run/"]
            while True:
                child = subprocess.Popen(command, cwd=place, stderr=subprocess.PIPE)
                time.sleep(random.uniform(0, whole_time / 3))
                child.send_signal(signal.SIGKILL)
                status = child.wait()
                n_kills += status == -signal.SIGKILL
                if status == 0:
                    break
                if status != -signal.SIGKILL:
                    raise SystemExit(child.stderr.read().decode())
                if (place / "run" / "run.json").exists():
                    command = [program, "link", "--quiet", "--resume", "run"]
            n_runs += 1
            found = outputs(place / "run")
            n_left += sum(path.endswith(".tmp") for path in found)
            n_different += found != expected
            shutil.rmtree(place / "run")
        print(f"{n_kills} kills, {n_runs} runs finished after them: {n_different} differ, {n_left} temporary files left")


if __name__ == "__main__":
    main()
