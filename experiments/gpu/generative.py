#!/usr/bin/env python3
"""Pre-trains a small BART on terminologies by the KB-guided task of GenBioEL (Yuan et al. 2022, section 3.3) on a GPU, and fine-tunes it.

canonym trains the same model on a processor (`experiments/generative-pretrained.toml`), which takes days; this takes minutes. The result is
a folder that the setting `model.bart` of an experiment reads. Examples, marks, prompts and the choice of the target name are those of
canonym's recipe `generative`.

    pip install torch transformers tokenizers safetensors numpy
    generative.py prepare PREPARED --kbs KB.jsonl ... --corpus NAME KB.jsonl TRAIN.pubtator ...
    generative.py pretrain PREPARED OUT --seconds 270
    generative.py finetune PREPARED NAME OUT --start PRETRAINED --seconds 60
    generative.py join FOLDER

`prepare` reads `canonym kb export` of the terminologies and needs no GPU. Weights are saved in 16 bits and in parts of less than 15 MiB;
`join` puts them together. The learning rate follows the time that has passed, so a run ends when its seconds are over.
"""

import argparse
import gzip
import hashlib
import json
import math
import multiprocessing
import os
import random
import re
import time
from collections import Counter, defaultdict
from pathlib import Path

PUNCTUATION = str.maketrans({letter: " " for letter in ",.;{}[]()+-_*/?!`\"'=%><"})
CONTEXT_NAMES = 3
MAX_WORDS = 64
MAX_SOURCE, MAX_NAME = 160, 32
BOS, PAD, EOS = 0, 1, 2
PART = 14 << 20


def plain(name):
    """A name as the model writes it: in lower case, punctuation replaced by spaces."""
    return " ".join(name.translate(PUNCTUATION).lower().split())


# ---- prepare

def read_kb(path):
    for line in open(path, encoding="utf-8"):
        one = json.loads(line)
        names, seen = [], set()
        for name in [one["name"], *(synonym if isinstance(synonym, str) else synonym.get("name") or synonym.get("text") for synonym in one.get("synonyms", []))]:
            name = plain(name)
            if name and name not in seen:
                seen.add(name)
                names.append(name)
        yield one["id"], names, " ".join((one.get("definition") or "").lower().split())


def short_forms(text):
    """Short forms that the text defines, with their long forms (Schwartz and Hearst 2003)."""
    found = {}
    for match in re.finditer(r"\(([A-Za-z][\w-]{1,9})\)", text):
        short, before = match[1], text[:match.start()].rstrip().split(" ")
        words = before[-min(len(short) + 5, 2 * len(short)):]
        long = " ".join(words)
        at = len(long) - 1
        for number, letter in reversed(list(enumerate(short.lower()))):
            if not letter.isalnum():
                continue
            while at >= 0 and (long[at].lower() != letter or number == 0 and at > 0 and long[at - 1].isalnum()):
                at -= 1
            if at < 0:
                break
            at -= 1
        else:
            long = long[at + 1:]
            if len(long) > len(short) and any(letter.isupper() for letter in short):
                found[short] = long
    return found


def is_tuned_on(document):
    """Whether canonym, with seed 1, keeps a document of a training set for selection (`tune_share = 10`)."""
    return int.from_bytes(hashlib.sha256(f"1 {document}".encode()).digest()[:8], "big") % 10 == 0


def read_pubtator(path):
    title, text, marks = "", "", []
    for line in [*open(path, encoding="utf-8"), "\n"]:
        line = line.rstrip("\n")
        if match := re.match(r"^(\d+)\|t\|(.*)", line):
            document, title = match[1], match[2]
        elif match := re.match(r"^\d+\|a\|(.*)", line):
            text = f"{title} {match[1]}"
        elif not line.strip():
            if text and not is_tuned_on(document):
                yield text, marks
            text, marks = "", []
        else:
            fields = line.split("\t")
            if len(fields) >= 6 and fields[1].isdigit():
                marks.append((int(fields[1]), int(fields[2]), fields[3], fields[5]))


def source_of(text, start, end, mention):
    left, right = text[:start].lower().split(), text[end:].lower().split()
    half = MAX_WORDS // 2
    n_left = min(len(left), max(half, MAX_WORDS - len(right)))
    n_right = min(len(right), MAX_WORDS - n_left)
    return " ".join([*left[len(left) - n_left:], "START", mention.lower().strip(), "END", *right[:n_right]])


