"""Sizes to the last digit: the formulas, and the modules themselves on the meta device."""

import pytest

from wordreel.lab.models import parameter_counts, registry
from wordreel.lab.models.config import (
    MINILM,
    ExpertConfig,
    MMTConfig,
    TextConfig,
    TransformerConfig,
    from_json,
    to_json,
)

GPT = TransformerConfig(40_478, 768, 12, 12, 3072, 512, 0)
GPT2 = TransformerConfig(50_257, 768, 12, 12, 3072, 1024, 0)
PUBLISHED = {
    "ce-384": 88_618_655,
    "ce-512": 119_507_743,
    "ce-640": 151_117_727,
    "ce": 183_448_607,
    "ce-1024": 250_273_055,
    "ce-without-gating": 181_070_111,
    "moee": 400_410_129,
    "ce-plain": 246_219_775,
    "concat": 369_717,
    "ce-plus": 262_731_071,
    "mmt": 133_357_063,
    "mmt-long": 127_346_434,
    "mmt-coll": 119_691_783,
}


def test_published_sizes_by_formula():
    found = {name: parameter_counts.count_parameters(registry.MODELS[name].make()) for name in PUBLISHED}
    assert found == PUBLISHED


@pytest.mark.parametrize("name", registry.MODELS)
@pytest.mark.parametrize("mode", ["paper", "released"])
def test_modules_have_the_sizes_of_the_formulas(name, mode):
    torch = pytest.importorskip("torch")
    from dataclasses import replace

    from wordreel.lab.models.build import build

    config = registry.MODELS[name].make()
    if name != "reel":  # which no paper describes
        config = replace(config, mode=mode)
    with torch.device("meta"):
        module = build(config)
    assert sum(p.numel() for p in module.parameters()) == parameter_counts.count_parameters(config)
    assert from_json(to_json(config)) == config


def test_the_parts_of_ce():
    assert parameter_counts.parameters_by_part(registry.ce()) == {
        "words": 0,
        "text pooling": 43_834,
        "video pooling": 39_388,
        "mixture weights": 193_545,
        "text units": 153_971_712,
        "projections": 21_492_480,
        "g, first layer": 1_180_416,
        "g, other layers": 1_184_256,
        "h": 0,
        "video gates": 5_342_976,
    }


@pytest.mark.parametrize(
    ("config", "caption", "video"),
    [
        (registry.mmt(), (108_310_272, 4_601_856, 5_383), (3_341_824, 17_097_728)),
        (registry.mmt_long(), (108_310_272, 1_314_816, 1_538), (590_848, 17_128_960)),
    ],
)
def test_the_parts_of_mmt(config, caption, video):
    parts = parameter_counts.parameters_by_part(config)
    assert (parts["words"], parts["text units"], parts["mixture weights"]) == caption
    assert (parts["projections"], parts["transformer"] + parts["token tables"] + parts["pooler"]) == video


@pytest.mark.parametrize(
    "text",
    [
        TextConfig("table", 30, "lstm", lstm=24, vocabulary=50),
        TextConfig("vectors", 30, "vlad", 5, 2),
        TextConfig("gpt", pool="mean", network=GPT),
        TextConfig("gpt2", pool="max", network=GPT2),
        TextConfig("bert", pool="cls", network=MINILM),
    ],
)
def test_captions_have_the_sizes_of_the_formulas(text):
    torch = pytest.importorskip("torch")
    from wordreel.lab.models.text.caption_encoder import caption_encoder

    with torch.device("meta"):
        module = caption_encoder(text)
    assert sum(p.numel() for p in module.parameters()) == parameter_counts.words(
        text
    ) + parameter_counts.pooling(text)


def test_gpt_sizes_are_the_published_ones():
    assert parameter_counts.words(TextConfig("gpt", pool="mean", network=GPT)) == 116_534_784
    assert parameter_counts.words(TextConfig("gpt2", pool="mean", network=GPT2)) == 124_439_808


def test_configurations_are_checked():
    with pytest.raises(ValueError, match="clusters"):
        ExpertConfig("speech", 300, "vlad")
    with pytest.raises(ValueError, match="type_id"):
        MMTConfig((ExpertConfig("a", 3), ExpertConfig("b", 3)), TextConfig(pool="mean"))
