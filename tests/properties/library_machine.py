"""Any sequence of commands, by two processes in turn or at once, leaves the library that its files make.

The machine knows what must be in the library: `known`, the banks and the model. After every command it reads
what there is; every search is compared with that of a new library of the same files, banks and model, which
scans where the other has an index.
"""

import hashlib
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.fakes import write_media
from tests.properties.player import Player, fakes
from tests.properties.second_process import SecondProcess

from wordreel.errors import BankError, LibraryBusy
from wordreel.maintain.verify import LEFTOVERS
from wordreel.search.query_fields import SearchNorm

NAMES = ["a.mp4", "b.mp4", "x/c.mp4", "x/d.mp4", "x/y/e.mp3", "f.png"]
BANKS = {"small": ["red", "green dogs"], "dull": ["grey", "blue", "blue sea"]}
QUERIES = ["red", "green things", "blue and red", "dogs number 5", "dogs"]
NORMS: list[SearchNorm] = ["none", "auto", "csls", "is", "dis", "nnn", "cent"]
HERE, THERE = "here", "there"
TWINS = 4  # that stay open
TIE = 1e-3  # two scores so close may be ranked either way
totals: Counter[str] = Counter()

names = st.sampled_from(NAMES)
sides = st.sampled_from([HERE, THERE])
banks = st.sampled_from(list(BANKS))


class Second:
    """The second process, started when it is first needed and kept for all examples."""

    process: SecondProcess | None = None

    @classmethod
    def get(cls) -> SecondProcess:
        if cls.process is None:
            cls.process = SecondProcess()
        return cls.process

    @classmethod
    def kill_if_stuck(cls) -> None:
        """After a failure it may be waiting in the middle of a command."""
        if cls.process is not None and cls.process.busy:
            cls.kill()

    @classmethod
    def kill(cls) -> None:
        if cls.process is not None:
            cls.process.kill()
            cls.process = None


