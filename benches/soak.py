"""Links in a loop for some minutes and reports resident memory over time, which should not grow.

    python3 benches/soak.py target/release/canonym --minutes 30 --report runs/soak.json

Half of the time one `canonym link` reads documents without end from a pipe, half of the time one `canonym serve` answers requests one after the
other; `--what` selects one of them. Texts are made up, each different, with a fixed seed. Memory is that of `/proc` every ten seconds (Linux).
The growth is the difference between the medians of the second and the last fifth of the samples, because caches fill at first. Standard library
only.
"""

import argparse
import http.client
import json
import pathlib
import platform
import random
import socket
import statistics
import subprocess
import tempfile
import threading
import time

WORDS = (
    "patients with asthma fever gout migraine eczema epilepsy hypertension type 2 diabetes mellitus heart failure were treated with aspirin "
    "metformin insulin heparin and ibuprofen for a week the dose was lower in children no rash cough or nausea was seen after surgery"
).split()


def document(rng, number):
    # Made-up words too, so that caches of words and names meet new ones.
    words = [rng.choice(WORDS) if rng.random() < 0.9 else f"{rng.choice(WORDS)}{rng.randrange(10**6)}" for _ in range(150)]
    return {"id": str(number), "text": " ".join(words) + "."}


def resident(process):
    """Resident memory of a process in MiB."""
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise SystemExit(f"process {process} has ended")


class Samples:
    """Memory of a process at intervals."""

    def __init__(self, process, interval):
        self.process, self.interval, self.rows, self.started = process, interval, [], time.monotonic()

    def take(self, n_documents):
        now = time.monotonic() - self.started
        if not self.rows or now - self.rows[-1][0] >= self.interval:
            self.rows.append([round(now, 1), round(resident(self.process), 1), n_documents])

    def summary(self, n_documents):
        seconds = time.monotonic() - self.started
        memory = [row[1] for row in self.rows]
        fifth = max(1, len(memory) // 5)
        second, last = memory[fifth : 2 * fifth] or memory, memory[-fifth:]
        return {
            "minutes": round(seconds / 60, 1),
            "documents": n_documents,
            "documents_per_second": round(n_documents / seconds, 1),
            "mib_at_most": max(memory),
            "mib_early": round(statistics.median(second), 1),
            "mib_late": round(statistics.median(last), 1),
            "seconds_mib_documents": self.rows,
        }


def soak_link(program, model, seconds, interval):
    """One process that reads documents until the time is over."""
    command = [program, "link", "--quiet", "--model", model, "--format", "jsonl", "--to", "jsonl", "-"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    n_read = 0

    def read():
        nonlocal n_read
        for _ in child.stdout:
            n_read += 1

    reader = threading.Thread(target=read)
    reader.start()
    rng, number, samples = random.Random(7), 0, Samples(child.pid, interval)
    while time.monotonic() - samples.started < seconds:
        lines = "".join(json.dumps(document(rng, number + row)) + "\n" for row in range(64))
        child.stdin.write(lines.encode())
        number += 64
        samples.take(n_read)
    child.stdin.close()
    summary_at = samples.summary(n_read)
    status = child.wait()
    reader.join()
    if status != 0 or n_read != number:
        raise SystemExit(f"`link` ended with status {status}, {n_read} of {number} documents")
    return summary_at


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def soak_serve(program, model, seconds, interval):
    """One server that answers requests until the time is over."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "serve", "--quiet", "--model", model, "--data", folder, "--bind", f"127.0.0.1:{port}"]
        child = subprocess.Popen(command)
        try:
            wait_for(child, port)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            rng, number, samples = random.Random(7), 0, Samples(child.pid, interval)
            while time.monotonic() - samples.started < seconds:
                body = json.dumps({"documents": [document(rng, number)]})
                headers = {"Content-Type": "application/json", "X-Canonym": "1"}
                connection.request("POST", "/api/v1/link", body, headers)
                answer = connection.getresponse()
                text = answer.read()
                if answer.status != 200:
                    raise SystemExit(f"status {answer.status}: {text[:300].decode()}")
                number += 1
                samples.take(number)
            return samples.summary(number)
        finally:
            child.terminate()
            child.wait()


def wait_for(child, port):
    for _ in range(600):
        if child.poll() is not None:
            raise SystemExit(f"the server ended with status {child.returncode}")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/ready")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise SystemExit("the server is not ready")


PARTS = {"link": soak_link, "serve": soak_serve}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--model", default="default")
    parser.add_argument("--what", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--interval", type=float, default=10, help="seconds between two samples")
    parser.add_argument("--report", type=pathlib.Path)
    arguments = parser.parse_args()
    program = str(pathlib.Path(arguments.program).resolve())
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    report = {"program": version, "model": arguments.model, "machine": platform.machine()}
    for what in arguments.what:
        seconds = arguments.minutes * 60 / len(arguments.what)
        found = report[what] = PARTS[what](program, arguments.model, seconds, arguments.interval)
        print(
            f"{what}: {found['documents']} documents in {found['minutes']} min; {found['mib_early']} MiB early, "
            f"{found['mib_late']} MiB late, {found['mib_at_most']} MiB at most",
            flush=True,
        )
    if arguments.report:
        arguments.report.parent.mkdir(parents=True, exist_ok=True)
        arguments.report.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
