"""Linked text as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from ._canonym import Document, Documents, Mention

# Enough for a look; more would slow the notebook down.
_MAX_DOCUMENTS = 20

_BLOCK = "line-height:1.9;white-space:pre-wrap;margin:.5em 0"
_MARK = "border-radius:.25em;padding:.1em .25em;color:inherit"
_LABEL = "font-size:.75em;opacity:.75;margin-left:.35em"

# A hue for each semantic type; visible on light and dark pages.
_HUES = (210, 0, 130, 280, 35, 170, 320, 60)


def document(document: Document) -> str:
    """The text with its mentions marked. Of overlapping mentions the longest is marked."""
    parts, at = [], 0
    for mention in _flat(document):
        parts.append(escape(document.text[at : mention.start]))
        parts.append(_marked(document.text, mention))
        at = mention.end
    parts.append(escape(document.text[at:]))
    return f'<div style="{_BLOCK}">{"".join(parts)}</div>'


def documents(documents: Documents) -> str:
    """The first documents, each with its id."""
    shown = [f"<div><b>{escape(one.id)}</b>{document(one)}</div>" for one in documents[:_MAX_DOCUMENTS]]
    n_more = len(documents) - len(shown)
    more = f"<div>{n_more} more documents</div>" if n_more > 0 else ""
    return f"<div>{''.join(shown)}{more}</div>"


def _flat(mentions: Iterable[Mention]) -> list[Mention]:
    chosen: list[Mention] = []
    for mention in sorted(mentions, key=lambda one: (one.start - one.end, one.start)):
        if all(mention.end <= other.start or other.end <= mention.start for other in chosen):
            chosen.append(mention)
    return sorted(chosen, key=lambda one: one.start)


def _marked(text: str, mention: Mention) -> str:
    hue = _HUES[sum(map(ord, mention.type)) % len(_HUES)]
    facts = [mention.name or "not linked", *mention.context, f"{mention.score:.2f}"]
    title = escape(" · ".join(facts))
    label = f'<span style="{_LABEL}">{escape(mention.id or "not linked")}</span>'
    style = f"{_MARK};background:hsla({hue},70%,50%,.22)"
    return f'<mark style="{style}" title="{title}">{escape(text[mention.start : mention.end])}{label}</mark>'
