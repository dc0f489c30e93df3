#!/usr/bin/env python3
"""Measures the Python package beside the program on the same documents.

    make bench-python DOCUMENTS=abstracts.jsonl [KB=mesh.kb]

Both annotate the documents, detect contexts and give the same lines of JSON, in turns. The package is measured twice: the call of
`System.annotate` on a list of texts in a process that has opened the system, and a whole process that starts Python, reads the
documents, annotates them and writes the lines. The program is measured as a whole process. Prints medians with minimum and maximum,
and ratios of rates. Needs a Python that has the package.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WHOLE = """
import json, sys, canonym
documents, model, kb, out = sys.argv[1:]
rows = list(map(json.loads, open(documents, encoding="utf-8")))
linked = canonym.System.open(model, kb or None).annotate(rows)
open(out, "w", encoding="utf-8").write(linked.to_jsonl())
"""


def seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def shown(times, n):
    median, least, most = statistics.median(times), min(times), max(times)
    return f"{n / median:8,.0f} documents/s   {median:.3f} s ({least:.3f}–{most:.3f})"


def measure(arguments, model, folder):
    import canonym

    rows = [json.loads(line) for line in arguments.documents.open(encoding="utf-8")]
    texts, ids = [row["text"] for row in rows], [row["id"] for row in rows]
    kb = str(arguments.kb or "")
    ours, theirs = folder / "package.jsonl", folder / "program.jsonl"
    program = [str(arguments.binary), "link", "--model", model, "--context", str(arguments.documents)]
    program += ["--quiet", "--output", str(theirs), *(["--kb", kb] if kb else [])]
    package = [sys.executable, "-c", WHOLE, str(arguments.documents), model, kb, str(ours)]
    system = canonym.System.open(model, kb or None)
    times = {"program": [], "package": [], "call": []}
    # The first run warms caches and is left out.
    for _ in range(arguments.runs + 1):
        theirs.unlink(missing_ok=True)
        times["program"].append(seconds(lambda: subprocess.run(program, check=True)))
        times["package"].append(seconds(lambda: subprocess.run(package, check=True)))
        times["call"].append(seconds(lambda: system.annotate(texts, ids=ids)))
    times = {name: values[1:] for name, values in times.items()}
    if ours.read_bytes() != theirs.read_bytes():
        sys.exit(f"{model}: the package and the program give different lines")
    n = len(rows)
    print(f"{model}, {n:,} documents, {arguments.runs} runs each, in turns; equal lines")
    print(f"  program, whole process   {shown(times['program'], n)}")
    print(f"  package, whole process   {shown(times['package'], n)}")
    print(f"  package, annotate(list)  {shown(times['call'], n)}")
    median = {name: statistics.median(values) for name, values in times.items()}
    whole, call = median["program"] / median["package"], median["program"] / median["call"]
    print(f"  rate against the program: whole process {whole:.2f}, annotate(list) {call:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=Path, required=True, help="JSONL with `id` and `text`")
    parser.add_argument("--kb", type=Path, help="knowledge base; default: the starter")
    parser.add_argument("--binary", type=Path, default=Path("target/release/canonym"), help="the program")
    parser.add_argument("--models", default="default,lexical")
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models.split(","):
            measure(arguments, model, Path(folder))


if __name__ == "__main__":
    main()
