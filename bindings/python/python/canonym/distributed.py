"""Links Arrow data in worker processes. `canonym.spark` uses it, and Ray Data, Dask and others can call it.

>>> import pyarrow  # doctest: +SKIP
>>> link = Linker(model="lexical")  # doctest: +SKIP
>>> linked = link(pyarrow.table({"visit": [7], "text": ["No delirium."]}))  # doctest: +SKIP
>>> linked.to_pylist()[0]["mentions"][0]["id"]  # doctest: +SKIP
'MESH:D003693'

The rows keep their columns and get three more: `mentions`, a list as in the Arrow tables of `Documents`; `error`, why a row could not be
linked, and then `mentions` is null; and `provenance`, the versions and fingerprints of what linked it.

A `Linker` holds paths and options, never a terminology, so it is small when it is sent to workers. Each process opens its files once;
processes of one machine share the memory of knowledge base and embeddings.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from ._canonym import Document, Documents, KnowledgeBase, System, __version__, set_threads
from .errors import FileError, FormatError, MismatchError, UsageError

MAX_BYTES = 64 << 20
"""Longer texts become errors, unless told otherwise; the limit of the program."""

# Rows that are linked together; the results of more would take much memory.
_ROWS = 1000

_CACHE = "CANONYM_CACHE"

_CONTEXTS = ("negated", "possible", "historical", "hypothetical", "family")

SPAN = pa.struct([("start", pa.int64()), ("end", pa.int64())])
CODE = pa.struct([("id", pa.string()), ("predicate", pa.string())])
CANDIDATE = pa.struct([("id", pa.string()), ("name", pa.string()), ("score", pa.float64())])
MENTION = pa.struct(
    [("start", pa.int64()), ("end", pa.int64()), ("spans", pa.list_(SPAN))]
    + [(name, pa.string()) for name in ("text", "type", "id", "name")]
    + [(name, pa.float64()) for name in ("score", "p_mention", "p_link")]
    + [(name, pa.bool_()) for name in ("nil", *_CONTEXTS)]
    + [("candidates", pa.list_(CANDIDATE)), ("codes", pa.list_(CODE))]
)
PROVENANCE = pa.struct([(name, pa.string()) for name in ("version", "kb", "kb_fingerprint", "model", "model_fingerprint")])
COLUMNS = [pa.field("mentions", pa.list_(MENTION)), pa.field("error", pa.string()), pa.field("provenance", PROVENANCE)]
"""What is added to the columns of the input."""


@dataclass(frozen=True)
class Provenance:
    """What linked a row."""

    version: str
    kb: str
    kb_fingerprint: str
    model: str
    model_fingerprint: str

    @staticmethod
    def of(system: System) -> Provenance:
        """The versions and fingerprints of a system."""
        kb = system.kb
        name = f"{kb.name} {kb.version}".strip()
        model = system.model if system.model in ("default", "lexical") else Path(system.model).name
        return Provenance(__version__, name, kb.fingerprint, model, system.fingerprint)

    def check(self, expected: Provenance) -> None:
        """Fails if a worker has other files than whoever made the linker."""
        pairs = [
            ("canonym", self.version, expected.version),
            ("the knowledge base", self.kb_fingerprint, expected.kb_fingerprint),
            ("the model", self.model_fingerprint, expected.model_fingerprint),
        ]
        for what, here, there in pairs:
            if here != there:
                hint = "install the same package everywhere, and let all workers read the same files"
                raise MismatchError(f"{what} on this worker is {here}, expected {there}", hint=hint)


@dataclass(frozen=True)
class Linker:
    """Links the texts of Arrow tables and record batches; see the module.

    `kb` and `model` are what `System.open` takes, as paths that exist on every worker. `text` names the column of the texts. `threads` is
    the number of threads of each process, `None` for all cores. `cache` is a folder for embeddings of names, which every worker can read;
    by default each machine has its own. `options` are those of `System.open`. With `expected`, workers with other files fail.
    """

    kb: str | os.PathLike[str] | None = None
    model: str | os.PathLike[str] = "default"
    text: str = "text"
    threads: int | None = 1
    cache: str | os.PathLike[str] | None = None
    max_bytes: int = MAX_BYTES
    options: dict[str, Any] = field(default_factory=dict)
    expected: Provenance | None = None

    def __call__(self, data: Any) -> Any:
        """The rows of a `pyarrow.Table` or `RecordBatch` with their mentions, in order."""
        schema = self.schema(data.schema)
        if isinstance(data, pa.RecordBatch):
            table = pa.Table.from_batches(self.batches(iter([data])), schema).combine_chunks()
            columns = [column.combine_chunks() for column in table.columns]
            return pa.RecordBatch.from_arrays(columns, schema=schema)
        return pa.Table.from_batches(self.batches(iter(data.to_batches())), schema)

    def batches(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The same for an iterator of record batches; large ones are split."""
        opened = None
        for batch in batches:
            schema = self.schema(batch.schema)
            opened = opened or _opened(self)
            for start in range(0, batch.num_rows, _ROWS):
                yield self._linked(opened, batch.slice(start, _ROWS), schema)

    def schema(self, schema: Any) -> Any:
        """The Arrow schema of the result for that of the input."""
        self.check_names(schema.names)
        kind = schema.field(self.text).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            raise UsageError(f"the column `{self.text}` holds {kind}, not strings", hint="convert it before linking")
        return pa.schema([*schema, *COLUMNS])

    def check_names(self, names: Sequence[str]) -> None:
        """Fails if columns of these names cannot be linked."""
        if list(names).count(self.text) != 1:
            found = ", ".join(f"`{name}`" for name in names)
            raise UsageError(f"no column `{self.text}`, only {found}", hint="name the column of the texts with `text`")
        taken = [column.name for column in COLUMNS if column.name in names]
        if taken:
            raise UsageError(f"there is a column `{taken[0]}` already", hint="rename or drop it before linking")

    def open(self) -> System:
        """The system of this process."""
        return _opened(self).system

    def _linked(self, opened: _Opened, batch: Any, schema: Any) -> Any:
        errors: list[str | None] = [None] * batch.num_rows
        rows: list[int] = []
        texts: list[str] = []
        for row, text in enumerate(_strings(batch.column(self.text))):
            problem = _problem(text, self.max_bytes)
            if problem:
                errors[row] = problem
            else:
                rows.append(row)
                texts.append(str(text))
        documents: list[Document] = []
        counts = [0] * batch.num_rows
        for row, found in zip(rows, _annotated(opened.system, texts)):
            if isinstance(found, str):
                errors[row] = found
            else:
                documents.append(found)
                counts[row] = len(found)
        is_missing = pa.array([error is not None for error in errors], pa.bool_())
        offsets = pa.array(accumulate(counts, initial=0), pa.int32())
        mentions = pa.ListArray.from_arrays(offsets, _mentions(documents), type=pa.list_(MENTION), mask=is_missing)
        provenance = pa.repeat(opened.provenance, batch.num_rows)
        return pa.RecordBatch.from_arrays([*batch.columns, mentions, pa.array(errors, pa.string()), provenance], schema=schema)


