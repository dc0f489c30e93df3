"""Calls of Gilda have their results."""

from canonym import gilda


def test_names_are_grounded(kb):
    (match, *others) = gilda.ground("orthostatic dizziness", model="lexical", kb=kb)
    assert (match.term.db, match.term.id, match.term.entry_name) == ("CLINIC", "L1", "postural dizziness")
    assert match.term.get_curie() == "CLINIC:L1" and match.score > 0.8
    assert all(other.score <= match.score for other in others)
    assert gilda.ground("123", model="lexical", kb=kb) == []
    assert gilda.ground("dry cough", namespaces=["MESH"], model="lexical", kb=kb) == []
    assert gilda.ground("dry cough", namespaces=["clinic"], model="lexical", kb=str(kb.path))


def test_texts_are_annotated(kb):
    (annotation,) = gilda.annotate("A dry cough.", model="lexical", kb=kb)
    assert (annotation.text, annotation.start, annotation.end) == ("dry cough", 2, 11)
    assert annotation.matches[0].term.get_curie() == "CLINIC:L2"
