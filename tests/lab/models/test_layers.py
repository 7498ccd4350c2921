"""Layers against their formulas in loops, and their gradients against finite differences."""

import pytest

torch = pytest.importorskip("torch")

from tests.lab.models import twins  # noqa: E402
from torch import nn  # noqa: E402

from wordreel.lab.models.layers.expert_pooling import NetVLAD  # noqa: E402
from wordreel.lab.models.layers.gating import (  # noqa: E402
    CollaborativeGating,
    ContextGating,
    GatedEmbedding,
    GatedEmbeddings,
    GatedPairs,
)
from wordreel.lab.models.layers.norm import BatchNorm, ExpertNorm  # noqa: E402
from wordreel.lab.models.layers.transformer import SelfAttention, TransformerEncoder  # noqa: E402

torch.set_num_threads(1)  # tiny products: threads only get in each other's way


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def vlads(ghosts):
    ours, slow = NetVLAD(5, 3, ghosts), twins.stir(twins.Vlad(5, 3, ghosts))
    with torch.no_grad():
        ours.clusters.copy_(slow.clusters)
        ours.centres.copy_(slow.clusters2[0])
        ours.norm.load_state_dict(slow.batch_norm.state_dict())
    return ours.eval(), slow


@pytest.mark.parametrize("ghosts", [0, 2])
def test_netvlad_is_its_formula(ghosts):
    ours, slow = vlads(ghosts)
    x = torch.randn(4, 6, 5)
    torch.testing.assert_close(ours(x), slow(x))


@pytest.mark.parametrize("ghosts", [0, 2])
def test_netvlad_with_a_mask_sees_only_real_rows(ghosts):
    ours, slow = vlads(ghosts)
    x, mask = torch.randn(3, 6, 5), torch.arange(6) < torch.tensor([[6], [2], [4]])
    alone = torch.cat([slow(x[i : i + 1, :n]) for i, n in enumerate((6, 2, 4))])
    x[~mask] = torch.nan  # padding may hold anything
    torch.testing.assert_close(ours(x, mask), alone)


def test_netvlad_of_nothing_is_zero():
    ours, _ = vlads(1)
    assert not ours(torch.randn(1, 4, 5), torch.zeros(1, 4, dtype=torch.bool)).any()


def test_masked_norm_is_batch_norm_over_the_real_rows():
    ours, plain = BatchNorm(4), nn.BatchNorm1d(4)
    for _ in range(3):
        x, mask = torch.randn(5, 7, 4) * 3 + 1, torch.rand(5, 7) > 0.4
        torch.testing.assert_close(ours(x, mask)[mask], plain(x[mask]))
    torch.testing.assert_close(ours.state_dict(), plain.state_dict())


def test_masked_norm_leaves_its_memory_alone_when_there_is_nothing_to_learn_from():
    ours = BatchNorm(4)
    before = {key: value.clone() for key, value in ours.state_dict().items()}
    for mask in (torch.zeros(5, dtype=torch.bool), torch.arange(5) == 2):
        assert torch.isfinite(ours(torch.randn(5, 4), mask)).all()
    torch.testing.assert_close(ours.running_var, before["running_var"])
    torch.testing.assert_close(ours.running_mean, before["running_mean"])


def test_norm_of_each_is_one_call_after_the_other():
    ours, plain = BatchNorm(4), nn.BatchNorm1d(4)
    for _ in range(2):
        x = torch.randn(6, 5, 4)
        torch.testing.assert_close(ours.each(x), torch.stack([plain(x[:, k]) for k in range(5)], 1))
    torch.testing.assert_close(ours.state_dict(), plain.state_dict())


def test_norm_of_experts_is_one_norm_per_expert():
    ours, plain = ExpertNorm(3, 4), [nn.BatchNorm1d(4) for _ in range(3)]
    available = torch.tensor([[1, 0, 1], [1, 1, 1], [1, 1, 0], [1, 1, 1]], dtype=torch.bool)
    for masked in (False, True, False):
        x = torch.randn(4, 3, 4)
        made = ours(x, available if masked else None)
        for m in range(3):
            kept = available[:, m] if masked else torch.ones(4, dtype=torch.bool)
            torch.testing.assert_close(made[kept, m], plain[m](x[kept, m]))
    one = torch.randn(4, 4)
    torch.testing.assert_close(ours.one(1, one), plain[1](one))
    torch.testing.assert_close(ours.running_mean, torch.cat([norm.running_mean for norm in plain]))
    torch.testing.assert_close(ours.running_var, torch.cat([norm.running_var for norm in plain]))


def test_joined_units_are_single_units():
    joined, single = GatedEmbeddings(6, 3, 4), [GatedEmbedding(6, 4) for _ in range(3)]
    with torch.no_grad():
        joined.fc.weight.copy_(torch.cat([unit.fc.weight for unit in single]))
        joined.fc.bias.copy_(torch.cat([unit.fc.bias for unit in single]))
        joined.gates.weight.copy_(torch.stack([unit.gate.fc.weight for unit in single]))
        joined.gates.bias.copy_(torch.stack([unit.gate.fc.bias for unit in single]))
    x = torch.randn(5, 6)
    torch.testing.assert_close(joined(x), torch.stack([unit(x) for unit in single], 1))


