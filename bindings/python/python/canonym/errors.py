"""Exceptions, with the file and line that they are about and a hint on how to fix them.

>>> import canonym
>>> try:
...     canonym.KnowledgeBase.open("mesh.kb")
... except canonym.Error as error:
...     print(error.path, "-", error.hint)
mesh.kb - check the path; relative paths are resolved from the current folder
"""

from __future__ import annotations

import os
from typing import Any


class Error(Exception):
    """What failed, where, and on which value."""

    message: str
    """What failed, with its causes."""
    path: str | os.PathLike[str] | None = None
    """The file, if the error is about one."""
    line: int | None = None
    """The line of the file, from 1, if known."""
    hint: str | None = None
    """How to fix it, if known."""

    def __init__(
        self,
        message: str = "",
        *,
        path: str | os.PathLike[str] | None = None,
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (type(self), self.message, self.path, self.line, self.hint)


def _made(
    kind: type[Error], message: str, path: str | os.PathLike[str] | None, line: int | None, hint: str | None
) -> Error:
    return kind(message, path=path, line=line, hint=hint)


class FileError(Error, OSError):
    """A file cannot be opened, read or written."""


class FormatError(Error, ValueError):
    """A file is malformed, damaged or of another kind."""


class LimitError(Error, ValueError):
    """An input exceeds a limit on size, depth, number or expansion."""


class MismatchError(Error, ValueError):
    """Inputs do not belong together, such as predictions for other documents."""


class UsageError(Error, ValueError):
    """An argument is invalid, alone or in combination."""


class TrainingError(Error):
    """A training failed."""


class TrainingFileError(TrainingError, FileError):
    """A training failed because a file cannot be opened, read or written."""


class TrainingFormatError(TrainingError, FormatError):
    """A training failed because of a line of the experiment or of its data."""
