"""CPU seconds per training step of the dual encoder, collective and single-mention: `python3 benches/epoch_cost.py PROGRAM`.

Needs the checkpoint all-MiniLM-L6-v2 in the folder CANONYM_MODELS and BC5CDR in CANONYM_DATA. CPU time of the process is
read at two log entries, so other load has little effect. Linux only.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

ROUND = 20
EXPERIMENTS = {"bc5cdr-dual-encoder": (544, 2, 4), "bc5cdr-dual-encoder-single": (9385, 16, 3)}


def cpu_seconds(process):
    fields = open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(program, name, n_rounds):
    """CPU seconds per step after the first round."""
    out = tempfile.mkdtemp()
    command = [program, "--quiet", "train", f"experiments/{name}.toml", "--out", out]
    command += ["--set", f"run.steps_per_round={ROUND}", "--set", "run.evaluate_every=0"]
    running = subprocess.Popen(command)
    seen = {}
    try:
        while n_rounds not in seen:
            if running.poll() is not None:
                sys.exit(f"the training of {name} ended early")
            log = os.path.join(out, "log.jsonl")
            n_ended = sum(1 for _ in open(log)) if os.path.exists(log) else 0
            for wanted in (1, n_rounds):
                if n_ended >= wanted and wanted not in seen:
                    seen[wanted] = (n_ended, cpu_seconds(running.pid))
            time.sleep(0.05)
    finally:
        running.kill()
        running.wait()
        shutil.rmtree(out)
    (first, before), (last, after) = seen[1], seen[n_rounds]
    return (after - before) / (ROUND * (last - first))


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/canonym"
    for _ in range(2):
        for name, (n_windows, batch, n_rounds) in EXPERIMENTS.items():
            step = measure(program, name, n_rounds)
            print(f"{name}: {step:.2f} CPU seconds a step, {step * -(-n_windows // batch):.0f} an epoch", flush=True)


main()
