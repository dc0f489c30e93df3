"""Training, in a process of its own, so that an interrupt ends it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .errors import TrainingError, TrainingFileError, TrainingFormatError


def train(
    config: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    data_root: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, object] | None = None,
    allow_seen: bool = False,
) -> str:
    """Trains a model from an experiment file, as `canonym train` does, and returns the folder `out`.

    `overrides` replaces values of the experiment: `{"fit.penalty": 0.01}`. Progress goes to `sys.stderr`. The folder is a model that
    `System.open` opens. A failure is a `TrainingError`, with the path and the line of the file at fault where they are known.
    """
    command = [sys.executable, "-m", "canonym", "train", os.fspath(config), "--out", os.fspath(out)]
    if data_root is not None:
        command += ["--data-root", os.fspath(data_root)]
    for key, value in (overrides or {}).items():
        command += ["--set", f"{key}={_toml(value)}"]
    if allow_seen:
        command.append("--allow-seen")
    # The pipe closes when this process ends, even if it was killed; then the training ends.
    environment = {**os.environ, "CANONYM_ENDS_WITH_INPUT": "1"}
    report: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, encoding="utf-8", errors="replace"
    ) as training:
        try:
            assert training.stderr is not None  # It is a pipe.
            for line in training.stderr:
                if report or line.startswith(_ERROR):
                    # The exception says it.
                    report.append(line.strip())
                else:
                    sys.stderr.write(line)
            status = training.wait()
        except BaseException:
            training.terminate()
            raise
    if status != 0:
        raise _error(report, status, Path(config))
    return os.fspath(out)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# How the program reports an error: a line, its causes, and a hint.
_ERROR, _CAUSE, _HINT = "error: ", "caused by: ", "hint: "

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+): ")
_IO = re.compile(r"cannot (?:open|read|write|create|rename) (?P<path>.+)")
_OS_ERROR = re.compile(r"\(os error \d+\)$")


def _error(report: list[str], status: int, config: Path) -> TrainingError:
    """The exception for what the program reported."""
    causes: list[str] = []
    hint = None
    for line in report:
        if line.startswith(_HINT):
            hint = _for_python(line.removeprefix(_HINT))
        elif line:
            causes.append(line.removeprefix(_ERROR).removeprefix(_CAUSE))
    message = ": ".join(causes) or f"training ended with status {status}"
    for cause in causes:
        place = _PLACE.match(cause)
        if place and os.path.exists(place["path"]):
            return TrainingFormatError(message, path=Path(place["path"]), line=int(place["line"]), hint=hint)
    if causes and _OS_ERROR.search(causes[-1]):
        files = [Path(found["path"]) for found in map(_IO.fullmatch, causes) if found]
        return TrainingFileError(message, path=files[-1] if files else None, hint=hint)
    return TrainingError(message, path=config if message.startswith(f"{config} ") else None, hint=hint)


def _for_python(hint: str) -> str:
    """A hint with the arguments of `train` in place of the options of the program."""
    hint = re.sub(r"`--set ([\w.]+)=([^`]*)`", r'`overrides={"\1": \2}`', hint)
    return hint.replace("`--allow-seen`", "`allow_seen=True`").replace("`--data-root`", "`data_root`").replace("`--out`", "`out`")
