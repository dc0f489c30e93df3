#!/usr/bin/env python3
"""Times a BERT with the same weights in PyTorch and in canonym, interleaved, and prints a table.

    VENV/bin/python benches/peers/bert_reference.py FOLDER
    cargo build --release -p canonym-neural --example bert_speed
    VENV/bin/python benches/peers/bert_speed.py FOLDER target/release/examples/bert_speed [THREADS [ROUNDS]]

Needs torch and transformers, as bert_reference.py does. PyTorch runs without gradients and with fused attention; cases `train-…` are a
forward and a backward pass with dropout. All sequences of a case have the same length, so PyTorch needs no padding. Each round runs each
case in both programs in turn; figures are medians of all repetitions, and a ratio above 1 means that canonym is faster. Both compute in
32 and in 16 bits (bfloat16): canonym only in products (`bf16-…`), PyTorch in the whole model, in training as `autocast` chooses. Peak
memory is that of a separate process that reads the model and computes the case 32x128.
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


def prepare(model, case, mixed=False):
    """A function that runs one pass over random wordpieces."""
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
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            loss = model(input_ids=rows, attention_mask=mask).last_hidden_state.float().square().sum()
        loss.backward()

    return train if trains else infer


def main(folder, program, threads="2", rounds="3"):
    torch.set_num_threads(int(threads))
    model = AutoModel.from_pretrained(folder)
    half = AutoModel.from_pretrained(folder).to(torch.bfloat16)
    times = {case: ([], [], [], []) for case in CASES}
    for _ in range(int(rounds)):
        for case in CASES:
            trains = case.startswith("train-")
            for place, one in ((0, model), (2, model if trains else half)):
                one.train(trains)
                times[case][place].extend(timed(prepare(one, case, mixed=place == 2)))
            for place, name in ((1, case), (3, f"bf16-{case}")):
                done = subprocess.run([program, folder, threads, str(SECONDS), name], capture_output=True, text=True, check=True)
                times[case][place].extend(json.loads(done.stdout)["milliseconds"])
    print(f"torch {torch.__version__}, {threads} threads, {rounds} rounds; milliseconds, median (least)")
    print("| case | PyTorch | canonym | ratio | PyTorch, 16 bits | canonym, 16 bits | ratio |\n| --- | --- | --- | --- | --- | --- | --- |")
    for case, all_taken in times.items():
        medians = [statistics.median(taken) for taken in all_taken]
        show = [f"{median:.1f} ({min(taken):.1f})" for median, taken in zip(medians, all_taken)]
        ratios = [medians[0] / medians[1], medians[2] / medians[3]]
        print(f"| {case} | {show[0]} | {show[1]} | {ratios[0]:.2f} | {show[2]} | {show[3]} | {ratios[1]:.2f} |")
    commands = {"PyTorch": [sys.executable, __file__, folder, "once"]}
    commands |= {name: [program, folder, threads, "0", name] for name in ("32x128", "bf16-32x128")}
    print("greatest memory, MiB: " + ", ".join(f"{name} {memory(command)}" for name, command in commands.items()))


def timed(once):
    """Milliseconds of each repetition, for SECONDS but at least three times."""
    once()
    started = time.perf_counter()
    taken = []
    while len(taken) < 3 or time.perf_counter() - started < SECONDS:
        before = time.perf_counter()
        once()
        taken.append((time.perf_counter() - before) * 1e3)
    return taken


def memory(command):
    """Peak memory of a process, in MiB."""
    # A child starts with the memory of its parent, so a small process launches it.
    start = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
    start += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", start, *command], capture_output=True, text=True, check=True)
    return int(done.stdout) // 1024


def once(folder):
    """The PyTorch case measured by `memory`."""
    prepare(AutoModel.from_pretrained(folder).eval(), "32x128")()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    once(sys.argv[1]) if sys.argv[2] == "once" else main(*sys.argv[1:])
