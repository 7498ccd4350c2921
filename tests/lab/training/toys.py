"""Small synthetic sets that can be learned by heart, and recipes for them."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from wordreel.lab.datasets.types import Caption
from wordreel.lab.models.config import (
    CEConfig,
    ExpertConfig,
    MMTConfig,
    MoEEConfig,
    TextConfig,
    TransformerConfig,
)
from wordreel.lab.training.data.packed import Packed, pack
from wordreel.lab.training.data.pairs import Pairs
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.settings import (
    DataSettings,
    LossSettings,
    OptimiserSettings,
    RunSettings,
    ScheduleSettings,
)
from wordreel.lab.training.training_data import TrainingData

torch.set_num_threads(1)  # tiny products: threads only get in each other's way

EXPERTS = (
    ExpertConfig("scene", 6),
    ExpertConfig("sound", 5, "vlad", 2, max_tokens=4),
    ExpertConfig("face", 4),
)
TEXT = TextConfig("vectors", 7, "vlad", 3, 1, max_tokens=5)
NETWORK = TransformerConfig(30, 8, 1, 2, 16, 10, 2)
BERT = TextConfig("bert", 8, "cls", network=NETWORK, max_tokens=5)
TIMED = tuple(replace(e, pool="mean", clusters=0, max_tokens=3, type_id=n + 1) for n, e in enumerate(EXPERTS))
CONFIGS: dict[str, Any] = {
    "ce": CEConfig(EXPERTS, TEXT, 8),
    "moee": MoEEConfig(EXPERTS, TEXT),
    "mmt": MMTConfig(TIMED, BERT, 8, layers=1, heads=2, inner=16, positions=8, types=5, dropout=0.1),
}


def toy_pairs(many=12, captions=3, seed=0, name="toy", words=True, experts=EXPERTS):
    """Videos of a few rows per expert; each may lack any but the first. Captions are drawn apart."""
    rng = np.random.default_rng(seed)
    rows = {}
    for number, expert in enumerate(experts):
        lengths = rng.integers(1, 7, many)
        if number:
            lengths[rng.random(many) < 0.3] = 0
        values = [rng.normal(size=(count, expert.dim)).astype(np.float32) for count in lengths]
        times = [np.arange(count, dtype=np.float32) for count in lengths]
        rows[expert.name] = pack(values, times, np.zeros((0, expert.dim), np.float32))
    told = tuple(
        tuple(Caption(f"{name} {video} {n}") for n in range(int(rng.integers(1, captions + 1))))
        for video in range(many)
    )
    vectors = tuple(
        tuple(rng.normal(size=(int(rng.integers(1, 6)), 7)).astype(np.float32) for _ in here) for here in told
    )
    return Pairs(name, tuple(f"{name}{n}" for n in range(many)), rows, told, vectors if words else None)


def words_of(found, config, seed=3):
    """What encoding would give: the pairs' own vectors, or numbers of words."""
    if config.text.words == "vectors":
        return pack([word for words in found.words for word in words])
    rng = np.random.default_rng(seed)
    return pack([rng.integers(1, 30, rng.integers(2, 6)) for _ in range(int(found.counts.sum()))])


def toy_data(config, many=12, val=True, **more):
    pairs = toy_pairs(many, **more)
    words = words_of(pairs, config)
    return TrainingData(pairs, words, pairs if val else None, words if val else None)


def toy_recipe(kind="ce", **changes):
    """Fields of any section by name: `toy_recipe("ce", epochs=3, margin=0.1)`."""
    recipe = Recipe(
        "toy",
        CONFIGS[kind],
        optimiser=OptimiserSettings("adam", 5e-3),
        schedule=ScheduleSettings("step", 0.99),
        loss=LossSettings(margin=0.2),
        data=DataSettings(),
        run=RunSettings(epochs=3, batch=5, save_minutes=0.0),
    )
    for key, value in changes.items():
        section = next(
            s for s in ("run", "loss", "optimiser", "schedule", "data") if hasattr(getattr(recipe, s), key)
        )
        recipe = replace(recipe, **{section: replace(getattr(recipe, section), **{key: value})})
    return recipe


def empty(dim, many):
    return Packed(np.zeros((0, dim), np.float32), np.zeros(many, np.int64), np.zeros(0, np.float32))
