"""Values that cannot be right, each fault on its own, against a plain loop over rows."""

import numpy as np
import pytest
from tests.fakes import Colour, FakeFence, Shots, Talk, write_media

from wordreel.ingest.add import add
from wordreel.maintain.verify import verify
from wordreel.types import Track, Words
from wordreel.util.degenerate import MIN_VECTORS, embeddings_fault, track_fault

RNG = np.random.default_rng(0)


def track(values, words=()):
    values = np.asarray(values, np.float32)
    seconds = np.arange(len(values), dtype=float)
    return Track(values, np.stack([seconds, seconds + 1], 1), words)


def unit(shape):
    rows = RNG.normal(size=shape).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        (RNG.normal(size=(9, 4)), ""),
        (np.zeros((9, 4)), "nothing but zeros"),
        (np.full((9, 4), 0.25), "one constant"),
        (np.full((9, 1), 0.25), ""),  # one number a row may well be the same
        (np.where(np.eye(9, 4) > 0, np.nan, 1), "values that are not finite"),
        (np.where(np.eye(9, 4) > 0, np.inf, 1), "values that are not finite"),
    ],
)
def test_tracks(values, fault):
    assert track_fault(track(values)) == fault


def test_a_track_that_does_not_change_with_the_picture():
    same = track(np.tile(RNG.normal(size=4), (9, 1)))
    assert track_fault(same, pictures=True, shots=5) == "the same row at 9 times in 5 shots"
    assert track_fault(same, pictures=True, shots=1) == ""  # one long shot of a wall
    assert track_fault(same, pictures=False, shots=5) == ""  # silence
    assert track_fault(track(same.values[:3]), pictures=True, shots=5) == ""
    assert track_fault(track(same.values, (Words("channel 5", 0, 9),)), pictures=True, shots=5) == ""
    assert track_fault(track(RNG.normal(size=(9, 4))), pictures=True, shots=5) == ""


def spoilt(row, how):
    vectors = unit((12, 5))
    vectors[row] = how(vectors[row])
    return vectors


@pytest.mark.parametrize(
    ("how", "fault"),
    [
        (lambda row: row * np.nan, "hold values that are not finite"),
        (lambda row: row * 0, "are nothing but zeros"),
        (lambda row: np.full(5, 5**-0.5), "are constant"),
        (lambda row: row * 1.5, "are not of length 1"),
    ],
)
def test_one_embedding_among_good_ones(how, fault):
    for row in (0, 7, 11):
        assert embeddings_fault(spoilt(row, how)) == (f"1 of 12 {fault}", row)


def test_good_embeddings():
    assert embeddings_fault(unit((12, 5))) == ("", -1)
    assert embeddings_fault(unit((0, 5))) == ("", -1)
    copied = unit((12, 5))
    copied[3] = copied[4]  # two copies of one video
    assert embeddings_fault(copied) == ("", -1)
    lengths = RNG.uniform(1, 9, (12, 1)).astype(np.float32)  # of a model that does not normalise
    assert embeddings_fault(unit((12, 5)) * lengths) == ("", -1)


def test_all_the_same():
    base = unit((1, 50))
    for noise, same in ((0.0, True), (1e-4, True), (0.1, False)):
        rows = base + noise * RNG.normal(size=(40, 50)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        cosines = [float(a @ b) for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
        assert (np.mean(cosines) >= 0.9999) == same  # the twin
        assert bool(embeddings_fault(rows)[0]) == same
    assert embeddings_fault(np.tile(base, (MIN_VECTORS - 1, 1))) == ("", -1)


def test_more_copies_than_not():
    few = unit((3, 5))
    fault, _ = embeddings_fault(few[[0, 0, 0, 1, 1, 1, 2, 2, 2, 2]])
    assert fault == "7 of 10 are copies of another"


def test_add_reports_what_cannot_be_right(store, media):
    """The track is stored, and named with its file in the report of `add` and by `verify`."""

    class Dead(Colour):
        def extract(self, media):
            found = super().extract(media)
            return Track(found.values * 0, found.times)

    class Stuck(Colour):
        def extract(self, media):
            found = super().extract(media)
            return Track(np.tile(np.arange(4, dtype=np.float32), (len(found), 1)), found.times)

    class Cuts(Shots):
        """Another picture every ten seconds."""

        def extract(self, media):
            found = super().extract(media)
            levels = (found.times[:, :1] // 10 % 2).astype(np.float32)
            return Track(np.repeat(levels, 136, axis=1) + found.values * 0, found.times)

    film = str(write_media(media / "film.mp4", seconds=60.0, seed=1))
    report = add(store, [media], [Dead("dead"), Stuck("appearance"), Cuts(), Colour(), Talk()], FakeFence())
    assert report.added == [film]
    faults = {expert: what for path, expert, what in report.degenerate if path == film}
    shots = 1 + max(clip.shot for clip in store.clips())
    assert shots == 6
    assert faults == {"dead": "nothing but zeros", "appearance": f"the same row at 60 times in {shots} shots"}
    problems = [problem for problem in verify(store) if problem.kind == "degenerate"]
    assert sorted(problem.what for problem in problems) == sorted(
        f"expert {expert} returned {what} for {film}" for expert, what in faults.items()
    )
    assert {problem.next_step.command for problem in problems} == {"doctor"}
