"""`train`: a recipe and its data in, a model out. Epochs of steps, a validation after each, the best saved.

A run's folder holds `best/` and `last/` (models that `wordreel.lab.models.checkpoint` loads),
`state.safetensors` (to resume from), `log.csv`, `log.jsonl`, `loss.svg` and `recall.svg`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wordreel.errors import TrainingError
from wordreel.lab.training.distributed import init_world
from wordreel.lab.training.logs import LogRow, draw_curves, write_logs
from wordreel.lab.training.measure import ValidationMetrics
from wordreel.lab.training.optimisers import lr_factor
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.run_lock import StopRequest, TrainingInterrupted, run_lock, stop_on_signal
from wordreel.lab.training.saved_state import SavedState, differences, read_state, save_state
from wordreel.lab.training.session import Session
from wordreel.lab.training.training_data import TrainingData
from wordreel.progress import Progress
from wordreel.util.atomic import make_dir

REPORT_EVERY = 1.0  # seconds
ADVICE = "lower optimiser.lr, set optimiser.clip, or train in float32 (run.precision)"


@dataclass(frozen=True)
class TrainProgress(Progress):
    """`done` and `total` count steps.

    `loss` is the mean of the current epoch so far; `recall` is the geometric mean of R@1, R@5 and R@10 (text
    to video) in the last validation, None before the first. Speed is that of this session, validation
    and saving included.
    """

    epoch: int = 0
    epochs: int = 0
    loss: float = 0.0
    recall: float | None = None
    steps_per_second: float = 0.0
    seconds_left: float = float("inf")

    @property
    def epoch_ended(self) -> bool:
        """Return whether this was the last step of an epoch."""
        return self.total is not None and self.done * self.epochs == self.epoch * self.total


TrainCallback = Callable[[TrainProgress], None]
EpochCallback = Callable[[LogRow], None]


@dataclass(frozen=True)
class TrainResult:
    """The result of a run. `best` and `last` are model folders; `figures` are the best epoch's."""

    out: Path
    best: Path
    last: Path
    epoch: int
    score: float | None
    figures: ValidationMetrics | None
    history: tuple[LogRow, ...]
    seconds: float
    steps_per_second: float
    steps: int = 0  # of this session; 0: the run had come to its end before

    @property
    def loading(self) -> dict[str, float]:
        """Return clips per second and the share of time that the device waited for data, last epoch's."""
        last = self.history[-1] if self.history else {}
        return {key: last[key] for key in ("clips_per_second", "waiting_share") if key in last}