def slow_gating(layer, x, available, with_self, mean):
    """Equations (1) and (2) pair by pair, nothing changed in place; only for evaluation."""
    rows = []
    for b in range(len(x)):
        for i in range(x.shape[1]):
            total, count = torch.zeros(x.shape[2]), 0
            for j in range(x.shape[1]):
                if (i != j or with_self) and available[b, i] and available[b, j]:
                    seen = layer.first(torch.cat((x[b, i], x[b, j])))
                    for norm, linear in zip(layer.g.norms, layer.g.linears, strict=True):
                        seen = linear(nn.functional.mish(norm(seen[None])[0]))
                    total, count = total + seen, count + 1
            if mean:
                total = total / (count + 1e-11)
            plain = layer.gates.weight[i] @ x[b, i] + layer.gates.bias[i]
            gate = layer.attention_norms.one(i, total[None])[0] + layer.gates.norms.one(i, plain[None])[0]
            rows.append(nn.functional.normalize(x[b, i] * gate.sigmoid(), dim=0))
    return torch.stack(rows).reshape(x.shape)


@pytest.mark.parametrize("with_self", [False, True])
@pytest.mark.parametrize("pairs", ["sum", "mean"])
def test_gating_at_once_is_its_equation(with_self, pairs):
    layer = twins.stir(CollaborativeGating(4, 5, with_self=with_self, pairs=pairs))
    x, available = torch.randn(3, 4, 5), torch.rand(3, 4) > 0.3
    torch.testing.assert_close(
        layer(x, available), slow_gating(layer, x, available, with_self, pairs == "mean")
    )


def test_gating_at_once_ignores_the_order_and_in_place_does_not():
    x, available, order = torch.randn(3, 4, 5), torch.ones(3, 4, dtype=torch.bool), [2, 0, 3, 1]
    for sequential in (False, True):
        layer = CollaborativeGating(4, 5, sequential=sequential).eval()
        with torch.no_grad():  # gates alike for all experts, so that only the pairs can tell the order
            layer.gates.weight.copy_(layer.gates.weight[:1].expand(4, -1, -1).clone())
            layer.gates.bias.copy_(layer.gates.bias[:1].expand(4, -1).clone())
        same = torch.allclose(layer(x, available)[:, order], layer(x[:, order], available), atol=1e-6)
        assert same is not sequential


def test_three_products_at_once_are_three_products():
    layer, x = SelfAttention(12, 3, 0.0), torch.randn(2, 5, 12, requires_grad=True)
    both = [torch.cat(parts, dim=-1) for parts in (layer.at_once(x), layer.one_by_one(x))]
    assert torch.allclose(*both, atol=1e-6)
    asked = [x, *layer.parameters()]
    one, other = (torch.autograd.grad((y * torch.arange(36)).sum(), asked) for y in both)
    assert all(torch.allclose(a, b, atol=1e-4) for a, b in zip(one, other, strict=True))


def test_attention_ignores_what_is_masked():
    layer = TransformerEncoder(2, 8, 2, 16, 0.1).eval()
    x, mask = torch.randn(2, 6, 8), torch.arange(6) < torch.tensor([[4], [6]])
    other = torch.where(mask[:, :, None], x, 1000 * torch.randn(2, 6, 8))
    torch.testing.assert_close(layer(x, mask)[mask], layer(other, mask)[mask])
    torch.testing.assert_close(layer(x, mask)[0, :4], layer(x[:1, :4], mask[:1, :4])[0], rtol=1e-5, atol=1e-6)


MASK = torch.tensor([[True, True, False], [True, False, True], [True, True, True]])
X = torch.randn(3, 3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize(
    ("layer", "call"),
    [
        (NetVLAD(4, 2, 1), lambda layer, x: layer(x, MASK)),
        (ContextGating(4), lambda layer, x: layer(x[:, 0])),
        (GatedEmbeddings(4, 2, 3), lambda layer, x: layer(x[:, 0])),
        (CollaborativeGating(3, 4), lambda layer, x: layer(x, MASK)),
        (
            CollaborativeGating(3, 4, sequential=True, with_self=True, pairs="mean", masked_norm=False),
            lambda layer, x: layer(x, MASK),
        ),
        (GatedPairs(3, 4, 0.0), lambda layer, x: layer(x, MASK)),
        (TransformerEncoder(1, 4, 2, 6, 0.0), lambda layer, x: layer(x, MASK)),
    ],
    ids=["netvlad", "context", "units", "at once", "in place", "pairs", "attention"],
)
@pytest.mark.parametrize("training", [True, False])
def test_gradients_are_those_of_finite_differences(layer, call, training):
    layer = layer.double().train(training)
    x = X.clone().requires_grad_()
    wanted = [p for p in layer.parameters() if p.requires_grad]

    def run(x, *parameters):
        names = [name for name, p in layer.named_parameters() if p.requires_grad]
        kept = {name: value.clone() for name, value in layer.named_buffers()}  # running statistics stay put
        return torch.func.functional_call(
            Caller(layer, call), {f"layer.{n}": p for n, p in zip(names, parameters, strict=True)}
            | {f"layer.{n}": b for n, b in kept.items()}, (x,)
        )  # fmt: skip

    assert torch.autograd.gradcheck(run, (x, *wanted), atol=1e-4, rtol=1e-3, fast_mode=True)


class Caller(nn.Module):
    def __init__(self, layer, call):
        super().__init__()
        self.layer, self.call = layer, call

    def forward(self, x):
        return self.call(self.layer, x)
