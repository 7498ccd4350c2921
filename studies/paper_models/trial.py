"""One run: a row of the tables with one setting and one seed, trained, and scored on videos it never saw.

Training is `wordreel.lab.training`'s own loop. The epoch is the one with the best geometric mean of R@1, R@5
and R@10 on the validation captions; β of QB-Norm is chosen on them too. The test split is looked at once, by
the chosen weights, and not at all by a run of a grid.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from paper_models.material import PLACES, WORDS, Study
from paper_models.normed import normalised
from paper_models.rows import Row
from wordreel.lab.models.config import FeatureModelConfig, TransformerConfig
from wordreel.lab.models.text.bert import Bert
from wordreel.lab.training import recipe as recipes
from wordreel.lab.training.data.caption_store import CaptionStore, states
from wordreel.lab.training.data.feature_store import FeatureStore
from wordreel.lab.training.data.packed import Packed, pack
from wordreel.lab.training.data.sampler import BatchSampler
from wordreel.lab.training.distributed import World
from wordreel.lab.training.feature_batches import FeatureBatches
from wordreel.lab.training.loop import Run, TrainResult
from wordreel.lab.training.measure import embed_texts, embed_videos, measure, similarity_matrix
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.session import Session
from wordreel.lab.training.training_data import TrainingData

LOOKS = 25  # times that a run is validated, about


@dataclass(frozen=True)
class Job:
    """`setting` are overrides of the row's recipe; `stage` is "grid" (validation only) or "final"."""

    row: Row
    setting: tuple[str, ...] = ()
    seed: int = 0
    stage: str = "final"
    epochs: int = 0  # 0: as the setting says

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.stage, self.row.name, self.setting, self.seed, self.epochs)


@dataclass
class Bench:
    """What one process keeps between its runs. `graphs` replays steps as CUDA graphs."""

    study: Study
    device: torch.device
    scratch: Path
    graphs: bool = False
    held: dict[tuple[str, bool], CaptionStore] = field(default_factory=dict)

    @cached_property
    def size(self) -> TransformerConfig:
        """The encoder's size, as its weights tell it."""
        network = self.study.network
        words, inner = network[WORDS], network["encoder.layer.0.intermediate.dense.weight"]
        layers = len([name for name in network if name.endswith("intermediate.dense.weight")])
        return TransformerConfig(
            len(words), words.shape[1], layers, self.study.heads, len(inner), len(network[PLACES])
        )

    @cached_property
    def folder(self) -> Path:
        """The encoder as a folder that a recipe's `start.text` can name."""
        from safetensors.numpy import save_file

        made = Path(tempfile.mkdtemp(prefix="encoder-", dir=self.scratch))
        whole = {name: np.ascontiguousarray(array) for name, array in self.study.network.items()}
        save_file(whole, made / "model.safetensors")
        return made

    @cached_property
    def vectors(self) -> Mapping[str, Packed]:
        """The frozen encoder's states of all captions, each different caption encoded once."""
        network = Bert(self.size)
        network.load_state_dict({name: torch.from_numpy(a) for name, a in self.study.network.items()})
        first: dict[str, int] = {}
        rows: list[np.ndarray] = []
        for split, pairs in self.study.pairs.items():
            packed = self.study.tokens[split]
            for text, start, count in zip(pairs.texts, packed.starts, packed.counts, strict=True):
                if text not in first:
                    first[text] = len(rows)
                    rows.append(packed.values[start : start + count])
        made = states(network.to(self.device).eval(), pack(rows), self.device)
        values, starts = made.values.astype(np.float16), made.starts
        found = {}
        for split, pairs in self.study.pairs.items():
            numbers = np.array([first[text] for text in pairs.texts])
            found[split] = picked(Packed(values, made.counts), numbers, starts)
        return found

    def words(self, recipe: Recipe, split: str) -> Packed:
        return (self.vectors if _reads_vectors(recipe) else self.study.tokens)[split]

    def material(self, recipe: Recipe) -> TrainingData:
        train, words = self.study.pairs["train"], self.words(recipe, "train")
        limit = recipe.data.limit
        if limit:
            place = np.arange(int(train.counts.sum())) - np.repeat(
                np.cumsum(train.counts) - train.counts, train.counts
            )
            words = picked(words, np.flatnonzero(place < limit))
        return TrainingData(train.limited(limit), words, self.study.pairs["val"], self.words(recipe, "val"))

    def texts(self, recipe: Recipe, split: str) -> CaptionStore:
        key = (split, _reads_vectors(recipe))
        if key not in self.held:
            self.held[key] = CaptionStore(self.words(recipe, split), self.device)
        return self.held[key]


def _reads_vectors(recipe: Recipe) -> bool:
    assert isinstance(recipe.model, FeatureModelConfig)  # noqa: S101 - the recipes are of features
    return recipe.model.text.words == "vectors"


