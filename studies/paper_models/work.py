"""All runs, several side by side: first each family's short grid, then every row with the setting it chose.

What is done is written after every run, so that a stop loses only the runs in flight; a later call with the
same folder goes on from there. On a GPU a step is replayed as one CUDA graph; a row whose steps cannot be
captured is trained step by step.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paper_models.rows import GRIDS, ROWS, Row

if TYPE_CHECKING:
    from paper_models.material import Study
    from paper_models.trial import Bench, Job

Open = Callable[[], "Study"]
Say = Callable[[str], None]
FILE = "runs.json"
ROOM = 16 << 30  # bytes of free memory that make it the place for a run's files
_held: dict[str, Any] = {}  # of a worker: its bench and when to stop


@dataclass
class Records:
    """The runs so far, in one file that is replaced as a whole."""

    path: Path
    facts: dict[str, Any]
    runs: list[dict[str, Any]] = field(default_factory=list)

    @staticmethod
    def open(folder: Path, facts: dict[str, Any]) -> Records:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / FILE
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"runs": []}
        return Records(path, facts, found["runs"])

    def add(self, run: dict[str, Any]) -> None:
        self.runs.append(run)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps({"facts": self.facts, "runs": self.runs}, indent=1), encoding="utf-8")
        fresh.replace(self.path)

    def find(self, job: Job) -> dict[str, Any] | None:
        for run in self.runs:
            mine = (run["stage"], run["row"], tuple(run["setting"]), run["seed"], run["epochs"])
            if mine == job.key:
                return run
        return None


@dataclass(frozen=True)
class Plan:
    """What is to be done. `limit` seconds after the start no further run begins; 0: no limit."""

    rows: Sequence[Row]
    seeds: int = 3
    grid: bool = True
    device: str = "cpu"
    jobs: int = 1
    graphs: bool = False
    limit: float = 0.0
    epochs: int = 0  # for trying things out


def best_setting(runs: Iterable[dict[str, Any]]) -> tuple[str, ...]:
    """The setting of the best validation score, the geometric mean of R@1, R@5 and R@10."""
    best = max(runs, key=lambda run: run["val"]["t2v"]["geometric_mean"])
    return tuple(best["setting"])


def run_all(open_study: Open, plan: Plan, out: Path, say: Say) -> Records:
    """Every row of the plan; the records, as they stand in `out`."""
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # steps are captured as they are: compiling outlasts a run
    from paper_models.trial import Job

    begun = time.monotonic()
    records = Records.open(out, {})
    pool = Pool(open_study, plan, begun + plan.limit if plan.limit else 0.0, say)
    waiting: dict[Future[dict[str, Any]], Job] = {}
    left: dict[str, set[Job]] = {}
    rows = {family: [row for row in plan.rows if row.family == family] for family in GRIDS}

    def submit(job: Job) -> None:
        waiting[pool.submit(job)] = job

    def finals(family: str) -> None:
        setting: tuple[str, ...] = ()
        if plan.grid:
            done = [records.find(job) for job in grid_jobs(family)]
            known = [run for run in done if run is not None and run.get("val")]
            if not known:
                return
            setting = best_setting(known)
        for row in rows[family]:
            for seed in range(plan.seeds):
                job = Job(row, setting, seed, "final", plan.epochs)
                if records.find(job) is None:
                    submit(job)

    def grid_jobs(family: str) -> list[Job]:
        main = next(row for row in ROWS if row.name == family)
        return [Job(main, setting, 0, "grid", plan.epochs) for setting in GRIDS[family]]

    for family in sorted((name for name, some in rows.items() if some), reverse=True):
        todo = [job for job in grid_jobs(family) if records.find(job) is None] if plan.grid else []
        left[family] = set(todo)
        for job in todo:
            submit(job)
        if not todo:
            finals(family)
    while waiting:
        finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in finished:
            job = waiting.pop(future)
            run = pool.result(future, job)
            if run is None:  # could not be captured: once more, step by step
                submit(job)
                continue
            records.facts = run.pop("facts", None) or records.facts
            if "row" in run:
                records.add(run)
            say(_line(job, run, time.monotonic() - begun))
            if job.stage == "grid":
                left[job.row.family].discard(job)
                if not left[job.row.family]:
                    finals(job.row.family)
    pool.close()
    return records


class Pool:
    """Processes that run jobs; one that captures, and one that does not for what cannot be captured."""

    def __init__(self, open_study: Open, plan: Plan, until: float, say: Say) -> None:
        self.open, self.plan, self.until, self.say = open_study, plan, until, say
        self.plain: set[str] = set()  # rows that cannot be captured
        self.made: dict[bool, Executor] = {}
        self.scratch = tempfile.TemporaryDirectory(prefix="wordreel-papers-", dir=memory())

    def submit(self, job: Job) -> Future[dict[str, Any]]:
        graphs = self.plan.graphs and job.row.name not in self.plain
        if graphs not in self.made:
            scratch = Path(self.scratch.name)
            given = (self.open, self.plan.device, graphs, self.until, self.plan.jobs, scratch)
            if self.plan.jobs == 1:
                self.made[graphs] = ThreadPoolExecutor(1, initializer=start_worker, initargs=given)
            else:
                context = get_context("spawn")
                self.made[graphs] = ProcessPoolExecutor(self.plan.jobs, context, start_worker, given)
        try:
            return self.made[graphs].submit(work, job)
        except BrokenExecutor:  # a process died, and others were told so: these are new ones
            self.made.pop(graphs)
            return self.submit(job)

    def result(self, future: Future[dict[str, Any]], job: Job) -> dict[str, Any] | None:
        """What came of a job; None where it is to be tried again without capturing."""
        try:
            run = future.result()
        except Exception as error:  # a worker that died takes its pool along
            run = {"error": repr(error)}
        if "error" in run and self.plan.graphs and job.row.name not in self.plain:
            self.say(f"{job.row.name}: not captured ({run['error'].strip().splitlines()[-1]})")
            self.plain.add(job.row.name)
            return None
        return run

    def close(self) -> None:
        for executor in self.made.values():
            executor.shutdown()
        self.scratch.cleanup()


def memory() -> str | None:
    """A folder in memory where that is large; runs write their checkpoints even if nobody keeps them."""
    place = Path("/dev/shm")  # noqa: S108
    return str(place) if place.is_dir() and shutil.disk_usage(place).free > ROOM else None


def start_worker(open_study: Open, device: str, graphs: bool, until: float, jobs: int, scratch: Path) -> None:
    import torch

    from paper_models.trial import Bench

    if jobs > 1:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))
    if device.startswith("cuda"):
        torch.set_float32_matmul_precision("high")  # TF32
    bench = Bench(open_study(), torch.device(device), scratch, graphs)
    _held.update(until=until, bench=bench)


def work(job: Job) -> dict[str, Any]:
    """One job in a worker. Errors come back as text, so that one run does not end all others."""
    from paper_models.trial import run_job

    bench: Bench = _held["bench"]
    if _held["until"] and time.monotonic() > _held["until"]:
        return {"skipped": True}
    try:
        return {**run_job(bench, job), "facts": {**bench.study.facts(), **_machine(bench.device)}}
    except Exception:
        return {"error": traceback.format_exc()}


def _machine(device: Any) -> dict[str, str]:
    import torch

    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    return {"device": name, "torch": torch.__version__}


def _line(job: Job, run: dict[str, Any], seconds: float) -> str:
    what = f"{seconds:6.1f} s  {job.stage:5s} {job.row.name} seed {job.seed} {' '.join(job.setting)}"
    if run.get("skipped"):
        return f"{what}: no time left"
    if "error" in run:
        return f"{what}: {run['error']}"
    val = run["val"]["t2v"]
    told = f"{what}: val {val['r1']:.1f}/{val['r5']:.1f}/{val['r10']:.1f} at epoch {run['best_epoch']}"
    if "test" in run:
        test, normed = run["test"]["t2v"], run["normalised"]["t2v"]["test"]
        told += f", test {test['r1']:.1f}/{test['r5']:.1f}/{test['r10']:.1f}, QB-Norm {normed['R1']:.1f}"
    return f"{told} ({run['seconds']:.1f} s, {run['steps_per_second']:.0f} steps/s)"
