"""The spaCy component fills entities and spans, which survive serialisation."""

import pytest
from conftest import NOTE

import canonym

spacy = pytest.importorskip("spacy")
from spacy.tokens import Doc, DocBin, Span  # noqa: E402

from canonym.spacy import EXTENSIONS, register  # noqa: E402

TEXTS = [NOTE, "", "No elbow, no tennis elbow.", "breast and lung cancer"]


@pytest.fixture(scope="module")
def config(kb):
    return {"kb": str(kb.path), "model": "lexical"}


@pytest.fixture(scope="module")
def nlp(config):
    nlp = spacy.blank("en")
    nlp.add_pipe("canonym", config=config)
    return nlp


def ents(doc):
    return [(ent.text, ent.label_, ent.kb_id_, ent._.negated) for ent in doc.ents]


def values(doc):
    return [[getattr(ent._, name) for name in EXTENSIONS] for ent in doc.ents]


EXPECTED = [
    ("night sweats", "Symptom", "CLINIC:L3", True),
    ("Tennis elbow", "Disease", "CLINIC:L4", False),
    ("dry cough", "Symptom", "CLINIC:L2", False),
]


def test_entities_have_concepts_and_contexts(nlp):
    doc = nlp(NOTE)
    assert ents(doc) == EXPECTED
    ent = doc.ents[0]
    assert ent._.kb_name == "night sweats" and 0.5 < ent._.kb_score <= 1
    assert ent._.kb_ents[0] == ["CLINIC:L3", ent._.kb_score]
    assert ent._.kb_candidates[0] == {"id": "CLINIC:L3", "name": "night sweats", "score": ent._.kb_score}
    assert ent._.fragments == [[11, 23]]
    assert nlp("").ents == ()


def test_nested_mentions_are_in_the_spans(config):
    nlp = spacy.blank("en")
    nlp.add_pipe("canonym", config={**config, "options": {"nested": "all"}, "spans_key": "concepts"})
    doc = nlp(NOTE)
    assert ents(doc) == EXPECTED
    assert ("elbow", "CLINIC:L5") in [(span.text, span.kb_id_) for span in doc.spans["concepts"]]


def test_discontinuous_mentions_are_in_the_spans():
    nlp = spacy.blank("en")
    nlp.add_pipe("canonym")
    doc = nlp("Breast and lung cancer.")
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [("lung cancer", "MESH:D008175")]
    breast = doc.spans["canonym"][0]
    assert (breast.text, breast.kb_id_) == ("Breast and lung cancer", "MESH:D001943")
    assert breast._.fragments == [[0, 6], [16, 22]]


def test_batches_give_what_single_texts_give(nlp):
    texts = TEXTS * 20
    batched = list(nlp.pipe(texts, batch_size=7))
    assert [doc.text for doc in batched] == texts
    assert [ents(doc) for doc in batched[:4]] == [ents(nlp(text)) for text in TEXTS]


def test_several_processes_give_the_same(nlp):
    assert [ents(doc) for doc in nlp.pipe(TEXTS, n_process=2, batch_size=2)] == [ents(nlp(text)) for text in TEXTS]


def test_docs_survive_docbin_and_bytes(nlp):
    doc = nlp(NOTE)
    stored = DocBin(store_user_data=True, docs=[doc]).to_bytes()
    (again,) = DocBin().from_bytes(stored).get_docs(nlp.vocab)
    assert ents(again) == ents(doc)
    assert values(again) == values(doc)
    assert [(span.text, span.kb_id_, span._.negated) for span in again.spans["canonym"]] == [
        (span.text, span.kb_id_, span._.negated) for span in doc.spans["canonym"]
    ]
    copied = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert ents(copied) == ents(doc) and values(copied) == values(doc)
    assert again[0:1]._.kb_ents == [] and again.ents[0]._.kb_ents[0][0] == "CLINIC:L3"


def test_codes_of_another_system_are_an_extension(tmp_path):
    source = tmp_path / "ward.jsonl"
    source.write_text('{"id":"WARD:1","name":"gout","xrefs":["ICD10CM:M10.9"]}\n')
    kb = canonym.KnowledgeBase.build(source, tmp_path / "ward.kb")
    nlp = spacy.blank("en")
    nlp.add_pipe("canonym", config={"kb": str(kb.path), "model": "lexical", "options": {"to_system": "ICD10CM"}})
    assert nlp("She has gout.").ents[0]._.kb_codes == [["ICD10CM:M10.9", "oboInOwl:hasDbXref"]]


def test_pipelines_are_saved_and_loaded(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    assert ents(spacy.load(tmp_path / "pipeline")(NOTE)) == EXPECTED


def ruled(config, **more):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "ARM", "pattern": "left arm"}, {"label": "BODY", "pattern": "elbow", "id": "x"}])
    nlp.add_pipe("canonym", config={**config, **more})
    return nlp


def test_entities_of_other_components_stay_where_no_mention_is(config):
    found = [(ent.text, ent.label_) for ent in ruled(config)(NOTE).ents]
    assert found == [
        ("night sweats", "Symptom"),
        ("Tennis elbow", "Disease"),
        ("left arm", "ARM"),
        ("dry cough", "Symptom"),
    ]
    kept = [(ent.text, ent.label_) for ent in ruled(config, overwrite_ents=False)(NOTE).ents]
    assert ("elbow", "BODY") in kept and ("Tennis elbow", "Disease") not in kept


def test_entities_of_other_components_are_linked(config):
    doc = ruled(config, mentions="ents")(NOTE)
    elbow, arm = doc.ents
    assert (elbow.text, elbow.label_, elbow.kb_id_, elbow.ent_id_) == ("elbow", "BODY", "CLINIC:L5", "x")
    assert elbow._.kb_ents[0][0] == "CLINIC:L5"
    assert (arm.text, arm.label_) == ("left arm", "ARM")


def test_tokens_that_a_mention_covers_in_part_belong_to_it(config):
    nlp = spacy.blank("en")
    nlp.tokenizer = lambda text: Doc(nlp.vocab, words=text.split(" "), spaces=[True] * (text.count(" ")) + [False])
    nlp.add_pipe("canonym", config=config)
    assert [(ent.text, ent.kb_id_) for ent in nlp("A dry cough, again.").ents] == [("dry cough,", "CLINIC:L2")]


def test_an_extension_of_another_component_stays(nlp):
    Span.set_extension("negated", default="theirs", force=True)
    try:
        register()
        assert nlp(NOTE)[0:1]._.negated == "theirs"
    finally:
        Span.set_extension("negated", default=EXTENSIONS["negated"], force=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"mentions": "gold"}, "invalid mentions: 'gold'"), ({"kb": "none.kb"}, "cannot open"), ({"no_such": 1}, "no_such")],
)
def test_a_wrong_configuration_is_named(config, change, message):
    with pytest.raises(Exception, match=message):
        spacy.blank("en").add_pipe("canonym", config={**config, **change})


def test_a_failing_batch_goes_to_the_error_handler(nlp):
    failed = []
    nlp.set_error_handler(lambda name, component, docs, error: failed.append((name, len(docs))))
    component = nlp.get_pipe("canonym")
    system, component.system = component.system, None
    try:
        assert list(nlp.pipe(["dry cough"] * 3)) == []
    finally:
        component.system = system
        nlp.set_error_handler(lambda name, component, docs, error: (_ for _ in ()).throw(error))
    assert failed == [("canonym", 3)]
