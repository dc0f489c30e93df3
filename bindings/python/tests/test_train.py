"""A model is trained from an experiment file and opened."""

import pathlib
import pickle

import pytest

import canonym

EXPERIMENT = """
system = "rescnn"
seed = 3

[data]
terminology = { path = "shapes.tsv", format = "tsv" }
queries = "queries.tsv"
dev_queries = "queries.tsv"

[vocabulary]
size = 60
dim = 8

[model]
width = 16
n_filters = 6
hidden = 12
n_blocks = 1

[pretrain]
batch = { batch = 8 }
run = { n_steps = 4, mining_interval = 2, evaluate_every = 1 }

[train]
batch = { batch = 4, n_hard = 2, n_searched = 5 }
run = { n_steps = 4, mining_interval = 2, evaluate_every = 1 }
"""


@pytest.fixture
def experiment(tmp_path):
    (tmp_path / "shapes.tsv").write_text("S1\tCircle\tring|disc\nS2\tSquare\tquadrangle\nS3\tSector\tpie piece\n")
    (tmp_path / "queries.tsv").write_text("round ring\tS1\nquadrangles\tS2\npie pieces\tS3\n")
    path = tmp_path / "shapes.toml"
    path.write_text(EXPERIMENT)
    return path


def test_a_trained_model_opens_on_its_own_terminology(experiment, tmp_path):
    model = canonym.train(experiment, tmp_path / "model", data_root=tmp_path, overrides={"seed": 4}, allow_seen=True)
    assert model == str(tmp_path / "model")
    system = canonym.System.open(model)
    assert set(system.kb) == {"S1", "S2", "S3"}
    assert system.map("circle").candidates[0].id == "S1"
    assert "S1" == system.link("a circle", [(2, 8)])[0].candidates[0].id


def test_a_wrong_experiment_is_a_training_error(experiment, tmp_path):
    experiment.write_text(EXPERIMENT.replace("n_filters", "n_filtres"))
    with pytest.raises(canonym.TrainingError, match="n_filtres") as caught:
        canonym.train(experiment, tmp_path / "model", data_root=tmp_path)
    assert "n_filters" in str(caught.value)


def test_an_unknown_key_has_path_line_and_a_hint_for_python(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text('system = "rescnn"\nsystm = 1\n')
    with pytest.raises(canonym.TrainingError, match="bad.toml:2: unknown field `systm`") as caught:
        canonym.train("bad.toml", "model")
    error = caught.value
    assert (error.path, error.line) == (pathlib.Path("bad.toml"), 2)
    assert isinstance(error, (canonym.FormatError, ValueError))
    assert '`overrides={"KEY": VALUE}`' in error.hint and "--set" not in error.hint
    # It is raised, not printed.
    assert "unknown field" not in capfd.readouterr().err
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.path, again.line, again.hint) == (type(error), error.path, error.line, error.hint)


def test_a_wrong_override_is_a_training_error(experiment, tmp_path):
    with pytest.raises(canonym.TrainingError, match="unknown field `sed`") as caught:
        canonym.train(experiment, tmp_path / "model", data_root=tmp_path, overrides={"sed": 4})
    assert caught.value.path == experiment and caught.value.line is None and "did you mean `seed`" in caught.value.hint


@pytest.mark.parametrize("missing", ["shapes.toml", "queries.tsv"])
def test_a_missing_file_is_a_training_error_and_an_os_error(experiment, tmp_path, missing):
    (tmp_path / missing).unlink()
    with pytest.raises(OSError, match=missing) as caught:
        canonym.train(experiment, tmp_path / "model", data_root=tmp_path)
    error = caught.value
    assert isinstance(error, canonym.TrainingError) and isinstance(error, canonym.FileError)
    assert error.path == tmp_path / missing and error.line is None
    assert "check the path" in error.hint


def test_a_failed_training_is_told_without_a_report():
    from canonym._train import _error

    error = _error([], -9, pathlib.Path("shapes.toml"))
    assert (type(error), str(error)) == (canonym.TrainingError, "training ended with status -9")
    seen = _error(["error: 1 document was seen", "hint: `--allow-seen` continues"], 1, pathlib.Path("shapes.toml"))
    assert (seen.path, seen.hint) == (None, "`allow_seen=True` continues")
