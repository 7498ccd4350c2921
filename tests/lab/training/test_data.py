"""Batches from the store against collating one video at a time; orders of epochs; joined sources."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.toys import CONFIGS, EXPERTS, TIMED, empty, toy_pairs, toy_recipe, words_of  # noqa: E402

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.models.batch import masked_mean  # noqa: E402
from wordreel.lab.models.collate import ExpertRows, collate  # noqa: E402
from wordreel.lab.training.data import join  # noqa: E402
from wordreel.lab.training.data.caption_store import CaptionStore  # noqa: E402
from wordreel.lab.training.data.feature_store import FeatureStore, drop_experts, smallest_keys  # noqa: E402
from wordreel.lab.training.data.packed import pack  # noqa: E402
from wordreel.lab.training.data.sampler import BatchSampler  # noqa: E402
from wordreel.lab.training.settings import DataSettings, RunSettings  # noqa: E402

CPU = torch.device("cpu")


def collated(found, config, videos, fixed=False):
    """The slow twin: one video at a time, padded in Python."""
    rows = []
    for video in videos:
        here = {}
        for expert in config.experts:
            packed = found.rows[expert.name]
            start, count = packed.starts[video], packed.counts[video]
            here[expert.name] = None
            if count:
                here[expert.name] = ExpertRows(
                    packed.values[start : start + count], packed.times[start : start + count]
                )
        rows.append(here)
    return collate(rows, config, fixed=fixed)


@pytest.mark.parametrize("kind", ["ce", "moee", "mmt"])
@pytest.mark.parametrize("fixed", [False, True])
def test_a_batch_is_what_collating_gives(kind, fixed):
    found, config = toy_pairs(), CONFIGS[kind]
    videos = [3, 0, 7, 7, 11]
    batch = FeatureStore(found, config, CPU, fixed=fixed).batch(torch.tensor(videos))
    slow = collated(found, config, videos)
    for expert in config.experts:
        made, want = batch[expert.name], slow[expert.name]
        assert torch.equal(made.available, want.available)
        if kind != "mmt" and expert.pool == "mean":
            assert made.values.shape[1] == 1
            means = masked_mean(want.values, want.mask)
            assert torch.allclose(masked_mean(made.values, made.mask), means, atol=1e-6)
            continue
        width = min(made.values.shape[1], want.values.shape[1])
        assert torch.equal(made.mask[:, :width], want.mask[:, :width])
        assert torch.equal(made.values[:, :width][want.mask[:, :width]], want.values[want.mask])
        if kind == "mmt":
            assert torch.equal(made.times[made.mask], want.times[want.mask])
            assert torch.equal(made.pooled, want.pooled)


def test_rows_are_drawn_without_replacement_in_order_and_evenly():
    counts = torch.tensor([7, 2, 0])
    here = torch.arange(7) < counts[:, None]
    seen = torch.zeros(7)
    torch.manual_seed(0)
    for _ in range(700):
        places = smallest_keys(here, torch.rand(3, 7), 3)
        assert (places[0].diff() > 0).all()
        assert places[1].tolist() == [0, 1, 7]
        assert places[2].tolist() == [7, 7, 7]
        seen[places[0]] += 1
    assert (seen - 300).abs().max() < 60


def test_training_draws_other_rows_each_time_and_evaluation_never():
    store = FeatureStore(toy_pairs(), CONFIGS["mmt"], CPU)
    videos = torch.arange(12)
    assert torch.equal(store.batch(videos)["scene"].values, store.batch(videos)["scene"].values)
    torch.manual_seed(0)
    one = store.batch(videos, training=True)["scene"].values
    assert not torch.equal(one, store.batch(videos, training=True)["scene"].values)
    torch.manual_seed(0)
    assert torch.equal(one, store.batch(videos, training=True)["scene"].values)


def test_a_window_keeps_the_rows_around_a_caption():
    rows = np.arange(10, dtype=np.float32)[:, None] * np.ones((1, 6), np.float32)
    found = toy_pairs(2, experts=EXPERTS[:1])
    found = replace(found, rows={"scene": pack([rows, rows[:3]], [np.arange(10) + 0.5, np.full(3, np.nan)])})
    config = replace(CONFIGS["mmt"], experts=(replace(TIMED[0], max_tokens=5),))
    store = FeatureStore(found, config, CPU)
    for training in (False, True):
        made = store.batch(torch.tensor([0, 1]), training, torch.tensor([6.0, 6.0]), 4.0)["scene"]
        assert made.values[0, :, 0][made.mask[0]].tolist() == [4, 5, 6, 7]
        assert made.times[0][made.mask[0]].tolist() == [0.5, 1.5, 2.5, 3.5]
        assert made.mask[1].sum() == 3
    none = store.batch(torch.tensor([0]), False, torch.tensor([torch.nan]), 4.0)["scene"]
    assert none.mask.sum() == 5


def test_expert_dropout_leaves_every_video_something():
    store = FeatureStore(toy_pairs(40), CONFIGS["ce"], CPU)
    whole = store.batch(torch.arange(40))
    had = torch.stack([part.available for part in whole.values()], dim=1)
    torch.manual_seed(0)
    fewer = torch.stack([part.available for part in drop_experts(whole, 0.7).values()], dim=1)
    assert (fewer <= had).all()
    assert fewer.any(dim=1).all()
    assert fewer.sum() < 0.6 * had.sum()


def test_texts_are_padded_as_asked():
    pairs = toy_pairs()
    packed = words_of(pairs, CONFIGS["ce"])
    tokens = CaptionStore(packed, CPU).batch(torch.tensor([4, 0]))
    assert torch.equal(tokens.tokens[0][tokens.mask[0]], torch.from_numpy(packed.item(4)))
    assert torch.equal(tokens.tokens[1][tokens.mask[1]], torch.from_numpy(packed.item(0)))
    assert CaptionStore(packed, CPU, fixed=9).batch(torch.tensor([0])).tokens.shape == (1, 9, 7)


def order(found, **changes):
    run = RunSettings(batch=5, **{k: v for k, v in changes.items() if k in ("steps", "drop_last", "seed")})
    data = DataSettings(**{k: v for k, v in changes.items() if k in ("captions", "by_source")})
    return BatchSampler(found, data, run)


def test_an_epoch_shows_every_video_once_with_a_caption_of_its_own():
    pairs = toy_pairs(12)
    owners = np.repeat(np.arange(12), pairs.counts)
    epochs = [order(pairs).epoch(n) for n in range(6)]
    told = set()
    for batches in epochs:
        videos = np.concatenate([v for v, _ in batches])
        captions = np.concatenate([c for _, c in batches])
        assert sorted(videos) == list(range(12))
        assert (owners[captions] == videos).all()
        told |= set(captions.tolist())
    assert len(told) > 12  # other captions in other epochs
    assert not np.array_equal(epochs[0][0][0], epochs[1][0][0])
    again = order(pairs).epoch(3)
    assert all(
        np.array_equal(a, b) for x, y in zip(epochs[3], again, strict=True) for a, b in zip(x, y, strict=True)
    )


def test_all_captions_in_an_epoch():
    pairs = toy_pairs(12)
    captions = np.concatenate([c for _, c in order(pairs, captions="all").epoch(0)])
    missing = int(pairs.counts.sum()) - len(captions)
    assert missing == (1 if pairs.counts.sum() % 5 == 1 else 0)
    assert len(set(captions.tolist())) == len(captions)


def test_a_last_batch_of_one_is_left_out_and_drop_last_leaves_out_more():
    assert [len(v) for v, _ in order(toy_pairs(11)).epoch(0)] == [5, 5]
    assert [len(v) for v, _ in order(toy_pairs(13)).epoch(0)] == [5, 5, 3]
    assert [len(v) for v, _ in order(toy_pairs(13), drop_last=True).epoch(0)] == [5, 5]
    with pytest.raises(TrainingError, match=r"run\.batch"):
        order(toy_pairs(3), drop_last=True).epoch(0)


def test_epochs_of_so_many_steps_are_stretches_of_one_row():
    pairs = toy_pairs(12)
    row = [b for n in range(4) for b in order(pairs).epoch(n)]
    for epoch in range(2):
        stretch = order(pairs, steps=5).epoch(epoch)
        for (v, c), (w, d) in zip(stretch, row[epoch * 5 :], strict=False):
            assert np.array_equal(v, w)
            assert np.array_equal(c, d)
        assert len(stretch) == 5


def test_sources_are_joined_and_shown_by_their_shares():
    a, b = toy_pairs(10, name="a"), toy_pairs(6, seed=1, name="b", experts=EXPERTS[:2])
    both = join([a, replace(b, shares=(2.5,))])
    assert both.ids[9:11] == ("a9", "b0")
    assert both.rows["face"].counts[10:].sum() == 0
    assert np.array_equal(both.rows["scene"].item(12), b.rows["scene"].item(2))
    videos = np.concatenate([v for v, _ in order(both).epoch(0)])
    counts = np.bincount(videos, minlength=16)
    assert (counts[:10] == 1).all()
    assert set(counts[10:].tolist()) <= {2, 3}
    assert counts[10:].sum() == 15
    for batch, _ in order(both, by_source=True).epoch(0):
        assert len(set(both.source[batch].tolist())) == 1


def test_sources_that_do_not_fit_say_so():
    a = toy_pairs(4)
    other = replace(a, rows={**a.rows, "scene": pack([np.ones((1, 9), np.float32)] * 4, [np.zeros(1)] * 4)})
    with pytest.raises(TrainingError, match=r"\[6, 9\]"):
        join([a, other])
    with pytest.raises(TrainingError, match=r"scene\.dim=9"):
        FeatureStore(other, CONFIGS["ce"], CPU)
    with pytest.raises(TrainingError, match="none of the model's experts"):
        FeatureStore(replace(a, rows={"smell": empty(3, 4)}), CONFIGS["ce"], CPU)
    with pytest.raises(TrainingError, match="share"):
        replace(a, shares=(0.0,))


def test_captions_can_be_limited_and_left_out():
    pairs = toy_pairs(12)
    assert pairs.limited(1).counts.tolist() == [1] * 12
    kept = np.zeros(int(pairs.counts.sum()), bool)
    kept[np.cumsum(pairs.counts) - 1] = True  # the last of each
    last = pairs.select_captions(kept)
    assert [told[0] for told in last.captions] == [told[-1] for told in pairs.captions]
    assert np.array_equal(last.words[5][0], pairs.words[5][-1])


def test_every_process_has_two_pairs_of_a_batch():
    """One alone has no variance to normalise by."""
    found, made = toy_pairs(11), toy_recipe("ce", batch=4)
    alone = BatchSampler(found, made.data, made.run)
    shared = BatchSampler(found, made.data, made.run, least=4)
    assert [len(videos) for videos, _ in alone.epoch(0)] == [4, 4, 3]
    assert [len(videos) for videos, _ in shared.epoch(0)] == [4, 4]
    assert (alone.largest(), shared.largest()) == (4, 4)
