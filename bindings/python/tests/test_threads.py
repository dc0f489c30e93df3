"""Work releases the interpreter lock, notices interrupts and survives forks."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import canonym


def test_other_threads_run_meanwhile(starter):
    texts = ["Asthma, fever and chronic kidney disease after surgery. " * 40] * 256
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    clock = threading.Thread(target=tick)
    clock.start()
    started = time.perf_counter()
    starter.annotate(texts)
    ended = time.perf_counter()
    done.set()
    clock.join()
    # With the lock held there would be none between the end of the conversion and the end of the batch.
    middle = [one for one in ticks if started + (ended - started) * 0.4 < one < started + (ended - started) * 0.9]
    assert len(middle) > 3


def test_several_threads_share_a_system(lexical):
    results = []

    def annotate():
        results.append(lexical.annotate(["dry cough and night sweats"] * 50).to_jsonl())

    workers = [threading.Thread(target=annotate) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(set(results)) == 1 and len(results) == 4


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_an_interrupt_ends_the_work():
    program = """
        import canonym, time
        system = canonym.System.open("lexical")
        texts = ["Asthma, fever and chronic kidney disease after surgery. " * 40] * 100_000
        print("ready", flush=True)
        try:
            system.annotate(texts)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        started = time.perf_counter()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert time.perf_counter() - started < 20
    assert process.returncode == 0


def _ids(text):
    return [mention.id for mention in canonym.link(text, model="lexical")]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_have_their_own_threads(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} on this system")
    expected = _ids("She has asthma.")
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_ids, ["She has asthma."] * 4) == [expected] * 4


def test_the_number_of_threads_does_not_change_results(lexical):
    texts = ["dry cough", "night sweats", "elbow"] * 20
    results = []
    for n_threads in (1, 3, 0):
        canonym.set_threads(n_threads)
        results.append(lexical.annotate(texts).to_jsonl())
    assert len(set(results)) == 1
    with pytest.raises(canonym.UsageError, match="invalid number of threads: 5000"):
        canonym.set_threads(5000)
