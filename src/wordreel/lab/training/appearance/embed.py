"""Features and similarities of a set of pictures, and the figures of each of its sources."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from wordreel.errors import TrainingError
from wordreel.lab.models.appearance.picture_text import PictureText
from wordreel.lab.models.batch import unit
from wordreel.lab.training.appearance.augment import as_pixels
from wordreel.lab.training.appearance.picture_set import PictureSet
from wordreel.lab.training.measure import ValidationMetrics, mean_metrics, measure
from wordreel.lab.training.precision import TrainingPrecision

BATCH = {"cpu": 32, "cuda": 512}


@torch.no_grad()
def features_of(
    network: Callable[[Tensor], Tensor], images: Tensor, device: torch.device, precision: TrainingPrecision
) -> Tensor:
    """`images [n, h, w, 3]` uint8 to `[n, features]` float32 on the device."""
    parts, batch = [], BATCH[device.type]
    for start in range(0, len(images), batch):
        pixels = as_pixels(images[start : start + batch].to(device))
        with precision.autocast():
            parts.append(network(pixels.contiguous(memory_format=torch.channels_last)).float())
    return torch.cat(parts)


@torch.no_grad()
def embed_items(module: PictureText, features: Tensor, counts: Tensor) -> Tensor:
    """`[items, dim]`: the mean of the embeddings of an item's pictures, as a unit vector."""
    embedded = module.embed_features(features)
    owner = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
    total = torch.zeros(len(counts), embedded.shape[1], device=embedded.device)
    return unit(total.index_add_(0, owner, embedded))


@torch.no_grad()
def measure_sources(module: PictureText, features: Tensor, pictures: PictureSet) -> ValidationMetrics:
    """Figures of each source among its own items, and their mean; the module is in evaluation mode."""
    device = features.device
    items = embed_items(module, features, torch.from_numpy(pictures.counts).to(device))
    texts = module.embed_sentences(torch.from_numpy(pictures.sentences).to(device))
    pairs = pictures.pairs
    owners = np.repeat(pairs.source, pairs.counts)
    found: dict[str, ValidationMetrics] = {}
    for number, name in enumerate(pictures.names):
        here = np.flatnonzero(pairs.source == number)
        if len(here) < 2:
            continue  # nothing to rank
        some = texts[torch.from_numpy(np.flatnonzero(owners == number)).to(device)]
        matrix = some @ items[torch.from_numpy(here).to(device)].T
        found[name] = measure(matrix.cpu().numpy(), pairs.counts[here])
    if not found:
        raise TrainingError("no source has two items to validate on; set a larger pictures.hold_out")
    return mean_metrics(found)
