import numpy as np
import pytest
from tests.lab.models.clip import slow_clip as slow

from wordreel.backbones.config import BackboneConfig, FrameHeadConfig
from wordreel.backbones.frame_head import FrameHead, head_shapes, uniform_rows
from wordreel.errors import WeightsError

DIM, HEADS, LAYERS, POSITIONS = 12, 3, 2, 9
KINDS = ("mean", "lstm", "transformer")


def head(kind: str, frames: int = 5) -> tuple[FrameHead, dict[str, np.ndarray]]:
    config = FrameHeadConfig(kind, frames, LAYERS, HEADS)
    rng = np.random.default_rng(0)
    shapes = head_shapes(config, DIM, POSITIONS)
    weights = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
    return FrameHead(config, DIM, weights), {key: value.astype(float) for key, value in weights.items()}


def clips(*lengths: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [rng.normal(size=(length, DIM)).astype(np.float32) for length in lengths]


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_slow_head(kind, monkeypatch):
    monkeypatch.setattr("wordreel.backbones.frame_head.BATCH", 3)
    made, state = head(kind)
    videos = clips(3, 5, 1, 13)
    chosen = [*videos[:3], videos[3][[0, 3, 6, 9, 12]]]
    slow_heads = {
        "mean": slow.mean_head,
        "lstm": lambda frames: slow.lstm_head(frames, state),
        "transformer": lambda frames: slow.transformer_head(frames, state, LAYERS, HEADS),
    }
    expected = [slow_heads[kind](list(frames.astype(float))) for frames in chosen]
    np.testing.assert_allclose(made(videos), expected, atol=2e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_trained_module(kind):
    torch = pytest.importorskip("torch")
    from tests.lab.models.clip.tiny import shake
    from tests.lab.models.clip.tiny_config import HEADS as HERE
    from tests.lab.models.clip.tiny_config import tiny_clip

    from wordreel.lab.models.clip.clip4clip import Clip4Clip
    from wordreel.lab.models.clip.config import Clip4ClipConfig

    module = Clip4Clip(Clip4ClipConfig(tiny_clip(DIM), kind, layers=LAYERS, max_frames=4, max_words=8)).eval()
    shake(module)
    state = {key: value.numpy() for key, value in module.state_dict().items() if key[:5] != "clip."}
    made = FrameHead(FrameHeadConfig(kind, 4, LAYERS, HERE), DIM, state)
    videos = clips(4, 2)
    padded = torch.zeros(2, 4, DIM)
    padded[0], padded[1, :2] = torch.from_numpy(videos[0]), torch.from_numpy(videos[1])
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    with torch.no_grad():
        expected = module.encode_frames(padded, mask)[0]
    np.testing.assert_allclose(made(videos), expected, atol=1e-5)


def test_rows_are_evenly_spaced():
    assert uniform_rows(3, 12) == [0, 1, 2]
    assert uniform_rows(30, 12) == np.linspace(0, 29, 12, dtype=int).tolist()


def test_weights_are_checked():
    _, state = head("lstm")
    with pytest.raises(WeightsError, match="it has no transformerClip"):
        FrameHead(
            FrameHeadConfig("transformer"), DIM, {"frame_position_embeddings.weight": np.zeros((9, DIM))}
        )
    state["lstm_visual.bias_hh_l0"] = np.zeros(3)
    with pytest.raises(WeightsError, match=r"lstm_visual\.bias_hh_l0 has the shape 3, not 48"):
        FrameHead(FrameHeadConfig("lstm"), DIM, state)
    with pytest.raises(WeightsError, match="describes a head of 3 heads over 10 frames"):
        head("lstm", frames=10)
    with pytest.raises(WeightsError, match="which that network does not have"):
        FrameHead(FrameHeadConfig("mean"), DIM, {"cross.pooler": np.zeros(1)})


def test_a_backbone_carries_its_head():
    config = BackboneConfig("tuned", head=FrameHeadConfig("lstm"))
    assert BackboneConfig.from_json(config.to_json()) == config
