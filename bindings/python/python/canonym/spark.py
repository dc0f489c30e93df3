"""Linking with Apache Spark.

>>> from canonym.spark import linker  # doctest: +SKIP
>>> link = linker("mesh.kb", spark=spark)  # doctest: +SKIP
>>> linked = notes.mapInArrow(link, link.schema(notes))  # doctest: +SKIP
>>> linked.select("note_id", "mentions.id", "error").show()  # doctest: +SKIP

`notes` is a data frame with a column `text`. Its rows keep their columns and get `mentions`, `error` and `provenance`, as described in
`canonym.distributed`. With `spark`, knowledge base, model and embeddings go to every worker by `addFile`, once; without it, the paths have
to exist on all workers. Executors need the Python package and as many cores a task as `spark.task.cpus` says.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .distributed import COLUMNS, MAX_BYTES, Linker, Provenance
from .errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Options of `System.open` that are paths.
_PATHS = ("abbreviations", "mappings", "rerank")


@dataclass(frozen=True)
class SparkLinker:
    """A function for `DataFrame.mapInArrow`. Make one with `linker`."""

    linker: Linker
    is_sent: bool = False
    """Whether the paths are names of files that `addFile` sent."""

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The rows of record batches with their mentions, in order."""
        return self._here().batches(batches)

    def schema(self, frame: DataFrame) -> StructType:
        """The schema of the result for a data frame."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StringType, StructType

        self.linker.check_names(frame.schema.names)
        kind = frame.schema[self.linker.text].dataType
        if not isinstance(kind, StringType):
            message = f"the column `{self.linker.text}` holds {kind.simpleString()}, not strings"
            raise UsageError(message, hint="cast it before linking")
        return StructType([*frame.schema.fields, *from_arrow_schema(pa.schema(COLUMNS)).fields])

    def _here(self) -> Linker:
        """The linker with the paths and threads of this worker."""
        from pyspark import SparkFiles, TaskContext

        context = TaskContext.get()
        linker = replace(self.linker, threads=context.cpus() if context else 1)
        if not self.is_sent:
            return linker
        here = SparkFiles.get
        options = dict(linker.options)
        for name in _PATHS:
            if name in options:
                value = options[name]
                options[name] = [here(one) for one in value] if isinstance(value, list) else here(value)
        return replace(
            linker,
            kb=None if linker.kb is None else here(os.fspath(linker.kb)),
            model=here(os.fspath(linker.model)) if _is_path(linker.model) else linker.model,
            cache=SparkFiles.getRootDirectory(),
            options=options,
        )


def linker(
    kb: str | os.PathLike[str] | None = None,
    model: str | os.PathLike[str] = "default",
    *,
    spark: SparkSession | None = None,
    text: str = "text",
    cache: str | os.PathLike[str] | None = None,
    max_bytes: int = MAX_BYTES,
    **options: Any,
) -> SparkLinker:
    """A function for `DataFrame.mapInArrow` that links the texts in the column `text`.

    `kb`, `model` and the options are those of `System.open`; the system is opened here first, which checks them and embeds the names of
    the knowledge base unless that was done before. `spark` is the session whose workers get the files; without it they read the same
    paths, and embeddings in the folder `cache`, if given. Texts of more than `max_bytes` bytes become rows with an error.
    """
    plain = Linker(kb, model, text=text, threads=None, cache=cache, max_bytes=max_bytes, options=options)
    system = plain.open()
    checked = replace(plain, expected=Provenance.of(system))
    if spark is None:
        return SparkLinker(replace(checked, **_absolute(checked)))
    if not hasattr(spark, "_jsc"):
        hint = "omit `spark`, and pass paths that exist on all workers"
        raise UsageError("files cannot be sent to workers over Spark Connect", hint=hint)
    sender = _Sender(spark)
    kb = system.kb.path
    sent = replace(
        checked,
        kb=None if kb is None else sender.send(kb, ".kb"),
        model=sender.send(_model_file(Path(model)), "") if _is_path(model) else model,
        cache=None,
        options={name: sender.option(name, value) for name, value in options.items()},
    )
    for file in system.embedding_files:
        sender.send_as(file, Path(file).name)
    return SparkLinker(sent, is_sent=True)


def _absolute(linker: Linker) -> dict[str, Any]:
    """The paths of a linker, for processes with another current folder."""

    def absolute(path: Any) -> Any:
        return None if path is None else os.path.abspath(path)

    options = dict(linker.options)
    for name in _PATHS:
        if name in options:
            value = options[name]
            options[name] = absolute(value) if isinstance(value, (str, os.PathLike)) else [absolute(one) for one in value]
    model = absolute(linker.model) if _is_path(linker.model) else linker.model
    return {"kb": absolute(linker.kb), "model": model, "cache": absolute(linker.cache), "options": options}


def _is_path(model: str | os.PathLike[str]) -> bool:
    return os.fspath(model) not in ("default", "lexical")


def _model_file(path: Path) -> Path:
    """The file of a model: of a run folder, that in it."""
    if not path.is_dir():
        return path
    for name in ("model.safetensors", "model.json"):
        if (path / name).exists():
            return path / name
    raise UsageError(f"{path} holds no model", hint="pass the folder of a training, or a model file")


@dataclass
class _Sender:
    """Sends files by `addFile`, each under a name made of its content, because Spark refuses two files of one name."""

    spark: SparkSession
    sent: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        context = self.spark.sparkContext
        self.sent = _SENT.setdefault(str(context.applicationId), set())

    def send(self, path: str | os.PathLike[str], suffix: str) -> str:
        digest = hashlib.blake2b(digest_size=16)
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        return self.send_as(path, f"canonym-{digest.hexdigest()}{suffix or Path(path).suffix}")

    def send_as(self, path: str | os.PathLike[str], name: str) -> str:
        if name not in self.sent:
            staged = Path(_staging_folder()) / name
            if not staged.exists():
                _link_or_copy(path, staged)
            self.spark.sparkContext.addFile(os.fspath(staged))
            self.sent.add(name)
        return name

    def option(self, name: str, value: Any) -> Any:
        if name not in _PATHS:
            return value
        if isinstance(value, (str, os.PathLike)):
            return self.send(_model_file(Path(value)), "")
        return [self.send(one, "") for one in value]


# Names that each application has sent.
_SENT: dict[str, set[str]] = {}
_STAGING: list[str] = []


def _staging_folder() -> str:
    """A folder with the files that are sent; workers may ask for them as long as this process runs."""
    if not _STAGING:
        _STAGING.append(tempfile.mkdtemp(prefix="canonym-spark-"))
        atexit.register(shutil.rmtree, _STAGING[0], ignore_errors=True)
    return _STAGING[0]


def _link_or_copy(path: str | os.PathLike[str], to: Path) -> None:
    try:
        os.link(path, to)
    except OSError:
        shutil.copyfile(path, to)
