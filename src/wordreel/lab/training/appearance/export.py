"""Write a trained appearance network as the file of the expert, and measure what its 8 bits cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import cosine_similarity

from wordreel.errors import TrainingError
from wordreel.experts.appearance_file import AppearanceFile, save_appearance
from wordreel.lab.models.checkpoint import load_picture_text
from wordreel.lab.training.appearance import recipe as recipes
from wordreel.lab.training.appearance.embed import features_of, measure_sources
from wordreel.lab.training.appearance.pack_file import load_pictures
from wordreel.lab.training.precision import TrainingPrecision

LICENCE = "Apache-2.0 (the network); the data it was trained further on are for research use"
FACTS = ("data", "videos", "pictures", "captions", "epoch", "seed", "validation")


def export_appearance(folder: Path, path: Path) -> str:
    """Write the network of a model folder; returns the sha256 of the file."""
    module, facts = load_picture_text(folder)
    weights = {name: value.numpy() for name, value in module.network.state_dict().items()}
    training = {name: facts["training"][name] for name in FACTS if name in facts["training"]}
    card = {"name": facts["name"], "size": module.config.size, "licence": LICENCE, "training": training}
    save_appearance(path, weights, card)
    return AppearanceFile(path).digest


def measure_cost(folder: Path, path: Path, packed: Path) -> dict[str, Any]:
    """Cosine of the features before and after, and recall of each source, on a pack's validation part."""
    module, _ = load_picture_text(folder)
    recipe = replace(recipes.load(), model=module.config)
    val = load_pictures(packed, recipe).val
    if val is None:
        raise TrainingError(f"{packed} has no validation part")
    images, cpu = val.decode(module.config.size), torch.device("cpu")
    exact = features_of(module.network, torch.from_numpy(images), cpu, TrainingPrecision("float32", "cpu"))
    network = AppearanceFile(path).network()
    parts = [network(images=images[at : at + 32])["features"] for at in range(0, len(images), 32)]
    rounded = torch.from_numpy(np.concatenate(parts))
    cosines = cosine_similarity(exact, rounded)
    before, after = (measure_sources(module, some, val).by_source for some in (exact, rounded))
    return {
        "cosine": float(cosines.mean()),
        "least_cosine": float(cosines.min()),
        "recall": {
            name: {
                key: [getattr(figures[name], recall) for recall in ("r1", "r5", "r10")]
                for key, figures in (("before", before), ("after", after))
            }
            for name in before
        },
    }