def trigrams(text):
    return Counter(padded[at:at + 3] for word in text.split() for padded in [f" {word} "] for at in range(len(padded) - 2))


class Similarity:
    """TF-IDF of character trigrams within words."""

    def __init__(self, texts):
        self.n, self.holders = 0, Counter()
        for text in texts:
            self.n += 1
            self.holders.update(trigrams(text).keys())

    def vector(self, text):
        vector = {gram: count * (1 + math.log((1 + self.n) / (1 + self.holders[gram]))) for gram, count in trigrams(text).items()}
        length = math.sqrt(sum(value * value for value in vector.values())) or 1.0
        return {gram: value / length for gram, value in vector.items()}

    def best(self, mention, names):
        of = self.vector(plain(mention))
        score = lambda name: sum(value * of.get(gram, 0.0) for gram, value in self.vector(name).items())
        return max(sorted(names, key=len), key=score)


def examples_of(kb, corpora):
    """Source, mention and target of each training mention with one concept, and the number of its document."""
    names_of = {one.split(":")[-1]: names for concept, names, _ in read_kb(kb) for one in concept.split("|")}
    documents = [document for path in corpora for document in read_pubtator(path)]
    similarity = Similarity([name for names in names_of.values() for name in names]
                            + [plain(mark[2]) for _, marks in documents for mark in marks])
    for number, (text, marks) in enumerate(documents):
        long_of = short_forms(text)
        for start, end, mention, concept in marks:
            names = [name for name in names_of.get(concept.split(":")[-1], []) if len(name) < 150]
            if re.search(r"[|+,]", concept) or not names:
                continue
            mention = long_of.get(mention, mention)
            yield number, source_of(text, start, end, mention), mention, similarity.best(mention, names)


