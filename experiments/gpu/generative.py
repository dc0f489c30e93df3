#!/usr/bin/env python3
"""Pre-trains a small BART on terminologies by the KB-guided task of GenBioEL (Yuan et al. 2022, section 3.3) on a GPU, and fine-tunes it.

canonym trains the same model on a processor (`experiments/generative-pretrained.toml`), which takes days; this takes minutes. The result is
a folder that the setting `model.bart` of an experiment reads. Examples, marks, prompts and the choice of the target name are those of
canonym's recipe `generative`.

    pip install torch transformers tokenizers safetensors numpy
    generative.py prepare PREPARED --kbs KB.jsonl ... --corpus NAME KB.jsonl TRAIN.pubtator ... --phrases NAME ONTOLOGY.json TRAIN.txt
    generative.py pretrain PREPARED OUT --seconds 270
    generative.py finetune PREPARED NAME OUT --start PRETRAINED --seconds 60 [--target shortest] [--no-prompt]
    generative.py probe PREPARED NAME FOLDER
    generative.py pack FOLDER PARTS [--base PRETRAINED]
    generative.py join PARTS FOLDER --prepared PREPARED [--base PRETRAINED]

`prepare` reads `canonym kb export` of the terminologies and needs no GPU. It tokenises every name and definition once: a byte-level
tokenizer splits at spaces, so the tokens of a sentence are those of its parts, and making a batch is copying. The learning rate follows the
time that has passed, or the steps if there is a number of them. `probe` tells whether a model reads its source. `pack` writes weights as
8-bit numbers with a scale per row, or with `--base` the difference to other weights as numbers from -10 to 10, in parts of less than 15
MiB; `join` makes a folder of them again.
"""

import argparse
import hashlib
import io
import json
import lzma
import math
import multiprocessing
import os
import random
import re
import shutil
import time
import zlib
from collections import Counter
from pathlib import Path

PUNCTUATION = str.maketrans({letter: " " for letter in ",.;{}[]()+-_*/?!`\"'=%><"})
CONTEXT_NAMES = 3
MAX_WORDS = 64
MAX_SOURCE, MAX_NAME = 160, 32
BOS, PAD, EOS = 0, 1, 2
PART = 14 << 20
DEFINED = ["is defined as", "is described as", "are the definitions of", "describe"]
NAMED = ["are the synonyms of", "indicate the same concept as", "has synonyms, such as", "refers to the same concept as"]
TARGETS = ["similar", "shortest", "sampled", "canonical"]


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


def is_tuned_on(document, share):
    """Whether canonym, with seed 1, keeps a document of a training set for selection (`tune_share`)."""
    return int.from_bytes(hashlib.sha256(f"1 {document}".encode()).digest()[:8], "big") % share == 0


def read_pubtator(path):
    title, text, marks = "", "", []
    for line in [*open(path, encoding="utf-8"), "\n"]:
        line = line.rstrip("\n")
        if match := re.match(r"^(\d+)\|t\|(.*)", line):
            document, title = match[1], match[2]
        elif match := re.match(r"^\d+\|a\|(.*)", line):
            text = f"{title} {match[1]}"
        elif not line.strip():
            if text and not is_tuned_on(document, 10):
                yield text, marks
            text, marks = "", []
        else:
            fields = line.split("\t")
            if len(fields) >= 6 and fields[1].isdigit():
                marks.append((int(fields[1]), int(fields[2]), fields[3], fields[5]))


def read_phrases(path):
    """Phrases of AskAPatient as documents that are one mention."""
    for number, line in enumerate(open(path, encoding="cp1252", errors="replace")):
        fields = [field.strip() for field in line.rstrip("\n").split("\t")]
        if len(fields) == 3 and not is_tuned_on(f"{path.parent.name}/{path.name}:{number}", 20):
            yield fields[2], [(0, len(fields[2]), fields[2], fields[0])]


def source_of(text, start, end, mention, max_words):
    left, right = text[:start].lower().split(), text[end:].lower().split()
    half = max_words // 2
    n_left = min(len(left), max(half, max_words - len(right)))
    n_right = min(len(right), max_words - n_left)
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


