"""Any sequence of changes, added bit by bit, ends in the library that a fresh add of the last state makes."""

import itertools
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.digest import digest_of
from tests.fakes import FakeFence, experts, write_media

from wordreel.catalogue.store import LibraryStore
from wordreel.ingest.add import add
from wordreel.maintain.verify import verify

NAMES = st.sampled_from(["a.mp4", "b.mp4", "x/c.mp4", "x/d.mp4", "x/y/e.mp3", "f.png", "g.txt"])


class Changes(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.media = self.root / "media"
        self.media.mkdir()
        self.store = LibraryStore.create_or_open(self.root / "library")
        self.fresh = itertools.count()
        self.excluded: set[str] = set()
        self.synced = True

    @rule(name=NAMES, seed=st.integers(0, 5), seconds=st.sampled_from([3.0, 45.0, 130.0]))
    def write(self, name: str, seed: int, seconds: float) -> None:
        kind = {"mp3": "audio", "png": "image"}.get(name[-3:], "video")
        write_media(self.media / name, seconds=seconds, seed=seed, kind=kind)
        self.synced = False

    @rule(name=NAMES)
    def spoil(self, name: str) -> None:
        write_media(self.media / name, bad="spoilt")
        self.synced = False

    @rule(old=NAMES, new=NAMES)
    def move(self, old: str, new: str) -> None:
        if old != new and (self.media / old).exists():
            (self.media / new).parent.mkdir(parents=True, exist_ok=True)
            (self.media / old).rename(self.media / new)
            self.synced = False

    @rule(old=NAMES, new=NAMES)
    def copy(self, old: str, new: str) -> None:
        if old != new and (self.media / old).exists():
            (self.media / new).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.media / old, self.media / new)
            self.synced = False

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        (self.media / name).unlink(missing_ok=True)
        self.synced = False

    @rule(name=NAMES)
    def forget(self, name: str) -> None:
        """Taken out of the library, not off the disk: the next add brings it back."""
        self.store.remove([self.media / name])
        self.synced = False

    @rule(jobs=st.integers(1, 3), interrupt=st.booleans())
    def add(self, jobs: int, interrupt: bool) -> None:
        def stop(progress) -> None:
            if interrupt and progress.done == 1:
                raise KeyboardInterrupt

        try:
            add(self.store, [self.media], experts(), FakeFence(), jobs=jobs, on_progress=stop)
        except KeyboardInterrupt:
            return
        self.store.remove_missing()
        self.synced = True

    @invariant()
    def sound(self) -> None:
        if hasattr(self, "store"):
            left = {"orphan", "stray", "unreferenced", "degenerate"}
            assert [p for p in verify(self.store) if not p.note and p.kind not in left] == []

    @invariant()
    def as_if_fresh(self) -> None:
        if hasattr(self, "store") and self.synced:
            with LibraryStore.create_or_open(self.root / f"fresh{next(self.fresh)}") as other:
                add(other, [self.media], experts(), FakeFence())
                assert digest_of(self.store) == digest_of(other)
            assert [p for p in verify(self.store) if p.kind != "degenerate"] == []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            shutil.rmtree(self.root)


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)
