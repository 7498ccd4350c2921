"""Look-alikes equal the naive ranking: every pair of items by the definition, one by one."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.digest import digest_of
from tests.fakes import Colour, FakeFence, Shots, Talk, write_media
from tests.search.helpers import like

from wordreel.embed.embed_library import tracks_of
from wordreel.errors import LibraryError, MediaError, QueryError
from wordreel.experts import registry
from wordreel.ingest.add import add
from wordreel.ingest.extract import extract_file
from wordreel.models.base import mixture_weights
from wordreel.models.similarity import alike
from wordreel.search import like as like_module
from wordreel.search.filters import Filters
from wordreel.search.query import VideoMoment
from wordreel.search.video_query import VideoQuery, encode_video, experts_for


def never(path, model):
    raise AssertionError(f"{path} was studied")


def look(path, model=None, experts=(Colour, Talk)):
    return extract_file(path, [kind() for kind in experts], FakeFence())


def twin(v, a, u, b, w):
    """s(v, u) by the definition; None where nothing is common."""
    both = [m for m in range(len(w)) if a[m] and b[m] and w[m] > 0]
    if not both:
        return None
    return sum(w[m] * float(v[m] @ u[m]) for m in both) / sum(w[m] for m in both)


def naive(store, model, sample_clips, tracks, skip, weights):
    """Content → the best pair of items."""
    mine, have = model.embed(tracks, sample_clips)
    best = {}
    for clip in store.clips():
        if clip.content == skip:
            continue
        theirs, there = model.embed(tracks_of(store, model, clip.content), [clip.clip])
        for row in range(len(mine)):
            score = twin(mine[row], have[row], theirs[0], there[0], weights)
            if score is not None:
                best[clip.content] = max(best.get(clip.content, -9.0), score)
    return best


def check(matches, expected):
    assert [match.rank for match in matches] == list(range(1, len(expected) + 1))
    assert [match.score for match in matches] == pytest.approx(
        sorted(expected.values(), reverse=True), abs=1e-5
    )
    for match in matches:
        assert match.score == pytest.approx(expected[match.content], abs=1e-5)


def test_alike_equals_its_twin():
    rng = np.random.default_rng(0)
    v, u = rng.normal(size=(7, 3, 5)).astype(np.float32), rng.normal(size=(9, 3, 5)).astype(np.float32)
    a, b = rng.random((7, 3)) < 0.6, rng.random((9, 3)) < 0.6
    w = np.array([1.0, 0.3, 2.0], np.float32)
    found = alike(v, a, u, b, w)
    for i in range(7):
        for j in range(9):
            assert found[i, j] == pytest.approx(twin(v[i], a[i], u[j], b[j], w) or 0.0, abs=1e-5)
    np.testing.assert_allclose(alike(u, b, v, a, w), found.T, atol=1e-5)
    units = v / np.linalg.norm(v, axis=2, keepdims=True)
    every = np.ones_like(a)
    np.testing.assert_allclose(np.diag(alike(units, every, units, every, w)), 1, atol=1e-5)


@pytest.mark.parametrize("number", [0, 4])
@pytest.mark.parametrize("weights", [None, (1.0, 0.25)])
def test_ranking_equals_the_naive_one(searcher, store, model, films, number, weights, monkeypatch):
    monkeypatch.setattr(like_module, "AT_ONCE", 2)
    if weights:
        model.expert_weights = weights
    assert mixture_weights(model).tolist() == list(weights or (1.0, 1.0))
    sample = encode_video(store, model, VideoMoment(films[number]), never)
    expected = naive(store, model, sample.clips, sample.tracks, sample.content, weights or (1.0, 1.0))
    matches = like(searcher, sample, 100)
    check(matches, expected)
    assert sample.content not in {match.content for match in matches}
    for match in matches:
        assert sum(reason.share for reason in match.why) == pytest.approx(match.score, abs=1e-5)
    assert [m.path for m in like(searcher, sample, 2)] == [m.path for m in matches[:2]]


def test_the_moments_are_the_best_pair_of_clips(searcher, store, model, films):
    sample = encode_video(store, model, VideoMoment(films[-1]), never)
    assert len(sample.pieces()) > 1
    for match in like(searcher, sample, 100):
        pairs = []
        theirs = [clip for clip in store.clips(match.content) if not clip.whole] or store.clips(match.content)
        for row in sample.pieces():
            for clip in theirs:
                made, there = model.embed(tracks_of(store, model, match.content), [clip.clip])
                score = twin(sample.vectors[row], sample.available[row], made[0], there[0], (1.0, 1.0))
                pairs.append(
                    (score, (sample.clips[row].start, sample.clips[row].end), (clip.start, clip.end))
                )
        best = max(score for score, _, _ in pairs)
        near = [(mine, other) for score, mine, other in pairs if score > best - 1e-6]
        assert (match.like, (match.start, match.end)) in near


def test_one_moment_is_the_clip_that_holds_it(searcher, store, model, films):
    sample = encode_video(store, model, VideoMoment(films[-1]), never)
    for second in (0.0, 34.5, sample.clips[0].end):
        clip = sample.at(second).clips[0]
        assert not clip.whole
        assert clip.start <= second <= clip.end
        expected = naive(store, model, [clip], sample.tracks, sample.content, (1.0, 1.0))
        check(like(searcher, sample.at(second), 100), expected)
        assert {match.like for match in like(searcher, sample.at(second), 100)} == {(clip.start, clip.end)}
    for second in (-1.0, sample.clips[0].end + 1, float("nan")):
        with pytest.raises(QueryError, match="no second"):
            sample.at(second)


def test_a_file_outside_is_studied_and_not_added(searcher, store, model, tmp_path):
    film = write_media(tmp_path / "elsewhere" / "new.mp4", seconds=47.0, seed=77)
    before = digest_of(store)
    sample = encode_video(store, model, VideoMoment(film), look)
    assert sample.content == ""
    check(like(searcher, sample, 100), naive(store, model, sample.clips, sample.tracks, "", (1.0, 1.0)))
    assert digest_of(store) == before
    add(store, [film], [Colour(), Talk()], FakeFence())
    inside = encode_video(store, model, VideoMoment(film), never)
    assert [(c.start, c.end, c.whole) for c in inside.clips] == [
        (c.start, c.end, c.whole) for c in sample.clips
    ]
    np.testing.assert_allclose(inside.vectors, sample.vectors, atol=1e-6)


def test_shots_cut_a_file_outside_as_they_do_inside(store, model, tmp_path):
    film = write_media(tmp_path / "elsewhere" / "cuts.mp4", seconds=90.0, seed=3)
    found = look(film, experts=(Colour, Shots))
    add(store, [film], [Colour(), Shots()], FakeFence())
    clips = store.clips(store.file(film).content)
    assert len(clips) > 2
    assert [(c.start, c.end, c.whole) for c in clips] == [(c.start, c.end, c.whole) for c in found.clips]


def test_a_copy_is_known_by_its_bytes(searcher, store, model, films, tmp_path):
    copy = tmp_path / "copy.mp4"
    shutil.copy(films[2], copy)
    sample = encode_video(store, model, VideoMoment(copy), never)
    assert sample.content == store.file(films[2]).content
    assert str(films[2]) not in {str(match.path) for match in like(searcher, sample, 100)}


def test_filters_limit_what_is_found(searcher, store, model, films, tmp_path):
    sample = encode_video(store, model, VideoMoment(films[0]), never)
    every = like(searcher, sample, 100)
    inside = like(searcher, sample, 100, Filters(folder=tmp_path / "media" / "part1"))
    assert [m.path for m in inside] == [m.path for m in every if "/part1/" in str(m.path)]
    assert inside
    assert like(searcher, sample, 9, Filters(after=datetime.now() + timedelta(days=1))) == []
    for chosen in (
        Filters(kind="image"),
        Filters(kind="video", min_duration=40.0),
        Filters(max_duration=40.0),
    ):
        low, high = chosen.min_duration or 0.0, chosen.max_duration or 1e9
        kept = [m for m in every if chosen.kind in (None, m.kind) and low <= m.duration <= high]
        assert 0 < len(kept) < len(every)
        found = like(searcher, sample, 100, chosen)
        assert [(m.content, m.score) for m in found] == [(m.content, m.score) for m in kept]
    with pytest.raises(QueryError, match="1 or more"):
        like(searcher, sample, 0)


def test_what_cannot_be_compared_is_left_out(searcher, store, model, films):
    sample = encode_video(store, model, VideoMoment(films[0]), never)
    heard = {"talk": sample.tracks["talk"]}
    only = VideoQuery.of(model, "sound", "", heard, sample.clips)
    found = like(searcher, only, 100)
    assert len(found) == 6  # the picture has no sound
    assert all({reason.expert for reason in match.why} == {"talk"} for match in found)
    with pytest.raises(QueryError, match="reads colour, talk"):
        VideoQuery.of(model, "nothing", "", {}, sample.clips)


def test_reasons_name_what_is_shared(searcher, store, model, films):
    sample = encode_video(store, model, VideoMoment(films[0]), never)
    assert like(searcher, sample, 1)[0].why[0].what.endswith("% alike")

    def shared(tracks, clip, others, other):
        assert set(tracks) == {"colour", "talk"}
        assert set(others) <= {"colour", "talk"}
        return {"colour": (f"from {clip.start:g}", None), "talk": ("“dogs”", (other.start, other.end))}

    model.compare = shared
    (best,) = like(searcher, sample, 1)
    said = {reason.expert: reason for reason in best.why}
    assert said["colour"].what.startswith("from ")
    assert (said["talk"].what, said["talk"].at) == ("“dogs”", (best.start, best.end))


def test_files_that_are_no_media(store, model, tmp_path):
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no")
    with pytest.raises(MediaError, match=r"bad\.mp4: not media"):
        encode_video(store, model, VideoMoment(bad), look)
    with pytest.raises(QueryError, match="neither in the library"):
        encode_video(store, model, VideoMoment(tmp_path / "gone.mp4"), never)
    with pytest.raises(LibraryError, match="zero byte"):
        encode_video(store, model, VideoMoment(Path("a\0b")), never)


def test_who_looks_at_a_file_outside(store, model):
    with pytest.raises(QueryError, match="imported features"):
        experts_for(store, model, registry.cards())
    model.track_experts = ("colour", "motion", "speech")
    with pytest.raises(QueryError, match="imported features"):
        experts_for(
            store, model, registry.cards()
        )  # nobody in the library has seen motion: it could not be compared
    store.catalogue.run("UPDATE tracks SET expert = 'motion' WHERE expert = 'colour'")
    assert experts_for(store, model, registry.cards()) == ["motion"]
    store.catalogue.run("DELETE FROM words")
    store.catalogue.run("UPDATE tracks SET expert = 'shots' WHERE expert = 'talk'")
    assert experts_for(store, model, registry.cards()) == ["motion", "shots"]
    store.catalogue.run("DELETE FROM tracks")
    assert experts_for(store, model, registry.cards()) == ["motion", "speech", "shots"]
