#!/usr/bin/env python3
"""Writes the hostile files of this folder, all of them made up, and `cases.tsv`, which says how each is given to the program.

A line of `cases.tsv` has the name of a file and the arguments of the program, `{}` for the file. What the program has to say
lies in `expected/FILE.txt`, written by the test `hostile` under UPDATE_EXPECT=1 and read by a person. Standard library only;
files for which it has no writer (`.zst`) are made by the program `zstd`.
"""

import gzip
import io
import json
import struct
import subprocess
import zipfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "files"
CASES = []


def case(name, content, arguments):
    """A file and what is done with it."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    CASES.append(f"{name}\t{arguments}\n")


def build(name, content, source_format):
    case(name, content, f"kb build --format {source_format} {{}} --out out.kb")


def link(name, content, corpus_format):
    case(name, content, f"link --mentions gold --format {corpus_format} {{}} --to jsonl")


def convert(name, content, corpus_format):
    case(name, content, f"convert --from {corpus_format} --to jsonl {{}} -")


def packed(content):
    return gzip.compress(content, 9, mtime=0)


def zipped(members, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), content, method)
    return buffer.getvalue()


def zstandard(content):
    return subprocess.run(["zstd", "-19", "--no-check", "-c"], input=content, capture_output=True, check=True).stdout


ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
BOMB = f'<?xml version="1.0"?><!DOCTYPE {{root}} [<!ENTITY e0 "ha">{ENTITIES}]>'


def xml_bomb(root, before, after):
    return BOMB.format(root=root) + f"<{root}>{before}&e9;{after}</{root}>"


def tables():
    build("one-column.tsv", "S1\tcircle\nS2\n", "tsv")
    build("empty.tsv", "", "tsv")
    build("blank-lines.tsv", "\n\n \n", "tsv")
    build("latin1.tsv", b"S1\tnaevus\nS2\tn\xe6vus\n", "tsv")
    build("utf16.tsv", "S1\tcircle\n".encode("utf-16"), "tsv")
    build("no-id.tsv", "\tcircle\n", "tsv")
    build("binary.tsv", bytes(range(256)) * 4, "tsv")
    build("json-in.tsv", '{"id":"S1"}\n', "tsv")
    build("truncated.jsonl", '{"id":"S1","name":"circle"}\n{"id":"S2","na', "jsonl")
    build("deep.jsonl", '{"id":"S1","synonyms":' + "[" * 5000 + "]" * 5000 + "}\n", "jsonl")
    build("wrong-type.jsonl", '{"id":["S1"],"name":7}\n', "jsonl")
    build("no-bars.dictionary.txt", "D1 circle\n", "biosyn")
    build("cut.obo", "format-version: 1.2\n\n[Term]\nid: S:1\nname: circle\n\n[Term]\nname: square\n", "obo")
    build("quote-open.obo", '[Term]\nid: S:1\nname: circle\nsynonym: "ring EXACT []\n', "obo")
    build("cycle.obo", "[Term]\nid: S:1\nname: circle\nis_a: S:2\n\n[Term]\nid: S:2\nname: square\nis_a: S:1\n", "obo")
    build("cut.obographs.json", '{"graphs":[{"nodes":[{"id":"S:1","lbl":"circle"', "obographs")
    build("deep.obographs.json", '{"graphs":[{"nodes":[{"id":"S:1","meta":' + '{"a":' * 3000 + "1", "obographs")
    build("MRCONSO.RRF", "C0000001|ENG|P|L1|PF|S1|Y|A1||\n", "rrf")
    build("no-mrconso.zip", zipped([("META/MRSTY.RRF", "C0000001|T047|A1|Disease||||\n")]), "rrf")
    build("no-description.zip", zipped([("Snapshot/Terminology/sct2_Concept_Snapshot_X_20200101.txt",
                                         "id\teffectiveTime\tactive\tmoduleId\tdefinitionStatusId\n138875005\t20200101\t1\t900000000000207008\t900000000000074008\n")]), "rf2")
    build("short-row.sct2_Description.zip", zipped([
        ("Snapshot/Terminology/sct2_Concept_Snapshot_X_20200101.txt",
         "id\teffectiveTime\tactive\tmoduleId\tdefinitionStatusId\n138875005\t20200101\t1\t900000000000207008\t900000000000074008\n"),
        ("Snapshot/Terminology/sct2_Description_Snapshot-en_X_20200101.txt",
         "id\teffectiveTime\tactive\tmoduleId\tconceptId\tlanguageCode\ttypeId\tterm\tcaseSignificanceId\n680946014\t20200101\t1\n")]),
        "rf2")
    build("no-ui.mesh.bin", "*NEWRECORD\nRECTYPE = D\nMH = Circles\n\n", "mesh-ascii")
    build("no-record.mesh.bin", "MH = Circles\nUI = D000001\n", "mesh-ascii")
    build("cut.desc.xml", '<?xml version="1.0"?>\n<DescriptorRecordSet>\n<DescriptorRecord>\n<DescriptorUI>D1</Descr', "mesh-xml")
    build("bomb.desc.xml", xml_bomb("DescriptorRecordSet", "<DescriptorRecord><DescriptorUI>",
                                    "</DescriptorUI></DescriptorRecord>"), "mesh-xml")
    build("deep.desc.xml", "<DescriptorRecordSet>" + "<a>" * 5000, "mesh-xml")
    build("other-root.desc.xml", "<collection></collection>", "mesh-xml")
    build("no-fields.CTD.tsv", "circle\tS1\n", "ctd")
    build("short-row.CTD.tsv", "# Fields:\n# DiseaseName\tDiseaseID\tAltDiseaseIDs\n#\ncircle\n", "ctd")
    build("short-row.gene_info", "#tax_id\tGeneID\tSymbol\tLocusTag\tSynonyms\n9606\t1\n", "gene-info")
    build("no-names.zip", zipped([("nodes.dmp", "1\t|\t1\t|\tno rank\t|\n")]), "taxonomy")
    build("short-row.names.zip", zipped([("nodes.dmp", "1\t|\t1\t|\tno rank\t|\n"), ("names.dmp", "1\t|\troot\n")]), "taxonomy")
    build("cut.owl", '<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n<rdf:Descr', "owl")
    build("bomb.owl", BOMB.format(root="rdf:RDF") + '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
          'xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"><rdf:Description rdf:about="http://x/1">'
          "<rdfs:label>&e9;</rdfs:label></rdf:Description></rdf:RDF>", "owl")
    build("syntax.ttl", "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n<http://x/1> rdfs:label circle .\n", "owl")


def archives():
    zeros = bytes(80 << 20)
    build("bomb.tsv.gz", packed(b"S1\t" + zeros), "tsv")
    build("bomb.tsv.zst", zstandard(b"S1\t" + zeros), "tsv")
    build("bomb.zip", zipped([("shapes.tsv", b"S1\t" + zeros)]), "tsv")
    build("cut.tsv.gz", packed(b"S1\tcircle\n" * 500)[:40], "tsv")
    build("cut.tsv.zst", zstandard(b"".join(b"S%d\tcircle %d\n" % (n, n) for n in range(500)))[:200], "tsv")
    whole = zipped([("shapes.tsv", "S1\tcircle\n" * 20)])
    build("cut.zip", whole[: len(whole) // 2], "tsv")
    damaged = bytearray(zipped([("shapes.tsv", "S1\tcircle\n" * 200)]))
    damaged[44] ^= 0xFF
    build("damaged.zip", bytes(damaged), "tsv")
    build("traversal.zip", zipped([("../../../../canonym-was-here.tsv", "S1\tcircle\n")]), "tsv")
    build("absolute.zip", zipped([("/canonym-was-here.tsv", "S1\n")]), "tsv")
    build("nested.zip", zipped([("inner.zip", zipped([("shapes.tsv", "S1\tcircle\n")]))]), "tsv")
    build("empty.zip", zipped([]), "tsv")
    encrypted = bytearray(zipped([("shapes.tsv", "S1\tcircle\n")], zipfile.ZIP_STORED))
    encrypted[6] |= 1
    at = bytes(encrypted).rindex(b"PK\x01\x02")
    encrypted[at + 8] |= 1
    build("encrypted.zip", bytes(encrypted), "tsv")
    build("not-packed.tsv.gz", "S1\n", "tsv")


def corpora():
    title = "7|t|Fever and cough.\n7|a|None.\n"
    link("beyond.pubtator", title + "7\t0\t500\tFever\tDisease\tD1\n", "pubtator")
    link("turned.pubtator", title + "7\t5\t0\tFever\tDisease\tD1\n", "pubtator")
    link("overflow.pubtator", title + "7\t0\t99999999999999999999\tFever\tDisease\tD1\n", "pubtator")
    link("negative.pubtator", title + "7\t-1\t5\tFever\tDisease\tD1\n", "pubtator")
    link("other-text.pubtator", title + "7\t10\t15\tchill\tDisease\tD1\n", "pubtator")
    link("other-id.pubtator", title + "8\t0\t5\tFever\tDisease\tD1\n", "pubtator")
    link("no-title.pubtator", "7\t0\t5\tFever\tDisease\tD1\n", "pubtator")
    link("two-abstracts.pubtator", title + "7|a|Again.\n", "pubtator")
    link("few-columns.pubtator", title + "7\t0\t5\n", "pubtator")
    link("latin1.pubtator", title.encode() + b"7|a|\xe9\n", "pubtator")
    link("overlap.jsonl", '{"id":"7","text":"Fever and cough.","annotations":[{"spans":[[0,5],[3,8]]}]}\n', "jsonl")
    link("beyond.jsonl", '{"id":"7","text":"Fever \U0001f600","annotations":[{"spans":[[0,8]]}]}\n', "jsonl")
    link("no-text.jsonl", '{"id":"7"}\n', "jsonl")
    link("list.jsonl", '[{"id":"7"}]\n', "jsonl")
    link("surrogate.jsonl", '{"id":"7","text":"Fever \\ud83d."}\n', "jsonl")
    link("not-a-number.jsonl", '{"id":"7","text":"Fever","annotations":[{"spans":[[0,5]],"score":NaN}]}\n', "jsonl")
    link("utf16.txt", "Fever and cough.".encode("utf-16"), "text")
    link("latin1.txt", b"Caf\xe9 and cough.\n", "text")
    link("long-line.jsonl.gz", packed(json.dumps({"id": "7", "text": "".join(f"{n % 7} " + "fever " * 700 for n in range(16_200))}).encode()),
         "jsonl")
    link("cut.jsonl", '{"id":"6","text":"Cough."}\n{"id":"7","text":"Fev', "jsonl")
    convert("cut.bioc.xml", '<?xml version="1.0"?>\n<collection><source>x</source><document><id>7</id><passage>', "bioc-xml")
    convert("bomb.bioc.xml", xml_bomb("collection", "<document><id>7</id><passage><offset>0</offset><text>",
                                      "</text></passage></document>"), "bioc-xml")
    convert("deep.bioc.xml", "<collection>" + "<document>" * 5000, "bioc-xml")
    convert("other-root.bioc.xml", "<PubmedArticleSet></PubmedArticleSet>", "bioc-xml")
    convert("utf16.bioc.xml", '<?xml version="1.0" encoding="UTF-16"?><collection></collection>'.encode("utf-16"), "bioc-xml")
    passage = "<passage><offset>{}</offset><text>Fever and cough.</text>{}</passage>"
    mark = "<annotation id='1'><infon key='type'>Disease</infon><location offset='{}' length='{}'/><text>{}</text></annotation>"
    document = "<collection><source>x</source><document><id>7</id>{}</document></collection>"
    convert("beyond.bioc.xml", document.format(passage.format(0, mark.format(0, 500, "Fever"))), "bioc-xml")
    convert("other-text.bioc.xml", document.format(passage.format(0, mark.format(10, 5, "chill"))), "bioc-xml")
    convert("no-number.bioc.xml", document.format(passage.format("x", "")), "bioc-xml")
    convert("cut.bioc.json", '{"source":"x","documents":[{"id":"7","passages":[{"offset":0,"text":"Fev', "bioc-json")
    convert("deep.bioc.json", '{"documents":' + "[" * 5000, "bioc-json")
    convert("no-documents.bioc.json", '{"source":"x"}', "bioc-json")
    convert("cut.pubmed.xml", '<?xml version="1.0"?>\n<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>7', "pubmed-xml")
    convert("no-id.pubmed.xml", "<PubmedArticleSet><PubmedArticle><MedlineCitation><Article><ArticleTitle>Fever</ArticleTitle>"
            "</Article></MedlineCitation></PubmedArticle></PubmedArticleSet>", "pubmed-xml")
    convert("bomb.pubmed.xml", xml_bomb("PubmedArticleSet", "<PubmedArticle><MedlineCitation><PMID>7</PMID><Article><ArticleTitle>",
                                        "</ArticleTitle></Article></MedlineCitation></PubmedArticle>"), "pubmed-xml")
    convert("page.pubmed.xml", "<!DOCTYPE html><html><body>502 Bad Gateway</body></html>", "pubmed-xml")
    convert("negative.texoo.json", '{"documents":[{"begin":0,"length":5,"text":"Fever","id":"7","annotations":['
            '{"begin":-3,"length":5,"text":"Fever","class":"NamedEntityAnnotation"}]}]}', "texoo")
    convert("cut.texoo.json", '{"documents":[{"begin":0,"text":"Fev', "texoo")
    convert("bad-tag.conll", "Fever\tB-Disease\nand\tX-Disease\n", "conll")
    convert("one-column.conll", "Fever\nand\n", "conll")
    convert("few-fields.concept", "7||0|5||fever\n", "biosyn")
    case("alone.ann", "T1\tDisease 0 5\tFever\n", "convert --from brat --to jsonl {} -")
    case("spread.zip", zipped([("7.txt", "Fever and cough."), ("7.ann", "T1\tDisease 0 500\tFever\n")]),
         "convert --from brat --to jsonl {} -")


def others():
    case("magic.kb", b"not a knowledge base, but longer than a header" * 4, "kb info {}")
    case("stub.kb", b"canonym", "map --kb {} -")
    header = bytearray(b"\0" * 128)
    case("zeros.kb", bytes(header), "link --kb {} --text fever")
    case("huge-table.kb", struct.pack("<8sIIQQ", b"CANONYM\0", 1, 0xFFFFFFFF, 1 << 62, 1 << 63) + bytes(64), "kb info {}")
    case("cut.toml", 'system = "lexical"\n[data\n', "train {} --out run")
    case("system.toml", 'system = "oracle"\n', "train {} --out run")
    case("empty.model", "", "link --model {} --text fever")
    case("twice.pubtator", "7|t|Fever.\n\n7|t|Fever.\n", "eval --gold {} --pred {}")
    case("no-columns.sssom.tsv", "#curie_map:\nsubject\tobject\nA:1\tB:1\n", "kb build {} --join {} --out out.kb")


def main():
    tables()
    archives()
    corpora()
    others()
    (FOLDER.parent / "cases.tsv").write_text("".join(CASES))


if __name__ == "__main__":
    main()
