"""The stored sizes are those of the modules, to the last digit; so are those that papers state."""

from dataclasses import asdict, replace

import pytest

from wordreel.lab.models import registry
from wordreel.lab.models.clip import config as clip_config
from wordreel.lab.models.config import (
    ExpertConfig,
    MMTConfig,
    TextConfig,
    TransformerConfig,
    from_json,
    to_json,
)
from wordreel.lab.models.registry import VIDEO_TEXT_MODELS, parameters
from wordreel.lab.training import recipe as recipes

torch = pytest.importorskip("torch")
GPT = TransformerConfig(40_478, 768, 12, 12, 3072, 512, 0)
GPT2 = TransformerConfig(50_257, 768, 12, 12, 3072, 1024, 0)


def size_of(build, config):
    with torch.device("meta"):
        return sum(p.numel() for p in build(config).parameters())


def module_sizes(configs, video_configs):
    from wordreel.lab.models.build import build

    return {name: size_of(build, config) for name, config in configs.items()} | {
        name: size_of(build, config) for name, config in video_configs.items()
    }


def test_models_have_the_stored_sizes():
    models = {name: entry.make() for name, entry in registry.MODELS.items()}
    video_models = {name: entry.make() for name, entry in VIDEO_TEXT_MODELS.items()}
    assert module_sizes(models, video_models) == parameters()["models"]


def test_recipes_have_the_stored_sizes():
    loaded = [recipes.load(name) for name in recipes.names()]
    models, video_models = (
        {recipe.name: recipe.model for recipe in loaded if recipe.reads_frames == frames}
        for frames in (False, True)
    )
    assert module_sizes(models, video_models) == parameters()["recipes"]


def test_published_sizes():
    sizes = parameters()["models"]
    assert (sizes["ce"], sizes["moee"], sizes["mmt"]) == (183_448_607, 400_410_129, 133_357_063)
    assert sizes["clip4clip-mean"] == 151_277_313
    assert parameters()["recipes"]["ce-queryd"] == 30_821_146


def test_gpt_sizes_are_the_published_ones():
    from wordreel.lab.models.text.caption_encoder import caption_encoder

    assert size_of(caption_encoder, TextConfig("gpt", pool="mean", network=GPT)) == 116_534_784
    assert size_of(caption_encoder, TextConfig("gpt2", pool="mean", network=GPT2)) == 124_439_808


@pytest.mark.parametrize("name", registry.MODELS)
def test_released_models_have_the_same_sizes_and_configurations_survive_json(name):
    from wordreel.lab.models.build import build

    config = replace(registry.MODELS[name].make(), mode="released")
    assert size_of(build, config) == parameters()["models"][name]
    assert from_json(to_json(config)) == config


@pytest.mark.parametrize("name", VIDEO_TEXT_MODELS)
def test_configurations_of_video_text_models_survive_json(name):
    config = VIDEO_TEXT_MODELS[name].make()
    assert clip_config.from_json(asdict(config)) == config


def test_configurations_are_checked():
    with pytest.raises(ValueError, match="clusters"):
        ExpertConfig("speech", 300, "vlad")
    with pytest.raises(ValueError, match="type_id"):
        MMTConfig((ExpertConfig("a", 3), ExpertConfig("b", 3)), TextConfig(pool="mean"))
