"""Published CLIP2Video and TS2-Net checkpoints into modules and back, key by key."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip.published_layouts import LAYOUTS  # noqa: E402
from tests.lab.models.clip.tiny import captions  # noqa: E402

from wordreel.errors import WeightsError  # noqa: E402
from wordreel.lab.checkpoints import video_text as ts2net  # noqa: E402
from wordreel.lab.checkpoints.video_text import (  # noqa: E402
    convert_video_text,
    load_published,
    save_published,
)
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.checkpoint import load_video_text  # noqa: E402
from wordreel.lab.models.clip.config import Clip2VideoConfig, TS2NetConfig, small_clip  # noqa: E402
from wordreel.lab.models.clip.ts2net import stretched  # noqa: E402
from wordreel.lab.models.clip.video_text import FrameBatch  # noqa: E402
from wordreel.lab.models.registry import VIDEO_TEXT_MODELS  # noqa: E402
from wordreel.runtime.torch_file import read_state_dict  # noqa: E402

CLIP = small_clip("x", size=12, patch=4, width=64, depth=2, dim=64, vocabulary=60, length=20)
TS2NET = TS2NetConfig(CLIP, layers=2, positions=50, max_words=20, mode="released")
UNUSED = (
    "left out text_token_selector and visual_prompt_encoder, which the published program carries and does "
    "not use"
)
SMALL = {
    "attention": Clip2VideoConfig(CLIP, layers=2, centres=3, max_words=20, mode="released"),
    "mlp": Clip2VideoConfig(CLIP, "mlp", layers=2, centres=3, max_words=20, mode="released"),
    "ts2net": TS2NET,
}


def published(config, seed=0):
    """A state of the published program, and the file it writes."""
    torch.manual_seed(seed)
    module = LAYOUTS[config.kind](config)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape) * 0.05)
    return module.state_dict()


def write(path, state):
    torch.save(state, path)
    return path


def own_key(key):
    return key.replace(".attn.net.", ".attn.")


@pytest.mark.parametrize("config", SMALL.values(), ids=SMALL)
def test_every_key_is_taken_and_written_back(tmp_path, config):
    state = published(config)
    path = write(tmp_path / "pytorch_model.bin.2", state)
    module = load_published(path)
    inferred = replace(module.config, backbone=config.backbone)
    assert inferred == config
    loaded = module.state_dict()
    unused = ts2net.unused_parts(state)
    assert loaded.keys() == {own_key(key) for key in state.keys() - unused.keys()}
    for key in state.keys() - unused.keys():
        assert torch.equal(loaded[own_key(key)], state[key]), key
    for given, keys in ((None, state.keys() - unused.keys()), (read_state_dict(path), state.keys())):
        save_published(tmp_path / "again.bin", module, unused=given)
        again = torch.load(tmp_path / "again.bin", weights_only=True)
        assert again.keys() == keys
        assert all(torch.equal(again[key], state[key]) for key in keys)


@pytest.mark.parametrize("name", [name for name in VIDEO_TEXT_MODELS if "clip4clip" not in name])
def test_every_name_and_shape_of_the_published_sizes(name):
    config = VIDEO_TEXT_MODELS[name].make()
    with torch.device("meta"):
        theirs = {key: value.shape for key, value in LAYOUTS[config.kind](config).state_dict().items()}
        ours = {key: value.shape for key, value in build(config).state_dict().items()}
    if isinstance(config, TS2NetConfig):
        assert sum(shape.numel() for shape in ts2net.unused_parts(theirs).values()) == 2_627_584
        assert ts2net.shifted_blocks(theirs) == {10, 11}
        assert ts2net.published_names(ts2net.own_names(theirs), config.shifted_blocks) == {
            key: shape for key, shape in theirs.items() if key not in ts2net.unused_parts(theirs)
        }
        theirs = ts2net.own_names(theirs)
    assert ours == theirs


@torch.no_grad()
def test_more_positions_than_the_checkpoint_has(tmp_path):
    path = write(tmp_path / "pytorch_model.bin", published(TS2NET))
    longer = load_published(path, replace(load_published(path).config, positions=80, max_frames=20))
    table = longer.state_dict()["frame_position_embeddings.weight"]
    torch.testing.assert_close(table, stretched(published(TS2NET)["frame_position_embeddings.weight"], 80))
    pixels = torch.randn(1, 20, 3, 12, 12)
    assert longer(FrameBatch(pixels, torch.ones(1, 20, dtype=torch.bool)), captions()).isfinite().all()


def test_a_folder_of_a_published_checkpoint(tmp_path):
    path = write(tmp_path / "pytorch_model.bin.4", published(TS2NET))
    done = convert_video_text(path, tmp_path / "model", mode="paper", max_frames=4, max_words=12)
    module, facts = load_video_text(tmp_path / "model")
    assert (module.config.mode, module.config.max_frames, module.config.max_words) == ("paper", 4, 12)
    assert facts["training"] == {"converted_from": "pytorch_model.bin.4"}
    assert done.kind == "ts2net"
    assert done.notes == ("assumed a frame rate of 1 a second (--frame-rate)", UNUSED)
    assert (done.mode, done.max_frames, done.max_words, done.head) == ("paper", 4, 12, "")
    assert done.parameters == sum(p.numel() for p in module.parameters())
    longer = convert_video_text(path, tmp_path / "longer", max_frames=15, max_words=12, frame_rate=1)
    assert longer.notes == (
        "mode released: the embedding of a video depends on the longest video of its batch",
        "mode released: similarities change from run to run",
        UNUSED,
        "stretched the table of 50 positions to 60, for 15 frames",
    )
    assert load_video_text(tmp_path / "longer")[0].config.positions == 60


def test_other_checkpoints_are_refused(tmp_path):
    state = published(SMALL["attention"])
    del state["actionClip.resblocks.0.ln_2.bias"]
    with pytest.raises(WeightsError, match=r"it has no actionClip\.resblocks\.0\.ln_2\.bias"):
        load_published(write(tmp_path / "a.bin", state))
    state = published(TS2NET)
    state["clip.visual.transformer.resblocks.1.attn.net.out_proj.bias"] = torch.zeros(3)
    with pytest.raises(WeightsError, match=r"1\.attn\.out_proj\.bias has the shape 3, not 64"):
        load_published(write(tmp_path / "b.bin", state))
    state = {**published(SMALL["attention"]), "emb_center": torch.zeros(())}
    with pytest.raises(WeightsError, match="cannot be converted: CLIP2Video needs a layer, a centre"):
        load_published(write(tmp_path / "d.bin", state))
    state = published(TS2NET)
    del state["frame_position_embeddings.weight"]
    with pytest.raises(WeightsError, match=r"it has no frame_position_embeddings\.weight"):
        load_published(write(tmp_path / "e.bin", state))
    path = write(tmp_path / "f.bin", published(SMALL["mlp"]))
    with pytest.raises(WeightsError, match="max_frames is at least 1 and at most 20, not 64"):
        convert_video_text(path, tmp_path / "model", max_frames=64)
    assert not (tmp_path / "model").exists()
    state = {**published(TS2NET), "cross.pooler.dense.bias": torch.zeros(3)}
    with pytest.raises(WeightsError, match=r"it has cross\.pooler\.dense\.bias"):
        load_published(write(tmp_path / "c.bin", state))
