import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip import slow_clip as slow  # noqa: E402
from tests.lab.models.clip import slow_papers  # noqa: E402
from tests.lab.models.clip.tiny import arrays, captions, frames, real_frames, shake  # noqa: E402
from tests.lab.models.clip.tiny_config import DEPTH, HEADS, tiny_clip  # noqa: E402

from wordreel.errors import WeightsError  # noqa: E402
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.clip.clip4clip import Clip4Clip  # noqa: E402
from wordreel.lab.models.clip.config import Clip4ClipConfig, Head  # noqa: E402

LAYERS = 2
ALL = ("mean", "lstm", "transformer", "tight")


def model(head: Head, **options) -> Clip4Clip:
    torch.manual_seed(0)
    config = Clip4ClipConfig(tiny_clip(), head, layers=LAYERS, max_frames=6, max_words=8, **options)
    made = build(config)
    assert isinstance(made, Clip4Clip)
    shake(made)
    return made.eval()


@pytest.mark.parametrize("patch", ["2d", "3d"])
@pytest.mark.parametrize("head", ALL)
@torch.no_grad()
def test_logits_equal_the_slow_ones(head, patch):
    clip4clip, videos, texts = model(head, patch=patch), frames(lengths=(3, 5, 1)), captions()
    if patch == "3d":  # padding is the neighbour of the last frame, and is black as the loader makes it
        videos.pixels[~videos.mask] = 0
    state = arrays(clip4clip)
    clip = {key.removeprefix("clip."): value for key, value in state.items() if key.startswith("clip.")}
    logits = clip4clip(videos, texts)
    for row, length in enumerate((4, 7)):
        text = slow.text_tokens(texts.ids[row, :length].tolist(), clip, DEPTH, HEADS)[-1]
        for column, pictures in enumerate(real_frames(videos)):
            embeddings = []
            for number in range(len(pictures)):
                patches = slow.patches_2d(pictures[number], clip["visual.conv1.weight"])
                if patch == "3d":
                    patches = slow.patches_3d(pictures, number, clip["visual.conv2.weight"])
                embeddings.append(slow.frame_tokens(patches, clip, DEPTH, HEADS)[0])
            expected = slow_logit(head, text, embeddings, state)
            assert float(logits[row, column]) == pytest.approx(expected, abs=2e-4)


def slow_logit(head, text, embeddings, state):
    if head == "tight":
        return slow.tight_head(text, embeddings, state, LAYERS, HEADS)
    heads = {
        "mean": lambda: slow.mean_head(embeddings),
        "lstm": lambda: slow.lstm_head(embeddings, state),
        "transformer": lambda: slow.transformer_head(embeddings, state, LAYERS, HEADS),
    }
    return float(np.exp(state["clip.logit_scale"]) * (slow.unit(text) @ heads[head]()))


@pytest.mark.parametrize("head", ALL)
@torch.no_grad()
def test_no_video_depends_on_its_neighbours(head):
    clip4clip, videos, texts = model(head), frames(lengths=(3, 5, 2)), captions()
    together = clip4clip(videos, texts)
    alone = [clip4clip(type(videos)(*(part[i : i + 1] for part in videos)), texts) for i in range(3)]
    torch.testing.assert_close(torch.cat(alone, dim=1), together, atol=1e-4, rtol=0)
    videos.pixels[~videos.mask] = 7.0
    torch.testing.assert_close(clip4clip(videos, texts), together, atol=1e-4, rtol=0)


SPREADS = {
    "paper": slow_papers.repeated,
    "released": slow_papers.repeated,
    "released-2021": slow_papers.tiled,
}


