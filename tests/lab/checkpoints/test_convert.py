"""Checkpoints as the published programs write them, loaded without running a thing, against slow twins."""

from collections import OrderedDict
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

from tests.lab.models import twins  # noqa: E402
from tests.lab.models.small import MMT_SMALL, model, text_batch, video_batch  # noqa: E402
from tests.published_checkpoint import save_checkpoint  # noqa: E402
from torch import nn  # noqa: E402

from wordreel.errors import UnsafePickle, WeightsError  # noqa: E402
from wordreel.lab.checkpoints import convert_checkpoint  # noqa: E402
from wordreel.lab.checkpoints.checkpoint_file import PublishedCheckpoint  # noqa: E402
from wordreel.lab.models.batch import ExpertFeatures, TokenBatch  # noqa: E402
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.config import CEConfig, ExpertConfig, MoEEConfig, TextConfig  # noqa: E402
from wordreel.runtime.torch_file import (  # noqa: E402
    Placeholder,
    named_arrays,
    read_checkpoint,
    read_state_dict,
)

EXPERTS = (("audio", 4, 2, 5), ("face", 6, 0, 0), ("ocr", 3, 3, 4), ("scene", 5, 0, 0))
OURS = tuple(
    ExpertConfig(name, dim, "vlad" if k else "mean", k, max_tokens=most) for name, dim, k, most in EXPERTS
)
TEXT = TextConfig("vectors", 7, "vlad", 3, 1, max_tokens=6)


def load_published(path, config):
    content = read_checkpoint(path, placeholders=True)
    return convert_checkpoint.load_joint_embedding(named_arrays(content, path.name), config)


def write(path, module, extra=None, old=False, drop=()):
    state = {k: v for k, v in {**module.state_dict(), **(extra or {})}.items() if k not in drop}
    return save_checkpoint(path, state, OrderedDict(arch={"type": "CENet"}, seed=0), old)


def inputs(seed=3):
    """What the twin wants (zeros for padding and missing) and what we want."""
    torch.manual_seed(seed)
    available = torch.tensor([[1, 1, 1, 1], [0, 1, 1, 1], [1, 0, 0, 1]], dtype=torch.bool)
    theirs, ours = [], {}
    for m, (name, dim, clusters, most) in enumerate(EXPERTS):
        if clusters:
            mask = (torch.arange(most) < torch.tensor([[2], [most], [1]])) & available[:, m, None]
            values = torch.randn(3, most, dim) * mask[:, :, None]
            theirs.append(values)
            ours[name] = ExpertFeatures(values[:, : most - 1] if not mask[:, -1].any() else values,
                                  mask[:, : most - 1] if not mask[:, -1].any() else mask)  # fmt: skip
        else:
            values = torch.randn(3, dim) * available[:, m, None]
            theirs.append(values)
            ours[name] = ExpertFeatures(values[:, None], available[:, m, None])
    mask = torch.arange(6) < torch.tensor([[3], [5]])
    text = torch.randn(2, 6, 7) * mask[:, :, None]
    return (theirs, available, text), (ours, TokenBatch(text[:, :5], mask[:, :5]))


