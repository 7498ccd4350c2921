"""Tracks of large and small eyes in a library: which `add` replaces which, and what is said of them."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save_file
from tests.experts.heads import random_head
from tests.fakes import Colour, FakeFence, Shots, write_media

from wordreel.catalogue.passes import quick_fingerprint
from wordreel.experts import clip, small_eyes
from wordreel.ingest.add import add, add_with
from wordreel.ingest.quick import QuickExperts, QuickExtractor
from wordreel.ingest.tasks import AddOptions
from wordreel.models.joint.model import Joint
from wordreel.models.joint.text_tower import DIM
from wordreel.runtime.store import WeightStore
from wordreel.search.describe import describe
from wordreel.types import Track


class Wide(Colour):
    """Colours in as many columns as the eyes have."""

    def extract(self, media):
        track = super().extract(media)
        return Track(np.pad(track.values, ((0, 0), (0, DIM - track.values.shape[1]))), track.times)


def eyes(fingerprint):
    expert = Wide("clip")
    expert.card = replace(expert.card, dim=DIM)
    expert.fingerprint = fingerprint
    return expert


@pytest.fixture
def names(tmp_path, monkeypatch):
    """The fingerprints of the large and the small eyes."""
    save_file(random_head(), str(tmp_path / "head"))
    monkeypatch.setattr(small_eyes, "FILE", tmp_path / "head")
    return clip.large_fingerprint(), clip.small_fingerprint()


def stored(store):
    return {row.fingerprint for row in store.tracks() if row.expert == "clip"}


def test_large_eyes_replace_small_ones_and_not_the_other_way(store, media, names):
    large, small = names
    write_media(media / "film.mp4", seconds=30.0)
    add(store, [media], [eyes(small), Shots()], FakeFence())
    assert stored(store) == {small}
    assert len(add(store, [media], [eyes(large), Shots()], FakeFence()).updated) == 1
    assert stored(store) == {large}
    again = add(store, [media], [eyes(small), Shots()], FakeFence())
    assert (again.updated, again.skipped) == ([], 1)
    assert stored(store) == {large}


def test_the_thorough_pass_replaces_the_quick_one_with_either_eyes(store, media, names):
    large, small = names
    write_media(media / "film.mp4", seconds=30.0)
    for thorough in (small, large):
        quick = QuickExtractor(QuickExperts([eyes(small)]), FakeFence(), store.track_files)
        add_with(quick, store, [media], 1, options=AddOptions(analysis="quick"))
        if thorough == small:
            assert stored(store) == {quick_fingerprint(small)}
        add(store, [media], [eyes(thorough), Shots()], FakeFence())
        assert stored(store) == {thorough}


def test_a_track_says_which_eyes_made_it(store, media, names, tmp_path, monkeypatch):
    monkeypatch.setattr(Joint, "standing_out", lambda self, track: ["a dog"])
    write_media(media / "film.mp4", seconds=30.0)
    weights = WeightStore(tmp_path / "weights")
    for name, said in zip((*names[::-1], "0" * 16), ("small eyes", "CLIP ViT-B/16", ""), strict=True):
        add(store, [media], [eyes(name), Shots()], FakeFence())
        experts = {one["name"]: one for one in describe(store, media / "film.mp4", weights)["experts"]}
        assert experts["clip"]["eyes"] == said
        assert experts["clip"]["labels"] == ["a dog"]
        assert "eyes" not in experts["shots"]


def test_a_damaged_install_can_still_list_its_tracks(names, tmp_path, monkeypatch):
    monkeypatch.setattr(small_eyes, "FILE", tmp_path / "gone")
    assert clip.eyes_of(names[0]) == "CLIP ViT-B/16"
    assert clip.eyes_of("0" * 16) == ""
