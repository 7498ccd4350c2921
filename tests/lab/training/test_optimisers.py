"""Optimisers against their formulas, one number at a time; schedules at their corners."""

import math
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tests.lab.training.toys import toy_recipe  # noqa: E402

from wordreel.lab.training.optimisers import (  # noqa: E402
    BertAdam,
    build_optimiser,
    lr_factor,
    parameter_groups,
)
from wordreel.lab.training.settings import OptimiserSettings, ScheduleSettings  # noqa: E402

STEPS = 20
RATES = [0.1 * 0.95**t for t in range(STEPS)]


def gradients():
    made = torch.Generator().manual_seed(0)
    return [torch.randn(3, generator=made, dtype=torch.float64) for _ in range(STEPS)]


def slow_radam(start, rates, betas, eps, decay, strict, every=0, share=0.5):
    """Lists of numbers after every step, straight from the papers."""
    b1, b2 = betas
    p, m, v = list(start), [0.0] * 3, [0.0] * 3
    slow, path = list(start), []
    longest = 2 / (1 - b2) - 1
    for t, (grad, rate) in enumerate(zip(gradients(), rates, strict=True), 1):
        length = longest - 2 * t * b2**t / (1 - b2**t)
        for i in range(3):
            g = float(grad[i])
            m[i] = b1 * m[i] + (1 - b1) * g
            v[i] = b2 * v[i] + (1 - b2) * g * g
            p[i] -= rate * decay * p[i]
            corrected = m[i] / (1 - b1**t)
            if length > 5 or (length == 5 and not strict):
                r = math.sqrt(
                    (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
                )
                p[i] -= rate * r * math.sqrt(1 - b2**t) * corrected / (math.sqrt(v[i]) + eps)
            else:
                p[i] -= rate * corrected
        if every and t % every == 0:
            slow = [s + share * (x - s) for s, x in zip(slow, p, strict=True)]
            p = list(slow)
        path.append(list(p))
    return path


def followed(make):
    p = torch.nn.Parameter(torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64))
    optimiser = make([p])
    path = []
    for grad, rate in zip(gradients(), RATES, strict=True):
        optimiser.param_groups[0]["lr"] = rate
        p.grad = grad.clone()
        optimiser.step()
        path.append(p.detach().tolist())
    return path


def test_radam_follows_its_formula():
    settings = OptimiserSettings("radam", 0.1, 0.01)
    path = followed(lambda ps: build_optimiser(settings, torch.nn.ParameterList(ps)))
    slow = slow_radam([0.5, -1.0, 2.0], RATES, (0.9, 0.999), 1e-8, 0.01, strict=False)
    assert torch.allclose(torch.tensor(path), torch.tensor(slow), atol=1e-6)


def test_ranger_is_radam_with_lookahead_every_six_steps():
    settings = OptimiserSettings("ranger", 0.1, 0.01)
    path = followed(lambda ps: build_optimiser(settings, torch.nn.ParameterList(ps)))
    slow = slow_radam([0.5, -1.0, 2.0], RATES, (0.95, 0.999), 1e-5, 0.01, strict=True, every=6)
    plain = slow_radam([0.5, -1.0, 2.0], RATES, (0.95, 0.999), 1e-5, 0.01, strict=True)
    assert torch.allclose(torch.tensor(path), torch.tensor(slow), atol=1e-6)
    assert path[4] == pytest.approx(plain[4], abs=1e-6)
    assert path[5] != pytest.approx(plain[5], abs=1e-3)


def test_text_networks_may_have_a_rate_of_their_own():
    from wordreel.lab.models.build import build

    module = build(toy_recipe("mmt").model)
    groups = parameter_groups(OptimiserSettings(lr=1e-3, text_lr=1e-5), module)
    assert [group["lr"] for group in groups] == [1e-3, 1e-5]
    counted = sum(p.numel() for group in groups for p in group["params"])
    assert counted == sum(p.numel() for p in module.parameters() if p.requires_grad)
    one = build_optimiser(OptimiserSettings("adamw", 1e-3), module)
    assert len(one.param_groups) == 1