class LibraryMachine(RuleBasedStateMachine):
    kills = False  # a new process costs a second or two

    @initialize(seeds=st.lists(st.integers(0, 3), max_size=4))
    def start(self, seeds: list[int]) -> None:
        memory = Path("/dev/shm")  # noqa: S108 nothing here needs to survive a power cut
        self.root = Path(tempfile.mkdtemp(prefix="wordreel-", dir=memory if memory.is_dir() else None))
        self.media = self.root / "media"
        self.media.mkdir()
        self.fakes = fakes()
        self.fakes.__enter__()
        self.here = Player(str(self.root / "library"), str(self.media))
        self.second_open = False
        self.known: dict[str, bytes] = {}
        self.bytes: dict[str, bytes] = {}  # by content
        self.banks: dict[str, list[str]] = {}
        self.model = "colours"
        self.stale = {HERE: False, THERE: False}
        self.given: dict[str, dict[str, list]] = {"clips": {}, "queries": {}}
        self.alive: dict[str, set[str]] = {"clips": set(), "queries": set()}
        self.backups: list[tuple] = []
        self.restored = 0
        self.twins: dict[tuple, tuple[Player, Path]] = {}
        totals["examples"] += 1
        for name, seed in zip(NAMES, seeds, strict=False):
            self.write_file(name, seed, 45.0)
        if seeds:
            self.add(HERE)

    def teardown(self) -> None:
        if not hasattr(self, "here"):
            return
        Second.kill_if_stuck()
        self.here.close()
        for twin, _ in self.twins.values():
            twin.close()
        self.fakes.__exit__(None, None, None)
        shutil.rmtree(self.root)

    # Calling

    def call(self, side: str, do: str, *arguments):
        totals["steps"] += 1
        totals[do] += 1
        if side == HERE:
            return getattr(self.here, do)(*arguments)
        return self.there()(do, *arguments)

    def there(self) -> SecondProcess:
        process = Second.get()
        if not self.second_open:
            process("open", self.here.path, str(self.media))
            self.second_open = True
            self.stale[THERE] = False
        return process

    def write(self, side: str, do: str, *arguments):
        value = self.call(side, do, *arguments)
        self.written(side)
        return value

    def written(self, side: str) -> None:
        self.stale[THERE if side == HERE else HERE] = True
        self.check_ids()

    # The files

    @rule(name=names, seed=st.integers(0, 3), seconds=st.sampled_from([3.0, 45.0]))
    def write_file(self, name: str, seed: int, seconds: float) -> None:
        kind = {"mp3": "audio", "png": "image"}.get(name[-3:], "video")
        path = write_media(self.media / name, seconds=seconds, seed=seed, kind=kind)
        self.bytes[_hash(path.read_bytes())] = path.read_bytes()

    @rule(name=names)
    def spoil_file(self, name: str) -> None:
        write_media(self.media / name, bad="spoilt")

    @rule(old=names, new=names, copy=st.booleans())
    def move_file(self, old: str, new: str, copy: bool) -> None:
        if old != new and old[-3:] == new[-3:] and (self.media / old).exists():
            (self.media / new).parent.mkdir(parents=True, exist_ok=True)
            (shutil.copy if copy else shutil.move)(self.media / old, self.media / new)

    @rule(name=names)
    def delete_file(self, name: str) -> None:
        (self.media / name).unlink(missing_ok=True)

    # The library

    @rule(side=sides)
    def add(self, side: str) -> None:
        self.write(side, "add")
        self.added()

    def added(self) -> None:
        """Check what an add that ran to its end must have left, and learn what it decided."""
        now = self.here.files()
        disk = self.on_disk()
        lost = {name: data for name, data in self.known.items() if name not in disk}
        assert {name: now.get(name) for name in disk} == {
            name: None if data is None else _hash(data) for name, data in disk.items()
        }
        for name in now.keys() - disk.keys():  # gone from the disk, and nobody said to remove it
            assert now[name] == _hash(lost[name])
        new = Counter(now[name] for name in now.keys() - self.known.keys())
        moved = Counter(_hash(lost[name]) for name in lost.keys() - now.keys())
        assert moved <= new
        self.learn()

    def learn(self) -> None:
        self.known = {name: self.bytes[content] for name, content in self.here.files().items()}
        banks = self.here.banks()
        if self.banks or not self.known:
            assert banks == self.banks
        else:
            assert set(banks) <= {"everyday"}
        self.banks = banks

    def on_disk(self) -> dict[str, bytes | None]:
        """The bytes of every file; None of one that is spoilt."""
        found = {name: self.media / name for name in NAMES if (self.media / name).exists()}
        data = {name: path.read_bytes() for name, path in found.items()}
        return {name: raw if _hash(raw) in self.bytes else None for name, raw in data.items()}

    @rule(side=sides, name=st.sampled_from([*NAMES, "x", "x/y"]))
    def remove(self, side: str, name: str) -> None:
        gone = {one for one in self.known if one == name or one.startswith(f"{name}/")}
        assert self.write(side, "remove", name) == sorted(gone)
        self.known = {one: data for one, data in self.known.items() if one not in gone}

    @rule(side=sides)
    def remove_missing(self, side: str) -> None:
        there = [one for one in self.known if any((self.media / one).parent.glob("*"))]  # not an empty folder
        gone = {one for one in there if not (self.media / one).exists()}
        assert self.write(side, "remove_missing") == sorted(gone)
        self.known = {one: data for one, data in self.known.items() if one not in gone}

    @rule(side=sides, name=banks)
    def build_bank(self, side: str, name: str) -> None:
        if name in self.banks:
            with pytest.raises(BankError):
                self.call(side, "build_bank", name, BANKS[name])
        else:
            self.write(side, "build_bank", name, BANKS[name])
            self.banks[name] = list(BANKS[name])

    @rule(side=sides, name=st.sampled_from([*BANKS, "everyday"]), text=st.sampled_from(QUERIES))
    def add_query(self, side: str, name: str, text: str) -> None:
        if name not in self.banks:
            with pytest.raises(BankError):
                self.call(side, "add_queries", name, [text])
            return
        new = text not in self.banks[name]
        assert self.write(side, "add_queries", name, [text]) == new
        self.banks[name] += [text] if new else []

    @rule(side=sides, name=banks, data=st.data())
    def remove_query(self, side: str, name: str, data) -> None:
        if len(self.banks.get(name, ())) > 1:
            text = data.draw(st.sampled_from(self.banks[name]))
            assert self.write(side, "remove_queries", name, [text]) == 1
            self.banks[name].remove(text)

    @rule(side=sides, name=st.sampled_from([*BANKS, "everyday"]))
    def drop_bank(self, side: str, name: str) -> None:
        if name not in self.banks:
            with pytest.raises(BankError):
                self.call(side, "drop_bank", name)
        else:
            self.write(side, "drop_bank", name)
            del self.banks[name]

    @rule(side=sides, model=st.sampled_from(["colours", "tints"]))
    def use(self, side: str, model: str) -> None:
        self.write(side, "use", model)
        self.model = model

    @rule(side=sides)
    def reindex(self, side: str) -> None:
        self.write(side, "reindex")

    @rule(side=sides)
    def compact(self, side: str) -> None:
        self.write(side, "compact")

    @rule(side=sides)
    def restart(self, side: str) -> None:
        self.call(side, "restart")
        self.stale[side] = False

    # Backups

    @rule(side=sides, number=st.integers(0, 1))
    def back_up(self, side: str, number: int) -> None:
        folder = str(self.root / f"backup{number}-{self.restored}")
        assert self.call(side, "backup", folder) == []
        state = (dict(self.known), {name: list(texts) for name, texts in self.banks.items()}, self.model)
        ids = {kind: dict(self.given[kind]) for kind in self.given}
        taken = (
            folder,
            self.here.digest(),
            state,
            ids,
            {kind: set(self.alive[kind]) for kind in self.alive},
        )
        self.backups = [one for one in self.backups if one[0] != folder] + [taken]

    @precondition(lambda self: self.backups)
    @rule(data=st.data())
    def restore(self, data) -> None:
        """Go on with the library of a backup; both processes open it."""
        folder, digest, state, given, alive = data.draw(st.sampled_from(self.backups))
        self.restored += 1
        target = str(self.root / f"library{self.restored}")
        assert self.call(HERE, "restore", folder, target) == []
        self.second_open = False
        self.stale[HERE] = False
        known, banks, self.model = state
        self.known, self.banks = dict(known), {name: list(texts) for name, texts in banks.items()}
        self.given = {kind: dict(given[kind]) for kind in given}
        self.alive = {kind: set(alive[kind]) for kind in alive}
        self.backups = []
        assert self.here.digest() == digest
        self.check_ids()

    # Searching

    @rule(side=sides, text=st.sampled_from(QUERIES), norm=st.sampled_from(NORMS), moments=st.booleans(),
          data=st.data())  # fmt: skip
    def search(self, side: str, text: str, norm: SearchNorm, moments: bool, data) -> None:
        bank = data.draw(st.sampled_from([*self.banks, None]))
        if self.stale[side]:
            self.search_stale(side, text, norm, bank, moments)
            self.restart(side)
        if norm not in ("none", "auto") and not self.banks:
            with pytest.raises(BankError):
                self.call(side, "search", text, norm, bank, moments)
            return
        hits = self.call(side, "search", text, norm, bank, moments)
        self.check_hits(hits, moments)
        twin = self.twin().search(text, norm, bank, moments)
        assert _places(hits) == _places(twin)
        np.testing.assert_allclose(_scores(hits), _scores(twin), atol=TIE / 4)
        if (np.diff([hit[4] for hit in twin]) < -TIE).all():  # else the ranking may be another
            np.testing.assert_allclose(_confidences(hits), _confidences(twin), atol=5e-3)

    def search_stale(self, side: str, text: str, norm: str, bank: str | None, moments: bool) -> None:
        """Another process has written since this library was opened: what is gone is not found anyway."""
        try:
            hits = self.call(side, "search", text, norm, bank, moments)
        except BankError:
            return  # of a bank that is gone, or not there yet
        self.check_hits(hits, moments)

    def check_hits(self, hits: list, moments: bool) -> None:
        assert all(_hash(self.known[name]) == content for name, content, *_ in hits)
        scores = [hit[4] for hit in hits]
        assert scores == sorted(scores, reverse=True)
        if not moments:
            assert len({content for _, content, *_ in hits}) == len(hits)

    def twin(self) -> Player:
        """A new library of the same files, banks and model, without an index."""
        banks = tuple((name, tuple(texts)) for name, texts in sorted(self.banks.items()))
        key = (tuple(sorted(self.known.items())), banks, self.model)
        if key not in self.twins:
            totals["twins"] += 1
            folder = Path(tempfile.mkdtemp(dir=self.root))
            for name, data in self.known.items():
                (folder / "media" / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / "media" / name).write_bytes(data)
            (folder / "media").mkdir(exist_ok=True)
            with fakes(scan_up_to=2**40):
                twin = Player(str(folder / "library"), str(folder / "media"))
                twin.add()
                for name in twin.banks():
                    twin.drop_bank(name)
                for name, texts in self.banks.items():
                    twin.build_bank(name, texts)
                twin.use(self.model)
            self.twins[key] = (twin, folder)
            if len(self.twins) > TWINS:
                old, folder = self.twins.pop(next(iter(self.twins)))
                old.close()
                shutil.rmtree(folder)
        return self.twins[key][0]

    # Two at once

    @rule(after=st.integers(0, 9), do=st.sampled_from(["add", "use"]), kill=st.booleans(),
          model=st.sampled_from(["colours", "tints"]), text=st.sampled_from(QUERIES))  # fmt: skip
    def write_beside(self, after: int, do: str, kill: bool, model: str, text: str) -> None:
        """The other process is stopped in the middle of its work: this one can read, and cannot write."""
        there = self.there()
        if do == "add":
            self.write_file(NAMES[after % 4], after, 45.0)
        before = set(self.known.items())
        arguments = (model,) if do == "use" else ()
        value = there(do, *arguments, pause=after)
        totals["pauses"] += there.paused
        if there.paused:
            self.read_and_be_refused(before, text)
            if kill and self.kills:
                self.recover(do)
                return
            value = there.go_on()
        if do == "add":
            assert value is not None
            self.written(THERE)
            self.added()
        else:
            self.written(THERE)
            self.model = model

    def read_and_be_refused(self, before: set, text: str) -> None:
        self.here.restart()
        self.stale[HERE] = True
        possible = before | set(self.on_disk().items())
        for name, content, *_ in self.call(HERE, "search", text, "none"):
            assert (name, self.bytes[content]) in possible
        assert self.here.problems() == []
        attempts: list[tuple[Any, ...]] = [
            ("add",), ("remove", "x"), ("remove_missing",), ("use", "colours"), ("reindex",), ("compact",),
            ("build_bank", "new", ["red"]),
        ]  # fmt: skip
        for do, *arguments in attempts:
            with pytest.raises(LibraryBusy):
                self.call(HERE, do, *arguments)

    def recover(self, do: str) -> None:
        """The other process was killed there: a part of its work is done, and the same command ends it."""
        Second.kill()
        self.second_open = False
        totals["kills"] += 1
        self.here.restart()
        self.stale[HERE] = False
        assert [text for text in self.here.problems() if not text.startswith(LEFTOVERS)] == []
        if do == "add":
            self.write(HERE, "add")
            self.added()

    # Always

    def check_ids(self) -> None:
        """An id stands for one thing for ever, and one that is gone does not come back."""
        for kind, now in self.here.ids().items():
            known = set(self.given[kind])
            assert set(now) & known <= self.alive[kind]
            assert all(self.given[kind].setdefault(number, what) == what for number, what in now.items())
            self.alive[kind] = set(now)

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "here"):
            assert {name: _hash(data) for name, data in self.known.items()} == self.here.files()
            assert self.here.banks() == self.banks
            assert self.here.model() == self.model
            assert self.here.problems() == []


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _places(hits: list) -> set:
    return {(name, start, end) for name, _, start, end, *_ in hits}


def _scores(hits: list) -> np.ndarray:
    """In the order of the places."""
    return np.array([hit[4] for hit in sorted(hits, key=lambda hit: (hit[0], hit[2], hit[3]))])


def _confidences(hits: list) -> np.ndarray:
    """In the order of the ranking, which they follow."""
    return np.array([np.nan if hit[5] is None else hit[5] for hit in hits])
