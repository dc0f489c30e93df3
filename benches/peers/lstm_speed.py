#!/usr/bin/env python3
"""Times a bidirectional LSTM of two layers with 256 units in PyTorch and in canonym, interleaved, and prints a table.

    python3 -m venv VENV && VENV/bin/pip install torch numpy
    cargo build --release -p canonym-neural --example lstm_speed
    VENV/bin/python benches/peers/lstm_speed.py target/release/examples/lstm_speed [THREADS [ROUNDS]]

Cases are SEQUENCESxLENGTHxINPUTS; `train-…` are a forward and a backward pass. Figures are medians of all repetitions; a ratio above 1 means
that canonym is faster. Both compute in 32 bits; the last column is canonym with products in 16 bits (bfloat16).
"""

import json
import statistics
import subprocess
import sys
import time

import torch

CASES = ["32x128x384", "8x32x384", "train-32x128x384"]
SECONDS = 2.0


def prepare(case):
    n, length, inputs = map(int, case.removeprefix("train-").split("x"))
    model = torch.nn.LSTM(inputs, 256, num_layers=2, bidirectional=True, batch_first=True)
    rows = torch.randn(n, length, inputs, generator=torch.Generator().manual_seed(1))

    def infer():
        with torch.inference_mode():
            model(rows)

    def train():
        model.zero_grad()
        output, _ = model(rows)
        output.backward(output.detach())

    return train if case.startswith("train-") else infer


def timed(once):
    once()
    started, taken = time.perf_counter(), []
    while len(taken) < 3 or time.perf_counter() - started < SECONDS:
        before = time.perf_counter()
        once()
        taken.append((time.perf_counter() - before) * 1000)
    return taken


def main(program, threads="2", rounds="3"):
    torch.set_num_threads(int(threads))
    times = {case: ([], [], []) for case in CASES}
    for _ in range(int(rounds)):
        for case in CASES:
            times[case][0].extend(timed(prepare(case)))
            for place, name in ((1, case), (2, f"{case}xbf16")):
                done = subprocess.run([program, threads, str(SECONDS), name], capture_output=True, text=True, check=True)
                times[case][place].extend(json.loads(done.stdout)["milliseconds"])
    print(f"torch {torch.__version__}, {threads} threads, {rounds} rounds; milliseconds, median (least)")
    print("| case | PyTorch | canonym | ratio | canonym, 16 bits | ratio |\n| --- | --- | --- | --- | --- | --- |")
    for case, taken in times.items():
        medians = [statistics.median(one) for one in taken]
        show = [f"{median:.1f} ({min(one):.1f})" for median, one in zip(medians, taken)]
        print(f"| {case} | {show[0]} | {show[1]} | {medians[0] / medians[1]:.2f} | {show[2]} | {medians[0] / medians[2]:.2f} |")


main(*sys.argv[1:])