@pytest.mark.parametrize("mode", SPREADS)
@torch.no_grad()
def test_masks_go_to_heads_as_the_published_repository_spreads_them(mode):
    lengths = (3, 5, 4)  # a mask that hides everything would take the digits of float32 scores with it
    clip4clip, videos = model("transformer", mode=mode), frames(lengths=lengths)
    embeddings = clip4clip.clip.frames(videos.pixels).double().numpy()
    state, masks = arrays(clip4clip), videos.mask.tolist()
    (found,) = clip4clip.encode_videos(videos)
    for video, rows in enumerate(embeddings):
        added = slow_papers.masked(masks, video, HEADS, SPREADS[mode])
        placed = rows + state["frame_position_embeddings.weight"][: len(rows)]
        states = rows + slow.blocks(placed, state, "transformerClip", LAYERS, HEADS, 1e-12, added)
        expected = slow.mean_head(states[: lengths[video]])
        np.testing.assert_allclose(found[video].numpy(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("head", ["transformer", "tight"])
@torch.no_grad()
def test_only_the_masks_of_2021_mix_videos(head):
    paper, released, before = (model(head, mode=mode) for mode in SPREADS)
    mixed, full = frames(lengths=(3, 5, 1)), frames(lengths=(4, 4))
    assert torch.equal(paper(mixed, captions()), released(mixed, captions()))
    assert (paper(mixed, captions()) - before(mixed, captions())).abs().max() > 1e-3
    torch.testing.assert_close(paper(full, captions()), before(full, captions()))


@torch.no_grad()
def test_tight_pairs_in_parts(monkeypatch):
    clip4clip, videos, texts = model("tight"), frames(), captions(lengths=(4, 7, 3, 5))
    whole = clip4clip(videos, texts)
    monkeypatch.setattr("wordreel.lab.models.clip.clip4clip.PAIRS", 4)
    torch.testing.assert_close(clip4clip(videos, texts), whole)


@torch.no_grad()
def test_a_video_without_frames_is_zero_not_nan():
    for head in ALL[:3]:
        videos = frames(lengths=(3, 2))
        videos.mask[1] = False
        (vectors,) = model(head).encode_videos(videos)
        assert bool(torch.isfinite(vectors).all())
        assert float(vectors[1].abs().max()) == 0


def test_head_starts_from_the_text_tower():
    source = model("mean")
    for head in ALL[1:]:
        config = Clip4ClipConfig(tiny_clip(), head, "3d", layers=LAYERS, max_frames=6, max_words=8)
        fresh = build(config)
        fresh.load_clip(source.clip.state_dict())
        new, old = fresh.state_dict(), source.clip.state_dict()
        at = "cross.embeddings.position_embeddings" if head == "tight" else "frame_position_embeddings"
        assert torch.equal(new[f"{at}.weight"], old["positional_embedding"])
        assert torch.equal(new["clip.visual.conv2.weight"][:, :, 1], old["visual.conv1.weight"])
        assert not new["clip.visual.conv2.weight"][:, :, ::2].any()
        to = {"transformer": "transformerClip", "tight": "cross.transformer"}.get(head)
        for key in (key for key in old if key.startswith("transformer.") and to):
            assert torch.equal(new[key.replace("transformer", to, 1)], old[key])
    tight = build(config)
    assert float(tight.cross.pooler.dense.weight.detach().std()) == pytest.approx(0.02, rel=0.2)
    assert not tight.similarity_dense.bias.any()


def test_a_joint_space_of_another_width_keeps_the_heads_own_weights():
    config = Clip4ClipConfig(tiny_clip(dim=12), "transformer", layers=LAYERS, max_frames=6, max_words=8)
    fresh = build(config)
    before = fresh.frame_position_embeddings.weight.detach().clone()
    fresh.load_clip(build(config).clip.state_dict())
    assert torch.equal(fresh.frame_position_embeddings.weight, before)


def test_another_clip_is_refused():
    state = model("mean").clip.state_dict()
    with pytest.raises(WeightsError, match="it has no ln_final"):
        model("lstm").load_clip({k: v for k, v in state.items() if not k.startswith("ln_final")})
    with pytest.raises(WeightsError, match=r"visual\.proj has another shape"):
        model("lstm").load_clip({**state, "visual.proj": torch.zeros(16, 3)})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_words": 30}, "max_words is at most 20"),
        ({"max_frames": 20, "head": "tight", "max_words": 20}, "max_frames is at least 1 and at most 19"),
        ({"layers": 0, "head": "transformer", "max_words": 20}, "at least one layer"),
    ],
)
def test_configurations_that_cannot_be(values, message):
    with pytest.raises(ValueError, match=message):
        Clip4ClipConfig(tiny_clip(), **values)
