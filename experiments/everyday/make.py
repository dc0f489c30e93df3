"""Writes texts in everyday language with known mentions, which supplement corpora in training the tagger of the default model.

    python3 experiments/everyday/make.py ../shared/data runs/everyday

`carriers.pubtator`: sentences of `sentences.txt`, with slots filled by names of terminologies in natural spelling.
`names-….jsonl`: other sentences with names, and their ids, of terminologies not used in `carriers.pubtator`, to fit the evidence weights.
`dev.jsonl`: the texts of `dev/`, with the ids of their mentions.
`starter-without.tsv`: the starter without a quarter of its concepts, to fit the evidence on mentions that a terminology lacks.
`texts-teach.jsonl`, `texts-fit.jsonl`: the texts of `train/` for the tagger, and every fourth for the evidence weights.
`typed.pubtator`: MedMentions, each mention with the kind of the MeSH concept that has its name.
The tagger is not trained on names of HPO, ICD-10-CM, EFO, Cellosaurus, and the 2026 releases of MONDO, UBERON and CL, so these test
unseen terminologies. The last three are only partly unseen: DOID, MeSH and earlier releases of UBERON and CL are used in training.
"""

import collections
import json
import random
import re
import subprocess
import sys
import zlib
from pathlib import Path

LAYERS = {"disease": "Disease", "symptom": "Disease", "drug": "Chemical", "chemical": "Chemical", "gene": "Gene", "organism": "Species",
          "anatomy": "Anatomy", "procedure": "Procedure", "process": "Process"}
# Kinds by prefix of the tree number; the first match decides.
TREES = [("C23.888", "symptom"), ("C", "disease"), ("F03", "disease"), ("D08", "gene"), ("D12", "gene"), ("D23", "gene"), ("D", "chemical"), ("A", "anatomy"),
         ("B", "organism"), ("E", "procedure"), ("G", "process"), ("F01", "process"), ("F02", "process")]
STARTER = {"Disease": "disease", "Symptom": "symptom", "Drug": "drug", "Chemical": "chemical", "Gene": "gene", "Organism": "organism", "Anatomy": "anatomy",
           "Procedure": "procedure", "Process": "process"}


def in_order(name):
    """The natural word order of inverted names such as `Anemia, Aplastic`."""
    parts = name.split(", ")
    return f"{parts[1]} {parts[0]}" if len(parts) == 2 else name


def zst(path):
    text = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout.decode()
    return (json.loads(line) for line in text.splitlines())


def pools(data, starter):
    """For each kind of name, a list of sources; a source is drawn first, then one of its names."""
    terminologies = data / "terminologies"
    trees = collections.defaultdict(list)
    for line in open(terminologies / "mesh-tree-numbers-2015.tsv"):
        fields = line.rstrip("\n").split("\t")
        trees[fields[0]].append(fields[2])
    mesh, kind_of_name = collections.defaultdict(list), {}
    for line in open(terminologies / "mesh-descriptors-2019.tsv"):
        fields = line.rstrip("\n").split("\t")
        kind = next((kind for prefix, kind in TREES if any(tree.startswith(prefix) for tree in trees[fields[0]])), None)
        synonyms = [name for name in fields[2].split("|") if name] if len(fields) > 2 else []
        for name in [fields[1], *synonyms]:
            kind_of_name[in_order(name).lower()] = kind
        if kind:
            mesh[kind].append(fields[1])
            mesh[kind].extend(name for name in synonyms if ", " not in name)
    own = collections.defaultdict(list)
    for line in open(starter):
        fields = line.rstrip("\n").split("\t")
        own[STARTER[fields[3]]].extend([fields[1], *filter(None, fields[2].split("|"))])
    other = collections.defaultdict(list)
    for record in zst(terminologies / "open/chebi-2026-05.jsonl.zst"):
        if len(record["name"]) < 40:
            other["chemical"].append(record["name"])
    for record in zst(terminologies / "open/ncbitaxon-2025-09.jsonl.zst"):
        other["organism"].append(record["name"])
    for record in zst(terminologies / "open/human-genes-2022-09.jsonl.zst"):
        if not record["name"].startswith("LOC"):
            other["gene"].append(record["name"])
            other["gene"].extend(record.get("synonyms", [])[:1])
    for record in zst(terminologies / "open/go-2022-07.jsonl.zst"):
        if len(record["name"]) < 50:
            other[{"BiologicalProcess": "process", "MolecularFunction": "gene"}.get(record["types"][0], "anatomy")].append(record["name"])
    for record in zst(terminologies / "open/uberon-2025-01.jsonl.zst"):
        other["anatomy"].append(record["name"])
    for name in ("doid-2016-09-01.obo", "symp.obo"):
        kind = "symptom" if name.startswith("symp") else "disease"
        for stanza in open(terminologies / name).read().split("\n\n"):
            if "is_obsolete: true" not in stanza and (found := re.search(r"^name: (.*)$", stanza, re.M)) and stanza.startswith("[Term]"):
                other[kind].append(found[1])
    kinds = STARTER.values()
    sources = {kind: [names[kind] for names in (mesh, own, other) if names[kind]] for kind in kinds}
    sources["drug"] = [own["drug"], own["drug"], mesh["chemical"]]
    return sources, kind_of_name


