"""What the studies share: arguments, captions, figures of a ranking, and the files that are written.

Everything is measured by wordreel's own functions (`evaluate`, `hubness`); nothing is implemented twice.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tower_material import held_out

from wordreel import __version__
from wordreel.hubness import Direction, Method, make_method, ranking_scores
from wordreel.hubness.beta import GRID
from wordreel.lab.datasets import registry
from wordreel.lab.datasets.json_captions import read_ids
from wordreel.lab.evaluate.normalised_rankings import rank_normalised
from wordreel.models.joint.adapter import FILE
from wordreel.retrieval.caption_ranks import Captions, best_own_ranks
from wordreel.retrieval.metrics import RetrievalMetrics, aggregate, retrieval_metrics
from wordreel.retrieval.ranks import ranks_of
from wordreel.types import Float32, Float64, Int64
from wordreel.util.checksum import file_sha256

CACHE = Path.home() / ".cache" / "wordreel" / "studies"
SHIPPED = "default"  # the label of weights that were given none
CHUNK = 4_096  # captions encoded between two writes
LIBRARIES = ("msvd", "flickr8k", "msrvtt", "coco")
T2V, V2T = Direction.TEXT_TO_VIDEO, Direction.VIDEO_TO_TEXT
DIRECTIONS = {T2V: "text → video", V2T: "video → text"}
Told = dict[str, list[str]]


# Arguments


@dataclass(frozen=True)
class Weights:
    """The adapter of one model, beside its text tower; those of one label are seeds of one model."""

    label: str
    path: Path


def parser(description: str | None, name: str) -> argparse.ArgumentParser:
    """The arguments that all studies take."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="folder with msvd/captions.json and splits.json, and captions.json in flickr8k, msrvtt and coco",
    )
    for library in LIBRARIES:
        made.add_argument(
            f"--{library}", type=Path, metavar="LIBRARY", help=f"library of the {library} files"
        )
    made.add_argument(
        "--weights",
        action="append",
        metavar="[LABEL=]FOLDER",
        help="text_tower.onnx, tokenizer.json and joint.safetensors; those of one LABEL are averaged",
    )
    made.add_argument("--cache", type=Path, default=CACHE, help=f"what can be used again ({CACHE})")
    made.add_argument("--out", type=Path, default=Path("results") / name, help="where the results go")
    return made


def parse_weights(given: Sequence[str] | None) -> list[Weights]:
    """`FOLDER` or `LABEL=FOLDER`, in order; the shipped model if none is given.

    >>> [(w.label, str(w.path)) for w in parse_weights(["a", "without MSVD=b"])]
    [('default', 'a/joint.safetensors'), ('without MSVD', 'b/joint.safetensors')]
    """
    found = []
    for text in given or [str(FILE.parent)]:
        label, equals, folder = text.rpartition("=")
        found.append(Weights(label.strip() if equals else SHIPPED, Path(folder) / FILE.name))
    return found


# Data


def _captions(address: str) -> Told:
    return registry.read(address).captions


def captions_of(data: Path, name: str) -> dict[str, Told]:
    """Split → id → captions of one of the `LIBRARIES`, as the data folder has them; 1,000 of COCO test."""
    address = str(data / name / "captions.json")
    if name == "flickr8k":
        return {split: _captions(f"{address}:{split}") for split in ("train", "dev")}
    if name == "coco":
        told = _captions(f"{address}:train")
        test = set(held_out([Path(name).stem for name, said in told.items() if len(said) >= 5]))
        return {
            "train": {name: said for name, said in told.items() if Path(name).stem not in test},
            "test": {name: said for name, said in told.items() if Path(name).stem in test},
        }
    said = _captions(address)
    if name == "msrvtt":
        return {"all": said}
    lists = {s: read_ids(f"{data / name / 'splits.json'}:official.{s}") for s in ("train", "val", "test")}
    return {split: {i: said[i] for i in ids if i in said} for split, ids in lists.items()}


def texts_of(told: Mapping[str, Sequence[str]]) -> list[str]:
    """Every caption, video by video."""
    return [text for group in told.values() for text in group]


# Figures


@dataclass(frozen=True)
class Figures:
    """What one ranking gave; hubness is None where it was not asked for."""

    recall: RetrievalMetrics
    skewness: float | None = None
    largest: int | None = None  # the most often any item is among the ten best
    corrected: float | None = None  # share of the queries that a gate let through


def measured(
    method: Method,
    bank: Float32,
    test: Float32,
    captions: Captions,
    direction: Direction = T2V,
    hubness: bool = False,
) -> Figures:
    """A method on test rows `[queries, items]`; without `hubness` it takes a tenth of the time."""
    if not hubness:
        return Figures(retrieval_metrics(ranks_with(method, bank, test, captions, direction)))
    found = rank_normalised(method, bank, test, captions, direction)
    share = None if found.corrected is None else found.corrected / found.queries
    hubs = found.after.hubness
    return Figures(found.after.metrics, hubs.skewness, hubs.largest, share)


def ranks_with(
    method: Method, bank: Float32, test: Float32, captions: Captions, direction: Direction = T2V
) -> Float64:
    """`[queries]` ranks of the right answers; video to text, of the best caption of each video."""
    state = method.fit(bank)
    if direction is T2V:
        return ranks_of(ranking_scores(method.apply(test, state)), captions.owner)
    return best_own_ranks(ranking_scores(method.apply(test, state)), captions.owner)


