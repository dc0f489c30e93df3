#!/usr/bin/env python3
"""Times a BERT with the same weights in PyTorch and in canonym, in turns, and prints a table.

    VENV/bin/python benches/peers/bert_reference.py FOLDER
    cargo build --release -p canonym-neural --example bert_speed
    VENV/bin/python benches/peers/bert_speed.py FOLDER target/release/examples/bert_speed [THREADS [ROUNDS]]

Needs torch and transformers, as bert_reference.py does. PyTorch runs without gradients and with its fused attention; a case `train-…` is a
forward and a backward pass with dropout. All sequences of a case are of one length, so PyTorch pads nothing. Each round measures each case
in both programs, one after the other; a figure is the median of all repetitions, a ratio above 1 says that canonym is faster.
"""

import json
import statistics
import subprocess
import sys
import time

import torch
from transformers import AutoModel

CASES = ["32x128", "128x16", "1x8", "1x32", "1x128", "1x512", "train-32x128"]
SECONDS = 1.0


def prepare(model, case):
    """What is timed: one pass over random pieces."""
    trains = case.startswith("train-")
    n, length = map(int, case.removeprefix("train-").split("x"))
    generator = torch.Generator().manual_seed(1)
    rows = torch.randint(model.config.vocab_size, (n, length), generator=generator)
    mask = torch.ones_like(rows)

    def infer():
        with torch.inference_mode():
            model(input_ids=rows, attention_mask=mask).last_hidden_state.mean(dim=1)

    def train():
        model.zero_grad()
        model(input_ids=rows, attention_mask=mask).last_hidden_state.square().sum().backward()

    return train if trains else infer


def main(folder, program, threads="2", rounds="3"):
    torch.set_num_threads(int(threads))
    model = AutoModel.from_pretrained(folder)
    times = {case: ([], []) for case in CASES}
    for _ in range(int(rounds)):
        for case in CASES:
            model.train(case.startswith("train-"))
            once = prepare(model, case)
            once()
            started = time.perf_counter()
            taken = []
            while len(taken) < 3 or time.perf_counter() - started < SECONDS:
                before = time.perf_counter()
                once()
                taken.append((time.perf_counter() - before) * 1e3)
            times[case][0].extend(taken)
            done = subprocess.run([program, folder, threads, str(SECONDS), case], capture_output=True, text=True, check=True)
            times[case][1].extend(json.loads(done.stdout)["milliseconds"])
    print(f"torch {torch.__version__}, {threads} threads, {rounds} rounds; milliseconds, median (least)")
    print("| case | PyTorch | canonym | ratio |\n| --- | --- | --- | --- |")
    for case, (theirs, ours) in times.items():
        show = [f"{statistics.median(taken):.1f} ({min(taken):.1f})" for taken in (theirs, ours)]
        print(f"| {case} | {show[0]} | {show[1]} | {statistics.median(theirs) / statistics.median(ours):.2f} |")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