def prepare(arguments):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    out = arguments.prepared
    out.mkdir(parents=True, exist_ok=True)
    concepts = []
    for path in arguments.kbs:
        for _, names, definition in read_kb(path):
            if names and (len(names) > 1 or definition):
                concepts.append([names, definition])
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=16000, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator((" " + text for names, definition in concepts for text in [*names, definition, "START END"] if text), trainer)
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", BOS), ("</s>", EOS)])
    made.save(str(out / "tokenizer.json"))
    with gzip.open(out / "concepts.jsonl.gz", "wt", encoding="utf-8") as file:
        for one in concepts:
            file.write(json.dumps(one, ensure_ascii=False) + "\n")
    for name, kb, *corpora in arguments.corpus:
        with gzip.open(out / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            rows = list(examples_of(kb, corpora))
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(f"{name}: {len(rows)} mentions")
    print(f"{len(concepts)} concepts, {sum(len(names) for names, _ in concepts)} names")


# ---- training

class Coder:
    def __init__(self, folder):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def rows(self, texts):
        return [one.ids for one in self.tokenizer.encode_batch([" " + text for text in texts], add_special_tokens=False)]


def written(concepts, targets, rng):
    """Source, whether its end matters most, mention and target of pre-training examples."""
    for number, target in targets:
        names, definition = concepts[number]
        others = [name for name in names if name != target]
        rng.shuffle(others)
        mention = others[0] if others else target
        form, mark = rng.randrange(4), f"START {mention} END"
        if definition:
            context, first = definition, form < 2
            phrase = ["is defined as", "is described as", "are the definitions of", "describe"][form]
        else:
            rng.shuffle(others)
            context, first = ", ".join(others[:CONTEXT_NAMES]), form >= 2
            phrase = ["are the synonyms of", "indicate the same concept as", "has synonyms, such as", "refers to the same concept as"][form]
        yield (f"{mark} {phrase} {context}" if first else f"{context} {phrase} {mark}"), not first, mention, target


def encoded(coder, rows):
    """Token lists: source, decoder input, number of prompt tokens whose loss does not count."""
    rows = list(rows)
    sources = coder.rows([row[0] for row in rows])
    prompts = coder.rows([f"{row[2].lower()} is" for row in rows])
    targets = coder.rows([row[3] for row in rows])
    made = []
    for (_, keep_end, _, _), source, prompt, target in zip(rows, sources, prompts, targets):
        if not target or len(target) > MAX_NAME:
            continue
        if len(source) > MAX_SOURCE - 2:
            source = source[-(MAX_SOURCE - 2):] if keep_end else source[:MAX_SOURCE - 2]
        prompt = [EOS, *prompt[-(MAX_NAME - 1):]]
        made.append(([BOS, *source, EOS], [*prompt, *target], len(prompt), [*target, EOS]))
    return made


def batches(made, n_tokens, rng):
    """Batches of examples of like lengths, in random order."""
    order = sorted(range(len(made)), key=lambda at: (len(made[at][0]) // 8, len(made[at][1]), rng.random()))
    groups, group, longest = [], [], 0
    for at in order:
        length = max(longest, len(made[at][0]) + len(made[at][1]))
        if group and length * (len(group) + 1) > n_tokens:
            groups.append(group)
            group, length = [], len(made[at][0]) + len(made[at][1])
        group.append(at)
        longest = length
    groups.append(group)
    rng.shuffle(groups)
    return groups


def arrays(made, group):
    import numpy
    up = lambda n: (n + 7) // 8 * 8
    n_source, n_target = up(max(len(made[at][0]) for at in group)), up(max(len(made[at][1]) for at in group))
    sources = numpy.full((len(group), n_source), PAD, numpy.int32)
    inputs = numpy.full((len(group), n_target), PAD, numpy.int32)
    labels = numpy.full((len(group), n_target), -100, numpy.int32)
    for row, at in enumerate(group):
        source, decoder, n_prompt, target = made[at]
        sources[row, :len(source)] = source
        inputs[row, :len(decoder)] = decoder
        labels[row, n_prompt - 1:n_prompt - 1 + len(target)] = target
    return sources, inputs, labels


def produce(epoch, seed, n_tokens, ready):
    rng = random.Random(seed)
    while True:
        made = epoch(rng)
        for group in batches(made, n_tokens, rng):
            ready.put(arrays(made, group))


def loss_of(model, sources, inputs, labels, torch):
    """Cross-entropy of the counted tokens with label smoothing of 0.1, in the form of transformers."""
    hidden = model.model(input_ids=sources, attention_mask=sources.ne(PAD), decoder_input_ids=inputs, use_cache=False).last_hidden_state
    counted = labels != -100
    log = torch.log_softmax((model.lm_head(hidden[counted]) + model.final_logits_bias).float(), dim=-1)
    nll = -log.gather(-1, labels[counted].unsqueeze(-1)).mean()
    return 0.9 * nll - 0.1 * log.mean(), nll


def save(model, folder, tokenizer, torch):
    from safetensors.torch import save as to_bytes
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    skipped = ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    weights = {name: value.detach().to(torch.bfloat16).cpu().contiguous() for name, value in model.state_dict().items() if name not in skipped}
    data = to_bytes(weights)
    for number in range(0, len(data), PART):
        (folder / f"model.safetensors.{number // PART:02}").write_bytes(data[number:number + PART])


def start_producers(arguments, epoch):
    """Processes that make batches; `epoch(rng)` gives the encoded examples of an epoch or a part of one."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    forked = multiprocessing.get_context("fork")
    ready = forked.Queue(maxsize=32)
    for number in range(arguments.processes):
        forked.Process(target=produce, args=(epoch, arguments.seed * 1000 + number, arguments.tokens, ready), daemon=True).start()
    return ready


def train(arguments, producers, model, batch_note):
    """Trains until the seconds are over."""
    import torch

    rate = arguments.rate

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model.to(device).train()
    decayed = [value for value in model.parameters() if value.ndim > 1]
    others = [value for value in model.parameters() if value.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}], lr=rate,
                                  betas=(0.9, 0.98), eps=1e-6, fused=device == "cuda")
    ready = producers
    pending = ready.get()
    started, step, seen, mean = time.time(), 0, 0, None
    while True:
        share = (time.time() - started) / arguments.seconds
        if share >= 1 or arguments.steps and step >= arguments.steps:
            break
        factor = min(1.0, step / 200) * min(1.0, max(0.0, (1 - share)))
        for group in optimizer.param_groups:
            group["lr"] = rate * max(factor, 1e-3)
        sources, inputs, labels = (torch.from_numpy(one).to(device).long() for one in pending)
        with torch.autocast(device, torch.bfloat16):
            loss, nll = loss_of(model, sources, inputs, labels, torch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
        seen += len(sources)
        if step % 100 == 0 or step == 1:
            mean = nll.item()
            print(f"step {step} examples {seen} nll {mean:.3f} rate {rate * factor:.2e} seconds {time.time() - started:.0f}", flush=True)
        pending = ready.get()
    print(f"{batch_note}: {step} steps, {seen} examples, last nll {mean}", flush=True)
    return model


def shape(vocabulary, small):
    from transformers import BartConfig
    width, layers, ffn, heads = (32, 1, 64, 2) if small else (384, 6, 1024, 6)
    return BartConfig(vocab_size=vocabulary, d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_ffn_dim=ffn, decoder_ffn_dim=ffn,
                      encoder_attention_heads=heads, decoder_attention_heads=heads, max_position_embeddings=MAX_SOURCE, dropout=0.1, attention_dropout=0.0,
                      activation_dropout=0.0, scale_embedding=False)


def pretrain(arguments):
    import torch
    from transformers import BartForConditionalGeneration

    coder = Coder(arguments.prepared)
    with gzip.open(arguments.prepared / "concepts.jsonl.gz", "rt", encoding="utf-8") as file:
        concepts = [json.loads(line) for line in file]
    every = [(number, name) for number, (names, _) in enumerate(concepts) for name in names]

    def epoch(rng):
        # A part of an epoch at a time, so that the first batch is soon there.
        part = rng.sample(every, min(len(every), arguments.part))
        return encoded(coder, written(concepts, part, rng))

    producers = start_producers(arguments, epoch)
    torch.manual_seed(arguments.seed)
    model = BartForConditionalGeneration(shape(coder.tokenizer.get_vocab_size(), arguments.small))
    train(arguments, producers, model, "pre-training")
    save(model, arguments.out, coder.tokenizer, torch)


def load(folder, small):
    import torch
    from safetensors.torch import load as from_bytes
    from transformers import BartForConditionalGeneration

    coder = Coder(folder)
    model = BartForConditionalGeneration(shape(coder.tokenizer.get_vocab_size(), small))
    data = b"".join(path.read_bytes() for path in sorted(folder.glob("model.safetensors.[0-9][0-9]")))
    missing, unknown = model.load_state_dict({name: value.float() for name, value in from_bytes(data).items()}, strict=False)
    assert not unknown and all("embed_tokens" in name or "lm_head" in name for name in missing), (missing, unknown)
    model.tie_weights()
    return model, coder


def finetune(arguments):
    import torch
    from transformers import BartForConditionalGeneration

    torch.manual_seed(arguments.seed)
    if arguments.start:
        model, coder = load(arguments.start, arguments.small)
    else:
        coder = Coder(arguments.prepared)
        model = BartForConditionalGeneration(shape(coder.tokenizer.get_vocab_size(), arguments.small))
    rows = []
    for corpus in arguments.corpus.split("+"):
        with gzip.open(arguments.prepared / f"{corpus}.jsonl.gz", "rt", encoding="utf-8") as file:
            rows += [json.loads(line) for line in file]
    made = encoded(coder, [(source, False, mention, target) for _, source, mention, target in rows])
    train(arguments, start_producers(arguments, lambda rng: made), model, arguments.corpus)
    save(model, arguments.out, coder.tokenizer, torch)


def join(arguments):
    parts = sorted(arguments.folder.glob("model.safetensors.[0-9][0-9]"))
    data = b"".join(path.read_bytes() for path in parts)
    length = int.from_bytes(data[:8], "little")
    weights = [one for name, one in json.loads(data[8:8 + length] or "{}").items() if name != "__metadata__"]
    if not weights or len(data) != 8 + length + max(one["data_offsets"][1] for one in weights):
        raise SystemExit(f"{arguments.folder}: parts are missing; found {len(parts)}")
    (arguments.folder / "model.safetensors").write_bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("prepare")
    one.add_argument("prepared", type=Path)
    one.add_argument("--kbs", nargs="+", type=Path, required=True)
    one.add_argument("--corpus", nargs="+", action="append", default=[])
    one.set_defaults(run=prepare)
    for name, run, rate, tokens in [("pretrain", pretrain, 8e-4, 100_000), ("finetune", finetune, 2e-4, 8_000)]:
        one = commands.add_parser(name)
        one.add_argument("prepared", type=Path)
        if name == "finetune":
            one.add_argument("corpus")
            one.add_argument("--start", type=Path)
        one.add_argument("out", type=Path)
        one.add_argument("--seconds", type=float, required=True)
        one.add_argument("--steps", type=int, default=0)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--rate", type=float, default=rate)
        one.add_argument("--tokens", type=int, default=tokens)
        one.add_argument("--part", type=int, default=50_000)
        one.add_argument("--processes", type=int, default=8 if name == "pretrain" else 1)
        one.add_argument("--small", action="store_true")
        one.set_defaults(run=run)
    one = commands.add_parser("join")
    one.add_argument("folder", type=Path)
    one.set_defaults(run=join)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
