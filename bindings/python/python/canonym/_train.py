"""Training, in a process of its own, so that an interrupt ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from .errors import TrainingError


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
    `System.open` opens.
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
    lines: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, encoding="utf-8", errors="replace"
    ) as training:
        try:
            assert training.stderr is not None  # It is a pipe.
            for line in training.stderr:
                lines.append(line)
                sys.stderr.write(line)
            status = training.wait()
        except BaseException:
            training.terminate()
            raise
    if status != 0:
        raise _error(lines, status)
    return os.fspath(out)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _error(lines: list[str], status: int) -> TrainingError:
    message: list[str] = []
    hint, is_error = None, False
    for line in map(str.strip, lines):
        if line.startswith("error: "):
            message, is_error = [line.removeprefix("error: ")], True
        elif line.startswith("hint: "):
            hint = line.removeprefix("hint: ")
        elif is_error and line:
            message.append(line.removeprefix("caused by: "))
    return TrainingError(": ".join(message) or f"training ended with status {status}", hint=hint)
