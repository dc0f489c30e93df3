"""Links mentions in biomedical text to the concepts of any terminology.

>>> import canonym
>>> for mention in canonym.link("No delirium after surgery.", model="lexical"):
...     print(mention.text, mention.id, mention.negated)
delirium MESH:D003693 True
"""

import sys as _sys
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
from .errors import Error, FileError, FormatError, LimitError, MismatchError, UsageError

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
def _system(model, kb):
    return System.open(model, kb)


def link(texts, *, model="default", kb=None):
    """Finds and links the mentions of a text, or of several. The system is opened once.

    >>> document = canonym.link("She has asthma.", model="lexical")
    >>> document[0]
    <Mention asthma 8..14 MESH:D001249 Asthma (0.94)>
    """
    return _system(model, kb).annotate(texts)
