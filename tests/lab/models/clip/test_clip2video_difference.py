"""The temporal difference block against loops over frames."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from wordreel.lab.models.clip.clip2video import difference_tokens  # noqa: E402


def case(frames=4):
    torch.manual_seed(0)
    mask = torch.arange(frames) < torch.tensor([frames, min(2, frames), 1])[:, None]
    norm = nn.LayerNorm(5)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    return torch.randn(3, frames, 5), mask, torch.randn(7, 5), torch.randn(2, 5), norm


def slow(frames, positions, types, matrix, norm):
    tokens = []
    for t in range(len(frames)):
        tokens.append(frames[t] + positions[t] + types[1])
        if t + 1 < len(frames):
            d = 2 / (1 + torch.exp(-norm(matrix @ (frames[t + 1] - frames[t])))) - 1
            tokens.append(d + positions[t] + types[0])
    return torch.stack(tokens)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("released", [False, True])
def test_frames_and_differences_in_turn(count, released):
    frames, mask, positions, types, norm = case(count)
    matrix, seen = torch.randn(5, 5), []

    def transform(differences, real):
        seen.append(real)
        return differences @ matrix.T

    found, real = difference_tokens(frames, mask, positions, types, transform, norm, released=released)
    assert found.shape == (3, 2 * count - 1, 5)
    for n, video in enumerate(frames):
        torch.testing.assert_close(found[n], slow(video, positions, types, matrix, norm))
        wanted = []
        for t in range(count):
            wanted.append(bool(mask[n, t]))
            if t + 1 < count:
                wanted.append(bool(mask[n, t]) and (released or bool(mask[n, t + 1])))
        assert real[n].tolist() == wanted
    assert all(torch.equal(one, mask[:, 1:]) for one in seen)
