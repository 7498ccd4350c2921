"""`train`: a recipe and its data in, a model out.

A run's folder holds `best/` and `last/` (models that `wordreel.lab.models.checkpoint` loads),
`state.safetensors` (to resume from), `log.csv`, `log.jsonl`, TensorBoard events, `loss.svg` and `recall.svg`.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

from wordreel.errors import TrainingError
from wordreel.lab.training.appearance.picture_set import AppearanceData
from wordreel.lab.training.appearance.recipe import AppearanceRecipe
from wordreel.lab.training.distributed import World, init_world
from wordreel.lab.training.feature_session import FeatureSession
from wordreel.lab.training.interrupt import stop_on_signal
from wordreel.lab.training.progress import TrainCallback
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.run import EpochCallback, Run, TrainResult
from wordreel.lab.training.run_lock import run_lock
from wordreel.lab.training.session import Session
from wordreel.lab.training.state import read_facts
from wordreel.lab.training.training_data import TrainingData
from wordreel.lab.training.video.recipe import VideoRecipe
from wordreel.lab.training.video.video_pairs import VideoData

AnyRecipe = Recipe | VideoRecipe | AppearanceRecipe
AnyData = TrainingData | VideoData | AppearanceData


def train(
    recipe: AnyRecipe,
    data: AnyData,
    out: str | Path,
    *,
    device: str | torch.device | None = None,
    resume: bool = False,
    name: str = "",
    on_progress: TrainCallback | None = None,
    on_epoch: EpochCallback | None = None,
    save_steps: int = 0,
) -> TrainResult:
    """Train a model and write it to `out`. On a CPU, the same recipe and data give the same bits.

    With `resume` a stopped run continues from its last state (and starts where there is none); the
    result is that of a run that was never stopped. `on_epoch` hears each epoch's figures and may raise to
    stop. The state is saved every `run.save_minutes`, and every `save_steps` steps if given; an interrupt
    (Ctrl-C, SIGTERM) saves it after the present step and then raises `interrupt.TrainingInterrupted`.
    """
    device, folder = pick_device(device), Path(out)
    with init_world(device.type) as world:
        if device.type == "cuda" and world.size > 1:
            device = torch.device("cuda", world.local_rank)
            torch.cuda.set_device(device)
        lock = run_lock(folder) if world.is_main_process else nullcontext()
        with lock, stop_on_signal(world.size == 1) as stop:
            facts = read_facts(folder) if resume else None
            session = open_session(recipe, data, device, world)
            try:
                run = Run(session, folder, name or recipe.name, on_progress, on_epoch, save_steps, stop)
                if facts is not None:
                    run.resume(facts)
                result = run.run()
            finally:
                session.close()
            del session, run  # nothing may refer to the world when it is closed
            return result


def open_session(recipe: AnyRecipe, data: AnyData, device: torch.device, world: World) -> Session[Any]:
    """The session of a recipe: on features, on frames, or on pictures."""
    if isinstance(recipe, VideoRecipe) and isinstance(data, VideoData):
        from wordreel.lab.training.video.session import (
            VideoSession,  # decodes, which training on features need not
        )

        return VideoSession(recipe, data, device, world)
    if isinstance(recipe, Recipe) and isinstance(data, TrainingData):
        return FeatureSession(recipe, data, device, world)
    if isinstance(recipe, AppearanceRecipe) and isinstance(data, AppearanceData):
        from wordreel.lab.training.appearance.session import AppearanceSession

        return AppearanceSession(recipe, data, device, world)
    raise TrainingError(f"the recipe {recipe.name} does not train on this kind of data")


def pick_device(device: str | torch.device | None) -> torch.device:
    """The named device, or a GPU where there is one."""
    if device is None or str(device) == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        picked = torch.device(device)
    except RuntimeError:
        raise TrainingError(f"there is no device {device!r}; say cpu, cuda, cuda:1 or auto") from None
    if picked.type not in ("cpu", "cuda"):
        raise TrainingError(f"training runs on cpu or cuda, not on {picked.type}; say --device cpu")
    if picked.type == "cuda" and not torch.cuda.is_available():
        raise TrainingError("there is no CUDA device here; train with --device cpu")
    if picked.index is not None and picked.type == "cuda" and picked.index >= torch.cuda.device_count():
        raise TrainingError(f"there is no {picked} here, the last is cuda:{torch.cuda.device_count() - 1}")
    if str(picked) == "cuda":
        return torch.device("cuda", torch.cuda.current_device())
    return picked
