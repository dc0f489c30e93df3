"""The type stubs agree with the package, and the package with its types."""

import subprocess
import sys

import pytest

pytest.importorskip("mypy")

PROGRAM = """
import canonym

system = canonym.System.open("lexical", top_k=3)
one: canonym.Document = system.annotate("She has asthma.")
many: canonym.Documents = system.annotate(["She has asthma."])
names: list[str | None] = [mention.id for document in many for mention in document if not mention.negated]
links: list[canonym.NameLink] = system.map(["asthma"])
{line}
"""


def mypy(*arguments):
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True)


def test_the_stubs_describe_what_is_there():
    checked = mypy("mypy.stubtest", "canonym._canonym")
    assert checked.returncode == 0, checked.stdout


def test_the_package_is_typed():
    checked = mypy("mypy", "--strict", "-p", "canonym")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("line", "error"),
    [("", None), ("system.annotate(3)", "call-overload"), ("canonym.System.open(topk=3)", "call-arg")],
)
def test_users_are_checked(tmp_path, line, error):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(line=line))
    checked = mypy("mypy", "--strict", str(path))
    assert (error in checked.stdout) if error else checked.returncode == 0, checked.stdout
