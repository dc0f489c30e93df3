"""Systems annotate, link, map and explain."""

import json
import pickle
import subprocess
import sys

import pytest
from conftest import NOTE

import canonym


def found(document):
    return [(mention.text, mention.id) for mention in document]


def test_one_line_links_a_text():
    document = canonym.link("Acute kidney injury after cisplatin.")
    assert found(document) == [("Acute kidney injury", "MESH:D058186"), ("cisplatin", "MESH:D002945")]
    assert [mention.type for mention in document] == ["Disease", "Drug"]
    assert all(0.5 < mention.score <= 1 and mention.p_mention and mention.p_link for mention in document)


def test_a_note_is_annotated_with_contexts(lexical):
    document = lexical.annotate(NOTE)
    assert found(document) == [
        ("night sweats", "CLINIC:L3"),
        ("Tennis elbow", "CLINIC:L4"),
        ("dry cough", "CLINIC:L2"),
    ]
    sweats, elbow, _ = document
    assert sweats.negated and sweats.context == ("negated",) and not elbow.negated and elbow.context == ()
    assert [NOTE[mention.start : mention.end] for mention in document] == [mention.text for mention in document]
    assert sweats.candidates[0] == canonym.Candidate("CLINIC:L3", "night sweats", sweats.score)
    assert document[-1] == document.mentions[2] and found(document[:1]) == [("night sweats", "CLINIC:L3")]
    with pytest.raises(IndexError):
        document[3]


def test_nested_mentions_are_an_option(kb):
    system = canonym.System.open("lexical", kb, nested="all")
    assert ("elbow", "CLINIC:L5") in found(system.annotate(NOTE))


def test_offsets_are_those_of_python_strings(lexical):
    text = "😷 naïve — dry cough"
    mention = lexical.annotate(text)[0]
    assert text[mention.start : mention.end] == "dry cough"
    assert lexical.link(text, [(mention.start, mention.end)])[0].id == "CLINIC:L2"


def test_many_texts_give_documents_in_order(lexical):
    texts = ["dry cough", "", "No elbow."] * 400
    documents = lexical.annotate(texts)
    assert len(documents) == 1200
    assert [document.text for document in documents] == texts
    assert [document.id for document in documents[:2]] == ["1", "2"]
    one_by_one = [lexical.annotate(text) for text in texts[:3]]
    assert [found(one) for one in documents[:3]] == [found(one) for one in one_by_one]
    assert lexical.annotate(iter(texts[:3])) == documents[:3]
    assert [document.id for document in lexical.annotate(texts[:2], ids=["a", 7])] == ["a", "7"]