def picked(packed: Packed, numbers: np.ndarray, starts: np.ndarray | None = None) -> Packed:
    """Some items, in this order."""
    counts = packed.counts[numbers]
    firsts = (packed.starts if starts is None else starts)[numbers]
    ends = np.cumsum(counts)
    within = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    return Packed(packed.values[np.repeat(firsts, counts) + within], counts)


def recipe_of(bench: Bench, job: Job) -> Recipe:
    """The row's recipe for this data: its experts, the encoder's size, the setting and the seed."""
    row, size = job.row, bench.size
    rows = bench.study.pairs["train"].rows
    names = ", ".join(f'"{expert}"' for expert in row.experts)
    changes = [f"model.experts=[{names}]", f"model.text.dim={size.hidden}"]
    changes += [f"model.expert.{expert}.dim={rows[expert].values.shape[1]}" for expert in row.experts]
    if row.family == "mmt":
        changes += [f"model.text.network.{key}={value}" for key, value in asdict(size).items()]
        changes.append(f"start.text={bench.folder}")
    changes += [*job.setting, *row.changes, f"run.seed={job.seed}", "run.save_minutes=0.0"]
    if job.epochs:
        changes.append(f"run.epochs={job.epochs}")
    made = recipes.load(row.recipe, changes)
    run = replace(made.run, validate_every=max(1, made.run.epochs // LOOKS), compile=bench.graphs)
    if row.captions:
        # As many steps as with all captions, so that only what is read differs.
        whole = BatchSampler(bench.study.pairs["train"], made.data, made.run)
        run = replace(run, steps=whole.steps_of_epoch())
        made = replace(made, data=replace(made.data, limit=row.captions))
    return replace(made, run=run)


def run_job(bench: Bench, job: Job) -> dict[str, Any]:
    """Train, choose the epoch, and score; plain values. Nothing of the model is kept."""
    begun = time.perf_counter()
    recipe = recipe_of(bench, job)
    session = Session(recipe, bench.material(recipe), bench.device, World())
    with tempfile.TemporaryDirectory(prefix="run-", dir=bench.scratch) as folder:
        result = Run(session, Path(folder), job.row.name).run()
        _load(session, result)
    found: dict[str, Any] = {
        "row": job.row.name,
        "title": job.row.title,
        "family": job.row.family,
        "stage": job.stage,
        "setting": list(job.setting),
        "seed": job.seed,
        "epochs": job.epochs,
        "experts": list(job.row.experts),
        "captions": job.row.captions,
        "parameters": sum(p.numel() for p in session.module.parameters()),
        "best_epoch": result.epoch,
        "steps": result.history[-1]["step"] if result.history else 0,
        "steps_per_second": round(result.steps_per_second, 1),
        "graphs": bench.graphs,
        "recipe": recipe.to_json() if job.stage == "final" else {},
        "val": result.figures.to_json() if result.figures is not None else None,
        "history": [
            [entry["epoch"], round(entry["loss"], 5), round(entry["t2v_geometric_mean"], 3)]
            for entry in result.history
            if "t2v_geometric_mean" in entry
        ],
    }
    if job.stage == "final":
        found |= scored(bench, session)
    del session
    if bench.device.type == "cuda":
        gc.collect()  # a session and its graph hold on to each other
        torch.cuda.empty_cache()
    found["seconds"] = round(time.perf_counter() - begun, 2)
    return found


def scored(bench: Bench, session: Session) -> dict[str, Any]:
    """Test figures, plain and after QB-Norm with the queries of training as the bank."""
    source = session.source
    assert isinstance(source, FeatureBatches)  # noqa: S101 - the recipes are of features
    assert isinstance(source.texts, CaptionStore)  # noqa: S101 - of captions, not of transcripts
    module, precision, pairs = source.module.eval(), source.precision, bench.study.pairs
    stores = {split: FeatureStore(pairs[split], module.config, bench.device) for split in ("val", "test")}
    stores["train"] = source.features
    shown = {split: embed_videos(module, store, precision) for split, store in stores.items()}
    asked = {
        "train": embed_texts(module, source.texts, precision),
        "val": embed_texts(module, bench.texts(session.recipe, "val"), precision),
        "test": embed_texts(module, bench.texts(session.recipe, "test"), precision),
    }
    found = {}
    plain = {split: similarity_matrix(asked[split], shown[split]) for split in ("val", "test")}
    counts = {split: pairs[split].counts for split in ("val", "test")}
    found["test"] = measure(plain["test"], counts["test"]).to_json()
    captions = {split: similarity_matrix(asked["train"], shown[split]) for split in ("val", "test")}
    videos = {split: similarity_matrix(asked[split], shown["train"]) for split in ("val", "test")}
    found["normalised"] = normalised(plain, captions, videos, counts)
    return found


def _load(session: Session, result: TrainResult) -> None:
    """Put the best epoch's weights back."""
    from safetensors.torch import load_file

    session.module.load_state_dict(load_file(result.best / "model.safetensors"))
