"""What fp16 and int8 cost an embedding: file size, and 1 − cosine against fp32.

    python benchmarks/precision.py [--names clip-vit-b-32] [--out results/backbones/precision.json]

Weights are random: "initial" ones have the scale that publishers initialise with; of "outlying" ones the
gains of the layer norms are log-normal (σ = 0.5) and one channel in a hundred is 10 times as large, for it is
outlying channels that 8-bit numbers lose. Trained weights lose another amount, which `wordreel use` measures
for the model it installs. `benchmarks/backbones.py` measures the speed of each precision.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from wordreel.backbones.config import BackboneConfig, TextTowerConfig, VisionTowerConfig
from wordreel.backbones.precision import precision_loss
from wordreel.backbones.towers import TOWERS, tower_shapes, write_towers
from wordreel.runtime.nets.checkpoint import Array
from wordreel.runtime.sessions import Precision
from wordreel.util.atomic import atomic_write

KINDS = ("initial", "outlying")
PRECISIONS: tuple[Precision, ...] = ("fp16", "int8")
SIGLIP_VISION = VisionTowerConfig(
    patch=16, activation="gelu_tanh", epsilon=1e-6, class_token=False, patch_bias=True, pre_norm=False,
    pooling="attention", projection=False,
)  # fmt: skip
SIGLIP_TEXT = TextTowerConfig(
    vocabulary=32000, length=64, width=768, heads=12, mlp=3072, activation="gelu_tanh", epsilon=1e-6,
    causal=False, pooling="last", projection_bias=True,
)  # fmt: skip
BACKBONES = {
    "clip-vit-b-32": BackboneConfig("clip-vit-b-32"),
    "siglip-b-16": BackboneConfig("siglip-b-16", "siglip", 768, SIGLIP_VISION, SIGLIP_TEXT),
}


def random_state(config: BackboneConfig, kind: str) -> dict[str, Array]:
    """Weights of the published initial scale, with "initial" or "outlying" gains."""
    rng = np.random.default_rng(0)
    state: dict[str, Array] = {}
    for key, shape in tower_shapes(config).items():
        if "norm" in key and key.endswith("weight"):
            gains = np.exp(0.5 * rng.normal(size=shape))
            outlying = np.where(rng.random(shape) < 0.01, 10 * gains, gains)
            state[key] = (outlying if kind == "outlying" else np.ones(shape)).astype(np.float32)
        else:
            scale = 0.02 if len(shape) == 1 else 1 / np.sqrt(np.prod(shape[1:]))
            state[key] = (scale * rng.standard_normal(shape, np.float32)).astype(np.float32)
    return state


def measure(name: str) -> dict[str, object]:
    """Sizes and losses of one backbone in each precision."""
    config = BACKBONES[name]
    report: dict[str, dict[str, object]] = {precision: {} for precision in PRECISIONS}
    for kind in KINDS:
        state = random_state(config, kind)
        for precision in PRECISIONS:
            with tempfile.TemporaryDirectory() as root:
                folder = Path(root) / precision
                folder.mkdir()
                write_towers(config, state, folder, precision)
                size = sum(file.stat().st_size for file in folder.iterdir())
                losses = precision_loss(config, state, folder)
            report[precision]["megabytes"] = round(size / 1e6)
            for tower in TOWERS:
                report[precision][f"{tower}_loss_{kind}"] = _rounded(asdict(losses[tower]))
    return {"backbone": name, **report}


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {key: float(f"{value:.2g}") for key, value in values.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", default=",".join(BACKBONES))
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    text = json.dumps([measure(name) for name in chosen.names.split(",")], indent=2) + "\n"
    print(text, end="")
    if chosen.out:
        atomic_write(chosen.out, text.encode())
