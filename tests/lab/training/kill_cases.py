"""Everything training can do, as small cases: each makes a recipe and its material in a folder."""

from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
from tests.lab.training.forked import forked
from tests.lab.training.toys import (
    BERT,
    CONFIGS,
    EXPERTS,
    NETWORK,
    TEXT,
    toy_data,
    toy_pairs,
    toy_recipe,
    words_of,
)

from wordreel.lab.datasets.types import Caption
from wordreel.lab.models.config import ConcatConfig, TextConfig, TransformerConfig
from wordreel.lab.training.data.pairs import join
from wordreel.lab.training.loop import train
from wordreel.lab.training.open_data import add_teachers
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.settings import StartSettings, TeachSettings
from wordreel.lab.training.training_data import TrainingData, prepare

CE, MOEE, MMT = (CONFIGS[kind] for kind in ("ce", "moee", "mmt"))
CONCAT = ConcatConfig(EXPERTS, TextConfig("vectors", 7, "vlad", 3, 1, max_tokens=5))
MODELS = {
    f"{config.kind} {mode}": replace(config, mode=mode)
    for config in (CE, MOEE, MMT, CONCAT)
    for mode in ("paper", "released")
}
OPTIMISERS = ("adam", "adamw", "radam", "ranger")
SCHEDULES = {
    "constant": {"schedule.kind": "constant"},
    "step": {"schedule.gamma": 0.8},
    "exponential": {"schedule.kind": "exponential", "schedule.gamma": 0.7},
    "cosine": {"schedule.kind": "cosine", "schedule.floor": 0.1},
    "warm-up": {"schedule.warmup": 5},
}
LOSSES: dict[str, dict[str, Any]] = {
    "margin": {"loss.margin": 0.2},
    "diagonal": {"loss.diagonal": True, "loss.same_video": "count"},
    "info-nce": {"loss.kind": "info-nce", "loss.temperature": 0.1},
    "dual": {"loss.kind": "dual-softmax", "loss.temperature": 0.1},
}


def changed(recipe: Recipe, **changes) -> Recipe:
    """Fields by section: `changed(recipe, **{"run.batch": 3})`."""
    for key, value in changes.items():
        section, _, name = key.partition(".")
        recipe = replace(recipe, **{section: replace(getattr(recipe, section), **{name: value})})
    return recipe


def of(model, held=None, **changes):
    """A case of this model on ordinary pairs."""

    def build(folder):
        one = changed(replace(toy_recipe("ce", epochs=4), model=model), **changes)
        return one, held(one) if held else toy_data(model)

    return build


def from_sources(one):
    """Three sources, shown half, once and twice and a half; they lack experts of each other."""
    parts = [toy_pairs(count, seed=n, name=f"s{n}") for n, count in enumerate((9, 7, 5))]
    parts[1] = replace(parts[1], rows={k: v for k, v in parts[1].rows.items() if k != "face"})
    pairs = join([replace(part, shares=(share,)) for part, share in zip(parts, (0.5, 1.0, 2.5), strict=True)])
    words = words_of(pairs, one.model)
    val = toy_pairs(8, seed=9, name="val")
    return TrainingData(pairs, words, val, words_of(val, one.model))


def unmeasured(one):
    return toy_data(one.model, val=False)


VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] . ! ' now we mix it stir ##ring the pan under oil ##s"
WORDS = ["now", "we", "mix", "It", "stirring", "the", "pan!", "xyzzy", "oil."]


def transcribed(seed=0, many=9):
    """Videos with transcripts, each word a second long."""
    rng = np.random.default_rng(seed)
    captions = []
    for count in [1, 5, 40, *rng.integers(2, 30, many - 3)]:
        start = rng.uniform(0, 20)
        clock = (start + np.arange(count)[:, None] + [0.0, 1.0]).astype(np.float32)
        text = " ".join(rng.choice(WORDS, count))
        captions.append((Caption(text, float(clock[0, 0]), float(clock[-1, 1]), clock),))
    return replace(toy_pairs(many, words=False), captions=tuple(captions))


