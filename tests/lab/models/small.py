"""Small models and random batches for the tests of whole models."""

from dataclasses import replace

import torch

from wordreel.lab.models.batch import ExpertFeatures, TokenBatch
from wordreel.lab.models.build import build
from wordreel.lab.models.config import (
    CEConfig,
    ConcatConfig,
    ExpertConfig,
    MMTConfig,
    MoEEConfig,
    TextConfig,
    TransformerConfig,
)

torch.set_num_threads(1)  # tiny products: threads only get in each other's way

EXPERTS = (
    ExpertConfig("audio", 4, "vlad", 2, max_tokens=5),
    ExpertConfig("face", 6),
    ExpertConfig("ocr", 3, "vlad", 3, 1, max_tokens=4),
    ExpertConfig("scene", 5),
)
TEXT = TextConfig("vectors", 7, "vlad", 3, 1, max_tokens=6)
TINY = TransformerConfig(40, 8, 2, 2, 16, 20, 2)
BERT = TextConfig("bert", 8, "cls", network=TINY, max_tokens=6)
TIMED = tuple(
    replace(expert, pool="mean", clusters=0, ghosts=0, max_tokens=5, type_id=number + 1)
    for number, expert in enumerate(EXPERTS)
)
MMT_SMALL = MMTConfig(TIMED, BERT, 8, layers=2, heads=2, inner=16, positions=12, types=6)
CONFIGS = {
    "ce": CEConfig(EXPERTS, TEXT, 8),
    "ce sequential": CEConfig(EXPERTS, TEXT, 8, sequential=True, with_self=True, pairs="mean", h_layers=1),
    "ce without gating": CEConfig(EXPERTS, TEXT, 8, gating=False),
    "moee": MoEEConfig(EXPERTS, TEXT),
    "even": MoEEConfig(EXPERTS, TEXT, learned_weights=False),
    "concat": ConcatConfig(EXPERTS, TEXT),
    "mmt": MMT_SMALL,
    "mmt mean": replace(MMT_SMALL, aggregate="mean"),
    "mmt zero": replace(MMT_SMALL, aggregate="zero"),
    "mmt shuffled": replace(MMT_SMALL, inputs="shuffled"),
    "mmt pooled": replace(MMT_SMALL, inputs="pooled"),
    "coll": replace(MMT_SMALL, encoder="coll"),
    "none": replace(MMT_SMALL, encoder="none"),
}


def model(config, seed=0):
    torch.manual_seed(seed)
    return build(config).eval()


def video_batch(config, many=5, rows=5, seed=1, missing=0.3):
    """Every video has the last expert, and each other one with some chance; padding holds NaN."""
    torch.manual_seed(seed)
    batch = {}
    for number, expert in enumerate(config.experts):
        lengths = torch.randint(1, rows + 1, (many,))
        if number < len(config.experts) - 1:
            lengths[torch.rand(many) < missing] = 0
            lengths[number] = 0 if missing else lengths[number]
        mask = torch.arange(rows) < lengths[:, None]
        values = torch.randn(many, rows, expert.dim)
        values[~mask] = torch.nan
        times = torch.rand(many, rows) * 15
        times[torch.rand(many, rows) < 0.2] = torch.nan
        batch[expert.name] = ExpertFeatures(values, mask, times)
    return batch


def text_batch(config, many=4, tokens=6, seed=2):
    torch.manual_seed(seed)
    mask = torch.arange(tokens) < torch.randint(1, tokens + 1, (many, 1))
    if config.text.words == "vectors":
        values = torch.randn(many, tokens, config.text.dim)
        values[~mask] = torch.nan
        return TokenBatch(values, mask)
    return TokenBatch(torch.randint(1, 40, (many, tokens)), mask)


def pick(batch, rows):
    """Some videos of a batch."""
    return {
        name: ExpertFeatures(*(None if part is None else part[rows] for part in features))
        for name, features in batch.items()
    }


def longer(batch, extra):
    """The same videos with more padding."""
    made = {}
    for name, features in batch.items():
        values = torch.nn.functional.pad(features.values, (0, 0, 0, extra), value=-7.0)
        times = torch.nn.functional.pad(features.times, (0, extra), value=3.0)
        made[name] = ExpertFeatures(values, torch.nn.functional.pad(features.mask, (0, extra)), times)
    return made
