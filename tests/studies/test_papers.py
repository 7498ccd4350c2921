"""The study of the papers' models, end to end, on made-up videos and a tiny encoder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import papers  # noqa: E402
from paper_models import material, rows, trial, work  # noqa: E402
from paper_models import table as tables  # noqa: E402
from paper_models.normed import normalised  # noqa: E402

from wordreel.lab.datasets.types import Caption  # noqa: E402
from wordreel.lab.models.config import FeatureModelConfig, TransformerConfig  # noqa: E402
from wordreel.lab.models.text.bert import Bert  # noqa: E402
from wordreel.lab.training.data.caption_store import states  # noqa: E402
from wordreel.lab.training.data.packed import Packed, pack  # noqa: E402
from wordreel.lab.training.data.pairs import Pairs  # noqa: E402

HIDDEN, VOCABULARY = 8, 50
CPU = torch.device("cpu")


def made_up(videos: int = 12, seed: int = 0) -> material.Study:
    chance = np.random.default_rng(seed)
    torch.manual_seed(seed)
    network = Bert(TransformerConfig(VOCABULARY, HIDDEN, 2, 2, 16, 512, 2))
    weights = {name: value.numpy().copy() for name, value in network.state_dict().items()}
    dims = dict(zip(material.EXPERTS, (6, 5, 4, HIDDEN), strict=True))
    pairs, tokens = {}, {}
    for split in material.SPLITS:
        counts = {name: chance.integers(0 if name in ("faces", "ocr") else 1, 4, videos) for name in dims}
        held = {
            name: Packed(
                chance.normal(size=(int(counts[name].sum()), dim)).astype(np.float32),
                counts[name],
                chance.random(int(counts[name].sum())).astype(np.float32),
            )
            for name, dim in dims.items()
        }
        told = tuple(
            tuple(Caption(f"{split} {video} {n}") for n in range(2 + video % 2)) for video in range(videos)
        )
        names = tuple(f"{split}{video}" for video in range(videos))
        pairs[split] = Pairs(split, names, held, told)
        lengths = chance.integers(2, 6, int(pairs[split].counts.sum()))
        tokens[split] = pack([7 * chance.integers(1, 7, length) for length in lengths])
    return material.Study(pairs, tokens, weights, heads=2)


@pytest.fixture(scope="module")
def study() -> material.Study:
    return material.shortened(made_up())


@pytest.fixture(scope="module")
def bench(study: material.Study, tmp_path_factory: pytest.TempPathFactory) -> trial.Bench:
    return trial.Bench(study, CPU, tmp_path_factory.mktemp("scratch"))


def test_shortening_changes_no_state() -> None:
    whole = made_up()
    short = material.shortened(whole)
    assert len(short.network[material.WORDS]) < VOCABULARY
    for one in (whole, short):
        assert max(packed.values.max() for packed in one.tokens.values()) < len(one.network[material.WORDS])

    def found(one: material.Study) -> np.ndarray:
        size = trial.Bench(one, CPU, Path()).size
        network = Bert(size)
        network.load_state_dict({name: torch.from_numpy(a) for name, a in one.network.items()})
        return states(network.eval(), one.tokens["val"], CPU).values

    np.testing.assert_allclose(found(short), found(whole), atol=1e-6)


def test_saved_and_loaded(study: material.Study, tmp_path: Path) -> None:
    material.save(study, tmp_path / "data.npz")
    again = material.load(tmp_path / "data.npz")
    for split, pairs in study.pairs.items():
        assert again.pairs[split].ids == pairs.ids
        assert again.pairs[split].texts == pairs.texts
        assert again.tokens[split].values.tolist() == study.tokens[split].values.tolist()
        for name, held in pairs.rows.items():
            other = again.pairs[split].rows[name]
            assert other.counts.tolist() == held.counts.tolist()
            largest = np.abs(held.values).max(axis=1, keepdims=True)
            assert (np.abs(other.values - held.values) <= largest / 254 + 1e-6).all()
            assert other.times is not None
            assert held.times is not None
            np.testing.assert_allclose(other.times, held.times, atol=1e-3)
    gone = material.lost(study, again)
    assert 0 < gone["features"]["clip"] < 0.02
    assert 0 < gone["encoder"]["layers"] < 0.02
    assert again.packed
    assert again.facts()["splits"] == study.facts()["splits"]


def test_rounding_zeros() -> None:
    whole, scale = material.rounded(np.array([[0.0, 0.0], [1.0, -2.0]], np.float32))
    assert whole.tolist() == [[0, 0], [64, -127]]
    assert scale[0] == 0


def test_picked_is_item_by_item() -> None:
    packed = pack([np.arange(3), np.arange(10, 11), np.arange(20, 24)])
    numbers = np.array([2, 0, 2])
    found = trial.picked(packed, numbers)
    slow = pack([packed.item(int(number)) for number in numbers])
    assert found.values.tolist() == slow.values.tolist()
    assert found.counts.tolist() == slow.counts.tolist()


def test_vectors_are_the_encoder_caption_by_caption(bench: trial.Bench, study: material.Study) -> None:
    network = Bert(bench.size)
    network.load_state_dict({name: torch.from_numpy(a) for name, a in study.network.items()})
    network.eval()
    for number in (0, 7):
        ids = torch.from_numpy(study.tokens["test"].item(number))[None]
        with torch.no_grad():
            slow = network(ids, torch.ones_like(ids, dtype=torch.bool))[0].numpy()
        np.testing.assert_allclose(bench.vectors["test"].item(number), slow, atol=2e-3)


def test_one_caption_has_the_steps_of_all(bench: trial.Bench) -> None:
    row = {row.name: row for row in rows.ROWS}
    setting = ("run.batch=4", "data.captions=all")
    many = trial.recipe_of(bench, trial.Job(row["ce"], setting))
    one = trial.recipe_of(bench, trial.Job(row["ce-one-caption"], setting))
    assert one.data.limit == 1
    assert one.run.steps == -(-int(bench.study.pairs["train"].counts.sum()) // 4)
    assert many.run.steps == 0
    material_of = bench.material(one)
    assert isinstance(material_of.train_words, Packed)
    assert len(material_of.train_words) == len(material_of.train.texts) == len(material_of.train)


@pytest.mark.parametrize("row", rows.ROWS, ids=lambda row: row.name)
def test_every_row_trains_and_is_scored(bench: trial.Bench, row: rows.Row) -> None:
    found = trial.run_job(bench, trial.Job(row, ("run.batch=8",), epochs=1))
    assert found["test"]["t2v"]["queries"] == int(bench.study.pairs["test"].counts.sum())
    bank = found["normalised"]["t2v"]["bank"]
    assert bank == (12 if row.captions else int(bench.study.pairs["train"].counts.sum()))
    assert found["normalised"]["v2t"]["bank"] == 12
    assert 0 <= found["normalised"]["v2t"]["test"]["R1"] <= 100


def test_every_setting_of_the_grids_is_a_recipe(bench: trial.Bench) -> None:
    main = {row.name: row for row in rows.ROWS}
    for family, grid in rows.GRIDS.items():
        assert len(set(grid)) == len(grid)
        for setting in grid:
            made = trial.recipe_of(bench, trial.Job(main[family], setting, seed=3))
            assert made.run.seed == 3
            assert isinstance(made.model, FeatureModelConfig)
            assert made.model.names == material.EXPERTS


def test_beta_is_chosen_on_validation_alone() -> None:
    chance = np.random.default_rng(1)

    def rows_of(captions: int, videos: int) -> np.ndarray:
        return chance.uniform(-1, 1, (captions, videos)).astype(np.float32)

    counts = {"val": np.full(5, 2), "test": np.full(6, 2)}
    plain = {"val": rows_of(10, 5), "test": rows_of(12, 6)}
    captions = {"val": rows_of(30, 5), "test": rows_of(30, 6)}
    videos = {"val": rows_of(10, 7), "test": rows_of(12, 7)}
    first = normalised(plain, captions, videos, counts)
    other = {**plain, "test": rows_of(12, 6)}
    second = normalised(other, captions, videos, counts)
    for way in ("t2v", "v2t"):
        assert first[way]["beta"] == second[way]["beta"]
        best = max(entry["R1"] for entry in first[way]["val"])
        assert next(e for e in first[way]["val"] if e["beta"] == first[way]["beta"])["R1"] == best


def test_pack_train_table(study: material.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    material.save(study, tmp_path / "data.npz")
    small = {family: grid[:2] for family, grid in rows.GRIDS.items()}
    monkeypatch.setattr(work, "GRIDS", small)
    told: list[str] = []
    monkeypatch.setattr(papers, "say", told.append)
    only = "ce,moee,concat,ce-plain,ce-without-gating"
    given = ["train", "--data", str(tmp_path / "data.npz"), "--out", str(tmp_path / "runs"), "--grid"]
    given += ["--seeds", "2", "--epochs", "1", "--only", only]
    papers.main(given)
    found = json.loads((tmp_path / "runs" / "runs.json").read_text())
    grid = [run for run in found["runs"] if run["stage"] == "grid"]
    assert len(grid) == 4
    assert all("test" not in run for run in grid)
    finals = [run for run in found["runs"] if run["stage"] == "final"]
    assert len(finals) == 10
    for family in ("ce", "moee"):
        best = work.best_setting([run for run in grid if run["family"] == family])
        assert all(tuple(run["setting"]) == best for run in finals if run["family"] == family)
    papers.main(given)  # everything is done already
    assert len(json.loads((tmp_path / "runs" / "runs.json").read_text())["runs"]) == 14
    papers.main(["table", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "results")])
    facts = json.loads((tmp_path / "results" / "papers.json").read_text())
    ce = [run["test"]["t2v"]["r1"] for run in finals if run["row"] == "ce"]
    assert facts["rows"]["ce"]["t2v"]["mean"]["r1"] == pytest.approx(np.mean(ce))
    text = (tmp_path / "results" / "README.md").read_text()
    assert "Multi. Cues" in text
    assert f"{np.mean(ce):.1f} ± {np.std(ce, ddof=1):.1f}" in text
    assert "MoEE" in (tmp_path / "results" / "rows.svg").read_text()
    assert "not run" in text  # findings that need rows which are not there


def test_no_time_left(study: material.Study, tmp_path: Path) -> None:
    plan = work.Plan(rows.chosen(["ce"]), seeds=1, grid=False, limit=1e-9, epochs=1)
    told: list[str] = []
    records = work.run_all(lambda: study, plan, tmp_path, told.append)
    assert records.runs == []
    assert "no time left" in told[0]


def test_an_error_is_told_and_the_rest_goes_on(study: material.Study, tmp_path: Path) -> None:
    broken = replace(rows.ROWS[0], name="broken", changes=("model.nothing=1",))
    told: list[str] = []
    plan = work.Plan((broken, rows.ROWS[0]), seeds=1, grid=False, epochs=1)
    records = work.run_all(lambda: study, plan, tmp_path, told.append)
    assert [run["row"] for run in records.runs] == ["ce"]
    assert "there is no model.nothing" in told[0]


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [((20.0, 21.0, 20.5), (15.0, 15.5, 15.2), "yes"), ((15.0, 15.5, 15.2), (20.0, 21.0, 20.5), "no"),
     ((15.0, 17.0, 16.0), (15.5, 16.6, 16.0), "not told apart")],
)  # fmt: skip
def test_verdicts(a: tuple[float, ...], b: tuple[float, ...], told: str) -> None:
    assert tables.verdict(a, b).word == told
