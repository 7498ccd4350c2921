"""The multi-modal transformer token by token, and COLL pair by pair."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tests.lab.models import twins  # noqa: E402
from tests.lab.models.small import CONFIGS, MMT_SMALL, model, text_batch, video_batch  # noqa: E402
from torch.nn.functional import normalize  # noqa: E402

from wordreel.lab.models.batch import ExpertFeatures  # noqa: E402
from wordreel.lab.models.mmt import shuffled, time_positions  # noqa: E402


def slow_layer(layer, x, heads):
    width = x.shape[1] // heads
    attention = layer.attention.self
    q, k, v = attention.query(x), attention.key(x), attention.value(x)
    mixed = []
    for head in range(heads):
        at = slice(head * width, (head + 1) * width)
        mixed.append((q[:, at] @ k[:, at].T / width**0.5).softmax(1) @ v[:, at])
    x = layer.attention.output.LayerNorm(x + layer.attention.output.dense(torch.cat(mixed, 1)))
    wide = layer.intermediate.dense(x)
    wide = wide * 0.5 * (1 + torch.erf(wide / 2**0.5))
    return layer.output.LayerNorm(x + layer.output.dense(wide))


def slow_videos(module, video):
    """One video at a time, only real tokens in the sequence, each put together by hand.

    The token of a missing expert is a query that nobody else may look at, so it is run beside the others.
    """
    config = module.settings
    tables = module.transformer
    released = config.mode == "released"
    made = []
    for b in range(len(next(iter(video.values())).mask)):
        tokens, answers, lonely = [], {}, {}

        def token(feature, row, second):
            x = feature + tables.token_type_embeddings.weight[row] + tables.position_embeddings.weight[second]
            return tables.LayerNorm(x)

        if released:
            tokens.append(token(torch.zeros(config.dim), 0, 0))
        for number, expert in enumerate(config.experts):
            mask = video[expert.name].mask[b]
            rows, times = video[expert.name].values[b][mask], video[expert.name].times[b][mask]
            project = module.project[number]
            if not len(rows):
                start = normalize(project.bias, dim=0) if released else torch.zeros(config.dim)
                lonely[number] = token(start * (config.aggregate != "zero"), expert.type_id, 0)
                continue
            pooled = rows.mean(0) if config.aggregate == "mean" else rows.max(0).values
            start = normalize(project(pooled), dim=0) * (config.aggregate != "zero")
            answers[number] = len(tokens)
            tokens.append(token(start, expert.type_id, 0))
            if config.inputs == "pooled":
                continue
            for row, time in zip(rows, times, strict=True):
                second = 1 if torch.isnan(time) else min(2 + int(time), config.positions - 1)
                tokens.append(token(normalize(project(row), dim=0), expert.type_id, second))
        out = []
        x = torch.stack(tokens)
        states = [x]
        for layer in tables.encoder.layer:
            states.append(slow_layer(layer, states[-1], config.heads))
        for number in range(len(config.experts)):
            if number in answers:
                out.append(states[-1][answers[number]])
                continue
            alone = lonely[number]
            for layer, seen in zip(tables.encoder.layer, states, strict=False):
                alone = lonely_layer(layer, alone, seen, config.heads)
            out.append(alone)
        made.append(torch.stack(out))
    return normalize(torch.stack(made), dim=-1)


def lonely_layer(layer, x, others, heads):
    """A token that sees the others and is not seen."""
    width = len(x) // heads
    attention = layer.attention.self
    q, k, v = attention.query(x), attention.key(others), attention.value(others)
    mixed = []
    for head in range(heads):
        at = slice(head * width, (head + 1) * width)
        mixed.append((k[:, at] @ q[at] / width**0.5).softmax(0) @ v[:, at])
    x = layer.attention.output.LayerNorm(x + layer.attention.output.dense(torch.cat(mixed)))
    wide = layer.intermediate.dense(x)
    wide = wide * 0.5 * (1 + torch.erf(wide / 2**0.5))
    return layer.output.LayerNorm(x + layer.output.dense(wide))


@pytest.mark.parametrize("mode", ["paper", "released"])
@pytest.mark.parametrize("name", ["mmt", "mmt mean", "mmt zero", "mmt pooled"])
@torch.no_grad()
def test_videos_are_those_of_tokens_put_together_by_hand(mode, name):
    config = replace(CONFIGS[name], mode=mode)
    module, video = twins.stir(model(config)), video_batch(config)
    found = module.embed_videos(video)
    assert found.available.all()  # missing experts keep their weight
    torch.testing.assert_close(found.vectors, slow_videos(module, video), rtol=1e-4, atol=1e-5)


def test_seconds_stand_two_rows_further():
    mask = torch.tensor([[True, True, True, True, False]])
    times = torch.tensor([[0.0, 7.4, 500.0, torch.nan, 2.0]])
    features = ExpertFeatures(torch.zeros(1, 5, 1), mask, times)
    assert time_positions(features, 32).tolist() == [[2, 9, 31, 1, 1]]
    assert time_positions(features, 32, timed=False).tolist() == [[1] * 5]
    assert time_positions(features._replace(times=None), 32).tolist() == [[1] * 5]


@torch.no_grad()
def test_the_order_of_the_experts_does_not_matter():
    module, video = model(MMT_SMALL), video_batch(MMT_SMALL)
    order = [2, 0, 3, 1]
    turned = model(replace(MMT_SMALL, experts=tuple(MMT_SMALL.experts[i] for i in order)))
    state = module.state_dict()
    for new, old in enumerate(order):
        for part in ("weight", "bias"):
            state[f"project.{new}.{part}"] = module.state_dict()[f"project.{old}.{part}"]
    turned.load_state_dict(state)
    first, second = module.embed_videos(video), turned.embed_videos(video)
    torch.testing.assert_close(second.vectors, first.vectors[:, order], rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_times_matter_when_ordered_and_not_when_pooled():
    for name, heard in (("mmt", True), ("mmt pooled", False)):
        module, video = twins.stir(model(CONFIGS[name])), video_batch(CONFIGS[name])
        later = {key: features._replace(times=features.times + 3) for key, features in video.items()}
        change = (module.embed_videos(later).vectors - module.embed_videos(video).vectors).abs().max()
        assert bool(change > 1e-4) is heard


def test_shuffling_swaps_times_among_real_rows():
    places = torch.arange(12).reshape(2, 6) + 2
    mask = torch.tensor([[True] * 6, [True, False, True, True, False, False]])
    places = places.where(mask, 1)
    for training in (False, True):
        found = shuffled(places, mask, training)
        assert (found[~mask] == 1).all()
        for b in range(2):
            assert sorted(found[b][mask[b]].tolist()) == places[b][mask[b]].tolist()
    fixed = shuffled(places, mask, False)
    assert torch.equal(fixed, shuffled(places, mask, False))
    assert not torch.equal(fixed[0], places[0])


@torch.no_grad()
def test_rows_that_were_left_out_still_count_in_the_pool():
    module, video = model(CONFIGS["none"]), video_batch(CONFIGS["none"], missing=0)
    cut = {
        name: ExpertFeatures(f.values[:, :1], f.mask[:, :1], f.times[:, :1],
                       torch.where(f.mask[:, :, None], f.values, -torch.inf).amax(1))
        for name, f in video.items()
    }  # fmt: skip
    torch.testing.assert_close(module.embed_videos(cut).vectors, module.embed_videos(video).vectors)


@torch.no_grad()
def test_coll_pair_by_pair():
    config = CONFIGS["coll"]
    module, video = twins.stir(model(config)), video_batch(config)
    found, pairs = module.embed_videos(video), module.pairs
    present = torch.stack([video[expert.name].mask.any(1) for expert in config.experts], 1)
    for b in range(5):
        x = []
        for number, expert in enumerate(config.experts):
            rows = video[expert.name].values[b][video[expert.name].mask[b]]
            known = normalize(module.project[number](rows.max(0).values), dim=0) if len(rows) else None
            x.append(torch.zeros(config.dim) if known is None else known)
        for i in range(4):
            if not present[b, i]:
                assert not found.available[b, i]
                continue
            total, count = torch.zeros(config.dim), 0
            for j in range(4):
                if j != i and present[b, j]:
                    total = total + pairs.g2(pairs.g1(torch.cat((x[i], x[j]))).relu())
                    count += 1
            attention = pairs.f2(pairs.f1(total / (count + 1e-11)).relu())
            plain = pairs.gates.weight[i] @ x[i] + pairs.gates.bias[i]
            gate = pairs.attention_norms.one(i, attention[None])[0] + pairs.gates.norms.one(i, plain[None])[0]
            wanted = normalize(x[i] * gate.sigmoid(), dim=0)
            torch.testing.assert_close(found.vectors[b, i], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("encoder", "mode", "kept"),
    [("mmt", "paper", True), ("coll", "paper", False), ("none", "paper", False), ("none", "released", True)],
)
@torch.no_grad()
def test_who_keeps_the_weight_of_missing_experts(encoder, mode, kept):
    config = replace(MMT_SMALL, encoder=encoder, mode=mode)
    found = model(config).embed_videos(video_batch(config))
    assert bool(found.available.all()) is kept


@torch.no_grad()
def test_mixture_weights_are_a_softmax_of_one_linear_layer_each():
    module, text = model(MMT_SMALL), text_batch(MMT_SMALL)
    h = module.caption(*text)
    scores = torch.stack([h @ module.mixture.weight[m] + module.mixture.bias[m] for m in range(4)], 1)
    torch.testing.assert_close(module.embed_queries(text).weights, scores.softmax(1))
