import math
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip import slow_clip as slow  # noqa: E402
from tests.lab.models.clip.tiny import arrays, captions, frames, real_frames, shake  # noqa: E402
from tests.lab.models.clip.tiny_config import DEPTH, HEADS, tiny_clip  # noqa: E402

from wordreel.lab.models.clip.config import VIT_B_16, VIT_B_32  # noqa: E402
from wordreel.lab.models.clip.towers import ACTIVATIONS, BatchFirstAttention, ClipTowers, end_states  # noqa: E402


def towers(**options) -> ClipTowers:
    torch.manual_seed(0)
    made = ClipTowers(tiny_clip(dim=12), **options)
    shake(made)
    return made.eval()


def close(ours, theirs, at=1e-5):
    np.testing.assert_allclose(np.asarray(ours.detach()), np.asarray(theirs), rtol=0, atol=at)


@torch.no_grad()
def test_image_tower_equals_the_slow_one():
    clip, batch = towers(), frames()
    state, tokens, embeddings = arrays(clip), clip.frame_tokens(batch.pixels), clip.frames(batch.pixels)
    assert tokens.shape == (3, 5, 5, 12)
    for video, pictures in enumerate(real_frames(batch)):
        for frame, picture in enumerate(pictures):
            patches = slow.patches_2d(picture, state["visual.conv1.weight"])
            expected = slow.frame_tokens(patches, state, DEPTH, HEADS)
            close(tokens[video, frame], expected)
            close(embeddings[video, frame], expected[0])


@torch.no_grad()
def test_3d_patch_equals_the_slow_one_and_starts_as_the_2d_one():
    clip, batch = towers(patch_3d=True), frames(lengths=(4, 4))
    state, tokens = arrays(clip), clip.frame_tokens(batch.pixels)
    for video, pictures in enumerate(real_frames(batch)):
        for frame in range(len(pictures)):
            patches = slow.patches_3d(pictures, frame, state["visual.conv2.weight"])
            close(tokens[video, frame], slow.frame_tokens(patches, state, DEPTH, HEADS))
    plain = towers()
    fresh = towers(patch_3d=True)
    fresh.load_state_dict(plain.state_dict(), strict=False)
    fresh.visual.init_patch_3d()
    close(fresh.frames(batch.pixels), plain.frames(batch.pixels))


@torch.no_grad()
def test_text_tower_equals_the_slow_one():
    clip, batch = towers(), captions()
    state, tokens, embeddings = arrays(clip), clip.text_tokens(batch.ids), clip.texts(batch.ids)
    for row, length in enumerate((4, 7)):
        expected = slow.text_tokens(batch.ids[row, :length].tolist(), state, DEPTH, HEADS)
        close(tokens[row, :length], expected)  # causal: padding after the end changes nothing
        close(embeddings[row], expected[-1])


def test_attention_is_torchs_multi_head_attention():
    torch.manual_seed(0)
    ours, theirs = BatchFirstAttention(16, 4), torch.nn.MultiheadAttention(16, 4, batch_first=True)
    theirs.load_state_dict(ours.state_dict())
    x, mask = torch.randn(3, 6, 16), torch.randn(3, 1, 1, 6)
    many = mask.expand(3, 4, 6, 6).reshape(12, 6, 6)
    close(ours(x, mask), theirs(x, x, x, attn_mask=many, need_weights=False)[0].detach())


@torch.no_grad()
def test_shift_sees_each_videos_frames_and_changes_only_what_attention_reads():
    seen, plain = [], towers()

    def roll(x, mask):
        seen.append(x.shape)
        return torch.cat([x[:, :1], x[:, :-1]], dim=1)

    clip, batch = towers(shifts={1: roll}), frames(lengths=(3, 3))
    shifted = clip.frames(batch.pixels)
    assert seen == [(2, 3, 5, 16)]
    same = plain.frames(batch.pixels)
    close(shifted[:, 0], same[:, 0])
    assert (shifted[:, 1:] - same[:, 1:]).abs().max() > 1e-3


def test_gradient_checkpointing_changes_no_gradient():
    grads = []
    for on in (False, True):
        clip = towers(shifts={0: lambda x, mask: x.flip(1)}).train()
        clip.set_gradient_checkpointing(on)
        (clip.frames(frames().pixels).square().sum() + clip.texts(captions().ids).square().sum()).backward()
        grads.append({name: parameter.grad for name, parameter in clip.named_parameters()})
    for name, value in grads[0].items():
        if name != "logit_scale":
            torch.testing.assert_close(grads[1][name], value)


@torch.no_grad()
def test_half_precision_stays_near():
    clip = towers()
    full = clip.frames(frames().pixels)
    half = towers().to(torch.bfloat16).frames(frames().pixels)
    assert half.dtype == torch.bfloat16
    assert torch.cosine_similarity(half.float(), full, dim=-1).min() > 0.99


def test_first_weights_are_openais():
    torch.manual_seed(0)
    config = tiny_clip()
    wide = replace(
        config,
        vision=replace(config.vision, width=128, mlp=512),
        text=replace(config.text, width=128, mlp=512, vocabulary=500),
        dim=96,
    )
    clip = ClipTowers(wide)
    block = clip.transformer.resblocks[0]
    spreads = {
        clip.token_embedding.weight: 0.02,
        clip.positional_embedding: 0.01,
        clip.text_projection: 128**-0.5,
        clip.visual.proj: 128**-0.5,
        clip.visual.positional_embedding: 128**-0.5,
        block.attn.in_proj_weight: 128**-0.5,
        block.attn.out_proj.weight: 128**-0.5 * (2 * DEPTH) ** -0.5,
        block.mlp.c_fc.weight: 256**-0.5,
        block.mlp.c_proj.weight: 128**-0.5 * (2 * DEPTH) ** -0.5,
    }
    for parameter, spread in spreads.items():
        assert float(parameter.detach().std()) == pytest.approx(spread, rel=0.1)
    assert float(clip.logit_scale.detach()) == pytest.approx(math.log(1 / 0.07))
    with torch.no_grad():
        clip.logit_scale.fill_(9)
    clip.clamp_logit_scale()
    assert float(clip.scale().detach()) == pytest.approx(100)


@pytest.mark.parametrize(("config", "count"), [(VIT_B_32, 151_277_313), (VIT_B_16, 149_620_737)])
def test_published_sizes(config, count):
    with torch.device("meta"):
        assert sum(p.numel() for p in ClipTowers(config).parameters()) == count


def test_activations():
    x = torch.linspace(-3, 3, 7)
    close(ACTIVATIONS["quick_gelu"]()(x), slow.quick_gelu(x.double().numpy()))
    normal = [value * 0.5 * (1 + math.erf(value / math.sqrt(2))) for value in x.tolist()]
    close(ACTIVATIONS["gelu"]()(x), normal)
    assert (ACTIVATIONS["gelu_tanh"]()(x) - ACTIVATIONS["gelu"]()(x)).abs().max() > 1e-5


def test_the_end_token_is_the_first_of_the_largest():
    ids = torch.tensor([[1, 50, 7, 50, 0], [7, 2, 2, 59, 0]])
    tokens = torch.arange(10.0).view(2, 5, 1)
    assert end_states(tokens, ids).flatten().tolist() == [1, 8]
