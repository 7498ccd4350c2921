"""Tracks and embeddings that are whole but wrong: only computing them again shows it."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import Colour, FakeFence, Talk, write_media

from wordreel.embed.embed_library import embed_library, embedding_cache
from wordreel.errors import WordreelError
from wordreel.ingest.add import add
from wordreel.maintain.repair import repair
from wordreel.maintain.verify import verify
from wordreel.maintain.wrong_values import recompute_embeddings, recompute_tracks
from wordreel.types import Track


@pytest.fixture
def library(store, model, tmp_path):
    for number in range(4):
        write_media(tmp_path / "more" / f"{number}.mp4", seconds=40, seed=50 + number)
    add(store, [tmp_path / "more"], [Colour(), Talk()], FakeFence())
    embed_library(store, model)
    return store


def load(name):
    known = {"colour": Colour, "talk": Talk}
    if name not in known:
        raise WordreelError("there is no such expert")
    return known[name]()


def put_track(store, content, expert, track):
    """What a broken disk cannot do: bytes with the right hash and the wrong numbers."""
    staged = store.track_files.stage(track)
    store.track_files.commit(staged)
    store.catalogue.run(
        "UPDATE tracks SET hash = ?, rows = ? WHERE content = ? AND expert = ?",
        staged.hash, len(track), content, expert,
    )  # fmt: skip


def test_a_sound_library_has_nothing_to_report(library, model):
    assert recompute_embeddings(library, model) == []
    assert recompute_tracks(library, load, FakeFence(), sample=100) == []


def test_wrong_embeddings_are_found_and_made_again(library, model):
    cache = embedding_cache(library, model)
    gallery = cache.load()
    wrong = np.array(gallery.vectors)
    wrong[:, 0] = wrong[:, 0, ::-1]  # red for blue, of unit length and finite
    cache.clear()
    embedding_cache(library, model).append(gallery.ids.tolist(), wrong, np.array(gallery.available))
    assert verify(library) == []
    (problem,) = recompute_embeddings(library, model)
    assert "differ from those of their tracks" in problem.what
    repair(library, [problem])
    embed_library(library, model)
    assert recompute_embeddings(library, model) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v[:, ::-1],  # other numbers
        lambda v: 1.5 * v,  # the right direction, too long
        lambda v: np.roll(v, 10, axis=0),  # the rows of another time
    ],
)
def test_a_wrong_track_is_found_and_dropped(library, change):
    row = next(row for row in library.tracks() if row.expert == "colour" and row.rows > 20)
    track = library.track(row.content, "colour")
    put_track(library, row.content, "colour", Track(np.ascontiguousarray(change(track.values)), track.times))
    (problem,) = recompute_tracks(library, load, FakeFence(), sample=100)
    assert problem.key == (row.content, "colour")
    repair(library, [problem])
    assert library.track(row.content, "colour") is None


def test_rounding_is_allowed_as_far_as_the_card_says(library):
    row = next(row for row in library.tracks() if row.expert == "colour" and row.rows > 20)
    track = library.track(row.content, "colour")
    turned = track.values + 0.2 * np.roll(track.values, 1, axis=1) * [1, -1, 1, -1]
    turned *= np.linalg.norm(track.values) / np.linalg.norm(turned)
    put_track(library, row.content, "colour", Track(turned.astype(np.float32), track.times))

    def coarse(name):
        expert = load(name)
        expert.card = replace(expert.card, same_cosine=0.9)
        return expert

    assert len(recompute_tracks(library, load, FakeFence(), sample=100)) == 1
    assert recompute_tracks(library, coarse, FakeFence(), sample=100) == []


def test_tracks_of_another_version_are_not_wrong(library):
    def newer(name):
        return Colour(version=2) if name == "colour" else load(name)

    assert recompute_tracks(library, newer, FakeFence(), sample=100) == []


def test_as_many_files_as_asked_for_and_only_those_that_are_as_they_were(library, tmp_path):
    for number in (0, 1):
        write_media(tmp_path / "more" / f"{number}.mp4", seconds=41, seed=number)
    fence = FakeFence()
    recompute_tracks(library, load, fence, sample=2)
    assert len(fence.streamed) == 2
    fence = FakeFence()
    recompute_tracks(library, load, fence, sample=100)
    assert not {str(tmp_path / "more" / f"{number}.mp4") for number in (0, 1)} & set(fence.streamed)
    assert str(tmp_path / "more" / "2.mp4") in fence.streamed
