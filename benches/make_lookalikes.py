#!/usr/bin/env python3
"""Makes benches/lookalikes.tsv: names that the starter lacks, each with a similar-looking one that it has.

    benches/make_lookalikes.py --binary target/release/canonym
    benches/make_lookalikes.py --also MORE.tsv      treat the names in these files as names of the starter

The current list has the pairs of two runs: one with MORE.tsv set to the drafts from which the starter grew to 5,468 concepts,
including rejected ones, and one with the starter of 15,412 concepts, from which 23 pairs were dropped by hand (inflections and
synonyms of their look-alikes). Pairs whose name the starter has by now are left out when it is measured.

The queried names are those of MeSH headings, MONDO and human genes (CANONYM_DATA, else ../shared/data). A pair is kept if

- the starter has no name of the queried concept, singular or plural, nor its id, nor any of the queried words;
- the two names differ by one to four letters, or by up to six after a common prefix of five or more;
- neither contains the other, and they are not inflections or spelling variants of the same word;
- both are of one kind (drug and chemical, disease and symptom count as one); a gene symbol may look like any short form;
- it is not in DROPPED, a manual list of classes, salts, mixtures of forms, and subtypes of the other.

No concept of the starter is the look-alike of more than MOST names. Standard library only.
"""

import collections
import re

import linking

OUT = linking.ROOT / "benches" / "lookalikes.tsv"
STARTER = linking.ROOT / "crates" / "canonym-default" / "assets" / "starter.tsv"
OPEN = linking.DATA / "terminologies" / "open"
TREES = linking.DATA / "terminologies" / "mesh-tree-numbers-2015.tsv"
MONDO_MESH = linking.DATA / "terminologies" / "mondo_exactmatch_mesh.sssom.tsv"

N_PAIRS = {"drug": 200, "disease": 160, "organism": 110, "gene": 55, "symbol": 55}
MOST = 4
KINDS = {
    "drug": {"Drug", "Chemical"}, "disease": {"Disease", "Symptom"}, "organism": {"Organism"},
    "gene": {"Gene", "Chemical", "Drug"}, "symbol": {"Gene", "Chemical"},
}
# A gene symbol may also look like any of these.
SHORT = re.compile(r"[A-Z][A-Z0-9-]{2,7}")
# Kinds by prefix of the MeSH tree number; the first match decides.
TYPES = [
    ("disease", re.compile(r"C|F03")), ("organism", re.compile(r"B")), ("gene", re.compile(r"D08\.811|D12\.776")),
    ("drug", re.compile(r"D0[1-6]|D09|D1[01]|D2[0-7]")),
]
ENDINGS = re.compile(r"(ic acid|ates?|ites?|ides?|ines?|ium|ic|al|ins?|es?|s|um|us|a|is|anes?|ol|oses|osis)$")
SPELLINGS = (("ae", "e"), ("oe", "e"), ("ph", "f"), ("y", "i"), ("th", "t"), ("k", "c"))
# Names that are not a separate drug, disease or organism, or that a reader could mistake for their look-alike.
DROPPED = set("""
acute disease|adnexal diseases|cadaver|neoplastic processes|pathologic processes|neurofibromatoses|neurofibromatosis
immunoproliferative disorders|arteriolosclerosis|urologic diseases|male urogenital diseases|periapical diseases
tuberculoma|preleukemia|leiomyomatosis|rheumatic nodule|retinal drusen|retinal dysplasia|gangliosidoses|gangliosidosis
hyperthyroxinemia|fusariosis|adenomyoma|vaccinia|isochromosomes|smear layer|sunstroke|periodontal pocket|decapitation
elimination disorders|yin deficiency|yang deficiency|ape diseases|monkey diseases|monkey disease|orbital diseases
sigmoid diseases|sigmoid disease|urogenital abnormalities|necrobiotic disorders|teratogenesis|polyploidy|tetraploidy
tetrasomy|pentasomy|congenital|inherited|idiopathic|iatrogenic|synaptopathy|ciliopathy|inflammatory disease
neoplastic syndrome|myotonic syndrome|myotonic disorders|perinatal disease|lichen disease|c syndrome|n syndrome
h syndrome|trypanosomiasis|carcinosarcoma|podocytopathy|polyposis|sarcomatosis|dermatophytosis|meningococcemia
aflatoxicosis|collagenopathy|papillomatosis|chondronectin|mammastatin|chondrodysplasia|ragopathy|dyneinopathy
linkeropathy|bafopathy|serpinopathy|null syndrome|hyperinsulinism|tyrosinosis|endotheliitis|hyperproinsulinemia
rickettsiosis|pemphigoid|capillariasis|nerve degeneration|proctosigmoiditis|myofibroblastoma|chromhidrosis
iniencephaly|hypobetalipoproteinemias|hyperlysinemias|mucolipidoses|dysostoses|meckel syndrome|meningococcal
erythroleukemia|pancolitis|ileocolitis|adenohypophysitis|pyelitis|perinephritis|diaphragmitis|enclomiphene
zuclomiphene|racemethionine|racepinephrine|levopropoxyphene|tetramisole|podophyllin|oxyquinoline|dextrothyroxine
dihydroergotoxine|starch|butter|diamond|adhesives|androstanes|dimer|hydrogen|nitrogen|silver|hydroxyapatites
hydroxyprogesterones|dextrorphan|salicylamides|digitoxigenin|cholestanol|thiocholine|lipofuscin|homocystine|petroleum
gasoline|kerosene|paraffin|turpentine|cellophane|neoprene|vitallium|graphite|margarine|manure|poisons|venoms
deae-dextran|guanidine|deuterium|tritium|dihydroxyacetone|zinostatin|histoplasmin|tuberculin|sulfanilamides
pregnanetriol|rifamycins|hyoscyamine|megestrol|barbital|amrinone|antitoxins|benzoin|acids|anhydrides
haemophilus somnus|haemophilus parasuis|bacillus phages|gram-positive cocci|arboviruses|parasites|proviruses
radiation chimera|influenzavirus a|influenzavirus b|influenzavirus c|prophages|actinobacteria|proteobacteria
invertebrates|chimera|capsid|spores|nymph|trophozoites|schizonts|oocysts|chlamydophila|walruses|caniformia|hepatovirus
bacteroidetes|fusobacteria|acidobacteria|nucleocapsid|equidae|canidae|felidae|muridae|murinae|isoenzymes|proteome
peptoids|phosphorylases|hemeproteins|apoproteins|albumins|lactase|iodoproteins|catenins|bilobalides|ubiquitins|mucins
cystatins|cyclins|caspases|sirtuins|aquaporins|presenilins|synucleins|complement c3b|complement c3a|complement c3c
complement c3d|cytochromes|transcription factors|stat transcription factors|claudins|insulysin|kinesin|spirochaeta
rickettsieae|agaricus|dictyosteliida|duodenogastric reflux|keratosis|endomyometritis|imino acids|apoprotein(a)
lichen nitidus|adenocarcinofibroma|comedocarcinoma|dysgraphia|periarthritis|felypressin|ornipressin|cerebritis
neuroretinitis|chondromalacia|gastroduodenitis|histiocytoma
""".strip().replace("\n", "|").split("|"))


