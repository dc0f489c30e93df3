"""A model is trained from an experiment file and opened."""

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


def test_a_missing_experiment_is_a_training_error(tmp_path):
    with pytest.raises(canonym.TrainingError, match="none.toml") as caught:
        canonym.train(tmp_path / "none.toml", tmp_path / "model")
    assert caught.value.hint
