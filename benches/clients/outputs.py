"""Reads what `canonym link` and `canonym map` write with the libraries that users have: outputs.py PROGRAM.

Bundles and resources with the models of FHIR R4 in `fhirclient` and of R4B in `fhir.resources`; NOTE_NLP rows with the table of `omop-cdm`;
mappings with the validators of `sssom`; CSV and Parquet with pandas, polars and DuckDB.
"""

import csv
import importlib.util
import io
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

CONCEPTS = [
    {"id": "WARD:1", "name": "gout", "types": ["Disease"], "xrefs": ["ICD10CM:M10.9", {"id": "SCTID:90560007", "predicate": "skos:exactMatch"}]},
    {"id": "WARD:2", "name": "dry cough", "types": ["Symptom"], "xrefs": ["UMLS:C0850149"]},
    {"id": "WARD:3", "name": "colchicine", "types": ["Chemical"]},
    {"id": "WARD:4", "name": "tennis elbow", "types": ["Disease"], "synonyms": ["lateral epicondylitis"]},
]

CONTEXTS = ("negated", "possible", "historical", "hypothetical", "family")

NOTES = [
    {"id": "7", "text": "😷 No gout. Possible tennis elbow.\nHer mother had gout. Takes colchicine; if dry coughs persist, call."},
    {"id": "8", "text": 'A "dry cough", and gout in the past.\r\nTennis elbow.'},
    {"id": "9", "text": ""},
]

# Prefixes that YAML would read as something else, and an id that is not a CURIE.
NAMES = "LAB:1\tgout\nNO:2\tdry couhg\nLAB:3\trash\n1:4\ttennis elbows\nlateral epicondylitis\n"


def link(place, *arguments):
    command = [place.program, "link", "--kb", place.kb, "--model", "lexical", "--min-score", "0.05", place.folder / "notes.jsonl", "--quiet"]
    return subprocess.run([*command, *arguments], check=True, capture_output=True).stdout.decode()


def lines(place):
    """The mentions as the program gives them, with their context."""
    for line in link(place, "--to", "jsonl", "--context", "--to-system", "ICD10CM").splitlines():
        document = json.loads(line)
        yield from ((document, mention) for mention in document["annotations"])


def fhir(place):
    from fhir.resources.R4B import get_fhir_model_class
    from fhirclient.models import bundle, fhirelementfactory

    bundles = link(place, "--to", "fhir", "--to-system", "ICD10CM").splitlines()
    assert len(bundles) == len(NOTES)
    kinds = []
    for line in map(json.loads, bundles):
        get_fhir_model_class("Bundle").model_validate(line)
        read = bundle.Bundle(line)
        assert read.as_json() == line
        urls = {entry.fullUrl for entry in read.entry}
        assert len(urls) == len(read.entry)
        for entry in line["entry"][1:]:
            kinds.append(entry["resource"]["resourceType"])
            assert entry["resource"]["extension"][0]["extension"][0]["valueReference"]["reference"] in urls
    assert {"Condition", "Observation", "MedicationStatement", "FamilyMemberHistory"} == set(kinds), kinds
    rows = link(place, "--to", "fhir-ndjson").splitlines()
    for row in map(json.loads, rows):
        get_fhir_model_class(row["resourceType"]).model_validate(row)
        assert fhirelementfactory.FHIRElementFactory.instantiate(row["resourceType"], row).as_json() == row
    assert len(rows) == len(kinds) + len(NOTES)
    return f"{len(bundles)} bundles and {len(rows)} resources are valid FHIR R4"


CONCEPT = """\
concept_id\tconcept_name\tdomain_id\tvocabulary_id\tconcept_class_id\tstandard_concept\tconcept_code\tvalid_start_date\tvalid_end_date\tinvalid_reason
101\tGout\tCondition\tSNOMED\tDisorder\tS\t90560007\t20020131\t20991231\t
102\tGout, unspecified\tCondition\tICD10CM\t4-char billing code\t\tM10.9\t20070101\t20991231\t
"""

RELATIONSHIP = """\
concept_id_1\tconcept_id_2\trelationship_id\tvalid_start_date\tvalid_end_date\tinvalid_reason
102\t101\tMaps to\t20160101\t20991231\t
"""


def omop(place):
    from omop_cdm.regular.cdm54 import NoteNlp

    (place.folder / "CONCEPT.csv").write_text(CONCEPT)
    (place.folder / "CONCEPT_RELATIONSHIP.csv").write_text(RELATIONSHIP)
    vocabulary = ["--omop-concepts", place.folder / "CONCEPT.csv", "--omop-relationships", place.folder / "CONCEPT_RELATIONSHIP.csv"]
    written = link(place, "--to", "omop-note-nlp", "--nlp-date", "2026-11-25T14:30:00", *vocabulary)
    rows = list(csv.DictReader(io.StringIO(written, newline="")))
    columns = NoteNlp.__table__.columns
    for row in rows:
        assert list(row) == [column.name for column in columns], list(row)
        for column in columns:
            value, kind = row[column.name], column.type.python_type
            assert value or column.nullable or kind is str, column
            # Numbers and dates have to be readable, texts short enough.
            read = getattr(kind, "fromisoformat", kind)
            assert len(value) <= (column.type.length or 0) if kind is str else not value or read(value) is not None, column
    texts = {note["id"]: note["text"] for note in NOTES}
    for row in rows:
        start = int(row["offset"])
        assert texts[row["note_id"]][start : start + len(row["lexical_variant"])] == row["lexical_variant"], row
    gout = [(row["note_nlp_concept_id"], row["term_exists"]) for row in rows if row["lexical_variant"] == "gout"]
    assert gout == [("101", "N"), ("101", "N"), ("101", "Y")], gout
    return f"{len(rows)} rows fit the table NOTE_NLP"


