"""`train`: a recipe and its data in, a model out. Epochs of steps, a validation after each, the best saved.

A run's folder holds `best/` and `last/` (models that `wordreel.lab.models.checkpoint` loads),
`state.safetensors` (to resume from), `log.csv`, `log.jsonl`, `loss.svg` and `recall.svg`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wordreel.errors import TrainingError
from wordreel.lab.training.distributed import init_world
from wordreel.lab.training.interrupt import StopRequest, TrainingInterrupted, stop_on_signal
from wordreel.lab.training.logs import LogRow, draw_curves, write_logs
from wordreel.lab.training.lr_schedules import lr_factor
from wordreel.lab.training.measure import ValidationMetrics
from wordreel.lab.training.progress import StepTimer, TrainCallback, TrainProgress
from wordreel.lab.training.recipe import Recipe
from wordreel.lab.training.run_lock import run_lock
from wordreel.lab.training.session import Session
from wordreel.lab.training.state import SavedState, differences, read_state, save_state
from wordreel.lab.training.training_data import TrainingData
from wordreel.util.atomic import make_dir

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
        """Clips per second and the share of time that the device waited for data, where video was decoded.

        Epochs have the same number of clips, so an epoch lasts in proportion to 1 / its clips per second.
        """
        rows = [row for row in self.history if row.get("clips_per_second")]
        if not rows:
            return {}
        lasted = [1 / row["clips_per_second"] for row in rows]
        waited = sum(row["waiting_share"] * seconds for row, seconds in zip(rows, lasted, strict=True))
        return {
            "clips_per_second": round(len(rows) / sum(lasted), 2),
            "waiting_share": round(waited / sum(lasted), 4),
        }


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
    (Ctrl-C, SIGTERM) saves it after the present step and then raises `interrupt.TrainingInterrupted`.
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


class Run:
    """One run: its progress so far, its logs and its saved state."""

    def __init__(
        self,
        session: Session,
        folder: Path,
        name: str,
        on_progress: TrainCallback | None,
        on_epoch: EpochCallback | None,
        save_steps: int,
        stop: StopRequest | None = None,
    ) -> None:
        self.session, self.folder, self.name = session, folder, name
        self.on_progress, self.on_epoch, self.save_steps = on_progress, on_epoch, save_steps
        self.stop = stop or StopRequest()
        self.step, self.total, self.counted = 0, 0.0, 0  # total and counted: losses of this epoch
        self.history: list[LogRow] = []
        self.best_epoch, self.best_score = -1, -math.inf
        self.best_figures: ValidationMetrics | None = None
        self.best_state: dict[str, Tensor] | None = None  # not yet on disk
        self.saved, self.saved_step = time.perf_counter(), -1
        self.first_step = 0  # of this session
        self.spent = 0.0  # seconds of earlier sessions

    # Resuming

    def resume(self, saved: SavedState) -> None:
        """Continue from a saved state.

        Raises:
            TrainingError: It is of another recipe, or of other data.
        """
        facts, session = saved.facts, self.session
        mine = session.identity()
        changed = differences(facts["recipe"], mine["recipe"])
        if changed:
            raise TrainingError(
                f"{self.folder} was started with another recipe ({', '.join(changed)}); use the same one, or "
                "another --out"
            )
        if facts["data"] != mine["data"]:
            raise TrainingError(
                f"{self.folder} was started with other data; use the same data, or another --out"
            )
        saved.load_into(session.module, session.optimiser, session.scaler)
        self.step, self.total, self.counted = facts["step"], facts["total"], facts["counted"]
        self.saved_step = self.first_step = self.step
        self.history, self.spent = facts["history"], facts["seconds"]
        self.best_epoch, self.best_score = facts["best_epoch"], facts["best_score"]
        self.best_figures = (
            ValidationMetrics.from_json(facts["best_figures"]) if facts["best_figures"] else None
        )

    def save_state(self) -> None:
        """Write the best model, then the state that refers to it: a kill between them repeats some steps."""
        session = self.session
        if session.world.is_main_process:
            self._write_best()
            facts = {
                **session.identity(),
                "step": self.step,
                "total": self.total,
                "counted": self.counted,
                "history": self.history,
                "seconds": self.spent + time.perf_counter() - self.timer.started,
                "best_epoch": self.best_epoch,
                "best_score": self.best_score,
                "best_figures": self.best_figures.to_json() if self.best_figures else None,
            }
            save_state(self.folder, session.module, session.optimiser, session.scaler, facts)
        self.saved, self.saved_step = time.perf_counter(), self.step

    # Running

    def run(self) -> TrainResult:
        session, settings = self.session, self.session.recipe.run
        each = session.steps_of_epoch()
        self.total_steps = each * settings.epochs
        self.timer = StepTimer(self.total_steps)
        if session.world.is_main_process:
            make_dir(self.folder)
        for epoch in range(self.step // each, settings.epochs):
            if self._out_of_patience():
                break
            self._epoch(epoch, each)
        return self._finish()

    def _epoch(self, number: int, each: int) -> None:
        losses: list[Tensor] = []
        started, first = time.perf_counter(), self.step
        for batch in self.session.batches(number, self.step - number * each):
            scale = lr_factor(self.session.recipe.schedule, self.step, self.total_steps, each)
            losses.append(self.session.step(batch, self.step, scale))
            self.step += 1
            self.timer.steps += 1
            ended = self.step == (number + 1) * each
            due = self.save_steps and self.step % self.save_steps == 0
            if self.on_progress and not ended and self.timer.report_due():
                self._count(losses)
                self._report(number, each)
            if not ended and (due or self._save_due() or self.stop.requested):
                self._count(losses)
                self.save_state()
                self._check_stop()
            if len(losses) >= 1000:
                self._count(losses)
        self._count(losses)
        seconds = time.perf_counter() - started
        row: LogRow = {
            "epoch": number + 1,
            "step": self.step,
            "loss": self.total / max(1, self.counted),
            "lr": self.session.recipe.optimiser.lr
            * lr_factor(self.session.recipe.schedule, self.step - 1, self.total_steps, each),
            "seconds": round(seconds, 3),
            "steps_per_second": round((self.step - first) / max(seconds, 1e-9), 3),
            **self.session.source.epoch_figures(),
        }
        self.total, self.counted = 0.0, 0
        self._measure(number + 1, row)
        self.history.append(row)
        if self.session.world.is_main_process:
            write_logs(self.folder, self.history)
        if self.on_progress:
            self._report(number, each, row["loss"])
        last = number + 1 == self.session.recipe.run.epochs
        due = self.save_steps and self.step % self.save_steps == 0
        if last or due or self._save_due() or self.stop.requested:
            self.save_state()
        if self.on_epoch:
            self.on_epoch(row)
        if not last:
            self._check_stop()

    def _measure(self, epoch: int, row: LogRow) -> None:
        settings = self.session.recipe.run
        if not self.session.weights_finite():
            raise TrainingError(self._advice("weights are no longer numbers"))
        wanted = epoch % settings.validate_every == 0 or epoch == settings.epochs
        figures = None
        if wanted and self.session.world.is_main_process:
            figures = self.session.measure()
        if figures is not None:
            row |= figures.row()
        select = settings.select
        score = -math.inf if figures is None else figures.score(select)
        score = self.session.world.broadcast(score, self.session.device)
        last = select == "last" or not self.session.has_validation
        if last or (score > -math.inf and score >= self.best_score):
            self.best_epoch, self.best_score, self.best_figures = epoch, score, figures
            if not last:
                self.best_state = self.session.copied_state()

    def _out_of_patience(self) -> bool:
        """Whether the best epoch is too long ago."""
        patience = self.session.recipe.run.patience
        return bool(patience) and len(self.history) - self.best_epoch >= patience > 0 and self.best_epoch > 0

    def _save_due(self) -> bool:
        minutes = self.session.recipe.run.save_minutes
        return minutes > 0 and time.perf_counter() - self.saved > 60 * minutes

    def _count(self, losses: list[Tensor]) -> None:
        for value in torch.stack(losses).tolist() if losses else []:
            if not math.isfinite(value):
                raise TrainingError(self._advice(f"the loss is {value}"))
            self.total += value
            self.counted += 1
        losses.clear()

    def _advice(self, what: str) -> str:
        return (
            f"{what} near step {self.step}; lower optimiser.lr, set optimiser.clip, or train in float32 "
            "(run.precision)"
        )

    def _check_stop(self) -> None:
        """Stop here if a stop was requested; the state has just been saved."""
        if self.stop.requested:
            raise TrainingInterrupted(f"stopped after step {self.step} of {self.total_steps}")

    def _report(self, epoch: int, each: int, loss: float | None = None) -> None:
        if self.on_progress is None or not self.session.world.is_main_process:
            return
        measured = [row["t2v_geometric_mean"] for row in self.history if "t2v_geometric_mean" in row]
        mean = self.total / max(1, self.counted) if loss is None else loss
        self.on_progress(
            TrainProgress(
                "training",
                self.step,
                self.total_steps,
                epoch=epoch + 1,
                epochs=self.session.recipe.run.epochs,
                loss=mean,
                recall=measured[-1] if measured else None,
                steps_per_second=self.timer.steps_per_second(),
                seconds_left=self.timer.seconds_left(self.step),
            )
        )

    # The end

    def _write_best(self) -> None:
        if self.best_state is not None:
            self.session.write(self.folder / "best", self.name, self._about(self.best_epoch), self.best_state)
            self.best_state = None

    def _finish(self) -> TrainResult:
        best, last = self.folder / "best", self.folder / "last"
        seconds = self.spent + time.perf_counter() - self.timer.started
        if self.saved_step != self.step:  # patience ended the run: the state must say so
            self.save_state()
        if self.session.world.is_main_process:
            about = self._about(len(self.history))
            self.session.write(last, self.name, about, None)
            nothing = self.best_epoch < 0  # no epoch, or none that was measured
            if nothing or self.session.recipe.run.select == "last" or not self.session.has_validation:
                self.session.write(best, self.name, about, None)
            write_logs(self.folder, self.history)
            draw_curves(self.folder, self.history, self.name)
        score = self.best_score if math.isfinite(self.best_score) else None
        rates = [row["steps_per_second"] for row in self.history]
        return TrainResult(
            self.folder,
            best,
            last,
            max(0, self.best_epoch),
            score,
            self.best_figures,
            tuple(self.history),
            seconds,
            sum(rates) / len(rates) if rates else 0.0,
            self.step - self.first_step,
        )

    def _about(self, epoch: int) -> dict[str, Any]:
        """Facts stored with a model: nothing that two equal runs would differ in."""
        about: dict[str, Any] = {
            "recipe": self.session.recipe.to_json(),
            **self.session.data_facts(),
            "epoch": epoch,
            "seed": self.session.recipe.run.seed,
        }
        if self.best_figures is not None and epoch == self.best_epoch:
            about["validation"] = {**self.session.validation_facts(), **self.best_figures.row()}
        return about
