"""Every recipe loads, builds and has its published size; overrides and mistakes."""

import pytest

from wordreel.errors import TrainingError
from wordreel.models import counts
from wordreel.training import recipe as recipes

SIZES = {
    "ce-msrvtt-full": 183_448_607,
    "ce-msrvtt-1k-a": 183_448_607,
    "moee-msrvtt-full": 400_410_129,
    "ce-queryd": 30_821_146,
    "ce-audiocaps": 21_864_536,
    "ce-plus-msrvtt-full": 262_731_071,
    "tt-ce-plus-msrvtt-full": 262_731_071,
    "mmt-msrvtt-1k-a": 133_357_063,
    "mmt-activitynet": 127_346_434,
}


def test_published_sizes():
    assert {name: counts.total(recipes.load(name).model) for name in SIZES} == SIZES


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_builds(name):
    torch = pytest.importorskip("torch")
    from wordreel.models.build import build

    made = recipes.load(name)
    assert made.title
    with torch.device("meta"):
        module = build(made.model)
    assert sum(p.numel() for p in module.parameters()) == counts.total(made.model)


@pytest.mark.parametrize(
    ("name", "margin", "batch", "epochs", "rate", "gamma"),
    [
        ("ce-msvd", 0.30764700456522676, 16, 300, 0.01, 0.95),
        ("ce-didemo", 0.16642835966287484, 64, 30, 0.1, 0.95),
        ("ce-lsmdc", 0.12132983763957966, 256, 15, 0.01, 0.95),
        ("ce-activitynet", 0.060496613740311816, 32, 150, 0.1, 0.95),
        ("mmt-msrvtt-1k-a", 0.05, 32, 50, 5e-5, 0.95),
        ("mmt-activitynet", 0.05, 32, 50, 5e-5, 0.9),
        ("mmt-howto100m", 0.05, 64, 200, 5e-5, 0.98),
    ],
)
def test_published_settings(name, margin, batch, epochs, rate, gamma):
    made = recipes.load(name)
    found = (made.loss.margin, made.run.batch, made.run.epochs, made.optimiser.rate, made.schedule.gamma)
    assert found == (margin, batch, epochs, rate, gamma)
    assert made.optimiser.kind == ("adam" if name.startswith("mmt") else "ranger")


def test_any_value_can_be_overridden():
    made = recipes.load(
        "ce-msvd",
        [
            "run.epochs=2",
            "loss.kind=info-nce",
            "optimiser.betas=[0.9, 0.98]",
            "model.expert.r2p1d.r2p1d-ig65m.0.dim=7",
            'model.experts=["ocr", "r2p1d.r2p1d-ig65m.0"]',
            "model.mode=released",
            "run.compile=true",
            "start.text=",
        ],
    )
    assert made.run.epochs == 2
    assert made.run.compile is True
    assert made.loss.kind == "info-nce"
    assert made.optimiser.betas == (0.9, 0.98)
    assert made.model.names == ("ocr", "r2p1d.r2p1d-ig65m.0")
    assert made.model.experts[1].dim == 7
    assert made.model.mode == "released"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("run.epoch=2", r"run\.epoch.*did you mean epochs"),
        ("run.epochs=many", r"run\.epochs must be a int"),
        ("loss.kind=hinge", "max-margin, info-nce, dual-softmax"),
        ("run.batch=1", "at least 2"),
        ("epochs", r"section\.key=value"),
        ("rum.epochs=3", "did you mean run"),
        ("model.base=cee", "there is no model"),
        ('model.experts=["smell"]', "smell"),
        ("model.text.pool=sum", "vlad, cls, max, mean, lstm"),
        ("optimiser.rate=-1", "above 0"),
    ],
)
def test_mistakes_name_the_next_step(override, words):
    with pytest.raises(TrainingError, match=words):
        recipes.load("ce-msvd", [override])


def test_unknown_recipes_and_files_of_ones_own(tmp_path):
    with pytest.raises(TrainingError, match="ce-msvd"):
        recipes.load("ce-mvsd")
    (tmp_path / "mine.toml").write_text('[model]\nbase = "ce"\nexperts = ["face"]\n[run]\nepochs = 4\n')
    made = recipes.load(tmp_path / "mine.toml")
    assert (made.name, made.run.epochs, made.model.names) == ("mine", 4, ("face",))
    (tmp_path / "bad.toml").write_text("[model\n")
    with pytest.raises(TrainingError, match="bad"):
        recipes.load(tmp_path / "bad.toml")
