"""How fast each backbone sees: frames a second of its image tower, which is times real time at one a second.

    python benchmarks/backbones.py [--names clip-vit-b-32,mobileclip-s0] [--out results/backbones.json]
    python benchmarks/backbones.py --use        # from `wordreel use DIR` to the first search answered, too

Weights are random: speed does not depend on their values. Each tower runs as wordreel runs it, in batches of
8, in fp32, fp16 and int8, on the cores of this process; transforming 640 × 360 frames counts too. Rates are
by processor time: frames in a second of all cores, however busy the machine is with other programs. The bound
is the multiply-adds of the tower's matrix products and convolutions at the rate of one large float32 product,
the better of two measurements before and after the tower's.
`--use` writes a ViT-B/32 in Hugging Face layout, builds the demo's library, and times the commands by the
clock. JSON on standard output; `--out FILE` adds to that file, and writes a table beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wordreel.backbones.config import BackboneConfig, ImageTransform, VisionTowerConfig
from wordreel.backbones.mobileclip import usual_transform
from wordreel.backbones.towers import networks, tower_shapes
from wordreel.backbones.transform import transform_images
from wordreel.runtime.nets.net_builder import build_onnx, weight_shapes
from wordreel.runtime.sessions import Network
from wordreel.util.atomic import atomic_write

if TYPE_CHECKING:
    import onnx

BATCH = 8
FRAME = (360, 640)
SECONDS = 3.0  # of measuring, at least
PRECISIONS = ("fp32", "fp16", "int8")


def _siglip(name: str, size: int, patch: int, **more: int) -> BackboneConfig:
    vision = VisionTowerConfig(
        size=size, patch=patch, activation="gelu_tanh", epsilon=1e-6, class_token=False, patch_bias=True,
        pre_norm=False, pooling="attention", projection=False, **more,
    )  # fmt: skip
    return BackboneConfig(
        name, "siglip", vision.width, vision, transform=ImageTransform(size, resize="squash")
    )


def _mobileclip(name: str, variant: str, dim: int = 512) -> BackboneConfig:
    vision = VisionTowerConfig(kind="fastvit", size=256, patch=32, variant=variant)
    return BackboneConfig(name, "mobileclip", dim, vision, transform=usual_transform(vision))


LARGE = {"width": 1024, "depth": 24, "heads": 16, "mlp": 4096}
CONFIGS = (
    BackboneConfig("clip-vit-b-32"),
    BackboneConfig("clip-vit-b-16", vision=VisionTowerConfig(patch=16)),
    BackboneConfig("clip-vit-l-14", dim=768, vision=VisionTowerConfig(patch=14, **LARGE)),
    _siglip("siglip-vit-b-16-224", 224, 16),
    _siglip("siglip2-vit-b-32-256", 256, 32),
    _siglip("siglip2-vit-l-16-256", 256, 16, **LARGE),
    _mobileclip("mobileclip-s0", "mci0"),
    _mobileclip("mobileclip-s1", "mci1"),
    _mobileclip("mobileclip-s2", "mci2"),
    _mobileclip("mobileclip2-s3", "mci3", 768),
)


def random_state(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Weights whose outputs stay finite."""
    rng = np.random.default_rng(0)
    state = {}
    for key, shape in shapes.items():
        size = int(np.prod(shape[1:])) or 1
        state[key] = (rng.standard_normal(shape, np.float32) / np.sqrt(size)).astype(np.float32)
        if key.endswith(("running_var", "norm1.weight", "norm2.weight", "norm.weight")):
            state[key] = np.ones(shape, np.float32)
    return state


def rate(run: Callable[[], object]) -> float:
    """Calls in a second of all cores, by processor time, after one to warm up."""
    run()
    calls, began, used = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < SECONDS or calls < 2:
        run()
        calls += 1
    return calls * len(os.sched_getaffinity(0)) / (time.process_time() - used)


def product_rate() -> float:
    """Multiply-adds a second of one large float32 product."""
    a = np.random.default_rng(0).standard_normal((2048, 2048), np.float32)
    return rate(lambda: a @ a) * 2048**3


def multiply_adds(model: onnx.ModelProto) -> int:
    """Multiply-adds of all matrix products and convolutions of a network for one frame."""
    import onnx

    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {
        value.name: [size.dim_value for size in value.type.tensor_type.shape.dim]
        for value in (*graph.value_info, *graph.input, *graph.output)
    } | {weight.name: list(weight.dims) for weight in graph.initializer}
    total = 0
    for node in graph.node:
        if node.op_type in ("Conv", "MatMul"):
            summed = shapes[node.input[1]][1:] if node.op_type == "Conv" else shapes[node.input[0]][-1:]
            total += math.prod(shapes[node.output[0]]) * math.prod(summed)
    return total