def test_the_output_is_that_of_the_program(kb, tmp_path):
    file = tmp_path / "note.txt"
    file.write_text(NOTE)
    command = [sys.executable, "-m", "canonym", "link", "--context", "--kb", str(kb.path), str(file)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    document = canonym.System.open(kb=kb.path).annotate(NOTE, ids="note")
    assert json.loads(printed) == document.to_dict()
    assert document.to_json() + "\n" == printed


def test_given_mentions_are_linked(lexical):
    document = lexical.link("sweats at night and a cough", [(0, 15), [(0, 6), (10, 15)], (22, 27)])
    assert [mention.spans for mention in document] == [[(0, 15)], [(0, 6), (10, 15)], [(22, 27)]]
    assert document[0].id == "CLINIC:L3" and document[1].text == "sweats night"
    several = lexical.link(["dry cough", "elbow"], [[(0, 9)], []])
    assert [len(one) for one in several] == [1, 0]


@pytest.mark.parametrize("span", [(0, 99), (3, 3), (5, 2)])
def test_a_wrong_span_is_named(lexical, span):
    with pytest.raises(canonym.UsageError, match=rf"{span[0]}\.\.{span[1]} is not a span of its 9 characters"):
        lexical.link("dry cough", [span])


def test_spans_have_to_fit_the_texts(lexical):
    with pytest.raises(canonym.UsageError, match="spans of 1 texts for 2 texts"):
        lexical.link(["a", "b"], [[]])
    with pytest.raises(canonym.UsageError, match="is not a span"):
        lexical.link("dry cough", [3])


def test_names_are_mapped(lexical):
    links = lexical.map(["orthostatic dizziness", "123"])
    assert [(link.query, link.id, link.nil) for link in links] == [
        ("orthostatic dizziness", "CLINIC:L1", False),
        ("123", None, True),
    ]
    assert lexical.map("Dry cough").name == "dry cough"
    explained = lexical.map("Dry cough", explain=True)
    assert explained.explanation["candidates"][0]["id"] == "CLINIC:L2"


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """Arguments of a knowledge base with a cross-reference, and an SSSOM file."""
    folder = tmp_path_factory.mktemp("ward")
    source, mapping = folder / "ward.jsonl", folder / "more.sssom.tsv"
    source.write_text('{"id":"WARD:1","name":"gout","xrefs":["ICD10CM:M10.9"]}\n{"id":"WARD:2","name":"dry cough"}\n')
    mapping.write_text("subject_id\tpredicate_id\tobject_id\nWARD:2\tskos:exactMatch\tSNOMEDCT:11833005\n")
    return {"model": "lexical", "kb": canonym.KnowledgeBase.build(source, folder / "ward.kb")}, mapping


def test_codes_of_another_system_are_added(ward, tmp_path):
    arguments, mapping = ward
    system = canonym.System.open(**arguments, to_system="ICD10CM")
    gout = [("ICD10CM:M10.9", "oboInOwl:hasDbXref")]
    assert [(link.id, link.codes) for link in system.map(["gout", "dry cough", "123"])] == [
        ("WARD:1", gout),
        ("WARD:2", []),
        (None, []),
    ]
    text = "Gout and a dry cough."
    assert [mention.codes for mention in system.annotate(text)] == [gout, []]
    assert [mention.codes for mention in system.explain(text)] == [gout, []]
    assert system.link(text, [(0, 4)])[0].codes == gout
    assert pickle.loads(pickle.dumps(system)).map("gout").codes == gout
    assert pickle.loads(pickle.dumps(system.map("gout"))).codes == gout
    mapped = canonym.System.open(**arguments, to_system="http://snomed.info/sct", mappings=mapping)
    assert [mention.codes for mention in mapped.annotate(text)] == [[], [("SNOMEDCT:11833005", "skos:exactMatch")]]
    assert canonym.System.open(**arguments).map("gout").codes == []


def test_codes_are_those_of_the_program(ward, tmp_path):
    arguments, mapping = ward
    text, kb = "Gout and a dry cough.", str(arguments["kb"].path)
    options = ["--model", "lexical", "--kb", kb, "--to-system", "SNOMEDCT", "--mappings", str(mapping)]
    command = [sys.executable, "-m", "canonym", "link", "--context", "--text", text, *options]
    printed = subprocess.run([*command, "--to", "jsonl"], check=True, capture_output=True, text=True).stdout
    system = canonym.System.open(**arguments, to_system="SNOMEDCT", mappings=[mapping])
    assert json.loads(printed) == system.annotate(text, ids="text").to_dict()


def test_wrong_code_systems_are_usage_errors(ward):
    arguments, mapping = ward
    with pytest.raises(canonym.UsageError, match="has no codes of `LOINC`") as caught:
        canonym.System.open(**arguments, to_system="LOINC")
    assert "name an SSSOM file with `mappings`" in caught.value.hint
    with pytest.raises(canonym.UsageError, match="`mappings` without `to_system`"):
        canonym.System.open(**arguments, mappings=[mapping])
    with pytest.raises(canonym.FileError, match="none.tsv"):
        canonym.System.open(**arguments, to_system="LOINC", mappings="none.tsv")


def test_explanations_hold_the_evidence(lexical):
    mention = lexical.explain(NOTE)[0]
    assert mention.explanation["compared"] == "night sweats"
    assert lexical.annotate(NOTE)[0].explanation is None
    assert lexical.explain("a cough", [(2, 7)])[0].explanation["compared"] == "cough"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"top_k": 0}, "invalid top_k: 0"),
        ({"min_score": 2.0}, "invalid min_score: 2"),
        ({"nested": "some"}, "invalid nested: `some`"),
        ({"only_types": "Nonsense"}, "Nonsense"),
        ({"model": "no-such-model"}, "no-such-model"),
    ],
)
def test_wrong_arguments_are_usage_errors(kb, arguments, message):
    with pytest.raises((canonym.UsageError, canonym.FileError), match=message) as caught:
        canonym.System.open(**{"model": "lexical", "kb": kb, **arguments})
    assert caught.value.hint


@pytest.mark.parametrize(
    ("texts", "message"),
    [(3, "not int"), (b"cough", "not bytes"), (["cough", None], "text 1 is missing; drop"), (["cough", 3], "text 1 is int, not str; pass texts"), ({"text": "x"}, "not dict"), ([{}], "text 0 is dict")],
)
def test_what_is_not_text_is_a_type_error(lexical, texts, message):
    with pytest.raises(TypeError, match=message):
        lexical.annotate(texts)


def test_lone_surrogates_are_refused(lexical):
    for use in (lexical.annotate, lexical.map, lexical.explain):
        with pytest.raises(canonym.UsageError, match="text 1 holds lone surrogates") as caught:
            use(["cough", "cough \ud800"])
    assert isinstance(caught.value, ValueError) and "replace them" in caught.value.hint


def test_systems_and_results_pickle(lexical):
    again = pickle.loads(pickle.dumps(lexical))
    assert again.model == "lexical" and again.annotate(NOTE) == lexical.annotate(NOTE)
    document = lexical.explain(NOTE)
    assert pickle.loads(pickle.dumps(document)).text == NOTE
    assert pickle.loads(pickle.dumps(lexical.annotate(NOTE))) == lexical.annotate(NOTE)
    assert pickle.loads(pickle.dumps(lexical.annotate([NOTE]))) == lexical.annotate([NOTE])
    assert pickle.loads(pickle.dumps(document[1])).id == "CLINIC:L4"
    assert pickle.loads(pickle.dumps(lexical.map("cough"))).id == lexical.map("cough").id


def test_notebooks_show_marked_text(lexical):
    html = lexical.annotate("<b>dry cough & no elbow</b>")._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;" in html and "&amp;" in html
    assert html.count("<mark") == 2 and 'title="elbow · negated' in html and "CLINIC:L2" in html
    several = lexical.annotate(["dry cough"] * 30)._repr_html_()
    assert several.count("<mark") == 20 and "10 more documents" in several


def test_a_changed_knowledge_base_is_noticed(table, tmp_path):
    kb = canonym.KnowledgeBase.build(table, tmp_path / "one.kb")
    assert len(canonym.System.open("bm25", kb).link("cough", [(0, 5)])) == 1
    with pytest.raises(canonym.UsageError, match="bm25") as caught:
        canonym.System.open("bm25", kb).annotate("cough")
    assert "`System.link`" in caught.value.hint and "--" not in caught.value.hint
