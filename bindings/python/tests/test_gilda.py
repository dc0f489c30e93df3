"""Calls of Gilda have their results."""

import pytest

import canonym
from canonym import gilda


def test_names_are_grounded(kb):
    (match, *others) = gilda.ground("orthostatic dizziness", model="lexical", kb=kb)
    assert (match.term.db, match.term.id, match.term.entry_name) == ("CLINIC", "L1", "postural dizziness")
    assert match.term.get_curie() == "CLINIC:L1" and match.score > 0.8
    assert all(other.score <= match.score for other in others)
    assert gilda.ground("123", model="lexical", kb=kb) == []
    assert gilda.ground("dry cough", namespaces=["MESH"], model="lexical", kb=kb) == []
    assert gilda.ground("dry cough", namespaces=["clinic"], model="lexical", kb=str(kb.path))
    assert gilda.ground("dry cough", namespaces=[], model="lexical", kb=kb)


class Scored:
    """A system whose candidates have given scores."""

    def __init__(self, *scores):
        self.candidates = [canonym.Candidate(f"CLINIC:L{at}", f"name {at}", score) for at, score in enumerate(scores)]
        self.nil, self.text, self.start, self.end = False, "cough", 2, 7

    def map(self, text):
        return self

    def annotate(self, text):
        return [self]


@pytest.mark.parametrize(
    ("scores", "grounded", "annotated"),
    [
        ((0.9, 0.25, 0.2499, 0.0005), [0.9, 0.25], [0.9, 0.25]),
        # A mention was found, whatever its score.
        ((0.2, 0.1), [], [0.2]),
    ],
)
def test_unlikely_concepts_are_left_out_as_by_the_server(monkeypatch, scores, grounded, annotated):
    monkeypatch.setattr(gilda, "_opened", lambda model, kb: Scored(*scores))
    assert [match.score for match in gilda.ground("cough")] == grounded
    assert [[match.score for match in one.matches] for one in gilda.annotate("A cough.")] == [annotated]


def test_texts_are_annotated(kb):
    (annotation,) = gilda.annotate("A dry cough.", model="lexical", kb=kb)
    assert (annotation.text, annotation.start, annotation.end) == ("dry cough", 2, 11)
    assert annotation.matches[0].term.get_curie() == "CLINIC:L2"
