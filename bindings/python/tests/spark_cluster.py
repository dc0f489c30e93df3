"""A standalone Spark cluster on loopback: a master and workers, each a process."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import json
from pathlib import Path

import pyspark

SPARK_CLASS = Path(pyspark.__file__).parent / "bin/spark-class"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Cluster:
    """One master, and workers of one core each."""

    def __init__(self, folder, n_workers, memory="1500m"):
        self.folder, self.memory = Path(folder), memory
        self.port, self.web_port = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{self.port}"
        self.workers = []
        # Scripts of Spark find no other installation, and workers the interpreter of this environment.
        self.environment = {
            **os.environ,
            "SPARK_HOME": str(SPARK_CLASS.parent.parent),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        try:
            self.master = self._start(
                "master", "org.apache.spark.deploy.master.Master", "--port", self.port, "--webui-port", self.web_port
            )
            self._wait(lambda: self.state()["status"] == "ALIVE")
            for _ in range(n_workers):
                self.add_worker()
        except BaseException:
            self.stop()
            raise

    def _start(self, name, kind, *arguments):
        command = [SPARK_CLASS, kind, "--host", "127.0.0.1", *arguments]
        with open(self.folder / f"{name}.log", "wb") as log:
            # A process group of its own, so that its executors end with it.
            return subprocess.Popen(
                [str(part) for part in command], stdout=log, stderr=log, env=self.environment, start_new_session=True
            )

    def add_worker(self):
        """Starts a worker and waits until the master knows it."""
        name = f"worker-{len(self.workers)}"
        (self.folder / name).mkdir()
        worker = self._start(
            name,
            "org.apache.spark.deploy.worker.Worker",
            *("--cores", 1, "--memory", self.memory, "--work-dir", self.folder / name, "--webui-port", free_port(), self.url),
        )
        self.workers.append(worker)
        n_alive = sum(worker.poll() is None for worker in self.workers)
        self._wait(lambda: sum(one["state"] == "ALIVE" for one in self.state()["workers"]) >= n_alive)

    def state(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.web_port}/json/", timeout=5) as answer:
            return json.load(answer)

    def _wait(self, is_done, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if is_done():
                    return
            except OSError:
                pass
            time.sleep(0.2)
        logs = "\n".join(f"{log.name}:\n{log.read_text()[-2000:]}" for log in self.folder.glob("*.log"))
        raise TimeoutError(f"the cluster did not start\n{logs}")

    def kill_worker(self, at):
        """Ends a worker, its executors and their Python processes at once, as a machine that fails does."""
        for process in descendants(self.workers[at].pid):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.workers[at].wait()

    def stop(self):
        for at in range(len(self.workers)):
            self.kill_worker(at)
        if getattr(self, "master", None):
            for process in descendants(self.master.pid):
                os.kill(process, signal.SIGKILL)
            self.master.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def descendants(process):
    """A process and everything that it started, which is not in the same process group."""
    children = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            children.setdefault(parent, []).append(int(folder.name))
    found = [process]
    for one in found:
        found.extend(children.get(one, []))
    return found
