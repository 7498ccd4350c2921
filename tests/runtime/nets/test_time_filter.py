"""Toom-Cook filtering against plain filtering, in numbers and in the graph."""

from __future__ import annotations

import numpy as np
import pytest

from wordreel.runtime.nets.time_filter import same, time_plan, toom_cook


@pytest.mark.parametrize(("outputs", "taps"), [(1, 2), (1, 3), (2, 3), (4, 3), (4, 4), (2, 4)])
def test_filtering_with_fewer_products_is_filtering(outputs: int, taps: int) -> None:
    rng = np.random.default_rng(outputs * 10 + taps)
    data, kernel = rng.normal(size=outputs + taps - 1), rng.normal(size=taps)
    plain = [sum(kernel[j] * data[i + j] for j in range(taps)) for i in range(outputs)]
    a, g, b = toom_cook(outputs, taps)
    assert len(g) == outputs + taps - 1
    np.testing.assert_allclose(a @ ((g @ kernel) * (b @ data)), plain, atol=1e-10)


@pytest.mark.parametrize(
    ("frames", "taps", "stride"), [(16, 7, 2), (8, 3, 1), (4, 3, 1), (2, 3, 1), (5, 3, 1)]
)
def test_a_plan_filters_frames_with_same_padding(frames: int, taps: int, stride: int) -> None:
    rng = np.random.default_rng(frames)
    weight = rng.normal(size=(1, 1, taps, 1, 1))
    video = rng.normal(size=frames)
    before, after, length = same(frames, taps, stride)
    padded = np.pad(video, (before, after))
    plain = [sum(weight[0, 0, k, 0, 0] * padded[t * stride + k] for k in range(taps)) for t in range(length)]

    spread, filters, gather = time_plan(weight, frames, stride)
    mixed = (spread @ video).reshape(len(filters), -1, stride)  # [points, tiles, phases]
    products = np.einsum("ntp,np->nt", mixed, filters[:, 0, :, 0, 0])
    np.testing.assert_allclose(gather @ products.ravel(), plain, atol=1e-5)


def test_same_padding_puts_the_odd_one_at_the_end() -> None:
    assert same(224, 7, 2) == (2, 3, 112)
    assert same(112, 3, 2) == (0, 1, 56)
    assert same(28, 3, 1) == (1, 1, 28)
    assert same(4, 2, 2) == (0, 0, 2)