def sssom(place):
    from sssom.constants import SchemaValidationType
    from sssom.parsers import parse_sssom_table
    from sssom.validators import validate

    (place.folder / "names.txt").write_text(NAMES)
    command = [place.program, "map", "--kb", place.kb, "--model", "lexical", "--to", "sssom", "--top-k", "1", place.folder / "names.txt"]
    run = subprocess.run(command, check=True, capture_output=True)
    (place.folder / "names.sssom.tsv").write_bytes(run.stdout)
    assert "1 id is not a CURIE" in run.stderr.decode() and b"\n1:4\t" in run.stdout, run.stderr
    mappings = parse_sssom_table(place.folder / "names.sssom.tsv")
    kinds = [SchemaValidationType.JsonSchema, SchemaValidationType.PrefixMapCompleteness, SchemaValidationType.StrictCurieFormat]
    for kind, report in validate(mappings, kinds, fail_on_error=False).items():
        assert not report.results, (kind, report.results)
    found = {row.subject_id or row.subject_label: row.object_id for row in mappings.df.itertuples()}
    missing = "sssom:NoTermFound"
    # The library drops the row whose id is not a CURIE; the program warned of it.
    expected = {"LAB:1": "WARD:1", "NO:2": "WARD:2", "LAB:3": missing, "lateral epicondylitis": "WARD:4"}
    assert found == expected, found
    return f"{len(found)} mappings are valid"


def tables(place):
    import duckdb
    import pandas
    import polars

    expected = [(document["id"], mention) for document, mention in lines(place)]
    for kind in ("csv", "parquet"):
        link(place, "--to", kind, "--to-system", "ICD10CM", "--output", place.folder / f"mentions.{kind}")
    path = str(place.folder / "mentions")
    text = {"document": str}
    lists = dict.fromkeys(("spans", "candidates", "codes"), json.loads)
    frames = {
        "pandas, Parquet": pandas.read_parquet(f"{path}.parquet").to_dict("records"),
        "pandas, CSV": pandas.read_csv(f"{path}.csv", dtype=text, converters=lists, keep_default_na=False).to_dict("records"),
        "polars, Parquet": polars.read_parquet(f"{path}.parquet").to_dicts(),
        "polars, CSV": polars.read_csv(f"{path}.csv", schema_overrides={"document": polars.String}).to_dicts(),
        "DuckDB, Parquet": duckdb.sql(f"from '{path}.parquet'").to_arrow_table().to_pylist(),
        "DuckDB, CSV": duckdb.sql(f"from read_csv('{path}.csv', types = {{'document': 'VARCHAR'}})").to_arrow_table().to_pylist(),
    }
    for reader, rows in frames.items():
        assert len(rows) == len(expected), reader
        for row, (document, mention) in zip(rows, expected):
            best = mention["candidates"][0]["id"] if not mention["nil"] else None
            assert (row["document"], row["text"], row["id"] or None, row["nil"]) == (document, mention["text"], best, mention["nil"]), reader
            assert abs(row["score"] - mention["score"]) < 1e-9, reader
            contexts = set(mention.get("attributes", {}).values())
            assert {name for name in CONTEXTS if row[name]} == contexts, (reader, row["text"])
            for name in ("candidates", "codes"):
                values = json.loads(row[name]) if isinstance(row[name], str) else list(row[name])
                assert [one["id"] for one in values] == [one["id"] for one in mention.get(name, [])], (reader, name)
    return f"{len(expected)} mentions, the same in {', '.join(frames)}"


class Place:
    """The program, a folder, and a knowledge base and notes in it."""

    def __init__(self, program, folder):
        self.program, self.folder = program, Path(folder)
        self.kb = self.folder / "ward.kb"
        for name, rows in (("ward", CONCEPTS), ("notes", NOTES)):
            (self.folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        build = [program, "kb", "build", self.folder / "ward.jsonl", "--code-system", "WARD=https://ward.example/codes|2026"]
        subprocess.run([*build, "--out", self.kb, "--quiet"], check=True)


def main():
    warnings.simplefilter("ignore")
    readers = {
        "fhir": (fhir, ["fhirclient", "fhir.resources"]),
        "omop-note-nlp": (omop, ["omop_cdm"]),
        "sssom": (sssom, ["sssom"]),
        "csv and parquet": (tables, ["duckdb", "pandas", "polars", "pyarrow"]),
    }
    with tempfile.TemporaryDirectory() as folder:
        place = Place(sys.argv[1], folder)
        for name, (reader, packages) in readers.items():
            missing = [package for package in packages if importlib.util.find_spec(package.split(".")[0]) is None]
            print(f"{name}: {reader(place) if not missing else f'left out, {missing[0]} is not installed'}")


if __name__ == "__main__":
    main()
