"""The pages of the guide show what the package answers."""

import ast
import pathlib
import re

import pytest

import canonym

GUIDE = pathlib.Path(__file__).parents[3] / "docs/guide"

# Largest difference of a score, so that a new model does not have to touch every page; as for the commands of the guide.
LEEWAY = 0.25

NUMBER = re.compile(r"\d+\.\d+")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A comment with a value: what Python prints of lists, strings, numbers, objects and truth values.
VALUE = re.compile(r"""^(?P<code>\S.*?)\s{2,}# (?P<value>[\[{'"<].*|True\b.*|False\b.*|\d\S*)$""")

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="the guide is not here")


def blocks(page):
    """Kind and text of the blocks of a page."""
    return [match.groups() for match in BLOCK.finditer((GUIDE / page).read_text(encoding="utf-8"))]


def shown(page, start):
    """The block of a page that starts so, with tabs."""
    (text,) = [text for _, text in blocks(page) if text.startswith(start)]
    return text.replace("⇥", "\t")


def same(found, expected):
    """Whether two texts are equal but for scores and the widths of columns."""
    numbers = [list(map(float, NUMBER.findall(text))) for text in (found, expected)]
    words = [NUMBER.sub("#", text).split() for text in (found, expected)]
    return words[0] == words[1] and all(abs(one - other) <= LEEWAY for one, other in zip(*numbers))


def run(code, names, capsys):
    """Runs a block; what it prints. Comments with values are compared with those."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        commented = VALUE.match(lines[statement.end_lineno - 1])
        source = ast.unparse(statement)
        if commented and isinstance(statement, ast.Expr) and statement.lineno == statement.end_lineno:
            value = repr(eval(source, names))
            assert same(value, commented["value"].split(";")[0]), f"{source}: {value}"
        else:
            exec(source, names)
    return capsys.readouterr().out


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """The folder of the guide, with the table of its first page."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "clinic.tsv").write_text(shown("first-steps.md", "L1⇥"))
    (tmp_path / "ward.jsonl").write_text(shown("codes.md", '{"id":"WARD:1"'))
    (tmp_path / "visits.csv").write_text(
        "id,text\n1,She denies night sweats. A dry cough since May.\n2,History of orthostatic dizziness.\n"
    )
    return tmp_path


def test_the_page_on_python_is_right(clinic, capsys):
    names, checked = {}, 0
    found = blocks("python.md")
    # Needs packages that not every environment has.
    is_left_out = {name: not _has(name) for name in ("duckdb", "pandas", "polars")}
    for at, (kind, code) in enumerate(found):
        if kind != "python":
            continue
        if "visits" in code and any(is_left_out.values()):
            continue
        code = code.replace('canonym.train("adapt.toml", "runs/adapted")', "pass")
        printed = run(code, names, capsys)
        if found[at + 1][0] == "text":
            assert same(printed, found[at + 1][1]), printed
            checked += 1
    assert checked >= 1 + (not any(is_left_out.values()))


def test_the_error_on_the_page_is_what_is_raised(clinic):
    (clinic / "broken.tsv").write_text("L1\tcough\nL2\n")
    ((_, session),) = [block for block in blocks("python.md") if block[0] == "pycon"]
    call, message = session.split("\n", 1)
    with pytest.raises(canonym.FormatError) as caught:
        eval(call.removeprefix(">>> "), {"canonym": canonym})
    assert f"canonym.errors.FormatError: {caught.value}\n" == message


def test_every_exception_is_on_the_page():
    page = (GUIDE / "python.md").read_text(encoding="utf-8")
    kinds = [name for name in canonym.__all__ if name.endswith("Error")]
    assert [name for name in kinds if f"`{name}`" not in page and f"`canonym.{name}`" not in page] == []


def test_the_page_on_spacy_is_right(clinic, capsys):
    pytest.importorskip("spacy")
    canonym.KnowledgeBase.build("clinic.tsv", "clinic.kb", prefix="CLINIC")
    ((_, code), (kind, expected)) = blocks("spacy.md")[:2]
    assert kind == "text"
    printed = run(code, {}, capsys)
    assert same(printed, expected), printed


def _has(name):
    try:
        __import__(name)
    except ImportError:
        return False
    return True
