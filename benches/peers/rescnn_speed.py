#!/usr/bin/env python3
"""Times ResCNN with the same weights in PyTorch and in canonym, and a BERT-base, interleaved, and prints a table.

    python3 -m venv VENV && VENV/bin/pip install torch transformers safetensors numpy
    cargo build --release -p canonym-neural --example rescnn_speed
    VENV/bin/python benches/peers/rescnn_speed.py RUN KB QUERIES target/release/examples/rescnn_speed [THREADS [TURNS]]

RUN is the folder of a trained ResCNN, KB a compiled terminology, QUERIES a file of names. First, both encode some hundred names; the
vectors must agree to 1e-4. Then each turn encodes all names of the terminology in each program: canonym; PyTorch with batches of one
length, which need no padding; PyTorch as published, with random batches padded to their longest name. Tokenisation is not timed. The
BERT has random weights and encodes a sample of the names, sorted by length; its time is extrapolated. Finally, canonym links each query
separately. PyTorch runs without gradients.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertModel

N_COMPARED = 500
TOLERANCE = 1e-4
# The published batch size; batches of one length may be larger if that is faster.
BATCH = 256
BATCHES_OF_ONE_LENGTH = [64, 256, 1024]
N_TRIED = 8192
N_BERT = 512
BERT_BATCH = 32
SEED = 13


class ResCnn(torch.nn.Module):
    """The published network: convolutions over channels, position-wise layers, max pooling over positions."""

    def __init__(self, config, weights):
        super().__init__()
        width = config["width"]
        word = weights["embedding.word"]
        # An additional row of zeros for padding.
        self.embedding = torch.nn.Embedding.from_pretrained(torch.cat([word, torch.zeros(1, word.shape[1])]))
        self.padding = len(word)
        self.projection = convolution(weights, "projection", word.shape[1], 1)
        self.blocks = torch.nn.ModuleList()
        for block in range(config["n_blocks"]):
            name = f"block.{block}"
            self.blocks.append(torch.nn.ModuleDict({
                "convolutions": torch.nn.ModuleList(
                    convolution(weights, f"{name}.convolution.{kernel}", width, kernel) for kernel in config["kernels"]),
                "inner": linear(weights, f"{name}.inner"),
                "outer": linear(weights, f"{name}.outer"),
            }))

    def forward(self, pieces):
        rows = self.projection(self.embedding(pieces).transpose(1, 2))
        for block in self.blocks:
            filtered = torch.cat([torch.relu(one(rows)) for one in block["convolutions"]], dim=1)
            inner = torch.relu(block["inner"](filtered.transpose(1, 2)))
            rows = rows + block["outer"](inner).transpose(1, 2)
        return rows.amax(dim=2)


def convolution(weights, name, n_in, kernel):
    """Reshapes `[kernel * in, out]` to `[out, in, kernel]`."""
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"].flatten()
    made = torch.nn.Conv1d(n_in, len(bias), kernel, padding=kernel // 2)
    made.weight.data = weight.reshape(kernel, n_in, len(bias)).permute(2, 1, 0).contiguous()
    made.bias.data = bias.contiguous()
    return made


def linear(weights, name):
    weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"].flatten()
    made = torch.nn.Linear(*weight.shape)
    made.weight.data = weight.t().contiguous()
    made.bias.data = bias.contiguous()
    return made


def of_one_length(names, size):
    """Batches of names of one length."""
    names = sorted(names, key=len)
    batches, first = [], 0
    for row in range(1, len(names) + 1):
        if row == len(names) or len(names[row]) != len(names[first]) or row - first == size:
            batches.append(torch.tensor(names[first:row]))
            first = row
    return batches


def padded(names, size, padding):
    """Batches of names in the given order, padded to the longest of each."""
    batches = []
    for first in range(0, len(names), size):
        batch = names[first:first + size]
        longest = max(map(len, batch))
        batches.append(torch.tensor([name + [padding] * (longest - len(name)) for name in batch]))
    return batches


def seconds(model, batches):
    started = time.perf_counter()
    with torch.inference_mode():
        for batch in batches:
            model(batch)
    return time.perf_counter() - started


def bert():
    """The encoding function of a BERT-base with random weights."""
    torch.manual_seed(SEED)
    model = BertModel(BertConfig()).eval()

    def encode(batch):
        pieces, mask = batch
        model(input_ids=pieces, attention_mask=mask)

    return encode


def bert_batches(names):
    """Batches of a sample, each name between two special tokens, sorted by length to reduce padding."""
    names = sorted(([101, *name, 102] for name in names), key=len)
    batches = padded(names, BERT_BATCH, -1)
    return [(batch.clamp(min=0), (batch >= 0).long()) for batch in batches]


def show(times, n):
    return f"{statistics.median(times):.2f} ({min(times):.2f}–{max(times):.2f}) | {n / statistics.median(times):,.0f}"


def main(run, kb, queries, program, threads="2", turns="3"):
    torch.set_num_threads(int(threads))

    def ours(*task):
        done = subprocess.run([program, run, kb, threads, *task], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    made = ours("pieces", str(N_COMPARED))
    config = made["config"]
    if config["pooling"] != "max" or config["pads"]:
        sys.exit("only the greatest value of names that are not filled up is compared")
    names = [name[:config["max_length"]] or [made["unknown"]] for name in made["pieces"]]
    weights = load_file(Path(run) / "model.safetensors")
    model = ResCnn(config, weights).eval()
    with torch.inference_mode():
        theirs = torch.cat([model(torch.tensor([names[row]])) for row in made["chosen"]])
    difference = (theirs - torch.tensor(made["vectors"]).reshape(theirs.shape)).abs().max().item()
    n, n_pieces = len(names), sum(map(len, names))
    load = os.getloadavg()[0]
    print(f"torch {torch.__version__}, {threads} threads, {turns} turns, load average {load:.2f} before the start")
    print(f"{n:,} names of {n_pieces:,} pieces; vectors of {len(theirs)} differ by at most {difference:.1e}")
    if difference > TOLERANCE:
        sys.exit(f"that is more than {TOLERANCE}")

    rng = random.Random(SEED)
    shuffled = rng.sample(names, n)
    tried = {size: of_one_length(shuffled[:N_TRIED], size) for size in BATCHES_OF_ONE_LENGTH}
    taken = {size: min(seconds(model, batches) for _ in range(2)) for size, batches in tried.items()}
    size = min(taken, key=taken.get)
    by_length, by_chance = of_one_length(names, size), padded(shuffled, BATCH, model.padding)
    base, sample = bert(), bert_batches(shuffled[:N_BERT])
    seconds(base, sample[:2])
    times = {"canonym": [], "length": [], "published": [], "bert": []}
    milliseconds = []
    for turn in range(int(turns)):
        print(f"turn {turn + 1} of {turns}", file=sys.stderr, flush=True)
        times["canonym"].append(ours("encode")["seconds"])
        times["length"].append(seconds(model, by_length))
        times["published"].append(seconds(model, by_chance))
        times["bert"].append(seconds(base, sample) * n / len(shuffled[:N_BERT]))
        milliseconds.append(ours("map", queries))
    titles = {
        "canonym": "canonym",
        "length": f"PyTorch, batches of one length, at most {size} names",
        "published": f"PyTorch, as published: random batches of {BATCH}, filled up",
        "bert": f"PyTorch, BERT of the base size, extrapolated from {len(shuffled[:N_BERT])} names",
    }
    own = statistics.median(times["canonym"])
    print("\n| encoding | seconds, median (min–max) | names/s | times the seconds of ours |\n| --- | --- | --- | --- |")
    for key, title in titles.items():
        print(f"| {title} | {show(times[key], n)} | {statistics.median(times[key]) / own:.2f} |")
    print("\n| one name by `map`, inside a process | names | ms, median | 95% of them under |\n| --- | --- | --- | --- |")
    # Median over the turns, per query.
    each = [statistics.median(turn) for turn in zip(*(run["milliseconds"] for run in milliseconds))]
    known = milliseconds[0]["known"]
    for title, wanted in [("is a name of the terminology", [True]), ("is none", [False]), ("all", [True, False])]:
        some = sorted(taken for taken, is_known in zip(each, known) if is_known in wanted)
        print(f"| {title} | {len(some)} | {statistics.median(some):.2f} | {some[int(0.95 * (len(some) - 1))]:.2f} |")


if __name__ == "__main__":
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
