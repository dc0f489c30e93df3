"""Knowledge bases are built, opened and searched."""

import pickle

import pytest

import canonym


def test_a_table_becomes_a_mapping_of_concepts(kb, table):
    assert (len(kb), kb.n_names, kb.types) == (5, 10, ["Anatomy", "Disease", "Symptom"])
    assert list(kb)[:2] == ["CLINIC:L1", "CLINIC:L2"]
    assert "CLINIC:L1" in kb and "CLINIC:L9" not in kb
    concept = kb["CLINIC:L1"]
    assert (concept.name, concept.types) == ("postural dizziness", ["Symptom"])
    assert concept.names == ["postural dizziness", "dizziness on standing", "orthostatic dizziness"]
    assert concept.definition == "Dizziness that comes on standing up."
    assert kb.get("CLINIC:L9") is None and kb.get("CLINIC:L9", 3) == 3
    assert kb.build_report == {"read": 5, "joined": 0, "merged": {}, "dropped": {}}
    assert repr(kb) == "<KnowledgeBase clinic: 5 concepts, 10 names>"
    with pytest.raises(KeyError, match="CLINIC:L9"):
        kb["CLINIC:L9"]


@pytest.mark.parametrize(
    ("query", "kind", "id"),
    [
        ("CLINIC:L3", "id", "CLINIC:L3"),
        ("Nocturnal Sweating", "exact", "CLINIC:L3"),
        ("noct", "prefix", "CLINIC:L3"),
        ("nocturnal swaeting", "fuzzy", "CLINIC:L3"),
    ],
)
def test_a_search_tells_how_a_name_matches(kb, query, kind, id):
    hit = kb.search(query, top_k=1)[0]
    assert (hit.kind, hit.id) == (kind, id)


def test_opening_by_path_gives_what_was_built(kb):
    opened = canonym.KnowledgeBase.open(str(kb.path))
    assert list(opened) == list(kb) and opened.build_report is None


def test_the_starter_is_inside():
    kb = canonym.KnowledgeBase.open()
    assert kb.path is None and len(kb) > 5000
    assert kb["MESH:D009203"].name == "Myocardial Infarction"


def test_knowledge_bases_and_their_values_pickle(kb):
    again = pickle.loads(pickle.dumps(kb))
    assert list(again) == list(kb)
    for value in (kb["CLINIC:L1"], kb.search("elbow")[0]):
        assert pickle.loads(pickle.dumps(value)) == value


def test_concepts_have_codes_of_other_systems(tmp_path):
    source = tmp_path / "ward.jsonl"
    source.write_text('{"id":"WARD:1","name":"gout","xrefs":["ICD10CM:M10",{"id":"MSH:D006073","predicate":"skos:exactMatch"}]}\n')
    system = "WARD=https://ward.example/codes|2026"
    kb = canonym.KnowledgeBase.build(source, tmp_path / "ward.kb", code_systems=system)
    concept = kb["WARD:1"]
    assert concept.xrefs == [("ICD10CM:M10", "oboInOwl:hasDbXref"), ("MSH:D006073", "skos:exactMatch")]
    assert concept.code_system == "https://ward.example/codes"
    assert pickle.loads(pickle.dumps(concept)) == concept
    assert kb.codes("WARD:1", "MESH") == [("MESH:D006073", "skos:exactMatch")]
    mapping = tmp_path / "more.sssom.tsv"
    mapping.write_text("subject_id\tpredicate_id\tobject_id\nWARD:1\tskos:broadMatch\tSNOMEDCT:90560007\n")
    assert kb.codes("WARD:1", "http://snomed.info/sct", mappings=[mapping]) == [("SNOMEDCT:90560007", "skos:broadMatch")]
    assert kb.codes("WARD:1", "SNOMEDCT", str(mapping)) == [("SNOMEDCT:90560007", "skos:broadMatch")]
    with pytest.raises(canonym.UsageError, match="has no codes of `LOINC`") as caught:
        kb.codes("WARD:1", "LOINC")
    assert "name an SSSOM file with `mappings`" in caught.value.hint
    with pytest.raises(KeyError, match="WARD:2"):
        kb.codes("WARD:2", "MESH")


def test_lone_surrogates_are_refused(kb):
    for use in (kb.search, kb.get, lambda id: kb[id], lambda id: kb.codes(id, "MESH")):
        with pytest.raises(canonym.UsageError, match="lone surrogates"):
            use("\ud800")
    assert "\ud800" not in kb


def test_a_malformed_source_tells_path_line_and_hint(tmp_path):
    source = tmp_path / "broken.tsv"
    source.write_text("L1\tcough\nL2\n")
    with pytest.raises(canonym.FormatError) as caught:
        canonym.KnowledgeBase.build(source, tmp_path / "broken.kb")
    assert (caught.value.path, caught.value.line) == (source, 2)
    assert not (tmp_path / "broken.kb").exists()


def test_a_missing_file_is_an_os_error_with_a_hint(tmp_path):
    with pytest.raises(OSError) as caught:
        canonym.KnowledgeBase.open(tmp_path / "none.kb")
    assert isinstance(caught.value, canonym.FileError)
    assert caught.value.path == tmp_path / "none.kb"
    assert "check the path" in caught.value.hint and "check the path" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.path, again.hint) == (str(caught.value), caught.value.path, caught.value.hint)


def test_a_damaged_file_is_a_value_error(tmp_path, kb):
    damaged = tmp_path / "damaged.kb"
    damaged.write_bytes(kb.path.read_bytes()[:5000])
    with pytest.raises(canonym.FormatError) as caught:
        canonym.KnowledgeBase.open(damaged)
    assert caught.value.path == damaged


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"no_such": 1}, "unexpected keyword argument 'no_such'"),
        ({"prefix": 3}, "argument 'prefix'"),
        ({"format": "docx"}, "docx"),
    ],
)
def test_a_wrong_option_is_named(table, tmp_path, options, message):
    with pytest.raises((TypeError, canonym.UsageError), match=message):
        canonym.KnowledgeBase.build(table, tmp_path / "out.kb", **options)


def test_a_build_without_sources_says_so(tmp_path):
    with pytest.raises(canonym.UsageError, match="no sources"):
        canonym.KnowledgeBase.build([], tmp_path / "out.kb")
