"""Mentions with gold concepts that neither the name encoder of the default model nor MiniLM has learned from.

CRAFT with UBERON and CL, all 67 articles; diseases and chemicals of BioRED and diseases of tmVar3, with MeSH ids. Documents of BC5CDR and
NCBI disease are left out: the name encoder has learned from BC5CDR. Of BioRED, only documents that are also in a training set of another
corpus are used, as in `experiments/default-bundle-tagger.toml`, because others may be in a test set.
"""

import json

import linking

KNOWN = ("bc5cdr/train", "bc5cdr/dev", "ncbi-disease/train", "ncbi-disease/dev")
TRAINING = ("other-corpora/tmVar3_Train", "other-corpora/NLMgene_Train", "other-corpora/GNormPlus_Train")
MESH = {"BioRED": ("other-corpora/BioRED_TrainDev", ("Disease", "Chemical")), "tmVar3": ("other-corpora/tmVar3_Train", ("Disease",))}
CRAFT = {"CRAFT UBERON": "uberon", "CRAFT CL": "cl"}


def lines(name):
    return open(linking.DATA / f"{name}.pubtator.txt", encoding="utf-8")


def documents(names):
    return {line.split("|", 1)[0] for name in names for line in lines(name) if line[:20].find("|t|") > 0}


def pairs():
    """Distinct pairs of mention and gold id by corpus. Composite mentions are left out."""
    known, training = documents(KNOWN), documents(TRAINING)
    found = {}
    for title, (name, types) in MESH.items():
        found[title] = set()
        for line in lines(name):
            cells = line.rstrip("\n").split("\t")
            if len(cells) < 6 or cells[4] not in types or cells[0] in known or cells[0] not in training:
                continue
            gold = cells[5].strip().removeprefix("MESH:")
            if gold[:1] in ("C", "D") and gold[1:].isdigit():
                found[title].add((cells[3], gold))
    for title, name in CRAFT.items():
        found[title] = set()
        for part in ("train", "dev"):
            for line in open(linking.DATA / "craft" / f"{name}.{part}.jsonl", encoding="utf-8"):
                document = json.loads(line)
                for one in document["annotations"]:
                    if len(one["ids"]) == 1:
                        text = " ".join(document["text"][start:end] for start, end in one["spans"])
                        found[title].add((text, one["ids"][0]))
    return {title: sorted((" ".join(text.split()), gold) for text, gold in of_corpus) for title, of_corpus in found.items()}
