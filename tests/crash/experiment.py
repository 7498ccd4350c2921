"""One operation, stopped at its fault points in every way; the library is opened again after each.

Everything that opens a library runs in a forked process: this one has imported what they need and holds no
connection.
"""

from __future__ import annotations

import gc
import os
import pickle
import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.crash.disk import LOST, Disk, Lost, Tree, write_tree
from tests.crash.faults import Call, Faults, Mode, read_calls
from tests.crash.library_state import answers, library_state, open_library, problems
from tests.crash.operations import Operation, Place, Step, base

import wordreel
from wordreel.errors import WordreelError

T = TypeVar("T")
KILLED = 137
DEATHS = {"kill": Mode.KILL, "torn write": Mode.TORN}
ERRORS = {"full disk": Mode.FULL, "read-only disk": Mode.READ_ONLY, "I/O error": Mode.IO_ERROR}


def power_cut(lost: Lost) -> str:
    return f"power cut, {lost} lost"


KINDS = (*DEATHS, *map(power_cut, LOST), *ERRORS)


@dataclass(frozen=True)
class Trial:
    """One fault: its kind, the point, and for a power cut what is lost."""

    kind: str
    point: int
    lost: Lost | None = None


@dataclass
class Tally:
    """What came of the points tried in one way."""

    tried: int = 0
    left: dict[str, int] = field(default_factory=dict)  # "before", "between" or "after" -> how often
    finished: int = 0  # the command succeeded all the same
    refused: int = 0  # it ended with an error that says what to do
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Reference:
    """The states that a stopped run may leave, in order, with what searches answer in each."""

    states: list[Any]
    answers: list[Any]


class InChild(Exception):
    """What went wrong in a forked process."""


def in_child(function: Callable[[], T]) -> T:
    """The result of a function that runs in a process of its own."""
    status, result = fork(function)
    if result is None:
        raise InChild(f"the process ended with status {status}")
    if isinstance(result[0], str):
        raise InChild(result[0])
    value: T = result[0][0]
    return value