def train(
    recipe: Recipe,
    data: TrainingData,
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
    (Ctrl-C, SIGTERM) saves it after the present step and then raises `run_lock.TrainingInterrupted`.
    """
    device, folder = pick_device(device), Path(out)
    with init_world(device.type) as world:
        if device.type == "cuda" and world.size > 1:
            device = torch.device("cuda", world.local_rank)
            torch.cuda.set_device(device)
        lock = run_lock(folder) if world.is_main_process else nullcontext()
        with lock, stop_on_signal(world.size == 1) as stop:
            saved = read_state(folder) if resume else None
            session = Session(recipe, data, device, world)
            try:
                run = Run(session, folder, name or recipe.name, on_progress, on_epoch, save_steps, stop)
                if saved is not None:
                    run.resume(saved)
                result = run.run()
            finally:
                session.close()
            del session, run  # nothing may refer to the world when it is closed
            return result


def pick_device(device: str | torch.device | None) -> torch.device:
    """Return the named device, or a GPU where there is one."""
    if device is None or str(device) == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        picked = torch.device(device)
    except RuntimeError:
        raise TrainingError(f"there is no device {device!r}; say cpu, cuda, cuda:1 or auto") from None
    if picked.type not in ("cpu", "cuda"):
        raise TrainingError(f"training runs on cpu or cuda, not on {picked.type}; say --device cpu")
    if picked.type == "cpu":
        return picked
    count = torch.cuda.device_count()
    if (picked.index or 0) >= count:
        raise TrainingError(f"there is no {picked} among {count} CUDA devices; train with --device cpu")
    return torch.device("cuda", torch.cuda.current_device() if picked.index is None else picked.index)


@dataclass
class RunState:
    """What is saved of a run beside its weights. `total` and `counted` are of the losses of this epoch."""

    step: int = 0
    total: float = 0.0
    counted: int = 0
    history: list[LogRow] = field(default_factory=list)
    seconds: float = 0.0  # of earlier sessions
    best_epoch: int = -1
    best_score: float = -math.inf
    best_figures: ValidationMetrics | None = None


class Run:
    """One run: its progress so far, its logs and its saved state."""

    def __init__(
        self,
        session: Session,
        folder: Path,
        name: str,
        on_progress: TrainCallback | None = None,
        on_epoch: EpochCallback | None = None,
        save_steps: int = 0,
        stop: StopRequest | None = None,
    ) -> None:
        self.session, self.folder, self.name = session, folder, name
        self.on_progress, self.on_epoch, self.save_steps = on_progress, on_epoch, save_steps
        self.stop, self.settings = stop or StopRequest(), session.recipe.run
        self.state = RunState()
        self.best_weights: dict[str, Tensor] | None = None  # not yet on disk
        self.steps_of_epoch = session.steps_of_epoch()
        self.total_steps = self.steps_of_epoch * self.settings.epochs
        self.started = self.saved = time.perf_counter()
        self.first_step, self.saved_step, self.reported = 0, -1, 0.0

    def resume(self, saved: SavedState) -> None:
        """Continue from a saved state.

        Raises:
            TrainingError: It is of another recipe, or of other data.
        """
        identity, session = self.session.identity(), self.session
        if changed := differences(saved.facts["recipe"], identity["recipe"]):
            raise TrainingError(
                f"{self.folder} was started with another recipe ({', '.join(changed)}); use the same one, or "
                "another --out"
            )
        if saved.facts["data"] != identity["data"]:
            raise TrainingError(
                f"{self.folder} was started with other data; use the same data, or another --out"
            )
        saved.load_into(session.module, session.optimiser, session.scaler)
        facts = saved.facts["run"]
        figures = facts["best_figures"] and ValidationMetrics.from_json(facts["best_figures"])
        self.state = RunState(**{**facts, "best_figures": figures})
        self.saved_step = self.first_step = self.state.step

    def save(self) -> None:
        """Write the best model, then the state that refers to it: a kill between them repeats some steps."""
        session = self.session
        if session.world.is_main_process:
            self._write_best()
            facts = {**session.identity(), "run": {**asdict(self.state), "seconds": self._seconds()}}
            save_state(self.folder, session.module, session.optimiser, session.scaler, facts)
        self.saved, self.saved_step = time.perf_counter(), self.state.step

    def run(self) -> TrainResult:
        """Train to the end."""
        if self.session.world.is_main_process:
            make_dir(self.folder)
        for epoch in range(self.state.step // self.steps_of_epoch, self.settings.epochs):
            if self._out_of_patience():
                break
            self._epoch(epoch)
        return self._finish()

    def _epoch(self, number: int) -> None:
        state, losses = self.state, list[Tensor]()
        started, first = time.perf_counter(), state.step
        for batch in self.session.batches(number, first - number * self.steps_of_epoch):
            losses.append(self.session.step(batch, state.step, self._lr_factor(state.step)))
            state.step += 1
            if state.step == (number + 1) * self.steps_of_epoch:
                break
            report = self.on_progress is not None and time.perf_counter() - self.reported > REPORT_EVERY
            save = self._save_due()
            if report or save or len(losses) >= 1000:
                self._count(losses)
            if report:
                self._report(number)
            if save:
                self.save()
                self._check_stop()
        self._count(losses)
        seconds = time.perf_counter() - started
        row: LogRow = {
            "epoch": number + 1,
            "step": state.step,
            "loss": self._mean_loss(),
            "lr": self.session.recipe.optimiser.lr * self._lr_factor(state.step - 1),
            "seconds": round(seconds, 3),
            "steps_per_second": round((state.step - first) / max(seconds, 1e-9), 3),
            **self.session.source.epoch_figures(),
            **self._measure(number + 1),
        }
        state.history.append(row)
        if self.session.world.is_main_process:
            write_logs(self.folder, state.history)
        self._report(number)
        state.total, state.counted = 0.0, 0
        last = number + 1 == self.settings.epochs
        if last or self._save_due():
            self.save()
        if self.on_epoch:
            self.on_epoch(row)
        if not last:
            self._check_stop()

    def _measure(self, epoch: int) -> dict[str, float]:
        """Validate, and remember the best weights."""
        state, settings, session = self.state, self.settings, self.session
        if not session.weights_finite():
            raise TrainingError(f"weights are no longer numbers near step {state.step}; {ADVICE}")
        wanted = epoch % settings.validate_every == 0 or epoch == settings.epochs
        figures = session.measure() if wanted and session.world.is_main_process else None
        score = -math.inf if figures is None else figures.score(settings.select)
        score = session.world.broadcast(score, session.device)
        if self._last_is_best() or (score > -math.inf and score >= state.best_score):
            state.best_epoch, state.best_score, state.best_figures = epoch, score, figures
            if not self._last_is_best():
                self.best_weights = session.copied_state()
        return {} if figures is None else figures.row()

    def _last_is_best(self) -> bool:
        return self.settings.select == "last" or not self.session.has_validation

    def _out_of_patience(self) -> bool:
        """Whether the best epoch is too long ago."""
        best, patience = self.state.best_epoch, self.settings.patience
        return best > 0 and 0 < patience <= len(self.state.history) - best

    def _save_due(self) -> bool:
        if self.stop.requested or (self.save_steps and self.state.step % self.save_steps == 0):
            return True
        minutes = self.settings.save_minutes
        return minutes > 0 and time.perf_counter() - self.saved > 60 * minutes

    def _count(self, losses: list[Tensor]) -> None:
        for value in torch.stack(losses).tolist() if losses else []:
            if not math.isfinite(value):
                raise TrainingError(f"the loss is {value} near step {self.state.step}; {ADVICE}")
            self.state.total += value
            self.state.counted += 1
        losses.clear()

    def _mean_loss(self) -> float:
        return self.state.total / max(1, self.state.counted)

    def _lr_factor(self, step: int) -> float:
        return lr_factor(self.session.recipe.schedule, step, self.total_steps, self.steps_of_epoch)

    def _seconds(self) -> float:
        return self.state.seconds + time.perf_counter() - self.started

    def _check_stop(self) -> None:
        """Stop here if a stop was requested; the state has just been saved."""
        if self.stop.requested:
            raise TrainingInterrupted(f"stopped after step {self.state.step} of {self.total_steps}")

    def _report(self, epoch: int) -> None:
        if self.on_progress is None or not self.session.world.is_main_process:
            return
        self.reported = now = time.perf_counter()
        state, key = self.state, "t2v_geometric_mean"
        speed = (state.step - self.first_step) / max(now - self.started, 1e-9)
        self.on_progress(
            TrainProgress(
                "training",
                state.step,
                self.total_steps,
                epoch=epoch + 1,
                epochs=self.settings.epochs,
                loss=self._mean_loss(),
                recall=next((row[key] for row in reversed(state.history) if key in row), None),
                steps_per_second=speed,
                seconds_left=(self.total_steps - state.step) / speed if speed else math.inf,
            )
        )

    def _write_best(self) -> None:
        if self.best_weights is not None:
            about = self._about(self.state.best_epoch)
            self.session.write(self.folder / "best", self.name, about, self.best_weights)
            self.best_weights = None

    def _finish(self) -> TrainResult:
        state, best, last = self.state, self.folder / "best", self.folder / "last"
        seconds = self._seconds()
        if self.saved_step != state.step:  # patience ended the run: the state must say so
            self.save()
        if self.session.world.is_main_process:
            about = self._about(len(state.history))
            self.session.write(last, self.name, about)
            if state.best_epoch < 0 or self._last_is_best():  # below 0: no epoch, or none that was measured
                self.session.write(best, self.name, about)
            write_logs(self.folder, state.history)
            draw_curves(self.folder, state.history, self.name)
        speeds = [row["steps_per_second"] for row in state.history]
        return TrainResult(
            self.folder,
            best,
            last,
            max(0, state.best_epoch),
            state.best_score if math.isfinite(state.best_score) else None,
            state.best_figures,
            tuple(state.history),
            seconds,
            sum(speeds) / max(1, len(speeds)),
            state.step - self.first_step,
        )

    def _about(self, epoch: int) -> dict[str, Any]:
        """Facts stored with a model: nothing that two equal runs would differ in."""
        about = {**self.session.data_facts(), "epoch": epoch, "seed": self.settings.seed}
        if self.state.best_figures is not None and epoch == self.state.best_epoch:
            about["validation"] = {**self.session.validation_facts(), **self.state.best_figures.row()}
        return about
