#!/usr/bin/env python3
"""Writes a tiny random BART checkpoint and what PyTorch and transformers compute with it, for a test of the generative linker.

    python3 -m venv VENV && VENV/bin/pip install torch transformers tokenizers safetensors
    VENV/bin/python benches/peers/bart_reference.py crates/canonym-neural/tests/fixtures/bart

The folder gets `config.json`, `model.safetensors`, `tokenizer.json` and `expected.json`: the logits of a source and a target, and the names
that a beam search under the rules of GenBioEL finds, with their scores. The search runs the whole decoder again for every token.
"""

import json
import math
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import BartConfig, BartForConditionalGeneration

NAMES = ["gout", "gouty arthritis", "podagra", "liver failure", "acute liver failure", "kidney failure", "renal failure", "rickets",
         "fatty liver"]
SOURCES = ["the patient had START gout END of the big toe", "START failure of the liver END", "an old man with START bad kidneys END and fever"]
MENTIONS = ["gout", "failure of the liver", "bad kidneys"]
BEAMS = 4


def tokenizer():
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=["<s>", "<pad>", "</s>", "<unk>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    made.train_from_iterator([" " + text for text in NAMES + SOURCES + ["gout is"]] * 3, trainer)
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return made


def search(model, source, prompt, names):
    """Names by the rules of the published code: K continuations in each step, finished ones leave the beam."""
    allowed = {}
    for name in names:
        for length in range(len(name)):
            allowed.setdefault(tuple(name[:length]), set()).add(name[length])
    live, found = [((), 0.0)], []
    while live and len(found) < BEAMS:
        every = []
        for tokens, total in live:
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([prompt + list(tokens)])).logits
            log_probabilities = torch.log_softmax(logits[0, -1], dim=-1)
            every += [(tokens + (token,), total + log_probabilities[token].item()) for token in sorted(allowed[tokens])]
        every.sort(key=lambda one: -one[1])
        live = []
        for tokens, total in every[:BEAMS]:
            if tokens[-1] == 2:
                found.append((tokens, total / len(tokens)))
            else:
                live.append((tokens, total))
    found.sort(key=lambda one: -one[1])
    return found[:BEAMS]


def main():
    out = Path(sys.argv[1])
    torch.manual_seed(5)
    tokens = tokenizer()
    config = BartConfig(vocab_size=tokens.get_vocab_size(), d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3,
                        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=40, max_position_embeddings=40, init_std=0.3)
    model = BartForConditionalGeneration(config).eval()
    with torch.no_grad():
        model.final_logits_bias.normal_(std=0.3)
        for name, weight in model.named_parameters():
            if "layer_norm" in name or "layernorm" in name or name.endswith("bias"):
                weight.add_(torch.randn_like(weight) * 0.2)
    model.save_pretrained(out, safe_serialization=True)
    tokens.save(str(out / "tokenizer.json"))

    encode = lambda text: tokens.encode(" " + text, add_special_tokens=False).ids
    names = {name: encode(name) + [2] for name in NAMES}
    expected = {"names": NAMES, "cases": []}
    for source, mention in zip(SOURCES, MENTIONS):
        ids, prompt = [0] + encode(source) + [2], [2] + encode(mention + " is")
        target = prompt + names[NAMES[4]][:-1]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([target])).logits[0]
        found = search(model, ids, prompt, list(names.values()))
        by_tokens = {tuple(tokens): name for name, tokens in names.items()}
        expected["cases"].append({
            "source": ids, "prompt": prompt, "target": target,
            "last_log_probabilities": [round(x, 6) for x in torch.log_softmax(logits[-1], dim=-1).tolist()],
            "found": [[by_tokens[name], round(score, 6)] for name, score in found],
        })
        assert all(math.isfinite(score) for _, score in found)
    (out / "expected.json").write_text(json.dumps(expected) + "\n", encoding="utf-8")
    for extra in ["generation_config.json"]:
        (out / extra).unlink(missing_ok=True)


main()