def plural(name):
    word = name.split()[-1]
    if not word.isalpha() or not word.islower() or word.endswith("s") or len(word) < 4:
        return name
    return name[:-1] + "ies" if re.search("[^aeiou]y$", name) else name + ("es" if re.search("(x|ch|sh)$", name) else "s")


def written(name, kind, draw):
    """A name in natural spelling, with random case and number."""
    name = in_order(name)
    capital = re.match(r"^[A-Z][a-z]", name)
    if capital and kind not in ("organism", "gene") and draw.random() < 0.85:
        name = " ".join(word.lower() if re.match(r"^[A-Z][a-z]+$", word) else word for word in name.split(" "))
    way = draw.random()
    if way < 0.08 and kind in ("disease", "symptom", "anatomy", "procedure"):
        name = plural(name)
    elif way < 0.11:
        name = name.upper()
    elif way < 0.14:
        name = name[:1].upper() + name[1:]
    return name


def carriers(sentences, sources, draw, n):
    documents = []
    for number in range(n):
        text, mentions = "", []
        drawn = draw.sample(sentences, draw.choice([1, 1, 1, 2, 3, 4, 6]))
        # A sentence that is only a name is used alone.
        bare = [sentence for sentence in drawn if re.fullmatch(r"\{\w+\}", sentence)]
        for sentence in bare[:1] or drawn:
            if text:
                text += draw.choice([" ", " ", "\n"])
            for piece in re.split(r"(\{\w+\})", sentence.removeprefix("= ")):
                if not piece.startswith("{"):
                    text += piece
                    continue
                kind = piece.strip("{}")
                name = written(draw.choice(draw.choice(sources[kind])), kind, draw)
                if not text or text.endswith(("\n", ". ", "? ")) and draw.random() < 0.9:
                    name = name[:1].upper() + name[1:]
                mentions.append((len(text), len(text) + len(name), name, LAYERS[kind]))
                text += name
        documents.append((f"E{number}", text.replace("\n", " "), mentions))
    return documents


def read(identifier, raw):
    """A text with marks `[[surface|kind|ids]]` as a document; mentions of the kinds of `LAYERS` have their layer as type."""
    text, end, annotations = "", 0, []
    for mark in re.finditer(r"\[\[(.*?)\|(\w+)\|([^\]]*)\]\]", raw, re.S):
        text += raw[end:mark.start()]
        ids = [] if mark[3] == "-" else mark[3].split("/")
        span = [len(text), len(text) + len(mark[1])]
        annotations.append({"spans": [span], "text": mark[1], "type": LAYERS.get(mark[2], "Any"), "ids": ids})
        text, end = text + mark[1], mark.end()
    return {"id": identifier, "text": text + raw[end:], "annotations": annotations}


