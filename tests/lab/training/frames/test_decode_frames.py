"""Frame numbers against the published loop, second by second."""

import pytest

from wordreel.lab.training.frames.decode_frames import candidates, frame_numbers


def slow_candidates(frames, frame_rate, rate):
    """Seek to `second * int(fps) + k` until a read fails, as the released extractor does."""
    fps = int(frame_rate)
    interval = max(1, fps // rate)
    within = list(range(0, fps, interval))[:rate]
    found = []
    for second in range((frames + fps - 1) // fps + 1):
        for index in within:
            if second * fps + index >= frames:
                return found
            found.append(second * fps + index)
    return found


@pytest.mark.parametrize("frame_rate", [6.0, 10.0, 23.976, 29.97])
@pytest.mark.parametrize("rate", [1, 2, 3])
@pytest.mark.parametrize("frames", [1, 5, 29, 30, 61, 300])
def test_candidates_are_those_of_the_published_loop(frames, frame_rate, rate):
    assert candidates(frames, frame_rate, rate).tolist() == slow_candidates(frames, frame_rate, rate)


@pytest.mark.parametrize("frame_rate", [10.0, 23.976, 29.97])
@pytest.mark.parametrize("frames", [1, 29, 61, 300])
def test_feature_framerate_divides_frames_extracted_at_five_a_second(frames, frame_rate):
    extracted = slow_candidates(frames, frame_rate, 5)
    assert candidates(frames, frame_rate, 5 / 2).tolist() == extracted[::2]
    assert candidates(frames, frame_rate, 5 / 1).tolist() == extracted


def test_a_rate_below_one_frame_per_second_reads_every_frame():
    assert candidates(3, 0.5, 1).tolist() == [0, 1, 2]


def test_positions_choose_first_last_and_even_frames():
    chosen = {p: frame_numbers(50, 10.0, 1, 3, p).tolist() for p in ("first", "last", "uniform")}
    assert chosen == {"first": [0, 10, 20], "last": [20, 30, 40], "uniform": [0, 20, 40]}
    assert frame_numbers(25, 10.0, 1, 12, "uniform").tolist() == [0, 10, 20]
