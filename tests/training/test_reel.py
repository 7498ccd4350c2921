"""Training of the default model on a handful of made-up items."""

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from wordreel.models.config import MINILM  # noqa: E402
from wordreel.models.reel.shape import SEEN  # noqa: E402
from wordreel.models.text.bert import Bert  # noqa: E402
from wordreel.training.reel import captions as captions_module  # noqa: E402
from wordreel.training.reel import material as material_module  # noqa: E402
from wordreel.training.reel.captions import Captions, cut_short  # noqa: E402
from wordreel.training.reel.fit import distilled, fit  # noqa: E402
from wordreel.training.reel.material import Material  # noqa: E402
from wordreel.training.reel.settings import Settings  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def material():
    rng = np.random.default_rng(0)
    items = 24
    kind = np.arange(items) % 12
    ideas = rng.normal(size=(12, 1280)).astype(np.float32)
    tokens = {seen.name: np.zeros((items, seen.most, seen.dim), np.float32) for seen in SEEN}
    counts = {seen.name: np.zeros(items, np.int64) for seen in SEEN}
    counts["appearance"][:] = 1 + np.arange(items) % 4
    tokens["appearance"][:] = ideas[kind][:, None] + 0.1 * rng.normal(size=(items, 4, 1280))
    counts["motion"][::2] = 1
    split = np.where(np.arange(items) < 12, 0, 1)
    texts = tuple(f"idea {k} said {n}" for k in kind for n in range(2))
    return Material(
        tokens, counts, np.zeros(items, np.int64), split, texts, np.repeat(np.arange(items), 2), ("made",)
    )


@pytest.fixture(scope="module")
def captions(material):
    from dataclasses import replace

    torch.manual_seed(0)
    sizes = replace(MINILM, vocabulary=40, layers=1, positions=8)
    ids = torch.tensor(
        [[1, 2 + int(text.split()[1]), 20 + int(text.split()[3]), 3] for text in material.texts]
    )
    return Captions(ids, torch.full((len(ids),), 4), Bert(sizes).eval())


SMALL = Settings(
    epochs=30, batch=12, captions=1, input_drop=0.1, drop=0.0, short=0.0, soft=0.0, repeat={}, teachers=0
)


def test_learns_what_can_be_learned(material, captions):
    losses = []
    found = fit(material, captions, SMALL, report=lambda now: losses.append(now["loss"]))
    assert losses[-1] < losses[0] / 3
    assert found.validation["made"].r1 > 80  # the same ideas, other items
    assert found.validation["made"].queries == 24
    assert all(name.startswith("encoder.") for name in found.checkpoint.encoder)


def test_the_same_seed_gives_the_same_model(material, captions):
    from dataclasses import replace

    short = replace(SMALL, epochs=2)
    one, two = (fit(material, captions, short).checkpoint for _ in range(2))
    other = fit(material, captions, replace(short, seed=1)).checkpoint
    assert all(np.array_equal(one.tower[name], two.tower[name]) for name in one.tower)
    assert any(not np.array_equal(one.tower[name], other.tower[name]) for name in one.tower)


def test_a_student_learns_from_teachers_alone(material, captions):
    from dataclasses import replace

    said = []
    taught = replace(SMALL, teachers=2, taught=1.0, captions=2)
    found = fit(material, captions, taught, report=lambda now: said.append(now["what"]))
    assert list(dict.fromkeys(said)) == ["teacher 1 of 2", "teacher 2 of 2", "the model"]
    assert found.validation["made"].r1 > 80


def test_distillation_is_the_divergence_of_both_ways():
    torch.manual_seed(0)
    cosines, taught = torch.rand(6, 3), torch.rand(6, 3)
    hidden = torch.zeros(6, 3, dtype=torch.bool)
    hidden[1, 2] = hidden[2, 1] = True
    found = float(distilled(cosines, taught, hidden, 2, 0.1))

    def shares(row, seen):
        top = [np.exp(float(x) / 0.1) if s else 0.0 for x, s in zip(row, seen, strict=True)]
        return [x / sum(top) for x in top]

    def apart(ours, theirs, seen):
        pairs = zip(shares(theirs, seen), shares(ours, seen), strict=True)
        return sum(t * np.log(t / o) for t, o in pairs if t > 0)

    slow = sum(apart(cosines[i], taught[i], ~hidden[i]) for i in range(6)) / 6
    for some in (range(3), range(3, 6)):
        back = [apart(cosines[some][:, j], taught[some][:, j], ~hidden[some][:, j]) for j in range(3)]
        slow += sum(back) / 3 / 2
    assert found == pytest.approx(slow, rel=1e-5)


