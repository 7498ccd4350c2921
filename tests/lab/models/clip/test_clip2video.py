from dataclasses import asdict

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip import slow_clip as slow  # noqa: E402
from tests.lab.models.clip import slow_papers  # noqa: E402
from tests.lab.models.clip.tiny import arrays, captions, frames, shake  # noqa: E402
from tests.lab.models.clip.tiny_config import HEADS, tiny_clip  # noqa: E402

from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.clip.clip2video import Clip2Video  # noqa: E402
from wordreel.lab.models.clip.config import Clip2VideoConfig, from_json  # noqa: E402

LAYERS, LENGTHS = 2, (3, 5, 1, 4)


def model(**options) -> Clip2Video:
    torch.manual_seed(0)
    values = {"layers": LAYERS, "centres": 3, "max_frames": 6, "max_words": 8, **options}
    made = build(Clip2VideoConfig(tiny_clip(), **values))
    shake(made)
    assert isinstance(made, Clip2Video)
    return made.eval()


def slow_logits(found, texts, pairs, weight=0.5):
    """From the slow (global, aligned) vectors of each video and our captions' token states."""
    state, lengths = arrays(found), (4, 7)
    tokens = found.clip.text_tokens(texts.ids).double().numpy()
    rows = []
    for row, length in enumerate(lengths):
        first = slow.unit(tokens[row, length - 1])
        second = slow_papers.aligned(tokens[row, 1:length], state)
        rows.append([weight * first @ a + (1 - weight) * second @ b for a, b in pairs])
    return np.exp(state["clip.logit_scale"]) * np.array(rows)


@pytest.mark.parametrize("difference", ["attention", "mlp"])
@torch.no_grad()
def test_logits_equal_the_slow_ones(difference):
    clip2video, videos, texts = model(difference=difference), frames(lengths=LENGTHS), captions()
    embeddings = clip2video.clip.frames(videos.pixels).double().numpy()
    pairs = []
    for video, length in enumerate(LENGTHS):  # each video alone, without its padding
        given = [list(embeddings[video, :length])], [[True] * length]
        pairs += slow_papers.clip2video_videos(*given, arrays(clip2video), LAYERS, HEADS)
    found = clip2video(videos, texts).numpy()
    np.testing.assert_allclose(found, slow_logits(clip2video, texts, pairs), rtol=0, atol=2e-4)


@torch.no_grad()
def test_released_logits_equal_the_slow_ones():
    # With fewer frames than 3 a mask hides everything, and −1e6 takes the digits of float32 scores with it.
    released, videos, texts = model(mode="released"), frames(lengths=(3, 5, 4, 3)), captions()
    embeddings = released.clip.frames(videos.pixels).double().numpy()
    given = [list(video) for video in embeddings], videos.mask.tolist()
    pairs = slow_papers.clip2video_videos(*given, arrays(released), LAYERS, HEADS, released=True)
    found = released(videos, texts)
    np.testing.assert_allclose(found.numpy(), slow_logits(released, texts, pairs), rtol=0, atol=2e-4)
    paper = model()
    assert (paper(videos, texts) - found).abs().max() > 1e-3
    full = frames(lengths=(4, 4))
    torch.testing.assert_close(paper(full, texts), released(full, texts))


@torch.no_grad()
def test_no_video_depends_on_its_neighbours_or_on_padding():
    clip2video, videos, texts = model(), frames(lengths=LENGTHS), captions()
    together = clip2video(videos, texts)
    for video, length in enumerate(LENGTHS):
        alone = type(videos)(*(part[video : video + 1, :length] for part in videos))
        torch.testing.assert_close(
            clip2video(alone, texts), together[:, video : video + 1], atol=1e-4, rtol=0
        )


def test_each_branch_has_its_own_loss():
    clip2video, videos, texts = model(global_weight=0.25), frames(), captions()
    encoded = clip2video.encode_captions(texts), clip2video.encode_videos(videos)
    (first, one), (second, other) = clip2video.training_logits(*encoded)
    assert (first, second) == (0.25, 0.75)
    torch.testing.assert_close(clip2video.logits(*encoded), 0.25 * one + 0.75 * other)
    (one.square().sum() + other.square().sum()).backward()
    idle = {name for name, parameter in clip2video.named_parameters() if parameter.grad is None}
    assert not idle


def test_blocks_start_from_the_text_tower():
    source = model()
    for difference in ("attention", "mlp"):
        fresh = model(difference=difference)
        fresh.load_clip(source.clip.state_dict())
        new, old = fresh.state_dict(), source.clip.state_dict()
        assert torch.equal(new["frame_position_embeddings.weight"], old["positional_embedding"])
        assert torch.equal(new["type_position_embeddings.weight"], old["positional_embedding"][:2])
        starts = {"transformerClip": LAYERS, "actionClip": 1, "frame2t_attention": difference == "attention"}
        for start, depth in starts.items():
            for key in (
                key for key in old if key.startswith("transformer.") and int(key.split(".")[2]) < depth
            ):
                assert torch.equal(new[key.replace("transformer", start, 1)], old[key])
        if difference == "mlp":
            assert torch.equal(new["frame2t_projection"], old["visual.proj"][:16])
    centres = build(Clip2VideoConfig(tiny_clip(), centres=200, max_words=8)).state_dict()
    for name in ("weight_center", "emb_center"):
        assert float(centres[name].std()) == pytest.approx(1 / 8, rel=0.1)


def test_configurations():
    config = Clip2VideoConfig(centres=7, difference="mlp", mode="released")
    assert from_json(asdict(config)) == config
    for values in ({"layers": 0}, {"centres": 0}, {"global_weight": 1.5}, {"max_frames": 78}):
        with pytest.raises(ValueError, match=r"needs a layer|at most 77"):
            Clip2VideoConfig(**values)