def examples_of(coder, names_of, documents, max_words):
    """Source, prompt, most similar name and all names of each training mention with one concept, as tokens; the preferred name is first."""
    written = {concept: [(name, tokens) for name, tokens in zip(names, coder.rows(names)) if 0 < len(tokens) <= MAX_NAME]
               for concept, names in names_of.items()}
    similarity = Similarity([name for names in names_of.values() for name in names]
                            + [plain(mark[2]) for _, marks in documents for mark in marks])
    for text, marks in documents:
        long_of = short_forms(text)
        for start, end, mention, concept in marks:
            names = written.get(concept.split(":")[-1], [])
            if re.search(r"[|+,]", concept) or not names:
                continue
            mention = long_of.get(mention, mention)
            words = max_words
            # The context gets shorter until it fits.
            while len(source := coder.rows([source_of(text, start, end, mention, words)])[0]) > MAX_SOURCE - 2 and words:
                words = words * 3 // 4
            prompt = coder.rows([f"{mention.lower().strip()} is"])[0]
            best = similarity.best(mention, [name for name, _ in names])
            all_names = [tokens for _, tokens in names]
            yield source[:MAX_SOURCE - 2], prompt, [name for name, _ in names].index(best), all_names


class Pool:
    """Texts as tokens, one after the other: each name without and with a comma, then definitions and fixed words."""

    def __init__(self, tokens, lengths, n_names, has_definition):
        import numpy
        self.tokens, self.lengths = tokens, lengths.astype(numpy.int64)
        self.starts = numpy.concatenate([[0], numpy.cumsum(self.lengths)])
        n_names = n_names.astype(numpy.int64)
        self.first = numpy.concatenate([[0], numpy.cumsum(n_names)])[:-1]
        self.n_names, total = n_names, int(n_names.sum())
        self.concept_of = numpy.repeat(numpy.arange(len(n_names)), n_names)
        self.definition = numpy.where(has_definition, 2 * total + numpy.cumsum(has_definition) - 1, -1)
        fixed = 2 * total + int(has_definition.sum())
        self.fixed = {name: fixed + at for at, name in enumerate(FIXED)}
        # Names that the model may write.
        of_names = self.lengths[:2 * total:2]
        self.targets = numpy.flatnonzero((of_names > 0) & (of_names <= MAX_NAME))

    def written(self, targets, rng):
        """Rows of texts of pre-training examples (-1 for none): sources, prompts, whether the end of the source matters most."""
        import numpy
        concept = self.concept_of[targets]
        first, n_others, definition = self.first[concept], self.n_names[concept] - 1, self.definition[concept]
        own = targets - first
        other = lambda at: first + at + (at >= own)
        draw = lambda n: (rng.random(len(targets)) * numpy.maximum(n, 1)).astype(numpy.int64)
        mention = numpy.where(n_others > 0, other(draw(n_others)), targets)
        # Three different names, of which the mention may be one.
        one, two, three = draw(n_others), draw(n_others - 1), draw(n_others - 2)
        two += two >= one
        least, most = numpy.minimum(one, two), numpy.maximum(one, two)
        three += three >= least
        three += three >= most
        name = lambda at, wanted, comma: numpy.where(n_others >= wanted, 2 * other(at) + comma, -1)
        more = lambda wanted: (n_others > wanted).astype(numpy.int64)
        form, defined = rng.integers(0, 4, len(targets)), definition >= 0
        context = numpy.stack([numpy.where(defined, definition, name(one, 1, more(1))), numpy.where(defined, -1, name(two, 2, more(2))),
                               numpy.where(defined, -1, name(three, 3, 0))], 1)
        phrases = numpy.array([[self.fixed[phrase] for phrase in kind] for kind in (NAMED, DEFINED)])
        phrase = phrases[defined.astype(int), form][:, None]
        mark = numpy.stack([numpy.full(len(targets), self.fixed["START"]), 2 * mention, numpy.full(len(targets), self.fixed["END"])], 1)
        mention_first = numpy.where(defined, form < 2, form >= 2)
        sources = numpy.where(mention_first[:, None], numpy.concatenate([mark, phrase, context], 1), numpy.concatenate([context, phrase, mark], 1))
        prompts = numpy.stack([2 * mention, numpy.full(len(targets), self.fixed["is"])], 1)
        return sources, prompts, ~mention_first

    def gathered(self, rows, longest, keep_end):
        """Tokens of rows of texts, at most `longest` for each, the first or the last ones; and where each begins."""
        import numpy
        there = rows >= 0
        lengths = numpy.where(there, self.lengths[rows], 0)
        total = lengths.sum(1)
        cut = numpy.where(keep_end, numpy.maximum(total - longest, 0), 0)
        texts, of = rows[there], lengths[there]
        ends = numpy.cumsum(of)
        at = numpy.arange(ends[-1]) + numpy.repeat(self.starts[texts] - (ends - of), of)
        starts = numpy.cumsum(total) - total + cut
        return self.tokens[at], starts, numpy.minimum(total, longest)