def misspelt(word, draw):
    """A word with one typing error inside."""
    at = draw.randrange(1, len(word) - 1)
    way = draw.randrange(4)
    if way == 0:
        return word[:at] + word[at + 1:]
    if way == 1:
        return word[:at] + word[at] + word[at:]
    if way == 2:
        return word[:at] + word[at + 1] + word[at] + word[at + 2:]
    return word[:at] + draw.choice({"a": "eo", "e": "ai", "i": "ey", "o": "au", "u": "ao", "y": "i", "c": "sk", "s": "cz", "f": "v"}.get(word[at], "aeiou")) + word[at + 1:]


def with_errors(document, draw, share=0.05):
    """The document with typing errors in a share of its mentions that are long lower-case words."""
    text, end, annotations = "", 0, []
    for annotation in document["annotations"]:
        start, stop = annotation["spans"][0]
        words = annotation["text"].split(" ")
        long = [at for at, word in enumerate(words) if len(word) > 6 and word.isalpha() and word.islower()]
        if long and draw.random() < share:
            at = draw.choice(long)
            words[at] = misspelt(words[at], draw)
        written = " ".join(words)
        text += document["text"][end:start]
        annotations.append({**annotation, "spans": [[len(text), len(text) + len(written)]], "text": written})
        text, end = text + written, stop
    return {**document, "text": text + document["text"][end:], "annotations": annotations}


def marked(folder):
    """The annotated texts of a folder; a file may have several, separated by lines of `%%`."""
    for path in sorted(folder.glob("*.txt")):
        texts = path.read_text().rstrip("\n").split("\n%%\n")
        for number, raw in enumerate(texts, 1):
            yield read(path.stem if len(texts) == 1 else f"{path.stem}-{number:03}", raw)


def named(sentences, concepts, draw, n):
    """Sentences with every slot filled by a name of one terminology; `concepts` are pairs of name and id, by kind."""
    fitting = [line for line in sentences if set(re.findall(r"\{(\w+)\}", line)) <= set(concepts) and "{" in line]
    for number in range(n):
        text, annotations = "", []
        for piece in re.split(r"(\{\w+\})", draw.choice(fitting)):
            if piece.startswith("{"):
                kind = piece.strip("{}")
                name, identifier = draw.choice(concepts[kind])
                name = written(name, kind, draw)
                name = name[:1].upper() + name[1:] if not text else name
                annotations.append({"spans": [[len(text), len(text) + len(name)]], "text": name, "type": "Any", "ids": [identifier]})
                text += name
            else:
                text += piece
        yield {"id": f"N{number}", "text": text, "annotations": annotations}


def unseen(data):
    """Names of terminologies not used to train the tagger, by terminology and kind."""
    terminologies = data / "terminologies"
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    of_hpo = subprocess.run(["zstd", "-dc", terminologies / "open/hp-2025-01-16.obo.zst"], check=True, capture_output=True).stdout.decode()
    for stanza in of_hpo.split("\n\n"):
        identifier, name = re.search(r"^id: (\S+)", stanza, re.M), re.search(r"^name: (.*)$", stanza, re.M)
        if stanza.startswith("[Term]") and "is_obsolete: true" not in stanza:
            for kind in ("disease", "symptom"):
                found["hp"][kind].append((name[1], identifier[1]))
    for name, kinds in (("mondo-2026-05", ["disease"]), ("icd10-cm-2022", ["disease"]), ("uberon-2026-04", ["anatomy"]), ("efo-3.90", ["process", "procedure"]), ("human-genes-2022-09", ["gene"])):
        for record in zst(terminologies / f"open/{name}.jsonl.zst"):
            for kind in kinds:
                found["genes" if name.startswith("human") else name.split("-")[0]][kind].append((record["name"], record["id"]))
    return found


def typed(path, kind_of_name):
    """Documents of MedMentions with the label set of each mention that is a MeSH name."""
    for block in open(path).read().split("\n\n"):
        lines = []
        for line in block.split("\n"):
            fields = line.split("\t")
            if len(fields) >= 5:
                name = fields[3].lower()
                kind = kind_of_name.get(name) or kind_of_name.get(name.removesuffix("s"))
                fields[4] = LAYERS.get(kind, "Other")
            lines.append("\t".join(fields))
        yield "\n".join(lines)