def spoken(**changes):
    def build(folder):
        (folder / "vocab.txt").write_text(VOCABULARY.replace(" ", "\n"))
        text = replace(BERT, source="wordpiece:.", max_tokens=9)
        one = changed(replace(toy_recipe("mmt", epochs=4), model=replace(MMT, text=text)), **changes)
        return one, prepare(one, transcribed(), transcribed(1), folder=folder)

    return build


def with_teachers(folder):
    for seed in (0, 1):
        one = toy_recipe("ce", epochs=4).with_seed(seed)
        assert forked(lambda one=one, seed=seed: train(one, toy_data(CE), folder / f"t{seed}", device="cpu"))
    names = tuple(str(folder / f"t{seed}" / "last") for seed in (0, 1))
    one = replace(toy_recipe("ce", epochs=4), teach=TeachSettings(names, weight=5.0, denoise="rank:3"))
    opened = add_teachers(one, toy_pairs(), toy_pairs())
    train_pairs, val, teachers = opened.train, opened.val, opened.teachers
    return one, TrainingData(train_pairs, words_of(train_pairs, CE), val, words_of(val, CE), teachers)


def from_another(folder):
    """A pre-trained model, then one with longer tables and one expert more."""
    one = toy_recipe("mmt", epochs=2)
    assert forked(lambda: train(one, toy_data(MMT), folder / "old", device="cpu"))
    longer = replace(MMT, positions=20, types=7)
    start = StartSettings(model=str(folder / "old" / "best"))
    recipe = replace(toy_recipe("mmt", epochs=4).with_seed(3), model=longer, start=start)
    return recipe, toy_data(longer)


def late(one):
    """Captions about a stretch of their video."""
    data = toy_data(one.model)
    spans = iter(cycle([(None, None), (0.0, 2.0), (1.0, 5.0)]))
    captions = tuple(
        tuple(replace(c, start=a, end=b) for c in here for a, b in [next(spans)])
        for here in data.train.captions
    )
    return replace(data, train=replace(data.train, captions=captions))


BIG = replace(MMT, text=replace(BERT, pool="mean", max_tokens=5))
GPT = TransformerConfig(30, 8, 1, 2, 16, 10, 0)