def test_the_words_and_places_of_the_encoder_stay(material, captions):
    from dataclasses import replace

    before = {name: p.clone() for name, p in captions.network.named_parameters()}
    fit(material, captions, replace(SMALL, epochs=1))
    for name, parameter in captions.network.named_parameters():
        assert torch.equal(parameter, before[name])
    frozen = fit(material, captions, replace(SMALL, epochs=1, encoder_rate=0.0))
    assert frozen.checkpoint.encoder == {}


def test_material_and_captions_survive_a_file(material, captions, tmp_path):
    material_module.save(tmp_path / "m", material)
    back = material_module.load(tmp_path / "m")
    assert (back.texts, back.names) == (material.texts, material.names)
    for seen in SEEN:
        np.testing.assert_array_equal(back.counts[seen.name], material.counts[seen.name])
        there = np.arange(seen.most) < material.counts[seen.name][:, None]
        want = material.tokens[seen.name][there]
        np.testing.assert_allclose(
            back.tokens[seen.name][there], want, atol=np.abs(want).max(initial=0) / 120
        )
    captions_module.save(tmp_path / "c", captions)


def test_cutting_short_keeps_ends_and_some_words():
    torch.manual_seed(0)
    ids = torch.arange(1, 61).reshape(6, 10)
    lengths = torch.tensor([10, 9, 5, 3, 2, 10])
    mask = torch.arange(10) < lengths[:, None]
    for _ in range(30):
        cut, kept = cut_short(ids, mask, 1.0)
        for row in range(6):
            was, left = ids[row, : lengths[row]].tolist(), cut[row][kept[row]].tolist()
            assert left == [x for x in was if x in left]  # in their order
            assert left[0] == was[0]
            assert left[-1] == was[-1]
            assert len(left) >= min(3, len(was))
            assert kept[row].tolist() == sorted(kept[row].tolist(), reverse=True)
    whole, same = cut_short(ids, mask, 0.0)
    assert torch.equal(whole, ids)
    assert torch.equal(same, mask)


def test_gather_reads_captioned_files_of_libraries(tmp_path):
    from tests.library.fakes import Colour, FakeFence, Talk, write_media

    from wordreel.errors import DatasetError
    from wordreel.library import LibraryStore, add
    from wordreel.training.reel.material import Source, gather

    for seed in range(3):
        write_media(tmp_path / "media" / f"film{seed}.mp4", seconds=12.0, seed=seed)
    with LibraryStore.create_or_open(tmp_path / "library") as made:
        add(made, [tmp_path / "media"], [Colour(), Talk()], FakeFence())
    source = Source(
        "x",
        tmp_path / "library",
        {"train": {"film0": ["a", " a ", ""], "film1.mp4": ["b", "c"]}, "val": {"none": ["d"]}},
    )
    found = gather([source])
    assert found.texts == ("a", "b", "c")
    assert found.owner.tolist() == [0, 1, 1]
    assert {name: int(count.sum()) for name, count in found.counts.items()} == {seen.name: 0 for seen in SEEN}
    with pytest.raises(DatasetError, match="file name"):
        gather([Source("x", tmp_path / "library", {"train": {"none": ["d"]}})])


def test_the_shipped_card_says_what_it_was_trained_on():
    from wordreel.models.reel.checkpoint import SHIPPED, load

    card = load(SHIPPED).card
    assert card["settings"]["seed"] == 0
    assert len(card["data"]) == 64
    assert Path(SHIPPED).stat().st_size < 30_000_000
    assert json.dumps(card)


def test_a_kill_while_a_model_is_written_leaves_the_old_one(tmp_path, monkeypatch):
    from wordreel import atomic
    from wordreel.models.reel import checkpoint

    def dies(path, data):
        path.write_bytes(data[: len(data) // 2])
        raise SystemExit

    rng = np.random.default_rng(0)
    place = tmp_path / "reel.safetensors"
    old, new = (
        checkpoint.Checkpoint({"out.weight": rng.normal(size=(4, 4)).astype(np.float32)}, {}, {}, {"data": n})
        for n in ("old", "new")
    )
    checkpoint.save(place, old)
    before = checkpoint.load(place)
    with monkeypatch.context() as patch:
        patch.setattr(atomic, "write_and_sync", dies)
        with pytest.raises(SystemExit):
            checkpoint.save(place, new)
    assert checkpoint.load(place).digest == before.digest
    checkpoint.save(place, new)  # what was left lying is no hindrance
    assert checkpoint.load(place).card["data"] == "new"
