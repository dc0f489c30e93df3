"""Attacks local servers that it starts itself, and reports which defences held.

    python3 benches/attack.py --binary target/release/canonym [--rounds 10] [--report FILE.json]

Each attack starts its own server on a free loopback port with a temporary data folder, and ends it by its process id. Nothing else on the
network is contacted, and each part is bounded by counts. The exit status is 1 if anything failed. docs/security.md lists the guarantees.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PASSWORD = "correct horse"
BINARY = None
RESULTS = []


class Server:
    """A server on a data folder, with methods for requests."""

    def __init__(self, data, *arguments, before=None):
        command = [BINARY, "serve", "--model", "lexical", "--bind", "127.0.0.1:0", "--data", data, *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, preexec_fn=before)
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            if "http://" in line:
                break
        threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True).start()
        self.port = int("".join(self.said).split("http://127.0.0.1:")[1].split("/")[0]) if self.said and "http://" in self.said[-1] else None

    def ask(self, method, path, body=None, headers=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        body = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection.request(method, path, body, {"X-Canonym": "1", **(headers or {})})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content, answer

    def json(self, method, path, body=None, headers=None):
        status, content, _ = self.ask(method, "/api/v1" + path, body, headers)
        return status, json.loads(content) if content else None

    def login(self, name, password=PASSWORD):
        status, _, answer = self.ask("POST", "/api/v1/login", {"name": name, "password": password})
        cookies = [value.split(";")[0] for key, value in answer.getheaders() if key.lower() == "set-cookie"]
        return status, {"Cookie": "; ".join(cookies)}

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(timeout=30)


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="canonym-attack-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def server(*arguments):
    with folder() as place:
        it = Server(os.path.join(place, "data"), *arguments)
        it.data = os.path.join(place, "data")
        try:
            yield it
        finally:
            if it.process.poll() is None:
                it.end(signal.SIGKILL)


def held(what, is_so, told=""):
    RESULTS.append({"what": what, "held": bool(is_so), "told": str(told)})
    print(("held  " if is_so else "FELL  ") + what + (f": {told}" if told != "" else ""), flush=True)


def project(it, n=3, headers=None):
    """Creates a project with `n` documents; returns its id and theirs."""
    number = it.json("POST", "/projects", {"name": "Attacked"}, headers)[1]["id"]
    lines = "".join(json.dumps({"id": str(row), "text": f"Patient {row} took famotidine for breast cancer."}) + "\n" for row in range(n))
    it.ask("POST", f"/api/v1/projects/{number}/import?format=jsonl", lines, headers)
    rows = it.json("GET", f"/projects/{number}/documents?limit=500", None, headers)[1]["documents"]
    return number, [row["id"] for row in rows]


def add_admin(data, name, password=PASSWORD):
    command = [BINARY, "serve", "--data", data, "--add-admin", name]
    return subprocess.run(command, input=password, text=True, capture_output=True).returncode


def kills(rounds):
    """Acknowledged decisions survive kills; a backup is made between them."""
    with folder() as place:
        data, acknowledged = os.path.join(place, "data"), []
        it = Server(data)
        _, ids = project(it, 4)
        for turn in range(rounds):
            lock, stop = threading.Lock(), threading.Event()

            def decide(document, turn=turn, it=it):
                for row in range(10_000):
                    body = {"client_id": f"{turn}-{document}-{row}", "decisions": [{"kind": "add", "spans": [[0, 7]]}]}
                    try:
                        status, answer = it.json("POST", f"/documents/{document}/decisions", body)
                    except (OSError, http.client.HTTPException, ValueError):
                        return
                    if status == 200:
                        with lock:
                            acknowledged.append((document, body, answer))
                    if stop.is_set():
                        return

            threads = [threading.Thread(target=decide, args=(document,)) for document in ids]
            [thread.start() for thread in threads]
            time.sleep(random.uniform(0.1, 0.6))
            it.end(signal.SIGKILL)
            stop.set()
            [thread.join() for thread in threads]
            it = Server(data)
        sample = random.sample(acknowledged, min(len(acknowledged), 300))
        lost = sum(it.json("POST", f"/documents/{document}/decisions", body)[1] != answer for document, body, answer in sample)
        held(f"acknowledged decisions are there after {rounds} kills", acknowledged and lost == 0, f"{lost} of {len(sample)} lost, {len(acknowledged)} made")
        copy = os.path.join(place, "copy")
        made = subprocess.run([BINARY, "backup", "--data", data, "--out", copy], capture_output=True, text=True)
        busy = subprocess.run([BINARY, "doctor", "--data", data], capture_output=True, text=True)
        held("a copy is made while the server runs, and examining waits until it ends", made.returncode == 0 and busy.returncode == 1, made.stderr.strip())
        it.end()
        found = [subprocess.run([BINARY, "doctor", "--data", each], capture_output=True, text=True) for each in (data, copy)]
        held("folder and copy are in order", all(one.returncode == 0 for one in found), "".join(one.stdout for one in found))


def logins():
    with server() as it:
        project(it)
        held("the first admin is added beside the server", add_admin(it.data, "ada") == 0)
        held("a running server is closed by it", it.json("GET", "/projects")[0] == 401)
        # The first password hashes allocate memory that later ones reuse.
        for row in range(25):
            it.ask("POST", "/api/v1/login", {"name": f"first {row}", "password": "wrong horse"})
        before = it.memory()
        statuses = {}
        for row in range(40):
            try:
                status = it.ask("POST", "/api/v1/login", {"name": f"{row}" + "x" * 900_000, "password": "x"})[0]
            except OSError:
                status = "cut off"
            statuses[status] = statuses.get(status, 0) + 1
        for row in range(400):
            status = it.ask("POST", "/api/v1/login", {"name": f"name {row}", "password": "wrong horse"})[0]
            statuses[status] = statuses.get(status, 0) + 1
        grown = it.memory() - before
        held("a flood of names takes no memory and no attempts of others", grown < 60 and statuses.get(401, 0) <= 40, f"{grown} MiB more, {statuses}")
        # The address has used up its attempts, which refill within seconds.
        status = None
        for _ in range(40):
            status, ada = it.login("ada")
            if status == 200:
                break
            time.sleep(1)
        held("the right login passes soon after a flood from the same address", status == 200, status)
        for _ in range(30):
            it.ask("POST", "/api/v1/login", {"name": "ada", "password": "wrong horse"})
        known = it.ask("POST", "/api/v1/login", {"name": "ada", "password": PASSWORD}, ada)[0]
        held("a browser that is known logs in during the flood", known == 200, known)
        stream = http.client.HTTPConnection("127.0.0.1", it.port, timeout=30)
        stream.request("GET", "/api/v1/events", headers=ada)
        answer = stream.getresponse()
        answer.readline()
        token = it.json("POST", "/tokens", {"name": "script"}, ada)[1]["token"]
        add_admin(it.data, "ada", "another horse")
        after = [it.json("GET", "/projects", None, headers)[0] for headers in (ada, {"Authorization": f"Bearer {token}"})]
        held("a new password ends logins and tokens", after == [401, 401], after)
        try:
            rest = answer.read()
            held("and streams of events", b"event:" not in rest)
        except TimeoutError:
            held("and streams of events", False, "it goes on")


def roles():
    """Requests without login, and those beyond the role of an annotator or curator, are rejected at every endpoint."""
    with server() as it:
        number, ids = project(it)
        add_admin(it.data, "ada")
        ada = it.login("ada")[1]
        for name, role in (("cyd", "curator"), ("ann", "annotator")):
            person = it.json("POST", "/people", {"name": name, "password": PASSWORD, "role": role}, ada)[1]["id"]
            it.json("POST", f"/projects/{number}/people", {"id": person}, ada)
        ann, cyd = it.login("ann")[1], it.login("cyd")[1]
        paths = it.json("GET", "/openapi.json")[1]["paths"]
        is_open = {"/about", "/login", "/logout", "/openapi.json", "/health", "/ready", "/metrics"}
        let_in = []
        n = 0
        for path, methods in paths.items():
            short = path.removeprefix("/api/v1")
            filled = short.replace("{p}", str(number)).replace("{d}", str(ids[0]))
            for each in ("{j}", "{m}", "{t}", "{id}"):
                filled = filled.replace(each, "1")
            for method in methods:
                if method.upper() not in ("GET", "POST", "PATCH", "DELETE") or short in is_open:
                    continue
                n += 1
                if it.ask(method.upper(), "/api/v1" + filled, "{}")[0] != 401:
                    let_in.append(f"nobody {method} {short}")
        curators = [("POST", "/projects", {"name": "x"}), ("POST", f"/projects/{number}/import?format=text", "x"), ("POST", f"/projects/{number}/jobs", {"kind": "predict"})]
        admins = [("POST", "/people", {"name": "eve", "password": PASSWORD, "role": "admin"}), ("PATCH", "/people/1", {"role": "admin"})]
        for who, headers, asks in (("ann", ann, curators + admins), ("cyd", cyd, admins)):
            for method, path, body in asks:
                n += 1
                if it.ask(method, "/api/v1" + path, body if isinstance(body, str) else json.dumps(body), headers)[0] != 403:
                    let_in.append(f"{who} {method} {path}")
        foreign = it.ask("POST", "/api/v1/projects", {"name": "x"}, {**ada, "Origin": "https://evil.example"})[0]
        rebound = it.ask("GET", "/api/v1/about", None, {"Host": "evil.example"})[0]
        held(f"{n} role checks", not let_in, let_in or "")
        held("other origins and other names of this machine are refused", (foreign, rebound) == (403, 403), (foreign, rebound))


def members():
    """Non-members cannot tell that a project exists, and decisions are not overwritten without a version check."""
    with server() as it:
        add_admin(it.data, "ada")
        ada = it.login("ada")[1]
        for name, role in (("cyd", "curator"), ("ann", "annotator"), ("eve", "curator")):
            it.json("POST", "/people", {"name": name, "password": PASSWORD, "role": role}, ada)
        cyd, ann, eve = (it.login(name)[1] for name in ("cyd", "ann", "eve"))
        number, ids = project(it, 3, cyd)
        numbers = {"{p}": number, "{d}": ids[0], "{j}": it.json("POST", f"/projects/{number}/jobs", {"kind": "predict"}, cyd)[1]["id"]}
        paths = it.json("GET", "/openapi.json")[1]["paths"]
        let_in, n = [], 0
        for path, methods in paths.items():
            if not any(name in path for name in numbers):
                continue
            short = path.removeprefix("/api/v1").replace("{m}", "1").replace("{id}", "1")
            there, nowhere = short, short
            for name, value in numbers.items():
                there, nowhere = there.replace(name, str(value)), nowhere.replace(name, "9999")
            for method in methods:
                if method.upper() in ("GET", "POST", "PATCH", "DELETE"):
                    n += 1
                    statuses = [it.ask(method.upper(), "/api/v1" + each, "{}", eve)[0] for each in (there, nowhere)]
                    if statuses != [404, 404]:
                        let_in.append(f"{method} {short}: {statuses}")
        for path in (f"/models?project={number}", f"/events?project={number}", f"/projects/%3{number}", f"/projects/+{number}"):
            n += 1
            if it.ask("GET", "/api/v1" + path, None, eve)[0] != 404:
                let_in.append(path)
        for path, body in (("/link", {"text": "x"}), ("/map", {"names": ["x"]})):
            n += 1
            if it.ask("POST", "/api/v1" + path, {**body, "project": number}, eve)[0] != 404:
                let_in.append(path)
        held(f"{n} ways into a project of others", not let_in, let_in or "")
        held("nor is it listed", it.json("GET", "/projects", None, eve)[1]["projects"] == [])
        it.json("POST", f"/projects/{number}/people", {"id": it.json("GET", "/about", None, ann)[1]["user"]["id"]}, cyd)
        line = json.dumps({"id": "shared", "text": "Patient took famotidine.", "annotations": [{"spans": [[13, 23]]}]})
        it.ask("POST", f"/api/v1/projects/{number}/import?format=jsonl&annotations=gold", line, cyd)
        shared = it.json("GET", f"/projects/{number}/documents", None, cyd)[1]["documents"][-1]["id"]
        seen = it.json("GET", f"/documents/{shared}", None, ann)[1]
        mark = seen["marks"][0]["id"]
        first = it.json("POST", f"/documents/{shared}/decisions", {"version": seen["version"], "decisions": [{"kind": "nil", "mark": mark}]}, cyd)[0]
        later = {"decisions": [{"kind": "reject", "mark": mark}]}
        blind = it.json("POST", f"/documents/{shared}/decisions", later, ann)[0]
        status, answer = it.json("POST", f"/documents/{shared}/decisions", {**later, "version": seen["version"]}, ann)
        held("nobody overwrites a decision unseen", (first, blind, status, "document" in answer) == (200, 400, 409, True), (first, blind, status))


def costs():
    with server() as it:
        number, _ = project(it)
        before = it.memory()
        worst = it.ask("POST", "/api/v1/link", {"text": "breast cancer " * 500_000}, timeout=300)
        held("a text of 7 MB is refused", worst[0] == 413, worst[0])
        texts = [{"text": "breast cancer " * 40_000}] * 4
        status, content, _ = it.ask("POST", "/api/v1/link", {"documents": texts, "top_k": 20}, timeout=300)
        grown = it.memory() - before
        held("an answer is bounded, and so is the memory for it", status in (200, 413) and len(content) <= 64 << 20 and grown < 600, f"{status}, {len(content) >> 20} MiB, {grown} MiB more")
        lines = []
        for row in range(200):
            marks = [{"spans": [[5 * at, 5 * at + 4]], "candidates": [{"id": "X:1", "name": "ache", "score": 0.5}]} for at in range(1000)]
            lines.append(json.dumps({"id": f"many {row}", "text": "ache " * 1000, "annotations": marks}))
        body = "\n".join(lines)
        peak, done = [before], threading.Event()

        def watch():
            while not done.wait(0.2):
                peak.append(it.memory())

        watcher = threading.Thread(target=watch)
        watcher.start()
        status = it.ask("POST", f"/api/v1/projects/{number}/import?format=jsonl", body, timeout=300)[0]
        done.set()
        watcher.join()
        log = os.path.getsize(os.path.join(it.data, "canonym.sqlite-wal")) >> 20
        grown = max(peak) - before
        held("an import of 200,000 marks takes little memory, and the log is emptied", status == 200 and grown < 400 and log < 64, f"{status}, {grown} MiB more for {len(body) >> 20} MiB, log {log} MiB")


def changed_knowledge_base():
    """A large knowledge base is truncated while the server uses it."""
    with folder() as place:
        source, kb = os.path.join(place, "shapes.tsv"), os.path.join(place, "shapes.kb")
        with open(source, "w") as file:
            # Definitions are not indexed, so a large file is built quickly.
            for row in range(3000):
                file.write(f"X:{row}\tshape number {row}\t\t\t{('word' + str(row) + ' ') * 12_000}\n")
        built = subprocess.run([BINARY, "kb", "build", "--format", "tsv", source, "--out", kb], capture_output=True, text=True)
        size = os.path.getsize(kb) if built.returncode == 0 else 0
        held("a knowledge base above 256 MiB is built", size > 256 << 20, f"{size >> 20} MiB {built.stderr[-200:] if not size else ''}")
        if size <= 256 << 20:
            return
        at = open(kb, "rb").read().find(b"word7 ")
        with open(kb, "r+b") as file:
            file.seek(at)
            file.write(b"Word")
        run = subprocess.run([BINARY, "kb", "search", kb, "shape number 7"], capture_output=True, text=True)
        held("one changed letter of it is an error", run.returncode == 1 and "damaged" in run.stderr, run.stderr.strip()[:120])
        with open(kb, "r+b") as file:
            file.seek(at)
            file.write(b"word")
        it = Server(os.path.join(place, "data"), "--kb", kb)
        fine = it.json("POST", "/link", {"text": "shape number 7"})[0]
        os.truncate(kb, 100 << 20)
        statuses = [it.ask(method, path, body)[0] for method, path, body in (("POST", "/api/v1/link", {"text": "shape number 8"}), ("GET", "/api/v1/kb/search?q=shape", None), ("GET", "/ready", None))]
        held("cut off under a server it is an error, and the server goes on", (fine, *statuses) == (200, 503, 503, 503) and it.ask("GET", "/health")[0] == 200, (fine, *statuses))
        it.end(signal.SIGKILL)


def slow_clients():
    with server() as it:
        number, _ = project(it)
        half = []
        for _ in range(100):
            stream = socket.create_connection(("127.0.0.1", it.port))
            stream.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
            half.append(stream)
        head = f"POST /api/v1/projects/{number}/import?format=text HTTP/1.1\r\nHost: localhost\r\nX-Canonym: 1\r\nContent-Length: 1000000\r\n\r\nPain"
        for _ in range(8):
            stream = socket.create_connection(("127.0.0.1", it.port))
            stream.sendall(head.encode())
            half.append(stream)
        status = it.ask("POST", f"/api/v1/projects/{number}/import?format=text&filename=other.txt", "Pain.")[0]
        held("slow uploads and half requests keep nobody from importing", status == 200, status)
        ended = 0
        for stream in half:
            stream.settimeout(40)
            try:
                while stream.recv(65536):
                    pass
                ended += 1
            except TimeoutError:
                pass
            except OSError:
                ended += 1
            stream.close()
        held("who does not finish asking is cut off", ended == len(half), f"{ended} of {len(half)}")


def hostile_input():
    with server() as it:
        number, ids = project(it)
        n_marks = 4000
        text = "ache " * n_marks
        marks = [{"spans": [[5 * row, 5 * row + 4]]} for row in range(n_marks)]
        line = json.dumps({"id": "many", "text": text, "annotations": marks})
        status, report = it.json("POST", f"/projects/{number}/import?format=jsonl", line)
        many = it.json("GET", f"/projects/{number}/documents?limit=500")[1]["documents"][-1]["id"]
        status, document = it.json("GET", f"/documents/{many}")
        held(f"a document with {n_marks} marks side by side is shown", status == 200 and len(document["marks"]) == n_marks, status)
        rng, worst = random.Random(7), []
        for row in range(300):
            body = bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
            path = rng.choice([f"/documents/{ids[0]}/decisions", "/link", "/map", "/projects", f"/projects/{number}/import", "/login", f"/projects/{number}/identical-mentions"])
            status = it.ask("POST", "/api/v1" + path, body)[0]
            if status >= 500:
                worst.append((status, path, body))
        held("300 requests of noise are refused", not worst, worst[:3] or "")
        for row in range(200):
            it.ask(f"M{row}", "/health")
        held("methods that are made up are counted as one", b"M19" not in it.ask("GET", "/metrics")[1])


def folder_of_data():
    with server() as it:
        _, ids = project(it)
        modes = {name: oct(os.stat(os.path.join(it.data, name)).st_mode & 0o777) for name in (".", "canonym.sqlite")}
        held("folder and database are closed to others", list(modes.values()) == ["0o700", "0o600"], modes)
        second = subprocess.run([BINARY, "serve", "--model", "lexical", "--bind", "127.0.0.1:0", "--data", it.data], capture_output=True, text=True, timeout=60)
        held("a second server is refused", second.returncode != 0 and "another server" in second.stderr, second.stderr.strip().splitlines()[:2])
        os.rename(os.path.join(it.data, "canonym.sqlite"), os.path.join(it.data, "gone"))
        body = {"decisions": [{"kind": "add", "spans": [[0, 7]]}]}
        time.sleep(6)
        statuses = it.ask("POST", f"/api/v1/documents/{ids[0]}/decisions", body)[0], it.ask("GET", "/ready")[0]
        held("without its database nothing is acknowledged, and it is not ready", statuses == (503, 503), statuses)
    with folder() as place:
        data = os.path.join(place, "data")
        it = Server(data)
        project(it, 200)
        it.end()
        path = os.path.join(data, "canonym.sqlite")
        refused = 0
        tries = 20
        whole = open(path, "rb").read()
        for row in range(tries):
            at = 4096 * random.Random(row).randrange(1, len(whole) // 4096)
            with open(path, "r+b") as file:
                file.seek(at)
                file.write(b"\xff" * 64)
            it = Server(data)
            refused += it.port is None
            if it.port:
                it.end()
            with open(path, "wb") as file:
                file.write(whole)
        held("a database with a damaged page is not opened", refused == tries, f"{refused} of {tries}")
        os.chmod(data, 0o755)
        it = Server(data)
        held("a folder that others may read is refused", it.port is None)
        if it.port:
            it.end()


def limit_of_files():
    with folder() as place:
        data = os.path.join(place, "data")
        it = Server(data)
        number, _ = project(it, 10)
        it.end()
        size = os.path.getsize(os.path.join(data, "canonym.sqlite"))
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1_000_000, size + 1_000_000))
        it = Server(data, before=limit)
        lines = "".join(json.dumps({"id": f"big {row}", "text": "pain " * 20_000}) + "\n" for row in range(40))
        status = it.ask("POST", f"/api/v1/projects/{number}/import?format=jsonl", lines)[0]
        alive = it.process.poll() is None and it.ask("GET", "/health")[0] == 200
        held("a limit on the size of files is an error and no end of the program", status in (500, 503) and alive, status)
        held("and reading goes on", alive and it.json("GET", f"/projects/{number}")[1]["n_documents"] == 10)
        if alive:
            it.end()


def damaged_knowledge_bases():
    with folder() as place:
        rows = "id\tname\n" + "".join(f"X:{row}\tshape number {row}\n" for row in range(500))
        source, kb = os.path.join(place, "shapes.tsv"), os.path.join(place, "shapes.kb")
        with open(source, "w") as file:
            file.write(rows)
        subprocess.run([BINARY, "kb", "build", source, "--out", kb], check=True, capture_output=True)
        whole, rng, bad = open(kb, "rb").read(), random.Random(11), []
        for row in range(100):
            damaged = bytearray(whole)
            if row % 2:
                damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
            else:
                damaged = damaged[: rng.randrange(len(damaged))]
            path = os.path.join(place, "damaged.kb")
            with open(path, "wb") as file:
                file.write(damaged)
            run = subprocess.run([BINARY, "kb", "search", path, "shape number 7"], capture_output=True, text=True, timeout=60)
            if run.returncode < 0 or "panicked" in run.stderr:
                bad.append(row)
        held("100 damaged knowledge bases end in an error or in padding", not bad, bad or "")


def main():
    global BINARY
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default="target/release/canonym")
    parser.add_argument("--rounds", type=int, default=10, help="kills of a server while people decide")
    parser.add_argument("--report")
    arguments = parser.parse_args()
    BINARY = os.path.abspath(arguments.binary)
    started = time.time()
    for attack in (lambda: kills(arguments.rounds), logins, roles, members, costs, changed_knowledge_base, slow_clients, hostile_input, folder_of_data, limit_of_files, damaged_knowledge_bases):
        try:
            attack()
        except Exception as error:  # A failure of the attack itself is reported, too; the others continue.
            held(f"{getattr(attack, '__name__', 'kills')} ran to its end", False, repr(error))
    fell = [result for result in RESULTS if not result["held"]]
    print(f"{len(RESULTS) - len(fell)} of {len(RESULTS)} held, in {time.time() - started:.0f} s")
    if arguments.report:
        with open(arguments.report, "w") as file:
            json.dump(RESULTS, file, indent=1)
    sys.exit(1 if fell else 0)


if __name__ == "__main__":
    main()
