"""Models of PyTorch as ONNX files: the same embeddings as their module, and refusals."""

import json
import shutil
import sys
import types
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from tests.lab.models.clip.tiny import shake
from tests.tiny_backbone import LENGTH, PREPROCESSOR, SIZE, write_clip, write_json, write_tokenizer

from wordreel.backbones import installed as backbones
from wordreel.backbones.tower import transform_images
from wordreel.errors import WeightsError
from wordreel.lab.checkpoints.clip import init_from_clip, read_clip
from wordreel.lab.checkpoints.export_backbone import export_backbone, is_clip
from wordreel.lab.models import checkpoint
from wordreel.lab.models.build import build
from wordreel.lab.models.clip.config import Clip2VideoConfig, Clip4ClipConfig, TS2NetConfig
from wordreel.lab.models.clip.video_text import CaptionBatch
from wordreel.runtime.store import WeightStore

RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 256, (3, 40, 60, 3), np.uint8)
TEXTS = ["the red cat", "a blue dog runs", ""]


@pytest.fixture
def store(tmp_path):
    return WeightStore(tmp_path / "weights")


@pytest.fixture
def clip(tmp_path):
    return write_clip(tmp_path / "clip")


def installed(store, source):
    assert is_clip(source)
    name = backbones.install(store, backbones.plan(store, str(source)), export=export_backbone)
    return backbones.open_backbone(store, name)


def tokens(backbone):
    return CaptionBatch(*(torch.from_numpy(part) for part in backbone.tokenizer.encode(TEXTS)))


@pytest.mark.parametrize("layout", ["transformers", "openai"])
@torch.no_grad()
def test_a_clip_gives_what_its_towers_give(store, clip, tmp_path, layout):
    model = build(Clip4ClipConfig(read_clip(clip)[0])).eval()
    init_from_clip(model, clip)
    source = clip
    if layout == "openai":  # whose heads have 64 numbers
        model.config = replace(model.config, backbone=replace(model.config.backbone, name="x"))
        wide = build(Clip4ClipConfig(one_head(model.config.backbone))).eval()
        wide.load_state_dict(model.state_dict())
        model, source = wide, tmp_path / "openai" / "ViT.pt"
        source.parent.mkdir()
        torch.save(model.clip.state_dict(), source)
        shutil.copyfile(clip / "tokenizer.json", source.parent / "tokenizer.json")
    backbone = installed(store, source)
    pixels = torch.from_numpy(transform_images(PICTURES, backbone.config.transform))
    np.testing.assert_allclose(backbone.images(PICTURES), model.clip.frames(pixels[None])[0], atol=1e-5)
    found = backbone.texts(TEXTS)
    expected = model.encode_captions(tokens(backbone))[0].numpy()
    np.testing.assert_allclose(found / np.linalg.norm(found, axis=1, keepdims=True), expected, atol=1e-5)
    assert (backbone.head, backbone.config.text.length) == (None, LENGTH)


def one_head(config):
    return replace(config, vision=replace(config.vision, heads=1), text=replace(config.text, heads=1))


HEADS = {
    "mean": {"head": "mean"},
    "lstm": {"head": "lstm"},
    "transformer": {"head": "transformer", "layers": 1, "mode": "released-2021"},
    "clip2video": {"layers": 1, "centres": 3, "global_weight": 0.3, "mode": "released"},
    "clip2video-mlp": {"layers": 1, "centres": 3, "difference": "mlp", "frame_rate": 5.0},
}


@pytest.mark.parametrize("name", HEADS)
@torch.no_grad()
def test_one_product_is_the_similarity_of_a_fine_tuned_model(store, clip, tmp_path, name):
    kind = Clip2VideoConfig if "clip2video" in name else Clip4ClipConfig
    config = kind(read_clip(clip)[0], max_frames=5, **HEADS[name])
    model = build(config)
    shake(model)
    checkpoint.save(tmp_path / "runs" / "mine" / "best", model, "toy")
    shutil.copyfile(clip / "tokenizer.json", tmp_path / "runs" / "mine" / "best" / "tokenizer.json")
    backbone = installed(store, tmp_path / "runs" / "mine")
    assert backbone.config.name == "mine"
    assert (backbone.config.head.frames, backbone.config.head.rate) == (5, config.frame_rate)
    assert backbone.config.vector_dim == (2 if "clip2video" in name else 1) * backbone.config.dim
    paper = build(replace(config, mode="paper")).eval()  # each clip alone, as search has them
    paper.load_state_dict(model.state_dict())
    queries = paper.encode_captions(tokens(backbone))
    clips = [RNG.normal(size=(count, backbone.config.dim)).astype(np.float32) for count in (1, 2, 5, 3)]
    vectors = backbone.head(clips)
    for frames, vector in zip(clips, vectors, strict=True):
        whole = torch.ones(1, len(frames), dtype=torch.bool)
        wanted = paper.logits(queries, paper.encode_frames(torch.from_numpy(frames)[None], whole))
        found = backbone.texts(TEXTS) @ vector
        np.testing.assert_allclose(found, wanted[:, 0] / paper.clip.scale(), atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        (Clip4ClipConfig, {"head": "tight", "layers": 1}, "tight head reads every query together"),
        (Clip4ClipConfig, {"patch": "3d"}, "3-D patches read neighbouring frames together"),
        (TS2NetConfig, {"patches": 2}, "a TS2-Net weighs the frames of a video by the query"),
    ],
)
def test_what_search_cannot_run_is_refused_with_the_reason(store, clip, tmp_path, kind, options, said):
    checkpoint.save(tmp_path / "run", build(kind(read_clip(clip)[0], **options)), "toy")
    with pytest.raises(WeightsError, match=said):
        installed(store, tmp_path / "run")
    assert backbones.installed(store) == {}


