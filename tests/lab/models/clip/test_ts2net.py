from dataclasses import asdict, replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip import slow_papers  # noqa: E402
from tests.lab.models.clip.tiny import arrays, captions, real_frames, shake  # noqa: E402
from tests.lab.models.clip.tiny_config import DEPTH, HEADS, tiny_clip  # noqa: E402

from wordreel.errors import WordreelError  # noqa: E402
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.clip.config import TS2NetConfig, from_json  # noqa: E402
from wordreel.lab.models.clip.ts2net import TS2Net, stretched  # noqa: E402
from wordreel.lab.models.clip.video_text import FrameBatch  # noqa: E402

LAYERS, PATCHES, LENGTHS = 2, 2, (3, 5, 1, 4)


def model(**options) -> TS2Net:
    """With 10 tokens a frame, of which the numbers 1 to 9 move."""
    torch.manual_seed(0)
    clip = tiny_clip()
    clip = replace(clip, vision=replace(clip.vision, size=12))
    values = {"layers": LAYERS, "patches": PATCHES, "positions": 20, "max_frames": 6, "max_words": 8}
    made = build(TS2NetConfig(clip, samples=20, **{**values, "shifted": 1, **options}))
    shake(made)
    assert isinstance(made, TS2Net)
    with torch.no_grad():  # scores far from ties
        made.get_parameter("visual_token_selector.score_predictor.out_conv.2.weight").mul_(30)
    return made.eval()


def frames(lengths=LENGTHS):
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randn(len(lengths), max(lengths), 3, 12, 12, generator=generator)
    return FrameBatch(pixels, torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None])


def slow_logits(found, texts, videos):
    state = arrays(found)
    ends = found.clip.texts(texts.ids).double().numpy()
    rows = [[slow_papers.ts2net_similarity(text, *video) for video in videos] for text in ends]
    return np.exp(state["clip.logit_scale"]) * np.array(rows)


def towers(state):
    return {key.removeprefix("clip."): value for key, value in state.items() if key.startswith("clip.")}


@pytest.mark.parametrize("shifted", [0, 1, 2])
@torch.no_grad()
def test_logits_equal_the_slow_ones(shifted):
    ts2net, videos, texts = model(shifted=shifted), frames(), captions()
    state, slow = arrays(ts2net), []
    for pictures in real_frames(videos):  # each video alone, without its padding
        tokens = slow_papers.shifted_tokens(pictures, towers(state), DEPTH, HEADS, shifted)
        slow += slow_papers.ts2net_videos([tokens], [[True] * len(pictures)], state, LAYERS, HEADS, PATCHES)
    found = ts2net(videos, texts).numpy()
    np.testing.assert_allclose(found, slow_logits(ts2net, texts, slow), rtol=0, atol=2e-4)


@torch.no_grad()
def test_released_logits_equal_the_slow_ones():
    released, videos, texts = model(mode="released", noisy=False), frames(), captions()
    state = arrays(released)
    tokens = [
        slow_papers.shifted_tokens(video.double().numpy(), towers(state), DEPTH, HEADS, 1)
        for video in videos.pixels
    ]
    masks = videos.mask.tolist()
    slow = slow_papers.ts2net_videos(tokens, masks, state, LAYERS, HEADS, PATCHES, released=True)
    found = released(videos, texts)
    np.testing.assert_allclose(found.numpy(), slow_logits(released, texts, slow), rtol=0, atol=2e-4)
    assert (model()(videos, texts) - found).abs().max() > 1e-3
    full = frames((4, 4))
    torch.testing.assert_close(model()(full, texts), released(full, texts))


@torch.no_grad()
def test_no_video_depends_on_its_neighbours_or_on_padding():
    ts2net, videos, texts = model(), frames(), captions()
    together = ts2net(videos, texts)
    for video, length in enumerate(LENGTHS):
        alone = FrameBatch(*(part[video : video + 1, :length] for part in videos))
        torch.testing.assert_close(ts2net(alone, texts), together[:, video : video + 1], atol=1e-4, rtol=0)


@torch.no_grad()
def test_evaluation_repeats_itself_unless_it_is_the_released_one():
    videos, texts = frames(), captions()
    for options, same in (({}, True), ({"mode": "released"}, False), ({"noisy": True}, False)):
        ts2net = model(**options)
        assert torch.equal(ts2net(videos, texts), ts2net(videos, texts)) is same


@torch.no_grad()
def test_each_defect_alone():
    videos = frames()
    tiled, repeated = (model(mask=mask)._token_mask(videos.mask) for mask in ("tiled", None))
    for video, length in enumerate(LENGTHS):
        assert repeated[video].tolist() == [n // 3 < length for n in range(15)]
        assert tiled[video].tolist() == [n % 5 < length for n in range(15)]
    config = TS2NetConfig(mode="released", mask="repeated", noisy=False, gradient="full")
    assert (config.tiled_mask, config.noisy_inference, config.topk_gradient) == (False, False, "full")
    assert list(TS2NetConfig().shifted_blocks) == [10, 11]


def test_training_reaches_every_parameter():
    ts2net = model().train()
    ts2net(frames(), captions()).square().sum().backward()
    for name, parameter in ts2net.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_head_starts_from_the_text_tower():
    source, fresh = model(), model(positions=40)
    fresh.load_clip(source.clip.state_dict())
    new, old = fresh.state_dict(), source.clip.state_dict()
    table = old["positional_embedding"]  # 20 rows
    torch.testing.assert_close(new["frame_position_embeddings.weight"], stretched(table, 40))
    for key in (key for key in old if key.startswith("transformer.")):
        assert torch.equal(new[key.replace("transformer", "transformerClip", 1)], old[key])
    rows = stretched(table, 39)
    torch.testing.assert_close(rows[::2], table)
    torch.testing.assert_close(rows[1::2], (table[1:] + table[:-1]) / 2)
    assert torch.equal(stretched(table, 7), table[:7])


def test_more_frames_than_positions_are_refused():
    with pytest.raises(WordreelError, match="7 frames of 3 tokens need 21 positions; this model has 20"):
        model().encode_videos(frames((7,)))
    with pytest.raises(ValueError, match="max_frames is at least 1 and at most 19"):
        TS2NetConfig(max_frames=64)
    assert TS2NetConfig(max_frames=64, positions=256).max_frames == 64


def test_configurations():
    config = TS2NetConfig(mode="released", noisy=False)
    assert from_json(asdict(config)) == config
    for values in ({"shifted": 13}, {"patches": 50, "positions": 1000}, {"samples": 0}):
        with pytest.raises(ValueError, match=r"at most 12|cannot be chosen|needs a layer"):
            TS2NetConfig(**values)