def test_weight_decay_may_spare_biases_and_differ_for_text():
    from wordreel.lab.models.build import build

    model = toy_recipe("mmt").model
    module = build(replace(model, text=replace(model.text, frozen_embeddings=True)))
    settings = OptimiserSettings("adamw", 1e-3, 0.1, decay_biases=False, text_lr=1e-5, text_weight_decay=0.01)
    groups = parameter_groups(settings, module)
    of = {id(p): (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]}
    for name, p in module.named_parameters():
        text = name.startswith("caption.words.")
        if not p.requires_grad:
            assert name.startswith(("caption.words.embeddings", "caption.words.pooler", "transformer.pooler"))
            assert id(p) not in of
            continue
        decay = 0.0 if p.ndim <= 1 else 0.01 if text else 0.1
        assert of[id(p)] == (1e-5 if text else 1e-3, decay), name


def test_a_warm_up_may_be_a_share_of_the_run():
    share, steps = ScheduleSettings("cosine", warmup_ratio=0.1), ScheduleSettings("cosine", warmup=6)
    assert [lr_factor(share, s, 60, 10) for s in range(60)] == [
        lr_factor(steps, s, 60, 10) for s in range(60)
    ]
    with pytest.raises(ValueError, match="instead of warmup"):
        ScheduleSettings(warmup=3, warmup_ratio=0.1)


def test_schedules():
    cosine = ScheduleSettings("cosine", floor=0.1)
    assert lr_factor(cosine, 0, 100, 10) == 1.0
    assert lr_factor(cosine, 50, 100, 10) == pytest.approx(0.55)
    assert lr_factor(cosine, 100, 100, 10) == pytest.approx(0.1)
    step = ScheduleSettings("step", gamma=0.5, every=2)
    assert [lr_factor(step, s, 60, 10) for s in (0, 19, 20, 40)] == [1, 1, 0.5, 0.25]
    assert lr_factor(ScheduleSettings("exponential", gamma=0.5), 5, 60, 10) == pytest.approx(0.5**0.5)
    warm = ScheduleSettings("constant", warmup=4)
    assert [lr_factor(warm, s, 60, 10) for s in range(6)] == [0.25, 0.5, 0.75, 1, 1, 1]


@pytest.mark.parametrize("clip_each", [0.0, 1.0])
def test_bert_adam_is_its_formula(clip_each):
    p = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))
    want, m, v = p.tolist(), [0.0] * 3, [0.0] * 3
    optimiser = BertAdam([p], lr=0.1, weight_decay=0.2, clip_each=clip_each)
    for grad, rate in zip(gradients(), RATES, strict=True):
        optimiser.param_groups[0]["lr"] = rate
        p.grad = grad.clone()
        optimiser.step()
        scale = min(1.0, clip_each / (float(grad.norm()) + 1e-6)) if clip_each else 1.0
        for i in range(3):
            g = float(grad[i]) * scale
            m[i] = 0.9 * m[i] + 0.1 * g
            v[i] = 0.98 * v[i] + 0.02 * g * g
            want[i] -= rate * (m[i] / (math.sqrt(v[i]) + 1e-6) + 0.2 * want[i])
        assert p.tolist() == pytest.approx(want, rel=1e-12)


def test_the_published_warm_up_begins_at_zero_and_ends_with_a_jump():
    settings = ScheduleSettings("bert-cosine", warmup_ratio=0.1)
    factors = [lr_factor(settings, step, 1000, 100) for step in range(1000)]
    assert factors[0] == 0.0
    assert factors[99] == pytest.approx(0.99)
    assert factors[100] == pytest.approx(0.5 * (1 + math.cos(0.1 * math.pi)))
    assert round(factors[100], 3) == 0.976
    assert factors[-1] < 1e-5
