"""CLIP2Video's texts from the ONNX tower against the module that is trained."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip.tiny import captions, shake  # noqa: E402
from tests.lab.models.clip.tiny_config import HEADS, tiny_clip  # noqa: E402

from wordreel.backbones.clip2video_head import join  # noqa: E402
from wordreel.backbones.config import FrameHeadConfig  # noqa: E402
from wordreel.backbones.layouts import to_huggingface  # noqa: E402
from wordreel.backbones.towers import build_towers  # noqa: E402
from wordreel.lab.models.clip.clip2video import Clip2Video  # noqa: E402
from wordreel.lab.models.clip.config import Clip2VideoConfig  # noqa: E402
from wordreel.runtime.sessions import Network  # noqa: E402


@torch.no_grad()
def test_joined_vectors_are_those_of_the_module(tmp_path):
    config = Clip2VideoConfig(tiny_clip(), layers=1, centres=3, global_weight=0.3, max_words=8)
    module = Clip2Video(config).eval()
    shake(module)
    state = {key: value.numpy() for key, value in module.state_dict().items()}
    backbone = replace(config.backbone, head=FrameHeadConfig("clip2video", 12, 1, HEADS, 0.3, 3))
    towers = dict(to_huggingface({key[5:]: value for key, value in state.items() if key.startswith("clip.")}))
    towers |= {f"head.{key}": state[key] for key in ("weight_center", "emb_center")}
    _, text = build_towers(backbone, towers)
    batch = captions(lengths=(4, 7, 2))
    wanted = join(*(part.numpy() for part in module.encode_captions(batch)), 0.3)
    onnx.save(text, tmp_path / "text.onnx")
    found = Network(tmp_path / "text.onnx")(ids=batch.ids.numpy())["features"]
    assert found.shape == (3, backbone.vector_dim)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
