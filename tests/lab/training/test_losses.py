"""Losses against loops over all pairs, and their gradients against finite differences."""

import math

import pytest

torch = pytest.importorskip("torch")

from wordreel.lab.training.losses.distillation import DistillationLoss  # noqa: E402
from wordreel.lab.training.losses.dual_softmax import DualSoftmaxLoss  # noqa: E402
from wordreel.lab.training.losses.info_nce import InfoNCELoss  # noqa: E402
from wordreel.lab.training.losses.masks import same_video  # noqa: E402
from wordreel.lab.training.losses.max_margin import MaxMarginLoss  # noqa: E402

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
    loss = MaxMarginLoss(0.3, diagonal)(s, same)
    assert float(loss) == pytest.approx(slow_max_margin(s, 0.3, diagonal, same), abs=1e-12)


def test_the_diagonal_adds_its_share_of_the_margin():
    s, n = sims(), 6
    without, with_it = float(MaxMarginLoss(0.3)(s)), float(MaxMarginLoss(0.3, True)(s))
    assert with_it == pytest.approx(without * (n - 1) / n + 0.3 / n, abs=1e-12)


@pytest.mark.parametrize("same", SAME, ids=["count", "leave out"])
def test_info_nce(same):
    s = sims()
    slow = (slow_cross_entropy(s / 0.2, same) + slow_cross_entropy(s.T / 0.2, same)) / 2
    assert float(InfoNCELoss(0.2)(s, same)) == pytest.approx(slow, abs=1e-6)


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
    assert float(DualSoftmaxLoss(0.5, 10.0)(sims(), same)) == pytest.approx(slow, abs=1e-9)


@pytest.mark.parametrize("loss", [MaxMarginLoss(0.31), InfoNCELoss(0.3), DualSoftmaxLoss(0.4, 5.0)])
@pytest.mark.parametrize("same", SAME, ids=["count", "leave out"])
def test_gradients_against_finite_differences(loss, same):
    loss = loss.double()
    assert torch.autograd.gradcheck(lambda x: loss(x, same), sims(seed=4).requires_grad_())


def test_a_learned_temperature_moves_and_stays_below_a_hundred():
    loss = InfoNCELoss(0.5, learned=True)
    loss(sims().float()).backward()
    assert loss.log_scale.grad.abs() > 0
    with torch.no_grad():
        loss.log_scale.fill_(9.0)
    assert float(loss.scale.detach()) == pytest.approx(100.0)
    assert list(InfoNCELoss(0.5).parameters()) == []


def test_distillation_is_huber_to_the_mean_of_the_teachers():
    s, teachers = sims() * 2, torch.stack([sims(seed=1), sims(seed=2), sims(seed=3)])
    slow = 0.0
    for i in range(6):
        for j in range(6):
            gap = abs(float(s[i, j]) - sum(float(t[i, j]) for t in teachers) / 3)
            slow += 0.5 * gap**2 if gap < 1 else gap - 0.5
    assert float(DistillationLoss()(s, teachers)) == pytest.approx(slow / 36)
    assert float(DistillationLoss("l1")(s, teachers)) == pytest.approx(
        float((s - teachers.mean(0)).abs().mean())
    )
    assert float(DistillationLoss("l2")(s, teachers)) == pytest.approx(
        float((s - teachers.mean(0)).square().mean())
    )


@pytest.mark.parametrize("same", SAME, ids=["count", "leave out"])
def test_soft_targets(same):
    s, alike = sims(), sims(seed=1)
    alike = (alike + alike.T) / 2
    found = float(InfoNCELoss(0.5, soft=0.2, soft_temperature=0.3)(s, same, alike))

    def shares(row, i, temperature):
        top = [
            math.exp(float(x) / temperature) if same is None or i == j or OWNERS[i] != OWNERS[j] else 0.0
            for j, x in enumerate(row)
        ]
        return [x / sum(top) for x in top]

    slow = 0.0
    for i in range(6):
        target = [0.2 * share for share in shares(alike[i], i, 0.3)]
        target[i] += 0.8
        for row in (s[i], s[:, i]):
            slow -= sum(t * math.log(p) for t, p in zip(target, shares(row, i, 0.5), strict=True) if t)
    assert found == pytest.approx(slow / 12, rel=1e-6)
    assert float(InfoNCELoss(0.5, soft=0.2)(s, same)) == float(
        InfoNCELoss(0.5)(s, same)
    )  # nothing to compare


@pytest.mark.parametrize("same", SAME, ids=["count", "leave out"])
def test_distillation_of_what_similarities_prefer(same):
    s, teachers = sims(), torch.stack([sims(seed=1), sims(seed=2)])
    found = float(DistillationLoss("kl", temperature=0.4)(s, teachers, same))

    def shares(row, i):
        top = [
            math.exp(float(x) / 0.4) if same is None or i == j or OWNERS[i] != OWNERS[j] else 0.0
            for j, x in enumerate(row)
        ]
        return [x / sum(top) for x in top]

    mean = teachers.mean(dim=0)
    slow = 0.0
    for i in range(6):
        for ours, theirs in ((s[i], mean[i]), (s[:, i], mean[:, i])):
            pairs = zip(shares(theirs, i), shares(ours, i), strict=True)
            slow += sum(t * math.log(t / o) for t, o in pairs if t > 0)
    assert found == pytest.approx(slow / 12, rel=1e-6)
