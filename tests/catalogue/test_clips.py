"""Cuts: they cover the video, in order, and none is too short or too long."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from wordreel.catalogue.clips import LONGEST, PIECE, SHORTEST, ClipBounds, cut_clips, merge_short, split_long
from wordreel.media.types import MediaInfo


def film(seconds: float, kind: str = "video") -> MediaInfo:
    return MediaInfo(kind, "mp4", seconds)


@given(
    end=st.floats(0.04, 40000.0),
    begins=st.lists(st.floats(-5.0, 50000.0), max_size=60),
    kind=st.sampled_from(["video", "audio"]),
)
def test_clips_tile_the_video(end, begins, kind):
    edges = sorted(begins)
    cuts = cut_clips(film(end, kind), list(pairwise(edges)) or None)
    assert cuts[0] == ClipBounds(0.0, end, whole=True)
    pieces = cuts[1:]
    assert len(pieces) != 1
    if pieces:
        assert (pieces[0].start, pieces[-1].end) == (0.0, end)
        assert all(a.end == b.start for a, b in pairwise(pieces))
        assert all(c.start < c.end and c.end - c.start <= LONGEST + 1e-6 for c in pieces)
        assert min(c.end - c.start for c in pieces) >= SHORTEST - 1e-6
    else:
        assert end <= LONGEST


def test_pictures_and_short_films_are_one_item():
    assert cut_clips(film(0.0, "image"), None) == [ClipBounds(0.0, 0.0, whole=True)]
    assert cut_clips(film(15.0), None) == [ClipBounds(0.0, 15.0, whole=True)]
    assert cut_clips(film(15.0), [(0.0, 15.0)]) == [ClipBounds(0.0, 15.0, whole=True)]
    assert cut_clips(film(0.0), None) == [ClipBounds(0.0, 0.0, whole=True)], (
        "a film whose length nobody knows"
    )


def test_shots_are_numbered_and_sound_is_cut_evenly():
    cuts = cut_clips(film(40.0), [(0.0, 6.0), (6.0, 7.0), (7.0, 40.0)])
    assert [(c.start, c.shot) for c in cuts[1:3]] == [(0.0, 0), (6.0, 1)]
    assert {c.shot for c in cuts[2:]} == {1}
    assert [c.end - c.start for c in cut_clips(film(35.0, "audio"), None)[1:]] == [8.75] * 4


def test_split_and_merge():
    assert split_long((0.0, LONGEST), LONGEST, PIECE) == [(0.0, LONGEST)]
    assert len(split_long((5.0, 5.0 + 30.0), LONGEST, PIECE)) == 3
    assert merge_short([(0, 1), (1, 1.5)], 2.0) == [(0, 1.5)]
    assert merge_short([(0, 3), (3, 4)], 2.0) == [(0, 4)]
    assert merge_short([(0, 1), (1, 4)], 2.0) == [(0, 4)]
