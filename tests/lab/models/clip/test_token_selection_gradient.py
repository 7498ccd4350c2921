"""Perturbed top-k against loops over samples with the same noise, and against the derivative itself."""

import pytest

torch = pytest.importorskip("torch")

from wordreel.lab.models.clip.token_selection import hard_topk, perturbed_topk  # noqa: E402


def slow_rows(scores, k):
    """The one-hot rows of the k largest scores, by ascending index."""
    largest = sorted(range(len(scores)), key=lambda d: (-float(scores[d]), d))[:k]
    rows = torch.zeros(k, len(scores), dtype=scores.dtype)
    for row, d in enumerate(sorted(largest)):
        rows[row, d] = 1
    return rows


def case(n=3, samples=40, d=6):
    torch.manual_seed(1)
    scores = torch.rand(n, d, dtype=torch.double) / 4
    return scores, torch.randn(n, samples, d, dtype=torch.double), torch.randn(n, 2, d, dtype=torch.double)


def test_indicators_are_the_mean_over_samples():
    scores, noise, _ = case()
    for n, found in enumerate(perturbed_topk(scores, 2, 0.1, noise=noise)):
        slow = torch.stack([slow_rows(scores[n] + 0.1 * z, 2) for z in noise[n]]).mean(0)
        torch.testing.assert_close(found, slow)


@pytest.mark.parametrize("gradient", ["full", "diagonal"])
def test_gradients_are_the_formula_with_the_same_noise(gradient):
    scores, noise, grad = case()
    given = scores.clone().requires_grad_()
    (perturbed_topk(given, 2, 0.1, noise=noise, gradient=gradient) * grad).sum().backward()
    for n in range(len(scores)):
        rows = [slow_rows(scores[n] + 0.1 * z, 2) for z in noise[n]]
        mean = sum(float((grad[n] * y).sum()) for y in rows) / len(rows)
        total = torch.zeros_like(scores[n])
        for y, z in zip(rows, noise[n], strict=True):
            for d in range(len(z)):
                if gradient == "full":
                    total[d] += (float((grad[n] * y).sum()) - mean) * z[d]
                else:
                    total[d] += sum(grad[n, k, d] * y[k, d] for k in range(2)) * z[d]
        torch.testing.assert_close(given.grad[n], total / len(rows) / 0.1)


def test_the_full_gradient_is_the_derivative_of_the_expectation():
    """Central differences with common noise; the diagonal alone is not that derivative."""
    torch.manual_seed(3)
    scores, grad = torch.tensor([[0.10, 0.12, 0.02, 0.09]], dtype=torch.double), torch.randn(1, 2, 4).double()
    noise = torch.randn(1, 400_000, 4, dtype=torch.double)

    def value(x):
        return float((perturbed_topk(x, 2, 0.05, noise=noise) * grad).sum())

    step = 0.005
    slope = [
        (value(scores + step * e) - value(scores - step * e)) / (2 * step) for e in torch.eye(4).double()
    ]
    found = {}
    for gradient in ("full", "diagonal"):
        given = scores.clone().requires_grad_()
        (perturbed_topk(given, 2, 0.05, noise=noise, gradient=gradient) * grad).sum().backward()
        found[gradient] = given.grad[0]
    wanted = torch.tensor(slope, dtype=torch.double)
    assert (found["full"] - wanted).abs().max() < 0.05 * wanted.abs().max()
    assert (found["diagonal"] - wanted).abs().max() > 0.2 * wanted.abs().max()


def test_hard_topk_is_the_limit_without_noise():
    scores, noise, _ = case()
    torch.testing.assert_close(hard_topk(scores, 2), torch.stack([slow_rows(row, 2) for row in scores]))
    torch.testing.assert_close(perturbed_topk(scores, 2, 1e-9, noise=noise), hard_topk(scores, 2))


def test_of_equal_scores_the_first_win():
    assert hard_topk(torch.tensor([[1.0, 2.0, 1.0, 1.0]]), 2).argmax(-1).tolist() == [[0, 1]]