def test_what_is_a_clip(tmp_path, clip):
    assert is_clip(clip)
    assert is_clip(clip / "model.safetensors")
    write_json(tmp_path / "open_clip_config.json", {})
    assert is_clip(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    assert not is_clip(other)
    write_json(other / "config.json", {"model_type": "bert"})
    assert not is_clip(other)
    torch.save({"ce.moe_fc.weight": torch.zeros(3)}, other / "a.pth")
    torch.save({"clip.visual.proj": print}, other / "b.bin")
    (other / "c.bin").write_bytes(b"noise")
    for name in ("a.pth", "b.bin", "c.bin", "nothing"):
        assert not is_clip(other / name)


class Other(torch.nn.Module):
    """A model of another package: a picture is its means, a text the mean of its ids."""

    def __init__(self):
        super().__init__()
        vision, text = {"image_size": SIZE}, {"max_position_embeddings": 9}
        self.config = types.SimpleNamespace(
            vision_config=types.SimpleNamespace(**vision), text_config=types.SimpleNamespace(**text)
        )
        self.weight = torch.nn.Parameter(torch.randn(3, 4))

    def get_image_features(self, pixels):
        return pixels.mean(dim=(2, 3)) @ self.weight

    def get_text_features(self, ids):
        return types.SimpleNamespace(pooler_output=(ids[:, :3].float() / 100) @ self.weight)

    encode_image = get_image_features

    def encode_text(self, ids):
        return self.get_text_features(ids).pooler_output


class Saved:
    """Loads itself, as the processors of `transformers` do, and saves what a test gave it."""

    def __init__(self, write):
        self.write = write

    def from_pretrained(self, path, local_files_only):
        assert local_files_only
        return self

    def save_pretrained(self, folder):
        self.write(folder)


def check(backbone, model, length):
    pixels = torch.from_numpy(transform_images(PICTURES, backbone.config.transform))
    with torch.no_grad():
        np.testing.assert_allclose(backbone.images(PICTURES), model.get_image_features(pixels), atol=1e-5)
        np.testing.assert_allclose(backbone.texts(TEXTS), model.encode_text(tokens(backbone).ids), atol=1e-5)
    assert (backbone.config.text.length, backbone.config.text.shorter) == (length, False)


def test_other_models_for_transformers(store, tmp_path, monkeypatch):
    source = tmp_path / "siglip"
    source.mkdir()
    write_json(source / "config.json", {"model_type": "siglip", "vision_config": {}, "text_config": {}})
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(WeightsError, match=r"model for transformers, which .* pip install transformers"):
        installed(store, source)
    assert backbones.installed(store) == {}
    from pathlib import Path

    model = Other()
    monkeypatch.setattr(model, "from_pretrained", lambda path, local_files_only: model, raising=False)
    package = types.SimpleNamespace(
        AutoModel=model,
        AutoTokenizer=Saved(lambda folder: write_tokenizer(Path(folder))),
        AutoImageProcessor=Saved(
            lambda folder: write_json(Path(folder) / "preprocessor_config.json", PREPROCESSOR)
        ),
    )
    monkeypatch.setitem(sys.modules, "transformers", package)
    backbone = installed(store, source)
    check(backbone, model, 9)
    assert backbone.config.family == "siglip"


@pytest.mark.parametrize("own", [False, True])
def test_models_of_open_clip(store, tmp_path, monkeypatch, own):
    from pathlib import Path

    from wordreel.lab.checkpoints import export_backbone as module

    source = tmp_path / "MobileCLIP"
    source.mkdir()
    described = {"embed_dim": 4, "text_cfg": {"context_length": 7}, "vision_cfg": {}}
    write_json(source / "open_clip_config.json", {"model_cfg": described})
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(WeightsError, match=r"model for open_clip, which .* pip install open-clip-torch"):
        installed(store, source)
    model = Other()
    transform = {"size": (SIZE, SIZE), "mean": (0.5,) * 3, "std": (0.5,) * 3, "interpolation": "bilinear",
                 "resize_mode": "shortest", "fill_color": 0, "mode": "RGB"}  # fmt: skip
    tokenizer = types.SimpleNamespace(save_pretrained=lambda folder: write_tokenizer(Path(folder)))
    package = types.SimpleNamespace(
        create_model=lambda name: model if name == f"local-dir:{source}" else None,
        get_model_preprocess_cfg=lambda given: transform,
        get_tokenizer=lambda name: types.SimpleNamespace(**({} if own else {"tokenizer": tokenizer})),
    )
    write_tokenizer(tmp_path)
    held = types.SimpleNamespace(file=lambda name: tmp_path / "tokenizer.json")
    monkeypatch.setattr(module, "WeightStore", lambda: held)
    monkeypatch.setitem(sys.modules, "open_clip", package)
    backbone = installed(store, source)
    check(backbone, model, 7)
    assert json.loads((store.root / "backbones" / "mobileclip" / "config.json").read_text()) == described
    assert backbone.config.transform.interpolation == "bilinear"
