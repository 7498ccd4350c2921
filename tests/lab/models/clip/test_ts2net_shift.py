"""Token shift against a loop over every token."""

import pytest

torch = pytest.importorskip("torch")

from wordreel.lab.models.clip.ts2net import shift_tokens  # noqa: E402


def slow_shift(tokens, lengths):
    """Token by token; a video has as many frames as `lengths` says."""
    videos, frames, count, _ = tokens.shape
    step = max(1, count // 7)
    before = [n for n in range(1, count) if (n - 1) % step == 0]
    after = [n for n in range(4, count) if (n - 4) % step == 0]
    shifted = tokens.clone()
    for video in range(videos):
        for frame in range(frames):
            for n in range(count):
                if n in before and frame > 0 and frame - 1 < lengths[video]:
                    shifted[video, frame, n] = tokens[video, frame - 1, n]
                if n in after and frame + 1 < frames and frame + 1 < lengths[video]:
                    shifted[video, frame, n] = tokens[video, frame + 1, n]
    return shifted


@pytest.mark.parametrize("count", [5, 10, 17, 50])
def test_the_shift_equals_the_loop(count):
    torch.manual_seed(0)
    tokens, lengths = torch.randn(3, 4, count, 2), [4, 2, 1]
    mask = torch.arange(4) < torch.tensor(lengths)[:, None]
    assert torch.equal(shift_tokens(tokens), slow_shift(tokens, [4, 4, 4]))
    assert torch.equal(shift_tokens(tokens, mask), slow_shift(tokens, lengths))


def test_which_tokens_of_a_vit_b_32_move():
    tokens = torch.arange(3.0)[None, :, None, None].expand(1, 3, 50, 1)  # a token is its frame's number
    middle = shift_tokens(tokens)[0, 1, :, 0]
    assert (middle == 0).nonzero().flatten().tolist() == [1, 8, 15, 22, 29, 36, 43]
    assert (middle == 2).nonzero().flatten().tolist() == [4, 11, 18, 25, 32, 39, 46]


def test_which_tokens_of_a_vit_b_16_move():
    tokens = torch.arange(3.0)[None, :, None, None].expand(1, 3, 197, 1)
    middle = shift_tokens(tokens)[0, 1, :, 0]
    assert (middle == 0).nonzero().flatten().tolist() == [1, 29, 57, 85, 113, 141, 169]
    assert (middle == 2).nonzero().flatten().tolist() == [4, 32, 60, 88, 116, 144, 172]


def test_gradients_follow_the_tokens():
    tokens = torch.randn(2, 3, 10, 2, dtype=torch.double, requires_grad=True)
    mask = torch.tensor([[True, True, False], [True, True, True]])
    assert torch.autograd.gradcheck(lambda x: shift_tokens(x, mask), tokens)
