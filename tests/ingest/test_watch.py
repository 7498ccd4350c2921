"""A watched folder: files copied in slowly, changed, renamed, broken, and folders that come and go."""

import shutil
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.fakes import Colour, FakeFence, Talk, experts, write_media

from wordreel.catalogue.lock import writer_lock
from wordreel.catalogue.passes import note_returned
from wordreel.ingest import watch
from wordreel.ingest.add import add_with
from wordreel.ingest.extract import LocalExtractor
from wordreel.ingest.quick import QuickExperts, QuickExtractor
from wordreel.ingest.tasks import AddOptions
from wordreel.ingest.watch import FileEvents, FolderLooks, FolderWatch


class Stopped(Exception):
    """The script of a test has ended."""


class Script:
    """A watch of one folder whose time passes only while it sleeps; each wait runs the next step."""

    def __init__(self, store, *folders):
        self.store, self.now = store, 0.0
        self.passes: list[tuple[str, list[str]]] = []
        self.asleep: list[float] = []
        self.during_sleep: Callable[[], object] = lambda: None
        looks = FolderLooks(store.catalogue, [str(f) for f in folders], str(store.path), clock=self.clock)
        self.watch = FolderWatch(store, looks, self.add, self.wait, self.sleep)
        self.steps: list[Callable[[], object]] = []

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.asleep.append(seconds)
        self.now += seconds
        if seconds:
            self.during_sleep()

    def wait(self):
        if not self.steps:
            raise Stopped
        self.steps.pop(0)()

    def add(self, paths, analysis):
        self.passes.append((analysis, [path.rsplit("/", 1)[-1] for path in paths]))
        if analysis == "quick":
            quick = QuickExperts([Colour()], None, [Talk()], None)
            extractor = QuickExtractor(quick, FakeFence(), self.store.track_files)
        else:
            extractor = LocalExtractor(experts(), FakeFence(), self.store.track_files)
        return add_with(extractor, self.store, paths, 1, None, AddOptions(analysis=analysis))

    def run(self, *steps, once=False):
        """Everything that happens until the last step is dealt with, as (kind, file name)."""
        self.steps = list(steps)
        happened: list[tuple[str, str]] = []
        with suppress(Stopped):
            happened.extend((event.kind, event.path.rsplit("/", 1)[-1]) for event in self.watch.run(once))
        return [event for event in happened if event != ("idle", "")]


@pytest.fixture
def script(store, media):
    return Script(store, media)


def test_both_passes_of_what_is_there_and_of_what_comes(script, media):
    write_media(media / "a.mp4", seed=1)
    assert script.run(lambda: write_media(media / "below" / "b.mp4", seed=2)) == [
        ("added", "a.mp4"),
        ("finished", "a.mp4"),
        ("added", "b.mp4"),
        ("finished", "b.mp4"),
    ]
    kinds = [kind for kind, _ in script.passes]
    assert kinds == ["quick", "thorough", "quick", "thorough"]


def test_nothing_is_added_twice(script, store, media):
    write_media(media / "a.mp4")
    script.run(lambda: None)
    again = Script(store, media)
    assert again.run(lambda: None) == []
    assert again.passes == []


def test_a_file_is_taken_when_it_no_longer_grows(script, media):
    path = media / "slow.mp4"
    lengths = [10.0, 100.0, 1000.0, 10000.0]

    def grow():
        if lengths:
            write_media(path, seconds=lengths.pop(0))

    script.during_sleep = grow
    assert script.run(grow) == [("added", "slow.mp4"), ("finished", "slow.mp4")]
    assert lengths == []
    assert script.store.videos()[0].info.duration == 10000.0
    assert script.passes[0] == ("quick", ["slow.mp4"])


def test_a_changed_file_is_added_again(script, media):
    path = write_media(media / "a.mp4", seed=1)
    happened = script.run(lambda: write_media(path, seconds=44.0, seed=7))
    assert happened[2:] == [("changed", "a.mp4"), ("finished", "a.mp4")]


def test_a_renamed_file_and_a_copy_need_no_pass(script, media):
    path = write_media(media / "a.mp4")
    happened = script.run(
        lambda: path.rename(media / "b.mp4"), lambda: shutil.copy(media / "b.mp4", media / "c.mp4")
    )
    assert happened[2:] == [("moved", "b.mp4"), ("copy", "c.mp4")]


def test_a_broken_file_is_tried_once_by_each_pass_and_again_when_it_changes(script, store, media):
    path = write_media(media / "a.mp4", bad="cut off")
    happened = script.run(lambda: None, lambda: write_media(path, seed=3))
    assert happened == [("failed", "a.mp4"), ("added", "a.mp4"), ("finished", "a.mp4")]
    assert [kind for kind, _ in script.passes] == ["quick", "thorough", "quick", "thorough"]


