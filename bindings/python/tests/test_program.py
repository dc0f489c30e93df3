"""The wheel holds the program."""

import pathlib
import shutil
import subprocess
import sys

import pytest

import canonym

INSTALLED = pathlib.Path(sys.executable).with_name("canonym")


def commands():
    yield [sys.executable, "-m", "canonym"]
    if INSTALLED.exists() or shutil.which("canonym"):
        yield [str(INSTALLED if INSTALLED.exists() else shutil.which("canonym"))]


@pytest.mark.parametrize("command", list(commands()), ids=lambda command: pathlib.Path(command[-1]).name)
def test_the_program_runs(command, tmp_path):
    def run(*arguments):
        return subprocess.run([*command, *arguments], capture_output=True, text=True, cwd=tmp_path)

    assert run("--version").stdout == f"canonym {canonym.__version__}\n"
    linked = run("link", "--model", "lexical", "--to", "tsv", "--text", "She has asthma.")
    assert "MESH:D001249" in linked.stdout and linked.returncode == 0
    missing = run("link", "none.txt")
    assert missing.returncode == 1 and missing.stdout == ""
    assert "hint: check the path" in missing.stderr
    assert run("no-such-command").returncode == 2
