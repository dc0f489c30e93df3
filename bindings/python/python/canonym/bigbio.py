"""Rows of the BigBio schema `bigbio_kb`, which the biomedical collections of Hugging Face `datasets` use.

>>> import canonym
>>> from canonym import bigbio
>>> row = bigbio.rows(canonym.link(["She has asthma."], model="lexical"))[0]
>>> row["entities"][0]["normalized"]
[{'db_name': 'MESH', 'db_id': 'D001249'}]
>>> bigbio.documents([row])[0][0].id
'MESH:D001249'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ._canonym import Document, Documents, read
from .errors import FormatError

Row = Mapping[str, Any]

# Blanks between passages; more is damage.
_MAX_GAP = 1000


def rows(documents: Document | Iterable[Document]) -> list[dict[str, Any]]:
    """The rows of linked documents, one each; `datasets.Dataset.from_list` makes a data set of them.

    What the schema cannot hold is left out: scores, contexts and all candidates but the best.
    """
    if isinstance(documents, Document):
        documents = [documents]
    return [_row(document.to_dict(), str(at)) for at, document in enumerate(documents, 1)]


def documents(rows: Iterable[Row]) -> Documents:
    """The documents of rows, such as a split of a BigBio data set, with their gold annotations.

    >>> documents([{"document_id": "7", "passages": [], "entities": []}])
    Traceback (most recent call last):
    canonym.errors.FormatError: row 1: no passages
    hint: load the configuration of the data set whose name ends in `bigbio_kb`
    """
    import json

    return Documents([read(json.dumps(_line(row, at))) for at, row in enumerate(rows, 1)])


def _row(document: dict[str, Any], row: str) -> dict[str, Any]:
    text, annotations = document["text"], document["annotations"]
    sections = document.get("sections") or [{"type": "document", "span": [0, len(text)]}]
    keys = [annotation.get("key") or f"{row}_T{at}" for at, annotation in enumerate(annotations, 1)]
    return {
        "id": row,
        "document_id": document["id"],
        "passages": [
            {
                "id": f"{row}_P{at}",
                "type": section["type"],
                "text": [text[slice(*section["span"])]],
                "offsets": [section["span"]],
            }
            for at, section in enumerate(sections, 1)
        ],
        "entities": [
            {
                "id": key,
                "type": annotation.get("type", ""),
                "text": [text[start:end] for start, end in annotation["spans"]],
                "offsets": annotation["spans"],
                "normalized": [_reference(id) for id in _ids(annotation)],
            }
            for key, annotation in zip(keys, annotations)
        ],
        "events": [],
        "coreferences": [],
        "relations": [],
    }


def _ids(annotation: dict[str, Any]) -> list[str]:
    if annotation.get("ids"):
        return list(annotation["ids"])
    candidates = annotation.get("candidates") or []
    return [candidates[0]["id"]] if candidates and not annotation.get("nil") else []


def _reference(id: str) -> dict[str, str]:
    name, _, local = id.rpartition(":")
    return {"db_name": name, "db_id": local}


def _line(row: Row, at: int) -> dict[str, Any]:
    """The row as a JSON line."""
    try:
        return _parsed(row, at)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        if isinstance(error, FormatError):
            raise
        raise _malformed(at, f"not of the schema `bigbio_kb` ({type(error).__name__}: {error})", _HINT) from error


_HINT = "load the configuration of the data set whose name ends in `bigbio_kb`"


def _malformed(at: int, problem: str, hint: str) -> FormatError:
    return FormatError(f"row {at}: {problem}", line=at, hint=hint)


def _parsed(row: Row, at: int) -> dict[str, Any]:
    passages = _dicts(row["passages"])
    if not passages:
        raise _malformed(at, "no passages", _HINT)
    text = ""
    sections = []
    for passage in passages:
        ((start, end),) = passage["offsets"]
        (piece,) = passage["text"]
        if start < len(text) or end - start != len(piece) or start - len(text) > _MAX_GAP:
            problem = f"passage of {len(piece)} characters at {start}..{end}, after {len(text)}"
            raise _malformed(at, problem, "offsets count characters; passages are in order, with small gaps")
        # Gaps between passages are blanks.
        text = text.ljust(start) + piece
        sections.append({"type": passage["type"], "span": [start, end]})
    annotations = []
    for entity in _dicts(row["entities"]):
        ids = [_id(reference) for reference in _dicts(entity.get("normalized") or [])]
        spans = [list(pair) for pair in entity["offsets"]]
        annotations.append({"spans": spans, "type": entity["type"], "ids": ids, "key": entity["id"]})
    id = row.get("document_id") or row.get("id") or at
    return {"id": str(id), "text": text, "sections": sections, "annotations": annotations}


def _dicts(items: Any) -> list[dict[str, Any]]:
    """A list of dictionaries; `datasets` gives some lists as a dictionary of lists."""
    if isinstance(items, Mapping):
        return [dict(zip(items, values)) for values in zip(*items.values())]
    return list(items)


def _id(reference: dict[str, Any]) -> str:
    """The identifier with its prefix, which some data sets repeat in `db_id`."""
    name, local = reference.get("db_name") or "", str(reference["db_id"])
    return local if not name or local.lower().startswith(f"{name.lower()}:") else f"{name}:{local}"