def stem(words):
    return tuple(re.sub(r"(ies|es|s|y)$", "", word) for word in words)


def edits(left, right, most):
    """Edit distance, or `most` + 1 if the lengths differ by more than `most`."""
    if abs(len(left) - len(right)) > most:
        return most + 1
    row = list(range(len(right) + 1))
    for at, letter in enumerate(left, 1):
        above, row = row, [at]
        for to, other in enumerate(right, 1):
            row.append(min(above[to] + 1, row[-1] + 1, above[to - 1] + (letter != other)))
    return row[-1]


def common_start(left, right):
    return next((at for at, (one, other) in enumerate(zip(left, right)) if one != other), min(len(left), len(right)))


def respelt(name):
    for old, new in SPELLINGS:
        name = name.replace(old, new)
    return name


def trigrams(text):
    text = f"^{text}$"
    return {text[at:at + 3] for at in range(len(text) - 2)}


def differing(left, right):
    """Length of the longer name without shared words at the ends, such as `syndrome`."""
    left, right = left.split(), right.split()
    while left and right and left[-1] == right[-1]:
        left, right = left[:-1], right[:-1]
    while left and right and left[0] == right[0]:
        left, right = left[1:], right[1:]
    return max(len(" ".join(left)), len(" ".join(right)))


class Starter:
    """Names of the starter, with a search for look-alikes."""

    def __init__(self, also):
        self.names, self.had, self.ids = [], set(), set()
        self.postings = collections.defaultdict(list)
        for path in [STARTER, *also]:
            for line in open(path, encoding="utf-8"):
                concept, preferred, synonyms, *kind = line.rstrip("\n").split("\t")
                self.ids.add(concept)
                for name in [preferred, *filter(None, synonyms.split("|"))]:
                    words = linking.words_of(name)
                    self.had |= {words, stem(words)}
                    if path == STARTER:
                        self.add(" ".join(words), concept, name, kind[0])

    def add(self, key, concept, name, kind):
        for gram in trigrams(key):
            self.postings[gram].append(len(self.names))
        self.names.append((key, concept, name, kind))

    def has(self, name):
        words = linking.words_of(name)
        return words in self.had or stem(words) in self.had

    def has_part(self, name):
        words = linking.words_of(name)
        parts = [words[first:last] for first in range(len(words)) for last in range(first + 1, len(words) + 1)]
        return any(part in self.had or stem(part) in self.had for part in parts)

    def near(self, key):
        """Names that share most trigrams with `key`."""
        shared = collections.Counter(at for gram in trigrams(key) for at in self.postings[gram])
        def alike(at):
            return -2 * shared[at] / (len(key) + len(self.names[at][0])), self.names[at]
        return [self.names[at] for at in sorted(shared, key=alike)[:30]]

    def lookalike(self, kind, name):
        """The closest pair that qualifies, as (length-normalised distance, id, name), or None."""
        key = " ".join(linking.words_of(name))
        found = []
        for other, concept, shown, of in self.near(key):
            if of not in KINDS[kind] and not (kind == "symbol" and SHORT.fullmatch(shown)):
                continue
            if respelt(key) == respelt(other) or ENDINGS.sub("", key) == ENDINGS.sub("", other):
                continue
            if key.replace(" ", "") in other.replace(" ", "") or other.replace(" ", "") in key.replace(" ", ""):
                continue
            start, distance = common_start(key, other), edits(key, other, 6)
            most = 1 if len(key) <= 5 else 2 if len(key) <= 7 else 3 if len(key) <= 9 else 4
            stem_shared = start >= 5 and 2 * start >= max(len(key), len(other)) and distance <= 6
            if distance and (distance <= most or stem_shared):
                found.append((distance / differing(key, other), concept, shown))
        return min(found, default=None)


