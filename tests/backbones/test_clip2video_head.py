import numpy as np
import pytest
from tests.lab.models.clip import slow_papers

from wordreel.backbones.clip2video_head import clip2video_shapes, join
from wordreel.backbones.config import BackboneConfig, FrameHeadConfig
from wordreel.backbones.frame_head import FrameHead
from wordreel.errors import WeightsError

DIM, HEADS, LAYERS = 12, 3, 2
SHARE = 0.3
CONFIG = FrameHeadConfig("clip2video", 5, LAYERS, HEADS, SHARE)
TABLES = {"frame_position_embeddings.weight": np.zeros((9, DIM)), "emb_center": np.zeros((4, DIM))}


def weights(matrix: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    given = {**TABLES, **({"frame2t_projection": np.zeros((DIM, DIM))} if matrix else {})}
    shapes = clip2video_shapes(given, DIM, LAYERS)
    return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize("matrix", [False, True])
def test_equals_the_slow_head(matrix):
    state = weights(matrix)
    rng = np.random.default_rng(1)
    clips = [rng.normal(size=(length, DIM)).astype(np.float32) for length in (3, 5, 1, 9)]
    found = FrameHead(CONFIG, DIM, state)(clips)
    wide = {key: value.astype(float) for key, value in state.items()}
    for row, clip in zip(found, [*clips[:3], clips[3][::2]], strict=True):
        given = [list(clip.astype(float))], [[True] * len(clip)]
        ((whole, aligned),) = slow_papers.clip2video_videos(*given, wide, LAYERS, HEADS)
        expected = np.concatenate([np.sqrt(SHARE) * whole, np.sqrt(1 - SHARE) * aligned])
        np.testing.assert_allclose(row, expected, atol=2e-6)


def test_one_product_is_the_mixture_of_two():
    rng = np.random.default_rng(2)
    a, b, c, d = (x / np.linalg.norm(x) for x in rng.normal(size=(4, DIM)).astype(np.float32))
    mixed = float(join(a, b, SHARE) @ join(c, d, SHARE))
    assert mixed == pytest.approx(SHARE * float(a @ c) + (1 - SHARE) * float(b @ d), abs=1e-6)


def test_weights_are_checked():
    state = weights(False)
    with pytest.raises(WeightsError, match="is not a CLIP2Video: it has no weight_center"):
        FrameHead(CONFIG, DIM, {key: value for key, value in state.items() if key != "weight_center"})
    assert BackboneConfig("tuned", head=CONFIG).vector_dim == 1024
    assert BackboneConfig("tuned", head=FrameHeadConfig("lstm")).vector_dim == 512
