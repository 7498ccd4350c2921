"""Chunks against their obvious twin: decode everything at once, then slice by time."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.fakes import FakeFence, write_media

from wordreel.ingest.expert_runner import PAUSE, FrameChunker, FramePieces, SoundChunker
from wordreel.media.types import AudioNeed, FrameNeed, Frames, Sound


def windows(seconds: float, window: float) -> list[tuple[float, float]]:
    """As the decoder cuts: a remainder under a second joins the last window."""
    edges = [0.0]
    while seconds - edges[-1] >= window + 1.0:
        edges.append(edges[-1] + window)
    return list(zip(edges, [*edges[1:], seconds], strict=True))


def expected_edges(seconds: float, span: float) -> list[tuple[float, float]]:
    return windows(seconds, span)


@settings(max_examples=60, deadline=None)
@given(
    seconds=st.integers(1, 3000).map(lambda n: n / 8),
    span=st.sampled_from([10.0, 45.0, 60.0, 61.44, 90.0, 120.0, 1800.0]),
    window=st.sampled_from([15.0, 60.0]),
)
@example(seconds=45.5, span=45.0, window=60.0)
@example(seconds=120.875, span=60.0, window=60.0)
@example(seconds=61.75, span=61.44, window=60.0)
@example(seconds=90.5, span=90.0, window=30.0)
@example(seconds=91.0, span=90.0, window=30.0)
def test_chunks_hold_everything_once(seconds, span, window):
    rate = 4.0
    times = np.arange(int(np.ceil(seconds * rate))) / rate
    images = np.arange(len(times), dtype=np.uint8)[:, None, None, None].repeat(3, axis=3)
    samples = np.arange(round(seconds * 100), dtype=np.float32)
    frames, sounds, pieces = FrameChunker(span), SoundChunker(span), FramePieces(span)
    got_frames: list[Frames] = []
    got_sounds: list[Sound] = []
    got_pieces: list[list[float]] = [[]]

    def take(found):
        for piece in found:
            got_pieces[-1] += [] if piece.media is None else piece.media.times.tolist()
            if piece.complete:
                got_pieces.append([])

    for a, b in windows(seconds, window):
        here = (times >= a) & ((times < b) | (b == seconds))
        part = Frames(images[here], times[here], 1 / rate)
        got_frames += [piece.media for piece in frames.push(part, b)]
        take(pieces.push(part, b))
        first, last = round(a * 100), round(b * 100)
        got_sounds += [piece.media for piece in sounds.push(Sound(samples[first:last], 100, first / 100), b)]
    got_frames += [piece.media for piece in frames.flush()]
    got_sounds += [piece.media for piece in sounds.flush()]
    take(pieces.flush())
    assert got_pieces == [*(f.times.tolist() for f in got_frames), []]
    assert np.array_equal(np.concatenate([f.times for f in got_frames]), times)
    assert np.array_equal(np.concatenate([f.images for f in got_frames]), images)
    assert np.array_equal(np.concatenate([s.samples for s in got_sounds]), samples)
    naive = expected_edges(seconds, span)
    assert [len(f) for f in got_frames] == [
        len(times[(times >= a - 1e-6) & ((times < b - 1e-6) | (b == seconds))]) for a, b in naive
    ]
    assert [s.start for s in got_sounds] == pytest.approx([round(a * 100) / 100 for a, _ in naive])
    assert all(s.seconds <= span + 1.0 for s in got_sounds)


@pytest.mark.parametrize("window", [5.0, 1000.0])
def test_sound_is_cut_at_the_quietest_moment_before_an_edge(window):
    """Twin: the energy of every pause that could be meant, one after the other."""
    rate, span, quiet = 100, 30.0, 8.0
    samples = np.random.default_rng(4).normal(size=95 * rate).astype(np.float32)
    samples[2450:2520] *= 0.1
    chunks, found = SoundChunker(span, quiet), []
    for start in np.arange(0.0, 95.0, window):
        part = samples[round(start * rate) : round((start + window) * rate)]
        found += chunks.push(Sound(part, rate, start), start + len(part) / rate)
    found += chunks.flush()
    assert np.array_equal(np.concatenate([piece.media.samples for piece in found]), samples)
    starts = [round(piece.media.start * rate) for piece in found]
    length = round(PAUSE * rate)
    for start, edge in zip(starts[1:], (3000, 6000, 9000), strict=True):
        places = range(edge - round(quiet * rate), edge - length + 1)
        energies = [float((samples[at : at + length].astype(np.float64) ** 2).sum()) for at in places]
        assert start == places[int(np.argmin(energies))] + length // 2
    assert 2450 < starts[1] < 2520


@pytest.mark.parametrize("seconds", [59.0, 60.0, 60.5, 64.0])
def test_a_quiet_cut_loses_nothing_at_the_end(seconds):
    samples = np.zeros(round(seconds * 100), np.float32)
    chunks = SoundChunker(30.0, 8.0)
    pieces = [*chunks.push(Sound(samples, 100), seconds), *chunks.flush()]
    assert sum(len(piece.media.samples) for piece in pieces) == len(samples)
    assert [piece.media.start for piece in pieces] == pytest.approx(
        np.cumsum([0.0, *(piece.media.seconds for piece in pieces[:-1])])
    )
    assert all(piece.media.seconds <= 30.0 + 8.0 for piece in pieces)


def test_hole_in_the_sound_is_silence():
    chunks = SoundChunker(100.0)
    chunks.push(Sound(np.ones(10, np.float32), 10, 0.0), 1.0)
    chunks.push(Sound(np.ones(10, np.float32), 10, 3.0), 4.0)
    (whole,) = chunks.flush()
    assert whole.media.samples.tolist() == [1.0] * 10 + [0.0] * 20 + [1.0] * 10


def test_sound_that_begins_late_keeps_its_time():
    chunks = SoundChunker(60.0)
    assert chunks.push(Sound(np.zeros(0, np.float32), 10, 0.0), 60.0) == []
    assert chunks.push(Sound(np.ones(100, np.float32), 10, 110.0), 120.0)[0].media.start == 110.0


def test_a_picture_is_one_chunk(tmp_path):
    path = write_media(tmp_path / "a.png", kind="image", seconds=0)
    (window,) = FakeFence().stream(path, [FrameNeed(1.0, 4), AudioNeed(100)])
    chunks = FrameChunker(60.0)
    assert chunks.push(window.parts[0], window.end) == []
    assert len(chunks.flush()[0].media) == 1
    assert window.parts[1] is None


def test_pieces_hold_back_only_what_may_belong_to_the_next_chunk():
    pieces = FramePieces(10.0)
    times = np.arange(40) / 4
    frames = Frames(np.zeros((40, 1, 1, 3), np.uint8), times, 0.25)
    (first,) = pieces.push(frames, 10.0)  # ends where the chunk does: the chunk is complete
    assert first.complete
    assert len(first.media) == 40
    later = Frames(frames.images, times + 10.0, 0.25)
    assert [(len(p.media), p.complete) for p in pieces.push(later, 20.0)] == [(40, True)]
    assert pieces.flush() == []
