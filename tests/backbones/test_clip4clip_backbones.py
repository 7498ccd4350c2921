"""CLIP4Clip checkpoints as backbones: the towers are installed, and the head with them."""

import shutil

import numpy as np
import pytest
from tests.tiny_backbone import write_clip

from wordreel.backbones import installed as backbones
from wordreel.backbones.config import FrameHeadConfig
from wordreel.backbones.frame_head import FrameHead, head_shapes
from wordreel.backbones.layouts import to_openai
from wordreel.backbones.read_backbone import read_backbone
from wordreel.errors import WeightsError
from wordreel.runtime.store import WeightStore

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(0)


@pytest.fixture
def store(tmp_path):
    return WeightStore(tmp_path / "weights")


@pytest.fixture
def clip(tmp_path):
    return write_clip(tmp_path / "clip")


def write_published(path, clip, head):
    """A CLIP's weights under `clip.` with a head's beside them, and the CLIP's tokenizer."""
    towers = to_openai(read_backbone(clip)[1])
    arrays = {**{f"clip.{key}": towers[key] for key in towers}, **head}
    path.parent.mkdir(exist_ok=True)
    torch.save({key: torch.from_numpy(np.array(value)) for key, value in arrays.items()}, path)
    copy_tokenizer(clip, path.parent)
    return path


def copy_tokenizer(clip, folder):
    for name in ("vocab.json", "merges.txt"):
        shutil.copyfile(clip / name, folder / name)


def add(store, source):
    assert backbones.is_backbone(store, str(source))
    return backbones.install(store, backbones.plan(store, str(source)))


@pytest.mark.parametrize("kind", ["mean", "lstm", "transformer"])
def test_a_published_file_is_installed_with_its_head(store, tmp_path, clip, kind):
    config, _ = read_backbone(clip)
    shapes = head_shapes(FrameHeadConfig(kind), config.dim, config.text.length)
    head = {key: RNG.normal(0, 0.2, shape).astype(np.float32) for key, shape in shapes.items()}
    source = write_published(tmp_path / "ckpt_toy" / "pytorch_model.bin.2", clip, head)
    assert add(store, source) == "ckpt_toy"
    backbone = backbones.open_backbone(store, "ckpt_toy")
    frames = RNG.normal(size=(20, config.dim)).astype(np.float32)
    assert backbone.config.head == FrameHeadConfig(kind, 12, 4, backbone.config.text.heads)
    expected = FrameHead(backbone.config.head, config.dim, head)([frames])
    np.testing.assert_array_equal(backbone.head([frames]), expected)
    assert backbones.open_backbone(store, add(store, clip)).head is None


def test_a_training_is_installed_once(store, tmp_path, clip):
    from wordreel.lab.models import checkpoint
    from wordreel.lab.models.clip.build import build_video_text
    from wordreel.lab.models.clip.config import Clip4ClipConfig

    model = build_video_text(Clip4ClipConfig(read_backbone(clip)[0], "transformer", max_frames=5))
    run = tmp_path / "runs" / "mine"
    checkpoint.save(run / "best", model, "toy")
    copy_tokenizer(clip, run / "best")
    assert add(store, run) == add(store, run / "best") == "mine"
    assert backbones.plan(store, str(run)).installed
    backbone = backbones.open_backbone(store, "mine")
    pictures = RNG.integers(0, 256, (2, 32, 32, 3), np.uint8)
    from wordreel.backbones.transform import transform_images

    pixels = torch.from_numpy(transform_images(pictures, backbone.config.transform))
    with torch.no_grad():
        frames = model.eval().clip.frames(pixels[None])
        video = model.encode_frames(frames, torch.ones(1, 2, dtype=torch.bool))[0]
    rows = backbone.images(pictures)
    np.testing.assert_allclose(rows, frames[0], atol=1e-5)
    np.testing.assert_allclose(backbone.head([rows]), video, atol=1e-5)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
@torch.no_grad()
def test_one_product_of_a_clip2video_is_its_similarity(store, tmp_path, clip, precision):
    from wordreel.lab.checkpoints.video_text import load_published
    from wordreel.lab.models.clip.build import build_video_text
    from wordreel.lab.models.clip.config import Clip2VideoConfig
    from wordreel.lab.models.clip.video_text import CaptionBatch

    torch.manual_seed(0)
    state = build_video_text(Clip2VideoConfig(read_backbone(clip)[0], centres=3)).state_dict()
    head = {key: value.numpy() for key, value in state.items() if not key.startswith("clip.")}
    source = write_published(tmp_path / "c2v" / "pytorch_model.bin", clip, head)
    plan = backbones.plan(store, str(source), precision=precision)
    backbone = backbones.open_backbone(store, backbones.install(store, plan))
    assert backbone.config.vector_dim == 2 * backbone.config.dim
    model, texts = load_published(source), ["a cat", "two dogs run"]
    ids, mask = (torch.from_numpy(part) for part in backbone.tokenizer.encode(texts))
    queries = model.encode_captions(CaptionBatch(ids, mask))
    for count in (1, 5, 12):
        frames = RNG.normal(size=(count, backbone.config.dim)).astype(np.float32)
        real = torch.ones(1, count, dtype=torch.bool)
        wanted = model.logits(queries, model.encode_frames(torch.from_numpy(frames)[None], real))
        found = backbone.texts(texts) @ backbone.head([frames]).T
        within = {"fp32": 1e-6, "fp16": 1e-3, "int8": 0.02}[precision]
        np.testing.assert_allclose(found, wanted / model.clip.scale(), atol=within)


def test_what_search_cannot_run_is_refused_with_the_reason(store, tmp_path, clip):
    head = {"cross.pooler.dense.bias": np.zeros(3, np.float32)}
    tight = write_published(tmp_path / "x" / "tight.bin", clip, head)
    with pytest.raises(WeightsError, match="tight head, which reads every query together"):
        add(store, tight)
    head = {"lstm_visual.weight_hh_l0": np.zeros((64, 16), np.float32)}
    half = write_published(tmp_path / "x" / "half.bin", clip, head)
    with pytest.raises(WeightsError, match="it has no frame_position_embeddings"):
        backbones.install(store, backbones.plan(store, str(half)))
    assert backbones.installed(store) == {}
