"""The layouts in which hubs publish ONNX, and what their descriptions say."""

import json

import pytest
from tests.tiny_backbone import LENGTH, PREPROCESSOR, write_json, write_onnx

from wordreel.backbones.config import HeadConfig, ImageTransform, TextSettings
from wordreel.backbones.layout import (
    files_in,
    find_layout,
    published_precisions,
    read_family,
    read_head,
    read_text_settings,
    read_transform,
)
from wordreel.backbones.tokenizer import END
from wordreel.errors import WeightsError

HUB = ["config.json", "tokenizer.json", "preprocessor_config.json", "README.md"]


@pytest.mark.parametrize("at", ["", "onnx/"])
def test_the_hub_layout_in_every_precision(at):
    suffixes = ("", "_fp16", "_quantized", "_q4")
    graphs = [f"{at}{tower}_model{suffix}.onnx" for tower in ("vision", "text") for suffix in suffixes]
    names = [*HUB, *graphs, f"{at}vision_model.onnx_data", f"{at}model.onnx"]
    assert published_precisions(names) == ["fp32", "fp16", "int8"]
    exact = find_layout(names)
    assert exact.files == (
        f"{at}vision_model.onnx", f"{at}text_model.onnx", "tokenizer.json", "preprocessor_config.json",
        "config.json", f"{at}vision_model.onnx_data",
    )  # fmt: skip
    assert find_layout(names, "int8").text == f"{at}text_model_quantized.onnx"
    assert find_layout([name for name in names if name != "tokenizer.json"]) is None
    assert find_layout(HUB) is None


def test_the_layout_of_immich(tmp_path):
    folder = write_onnx(tmp_path / "model", layout="immich")
    layout = find_layout(files_in(folder))
    assert (layout.vision, layout.tokenizer) == ("visual/model.onnx", "textual/tokenizer.json")
    assert set(layout.files) == set(files_in(folder))
    assert published_precisions(files_in(folder)) == ["fp32"]
    assert read_transform(folder, layout) == ImageTransform(32, (0.5,) * 3, (0.25,) * 3, "squash")
    settings = read_text_settings(folder, layout, fixed=None, masked=False)
    assert (settings.length, settings.padding, settings.shorter) == (LENGTH, 524, False)
    assert read_family(folder, layout) == "clip"
    kwargs = {"context_length": 64, "tokenizer_kwargs": {"clean": "canonicalize"}}
    write_json(folder / "config.json", {"init_logit_bias": -10, "text_cfg": kwargs})
    assert read_family(folder, layout) == "siglip"
    assert read_text_settings(folder, layout, fixed=None, masked=False) == TextSettings(64, 524, False, True)


def hub(tmp_path, **preprocessor):
    folder = write_onnx(tmp_path / "model")
    values = {**PREPROCESSOR, **preprocessor}
    write_json(folder / "preprocessor_config.json", {k: v for k, v in values.items() if v is not None})
    return folder, find_layout(files_in(folder))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ImageTransform(32)),
        ({"size": 32, "crop_size": 32}, ImageTransform(32)),
        ({"size": {"height": 32, "width": 32}, "do_center_crop": False}, ImageTransform(32, resize="squash")),
        ({"resample": 2}, ImageTransform(32, interpolation="bilinear")),
        ({"do_normalize": False, "image_mean": None}, ImageTransform(32, (0.0,) * 3, (1.0,) * 3)),
    ],
)
def test_how_pictures_are_prepared(tmp_path, values, expected):
    assert read_transform(*hub(tmp_path, **values)) == expected


@pytest.mark.parametrize(
    "values",
    [
        {"size": {"shortest_edge": 40}},
        {"do_center_crop": False},
        {"size": {"height": 32, "width": 48}, "do_center_crop": False},
        {"size": {"height": 10**9, "width": 10**9}, "do_center_crop": False},
        {"resample": 0},
        {"image_mean": [1, 2]},
        {"image_std": [0, 1, 1]},
        {"size": None},
    ],
)
def test_other_ways_are_refused(tmp_path, values):
    with pytest.raises(WeightsError, match=r"preprocessor_config.json describes pictures in a way"):
        read_transform(*hub(tmp_path, **values))


def test_how_texts_become_tokens(tmp_path):
    folder, layout = hub(tmp_path)
    assert read_text_settings(folder, layout, fixed=None, masked=False) == TextSettings(77, 0, True)
    assert read_text_settings(folder, layout, fixed=20, masked=True) == TextSettings(20, 0, False)
    write_json(
        folder / "config.json", {"model_type": "siglip", "text_config": {"max_position_embeddings": 64}}
    )
    write_json(folder / "tokenizer_config.json", {"pad_token": {"content": END}, "model_max_length": 10**30})
    layout = find_layout(files_in(folder))
    assert read_text_settings(folder, layout, fixed=None, masked=False) == TextSettings(64, 524, False)
    assert read_family(folder, layout) == "siglip"
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["padding"] = {
        "strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 7,
        "pad_type_id": 0, "pad_token": "x",
    }  # fmt: skip
    write_json(folder / "tokenizer.json", tokenizer)
    (folder / "tokenizer_config.json").unlink()
    layout = find_layout(files_in(folder))
    assert read_text_settings(folder, layout, fixed=None, masked=False).padding == 7


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1e999}' * 10**5, "[" * 10**5])
def test_damaged_descriptions(tmp_path, content):
    folder, layout = hub(tmp_path)
    (folder / "preprocessor_config.json").write_text(content)
    with pytest.raises(WeightsError, match=r"preprocessor_config.json"):
        read_transform(folder, layout)


def test_a_head(tmp_path):
    folder, layout = hub(tmp_path)
    assert read_head(folder, layout, 32) is None
    (folder / "head.onnx").write_bytes(b"")
    write_json(folder / "head.json", {"frames": 12, "rate": 2.5})
    layout = find_layout(files_in(folder))
    assert {"head.onnx", "head.json"} <= set(layout.files)
    assert read_head(folder, layout, 32) == HeadConfig(32, 12, 2.5)
    write_json(folder / "head.json", {"frames": 12})
    with pytest.raises(WeightsError, match=r"head\.json is damaged"):
        read_head(folder, layout, 32)