def measure(config: BackboneConfig, folder: Path) -> dict[str, float]:
    """Frames a second in each precision, from 640 × 360 pixels to embeddings."""
    import onnx

    tower, _ = networks(config)
    state = random_state(weight_shapes(tower)[0])
    images = np.random.default_rng(1).integers(0, 255, (BATCH, *FRAME, 3)).astype(np.uint8)
    rows = {"parameters": float(sum(value.size for value in state.values()))}
    bound = product_rate()
    for precision in PRECISIONS:
        path = folder / f"{precision}.onnx"
        onnx.save(build_onnx("image", tower, state, folder / f"{precision}.weights", precision), str(path))
        network = Network(path)

        def see(network: Network = network) -> None:
            network(frames=transform_images(images, config.transform))

        rows[precision] = round(BATCH * rate(see), 2)
        path.unlink()
        (folder / f"{precision}.weights").unlink()
    rows["transform"] = round(BATCH * rate(lambda: transform_images(images, config.transform)), 1)
    work = multiply_adds(build_onnx("image", tower, state, folder / "counted.weights", "fp32"))
    rows["of_bound"] = round(rows["fp32"] * work / max(bound, product_rate()), 3)
    return rows


def use_time(folder: Path) -> dict[str, tuple[float, float]]:
    """Clock and processor seconds of `wordreel use DIR` and of searches, on the demo's library."""
    model = write_model(folder / "vit-b-32")
    demo = folder / "demo"
    environment = {**os.environ, "WORDREEL_LIBRARY": str(demo / "library")}

    def run(*arguments: str) -> tuple[float, float]:
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "wordreel", *arguments]
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return round(time.perf_counter() - start, 1), round(used, 1)

    run("demo", "--folder", str(demo), "--json")
    times = {
        "a search with the default model": run("search", "a red flower"),
        "`wordreel use DIR`": run("use", str(model)),
    }
    times["the first search after it"] = run("search", "a red flower")
    times["the second"] = run("search", "a blue flower")
    run("weights", "remove", model.name)
    return times


def write_model(folder: Path) -> Path:
    """A ViT-B/32 CLIP in Hugging Face layout with random weights."""
    from safetensors.numpy import save_file

    folder.mkdir()
    config = BackboneConfig("clip-vit-b-32")
    save_file(random_state(tower_shapes(config)), str(folder / "model.safetensors"), {"format": "pt"})
    plain = {"model_type": "clip", "architectures": ["CLIPModel"], "projection_dim": 512}
    plain |= {
        "text_config": {"model_type": "clip_text_model"},
        "vision_config": {"model_type": "clip_vision_model"},
    }
    (folder / "config.json").write_text(json.dumps(plain))
    return folder


def table(report: dict) -> str:
    """Markdown of a report."""
    lines = [
        "| backbone | image tower | fp32 | fp16 | int8 | of the bound, fp32 |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, row in report["frames_per_second"].items():
        size = f"{row['parameters'] / 1e6:.0f} M"
        speeds = " | ".join(f"{row[precision]:.1f}" for precision in PRECISIONS)
        lines.append(f"| {name} | {size} | {speeds} | {row['of_bound']:.0%} |")
    text = [
        f"Frames a second (times real time at one frame a second) of {report['cores']} cores, by processor "
        "time, random weights:",
        "",
        *lines,
    ]
    if "use" in report:
        text += ["", "Seconds on the demo's library with a ViT-B/32 in Hugging Face layout:", ""]
        text += ["| command | clock | processor |", "|---|--:|--:|"]
        text += [f"| {what} | {clock:g} | {used:g} |" for what, (clock, used) in report["use"].items()]
    return "\n".join([*text, "", "Written by `python benchmarks/backbones.py --use --out FILE`.", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names", default=",".join(config.name for config in CONFIGS))
    parser.add_argument("--use", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    wanted = options.names.split(",")
    report: dict = {"cores": len(os.sched_getaffinity(0)), "frames_per_second": {}}
    if options.out is not None and options.out.exists():
        report |= json.loads(options.out.read_text())
    with tempfile.TemporaryDirectory() as scratch:
        for config in (config for config in CONFIGS if config.name in wanted):
            row = measure(config, Path(scratch))
            report["frames_per_second"][config.name] = row
            print(config.name, row, file=sys.stderr)
            write(report, options.out)
        if options.use:
            report["use"] = use_time(Path(scratch))
            write(report, options.out)
    print(json.dumps(report, indent=2))


def write(report: dict, out: Path | None) -> None:
    """The report and its table; later runs add to the same file."""
    if out is not None:
        atomic_write(out, json.dumps(report, indent=2).encode() + b"\n")
        atomic_write(out.with_suffix(".md"), table(report).encode())


if __name__ == "__main__":
    main()
