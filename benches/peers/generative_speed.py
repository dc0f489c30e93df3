#!/usr/bin/env python3
"""Times constrained beam search with the same random weights of the size of BART-base in PyTorch and in canonym.

    python3 -m venv VENV && VENV/bin/pip install torch transformers tokenizers safetensors
    cargo build --release -p canonym-neural --example generative_speed
    VENV/bin/python benches/peers/generative_speed.py FOLDER target/release/examples/generative_speed [THREADS]

FOLDER gets the checkpoint. PyTorch runs `generate` of transformers with `prefix_allowed_tokens_fn`, five beams and its key-value cache, one
mention at a time (as the published code does) and, where all prompts have one length, in batches of eight. Both write names of the same
20,000 random names for the same 32 mentions. A ratio above 1 means that canonym is faster.
"""

import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration

N_MENTIONS, N_NAMES, SOURCE, PROMPT = 32, 20_000, 100, 6


def checkpoint(folder):
    torch.manual_seed(3)
    words = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3} | {f"w{row}": row for row in range(4, 50265)}
    tokens = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokens.pre_tokenizer = pre_tokenizers.Whitespace()
    tokens.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    model = BartForConditionalGeneration(BartConfig(encoder_layers=6, decoder_layers=6, d_model=768, encoder_attention_heads=12,
                                                    decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072)).eval()
    model.save_pretrained(folder, safe_serialization=True)
    tokens.save(str(folder / "tokenizer.json"))
    return model


def main(folder, program, threads="2"):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(int(threads))
    model = checkpoint(folder)
    draw = random.Random(1)
    names = [[draw.randrange(4, 5000) for _ in range(draw.randint(2, 8))] + [2] for _ in range(N_NAMES)]
    cases = [{"source": [0] + [draw.randrange(4, 50265) for _ in range(SOURCE)] + [2],
              "prompt": [2] + [draw.randrange(4, 50265) for _ in range(PROMPT)]} for _ in range(N_MENTIONS)]
    (folder / "cases.json").write_text(json.dumps({"names": names, "cases": cases}), encoding="utf-8")
    allowed = {}
    for name in names:
        for length in range(len(name)):
            allowed.setdefault(tuple(name[:length]), set()).add(name[length])
    allowed = {prefix: sorted(tokens) for prefix, tokens in allowed.items()}

    def generate(batch):
        n_prompt = PROMPT + 1
        with torch.inference_mode():
            model.generate(input_ids=torch.tensor([case["source"] for case in batch]),
                           decoder_input_ids=torch.tensor([case["prompt"] for case in batch]), num_beams=5, num_return_sequences=5,
                           max_new_tokens=10, forced_eos_token_id=None, do_sample=False,
                           prefix_allowed_tokens_fn=lambda _, tokens: allowed.get(tuple(tokens[n_prompt:].tolist()), [2]))

    times = {"PyTorch, one by one": [], "PyTorch, batches of 8": [], "canonym": [], "canonym, 16 bits": []}
    generate(cases[:1])
    for _ in range(2):
        for name, size in (("PyTorch, one by one", 1), ("PyTorch, batches of 8", 8)):
            before = time.perf_counter()
            for at in range(0, N_MENTIONS, size):
                generate(cases[at:at + size])
            times[name].append((time.perf_counter() - before) * 1000)
        for name, precision in (("canonym", []), ("canonym, 16 bits", ["bf16"])):
            command = [program, str(folder), threads, "2", str(folder / "cases.json"), *precision]
            times[name] += json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["milliseconds"]
    print(f"torch {torch.__version__}, {threads} threads\n| program | mentions/s | ratio |\n| --- | --- | --- |")
    first = statistics.median(times["PyTorch, one by one"])
    for name, taken in times.items():
        median = statistics.median(taken)
        print(f"| {name} | {N_MENTIONS / median * 1000:.1f} | {first / median:.2f} |")


main(*sys.argv[1:])
