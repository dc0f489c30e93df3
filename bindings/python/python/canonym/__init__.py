"""Links mentions in biomedical text to the concepts of any terminology.

>>> import canonym
>>> for mention in canonym.link("No delirium on Monday.", model="lexical"):
...     print(mention.text, mention.id, mention.negated)
delirium MESH:D003693 True
"""

from __future__ import annotations

import os as _os
import sys as _sys
import typing as _typing
from functools import lru_cache as _lru_cache

from . import _canonym
from ._canonym import (
    Candidate,
    Concept,
    Document,
    Documents,
    KnowledgeBase,
    Mention,
    NameLink,
    Report,
    SearchHit,
    System,
    __version__,
    evaluate,
    set_threads,
)
from ._train import train
from .errors import (
    Error,
    FileError,
    FormatError,
    LimitError,
    MismatchError,
    TrainingError,
    TrainingFileError,
    TrainingFormatError,
    UsageError,
)

__all__ = [
    "Candidate",
    "Concept",
    "Document",
    "Documents",
    "Error",
    "FileError",
    "FormatError",
    "KnowledgeBase",
    "LimitError",
    "Mention",
    "MismatchError",
    "NameLink",
    "Report",
    "SearchHit",
    "System",
    "TrainingError",
    "TrainingFileError",
    "TrainingFormatError",
    "UsageError",
    "__version__",
    "evaluate",
    "link",
    "set_threads",
    "train",
]

# The program starts itself for trainings of the server.
_canonym.set_hosted(_canonym.__file__, [_sys.executable, "-m", "canonym"])


@_lru_cache(maxsize=4)
def _system(model: str, kb: str | KnowledgeBase | None) -> System:
    return System.open(model, kb)


@_typing.overload
def link(
    texts: str, *, model: str | _os.PathLike[str] = ..., kb: str | _os.PathLike[str] | KnowledgeBase | None = ...
) -> Document: ...
@_typing.overload
def link(
    texts: _typing.Any,
    *,
    model: str | _os.PathLike[str] = ...,
    kb: str | _os.PathLike[str] | KnowledgeBase | None = ...,
) -> Documents: ...
def link(
    texts: _typing.Any,
    *,
    model: str | _os.PathLike[str] = "default",
    kb: str | _os.PathLike[str] | KnowledgeBase | None = None,
) -> Document | Documents:
    """Finds and links the mentions of a text, or of several. The system is opened once.

    >>> document = canonym.link("She has asthma.", model="lexical")
    >>> document[0].id, document[0].name
    ('MESH:D001249', 'Asthma')
    """
    kb = kb if kb is None or isinstance(kb, KnowledgeBase) else _os.fspath(kb)
    linked: Document | Documents = _system(_os.fspath(model), kb).annotate(texts)
    return linked
