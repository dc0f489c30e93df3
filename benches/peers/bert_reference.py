#!/usr/bin/env python3
"""Writes reference outputs of PyTorch and transformers with real weights, for a comparison test.

    python3 -m venv VENV && VENV/bin/pip install torch transformers numpy
    VENV/bin/python benches/peers/bert_reference.py FOLDER
    CANONYM_MINILM=FOLDER cargo test -p canonym-neural --test it reference

Writes FOLDER/canonym-reference.json: wordpieces and their byte offsets under four tokenizer settings, for sentences and for every code
point up to U+2FFFF; vectors of all wordpieces and of the pooler; gradient norms of a loss. If FOLDER has no model, all-MiniLM-L6-v2 is
downloaded into it as by `experiments/minilm.py`. None of this is committed.
"""

import json
import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.normalizers import BertNormalizer
from transformers import AutoModel

sys.path.append(str(Path(__file__).parents[2] / "experiments"))
from minilm import fetch

LAST = 0x2FFFF
SENTENCES = [
    "Liver failure.",
    "a",
    "Patients with Sjögren's syndrome had 5µg/mL (±0.2) of β₂-microglobulin; IL-2Rα was ﬁne.",
    "Naïve CD4⁺ T-cells — “resting” — don’t express HLA-DR…",
    "中文 and カタカナ and हिन्दी and العربية stand beside COVID‑19\u00a0(SARS\u2011CoV\u20112).",
    "e\u0301tude\tof\u200bzero\u00adwidth\ufeffletters\x0cand\x85controls \ufffd",
    "x" * 101 + " pneumonoultramicroscopicsilicovolcanoconiosis " + "y" * 100,
    " ".join(["Hepatocellular carcinoma is the most common primary malignancy of the liver."] * 12),
]
SETTINGS = [(True, None), (False, None), (False, True), (True, False)]


def code_points():
    """Texts of 64 code points each, every one between letters, without further line breaks."""
    for first in range(0, LAST + 1, 64):
        letters = [chr(point) for point in range(first, first + 64) if not 0xD800 <= point <= 0xDFFF]
        if letters:
            yield "".join(f"n{letter}ow " for letter in letters)


def divided(tokenizer, texts):
    """Rows of wordpieces, and their start and end bytes, flattened."""
    answers = []
    for text, encoding in zip(texts, tokenizer.encode_batch(texts, add_special_tokens=False)):
        at = [0]
        for letter in text:
            at.append(at[-1] + len(letter.encode()))
        spans = [at[place] for offsets in encoding.offsets for place in offsets]
        answers.append({"text": text, "rows": encoding.ids, "spans": spans})
    return answers


def main(folder):
    folder = Path(folder)
    if not (folder / "config.json").exists():
        fetch(folder)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    texts = SENTENCES + list(code_points())
    words = []
    for lowercase, strip_accents in SETTINGS:
        tokenizer.normalizer = BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
        words.append({"lowercase": lowercase, "strip_accents": strip_accents, "texts": divided(tokenizer, texts)})

    torch.manual_seed(0)
    model = AutoModel.from_pretrained(folder).eval()
    first, behind = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    pieces = [[first, *text["rows"], behind] for text in words[0]["texts"][:len(SENTENCES)]]
    # Also a sentence pair; each sequence is encoded separately, without padding.
    sequences = [[rows] for rows in pieces] + [[pieces[0], pieces[2][1:]]]
    outputs = []
    for parts in sequences:
        rows = torch.tensor([sum(parts, [])])
        types = torch.tensor([[number for number, part in enumerate(parts) for _ in part]])
        output = model(input_ids=rows, token_type_ids=types)
        # Loss: half the squared norm of all vectors, so that its gradient is the vectors themselves.
        (output.last_hidden_state.square().sum() / 2 + output.pooler_output.square().sum() / 2).backward()
        outputs.append({"parts": parts, "vectors": output.last_hidden_state.flatten().tolist(),
                        "pooled": output.pooler_output.flatten().tolist()})
    gradients = {name: weight.grad.norm().item() for name, weight in model.named_parameters()}
    reference = {"words": words, "sequences": outputs, "gradients": gradients}
    (folder / "canonym-reference.json").write_text(json.dumps(reference), encoding="utf-8")
    print(f"wrote {folder / 'canonym-reference.json'}, torch {torch.__version__}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
