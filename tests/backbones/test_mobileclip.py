"""MobileCLIP from both published layouts: the same towers, equal to the slow twins."""

import json

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import save_file
from tests.backbones import naive_towers
from tests.backbones.apple_layout import apple_state
from tests.backbones.naive_fastvit import Branches, BranchState, fastvit_features, fastvit_state
from tests.runtime.nets.naive_nets import Naive

from wordreel.backbones.config import BackboneConfig, TextTowerConfig, VisionTowerConfig
from wordreel.backbones.fastvit import VARIANTS, FastViTVariant
from wordreel.backbones.layouts import to_huggingface
from wordreel.backbones.mobileclip import infer_mobileclip, is_mobileclip, to_towers
from wordreel.backbones.read_backbone import read_backbone
from wordreel.backbones.towers import build_towers, check_state, networks
from wordreel.errors import WeightsError
from wordreel.runtime.nets.net_builder import weight_shapes

TINY = FastViTVariant((1, 1, 2, 1), 4, 2, squeezed=(2, 3))
DIM, WIDTH, LENGTH, VOCABULARY = 6, 64, 9, 30


@pytest.fixture(autouse=True)
def _tiny_variant(monkeypatch):
    monkeypatch.setitem(VARIANTS, "tiny", TINY)


def text_state(depth=2):
    made = BranchState(7)
    made.tensor("text.token_embedding.weight", VOCABULARY, WIDTH)
    made.tensor("text.positional_embedding", LENGTH, WIDTH)
    for layer in range(depth):
        key = f"text.transformer.resblocks.{layer}"
        for norm in ("ln_1", "ln_2"):
            made.conv(f"{key}.{norm}", WIDTH)
        made.tensor(f"{key}.attn.in_proj_weight", 3 * WIDTH, WIDTH)
        made.tensor(f"{key}.attn.in_proj_bias", 3 * WIDTH)
        made.conv(f"{key}.attn.out_proj", WIDTH, WIDTH)
        made.conv(f"{key}.mlp.c_fc", 4 * WIDTH, WIDTH)
        made.conv(f"{key}.mlp.c_proj", WIDTH, 4 * WIDTH)
    made.conv("text.ln_final", WIDTH)
    made.tensor("text.text_projection", WIDTH, DIM)
    return {**made.state, "logit_scale": np.array(np.log(50.0), np.float32)}


def fastvit():
    """The trunk of a tiny MobileCLIP-S in training form, its head without a bias."""
    trunk = fastvit_state(TINY, DIM)
    trunk["head.fc.bias"] = np.zeros(DIM, np.float32)
    return trunk


def below_trunk(state):
    return {f"visual.trunk.{key}": value for key, value in state.items()}


def texts():
    ids = np.zeros((3, LENGTH), np.int64)
    for row, words in enumerate((0, 3, LENGTH - 2)):
        ids[row, : words + 2] = [VOCABULARY - 2, *range(1, words + 1), VOCABULARY - 1]
    return ids


def features(model, **inputs):
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]


def assert_close(ours, expected):
    assert np.abs(expected).max() > 1e-2
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def frames(size):
    return np.random.default_rng(3).normal(size=(2, 3, size, size)).astype(np.float32)


def test_a_fastvit_from_both_layouts(tmp_path):
    trunk = fastvit()
    state = below_trunk(trunk) | text_state()
    config = {
        "embed_dim": DIM,
        "vision_cfg": {"timm_model_name": "fastvit_mci0", "image_size": 64},
        "text_cfg": {
            "context_length": LENGTH, "vocab_size": VOCABULARY, "width": WIDTH, "heads": 1, "layers": 2,
            "no_causal_mask": True,
        },
    }  # fmt: skip
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": config}))
    save_file(
        state | {"visual.trunk.stem.0.identity.num_batches_tracked": np.array(3)},
        tmp_path / "open_clip_model.safetensors",
    )
    with pytest.raises(WeightsError, match="it has a fastvit_tiny, not a fastvit_mci0"):
        read_backbone(tmp_path)

    apple = tmp_path / "apple" / "mobileclip_tiny.safetensors"
    apple.parent.mkdir()
    save_file(apple_state(state), apple)
    read, towers = read_backbone(apple)
    assert read.family == "mobileclip"
    assert (read.vision.variant, read.vision.size, read.dim) == ("tiny", 256, DIM)
    assert (read.transform.mean, read.transform.std) == ((0, 0, 0), (1, 1, 1))
    assert (read.text.causal, read.text.depth, read.text.mixers) == (False, 2, False)
    assert read.logit_scale == pytest.approx(50.0)
    other = to_towers({f"module.{key}": value for key, value in state.items()})
    assert set(other) == set(towers)
    assert all(np.array_equal(other[key], towers[key]) for key in other)

    image, text = build_towers(read, towers)
    assert_close(features(image, frames=frames(256)), fastvit_features(TINY, trunk, frames(256)))
    wanted = naive_towers.text_features(read, dict(to_huggingface(text_state())), texts())
    assert_close(features(text, ids=texts()), wanted)