def craft(folder):
    """The training articles of CRAFT with UBERON and CL annotations together, and with each alone; alternate articles are used for training
    and held out."""
    documents = {}
    for name in ("uberon", "cl"):
        for line in open(folder / f"{name}.train.jsonl"):
            document = json.loads(line)
            known = documents.setdefault(document["id"], {"id": document["id"], "text": document["text"], "annotations": []})
            assert known["text"] == document["text"]
            known["annotations"].extend({**annotation, "type": "Anatomy"} for annotation in document["annotations"])
    ordered = [documents[identifier] for identifier in sorted(documents)]
    held = {document["id"] for document in ordered[1::2]}
    parts = {"teach": ordered[::2], "held-out": ordered[1::2]}
    for name in ("uberon", "cl"):
        alone = [json.loads(line) for line in open(folder / f"{name}.train.jsonl")]
        parts[f"taught-{name}"] = [document for document in alone if document["id"] not in held]
        parts[f"held-out-{name}"] = [document for document in alone if document["id"] in held]
    return parts


def main():
    data, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).parent
    draw, of_errors = random.Random(17), random.Random(18)
    with open(out / "dev.jsonl", "w") as file:
        file.writelines(json.dumps(document) + "\n" for document in marked(here / "dev"))
    taught = [with_errors(document, of_errors) for document in marked(here / "train")]
    for part, documents in (("teach", [one for at, one in enumerate(taught) if at % 4 != 3]), ("fit", taught[3::4])):
        with open(out / f"texts-{part}.jsonl", "w") as file:
            file.writelines(json.dumps(document) + "\n" for document in documents)
    sentences = [line.rstrip("\n") for line in open(here / "sentences.txt") if line.strip() and not line.startswith("#")]
    held_out, sentences = sentences[::5], [line for at, line in enumerate(sentences) if at % 5]
    sources, kind_of_name = pools(data, here.parent.parent / "crates/canonym-default/assets/starter.tsv")
    with open(out / "carriers.pubtator", "w") as file:
        for identifier, text, mentions in carriers(sentences, sources, draw, 16000):
            file.write(f"{identifier}|t|{text}\n{identifier}|a|\n")
            file.writelines(f"{identifier}\t{start}\t{end}\t{name}\t{layer}\t-\n" for start, end, name, layer in mentions)
            file.write("\n")
    for name, concepts in unseen(data).items():
        with open(out / f"names-{name}.jsonl", "w") as file:
            file.writelines(json.dumps(document) + "\n" for document in named(held_out, concepts, draw, 500))
    of_starter = collections.defaultdict(list)
    for line in open(here.parent.parent / "crates/canonym-default/assets/starter.tsv"):
        fields = line.rstrip("\n").split("\t")
        of_starter[STARTER[fields[3]]].append((fields[1], fields[0]))
    of_starter["drug"] += of_starter["chemical"]
    of_names = random.Random(19)
    with open(out / "names-starter.jsonl", "w") as file:
        for document in named(held_out, of_starter, draw, 800):
            file.write(json.dumps(with_errors(document, of_names, 0.2)) + "\n")
    # A quarter of the concepts is left out: the fit has to leave their mentions unlinked, however much they resemble other names.
    with open(out / "starter-without.tsv", "w") as file:
        for line in open(here.parent.parent / "crates/canonym-default/assets/starter.tsv"):
            if zlib.crc32(line.split("\t")[0].encode()) % 4:
                file.write(line)
    for part, documents in craft(data / "craft").items():
        with open(out / f"craft-{part}.jsonl", "w") as file:
            file.writelines(json.dumps(document) + "\n" for document in documents)
    with open(out / "typed.pubtator", "w") as file:
        file.write("\n\n".join(typed(data / "medmentions-st21pv/train.pubtator.txt", kind_of_name)))


main()
