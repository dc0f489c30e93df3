"""The examples in docstrings are right."""

import doctest
import importlib

import pytest

import canonym
from canonym import _canonym


def documented():
    for name, value in vars(_canonym).items():
        if name.startswith("_"):
            continue
        yield name, getattr(value, "__doc__", None)
        for member, item in vars(value).items() if isinstance(value, type) else ():
            yield f"{name}.{member}", getattr(item, "__doc__", None)


@pytest.mark.parametrize(("name", "text"), [item for item in documented() if ">>>" in (item[1] or "")])
def test_examples_are_right(name, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(text, {"canonym": canonym}, name, None, None)
    failures = []
    doctest.DocTestRunner().run(test, out=failures.append)
    assert not failures, "".join(failures)


@pytest.mark.parametrize("module", ["canonym", "canonym.bigbio", "canonym.errors", "canonym.gilda"])
def test_examples_of_modules_are_right(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(module), extraglobs={"canonym": canonym})
    assert result.attempted > 0 and result.failed == 0


def test_everything_public_is_documented():
    public = [(name, text) for name, text in documented() if "._" not in name and not name.startswith("_")]
    undocumented = [name for name, text in public if not text and not name[0].islower()]
    assert undocumented == []