def test_the_text_tower_that_mixes_tokens():
    made = BranchState(5)
    for number in (0, 3):
        key = f"text_encoder.transformer.{number}"
        made.mixer(f"{key}.token_mixer", WIDTH, 1, 11, scale=False)
        made.mlp(f"{key}.mlp", WIDTH, 4 * WIDTH, 1, 11)
        made.tensor(f"{key}.layer_scale.gamma", WIDTH, 1, 1)
    state = apple_state(below_trunk(fastvit()) | text_state())
    blocks = {key: value for key, value in state.items() if ".transformer." in key}
    state = {key: value for key, value in state.items() if key not in blocks}
    for key, value in blocks.items():
        head, number, rest = key.split(".transformer.")[0], *key.split(".transformer.")[1].split(".", 1)
        state[f"{head}.transformer.{int(number) + 1}.{rest}"] = value
    for key, value in made.state.items():
        name = (
            key.replace("conv_kxk", "rbr_conv").replace("identity", "rbr_skip").replace(".mlp.", ".convffn.")
        )
        state[name.removesuffix(".gamma")] = value
    towers = to_towers(state)
    config = infer_mobileclip("s0", towers)
    assert config.text.mixers
    assert config.text.depth == 2

    plain = {key: np.asarray(value, np.float64) for key, value in to_huggingface(text_state()).items()}
    net, tower = Branches(made.state), naive_towers.NaiveTower(plain, config.text, "text_model")
    ids = texts()
    x = plain["text_model.embeddings.token_embedding.weight"][ids]
    x = x + plain["text_model.embeddings.position_embedding.weight"]

    def mix(x, number):
        x = net.mixer_block(x.transpose(0, 2, 1)[:, :, None], f"text_encoder.transformer.{number}")
        return x[:, :, 0].transpose(0, 2, 1)

    x = mix(np.stack([tower.blocks(row) for row in mix(x, 0)]), 3)
    x = np.stack(
        [
            tower.norm(row, "text_model.final_layer_norm")[end]
            for row, end in zip(x, ids.argmax(1), strict=True)
        ]
    )
    assert_close(features(build_towers(config, towers)[1], ids=ids), x @ plain["text_projection.weight"].T)


def test_the_transformer_behind_convolutions():
    made = BranchState(2)
    for layer, (out, into, kernel) in enumerate(((16, 3, 4), (16, 16, 2))):
        made.conv_norm(f"patch_embed.backbone.{layer}", out, into, kernel, kernel)
    made.conv("patch_embed.backbone.2.conv", WIDTH, 16, 2, 2)
    made.tensor("pos_embed", 1, 4, WIDTH)
    made.tensor("cls_token", 1, 1, WIDTH)
    for norm in ("norm", "blocks.0.norm1", "blocks.0.norm2"):
        made.conv(norm, WIDTH)
    made.conv("blocks.0.attn.qkv", 3 * WIDTH, WIDTH)
    made.conv("blocks.0.attn.proj", WIDTH, WIDTH)
    made.conv("blocks.0.mlp.fc1", 4 * WIDTH, WIDTH)
    made.conv("blocks.0.mlp.fc2", WIDTH, 4 * WIDTH)
    made.conv("head", DIM, WIDTH)
    made.state["head.bias"][:] = 0
    state = below_trunk(made.state) | text_state()
    towers, apples = to_towers(state), to_towers(apple_state(state))
    config = infer_mobileclip("b", towers)
    assert (config.vision.size, config.vision.heads, config.vision.epsilon) == (32, 1, 1e-6)
    assert infer_mobileclip("b", apples).vision.epsilon == 1e-5
    assert config.text.causal
    assert set(towers) - set(apples) == {"visual_projection.bias"}
    assert all(np.array_equal(towers[key], apples[key]) for key in apples)

    net = Naive(made.state)
    x = frames(32).astype(np.float64)
    for layer, kernel in ((0, 4), (1, 2)):
        key = f"patch_embed.backbone.{layer}"
        x = naive_towers.ACTIVATIONS["gelu"](net.norm(net.conv(x, f"{key}.conv", kernel), f"{key}.bn"))
    x = net.conv(x, "patch_embed.backbone.2.conv", 2).reshape(2, WIDTH, 4).transpose(0, 2, 1)
    x = np.concatenate([np.repeat(made.state["cls_token"], 2, 0), x + made.state["pos_embed"]], 1)
    tower = naive_towers.NaiveTower(dict(towers), config.vision, "vision_model")
    x = np.stack([tower.norm(tower.blocks(row), "vision_model.post_layernorm")[0] for row in x])
    assert_close(features(build_towers(config, towers)[0], frames=frames(32)), net.linear(x, "head"))