def test_a_known_failure_is_left_alone(store, media):
    write_media(media / "a.mp4", bad="cut off")
    assert Script(store, media).run(lambda: None) == [("failed", "a.mp4")]
    later = Script(store, media)
    assert later.run(lambda: None) == []
    assert later.passes == []


def test_downloads_on_their_way_hidden_and_other_files_are_not_taken(script, media):
    for name in ("a.mp4.part", ".b.mp4", "c.mp4.crdownload"):
        write_media(media / name)
    (media / "notes.txt").write_text("not media")
    assert script.run(lambda: (media / "a.mp4.part").rename(media / "a.mp4")) == [
        ("added", "a.mp4"),
        ("finished", "a.mp4"),
    ]


def test_a_folder_that_leaves_is_waited_for_and_loses_nothing(script, store, media):
    write_media(media / "a.mp4")
    away = media.with_name("away")
    happened = script.run(
        lambda: media.rename(away),
        lambda: None,
        lambda: away.rename(media),
        lambda: write_media(media / "b.mp4", seed=5),
    )
    assert happened == [
        ("added", "a.mp4"),
        ("finished", "a.mp4"),
        ("absent", media.name),
        ("back", media.name),
        ("added", "b.mp4"),
        ("finished", "b.mp4"),
    ]
    assert len(store.videos()) == 2


def test_a_folder_that_is_not_there_yet(store, media):
    later = media / "later"
    script = Script(store, later)
    happened = script.run(lambda: write_media(later / "a.mp4"))
    assert happened == [("absent", "later"), ("back", "later"), ("added", "a.mp4"), ("finished", "a.mp4")]


def test_it_waits_while_another_writes(script, store, media):
    write_media(media / "a.mp4")
    lock = writer_lock(store.path / "lock")
    lock.__enter__()

    def release():
        if script.asleep[-1] == watch.BUSY_SECONDS and script.asleep.count(watch.BUSY_SECONDS) == 2:
            lock.__exit__(None, None, None)

    script.during_sleep = release
    assert script.run() == [("busy", ""), ("added", "a.mp4"), ("finished", "a.mp4")]


def test_new_files_come_between_two_batches_of_the_thorough_pass(script, media, monkeypatch):
    monkeypatch.setattr(watch, "BATCH_BYTES", 1)
    for number in range(3):
        write_media(media / f"{number}.mp4", seed=number)
    add, arrived = script.watch.add, []

    def adding(paths, analysis):
        if analysis == "thorough" and not arrived:
            arrived.append(write_media(media / "new.mp4", seed=9))
        return add(paths, analysis)

    script.watch.add = adding
    script.run()
    assert [kind for kind, _ in script.passes] == ["quick", "thorough", "quick", *["thorough"] * 3]
    assert script.passes[2] == ("quick", ["new.mp4"])


def test_what_a_search_returned_comes_first(script, store, media, monkeypatch):
    monkeypatch.setattr(watch, "BATCH_BYTES", 1)
    for number in range(4):
        write_media(media / f"{number}.mp4", seed=number)
    script.add([str(media)], "quick")
    wanted = next(file.content for file in store.files() if file.path.endswith("3.mp4"))
    note_returned(store, [wanted])
    script.run()
    assert script.passes[1] == ("thorough", ["3.mp4"])


def test_once_takes_what_is_still_and_names_what_is_not(script, media):
    write_media(media / "a.mp4")
    growing = [media / "b.mp4"]
    script.during_sleep = lambda: write_media(growing[0], seconds=10.0 ** len(script.asleep))
    happened = script.run(once=True)
    assert happened == [("added", "a.mp4"), ("finished", "a.mp4"), ("moving", "b.mp4")]


def test_a_look_at_a_large_folder_gets_a_small_part_of_the_time(script, monkeypatch):
    look = script.watch.looks.look

    def slow_look():
        script.now += 2.0
        return look()

    monkeypatch.setattr(script.watch.looks, "look", slow_look)
    script.run(lambda: None)
    assert script.asleep == [20.0]


def test_file_events_end_a_wait(media, monkeypatch):
    pytest.importorskip("watchfiles")
    monkeypatch.setattr(watch, "STILL_SECONDS", 0.0)
    events = FileEvents([str(media)])
    events.wait()  # starts to listen
    writing = threading.Event()

    def write():
        number = 0
        while not writing.wait(0.05):  # the thread may not listen yet
            number += 1
            (media / f"{number}.txt").write_text("new")

    threading.Thread(target=write, daemon=True).start()
    monkeypatch.setattr(watch, "EVENTS_SECONDS", 600.0)
    events.wait()  # would take ten minutes
    writing.set()
    events.close()
    assert list(media.iterdir())


def test_without_file_events_it_looks_now_and_then(media, monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    monkeypatch.setattr(watch, "STILL_SECONDS", 0.0)
    monkeypatch.setattr(watch, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(watch, "EVENTS_SECONDS", 600.0)
    events = FileEvents([str(media), str(media / "absent")])
    for _ in range(3):
        events.wait()
    assert not events._thread.is_alive()