FEATURES = {
    "captions all": of(CE, **{"data.captions": "all"}),
    "captions all mmt": of(MMT, **{"data.captions": "all", "run.batch": 4}),
    "sources": of(CE, from_sources),
    "by source": of(CE, from_sources, **{"data.by_source": True}),
    "by source all mmt": of(
        MMT, from_sources, **{"data.by_source": True, "data.captions": "all", "run.epochs": 3}
    ),
    "steps": of(CE, from_sources, **{"run.steps": 5, "data.by_source": True}),
    "drop last": of(MOEE, **{"run.drop_last": True}),
    "expert dropout": of(CE, **{"run.expert_dropout": 0.5}),
    "expert dropout mmt": of(MMT, **{"run.expert_dropout": 0.3, "optimiser.kind": "ranger"}),
    "text lr": of(MMT, **{"optimiser.text_lr": 1e-3, "optimiser.kind": "adamw"}),
    "text lr ranger": of(MMT, **{"optimiser.text_lr": 1e-3, "optimiser.kind": "ranger"}),
    "many settings": of(
        MMT,
        **{
            "run.expert_dropout": 0.3,
            "optimiser.kind": "adamw",
            "optimiser.text_lr": 1e-3,
            "optimiser.decay_biases": False,
            "optimiser.clip": 2.5,
            "schedule.kind": "cosine",
            "schedule.warmup_ratio": 0.2,
            **LOSSES["info-nce"],
        },
    ),
    "clip": of(CE, **{"optimiser.clip": 0.05}),
    "weight decay": of(CE, **{"optimiser.weight_decay": 0.1, "optimiser.kind": "ranger"}),
    "bfloat16": of(CE, **{"run.precision": "bfloat16"}),
    "bfloat16 mmt": of(MMT, **{"run.precision": "bfloat16"}),
    "float16": of(CE, **{"run.precision": "float16", "optimiser.clip": 0.5}),
    "float16 ranger": of(CE, **{"run.precision": "float16", "optimiser.kind": "ranger"}),
    "patience": of(CE, **{"run.epochs": 30, "run.batch": 12, "run.patience": 2, "optimiser.lr": 0.5}),
    "patience seldom": of(
        CE, **{"run.epochs": 30, "run.patience": 3, "run.validate_every": 2, "optimiser.lr": 0.5}
    ),
    "validate every 3": of(CE, **{"run.epochs": 7, "run.validate_every": 3}),
    "select v2t": of(CE, **{"run.select": "v2t", "optimiser.lr": 0.3}),
    "select both": of(MOEE, **{"run.select": "both", "optimiser.lr": 0.3}),
    "select last": of(CE, **{"run.select": "last"}),
    "unmeasured": of(CE, unmeasured),
    "window": of(MMT, late, **{"data.window": 2.0}),
    "transcripts": spoken(**{"data.segment_words": 5, "run.batch": 4}),
    "transcripts window until": spoken(
        **{
            "data.segment_words": 5,
            "data.window": 8.0,
            "data.until": 25.0,
            "run.batch": 4,
            "optimiser.kind": "radam",
        }
    ),
    "teachers": with_teachers,
    "fine-tuned": from_another,
    "frozen": of(replace(MMT, text=replace(BERT, frozen=True))),
    "frozen layers": of(
        replace(MMT, text=replace(BERT, network=replace(NETWORK, layers=2), frozen_layers=1))
    ),
    "shuffled": of(replace(MMT, inputs="shuffled")),
    "pooled": of(replace(MMT, inputs="pooled", aggregate="mean")),
    "encoder none": of(replace(MMT, encoder="none")),
    "encoder coll": of(replace(MMT, encoder="coll")),
    "lstm": of(replace(CE, text=replace(TEXT, pool="lstm", clusters=0, ghosts=0, lstm=6))),
    "word table": of(replace(MMT, text=TextConfig("table", 8, "mean", vocabulary=30, max_tokens=5))),
    "text mean": of(BIG),
    "gpt": of(replace(MMT, text=TextConfig("gpt", 8, "mean", network=GPT, max_tokens=5))),
    "gpt2": of(replace(MMT, text=TextConfig("gpt2", 8, "max", network=GPT, max_tokens=5))),
    "no gating": of(replace(CE, gating=False, learned_weights=False)),
}
WORLDS = {
    "world ce": of(CE, **{"run.batch": 6}),
    "world dropout": of(MMT, **{"run.batch": 6, "run.expert_dropout": 0.3, **LOSSES["info-nce"]}),
    "world mmt": of(MMT, **{"run.batch": 6, "optimiser.kind": "ranger"}),
    "world patience": of(
        CE,
        **{"run.batch": 6, "run.epochs": 20, "run.patience": 2, "optimiser.lr": 0.5, **LOSSES["info-nce"]},
    ),
    "world by source": of(CE, from_sources, **{"run.batch": 4, "data.by_source": True}),
}
WORLDS["three processes"] = of(CE, **{"run.batch": 9, "optimiser.kind": "ranger"})
WORLDS["three mmt"] = of(MMT, **{"run.batch": 6})
COMPILED = {
    "compiled": of(CE, **{"run.compile": True}),
    "compiled mmt": of(MMT, **{"run.compile": True, "optimiser.kind": "ranger"}),
}


def crossed():
    """Every model with every optimiser; schedules and losses take turns, so that all meet."""
    turns, number = {}, 0
    for model, config in MODELS.items():
        for optimiser in OPTIMISERS:
            schedule, loss = list(SCHEDULES)[number % 5], list(LOSSES)[(number // 5 + number) % 4]
            number += 1
            turns[f"{model} {optimiser} {schedule} {loss}"] = of(
                config, **{"optimiser.kind": optimiser, **SCHEDULES[schedule], **LOSSES[loss]}
            )
    return turns


CASES = {**crossed(), **FEATURES, **WORLDS, **COMPILED}
