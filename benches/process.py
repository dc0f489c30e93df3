"""Runs a command and tells how long it took and how much memory it had at most."""

import hashlib
import os
import statistics
import subprocess
import tempfile
import time


class Run:
    """What one run of a command cost: seconds on the clock, seconds of all cores, bytes of memory at most."""

    def __init__(self, seconds, cpu_seconds, peak_bytes):
        self.seconds = seconds
        self.cpu_seconds = cpu_seconds
        self.peak_bytes = peak_bytes


def run(command, out=None):
    """Runs `command` with its output in the file `out`; an exit status other than 0 ends this program.

    The peak is that of the kernel for the process. It counts the pages of a mapped file that were touched, and is
    never below that of this script, which is forked, so nothing large is held here.
    """
    target = open(out, "wb") if out else subprocess.DEVNULL
    with tempfile.TemporaryFile() as messages:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=target, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if out:
            target.close()
        if process.returncode != 0:
            messages.seek(0)
            raise SystemExit(f"{shown(command)} failed:\n{messages.read().decode(errors='replace')}")
    unit = 1024 if os.uname().sysname == "Linux" else 1
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def repeat(n, *runs):
    """Calls each of `runs` `n` times, in turns so that a slow moment hits all of them; a list of runs for each."""
    costs = [[] for _ in runs]
    for _ in range(n):
        for made, one in zip(costs, runs):
            made.append(one())
    return costs


def spread(values):
    """Median, least and greatest."""
    values = list(values)
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def seconds(runs):
    """The spread of the time on the clock."""
    return spread(run.seconds for run in runs)


def peak(runs):
    """The greatest memory of any run, in bytes."""
    return max(run.peak_bytes for run in runs)


def rate(n, times):
    """The spread of `n` a second, from the spread of seconds; the longest time gives the lowest rate."""
    return {"median": n / times["median"], "min": n / times["max"], "max": n / times["min"], "n": times["n"]}


def sha256(path):
    """The hash of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def shown(command):
    """A command as a user would type it."""
    return " ".join(str(word) if " " not in str(word) else f'"{word}"' for word in command)
