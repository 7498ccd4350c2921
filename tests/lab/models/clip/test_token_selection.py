"""Token selection against one frame and one token at a time."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import gelu, layer_norm  # noqa: E402

from wordreel.lab.models.clip.token_selection import TokenSelection  # noqa: E402


def selection(**options):
    torch.manual_seed(0)
    return TokenSelection(8, 2, samples=30, **options)


def slow_scores(module, frame):
    parts = dict(module.score_predictor.named_parameters())
    hidden = [
        gelu(
            parts["in_conv.1.weight"]
            @ layer_norm(x, (8,), parts["in_conv.0.weight"], parts["in_conv.0.bias"])
        )
        for x in frame
    ]
    scores = []
    for one in hidden:
        inner = gelu(parts["out_conv.0.weight"] @ torch.cat([one, hidden[0]]))
        scores.append(torch.tanh(parts["out_conv.2.weight"] @ inner))
    return torch.cat(scores)


def test_evaluation_takes_the_best_patches_in_their_order():
    module, tokens = selection().eval(), torch.randn(3, 6, 8)
    found = module(tokens)
    for n, frame in enumerate(tokens):
        scores = slow_scores(module, frame)
        torch.testing.assert_close(module.score_predictor(tokens)[n], scores)
        best = sorted(sorted(range(1, 6), key=lambda d: -scores[d].item())[:2])
        torch.testing.assert_close(found[n], torch.stack([frame[0], *(frame[d] for d in best)]))
    assert torch.equal(found, module(tokens))


def test_training_mixes_patches_and_teaches_the_scores():
    module, tokens = selection(), torch.randn(3, 6, 8)
    torch.manual_seed(5)
    noise = torch.randn(3, 30, 5)
    torch.manual_seed(5)
    found = module.train()(tokens)
    for n, frame in enumerate(tokens):
        scores = slow_scores(module, frame)[1:]
        mixed = torch.zeros(2, 8)
        for z in noise[n]:
            for k, d in enumerate(sorted((scores + 0.05 * z).topk(2).indices.tolist())):
                mixed[k] += frame[1 + d] / 30
        torch.testing.assert_close(found[n], torch.cat([frame[:1], mixed]))
    found.square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in module.parameters())


def test_the_released_evaluation_is_noisy_and_the_default_is_not():
    tokens = torch.randn(3, 6, 8)
    noisy, plain = selection(noisy=True).eval(), selection().eval()
    assert not torch.equal(noisy(tokens), noisy(tokens))
    assert torch.equal(plain(tokens), plain(tokens))


def test_the_published_number_of_parameters():
    assert sum(p.numel() for p in TokenSelection(512).parameters()) == 2 * 512 + 2 * 512 * 256 + 256