def plain(test: Float32, captions: Captions, direction: Direction = T2V, hubness: bool = False) -> Figures:
    """The similarities alone."""
    return measured(make_method("none"), test[:1], test, captions, direction, hubness)


def validated(
    method: str,
    bank: Float32,
    test: Float32,
    captions: Captions,
    direction: Direction = T2V,
    grid: Sequence[float] = GRID,
) -> float:
    """β by R@1, then mean rank, then the smaller, for both directions."""
    tried = []
    for beta in grid:
        found = measured(make_method(method, beta=float(beta)), bank, test, captions, direction).recall
        tried.append((-found.r1, found.mean_rank, float(beta)))
    return min(tried)[2]


def summary(runs: Sequence[Figures]) -> dict[str, Any]:
    """Mean and deviation (of a sample) over seeds or draws, as the results files have them."""
    spread = aggregate([run.recall for run in runs])
    made: dict[str, Any] = {"runs": len(runs), "mean": asdict(spread.mean)}
    if len(runs) > 1:
        made["deviation"] = asdict(spread.deviation)
    for name in ("skewness", "largest", "corrected"):
        held = [getattr(run, name) for run in runs]
        if all(value is not None for value in held):
            made[name] = float(np.mean(held))
    made["each"] = [asdict(run.recall) for run in runs] if len(runs) > 1 else []
    return made


def shown(entry: Mapping[str, Any], key: str) -> str:
    """`mean ± deviation` of a summary.

    >>> shown({"mean": {"r1": 15.62}, "deviation": {"r1": 0.21}}, "r1")
    '15.6 ± 0.2'
    """
    apart = f" ± {entry['deviation'][key]:.1f}" if "deviation" in entry else ""
    return f"{entry['mean'][key]:.1f}{apart}"


def sample(count: int, size: int, seed: int) -> Int64:
    """`size` of `count` places, drawn without replacement, in order.

    >>> sample(5, 3, 0).tolist() == sorted(set(sample(5, 3, 0).tolist())), sample(5, 9, 0).tolist()
    (True, [0, 1, 2, 3, 4])
    """
    if size >= count:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, size, replace=False))


# Files


@dataclass
class Facts:
    """What a study writes beside its figures: enough to make them again."""

    study: str
    arguments: argparse.Namespace
    weights: Sequence[Weights]
    started: float = field(default_factory=time.time)
    models: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Now and not in the end: files may change while a study runs.
        self._hashes = [file_sha256(given.path) for given in self.weights]

    def used(self, label: str, model: Any) -> None:
        """Note a model as it was when it was loaded; its rows' weights do not stand in the checkpoint."""
        rows = dict(zip(model.experts, map(float, model.expert_weights), strict=True))
        self.models.append({"label": label, "fingerprint": model.fingerprint, "rows": rows})

    def write(self, figures: Mapping[str, Any], text: str, plots: Mapping[str, str]) -> None:
        """`NAME.json`, `README.md` and one SVG per plot."""
        out = self.arguments.out
        out.mkdir(parents=True, exist_ok=True)
        data = self.arguments.data
        inputs = sorted(data.glob("*/captions.json")) + sorted(data.glob("*/splits.json"))
        facts = {
            "study": self.study,
            "command": self.command(),
            "versions": {
                "wordreel": __version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
            },
            "inputs": [
                {"name": f"{path.parent.name}/{path.name}", "sha256": file_sha256(path)} for path in inputs
            ],
            "weights": [
                {"label": given.label, "name": given.path.parent.name, "sha256": digest}
                for given, digest in zip(self.weights, self._hashes, strict=True)
            ],
            "models": rounded(self.models),
            "seconds": round(time.time() - self.started),
            **rounded(dict(figures)),
        }
        path = out / f"{self.study}.json"
        path.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")
        for name, picture in plots.items():
            (out / f"{name}.svg").write_text(picture, "utf-8")
        (out / "README.md").write_text(f"{text.rstrip()}\n\n`{self.command()}`\n", "utf-8")
        progress(f"wrote {path} after {facts['seconds']} s")

    def command(self) -> str:
        """The command, with the names of files and without their places."""
        said = [f"python studies/{self.study}.py --data DATA"]
        given = [name for name in LIBRARIES if getattr(self.arguments, name) is not None]
        said += [f"--{name} {name}.lib" for name in given]
        for weights in self.weights:
            if weights.path != FILE:
                label = "" if weights.label == SHIPPED else f"{weights.label}="
                said.append(f'--weights "{label}{weights.path.parent.name}"')
        if most := getattr(self.arguments, "most", None):
            said.append(f"--most {most}")
        if encoder := getattr(self.arguments, "encoder", None):
            said.append(f"--encoder {encoder.name}")
        for text in getattr(self.arguments, "beside", ()):
            prefix, _, path = text.rpartition("=")
            said.append(f'--beside "{prefix}={Path(path).name}"')
        return " ".join(said)


def rounded(value: Any) -> Any:
    """Floats to four digits behind the point, in any nest of lists and dicts.

    >>> rounded({"a": [1 / 3, 2], "b": "c"})
    {'a': [0.3333, 2], 'b': 'c'}
    """
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(each) for each in value]
    return round(value, 4) if isinstance(value, float) else value


def progress(text: str) -> None:
    sys.stderr.write(text + "\n")
