"""Image and text towers: tiny ones against slow twins, full ones against published sizes."""

from dataclasses import replace

import numpy as np
import onnx
import pytest
from tests.backbones import naive_towers, tiny

from wordreel.backbones.config import BackboneConfig, TextTowerConfig, VisionTowerConfig
from wordreel.backbones.towers import build_towers, tower_shapes
from wordreel.errors import WeightsError
from wordreel.runtime.sessions import Network


@pytest.mark.parametrize("name", tiny.ALL)
def test_the_graphs_equal_the_slow_twins(name, tmp_path):
    config = tiny.ALL[name]
    state = tiny.random_state(config)
    frames, ids = tiny.random_inputs(config)
    image, text = tiny.networks(config, state, tmp_path)
    expected = naive_towers.image_features(config, state, frames)
    assert expected.shape == (3, config.dim)
    assert expected.std(0).min() > 0.01  # pictures differ
    np.testing.assert_allclose(image(frames=frames)["features"], expected, rtol=2e-4, atol=2e-5)
    expected = naive_towers.text_features(config, state, ids)
    assert expected.std(0).min() > 0.01
    np.testing.assert_allclose(text(ids=ids)["features"], expected, rtol=2e-4, atol=2e-5)


def test_a_batch_gives_what_single_items_give(tmp_path):
    state = tiny.random_state(tiny.CLIP)
    frames, ids = tiny.random_inputs(tiny.CLIP, 5)
    image, text = tiny.networks(tiny.CLIP, state, tmp_path)
    singles = np.concatenate([image(frames=frame[None])["features"] for frame in frames])
    np.testing.assert_allclose(image(frames=frames)["features"], singles, atol=1e-5)
    singles = np.concatenate([text(ids=row[None])["features"] for row in ids])
    np.testing.assert_allclose(text(ids=ids)["features"], singles, atol=1e-5)


def test_a_causal_tower_needs_no_ids_behind_the_last_end(tmp_path):
    state = tiny.random_state(tiny.CLIP)
    ids = np.array([[3, 7, 49, 0, 0, 0, 0, 0, 0], [2, 49, 0, 0, 0, 0, 0, 0, 0]])
    _, text = tiny.networks(tiny.CLIP, state, tmp_path)
    np.testing.assert_allclose(text(ids=ids[:, :3])["features"], text(ids=ids)["features"], atol=1e-5)


def test_models_without_a_folder_hold_their_weights(tmp_path):
    state = tiny.random_state(tiny.CLIP)
    frames, _ = tiny.random_inputs(tiny.CLIP)
    onnx.save(build_towers(tiny.CLIP, state)[0], str(tmp_path / "inside.onnx"))
    beside, _ = tiny.networks(tiny.CLIP, state, tmp_path / "beside")
    inside = Network(tmp_path / "inside.onnx")
    assert np.array_equal(inside(frames=frames)["features"], beside(frames=frames)["features"])


def test_every_key_and_shape_is_checked_before_anything_is_written(tmp_path):
    def refusal(change):
        state = tiny.random_state(tiny.CLIP)
        change(state)
        with pytest.raises(WeightsError) as caught:
            build_towers(tiny.CLIP, state, tmp_path)
        return str(caught.value)

    assert "tiny-clip is not" in refusal(lambda state: state.pop("visual_projection.weight"))
    assert "it has no text_projection.weight" in refusal(lambda state: state.pop("text_projection.weight"))
    assert "which that network does not have" in refusal(lambda state: state.update(extra=np.zeros(1)))
    wrong = {"vision_model.pre_layrnorm.bias": np.zeros(11, np.float32)}
    assert "has the shape 11, not 12" in refusal(lambda state: state.update(wrong))
    assert not list(tmp_path.iterdir())


LARGE_TEXT = TextTowerConfig(width=768, heads=12, mlp=3072)
SIGLIP_VISION = replace(tiny.SIGLIP.vision, size=224, patch=16, width=768, depth=12, heads=12, mlp=3072)
SIGLIP_TEXT = replace(tiny.SIGLIP.text, vocabulary=32000, length=64, width=768, depth=12, heads=12, mlp=3072)
SO400M = {"width": 1152, "depth": 27, "heads": 16, "mlp": 4304}


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (BackboneConfig("ViT-B/32"), 151_277_313),
        (BackboneConfig("ViT-B/16", vision=VisionTowerConfig(patch=16)), 149_620_737),
        (
            BackboneConfig(
                "ViT-L/14-336",
                dim=768,
                vision=VisionTowerConfig(size=336, patch=14, width=1024, depth=24, heads=16, mlp=4096),
                text=LARGE_TEXT,
            ),
            427_944_193,
        ),
        (BackboneConfig("SigLIP B/16", "siglip", 768, SIGLIP_VISION, SIGLIP_TEXT), 203_155_970),
        (
            BackboneConfig(
                "SigLIP SO400M/14-384",
                "siglip",
                1152,
                replace(SIGLIP_VISION, size=384, patch=14, **SO400M),
                replace(SIGLIP_TEXT, **SO400M),
            ),
            877_960_498,
        ),
    ],
)  # fmt: skip
def test_full_models_have_the_published_number_of_parameters(config, count):
    logits = 1 if config.family == "clip" else 2  # the scale, and SigLIP's bias
    assert sum(int(np.prod(shape)) for shape in tower_shapes(config).values()) + logits == count