def mesh_names():
    """Kind, name, synonyms and ids of MeSH headings, with names in natural word order."""
    trees = collections.defaultdict(list)
    for line in open(TREES, encoding="utf-8"):
        concept, _, number = line.rstrip("\n").split("\t")
        trees[concept].append(number)
    for line in open(linking.DATA / linking.MESH, encoding="utf-8"):
        concept, name, synonyms = (line.rstrip("\n").split("\t") + [""])[:3]
        kinds = [kind for kind, pattern in TYPES if any(map(pattern.match, trees[concept]))]
        if kinds and ", " not in name:
            yield kinds[0], name, synonyms.split("|"), {f"MESH:{concept}"}


def mondo_names(tested):
    same = collections.defaultdict(set)
    for line in open(MONDO_MESH, encoding="utf-8"):
        if line.startswith("MONDO:"):
            mondo, _, _, mesh, *_ = line.split("\t")
            same[mondo].add(mesh.replace("mesh:", "MESH:"))
    kb = tested.build("mondo-2026-05", OPEN / "mondo-2026-05.jsonl.zst", "--format", "jsonl")
    for concept in tested.concepts(kb):
        words = concept["name"].split()
        if len(words) == 1 or (len(words) == 2 and words[1] in ("syndrome", "disease")):
            yield "disease", concept["name"], linking.names_of(concept)[1:], same[concept["id"]]


def gene_names(tested):
    """Symbols of genes with low ids, which are well known."""
    kb = tested.build("human-genes-2022-09", OPEN / "human-genes-2022-09.jsonl.zst", "--format", "jsonl")
    for concept in tested.concepts(kb):
        number = int(concept["id"].split(":")[1])
        if number < 8000 and re.fullmatch(r"[A-Z][A-Z0-9]{3,6}", concept["name"]):
            yield "symbol", concept["name"], linking.names_of(concept)[1:], set()


def wanted(kind, name):
    """Whether a name qualifies: a short name of one thing, not of a chemical class or family."""
    words = linking.words_of(name)
    if len(words) > 3 or len(name) < 4 or name.lower() in DROPPED:
        return False
    if kind in ("gene", "symbol"):
        return kind == "symbol" or not re.search(r"[a-z]{4,}s\b", name)
    if re.search(r"\d", name) or len(name) < 6:
        return False
    if kind == "drug":
        return len(words) == 1 and "-" not in name and not re.search(r"[^suia]s$", name)
    if kind == "organism":
        return not name.endswith(("aceae", "idae", "ales", "inae"))
    return True


def main():
    parser = linking.options(__doc__)
    parser.add_argument("--also", nargs="*", default=[], help="more files like crates/canonym-default/assets/starter.tsv to count as had")
    arguments = parser.parse_args()
    tested = linking.program(arguments)
    starter = Starter(arguments.also)
    found, asked = collections.defaultdict(list), set()
    for kind, name, synonyms, ids in [*mesh_names(), *mondo_names(tested), *gene_names(tested)]:
        key = linking.words_of(name)
        if key in asked or not wanted(kind, name) or ids & starter.ids or starter.has_part(name):
            continue
        if any(starter.has(other) for other in synonyms):
            continue
        asked.add(key)
        pair = starter.lookalike(kind, name)
        if pair:
            found[kind].append((pair[0], name, pair[2], pair[1]))
    with open(OUT, "w", encoding="utf-8") as out:
        for kind, n in N_PAIRS.items():
            used, rows = collections.Counter(), []
            if kind == "symbol":
                # Nearly all pairs differ by one letter; sorted by distance, the longest would come first.
                order = [pair for pair in found[kind] if pair[0] <= 0.25]
                linking.seeded("symbols").shuffle(order)
            else:
                order = sorted(found[kind])
            for _, name, other, concept in order:
                if used[concept] < MOST and len(rows) < n:
                    used[concept] += 1
                    rows.append((name, other, concept))
            linking.say(f"{kind}: {len(rows)} of {len(found[kind])} pairs")
            title = "gene" if kind == "symbol" else kind
            out.writelines("\t".join((title, *row)) + "\n" for row in sorted(rows))


if __name__ == "__main__":
    main()
