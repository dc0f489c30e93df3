#!/usr/bin/env python3
"""Load test of `canonym serve`: many concurrent annotators, a large import, and a project with a million decisions.

    cargo build --release -p canonym-cli
    python3 benches/serve_load.py --out runs/bench/serve-load.json

Starts a server on a free local port with a temporary data folder, creates an account per annotator, imports abstracts generated from the
words below, runs the model, and makes decisions through the API as browsers do. Then all annotators work concurrently: each opens
documents of the queue and, for each mention, requests candidates, types the name of a concept letter by letter, and saves a decision.
Each keeps an event stream open. The pauses are 0.15 to 0.30 s between letters, 1 to 4 s between mentions and 2 to 5 s between documents.
The client runs on the same machine, so its load adds to that of the server.

Standard library only.
"""

import argparse
import gzip
import http.client
import io
import json
import math
import os
import platform
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import zipfile
from pathlib import Path

PASSWORD = "a horse that works"
NAMES = (
    "fever headache nausea delirium asthma gout anaemia hypertension pneumonia migraine eczema epilepsy obesity depression "
    "dementia arthritis diabetes hepatitis bronchitis aspirin ibuprofen morphine insulin lithium caffeine heparin metformin"
).split()
WORDS = (
    "patients were given a dose of the drug and felt better after some days while others had no change in this small study "
    "we saw that most who came to the ward with pain left it within a week although two of them returned later on"
).split()


class Client:
    """An annotator with one persistent connection."""

    def __init__(self, address, times=None):
        self.address, self.times, self.cookie, self.connection = address, times, None, None

    def ask(self, method, path, body=None, what=None):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        headers = {"X-Canonym": "1"} | ({"Cookie": self.cookie} if self.cookie else {})
        started = time.perf_counter()
        for attempt in (0, 1):
            try:
                if self.connection is None:
                    self.connection = http.client.HTTPConnection(self.address, timeout=300)
                self.connection.request(method, "/api/v1" + path, body, headers)
                response = self.connection.getresponse()
                data = response.read()
                break
            except (http.client.HTTPException, OSError):
                self.connection = None
                if attempt:
                    raise
        seconds = time.perf_counter() - started
        if self.times is not None and what:
            self.times.add(what, seconds, response.status)
        if response.status >= 400:
            raise RuntimeError(f"{method} {path}: {response.status} {data[:300]!r}")
        if cookie := response.getheader("Set-Cookie"):
            self.cookie = cookie.split(";")[0]
        kind = response.getheader("Content-Type") or ""
        return json.loads(data) if kind.startswith("application/json") else data

    def login(self, name):
        self.ask("POST", "/login", {"name": name, "password": PASSWORD}, "login")


class Times:
    """Durations of requests in seconds, by kind of request."""

    def __init__(self):
        self.lock, self.seconds, self.errors = threading.Lock(), {}, {}

    def add(self, what, seconds, status):
        with self.lock:
            self.seconds.setdefault(what, []).append(seconds)
            if status >= 400:
                self.errors[f"{what} {status}"] = self.errors.get(f"{what} {status}", 0) + 1

    def fail(self, what):
        with self.lock:
            self.errors[what] = self.errors.get(what, 0) + 1

    def report(self):
        def row(values):
            values = sorted(values)
            part = lambda share: round(1000 * values[min(len(values) - 1, int(share * len(values)))], 1)
            return {"n": len(values), "median_ms": part(0.5), "p95_ms": part(0.95), "p99_ms": part(0.99), "max_ms": part(1)}

        return {what: row(values) for what, values in sorted(self.seconds.items())}


class Server:
    def __init__(self, arguments, folder):
        command = [arguments.program, "serve", "--data", str(folder / "data"), "--bind", "127.0.0.1:0", "--model", arguments.model]
        if arguments.kb:
            command += ["--kb", arguments.kb]
        started = time.perf_counter()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        for line in self.process.stderr:
            if found := re.search(r"http://([^/]+)/", line):
                self.address = found[1]
                break
        else:
            sys.exit("the server ended before it listened")
        self.seconds_to_start = round(time.perf_counter() - started, 2)
        # Drain standard error, so that the pipe does not fill.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def memory_mib(self, peak=False):
        status = Path(f"/proc/{self.process.pid}/status")
        found = re.search(rf"{'VmHWM' if peak else 'VmRSS'}:\s+(\d+)", status.read_text()) if status.exists() else None
        return int(found[1]) // 1024 if found else None

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def abstract(chance, n_words=180):
    words = [chance.choice(NAMES) if chance.random() < 0.08 else chance.choice(WORDS) for _ in range(n_words)]
    text = ""
    for at, word in enumerate(words):
        text += (word.capitalize() if at % 18 == 0 else word) + (". " if at % 18 == 17 else " ")
    return text.strip() + "."


