"""Text-conditioned frame weights against one caption and one video at a time."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import normalize  # noqa: E402

from wordreel.lab.models.clip import ts2net  # noqa: E402
from wordreel.lab.models.clip.ts2net import frame_weighted_cosines  # noqa: E402
from wordreel.lab.models.clip.video_text import cosines  # noqa: E402


def case():
    torch.manual_seed(0)
    mask = torch.arange(4) < torch.tensor([4, 1, 3])[:, None]
    return normalize(torch.randn(5, 6), dim=-1), normalize(torch.randn(3, 4, 6), dim=-1), mask


def slow(text, frames):
    cosines = torch.stack([text @ frame for frame in frames])
    weights = torch.exp(4 * cosines / cosines.pow(2).sum().sqrt())
    return (weights / weights.sum() * cosines).sum()


def test_one_pair_at_a_time():
    texts, frames, mask = case()
    found = frame_weighted_cosines(texts, frames, mask)
    for q, text in enumerate(texts):
        for b in range(3):
            torch.testing.assert_close(found[q, b], slow(text, frames[b, mask[b]]))


def test_mixed_precision_keeps_the_digits_of_logits():
    texts, frames, mask = case()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = frame_weighted_cosines(texts, frames, mask), cosines(texts, frames[:, 0])
    for one, wanted in zip(
        found, (frame_weighted_cosines(texts, frames, mask), texts @ frames[:, 0].T), strict=True
    ):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one, wanted)


def test_padding_has_no_influence_and_blocks_no_seams(monkeypatch):
    texts, frames, mask = case()
    found = frame_weighted_cosines(texts, frames, mask)
    frames[~mask] = 7.0
    monkeypatch.setattr(ts2net, "BLOCK", 2 * mask.numel())
    torch.testing.assert_close(frame_weighted_cosines(texts, frames, mask), found)