@pytest.mark.parametrize("old", [False, True], ids=["zip", "stream"])
@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("ce", CEConfig(OURS, TEXT, 8, mode="released")),
        ("plain", CEConfig(OURS, TEXT, 8, gating=False, mode="released")),
        ("moee", MoEEConfig(OURS, TEXT, mode="released")),
    ],
)
@torch.no_grad()
def test_ce_checkpoints_give_the_published_similarities(tmp_path, kind, config, old):
    torch.manual_seed(0)
    twin = twins.stir(twins.Net(kind, EXPERTS, (7, 3, 1), 8))
    legacy = {"ce.moe_fc_bottleneck1.weight": torch.zeros(2, 2)}
    found = load_published(write(tmp_path / "trained_model.pth", twin, legacy, old), config)
    theirs, ours = inputs()
    torch.testing.assert_close(found.similarities(*ours), twin(*theirs), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_training_statistics_of_the_released_gating_are_the_published_ones(tmp_path):
    torch.manual_seed(0)
    twin = twins.stir(twins.Net("ce", EXPERTS, (7, 3, 1), 8))
    found = load_published(write(tmp_path / "a.pth", twin), CEConfig(OURS, TEXT, 8, mode="released"))
    theirs, ours = inputs()
    twin.train(), found.train()
    torch.testing.assert_close(found.similarities(*ours), twin(*theirs), rtol=1e-4, atol=1e-5)
    twin.eval(), found.eval()
    torch.testing.assert_close(found.similarities(*ours), twin(*theirs), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_moee_checkpoints_of_its_own_code(tmp_path):
    torch.manual_seed(0)
    experts = (("face", 6, 0, 0), ("audio", 4, 2, 5))
    twin = twins.stir(twins.Net("moee", experts, (7, 3, 0), 0, own=True))
    ours = tuple(ExpertConfig(n, d, "vlad" if k else "mean", k, max_tokens=most) for n, d, k, most in experts)
    config = MoEEConfig(ours, replace(TEXT, ghosts=0), mode="released")
    path = tmp_path / "moee.pth"
    torch.save(twin.state_dict(), path)
    found = load_published(path, config)
    (theirs, available, text), (video, tokens) = inputs()
    wanted = twin([theirs[1], theirs[0]], available[:, [1, 0]], text)
    torch.testing.assert_close(found.similarities(video, tokens), wanted, rtol=1e-4, atol=1e-5)


def mmt_names(module):
    """Our MMT's state under the published names."""
    config, state = module.settings, module.state_dict()
    made = {}
    for m, name in enumerate(config.names):
        at = slice(m * config.dim, (m + 1) * config.dim)
        for part in ("weight", "bias"):
            made[f"text_gu.{name}.fc.{part}"] = state[f"text.fc.{part}"][at]
            made[f"text_gu.{name}.cg.fc.{part}"] = state[f"text.gates.{part}"][m]
            made[f"video_dim_reduce.{name}.fc.{part}"] = state[f"project.{m}.{part}"]
            made[f"moe_fc_txt.{name}.{part}"] = state[f"mixture.{part}"][m : m + 1]
        for part in ("weight", "bias", "running_mean", "running_var"):
            made[f"text_gu.{name}.cg.batch_norm.{part}"] = state[f"text.gates.norms.{part}"][at]
        made[f"text_gu.{name}.cg.batch_norm.num_batches_tracked"] = torch.tensor(3)
        if config.encoder == "coll":
            for part in ("weight", "bias"):
                made[f"video_GU.{name}.cg.fc.{part}"] = state[f"pairs.gates.{part}"][m]
            for part in ("weight", "bias", "running_mean", "running_var"):
                made[f"video_GU.{name}.cg.batch_norm2.{part}"] = state[f"pairs.gates.norms.{part}"][at]
                made[f"video_GU.{name}.cg.batch_norm.{part}"] = state[f"pairs.attention_norms.{part}"][at]
    for key, value in state.items():
        if key.startswith("caption.words."):
            made[key.replace("caption.words.", "txt_bert.")] = value
        elif key.startswith("caption.lstm."):
            made[key.replace("caption.lstm.", "text_pooling.")] = value
        elif key.startswith(("transformer.encoder", "transformer.pooler")):
            made[key.replace("transformer.", "vid_bert.").replace("LayerNorm", "layer_norm")] = value
        elif key.startswith("transformer."):
            renamed = key.replace("transformer.", "vid_bert.embeddings.").replace("LayerNorm", "layer_norm")
            made[renamed] = value
        elif key.startswith("pairs.") and key.split(".")[1] in ("g1", "g2", "f1", "f2"):
            made[key.replace("pairs.g", "g_reason_").replace("pairs.f", "f_reason_")] = value
        elif key.startswith("pairs.unused.0"):
            made[key.replace("pairs.unused.0", "f_reason_3")] = value
        elif key.startswith("pairs.unused."):
            number = int(key.split(".")[2]) - 1
            made[f"batch_norm_{('g1', 'g2', 'f1', 'f2')[number]}.{key.split('.')[3]}"] = value
    made["txt_bert.embeddings.position_ids"] = torch.arange(20)[None]
    return made


class Bag(nn.Module):
    """A module that is only its state."""

    def __init__(self, state):
        super().__init__()
        self._state = state

    def state_dict(self):
        return self._state


@pytest.mark.parametrize(
    "config",
    [
        replace(MMT_SMALL, mode="released"),
        replace(MMT_SMALL, encoder="coll", mode="released"),
        replace(MMT_SMALL, encoder="none", text=replace(MMT_SMALL.text, pool="lstm", lstm=9)),
    ],
    ids=["mmt", "coll", "none"],
)
@torch.no_grad()
def test_mmt_checkpoints(tmp_path, config):
    source = twins.stir(model(config))
    path = write(tmp_path / "trained_model.pth", Bag(mmt_names(source)))
    found = load_published(path, config)
    video, text = video_batch(config), text_batch(config)
    torch.testing.assert_close(found.similarities(video, text), source.similarities(video, text))
    assert not found.training


@torch.no_grad()
def test_a_shorter_table_of_times_is_filled_up_with_zeros(tmp_path):
    source = twins.stir(model(MMT_SMALL))
    path = write(tmp_path / "howto.pth", Bag(mmt_names(source)))
    found = load_published(path, replace(MMT_SMALL, positions=20))
    table = found.transformer.position_embeddings.weight
    assert torch.equal(table[:12], source.transformer.position_embeddings.weight)
    assert not table[12:].any()


def test_what_does_not_fit_is_named(tmp_path):
    config = CEConfig(OURS, TEXT, 8)
    twin = twins.Net("ce", EXPERTS, (7, 3, 1), 8)
    short = write(tmp_path / "short.pth", twin, drop=("ce.g_reason_1.weight",))
    with pytest.raises(WeightsError, match=r"missing ce\.g_reason_1\.weight"):
        load_published(short, config)
    more = write(tmp_path / "more.pth", twin, {"ce.classifier.weight": torch.zeros(3)})
    with pytest.raises(WeightsError, match=r"unexpected ce\.classifier\.weight"):
        load_published(more, config)
    with pytest.raises(WeightsError, match="not of this configuration"):
        load_published(write(tmp_path / "a.pth", twin), replace(config, dim=9))
    with pytest.raises(WeightsError, match="missing"):
        load_published(write(tmp_path / "b.pth", twin), MMT_SMALL)


def test_foreign_objects_are_passed_over_only_when_asked(tmp_path):
    path = write(tmp_path / "a.pth", nn.Linear(2, 3))
    with pytest.raises(UnsafePickle, match="parse_config"):
        read_state_dict(path)
    found = read_checkpoint(path, placeholders=True)
    assert isinstance(found["config"], Placeholder)
    assert set(found["state_dict"]) == {"weight", "bias"}


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        import os

        return os.mkdir, (str(self.path),)


def test_nothing_of_a_hostile_checkpoint_runs(tmp_path):
    path, trace = tmp_path / "a.pth", tmp_path / "trace"
    for content in ({"weight": torch.ones(2), "config": Bomb(trace)}, {"weight": Bomb(trace)}):
        torch.save({"state_dict": content}, path)
        with pytest.raises(WeightsError):
            PublishedCheckpoint.read(path)
    assert not trace.exists()


def test_published_names_of_our_own_models_cover_every_parameter():
    module = build(replace(MMT_SMALL, encoder="coll"))
    count = sum(
        v.numel() for k, v in mmt_names(module).items() if not k.endswith(("tracked", "position_ids"))
    )
    ours = sum(v.numel() for k, v in module.state_dict().items() if not k.endswith("tracked"))
    assert count == ours
