"""Recipes hold the published numbers; freezing and groups follow the released code."""

import pytest

torch = pytest.importorskip("torch")

from tests.lab.models.clip.tiny_config import tiny_clip  # noqa: E402

from wordreel.errors import TrainingError  # noqa: E402
from wordreel.lab.models.build import build  # noqa: E402
from wordreel.lab.models.clip.config import Clip4ClipConfig  # noqa: E402
from wordreel.lab.training import recipe as recipes  # noqa: E402
from wordreel.lab.training.init_weights import freeze  # noqa: E402
from wordreel.lab.training.optimisers import parameter_groups  # noqa: E402

DATASETS = ("msrvtt-9k", "msrvtt-7k", "msvd", "lsmdc", "didemo", "activitynet", "vatex")
MODELS = (
    "clip4clip-mean",
    "clip4clip-lstm",
    "clip4clip-transformer",
    "clip4clip-tight",
    "clip2video",
    "ts2net",
)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("model", MODELS)
def test_published_numbers(model, dataset):
    recipe = recipes.load(f"{model}-{dataset}")
    long = dataset in ("didemo", "activitynet")
    assert (recipe.model.max_frames, recipe.model.max_words) == ((64, 64) if long else (12, 32))
    assert recipe.data.rule == ("paragraph" if long else "all")
    assert (recipe.run.epochs, recipe.run.batch, recipe.run.seed) == (5, 128, 42)
    assert (recipe.optimiser.lr, recipe.optimiser.backbone_lr) == (1e-4, 1e-7)
    assert (recipe.optimiser.weight_decay, recipe.optimiser.clip, recipe.start.frozen_layers) == (0.2, 1.0, 0)
    rate = 1.0
    if model == "clip2video":
        rate = 5.0 if dataset in ("msvd", "vatex") else 2.5
    assert recipe.model.frame_rate == rate
    if model == "clip2video":
        assert recipe.model.centres == (7 if dataset == "vatex" else 5)


def module(patch="2d"):
    return build(
        Clip4ClipConfig(tiny_clip(), head="transformer", patch=patch, layers=1, max_frames=3, max_words=8)
    )


def slow_frozen(name, layers):
    """The released rule, clause by clause, without its mistake about the 3-D patch."""
    for top in ("ln_final.", "text_projection", "logit_scale", "visual.ln_post.", "visual.proj"):
        if name.find(top) == 0:
            return False
    for blocks in ("visual.transformer.resblocks.", "transformer.resblocks."):
        if name.find(blocks) == 0:
            return int(name.split(".resblocks.")[1].split(".")[0]) < layers
    return not name.startswith("visual.conv2.")


@pytest.mark.parametrize("patch", ["2d", "3d"])
@pytest.mark.parametrize("layers", [0, 1, 2])
def test_frozen_layers_are_those_of_the_released_rule(layers, patch):
    made = module(patch)
    freeze(made, layers)
    frozen = {name for name, p in made.clip.named_parameters() if not p.requires_grad}
    assert frozen == {name for name, _ in made.clip.named_parameters() if slow_frozen(name, layers)}
    assert "visual.conv1.weight" in frozen
    assert all(p.requires_grad for name, p in made.named_parameters() if not name.startswith("clip."))


def test_groups_are_the_four_published_ones():
    settings = recipes.load("clip4clip-transformer-msvd").optimiser
    made = module()
    names = {p: name for name, p in made.named_parameters()}
    groups = {
        (group["lr"], group["weight_decay"]): {names[p] for p in group["params"]}
        for group in parameter_groups(settings, made)
    }
    assert set(groups) == {(lr, decay) for lr in (1e-4, 1e-7) for decay in (0.0, 0.2)}
    assert all(name.startswith("clip.") == (lr == 1e-7) for (lr, _), some in groups.items() for name in some)
    assert all(("bias" in name) == (decay == 0) for (_, decay), some in groups.items() for name in some)
    assert "clip.visual.ln_post.weight" in groups[1e-7, 0.2]  # CLIP's norms decay, as published


def test_settings_of_features_are_refused():
    with pytest.raises(TrainingError, match=r"run.expert_dropout is for models that read features"):
        recipes.load("small-clip", ["run.expert_dropout=0.1"])
    with pytest.raises(TrainingError, match=r"frames.crop is for models that read frames"):
        recipes.load("ce-msvd", ["frames.crop=0.5"])
    with pytest.raises(TrainingError, match="did you mean"):
        recipes.load("clip4clip-mean-msdv")
    with pytest.raises(TrainingError, match=r"frames\.crop"):
        recipes.load("small-clip", ["frames.crop=big"])


def test_a_file_may_inherit(tmp_path):
    (tmp_path / "mine.toml").write_text('inherit = "ts2net-msvd"\n[run]\nepochs = 2\n')
    mine = recipes.load(tmp_path / "mine.toml")
    assert mine.reads_frames
    assert (mine.run.epochs, mine.run.batch, mine.model.kind) == (2, 128, "ts2net")
