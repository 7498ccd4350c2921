"""Image and text towers in fp16 and int8 against fp32: size of the files, cosine loss, and speed.

    python benchmarks/precision.py [NAMES]

Weights are random: "initial" ones have the scale that publishers initialise with; of "outlying" ones the
gains of the layer norms are log-normal (σ = 0.5) and one channel in a hundred is 10 times as large, for it is
outlying channels that 8-bit numbers lose. Trained weights lose another amount, which `wordreel use` measures
for the model it installs. The runs of the precisions alternate, and the median of the ratios counts.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from wordreel.nets.clip.config import BackboneConfig, TextTowerConfig, VisionTowerConfig
from wordreel.nets.clip.precision import precision_loss, samples
from wordreel.nets.clip.towers import TOWERS, tower_shapes, write_towers
from wordreel.nets.graph import Array
from wordreel.nets.runtime import Network, Precision

ROUNDS = 7
BATCH = 8
KINDS = ("initial", "outlying")
PRECISIONS: tuple[Precision, ...] = ("fp32", "fp16", "int8")
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
    "clip-vit-b-16": BackboneConfig("clip-vit-b-16", vision=VisionTowerConfig(patch=16)),
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
    config = BACKBONES[name]
    frames, ids = samples(config, BATCH)
    inputs = {"image": {"frames": frames}, "text": {"ids": ids}}
    with tempfile.TemporaryDirectory() as root:
        folders = {precision: Path(root) / precision for precision in PRECISIONS}
        report: dict[str, dict[str, object]] = {}
        for precision, folder in folders.items():
            report[precision] = {}
            for kind in KINDS:
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                state = random_state(config, kind)
                write_towers(config, state, folder, precision)
                if precision != "fp32":
                    losses = precision_loss(config, state, folder)
                    found = {tower: _rounded(asdict(losses[tower])) for tower in TOWERS}
                    report[precision][f"loss_with_{kind}_gains"] = found
            size = sum(file.stat().st_size for file in folder.iterdir())
            report[precision]["megabytes"] = round(size / 1e6)
        for tower in TOWERS:
            networks = {key: Network(folder / f"{tower}.onnx") for key, folder in folders.items()}
            times: dict[str, list[float]] = {key: [] for key in networks}
            for _ in range(ROUNDS + 1):
                for key, network in networks.items():
                    times[key].append(_seconds(network, inputs[tower]))
            for key, seconds in times.items():
                ratios = np.array(times["fp32"][1:]) / np.array(seconds[1:])  # the first warms up
                report[key][f"{tower}_speed_over_fp32"] = round(float(np.median(ratios)), 2)
    return {"backbone": name, "batch": BATCH, **report}


def _seconds(network: Network, inputs: dict[str, Array]) -> float:
    start = time.perf_counter()
    network(**inputs)
    return time.perf_counter() - start


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {key: float(f"{value:.2g}") for key, value in values.items()}


if __name__ == "__main__":
    print(json.dumps([measure(name) for name in sys.argv[1:] or BACKBONES], indent=2))
