"""A spaCy component that finds mentions, or takes those of the pipeline, and links them.

>>> import spacy  # doctest: +SKIP
>>> nlp = spacy.blank("en")  # doctest: +SKIP
>>> _ = nlp.add_pipe("canonym", config={"kb": "mesh.kb"})  # doctest: +SKIP
>>> [(ent.text, ent.kb_id_, ent._.negated) for ent in nlp("No delirium.").ents]  # doctest: +SKIP
[('delirium', 'MESH:D003693', True)]

`doc.ents` gets the longest mentions that do not overlap; `doc.spans["canonym"]` gets all, nested and discontinuous ones too. Spans of
both have these extensions, whose values are the same lists after `doc.to_bytes` and `DocBin(store_user_data=True)`:

- `kb_name`, `kb_score`: preferred name of the concept, and the probability that it is meant
- `kb_ents`: candidates of a linked mention as pairs of id and score, best first; empty if it is not linked
- `kb_candidates`: candidates with id, name and score, also of a mention that is not linked
- `kb_codes`: codes in the code system of the option `to_system` as pairs of code and predicate
- `fragments`: character offsets of the parts of the mention, several if it is discontinuous
- `negated`, `possible`, `historical`, `hypothetical`, `family`: its context
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span
from spacy.util import filter_spans, minibatch

from ._canonym import Document, Mention, System
from .errors import UsageError

EXTENSIONS: dict[str, Any] = {
    "kb_name": None,
    "kb_score": None,
    "kb_ents": [],
    "kb_candidates": [],
    "kb_codes": [],
    "fragments": [],
    "negated": False,
    "possible": False,
    "historical": False,
    "hypothetical": False,
    "family": False,
}
"""The extensions of spans with their defaults."""

# spaCy's entities need a label, and not every terminology has types.
_NO_TYPE = "ENTITY"


def register() -> None:
    """Registers the extensions; those that another component registered stay."""
    for name, default in EXTENSIONS.items():
        if Span.has_extension(name):
            continue
        if default == []:
            # `DocBin` makes tuples of lists.
            Span.set_extension(name, getter=partial(_lists, name), setter=partial(_set, name))
        else:
            Span.set_extension(name, default=default)


def _lists(name: str, span: Span) -> Any:
    """The value of an extension, with lists for tuples."""
    values: dict[Any, Any] = span.doc.user_data
    return _with_lists(values.get(_key(name, span), []))


def _with_lists(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_with_lists(one) for one in value]
    return value


def _set(name: str, span: Span, value: Any) -> None:
    values: dict[Any, Any] = span.doc.user_data
    values[_key(name, span)] = value


def _key(name: str, span: Span) -> tuple[str, str, int, int]:
    """The key under which spaCy keeps extensions."""
    return "._.", name, span.start_char, span.end_char


register()


@Language.factory(
    "canonym",
    assigns=["doc.ents", "doc.spans", "token.ent_type", "token.ent_iob", "token.ent_kb_id"],
    default_config={
        "kb": None,
        "model": "default",
        "mentions": "detect",
        "spans_key": "canonym",
        "overwrite_ents": True,
        "options": {},
    },
)
def make_component(
    nlp: Language,
    name: str,
    kb: str | None,
    model: str,
    mentions: str,
    spans_key: str,
    overwrite_ents: bool,
    options: dict[str, Any],
) -> Linker:
    """Creates the component from the configuration of a pipeline.

    - `kb`, `model`, `options`: as in `canonym.System.open`
    - `mentions`: `detect` finds mentions, `ents` links those in `doc.ents`
    - `spans_key`: key of the spans in `doc.spans`
    - `overwrite_ents`: whether a mention replaces entities of earlier components that it overlaps
    """
    return Linker(
        System.open(model, kb, **options),
        name=name,
        mentions=mentions,
        spans_key=spans_key,
        overwrite_ents=overwrite_ents,
    )


class Linker(Pipe):  # type: ignore[misc, unused-ignore]
    """Links the mentions of documents in batches."""

    def __init__(
        self,
        system: System,
        *,
        name: str = "canonym",
        mentions: str = "detect",
        spans_key: str = "canonym",
        overwrite_ents: bool = True,
    ) -> None:
        if mentions not in ("detect", "ents"):
            raise UsageError(f"invalid mentions: {mentions!r}", hint="use 'detect' or 'ents'")
        self.system = system
        self.name = name
        self.mentions: Literal["detect", "ents"] = "ents" if mentions == "ents" else "detect"
        self.spans_key = spans_key
        self.overwrite_ents = overwrite_ents

    def __call__(self, doc: Doc) -> Doc:
        """Links one document."""
        try:
            self._link([doc])
        except Exception as error:
            self.get_error_handler()(self.name, self, [doc], error)
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """Links documents in batches, on all threads."""
        for batch in minibatch(stream, batch_size):  # type: ignore[no-untyped-call, unused-ignore]
            docs = list(batch)
            try:
                self._link(docs)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def _link(self, docs: list[Doc]) -> None:
        texts = [doc.text for doc in docs]
        if self.mentions == "detect":
            for doc, linked in zip(docs, self.system.annotate(texts)):
                self._set_detected(doc, linked)
        else:
            spans = [[(ent.start_char, ent.end_char) for ent in doc.ents] for doc in docs]
            for doc, linked in zip(docs, self.system.link(texts, spans)):
                self._set_given(doc, linked)

    def _set_detected(self, doc: Doc, linked: Document) -> None:
        spans: list[Span] = []
        contiguous: list[Span] = []
        for mention in linked:
            # Tokens that a mention covers in part belong to it.
            span = doc.char_span(
                mention.start,
                mention.end,
                label=mention.type or _NO_TYPE,
                kb_id=mention.id or "",
                alignment_mode="expand",
            )
            if span is None:
                continue
            spans.append(_described(span, mention))
            if len(mention.spans) == 1:
                contiguous.append(span)
        doc.spans[self.spans_key] = spans
        flat = filter_spans(contiguous)
        # Of overlapping spans the first ones win.
        ranked = [flat, list(doc.ents)] if self.overwrite_ents else [list(doc.ents), flat]
        doc.set_ents(_without_overlaps(*ranked))

    def _set_given(self, doc: Doc, linked: Document) -> None:
        ents = []
        for ent, mention in zip(doc.ents, linked):
            span = Span(doc, ent.start, ent.end, label=ent.label, kb_id=mention.id or "", span_id=ent.id)
            ents.append(_described(span, mention))
        doc.spans[self.spans_key] = ents
        doc.set_ents(ents)


def _described(span: Span, mention: Mention) -> Span:
    values = span._
    values.kb_name = mention.name
    values.kb_score = None if mention.nil else mention.score
    candidates = mention.candidates
    values.kb_ents = [] if mention.nil else [[candidate.id, candidate.score] for candidate in candidates]
    values.kb_candidates = [{"id": one.id, "name": one.name, "score": one.score} for one in candidates]
    values.kb_codes = [list(pair) for pair in mention.codes]
    values.fragments = [list(pair) for pair in mention.spans]
    values.negated = mention.negated
    values.possible = mention.possible
    values.historical = mention.historical
    values.hypothetical = mention.hypothetical
    values.family = mention.family
    return span


def _without_overlaps(first: list[Span], second: list[Span]) -> list[Span]:
    taken = {token for span in first for token in range(span.start, span.end)}
    free = [span for span in second if taken.isdisjoint(range(span.start, span.end))]
    return sorted(first + free, key=lambda span: span.start)
