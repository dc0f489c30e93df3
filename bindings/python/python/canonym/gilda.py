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
    """The concepts that a name may mean, best first; none if it is not linked.

    `namespaces` keeps those concepts whose identifier has one of these prefixes. `context` and `organisms` are accepted and not used: for
    a name in a text, call `annotate`.
    """
    link = _opened(model, kb).map(text)
    return [] if link.nil else _matches(link.candidates, namespaces)


def annotate(
    text: str,
    *,
    organisms: Iterable[str] | None = None,
    namespaces: Iterable[str] | None = None,
    context_text: str | None = None,
    model: Path = "default",
    kb: Path | KnowledgeBase | None = None,
) -> list[Annotation]:
    """The linked mentions of a text.

    >>> [(one.text, one.matches[0].term.get_curie()) for one in annotate("She has asthma.", model="lexical")]
    [('asthma', 'MESH:D001249')]
    """
    found = []
    for mention in _opened(model, kb).annotate(text):
        matches = [] if mention.nil else _matches(mention.candidates, namespaces)
        if matches:
            found.append(Annotation(mention.text, matches, mention.start, mention.end))
    return found


def _opened(model: Path, kb: Path | KnowledgeBase | None) -> System:
    return _system(os.fspath(model), kb if kb is None or isinstance(kb, KnowledgeBase) else os.fspath(kb))


def _matches(candidates: Iterable[Candidate], namespaces: Iterable[str] | None) -> list[ScoredMatch]:
    wanted = None if namespaces is None else {name.lower() for name in namespaces}
    matches = []
    for candidate in candidates:
        db, _, local = candidate.id.rpartition(":")
        if wanted is None or db.lower() in wanted:
            matches.append(ScoredMatch(Term(db, local, candidate.name), candidate.score))
    return matches
