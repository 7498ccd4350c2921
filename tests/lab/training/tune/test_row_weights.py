"""Weights of the rows beside a backbone: chosen on captions, judged on held-out videos, stored if better."""

from dataclasses import replace as changed

import numpy as np
import pytest
from tests.fake_backbone import ColourBackbone
from tests.fakes import Colour, FakeFence, write_media
from tests.search.test_use_backbone import NAME, put_up

from wordreel.banks import everyday
from wordreel.catalogue.store import MODEL_SETTING
from wordreel.embed.embed_library import embed_library
from wordreel.errors import WeightsCorrupt
from wordreel.experts.backbone import BackboneExpert, backbone_card
from wordreel.experts.base import Card, fingerprint
from wordreel.ingest.add import add
from wordreel.lab.training.settings import TuneSettings
from wordreel.lab.training.tune.row_weights import RowData, RowScores, best_weights, choose_row_weights
from wordreel.library import Library
from wordreel.media.types import FrameNeed
from wordreel.models.similarity import mixture
from wordreel.models.weighted import WeightedZeroShot, read_weights, write_weights
from wordreel.models.zero_shot import WEIGHTS
from wordreel.runtime.sentences import SentenceEncoder
from wordreel.runtime.store import WeightStore
from wordreel.types import Track

THINGS = """
    harbour kitchen volcano piano library desert tractor circus hospital glacier airport bakery cathedral
    submarine orchard casino lighthouse stadium laboratory prison vineyard museum railway waterfall
""".split()  # noqa: SIM905


def scores(rng, texts=12, items=9, right=None, row=3):
    """Five rows of noise over items of three videos; row `row` knows which video is `right`."""
    rows = rng.normal(0, 0.3, (5, texts, items)).astype(np.float32)
    available = rng.random((items, 5)) > 0.2
    available[:, [0, row]] = True
    if right is not None:
        rows[row] += 0.5 * (np.arange(items)[None] // 3 == right[:, None])
    return RowScores(rows, available, np.zeros((texts, items), np.float32), np.array([0, 3, 6]))


def test_the_mixture_equals_that_of_search():
    rng = np.random.default_rng(0)
    queries, videos = rng.normal(size=(4, 5, 7)), rng.normal(size=(9, 5, 7))
    weights = np.array([1, 0.2, 0, 0.6, 0.2], np.float32)
    one = scores(rng, 4)
    videos = (videos * one.available[..., None]).astype(np.float32)
    rows = np.einsum("qed,ved->eqv", queries, videos).astype(np.float32)
    bonus = rng.random((4, 9)).astype(np.float32)
    mine = changed(one, rows=rows, bonus=bonus).best(weights)
    items = mixture(queries.astype(np.float32), np.tile(weights, (4, 1)), videos, one.available) + bonus
    expected = np.stack([items[:, at : at + 3].max(axis=1) for at in (0, 3, 6)], axis=1)
    np.testing.assert_allclose(mine, expected, rtol=1e-4, atol=1e-5)


def data(seed=0, row=3, known=0.6):
    """Forty videos with three captions each, which only one row understands, if any."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(40), 3)
    rows = rng.normal(0, 0.3, (5, 120, 40)).astype(np.float32)
    rows[row] += known * (np.arange(40)[None] == owner[:, None])
    table = RowScores(rows, np.ones((40, 5), bool), np.zeros((120, 40), np.float32), np.arange(40))
    return RowData(table, changed(table, rows=rows[:, :20], bonus=table.bonus[:20]), owner, 40, 40)


def test_the_row_that_knows_gains():
    start = np.array(list(WEIGHTS.values()), np.float32)
    found = best_weights(data(), np.arange(120), start)
    assert found[0] == start[0]
    assert found[3] == 1.5
    assert found[[1, 2, 4]].max() < 1


def test_better_is_said_only_of_videos_held_out():
    class Model:
        experts, expert_weights = tuple(WEIGHTS), tuple(WEIGHTS.values())

    knows = choose_row_weights(data(), Model(), TuneSettings())
    assert knows.better
    assert knows.after.r1 > knows.before.r1
    assert knows.weights["speech"] > 1
    assert not choose_row_weights(data(1, known=0), Model(), TuneSettings()).better


def test_a_file_of_weights_comes_back(tmp_path):
    card = {"name": "mine", "backbone": NAME}
    write_weights(tmp_path / "model.safetensors", card, {**WEIGHTS, "speech": 1.2})
    assert read_weights(tmp_path / "model.safetensors") == (card, {**WEIGHTS, "speech": 1.2})
    model = WeightedZeroShot(WeightStore(), ColourBackbone(), "0" * 16, tmp_path / "model.safetensors")
    assert (model.name, model.backbone) == ("mine", NAME)
    assert model.expert_weights[3] == 1.2
    assert model.track_experts[0] == NAME
    write_weights(tmp_path / "bad.safetensors", card, {**WEIGHTS, "speech": -1})
    with pytest.raises(WeightsCorrupt):
        read_weights(tmp_path / "bad.safetensors")


class Said(Colour):
    """A sentence for each film, which its seed tells; nothing is stored as words."""

    def __init__(self):
        super().__init__("speech")
        self.card = Card("speech", "speech", "said", 384, FrameNeed(1.0, 4), "none", ())
        self.fingerprint = fingerprint(self.card)
        self.rows = SentenceEncoder(WeightStore()).encode([f"we visit the {thing}" for thing in THINGS])

    def extract(self, media):
        seen = media.images[0, 0, 0]
        at = int(np.argmin([np.abs(film_colour(seed) - seen).sum() for seed in range(len(THINGS))]))
        return Track(self.rows[at][None], np.array([[0.0, 4.0]]))


def film_colour(seed):
    return np.random.default_rng(seed).integers(0, 200, 3).astype(int)


def test_tune_in_a_library_with_a_backbone(tmp_path, monkeypatch):
    monkeypatch.setattr(everyday, "queries", lambda: ["a red car", "something blue", "a dog"] * 5)
    shelf = put_up(monkeypatch)
    shelf.here = True
    for seed, thing in enumerate(THINGS):
        write_media(tmp_path / "films" / f"{thing}.mp4", seconds=4.0, seed=seed)
    library = Library(tmp_path / "library")
    expert = BackboneExpert(backbone_card(shelf.backbone.config, "MIT"), shelf.backbone)
    assert len(add(library.store, [tmp_path / "films"], [expert, Said()], FakeFence()).added) == len(THINGS)
    library.store.set_setting(MODEL_SETTING, NAME)
    embed_library(library.store, library.model)
    colours = ("red", "green", "blue")  # which the backbone believes, and which say nothing of the film
    captions = {
        f"{thing}.mp4": [f"at the {thing}, {colours[n % 3]} sky", f"{colours[(n + 1) % 3]} {thing}"]
        for n, thing in enumerate(THINGS)
    }
    tuned = library.tune(captions)
    assert tuned.better
    assert tuned.weights["speech"] > WEIGHTS["speech"]
    assert tuned.model == f"{NAME}-tuned"
    again = Library(tmp_path / "library")
    assert again.model.name == f"{NAME}-tuned"
    assert again.model.expert_weights[3] == pytest.approx(tuned.weights["speech"])
    assert again._default_experts()[-1] == NAME  # add goes on with the backbone
    assert again.search("harbour").hits
    repeated = again.tune(captions, dry_run=True)  # from the backbone again, not from the tuned one
    assert (repeated.before, repeated.weights) == (tuned.before, tuned.weights)
    again.use(NAME)
    assert Library(tmp_path / "library").model.name == NAME