def spans_of(text):
    return [match.span() for match in re.finditer(r"\w+", text)]


def side_by_side(n_threads, items, work):
    """Runs `work` on all items on `n_threads` threads; stops at the first error."""
    items, lock, errors = iter(items), threading.Lock(), []

    def loop(row):
        while not errors:
            with lock:
                item = next(items, None)
            if item is None:
                return
            try:
                work(row, item)
            except Exception as error:  # noqa: BLE001
                errors.append(error)

    threads = [threading.Thread(target=loop, args=(row,)) for row in range(n_threads)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    if errors:
        raise errors[0]


def timed(work):
    started = time.perf_counter()
    value = work()
    return value, round(time.perf_counter() - started, 3)


def predict(client, project):
    job = client.ask("POST", f"/projects/{project}/jobs", {"kind": "predict"})["id"]
    while (state := client.ask("GET", f"/jobs/{job}"))["state"] in ("QUEUED", "RUNNING"):
        time.sleep(0.5)
    if state["state"] != "SUCCEEDED":
        sys.exit(f"the prediction failed: {state}")


def decide_much(address, people, project, concepts, n_decisions):
    """Makes about `n_decisions` decisions through the API: one annotator per document, and a second one for every tenth document."""
    clients = [[Client(address) for _ in people] for _ in range(4)]
    for row in clients:
        for client, person in zip(row, people):
            client.cookie = person.cookie
    rows, cursor = [], ""
    while cursor is not None:
        page = people[0].ask("GET", f"/projects/{project}/documents?limit=500&cursor={cursor}")
        rows += [row["id"] for row in page["documents"]]
        cursor = page["next_cursor"]
    # Allow for the decisions of second annotators.
    n_each = math.ceil(n_decisions / (len(rows) * 1.04))
    n_new = n_each // 2

    def work(thread, at_and_id):
        at, document = at_and_id
        chance = random.Random(document)
        client = clients[thread][at % len(people)]
        shown = client.ask("GET", f"/documents/{document}")
        spans = chance.sample(spans_of(shown["text"]), n_new)
        new = [{"kind": "add", "spans": [span], "concept": chance.choice(concepts)} for span in spans]
        made = client.ask("POST", f"/documents/{document}/decisions", {"client_id": f"a{document}", "decisions": new})
        open_marks = [mark["id"] for mark in shown["marks"] if mark["state"] == "open"]
        own = [mark["id"] for mark in made["marks"]]
        more = [{"kind": chance.choice(["accept", "accept", "reject"]), "mark": mark} for mark in open_marks[:10]]
        while len(more) < n_each - n_new - (at % 3 == 0):
            mark = chance.choice(own)
            more.append(chance.choice([
                {"kind": "concept", "mark": mark, "concept": chance.choice(concepts)},
                {"kind": "unsure", "mark": mark, "value": True},
                {"kind": "type", "mark": mark, "type": chance.choice(["Sign", "Disease", "Drug"])},
            ]))
        made = client.ask("POST", f"/documents/{document}/decisions", {"client_id": f"b{document}", "version": made["version"], "decisions": more})
        if at % 3 == 0:
            left = [mark for mark in client.ask("GET", f"/documents/{document}")["marks"] if mark["state"] == "open"]
            finish = {"kind": "finish", "value": True, "accepts": len(left)}
            made = client.ask("POST", f"/documents/{document}/decisions", {"client_id": f"f{document}", "version": made["version"], "decisions": [finish]})
        if at % 10 == 0:
            other = clients[thread][(at + 1) % len(people)]
            said = [{"kind": "concept", "mark": mark, "concept": chance.choice(concepts)} for mark in own]
            other.ask("POST", f"/documents/{document}/decisions", {"client_id": f"c{document}", "version": made["version"], "decisions": said})

    side_by_side(len(clients), enumerate(rows), work)
    return rows


def works(client, project, ends_at, chance, concepts):
    """Simulates one annotator until `ends_at`."""
    time.sleep(chance.uniform(0, 4))
    n = 0
    while time.time() < ends_at:
        queue = client.ask("GET", f"/projects/{project}/queue?strategy=random&seed={chance.randrange(10**6)}&limit=20", None, "queue")
        for row in queue["documents"][:3]:
            document = client.ask("GET", f"/documents/{row['id']}", None, "document")
            time.sleep(chance.uniform(2, 5))
            for _ in range(4):
                if time.time() >= ends_at:
                    return
                span = chance.choice(spans_of(document["text"]))
                place = f"/documents/{row['id']}/candidates?start={span[0]}&end={span[1]}"
                client.ask("GET", place, None, "picker, opened")
                name = chance.choice(NAMES)
                for end in range(2, min(len(name), 7) + 1):
                    time.sleep(chance.uniform(0.15, 0.3))
                    client.ask("GET", f"{place}&q={urllib.parse.quote(name[:end])}", None, "picker, a letter")
                if chance.random() < 0.3:
                    client.ask("GET", f"/kb/search?q={urllib.parse.quote(name)}", None, "search of the terminology")
                time.sleep(chance.uniform(0.3, 0.8))
                n += 1
                decision = {"kind": "add", "spans": [span], "concept": chance.choice(concepts)}
                body = {"client_id": f"{client.name}-{n}-{ends_at}", "version": document["version"], "decisions": [decision]}
                client.ask("POST", f"/documents/{row['id']}/decisions", body, "save a decision")
                time.sleep(chance.uniform(1, 4))


class Listener(threading.Thread):
    """Keeps the event stream of a project page open and counts the events."""

    def __init__(self, client, project):
        super().__init__(daemon=True)
        self.n_heard, self.connection = 0, http.client.HTTPConnection(client.address)
        self.connection.request("GET", f"/api/v1/events?project={project}", headers={"Cookie": client.cookie})
        self.stream = self.connection.getresponse()

    def run(self):
        try:
            while line := self.stream.readline():
                self.n_heard += line.startswith(b"event:")
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass


def session(people, project, seconds, concepts, beside=None):
    times, ends_at = Times(), time.time() + seconds
    listeners = [Listener(client, project) for client in people]
    [listener.start() for listener in listeners]

    def person(client, row):
        client.times = times
        try:
            works(client, project, ends_at, random.Random(row), concepts)
        except Exception as error:  # noqa: BLE001
            times.fail(str(error)[:200])

    threads = [threading.Thread(target=person, args=(client, row)) for row, client in enumerate(people)]
    before = os.getloadavg()
    [thread.start() for thread in threads]
    if beside:
        beside()
    [thread.join() for thread in threads]
    for client in people:
        client.times = None
    heard = [listener.n_heard for listener in listeners]
    [listener.connection.sock.shutdown(socket.SHUT_RDWR) for listener in listeners if listener.connection.sock]
    return {"people": len(people), "seconds": seconds, "load_before": before, "load_after": os.getloadavg(),
            "events_heard": [min(heard), max(heard)], "requests": times.report(), "errors": times.errors}


def by_hand(client, project, document):
    """Times requests that read all texts or annotations of a project."""
    mark = client.ask("GET", f"/documents/{document}")["marks"][0]["id"]
    alike = {"mark": mark, "scope": "project"}
    return {
        "the same words elsewhere, preview": timed(lambda: client.ask("POST", f"/projects/{project}/identical-mentions", alike))[1],
        "what the prediction changed": timed(lambda: client.ask("GET", f"/projects/{project}/changes"))[1],
        "export as PubTator": timed(lambda: client.ask("GET", f"/projects/{project}/export?format=pubtator"))[1],
    }


def open_times(client, project, document):
    pages = {
        "projects": "/projects",
        "project": f"/projects/{project}",
        "queue, least confident first": f"/projects/{project}/queue?strategy=least-confident",
        "queue, margin": f"/projects/{project}/queue?strategy=margin",
        "queue, by chance": f"/projects/{project}/queue?strategy=random",
        "queue, unlike what is decided": f"/projects/{project}/queue?strategy=diversity",
        "statistics": f"/projects/{project}/stats",
        "documents, first page": f"/projects/{project}/documents",
        "documents, finished": f"/projects/{project}/documents?state=finished",
        "one document": f"/documents/{document}",
        "its history": f"/documents/{document}/history",
        "its candidates": f"/documents/{document}/candidates?start=0&end=4",
    }
    found = {}
    for what, path in pages.items():
        first = timed(lambda: client.ask("GET", path))[1]
        again = [timed(lambda: client.ask("GET", path))[1] for _ in range(7)]
        found[what] = {"first_s": first, "median_s": statistics.median(again), "max_s": max(again)}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="target/release/canonym")
    parser.add_argument("--kb", help="a knowledge base; the starter where none is given")
    parser.add_argument("--model", default="default")
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=120, help="of each session")
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--decisions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="a file for the figures as JSON")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    folder = Path(tempfile.mkdtemp(prefix="canonym-load-"))
    figures = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg(),
               "arguments": vars(arguments)}

    def say(what, value):
        figures[what] = value
        print(f"{what}: {json.dumps(value)}", flush=True)

    server = None
    try:
        add = [arguments.program, "serve", "--data", str(folder / "data"), "--add-admin", "admin"]
        subprocess.run(add, check=True, env=os.environ | {"CANONYM_PASSWORD": PASSWORD}, stderr=subprocess.DEVNULL)
        server = Server(arguments, folder)
        logins = Times()
        admin = Client(server.address)
        admin.login("admin")
        people = []
        for row in range(arguments.people):
            person = Client(server.address, logins)
            person.name = f"person{row}"
            person.id = admin.ask("POST", "/people", {"name": person.name, "password": PASSWORD, "role": "annotator"})["id"]
            people.append(person)
        side_by_side(len(people), people, lambda _, person: person.login(person.name))
        say("everybody logs in at once", logins.report())
        concepts = []
        for name in NAMES:
            concepts += [hit["id"] for hit in admin.ask("GET", f"/kb/search?q={name}&top_k=2")["results"]]

        texts = [abstract(chance) for _ in range(arguments.documents)]
        lines = "".join(json.dumps({"id": str(row), "text": text}) + "\n" for row, text in enumerate(texts)).encode()
        project = admin.ask("POST", "/projects", {"name": "Large"})["id"]
        for person in people:
            admin.ask("POST", f"/projects/{project}/people", {"id": person.id})
        report, seconds = timed(lambda: admin.ask("POST", f"/projects/{project}/import?annotations=gold&filename=all.jsonl", lines))
        say("import in one file", {"documents": report["n_documents"], "mib": round(len(lines) / 2**20, 1), "seconds": seconds})
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for row, text in enumerate(texts):
                start, end = spans_of(text)[0]
                archive.writestr(f"{row % 10}/{row}.txt", text)
                archive.writestr(f"{row % 10}/{row}.ann", f"T1\tSign {start} {end}\t{text[start:end]}\n")
        other = admin.ask("POST", "/projects", {"name": "Archive"})["id"]
        path = f"/projects/{other}/import?annotations=gold&filename=all.zip"
        report, seconds = timed(lambda: admin.ask("POST", path, packed.getvalue()))
        say("import of brat in an archive", {"documents": report["n_documents"], "mib": round(len(packed.getvalue()) / 2**20, 1),
                                             "seconds": seconds})
        parts = lines.splitlines(keepends=True)
        third = admin.ask("POST", "/projects", {"name": "Parts"})["id"]
        started = time.perf_counter()
        for at in range(0, len(parts), 1000):
            body = gzip.compress(b"".join(parts[at:at + 1000]))
            admin.ask("POST", f"/projects/{third}/import?annotations=gold&filename=part.jsonl.gz", body)
        say("import in packed files of 1,000", {"seconds": round(time.perf_counter() - started, 3)})

        say("predictions in all documents", {"seconds": timed(lambda: predict(admin, project))[1]})
        rows, seconds = timed(lambda: decide_much(server.address, people, project, concepts, arguments.decisions))
        n_decisions = admin.ask("GET", f"/projects/{project}")["n_decisions"]
        say("decisions", {"n": n_decisions, "seconds": seconds, "a second": round(n_decisions / seconds),
                          "file_mib": round(sum(file.stat().st_size for file in (folder / "data").glob("canonym.sqlite*")) / 2**20)})
        say("memory before the restart, MiB", {"now": server.memory_mib(), "peak": server.memory_mib(peak=True)})

        server.stop()
        server = Server(arguments, folder)
        for client in [admin, *people]:
            client.address, client.connection = server.address, None
        say("start with this project", {"seconds": server.seconds_to_start})
        say("pages of the large project", open_times(admin, project, rows[len(rows) // 2]))

        say("by hand on the large project, s", by_hand(admin, project, rows[len(rows) // 2]))

        say("people at work", session(people, project, arguments.seconds, concepts))
        job = lambda: admin.ask("POST", f"/projects/{other}/jobs", {"kind": "predict"})
        say("people at work beside a prediction", session(people, project, arguments.seconds, concepts, job))
        say("memory at the end, MiB", {"now": server.memory_mib(), "peak": server.memory_mib(peak=True)})
    finally:
        if server:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if arguments.out:
        Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
        Path(arguments.out).write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