def fork(function: Callable[[], object]) -> tuple[int, list[Any] | None]:
    """Run a function in a process of its own: its exit status, and [(result,)] or [error] unless it died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        code = 1
        try:
            try:
                outcome: object = (function(),)
            except BaseException:
                outcome = traceback.format_exc()
            with os.fdopen(writing, "wb") as out:
                pickle.dump([outcome], out)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as source:
        data = source.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), pickle.loads(data) if data else None  # noqa: S301 - our own


def warm_up(folder: Path) -> None:
    """Use everything once in this process, so that forked ones import nothing."""
    place = Place(folder / "box", folder / "media")
    base(place)
    for look in (library_state, problems, answers):
        look(place.library)
    shutil.rmtree(folder)
    gc.freeze()  # so that forked processes share the memory of all that


class Experiment:
    """One operation in a folder of its own."""

    def __init__(self, operation: Operation, folder: Path) -> None:
        self.operation = operation
        self.place = Place(folder / "box", folder / "media")
        self.template, self.log, self.saved = folder / "template", folder / "log", folder / "saved"
        shutil.rmtree(folder, ignore_errors=True)
        for path in (self.place.box, self.place.media):
            path.mkdir(parents=True)
        in_child(lambda: operation.prepare(self.place))
        shutil.copytree(self.place.box, self.template)
        self.reference = self._reference()
        self._reset()
        self.calls = self._record()

    def _reset(self) -> None:
        shutil.rmtree(self.place.box)
        shutil.copytree(self.template, self.place.box)

    def _reference(self) -> Reference:
        """Run the steps, then the whole operation, without faults."""
        states = [in_child(self._state)]
        found = [in_child(self._answers)]
        self._reset()  # looking writes caches
        for step in self.operation.steps:
            in_child(lambda step=step: self._run(step))
            states.append(in_child(self._state))
            found.append(in_child(self._answers))
        self._reset()
        in_child(lambda: self._run(self.operation.run))
        final = in_child(self._state)
        if final == states[-1] and not self.operation.steps:
            final_answers = in_child(self._answers)  # only caches change
            assert final_answers == found[-1]
        elif self.operation.steps:
            assert final == states[-1], f"the steps of {self.operation.name!r} do not lead where it leads"
        else:
            states.append(final)
            found.append(in_child(self._answers))
        return Reference(states, found)

    def _opened(self) -> wordreel.Library | None:
        if not self.operation.opens:
            return None
        return open_library(self.place.library, create=self.operation.creates)

    def _run(self, step: Step) -> None:
        with self._opened() or nullcontext() as library:
            step(self.place, library)

    def _state(self) -> Any:
        return self.operation.state(self.place)

    def _answers(self) -> Any:
        return answers(self.place.library)

    def _record(self) -> list[Call]:
        def record() -> None:
            with self.log.open("wb") as log:
                faults = Faults(self.place.box)
                faults.start(Mode.RECORD, log=log.fileno())
                self._run(self.operation.run)
                faults.stop()

        disk = Disk(self.place.box)
        in_child(record)
        calls = read_calls(self.log)
        for call in calls:
            disk.apply(call)
        assert disk.tree() == Disk(self.place.box).tree(), "something was written that no fault point saw"
        return calls

    # Faults

    def trials(self) -> list[Trial]:
        """Every fault point in every way, those left out that cannot differ from the next one: a death right
        before a flush, and a disk that is full at a call that needs no space."""
        points = range(1, len(self.calls) + 1)
        kinds = {point: self.calls[point - 1].kind for point in points}
        return [
            *(Trial("kill", point) for point in points if kinds[point] != "s"),
            *(Trial("torn write", point) for point in points if kinds[point] == "w"),
            *(Trial("full disk", point) for point in points if kinds[point] in "wcmt"),
            *(Trial(kind, point) for kind in ("read-only disk", "I/O error") for point in points),
            *(Trial(power_cut(lost), point, lost) for lost in LOST for point in self._different_disks(lost)),
        ]

    def run(self, trials: Sequence[Trial]) -> dict[str, Tally]:
        tallies = {kind: Tally() for kind in KINDS}
        for trial in trials:
            tally, wrong = tallies[trial.kind], None
            if trial.lost is not None:
                write_tree(self._disk_after(trial.point).after_power_cut(trial.lost), self.place.box)
            elif trial.kind in ERRORS:  # run again in the same process
                wrong = self._fail(ERRORS[trial.kind], trial.point, tally)
            else:
                wrong = self._die(DEATHS[trial.kind], trial.point)
            self._judge(tally, trial, wrong)
        return tallies

    def _disk_after(self, point: int) -> Disk:
        self._reset()
        disk = Disk(self.place.box)
        for call in self.calls[:point]:
            disk.apply(call)
        return disk

    def _different_disks(self, lost: Lost) -> Iterator[int]:
        """The first point after which a power cut leaves another disk, for each; and the last point."""
        disk, before = self._disk_after(0), Tree()
        for point, call in enumerate(self.calls, start=1):
            disk.apply(call)
            tree = disk.after_power_cut(lost)
            if tree != before or point == len(self.calls):
                yield point
            before = tree

    def _die(self, mode: Mode, point: int) -> str | None:
        """Run until the process dies at a point."""

        def until_death() -> None:
            Faults(self.place.box).start(mode, point)
            self._run(self.operation.run)

        self._reset()
        status, result = fork(until_death)
        if status == KILLED or (result is not None and not isinstance(result[0], str)):
            return None  # or it has finished: another order of its threads had fewer points
        return f"the process ended with status {status}" if result is None else str(result[0])

    def _fail(self, mode: Mode, point: int, tally: Tally) -> str | None:
        """Run while a point fails, look, and run again in the same process."""
        self._reset()
        shutil.rmtree(self.saved, ignore_errors=True)
        try:
            outcome, wrong = in_child(lambda: self._with_errors(mode, point))
        except InChild as error:
            return str(error)
        tally.finished += outcome == "finished"
        tally.refused += outcome == "refused"
        if self.saved.is_dir():
            shutil.rmtree(self.place.box)
            self.saved.rename(self.place.box)
        return wrong

    def _with_errors(self, mode: Mode, point: int) -> tuple[str, str | None]:
        """What became of the command, and what is wrong with that."""
        faults, library, outcome = Faults(self.place.box), None, "finished"
        try:
            faults.start(mode, point)
            try:
                library = self._opened()
                self.operation.run(self.place, library)
            except WordreelError as error:
                outcome = "refused"
                if error.next_step is None:
                    return outcome, f"an error without a next step: {error}"
            faults.stop()
            shutil.copytree(self.place.box, self.saved)
            if outcome == "refused":
                library = library or self._opened()
                self.operation.run(self.place, library)
        finally:
            faults.stop()
            if library is not None:
                library.close()
        same = self._state() == self.reference.states[-1]
        return outcome, None if same else "run again in the same process, it leaves another state"

    def _judge(self, tally: Tally, trial: Trial, wrong: str | None) -> None:
        """Open what a fault left: it must be one of the states, sound, and the same command must finish.

        After an error it has finished already, in the same process.
        """
        tally.tried += 1
        try:
            if wrong is None:
                done = trial.lost is not None and trial.point == len(self.calls)
                again = trial.kind not in ERRORS
                at, last = in_child(lambda: self._check(done, again)), len(self.reference.states) - 1
                state = "before" if at == 0 and last else "after" if at == last else "between"
                tally.left[state] = tally.left.get(state, 0) + 1
        except InChild as error:
            wrong = str(error)
        if wrong is not None:
            call = self.calls[trial.point - 1]
            where = f"{call.kind} {Path(call.path).relative_to(self.place.box)}"
            tally.failures.append(
                f"{self.operation.name}: {trial.kind} at point {trial.point} ({where}): {wrong}"
            )

    def _check(self, done: bool, again: bool) -> int:
        """Which of the states it is. `done`: the command had ended before the power cut; `again`: run it."""
        state = self._state()
        if state not in self.reference.states:
            raise AssertionError(f"neither before nor after: {difference(state, self.reference.states)}")
        at = self.reference.states.index(state)
        if done:
            assert state == self.reference.states[-1], "what was done is lost"
        self._check_sound()
        assert self._answers() == self.reference.answers[at], "other answers"
        if not again:
            return at
        self._run(self.operation.run)
        assert self._state() == self.reference.states[-1], "run again, it leaves another state"
        assert self._answers() == self.reference.answers[-1], "run again, other answers"
        self._check_sound()
        return at

    def _check_sound(self) -> None:
        found = problems(self.place.library)
        if found:
            raise AssertionError(f"not sound: {found}")


def difference(state: Any, states: Sequence[Any]) -> str:
    """How a state differs from the nearest of those allowed."""
    if not isinstance(state, dict):
        return repr(state)[:2000]
    dicts = [one for one in states if isinstance(one, dict)]
    lists = [{key: (state[key], one[key]) for key in state if state[key] != one[key]} for one in dicts]
    return repr(min(lists, key=len))[:2000] if lists else repr(state)[:2000]
