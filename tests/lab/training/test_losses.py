"""Losses against loops over all pairs, and their gradients against finite differences."""

import math

import pytest

torch = pytest.importorskip("torch")

from wordreel.lab.training.losses import (  # noqa: E402
    build_distillation,
    build_loss,
    dual_softmax,
    info_nce,
    max_margin,
    same_video,
)
from wordreel.lab.training.settings import LossSettings, TeachSettings  # noqa: E402

torch.set_num_threads(1)


def sims(n=6, seed=0):
    return torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


OWNERS = torch.tensor([0, 1, 1, 2, 3, 1])
SAME = [None, same_video(OWNERS)]


def slow_max_margin(s, margin, diagonal, same):
    terms = []
    for i in range(len(s)):
        for j in range(len(s)):
            if i == j and not diagonal:
                continue
            if i != j and same is not None and OWNERS[i] == OWNERS[j]:
                continue
            terms.append(max(0.0, margin + float(s[i, j]) - float(s[i, i])))
            terms.append(max(0.0, margin + float(s[j, i]) - float(s[i, i])))
    return sum(terms) / len(terms)


def slow_cross_entropy(rows, same):
    total = 0.0
    for i in range(len(rows)):
        kept = [j for j in range(len(rows)) if j == i or same is None or OWNERS[i] != OWNERS[j]]
        bottom = sum(math.exp(float(rows[i][j])) for j in kept)
        total -= float(rows[i][i]) - math.log(bottom)
    return total / len(rows)


@pytest.mark.parametrize("same", SAME, ids=["count", "leave out"])
@pytest.mark.parametrize("diagonal", [False, True])
def test_max_margin(diagonal, same):
    s = sims()
    loss = max_margin(s, same, 0.3, diagonal)
    assert float(loss) == pytest.approx(slow_max_margin(s, 0.3, diagonal, same), abs=1e-12)


def test_the_diagonal_adds_its_share_of_the_margin():
    s, n = sims(), 6
    without, with_it = float(max_margin(s, margin=0.3)), float(max_margin(s, margin=0.3, diagonal=True))
    assert with_it == pytest.approx(without * (n - 1) / n + 0.3 / n, abs=1e-12)


@pytest.mark.parametrize("same", SAME, ids=["count", "leave out"])
def test_info_nce(same):
    s = sims()
    slow = (slow_cross_entropy(s / 0.2, same) + slow_cross_entropy(s.T / 0.2, same)) / 2
    assert float(info_nce(s, same, 0.2)) == pytest.approx(slow, abs=1e-6)


@pytest.mark.parametrize("same", SAME, ids=["count", "leave out"])
def test_dual_softmax(same):
    s = sims() / 0.5
    n = len(s)

    def weighed(m):
        made = torch.zeros_like(m)
        for j in range(n):
            kept = [i for i in range(n) if i == j or same is None or OWNERS[i] != OWNERS[j]]
            bottom = sum(math.exp(float(m[i, j]) / 10) for i in kept)
            for i in kept:
                made[i, j] = m[i, j] * math.exp(float(m[i, j]) / 10) / bottom * n
        return made

    slow = (slow_cross_entropy(weighed(s), same) + slow_cross_entropy(weighed(s.T), same)) / 2
    assert float(dual_softmax(sims(), same, 0.5, 10.0)) == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        LossSettings(margin=0.31),
        LossSettings("info-nce", temperature=0.3),
        LossSettings("dual-softmax", temperature=0.4, prior_temperature=5.0),
    ],
)
@pytest.mark.parametrize("same", SAME, ids=["count", "leave out"])
def test_gradients_against_finite_differences(settings, same):
    loss = build_loss(settings)
    assert torch.autograd.gradcheck(lambda x: loss(x, same), sims(seed=4).requires_grad_())


def test_distillation_is_huber_to_the_mean_of_the_teachers():
    s, teachers = sims() * 2, torch.stack([sims(seed=1), sims(seed=2), sims(seed=3)])
    slow = 0.0
    for i in range(6):
        for j in range(6):
            gap = abs(float(s[i, j]) - sum(float(t[i, j]) for t in teachers) / 3)
            slow += 0.5 * gap**2 if gap < 1 else gap - 0.5
    assert float(build_distillation(TeachSettings())(s, teachers)) == pytest.approx(slow / 36)
    assert float(build_distillation(TeachSettings(kind="l1"))(s, teachers)) == pytest.approx(
        float((s - teachers.mean(0)).abs().mean())
    )
    assert float(build_distillation(TeachSettings(kind="l2"))(s, teachers)) == pytest.approx(
        float((s - teachers.mean(0)).square().mean())
    )
