"""Models of transformers and open_clip, exported and run, against the packages themselves."""

import json

import numpy as np
import pytest
from tests.reference.test_transforms import picture
from tests.tiny_backbone import VOCABULARY, write_tokenizer

from wordreel.backbones.installed import install, open_backbone, plan
from wordreel.lab.checkpoints.export_backbone import export_backbone
from wordreel.runtime.store import WeightStore

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
open_clip = pytest.importorskip("open_clip")
transformers = pytest.importorskip("transformers")
image_module = pytest.importorskip("PIL.Image")

TEXTS = ["a dog runs on the beach", "two cats", ""]
TOWER = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2}
IMAGES = np.stack([picture(360, 640), 255 - picture(360, 640)])


def installed(tmp_path, source):
    store = WeightStore(tmp_path / "store")
    return open_backbone(store, install(store, plan(store, str(source)), export=export_backbone))


def near(ours, theirs):
    """As unit vectors, which search compares: CLIP's texts are exported as such."""
    ours, theirs = unit(ours), unit(theirs.numpy())
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def shake(model):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape)


@pytest.mark.parametrize("kind", ["clip", "siglip"])
@torch.no_grad()
def test_models_for_transformers(tmp_path, kind):
    torch.manual_seed(0)
    names = {"clip": ("CLIPConfig", "CLIPModel"), "siglip": ("SiglipConfig", "SiglipModel")}[kind]
    text = {**TOWER, "vocab_size": VOCABULARY, "max_position_embeddings": 16, "projection_size": 32,
            "eos_token_id": VOCABULARY - 1, "bos_token_id": VOCABULARY - 2}  # fmt: skip
    vision = {**TOWER, "image_size": 32, "patch_size": 16}
    more = {"projection_dim": 16} if kind == "clip" else {}
    config = getattr(transformers, names[0])(text_config=text, vision_config=vision, **more)
    model = getattr(transformers, names[1])(config).eval()
    shake(model)
    source = tmp_path / "model"
    model.save_pretrained(source)
    write_tokenizer(source)
    transformers.PreTrainedTokenizerFast(tokenizer_file=str(source / "tokenizer.json")).save_pretrained(
        source
    )
    size = {"height": 32, "width": 32}
    processors = {"clip": transformers.CLIPImageProcessorPil, "siglip": transformers.SiglipImageProcessorPil}
    options = {"size": {"shortest_edge": 32}, "crop_size": size} if kind == "clip" else {"size": size}
    processor = processors[kind](**options)
    processor.save_pretrained(source)
    backbone = installed(tmp_path, source)
    pixels = processor([image_module.fromarray(image) for image in IMAGES], return_tensors="pt")[
        "pixel_values"
    ]
    ids, mask = (torch.from_numpy(part) for part in backbone.tokenizer.encode(TEXTS))
    near(backbone.images(IMAGES), model.get_image_features(pixels).pooler_output)
    given = {"attention_mask": mask.long()} if kind == "clip" else {}
    near(backbone.texts(TEXTS), model.get_text_features(ids, **given).pooler_output)
    assert backbone.config.family == kind


@torch.no_grad()
def test_a_model_of_open_clip(tmp_path):
    torch.manual_seed(0)
    towers = {"layers": 2, "width": 64}
    described = {
        "embed_dim": 32,
        "vision_cfg": {**towers, "image_size": 32, "patch_size": 16},
        "text_cfg": {**towers, "context_length": 16, "vocab_size": 49408, "heads": 2},
    }
    source = tmp_path / "tiny"
    source.mkdir()
    facts = {"mean": [0.5] * 3, "std": [0.25] * 3, "interpolation": "bicubic", "resize_mode": "squash"}
    (source / "open_clip_config.json").write_text(
        json.dumps({"model_cfg": described, "preprocess_cfg": facts})
    )
    model = open_clip.CLIP(**{**described, "vision_cfg": described["vision_cfg"]}).eval()
    shake(model)
    torch.save(model.state_dict(), source / "open_clip_pytorch_model.bin")
    backbone = installed(tmp_path, source)
    preprocess = open_clip.image_transform(
        32,
        is_train=False,
        mean=facts["mean"],
        std=facts["std"],
        resize_mode="squash",
        interpolation="bicubic",
    )
    pixels = torch.stack([preprocess(image_module.fromarray(image)) for image in IMAGES])
    near(backbone.images(IMAGES), model.encode_image(pixels))
    ids = open_clip.get_tokenizer(f"local-dir:{source}")(TEXTS, context_length=16)
    near(backbone.texts(TEXTS), model.encode_text(ids))
