"""What several tests use: a terminology of five made-up concepts, and systems on it."""

import pytest

import canonym

TABLE = """\
L1\tpostural dizziness\tdizziness on standing|orthostatic dizziness\tSymptom\tDizziness that comes on standing up.
L2\tdry cough\tunproductive cough\tSymptom
L3\tnight sweats\tnocturnal sweating\tSymptom
L4\ttennis elbow\tlateral epicondylitis\tDisease
L5\telbow\t\tAnatomy
"""

NOTE = "She denies night sweats. Tennis elbow of her left arm; dry cough since May."


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("clinic")


@pytest.fixture(scope="session")
def table(folder):
    path = folder / "clinic.tsv"
    path.write_text(TABLE)
    return path


@pytest.fixture(scope="session")
def kb(table, folder):
    return canonym.KnowledgeBase.build(table, folder / "clinic.kb", prefix="CLINIC")


@pytest.fixture(scope="session")
def lexical(kb):
    """The lexical model on the made-up concepts."""
    return canonym.System.open("lexical", kb)


@pytest.fixture(scope="session")
def starter():
    """The lexical model on the starter."""
    return canonym.System.open("lexical")