@dataclass(frozen=True)
class _Opened:
    system: System
    provenance: Any


_SYSTEMS: dict[str, _Opened] = {}
_LOCK = threading.Lock()


def _opened(linker: Linker) -> _Opened:
    """The system of a linker, opened when this process first needs it."""
    key = repr(linker)
    with _LOCK:
        if key not in _SYSTEMS:
            _SYSTEMS[key] = _open(linker)
        return _SYSTEMS[key]


def _open(linker: Linker) -> _Opened:
    if linker.threads is not None:
        set_threads(linker.threads)
    own = Path(linker.model) / "terminology.kb"
    path = own if linker.kb is None and own.exists() else linker.kb
    before = os.environ.get(_CACHE)
    try:
        if linker.cache is not None:
            os.environ[_CACHE] = os.fspath(linker.cache)
        system = System.open(linker.model, KnowledgeBase.open(path, shared=True), **linker.options)
    finally:
        if linker.cache is not None:
            os.environ.pop(_CACHE)
            if before is not None:
                os.environ[_CACHE] = before
    provenance = Provenance.of(system)
    if linker.expected is not None:
        provenance.check(linker.expected)
        # With the name of the model, whose file may have another one here.
        provenance = linker.expected
    return _Opened(system, pa.scalar(vars(provenance), PROVENANCE))


def _strings(column: Any) -> list[str | bytes | None]:
    """The values of a column; bytes where they are not UTF-8."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        kind = pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary()
        return [_decoded(value) for value in column.cast(kind).to_pylist()]


def _decoded(value: bytes | None) -> str | bytes | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _problem(text: str | bytes | None, max_bytes: int) -> str | None:
    if text is None:
        return "the text is missing"
    if isinstance(text, bytes):
        return "the text is not UTF-8"
    n_bytes = len(text.encode()) if 4 * len(text) > max_bytes else 0
    return f"the text has {n_bytes} bytes, at most {max_bytes} are allowed" if n_bytes > max_bytes else None


def _annotated(system: System, texts: list[str]) -> list[Document | str]:
    """The documents of texts. If linking fails, it is repeated with fewer, so that only the text at fault gets the error."""
    if not texts:
        return []
    try:
        return list(system.annotate(texts))
    except (FileError, FormatError, MemoryError):
        # Not the fault of a text.
        raise
    except BaseException as error:
        # The class of a panic cannot be imported.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        if len(texts) == 1:
            return [f"{type(error).__name__}: {error}"]
        middle = len(texts) // 2
        return _annotated(system, texts[:middle]) + _annotated(system, texts[middle:])


def _mentions(documents: list[Document]) -> Any:
    """The mentions of all documents, one after the other."""
    table = pa.table(Documents(documents))
    columns = [table.column(one.name).combine_chunks().cast(one.type) for one in MENTION]
    return pa.StructArray.from_arrays(columns, fields=list(MENTION))
