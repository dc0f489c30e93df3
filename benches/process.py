"""Runs a command and measures its time and peak memory."""

import hashlib
import os
import statistics
import subprocess
import tempfile
import time


class Run:
    """Cost of one run of a command: wall seconds, CPU seconds of all cores, peak memory in bytes."""

    def __init__(self, seconds, cpu_seconds, peak_bytes):
        self.seconds = seconds
        self.cpu_seconds = cpu_seconds
        self.peak_bytes = peak_bytes


def run(command, out=None):
    """Runs `command` with its output in the file `out`; exits if the command fails.

    The peak memory is that reported by the kernel. It includes touched pages of mapped files. It is never below that
    of this script, which is forked, so the script holds no large data.
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
    """Calls each of `runs` `n` times, interleaved so that load on the machine affects all; returns a list of costs for each."""
    costs = [[] for _ in runs]
    for _ in range(n):
        for made, one in zip(costs, runs):
            made.append(one())
    return costs


def spread(values):
    """Median, minimum, maximum and number of values."""
    values = list(values)
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)}


def seconds(runs):
    """Spread of the wall time."""
    return spread(run.seconds for run in runs)


def peak(runs):
    """Maximum peak memory over all runs, in bytes."""
    return max(run.peak_bytes for run in runs)


def rate(n, times):
    """Spread of the rate of `n` items per second, from the spread of seconds."""
    return {"median": n / times["median"], "min": n / times["max"], "max": n / times["min"], "n": times["n"]}


def sha256(path):
    """SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def shown(command):
    """A command as a user would type it."""
    return " ".join(str(word) if " " not in str(word) else f'"{word}"' for word in command)
