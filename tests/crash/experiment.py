"""One operation, stopped at its fault points in every way; the library is opened again after each.

Everything that opens a library runs in a forked process: this one has imported what they need and holds no
connection.
"""

from __future__ import annotations

import gc
import importlib
import shutil
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash.child import InChild, fork, in_child
from tests.crash.disk import LOST, Disk, Lost, Tree, write_tree
from tests.crash.faults import Call, Faults, Mode, read_calls
from tests.crash.library_state import library_state, open_library, problems_and_answers
from tests.crash.operations import Operation, Place, Step, base
from tests.crash.server import Database

import wordreel
from wordreel.errors import WordreelError

KILLED = 137
DEATHS = {"kill": Mode.KILL, "torn write": Mode.TORN}
ERRORS = {
    "full disk": Mode.FULL,
    "read-only disk": Mode.READ_ONLY,
    "I/O error": Mode.IO_ERROR,
    "message lost": Mode.MESSAGE_LOST,
    "answer lost": Mode.ANSWER_LOST,
}


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


def warm_up(folder: Path) -> None:
    """Use everything once in this process, so that forked ones import nothing."""
    with suppress(ImportError):
        importlib.import_module("psycopg")
    place = Place(folder / "box", folder / "media")
    base(place)
    library_state(place.library)
    problems_and_answers(place.library)
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
        self.database = Database(operation.database) if operation.database else None
        if self.database is not None:
            in_child(self.database.create)
        in_child(lambda: operation.prepare(self.place))
        shutil.copytree(self.place.box, self.template)
        if self.database is not None:
            in_child(self.database.save)
        self.reference = self._reference()
        self.calls = self._record()
        after = Disk(self.place.box).tree()
        assert self._disk_after(self.calls).tree() == after, "something was written that no fault point saw"

    def _reset(self) -> None:
        self._reset_box()
        if self.database is not None:
            in_child(self.database.restore)

    def _reset_box(self) -> None:
        shutil.rmtree(self.place.box)
        shutil.copytree(self.template, self.place.box)

    def _reference(self) -> Reference:
        """Run the steps, then the whole operation, without faults."""
        states = [in_child(self._state)]
        found = [in_child(self._answers)]
        self._reset()  # looking writes caches
        for step in self.operation.steps:
            in_child(partial(self._run, step))
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
        """What searches answer in a library with which nothing is wrong."""
        found, answers = problems_and_answers(self.place.library)
        if found:
            raise AssertionError(f"not sound: {found}")
        return answers

    def _record(self, stop: int = 0) -> list[Call]:
        """The calls of a run, which dies at a point if one is given."""

        def record() -> None:
            with self.log.open("wb") as log:
                faults = Faults(self.place.box)
                faults.start(Mode.RECORD, stop, log.fileno())
                self._run(self.operation.run)
                faults.stop()

        self._reset()
        status, result = fork(record)
        if status != KILLED and (result is None or isinstance(result[0], str)):
            raise InChild(f"a recorded run ended with status {status}: {result}")
        return read_calls(self.log)

    # Faults

    def trials(self) -> list[Trial]:
        """Every fault point in every way, those left out that cannot differ from the next one: a death right
        before a flush, and a disk that is full at a call that needs no space."""
        points = range(1, len(self.calls) + 1)
        kinds = {point: self.calls[point - 1].kind for point in points}
        return [
            *(Trial("kill", point) for point in points if kinds[point] != "s"),
            *(Trial("torn write", point) for point in points if kinds[point] in "wn"),
            *(Trial("full disk", point) for point in points if kinds[point] in "wcmt"),
            *(Trial(kind, p) for kind in ("read-only disk", "I/O error") for p in points if kinds[p] != "n"),
            *(Trial(kind, p) for kind in ("message lost", "answer lost") for p in points if kinds[p] == "n"),
            *(Trial(power_cut(lost), point, lost) for lost in LOST for point in self._different_disks(lost)),
        ]

    def run(self, trials: Sequence[Trial]) -> dict[str, Tally]:
        tallies = {kind: Tally() for kind in KINDS}
        for trial in trials:
            tally, wrong, server_left = tallies[trial.kind], None, None
            if trial.lost is not None:
                wrong = self._lose_power(trial.point, trial.lost)
            elif trial.kind in ERRORS:  # run again in the same process
                wrong, server_left = self._fail(ERRORS[trial.kind], trial.point, tally)
            else:
                wrong = self._die(DEATHS[trial.kind], trial.point)
            self._judge(tally, trial, wrong, server_left)
        return tallies

    def _lose_power(self, point: int, lost: Lost) -> str | None:
        """Leave the disk of a power cut. A server must have got what was sent until then, so run that far."""
        try:
            calls = self.calls[:point] if self.database is None else self._record(point + 1)
        except InChild as error:
            return str(error)
        write_tree(self._disk_after(calls).after_power_cut(lost), self.place.box)
        return None

    def _disk_after(self, calls: Sequence[Call]) -> Disk:
        self._reset_box()
        disk = Disk(self.place.box)
        for call in calls:
            disk.apply(call)
        return disk

    def _different_disks(self, lost: Lost) -> Iterator[int]:
        """The first point after which a power cut leaves another disk, for each; and the last point."""
        disk, before = self._disk_after([]), Tree()
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

    def _fail(self, mode: Mode, point: int, tally: Tally) -> tuple[str | None, int | None]:
        """Run while a point fails, look, and run again in the same process.

        Returns what is wrong, and the number of the state in which the fault left a server.
        """
        self._reset()
        shutil.rmtree(self.saved, ignore_errors=True)
        try:
            outcome, wrong, server_left = in_child(lambda: self._with_errors(mode, point))
        except InChild as error:
            return str(error), None
        tally.finished += outcome == "finished"
        tally.refused += outcome == "refused"
        if self.saved.is_dir():
            shutil.rmtree(self.place.box)
            self.saved.rename(self.place.box)
        return wrong, server_left

    def _with_errors(self, mode: Mode, point: int) -> tuple[str, str | None, int | None]:
        """What became of the command, what is wrong with that, and in which state a server was left."""
        faults, library, outcome, server_left = Faults(self.place.box), None, "finished", None
        try:
            faults.start(mode, point)
            try:
                library = self._opened()
                self.operation.run(self.place, library)
            except WordreelError as error:
                outcome = "refused"
                if error.next_step is None:
                    return outcome, f"an error without a next step: {error}", None
            faults.stop()
            shutil.copytree(self.place.box, self.saved)
            if self.database is not None:  # it cannot be put aside, as the box is
                server_left = in_child(self._which_state)
            if outcome == "refused":
                library = library or self._opened()
                self.operation.run(self.place, library)
        finally:
            faults.stop()
            if library is not None:
                library.close()
        same = self._state() == self.reference.states[-1]
        wrong = None if same else "run again in the same process, it leaves another state"
        return outcome, wrong, server_left

    def _judge(self, tally: Tally, trial: Trial, wrong: str | None, server_left: int | None) -> None:
        """Open what a fault left: it must be one of the states, sound, and the same command must finish.

        After an error it has finished already, in the same process; `server_left` is the state before that.
        """
        tally.tried += 1
        try:
            if wrong is None:
                done = trial.lost is not None and trial.point == len(self.calls)
                again = trial.kind not in ERRORS
                at, last = in_child(lambda: self._check(done, again)), len(self.reference.states) - 1
                at = at if server_left is None else server_left
                state = "before" if at == 0 and last else "after" if at == last else "between"
                tally.left[state] = tally.left.get(state, 0) + 1
        except InChild as error:
            wrong = str(error)
        if wrong is not None:
            call = self.calls[trial.point - 1]
            where = f"{call.kind} {call.path.removeprefix(f'{self.place.box}/')}"
            tally.failures.append(
                f"{self.operation.name}: {trial.kind} at point {trial.point} ({where}): {wrong}"
            )

    def _check(self, done: bool, again: bool) -> int:
        """Which of the states it is. `done`: the command had ended before the power cut; `again`: run it."""
        at = self._which_state()
        if done:
            assert at == len(self.reference.states) - 1, "what was done is lost"
        assert self._answers() == self.reference.answers[at], "other answers"
        if not again:
            return at
        self._run(self.operation.run)
        assert self._state() == self.reference.states[-1], "run again, it leaves another state"
        assert self._answers() == self.reference.answers[-1], "run again, other answers"
        return at

    def _which_state(self) -> int:
        """The number of the state in which library and server are."""
        state = self._state()
        if state not in self.reference.states:
            raise AssertionError(f"neither before nor after: {difference(state, self.reference.states)}")
        return self.reference.states.index(state)


def difference(state: Any, states: Sequence[Any]) -> str:
    """How a state differs from the nearest of those allowed."""
    if not isinstance(state, dict):
        return repr(state)[:2000]
    dicts = [one for one in states if isinstance(one, dict)]
    lists = [{key: (state[key], one[key]) for key in state if state[key] != one[key]} for one in dicts]
    return repr(min(lists, key=len))[:2000] if lists else repr(state)[:2000]
