"""The temporal alignment block against loops over tokens and centres."""

import pytest

torch = pytest.importorskip("torch")

from wordreel.lab.models.clip.clip2video import align_tokens  # noqa: E402


def slow(tokens, weights, centres):
    rows = []
    for k in range(len(centres)):
        total = torch.zeros(tokens.shape[1], dtype=tokens.dtype)
        for x in tokens:
            total += torch.softmax(weights @ x, 0)[k] * (x - centres[k])
        rows.append(total / total.norm())
    mean = torch.stack(rows).mean(0)
    return mean / mean.norm()


def test_tokens_gather_around_the_centres():
    torch.manual_seed(0)
    tokens, weights, centres = torch.randn(3, 4, 6), torch.randn(5, 6), torch.randn(5, 6)
    mask = torch.arange(4) < torch.tensor([4, 2, 3])[:, None]
    tokens[~mask] = 9.0
    for n, found in enumerate(align_tokens(tokens, mask, weights, centres)):
        torch.testing.assert_close(found, slow(tokens[n, mask[n]], weights, centres))
