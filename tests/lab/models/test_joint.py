"""What must hold of every trainable model: no leaks between videos, captions, experts and padding."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.small import CONFIGS, EXPERTS, TEXT, longer, model, pick, text_batch, video_batch  # noqa: E402

from wordreel.lab.models.batch import ExpertFeatures, QueryEmbeddings, TokenBatch, VideoEmbeddings, similarity  # noqa: E402
from wordreel.lab.models.config import CEConfig, ConcatConfig, MoEEConfig  # noqa: E402
from wordreel.models.similarity import mixture  # noqa: E402

every = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
close = {"rtol": 1e-4, "atol": 1e-5}


def same(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, **close)


def test_similarity_is_the_one_of_the_index():
    torch.manual_seed(0)
    queries = QueryEmbeddings(torch.randn(6, 4, 5), torch.rand(6, 4) * (torch.rand(6, 4) > 0.2))
    videos = VideoEmbeddings(torch.randn(7, 4, 5), torch.rand(7, 4) > 0.4)
    videos.available[3] = False
    found = similarity(queries, videos)
    np.testing.assert_allclose(found, mixture(*(part.numpy() for part in (*queries, *videos))), atol=1e-6)
    slow = torch.zeros(6, 7)
    for q in range(6):
        for v in range(7):
            top = bottom = 0.0
            for m in range(4):
                if videos.available[v, m]:
                    top += queries.weights[q, m] * (queries.vectors[q, m] @ videos.vectors[v, m])
                    bottom += queries.weights[q, m]
            slow[q, v] = top / bottom if bottom > 0 else 0.0
    torch.testing.assert_close(found, slow, **close)


def test_similarity_has_gradients_even_where_nothing_is_available():
    queries = QueryEmbeddings(torch.randn(2, 3, 4, requires_grad=True), torch.rand(2, 3, requires_grad=True))
    videos = VideoEmbeddings(
        torch.randn(2, 3, 4, requires_grad=True), torch.tensor([[False] * 3, [True] * 3])
    )
    similarity(queries, videos).sum().backward()
    assert torch.isfinite(queries.vectors.grad).all()
    assert torch.isfinite(queries.weights.grad).all()
    assert not videos.vectors.grad[0].any()


@every
@torch.no_grad()
def test_shapes_ranges_and_zero_rows(config):
    module, video, text = model(config), video_batch(config), text_batch(config)
    videos, queries = module(video, text)
    assert videos.vectors.shape == (5, len(module.rows), module.dim)
    assert queries.vectors.shape == (4, len(module.rows), module.dim)
    assert videos.available.dtype == torch.bool
    assert not videos.vectors[~videos.available].any()
    torch.testing.assert_close(queries.weights.sum(1), torch.ones(4))
    sims = module.similarities(video, text)
    assert sims.shape == (4, 5)
    assert torch.isfinite(sims).all()
    if not isinstance(config, ConcatConfig):
        torch.testing.assert_close(queries.vectors.norm(dim=-1), torch.ones(4, len(module.rows)))
        assert sims.abs().max() <= 1 + 1e-5


@every
@torch.no_grad()
def test_availability_of_one_video_changes_only_its_own_column(config):
    module, video, text = model(config), video_batch(config, many=4, missing=0), text_batch(config)
    before = module.similarities(video, text)
    changed = dict(video)
    first = changed["face"]
    mask = first.mask.clone()
    mask[2] = False
    changed["face"] = ExpertFeatures(first.values, mask, first.times)
    after = module.similarities(changed, text)
    others = [0, 1, 3]
    torch.testing.assert_close(after[:, others], before[:, others], rtol=0, atol=0)
    assert (after[:, 2] - before[:, 2]).abs().max() > 1e-6


@every
@torch.no_grad()
def test_padding_has_no_influence(config):
    module, video, text = model(config), video_batch(config), text_batch(config)
    cut = replace(
        config, experts=tuple(replace(expert, max_tokens=0) for expert in config.experts)
    )  # more rows than max_tokens would be cut
    wide = model(cut)
    wide.load_state_dict(module.state_dict())
    same(wide.embed_videos(longer(video, 3)), wide.embed_videos(video))
    tokens = text.tokens.clone()
    tokens[~text.mask] = 5
    same(module.embed_queries(TokenBatch(tokens, text.mask)), module.embed_queries(text))


@every
@torch.no_grad()
def test_a_video_does_not_know_its_neighbours(config):
    module, video, text = model(config), video_batch(config), text_batch(config)
    whole, queries = module(video, text)
    for row in range(5):
        same(module.embed_videos(pick(video, [row])), [part[[row]] for part in whole])
    order = [3, 0, 4, 2, 1]
    same(module.embed_videos(pick(video, order)), [part[order] for part in whole])
    for row in range(4):
        alone = TokenBatch(text.tokens[[row]], text.mask[[row]])
        same(module.embed_queries(alone), [part[[row]] for part in queries])


@every
@torch.no_grad()
def test_what_a_missing_expert_would_say_is_never_heard(config):
    module, video = model(config), video_batch(config)
    missing = ~video["audio"].mask.any(1)
    assert missing.any()
    values = video["audio"].values.clone()
    values[missing] = 1e6
    other = {**video, "audio": video["audio"]._replace(values=values)}
    same(module.embed_videos(other), module.embed_videos(video))
    without = {name: features for name, features in video.items() if name != "audio"}
    unheard = {**video, "audio": video["audio"]._replace(mask=torch.zeros_like(video["audio"].mask))}
    same(module.embed_videos(without), module.embed_videos(unheard))


@pytest.mark.parametrize("name", ["moee", "even", "ce without gating", "none"])
@torch.no_grad()
def test_where_experts_do_not_meet_a_missing_one_changes_only_the_weights(name):
    config = CONFIGS[name]
    module, video = model(config), video_batch(config, missing=0)
    whole = module.embed_videos(video)
    video["face"].mask[:] = False
    part = module.embed_videos(video)
    kept = [0, 2, 3]
    torch.testing.assert_close(part.vectors[:, kept], whole.vectors[:, kept], **close)
    assert not part.available[:, 1].any()


@every
@torch.no_grad()
def test_a_video_of_which_nothing_is_known_gets_similarity_0(config):
    module, video, text = model(config), video_batch(config), text_batch(config)
    for features in video.values():
        features.mask[1] = False
    sims = module.similarities(video, text)
    assert torch.isfinite(sims).all()
    assert not sims[:, 1].any()


@every
def test_every_part_that_is_used_learns(config):
    module = model(config).train()
    video, text = video_batch(config, many=6, missing=0.1), text_batch(config, many=6)
    module.similarities(video, text).square().sum().backward()
    still = [
        name for name, p in module.named_parameters()
        if p.requires_grad and (p.grad is None or not torch.isfinite(p.grad).all())
    ]  # fmt: skip
    allowed = ("transformer.position_embeddings",) if "pooled" in str(config) else ()
    assert [name for name in still if not name.startswith(allowed)] == []


@pytest.mark.parametrize("name", ["ce", "moee", "ce without gating"])
def test_in_training_too_padding_and_missing_experts_are_not_heard(name):
    config = CONFIGS[name]
    video = video_batch(config, many=6)
    values = video["audio"].values.clone()
    values[~video["audio"].mask.any(1)] = 1e3
    other = longer({**video, "audio": video["audio"]._replace(values=values)}, 2)
    config = replace(config, experts=tuple(replace(expert, max_tokens=0) for expert in config.experts))
    same(model(config).train().embed_videos(other), model(config).train().embed_videos(video))


@torch.no_grad()
def test_even_weights_and_uneven_rows():
    config = CONFIGS["even"]
    module = model(config)
    videos, queries = module(video_batch(config), text_batch(config))
    assert module.dim == 6
    torch.testing.assert_close(queries.weights, torch.full((4, 4), 0.25))
    for row, expert in enumerate(EXPERTS):
        assert not queries.vectors[:, row, expert.dim :].any()
        assert not videos.vectors[:, row, expert.dim :].any()


@torch.no_grad()
def test_concatenation_and_its_published_defect():
    long = replace(TEXT, clusters=5)  # captions of 35 numbers, videos of 28
    video, text = video_batch(CONFIGS["concat"]), text_batch(CONFIGS["concat"])
    sims = {
        mode: model(ConcatConfig(EXPERTS, long, mode)).similarities(video, text)
        for mode in ("paper", "released")
    }
    assert sims["paper"].any()
    assert not sims["released"].any()


@torch.no_grad()
def test_released_concatenation_keeps_what_netvlad_makes_of_a_missing_expert():
    module = model(ConcatConfig(EXPERTS, TEXT, "released"))  # captions of 21 numbers, videos of 28
    video = video_batch(module.config)
    rows = module.embed_videos(video).vectors[:, 0]
    pools = module.pooling.pools
    for b in range(5):
        parts = []
        for number, expert in enumerate(EXPERTS):
            real = video[expert.name].values[b][video[expert.name].mask[b]][: expert.max_tokens or None]
            if expert.pool == "vlad":
                filled = torch.zeros(expert.max_tokens, expert.dim)
                filled[: len(real)] = real
                parts.append(pools[str(number)](filled[None])[0])
            else:
                parts.append(real.mean(0) if len(real) else torch.zeros(expert.dim))
        torch.testing.assert_close(rows[b], torch.cat(parts))


@torch.no_grad()
def test_wrong_input_is_told():
    module = model(CEConfig(EXPERTS, TEXT, 8))
    video = video_batch(module.config)
    with pytest.raises(ValueError, match="at least one"):
        module.embed_videos({"smell": video["face"]})
    with pytest.raises(ValueError, match="wants 6"):
        module.embed_videos({"face": video["scene"]})


def test_modes_have_the_same_state():
    for name in ("ce", "moee", "mmt", "coll"):
        paper = model(CONFIGS[name]).state_dict()
        released = model(replace(CONFIGS[name], mode="released")).state_dict()
        assert {k: v.shape for k, v in paper.items()} == {k: v.shape for k, v in released.items()}
    assert isinstance(model(CONFIGS["moee"]).config, MoEEConfig)


@pytest.mark.parametrize("name", ["ce", "mmt shuffled"])
def test_training_is_one_graph(name):
    """No step of a model depends on values, so that it can be compiled and captured whole."""
    torch._dynamo.reset()
    config = CONFIGS[name]
    module = model(config).train()
    whole = torch.compile(module, backend="eager", fullgraph=True)
    videos, queries = whole(video_batch(config), text_batch(config))
    assert torch.isfinite(similarity(queries, videos)).all()