# Apple states 11.4, 21.5, 35.7, 125.1 and 321.6 million for pictures, 42.4, 63.4 and 123.6 for texts.
@pytest.mark.parametrize(
    ("vision", "text", "dim", "counts"),
    [
        ("mci0", TextTowerConfig(depth=4, mixers=True), 512, (11_357_504, 42_435_072)),
        ("mci1", TextTowerConfig(), 512, (21_461_056, 63_428_096)),
        ("mci2", TextTowerConfig(), 512, (35_702_992, 63_428_096)),
        ("mci3", TextTowerConfig(width=768, heads=12, mlp=3072), 768, (125_074_272, 123_650_304)),
        ("mci4", TextTowerConfig(width=768, heads=12, mlp=3072), 768, (321_569_664, 123_650_304)),
    ],
)
def test_full_models_have_the_published_number_of_parameters(vision, text, dim, counts):
    tower = VisionTowerConfig(kind="fastvit", variant=vision, size=256)
    config = BackboneConfig("full", "mobileclip", dim, tower, text)
    for network, count in zip(networks(config), counts, strict=True):
        shapes = weight_shapes(network)[0]
        assert sum(int(np.prod(s)) for key, s in shapes.items() if ".running_" not in key) == count


def test_the_transformer_of_b_has_the_published_number_of_parameters():
    vision = VisionTowerConfig(patch=16, convolutional_stem=True, pre_norm=False, projection_bias=True)
    shapes = weight_shapes(networks(BackboneConfig("b", vision=vision))[0])[0]
    assert sum(int(np.prod(s)) for key, s in shapes.items() if ".running_" not in key) == 86_349_056


def test_other_files_are_refused():
    assert not is_mobileclip(["visual.trunk.patch_embed.proj.weight", "visual.conv1.weight"])
    state = below_trunk(fastvit())
    with pytest.raises(WeightsError, match=r"token_embedding"):
        infer_mobileclip("half", to_towers(state))
    state["visual.trunk.stages.2.blocks.2.extra"] = np.zeros(1)
    with pytest.raises(WeightsError, match=r"width 4 and the depths \(1, 1, 3, 1\)"):
        infer_mobileclip("odd", to_towers(state))
    with pytest.raises(WeightsError, match=r"no visual.trunk.stem.0.reparam_conv.weight"):
        infer_mobileclip("empty", to_towers({"image_encoder.model.x": np.zeros(1)}))


@pytest.mark.parametrize("layout", ["open_clip", "apple"])
def test_weights_of_another_shape_are_refused(layout):
    state = below_trunk(fastvit()) | text_state()
    state = apple_state(state) if layout == "apple" else state
    accepted = set()
    for turn, (key, value) in enumerate(state.items()):
        others = (value.reshape(-1)[:0], value.reshape(-1)[0], value.reshape(-1)[1:])
        for other in others if key == "logit_scale" else (others[turn % 3],):  # neighbours get the other two
            try:
                towers = to_towers(state | {key: np.asarray(other)})
                check_state(infer_mobileclip("damaged", towers), towers)
            except WeightsError:
                continue
            accepted.add(key)
    assert accepted == {"logit_scale"}