FIXED = ["START", "END", "is", *DEFINED, *NAMED]


def prepare(arguments):
    import numpy
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
    coder = Coder(out)
    texts = [text for names, _ in concepts for name in names for text in (name, f"{name},")]
    texts += [definition for _, definition in concepts if definition]
    texts += FIXED
    tokens, lengths = [], []
    for at in range(0, len(texts), 100_000):
        rows = coder.rows(texts[at:at + 100_000])
        # No more than the longest source is read of a text, from its start or its end.
        rows = [row if len(row) <= 4 * MAX_SOURCE else row[:2 * MAX_SOURCE] + row[-2 * MAX_SOURCE:] for row in rows]
        tokens.append(numpy.array([token for row in rows for token in row], numpy.uint16))
        lengths.append(numpy.array([len(row) for row in rows], numpy.uint16))
    arrays = {"tokens": numpy.concatenate(tokens), "lengths": numpy.concatenate(lengths),
              "n_names": numpy.array([len(names) for names, _ in concepts], numpy.uint16),
              "has_definition": numpy.array([bool(definition) for _, definition in concepts])}
    with lzma.open(out / "concepts.npz.xz", "wb", preset=4) as file:
        numpy.savez(file, **arrays)
    check(coder, Pool(**arrays), texts)
    for kind, corpora in [("pubtator", arguments.corpus), ("phrases", arguments.phrases)]:
        for name, kb, *files in corpora:
            if kind == "pubtator":
                names_of = {one.split(":")[-1]: names for concept, names, _ in read_kb(kb) for one in concept.split("|")}
                documents = [document for path in files for document in read_pubtator(path)]
            else:
                names_of = {concept: list(dict.fromkeys(filter(None, (plain(name) for _, name in names))))
                            for concept, names in json.load(open(kb, encoding="utf-8")).items()}
                documents = [document for path in files for document in read_phrases(Path(path))]
            rows = list(examples_of(coder, names_of, documents, MAX_WORDS if kind == "pubtator" else 0))
            with lzma.open(out / f"{name}.jsonl.xz", "wt", encoding="utf-8") as file:
                for row in rows:
                    file.write(json.dumps(row) + "\n")
            print(f"{name}: {len(rows)} mentions")
    print(f"{len(concepts)} concepts, {int(arrays['n_names'].sum())} names")


def check(coder, pool, texts, n=2000):
    """Compares the tokens of examples with those of their text."""
    import numpy
    rng = numpy.random.default_rng(7)
    sources, prompts, _ = pool.written(rng.choice(pool.targets, n), rng)
    wrong = 0
    for rows in (sources, prompts):
        tokens, starts, lengths = pool.gathered(rows, 1 << 20, numpy.zeros(n, bool))
        whole = coder.rows([" ".join(texts[at] for at in row if at >= 0) for row in rows])
        # Longer texts were cut.
        wrong += sum(list(tokens[start:start + length]) != tokens_of for start, length, tokens_of in zip(starts, lengths, whole)
                     if len(tokens_of) < 4 * MAX_SOURCE)
    print(f"{wrong} of {2 * n} texts have other tokens than their parts")


# ---- training

class Coder:
    def __init__(self, folder):
        from tokenizers import Tokenizer
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def rows(self, texts):
        return [one.ids for one in self.tokenizer.encode_batch([" " + text for text in texts], add_special_tokens=False)]


