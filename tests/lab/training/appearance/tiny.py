"""A tiny appearance network, its recipe, and pictures whose captions say their colour."""

from dataclasses import replace

import numpy as np
import torch

from wordreel.lab.datasets.types import Caption
from wordreel.lab.models.appearance.config import PictureTextConfig
from wordreel.lab.models.appearance.efficientnet_lite import EfficientNetLite
from wordreel.lab.training.appearance import recipe as recipes
from wordreel.lab.training.appearance.picture_set import AppearanceData, PictureSet, encode_picture
from wordreel.lab.training.appearance.settings import FineTuneSettings, PictureSettings
from wordreel.lab.training.data.pairs import Pairs

MODEL = PictureTextConfig(
    size=16,
    sentence=12,
    hidden=10,
    stages=((1, 3, 6, 1), (2, 3, 8, 2)),
    stem=6,
    features=16,
    classes=5,
    halving=(1,),
)


def recipe(**run):
    settings = {"epochs": 3, "batch": 6, "seed": 1, "precision": "float32", "drop_last": False} | run
    whole = recipes.load()
    return replace(
        whole,
        model=MODEL,
        run=replace(whole.run, **settings),
        pictures=PictureSettings(frames=2),
        fine_tune=FineTuneSettings(1.0, 0.9),
    )


def pictures(items=12, seed=0, sources=2):
    """Every second item is a video of two pictures; the first half of the items are of the first source."""
    rng = np.random.default_rng(seed)
    counts = np.array([1 + n % 2 for n in range(items)])
    shots = [
        np.clip(rng.normal(colour, 20, (16, 16, 3)), 0, 255).astype(np.uint8)
        for colour, count in zip(rng.integers(0, 256, (items, 3)), counts, strict=True)
        for _ in range(count)
    ]
    encoded = [encode_picture(shot) for shot in shots]
    captions = tuple((Caption(f"colour {n}"), Caption(f"picture {n}"))[: 1 + n % 2] for n in range(items))
    sentences = rng.standard_normal((sum(map(len, captions)), MODEL.sentence)).astype(np.float32)
    source = (np.arange(items) * sources // items).astype(np.int64)
    pairs = Pairs(
        "a + b", tuple(f"{seed}-{n}" for n in range(items)), {}, captions, source=source, shares=(1.0, 2.0)
    )
    return PictureSet(
        pairs,
        ("a", "b"),
        counts,
        np.array([len(one) for one in encoded]),
        np.concatenate(encoded),
        sentences / np.linalg.norm(sentences, axis=1, keepdims=True),
    )


def start():
    torch.manual_seed(5)
    network = EfficientNetLite(MODEL.stages, stem=6, features=16, classes=5, halving=MODEL.halving)
    return {name: value.numpy() for name, value in network.state_dict().items()}


def data():
    return AppearanceData(pictures(), pictures(8, seed=1), start())
