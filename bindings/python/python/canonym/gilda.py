"""`ground` and `annotate` with the results of Gilda, for code that moves from it.

>>> from canonym import gilda
>>> match = gilda.ground("heart attack", model="lexical")[0]
>>> match.term.db, match.term.id, match.term.entry_name
('MESH', 'D009203', 'Myocardial Infarction')
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from . import _system
from ._canonym import Candidate, KnowledgeBase, System

Path = str | os.PathLike[str]

# Concepts below this probability are not reported, as by the server; of two that are equally likely both are.
_MIN_SCORE = 0.25


@dataclass(frozen=True)
class Term:
    """A concept: `db` and `id` are the parts of its identifier."""

    db: str
    id: str
    entry_name: str

    def get_curie(self) -> str:
        """The identifier, such as `MESH:D009203`."""
        return f"{self.db}:{self.id}" if self.db else self.id


@dataclass(frozen=True)
class ScoredMatch:
    """A concept and the probability that it is meant."""

    term: Term
    score: float


@dataclass(frozen=True)
class Annotation:
    """A mention with its concepts, best first; `start` and `end` count characters."""

    text: str
    matches: list[ScoredMatch]
    start: int
    end: int


def ground(
    text: str,
    context: str | None = None,
    organisms: Iterable[str] | None = None,
    namespaces: Iterable[str] | None = None,
    *,
    model: Path = "default",
    kb: Path | KnowledgeBase | None = None,
) -> list[ScoredMatch]:
    """The concepts that a name may mean, best first; none if it is not linked. Concepts below a probability of 0.25 are left out.

    `namespaces` keeps those concepts whose identifier has one of these prefixes. `context` and `organisms` are accepted and not used: for
    a name in a text, call `annotate`.
    """
    link = _opened(model, kb).map(text)
    return [] if link.nil else _matches([one for one in link.candidates if one.score >= _MIN_SCORE], namespaces)


def annotate(
    text: str,
    *,
    organisms: Iterable[str] | None = None,
    namespaces: Iterable[str] | None = None,
    context_text: str | None = None,
    model: Path = "default",
    kb: Path | KnowledgeBase | None = None,
) -> list[Annotation]:
    """The linked mentions of a text. Of each the best concept is given, and others of a probability of 0.25 or more.

    >>> [(one.text, one.matches[0].term.get_curie()) for one in annotate("She has asthma.", model="lexical")]
    [('asthma', 'MESH:D001249')]
    """
    found = []
    for mention in _opened(model, kb).annotate(text):
        best, others = mention.candidates[:1], mention.candidates[1:]
        likely = best + [one for one in others if one.score >= _MIN_SCORE]
        matches = [] if mention.nil else _matches(likely, namespaces)
        if matches:
            found.append(Annotation(mention.text, matches, mention.start, mention.end))
    return found


def _opened(model: Path, kb: Path | KnowledgeBase | None) -> System:
    return _system(os.fspath(model), kb if kb is None or isinstance(kb, KnowledgeBase) else os.fspath(kb))


def _matches(candidates: Iterable[Candidate], namespaces: Iterable[str] | None) -> list[ScoredMatch]:
    wanted = {name.lower() for name in namespaces or ()}
    matches = []
    for candidate in candidates:
        db, _, local = candidate.id.rpartition(":")
        if not wanted or db.lower() in wanted:
            matches.append(ScoredMatch(Term(db, local, candidate.name), candidate.score))
    return matches