def groups_of(n_source, n_decoder, n_tokens, rng):
    """Batches of examples of like lengths, in random order."""
    import numpy
    order = numpy.lexsort((rng.random(len(n_source)), n_decoder, n_source // 8))
    lengths = (n_source + n_decoder)[order].tolist()
    bounds, longest, begin = [], 0, 0
    for at, own in enumerate(lengths):
        length = max(longest, own)
        if at > begin and length * (at - begin + 1) > n_tokens:
            bounds.append((begin, at))
            begin, length = at, own
        longest = length
    bounds.append((begin, len(lengths)))
    rng.shuffle(bounds)
    return [order[begin:end] for begin, end in bounds]


def filled(tokens, starts, lengths, width, shift, before, after):
    """A matrix of rows of tokens from column `shift`, with a token before each and, if wanted, one after."""
    import numpy
    matrix = numpy.full((len(starts), width), PAD, numpy.int32)
    column = numpy.arange(width)[None] - shift[:, None]
    inside = (column >= 0) & (column < lengths[:, None])
    matrix[inside] = tokens[(starts[:, None] + column)[inside]]
    if before is not None:
        matrix[:, 0] = before
    if after is not None:
        matrix[numpy.arange(len(starts)), shift + lengths] = after
    return matrix


def arrays(source, prompt, target, group):
    """Sources, decoder inputs, and the places and tokens of the names, whose loss alone counts."""
    import numpy
    up = lambda n: (int(n) + 7) // 8 * 8
    part = lambda one: (one[0], one[1][group], one[2][group])
    (texts, at, n), (prompts, prompt_at, n_prompt), (names, name_at, n_name) = part(source), part(prompt), part(target)
    zero, one = numpy.zeros(len(group), numpy.int64), numpy.ones(len(group), numpy.int64)
    sources = filled(texts, at, n, up(n.max() + 2), one, BOS, EOS)
    width = up((n_prompt + n_name).max() + 1)
    inputs = filled(prompts, prompt_at, n_prompt, width, one, EOS, None)
    of_names = filled(names, name_at, n_name, width, one + n_prompt, None, None)
    is_name = (numpy.arange(width)[None] > n_prompt[:, None]) & (numpy.arange(width)[None] <= (n_prompt + n_name)[:, None])
    inputs[is_name] = of_names[is_name]
    labels = filled(names, name_at, n_name, width, zero + n_prompt, None, EOS)
    counted = (numpy.arange(width)[None] >= n_prompt[:, None]) & (numpy.arange(width)[None] <= (n_prompt + n_name)[:, None])
    return sources, inputs, numpy.flatnonzero(counted).astype(numpy.int32), labels[counted]


def produce(part, seed, n_tokens, ready):
    import numpy
    rng = numpy.random.default_rng(seed)
    while True:
        source, prompt, target = part(rng)
        for group in groups_of(source[2] + 2, prompt[2] + target[2] + 1, n_tokens, rng):
            ready.put(arrays(source, prompt, target, group))


def start_producers(arguments, part):
    """Processes that make batches; `part(rng)` gives sources, prompts and targets of an epoch or a part of one."""
    forked = multiprocessing.get_context("fork")
    ready = forked.Queue(maxsize=64)
    for number in range(arguments.processes):
        forked.Process(target=produce, args=(part, arguments.seed * 1000 + number, arguments.tokens, ready), daemon=True).start()
    return ready


def loss_of(model, sources, inputs, counted, labels, torch):
    """Cross-entropy of the counted tokens with label smoothing of 0.1, in the form of transformers."""
    hidden = model.model(input_ids=sources, attention_mask=sources.ne(PAD), decoder_input_ids=inputs, use_cache=False).last_hidden_state
    logits = model.lm_head(hidden.flatten(0, 1)[counted]) + model.final_logits_bias
    return torch.nn.functional.cross_entropy(logits.float(), labels, label_smoothing=0.1), logits


def save(model, folder, coder, torch):
    """A folder that `model.bart` reads, with weights in 16 bits."""
    from safetensors.torch import save_file
    folder.mkdir(parents=True, exist_ok=True)
    model.config.save_pretrained(folder)
    coder.tokenizer.save(str(folder / "tokenizer.json"))
    skipped = ("lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    weights = {name: value.detach().to(torch.bfloat16).cpu().contiguous() for name, value in model.state_dict().items() if name not in skipped}
    save_file(weights, str(folder / "model.safetensors"))


def train(arguments, ready, model, note):
    """Trains until the seconds are over, or the steps done. The model computes in 16 bits; the optimizer has weights of 32 bits."""
    import torch

    rate = arguments.rate
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # It would plan anew for each shape, which takes longer than the step.
    torch.backends.cuda.enable_cudnn_sdp(False)
    model.to(device).train()
    weights = [value for value in model.parameters() if value.requires_grad]
    masters = [value.detach().float().clone() for value in weights]
    for value in masters:
        value.grad = torch.zeros_like(value)
    model.to(torch.bfloat16 if device == "cuda" else torch.float32)
    weights = [value for value in model.parameters() if value.requires_grad]
    decayed = [value for value in masters if value.ndim > 1]
    others = [value for value in masters if value.ndim <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}], lr=rate,
                                  betas=(0.9, 0.98), eps=1e-6, fused=device == "cuda")

    def moved(batch):
        tensors = [torch.from_numpy(one) for one in batch]
        return [(one.pin_memory() if device == "cuda" else one).to(device, non_blocking=True).long() for one in tensors]

    pending = moved(ready.get())
    started, step, seen, waited, n_tokens, mean = time.time(), 0, 0, 0.0, 0, None
    while True:
        elapsed = time.time() - started
        share = max(elapsed / arguments.seconds, step / arguments.steps if arguments.steps else 0.0)
        if share >= 1:
            break
        factor = min(1.0, (step + 1) / arguments.warm_up) * (1 - share)
        for group in optimizer.param_groups:
            group["lr"] = rate * factor
        sources, inputs, counted, labels = pending
        loss, logits = loss_of(model, sources, inputs, counted, labels, torch)
        loss.backward()
        torch._foreach_copy_([value.grad for value in masters], [value.grad for value in weights])
        torch.nn.utils.clip_grad_norm_(masters, 1.0)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(weights, masters)
        model.zero_grad(set_to_none=True)
        step += 1
        seen += len(sources)
        n_tokens += sources.numel() + inputs.numel()
        if step % 200 == 0 or step in (1, 20, 50, 100):
            with torch.no_grad():
                mean = torch.nn.functional.cross_entropy(logits.float(), labels).item()
                # No higher if the model does not read its source.
                _, logits = loss_of(model, sources.roll(1, 0), inputs, counted, labels, torch)
                other = torch.nn.functional.cross_entropy(logits.float(), labels).item()
            print(f"{note}: step {step} examples {seen} tokens {n_tokens} nll {mean:.3f} with other sources {other:.3f} rate {rate * factor:.2e} waited {waited:.1f} "
                  f"seconds {time.time() - started:.1f}", flush=True)
        waiting = time.time()
        batch = ready.get()
        waited += time.time() - waiting
        pending = moved(batch)
    if device == "cuda":
        torch.cuda.synchronize()
    print(f"{note}: {step} steps, {seen} examples, {n_tokens} tokens, last nll {mean}, waited {waited:.1f} of {time.time() - started:.1f} seconds", flush=True)
    with torch.no_grad():
        for value, master in zip(weights, masters):
            value.data = master
    return model


def shape(vocabulary, small, init_std=0.02):
    from transformers import BartConfig
    width, layers, ffn, heads = (32, 1, 64, 2) if small else (384, 6, 1024, 6)
    return BartConfig(vocab_size=vocabulary, d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_ffn_dim=ffn, decoder_ffn_dim=ffn,
                      encoder_attention_heads=heads, decoder_attention_heads=heads, max_position_embeddings=MAX_SOURCE, dropout=0.1, attention_dropout=0.0,
                      activation_dropout=0.0, scale_embedding=False, init_std=init_std)


def pretrain(arguments):
    import numpy
    with lzma.open(arguments.prepared / "concepts.npz.xz", "rb") as file:
        pool = Pool(**numpy.load(io.BytesIO(file.read())))
    coder = Coder(arguments.prepared)

    def part(rng):
        # A part of an epoch at a time, so that the first batch is soon there.
        targets = rng.choice(pool.targets, min(len(pool.targets), arguments.part), replace=False)
        sources, prompts, keep_end = pool.written(targets, rng)
        prompts[rng.random(len(targets)) >= arguments.prompt_share] = -1
        everywhere = numpy.ones(len(targets), bool)
        source = pool.gathered(sources, MAX_SOURCE - 2, keep_end)
        prompt = pool.gathered(prompts, MAX_NAME - 1, everywhere)
        return source, prompt, pool.gathered(2 * targets[:, None], MAX_NAME, ~everywhere)

    producers = start_producers(arguments, part)
    import torch
    from transformers import BartForConditionalGeneration
    torch.manual_seed(arguments.seed)
    model = BartForConditionalGeneration(shape(coder.tokenizer.get_vocab_size(), arguments.small, arguments.init_std))
    train(arguments, producers, model, "pre-training")
    save(model, arguments.out, coder, torch)


def load(folder, small):
    from safetensors.torch import load_file
    from transformers import BartForConditionalGeneration

    coder = Coder(folder)
    model = BartForConditionalGeneration(shape(coder.tokenizer.get_vocab_size(), small))
    weights = {name: value.float() for name, value in load_file(str(folder / "model.safetensors")).items()}
    missing, unknown = model.load_state_dict(weights, strict=False)
    assert not unknown and all("embed_tokens" in name or "lm_head" in name for name in missing), (missing, unknown)
    model.tie_weights()
    return model, coder


def flat(rows):
    """Token lists as one array, with where each begins and how long it is."""
    import numpy
    lengths = numpy.array([len(row) for row in rows], numpy.int64)
    return numpy.array([token for row in rows for token in row], numpy.uint16), numpy.cumsum(lengths) - lengths, lengths


def finetune(arguments):
    import numpy
    rows = []
    for corpus in arguments.corpus.split("+"):
        with lzma.open(arguments.prepared / f"{corpus}.jsonl.xz", "rt", encoding="utf-8") as file:
            rows += [json.loads(line) for line in file]
    coder = Coder(arguments.prepared)

    def target(names, best, rng):
        if arguments.target == "similar":
            return names[best]
        if arguments.target == "canonical":
            return names[0]
        if arguments.target == "sampled":
            return names[rng.integers(len(names))]
        return min(names, key=lambda tokens: len(coder.tokenizer.decode(tokens).strip()))

    source = flat([row[0] for row in rows])
    prompt = flat([row[1][-(MAX_NAME - 1):] if arguments.prompt else [] for row in rows])
    fixed = None if arguments.target == "sampled" else flat([target(row[3], row[2], None) for row in rows])

    def part(rng):
        return source, prompt, fixed or flat([target(row[3], row[2], rng) for row in rows])

    producers = start_producers(arguments, part)
    import torch
    from transformers import BartForConditionalGeneration
    torch.manual_seed(arguments.seed)
    if arguments.start:
        model, coder = load(arguments.start, arguments.small)
    else:
        model = BartForConditionalGeneration(shape(coder.tokenizer.get_vocab_size(), arguments.small))
    train(arguments, producers, model, arguments.out.name)
    save(model, arguments.out, coder, torch)


def probe(arguments):
    """Cross-entropy of names with the sources of their mentions, and with those of other mentions."""
    import numpy
    import torch
    with lzma.open(arguments.prepared / f"{arguments.corpus}.jsonl.xz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rows = rows[::max(len(rows) // arguments.mentions, 1)][:arguments.mentions]
    parts = flat([row[0] for row in rows]), flat([row[1][-(MAX_NAME - 1):] for row in rows]), flat([row[3][row[2]] for row in rows])
    batch = [torch.from_numpy(one).long() for one in arrays(*parts, numpy.arange(len(rows)))]
    model, _ = load(arguments.folder, arguments.small)
    model.eval()
    with torch.no_grad():
        of = lambda sources: torch.nn.functional.cross_entropy(loss_of(model, sources, *batch[1:], torch)[1].float(), batch[3]).item()
        print(f"{len(rows)} mentions: nll {of(batch[0]):.4f}, with other sources {of(batch[0].roll(len(rows) // 2, 0)):.4f}")


# ---- small files

def pack(arguments):
    """Weights as 8-bit numbers with a scale for each row; vectors as 16-bit numbers."""
    import numpy
    from safetensors.torch import load_file
    weights = {name: value.float().numpy() for name, value in load_file(str(arguments.folder / "model.safetensors")).items()}
    levels = 127
    if arguments.base:
        levels = 10
        base = load_file(str(arguments.base / "model.safetensors"))
        weights = {name: value - base[name].float().numpy() for name, value in weights.items()}
    shapes, data = [], []
    for name, value in weights.items():
        shapes.append([name, list(value.shape)])
        if value.ndim < 2 or len(value) == 1:
            data.append(value.astype(numpy.float16).tobytes())
            continue
        scale = (numpy.abs(value).max(1, keepdims=True) / levels).astype(numpy.float32)
        data += [scale.tobytes(), numpy.rint(value / numpy.maximum(scale, 1e-30)).astype(numpy.int8).tobytes()]
    head = json.dumps(shapes).encode()
    packer = zlib.compressobj(1, strategy=zlib.Z_HUFFMAN_ONLY)
    packed = packer.compress(len(head).to_bytes(8, "little") + head + b"".join(data)) + packer.flush()
    arguments.parts.parent.mkdir(parents=True, exist_ok=True)
    for number in range(0, len(packed), PART):
        Path(f"{arguments.parts}.{number // PART:02}").write_bytes(packed[number:number + PART])
    print(f"{arguments.parts}: {len(packed)} bytes")


def join(arguments):
    import numpy
    import torch
    from safetensors.torch import load_file, save_file
    parts = sorted(arguments.parts.parent.glob(f"{arguments.parts.name}.[0-9][0-9]"))
    data = zlib.decompress(b"".join(path.read_bytes() for path in parts))
    at = 8 + int.from_bytes(data[:8], "little")
    base = load_file(str(arguments.base / "model.safetensors")) if arguments.base else {}

    def read(kind, n):
        nonlocal at
        begin, at = at, at + n * numpy.dtype(kind).itemsize
        return numpy.frombuffer(data, kind, n, begin)

    weights = {}
    for name, shape_of in json.loads(data[8:at]):
        n = math.prod(shape_of)
        if len(shape_of) < 2 or shape_of[0] == 1:
            value = read(numpy.float16, n).astype(numpy.float32).reshape(shape_of)
        else:
            scale = read(numpy.float32, shape_of[0])[:, None]
            value = read(numpy.int8, n).reshape(shape_of) * scale
        value = torch.from_numpy(value)
        weights[name] = (value + base[name].float() if base else value).to(torch.bfloat16).contiguous()
    assert at == len(data), f"{arguments.parts}: parts are missing; found {len(parts)}"
    arguments.folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, str(arguments.folder / "model.safetensors"))
    shape(weights["model.shared.weight"].shape[0], arguments.small).save_pretrained(arguments.folder)
    shutil.copy(arguments.prepared / "tokenizer.json", arguments.folder / "tokenizer.json")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("prepare")
    one.add_argument("prepared", type=Path)
    one.add_argument("--kbs", nargs="+", type=Path, required=True)
    one.add_argument("--corpus", nargs="+", action="append", default=[])
    one.add_argument("--phrases", nargs="+", action="append", default=[])
    one.set_defaults(run=prepare)
    for name, run, rate, tokens in [("pretrain", pretrain, 8e-4, 120_000), ("finetune", finetune, 2e-4, 16_000)]:
        one = commands.add_parser(name)
        one.add_argument("prepared", type=Path)
        if name == "finetune":
            one.add_argument("corpus")
            one.add_argument("--start", type=Path)
            one.add_argument("--target", choices=TARGETS, default="similar")
            one.add_argument("--no-prompt", dest="prompt", action="store_false")
        else:
            one.add_argument("--prompt-share", type=float, default=1.0, help="share of the examples with the prompt `mention is`")
            one.add_argument("--init-std", type=float, default=0.02)
        one.add_argument("out", type=Path)
        one.add_argument("--seconds", type=float, required=True)
        one.add_argument("--steps", type=int, default=0)
        one.add_argument("--warm-up", type=int, default=200)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--rate", type=float, default=rate)
        one.add_argument("--tokens", type=int, default=tokens)
        one.add_argument("--part", type=int, default=150_000)
        one.add_argument("--processes", type=int, default=4 if name == "pretrain" else 1)
        one.add_argument("--small", action="store_true")
        one.set_defaults(run=run)
    one = commands.add_parser("probe")
    one.add_argument("prepared", type=Path)
    one.add_argument("corpus")
    one.add_argument("folder", type=Path)
    one.add_argument("--mentions", type=int, default=200)
    one.add_argument("--small", action="store_true")
    one.set_defaults(run=probe)
    one = commands.add_parser("pack")
    one.add_argument("folder", type=Path)
    one.add_argument("parts", type=Path)
    one.add_argument("--base", type=Path)
    one.set_defaults(run=pack)
    one = commands.add_parser("join")
    one.add_argument("parts", type=Path)
    one.add_argument("folder", type=Path)
    one.add_argument("--prepared", type=Path, required=True)
    one.add_argument("--base", type=Path)
    one.add_argument("--small", action="store_true")
    one.set_defaults(run=join)
    arguments = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false" if arguments.run in (pretrain, finetune) else "true"
    arguments.run(arguments)


if __name__ == "__main__":
    main()
