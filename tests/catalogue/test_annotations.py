"""Tags and notes: what they refuse, what they survive, and with what they go."""

import threading

import pytest
from tests.digest import digest_of
from tests.fakes import FakeFence, experts, write_media
from tests.ingest.test_passes import finish, look
from tests.lines import lines_with

from wordreel.catalogue.annotations import LONGEST_NOTE, LONGEST_TAG, MOST_OF_A_VIDEO, AnnotationManager
from wordreel.catalogue.store import REPLICA, LibraryStore
from wordreel.errors import LibraryError, LibraryReadOnly, QueryError
from wordreel.ingest.add import add
from wordreel.maintain.backup import backup, restore
from wordreel.maintain.repair import repair
from wordreel.maintain.verify import verify


@pytest.fixture
def media(tmp_path):
    write_media(tmp_path / "media" / "long.mp4", seconds=95.0, seed=1)
    write_media(tmp_path / "media" / "short.mp4", seconds=12.0, seed=2)
    write_media(tmp_path / "media" / "still.png", seed=4, kind="image")
    return tmp_path / "media"


@pytest.fixture
def store(tmp_path, media):
    with LibraryStore.create_or_open(tmp_path / "library") as store:
        add(store, [media], experts(), FakeFence())
        yield store


@pytest.fixture
def marks(store):
    return AnnotationManager(store)


def told(store):
    return [(one.kind, one.text, one.start, one.end) for one in AnnotationManager(store).list()]


def test_a_moment_is_tagged_once(marks, media, store):
    first = marks.tag(media / "long.mp4", "  Beach  2024 ", 10, 20)
    assert (first.text, first.start, first.end) == ("Beach 2024", 10.0, 20.0)
    assert marks.tag(media / "long.mp4", "BEACH 2024", 10, 20) == first
    marks.tag(media / "long.mp4", "beach 2024", 30, 40)
    marks.tag(media / "short.mp4", "beach 2024")
    marks.note(media / "short.mp4", "Bob falls\ninto the water", 2, 3.5)
    assert [(c.tag, c.moments, c.videos) for c in marks.tags()] == [("Beach 2024", 3, 2)]
    assert [one.start for one in marks.list(media / "long.mp4")] == [10.0, 30.0]
    assert [(one.start, one.end) for one in marks.list(media / "short.mp4", "beach 2024")] == [(0.0, 12.0)]
    assert len(marks.list(tag="Beach 2024")) == 3
    assert verify(store) == []


def test_a_picture_and_a_whole_video_are_tagged(marks, media):
    assert (marks.tag(media / "still.png", "x").start, marks.tag(media / "still.png", "x").end) == (0.0, 0.0)
    assert marks.tag(media / "short.mp4", "x", 5).end == 12.0
    assert marks.tag(media / "short.mp4", "x", 5, 1e6).end == 12.0


@pytest.mark.parametrize(
    ("kind", "text", "start", "end", "words"),
    [
        ("tag", "  ", 0, 1, "empty"),
        ("tag", "x" * (LONGEST_TAG + 1), 0, 1, "at most 100"),
        ("tag", "a\u202eb", 0, 1, "invisible"),
        ("tag", 'a"b', 0, 1, "quotes"),
        ("note", "\n ", 0, 1, "empty"),
        ("note", "x" * (LONGEST_NOTE + 1), 0, 1, "at most 10000"),
        ("note", "a\x00b", 0, 1, "invisible"),
        ("tag", "x", 3, 3, "begins before it ends"),
        ("tag", "x", -1, 3, "begins before it ends"),
        ("tag", "x", float("nan"), 3, "begins before it ends"),
        ("tag", "x", 12, 13, "has 12 seconds"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(marks, media, store, kind, text, start, end, words):
    with pytest.raises(QueryError, match=words):
        getattr(marks, kind)(media / "short.mp4", text, start, end)
    assert told(store) == []


def test_a_file_that_is_not_here(marks, media):
    with pytest.raises(LibraryError, match="not in the library"):
        marks.tag(media / "other.mp4", "x")
    with pytest.raises(LibraryError, match="number 7"):
        marks.remove(7)


def test_a_video_has_only_so_many(marks, media, store):
    with store.catalogue.transaction():
        for number in range(MOST_OF_A_VIDEO):
            marks.tag(media / "short.mp4", f"t{number}")
    with pytest.raises(QueryError, match=str(MOST_OF_A_VIDEO)):
        marks.tag(media / "short.mp4", "one more")
    assert marks.tag(media / "short.mp4", "t7").text == "t7"


def test_they_are_changed_and_removed(marks, media, store):
    note = marks.note(media / "short.mp4", "Bob falls", 1, 2)
    assert marks.change(note.id, "Bob jumps").text == "Bob jumps"
    assert [row.text for row in lines_with(store, ["jump"])] == ["Bob jumps"]
    assert lines_with(store, ["falls"]) == []
    with pytest.raises(QueryError):
        marks.change(note.id, "")
    marks.remove(note.id)
    assert (told(store), lines_with(store, ["jump"])) == ([], [])
    assert verify(store) == []


def test_a_tag_changed_into_one_that_is_there_becomes_it(marks, media, store):
    one, two = marks.tag(media / "short.mp4", "a", 1, 2), marks.tag(media / "short.mp4", "b", 1, 2)
    assert marks.change(two.id, "A").id == two.id
    assert [(row.id, row.text) for row in AnnotationManager(store).list()] == [(two.id, "A")]
    assert one.id != two.id
    assert verify(store) == []


def test_words_of_notes_and_tags_are_found_like_others(marks, media, store):
    marks.note(media / "long.mp4", "Die Möwe über dem Café", 10, 20)
    marks.tag(media / "long.mp4", "holidays", 10, 20)
    found = lines_with(store, ["cafe"]) + lines_with(store, ["holiday"])
    assert [(row.expert, row.start, row.end) for row in found] == [("note", 10.0, 20.0), ("tag", 10.0, 20.0)]


def test_they_survive_the_thorough_pass(tmp_path, media):
    with LibraryStore.create_or_open(tmp_path / "quick") as store:
        look(store, [media])
        before = {clip.id for clip in store.clips()}
        AnnotationManager(store).tag(media / "long.mp4", "beach", 10, 20)
        finish(store)
        assert before.isdisjoint(clip.id for clip in store.clips(store.file(media / "long.mp4").content))
        assert told(store) == [("tag", "beach", 10.0, 20.0)]
        add(store, [media], experts(), FakeFence())
        assert told(store) == [("tag", "beach", 10.0, 20.0)]


def test_they_stay_with_a_moved_file(marks, media, store):
    marks.note(media / "short.mp4", "a gull")
    (media / "short.mp4").rename(media / "gull.mp4")
    add(store, [media], experts(), FakeFence())
    assert [one.text for one in marks.list(media / "gull.mp4")] == ["a gull"]


def test_they_come_back_with_a_removed_file_wherever_it_is(marks, media, store, tmp_path):
    marks.tag(media / "long.mp4", "beach", 10, 20)
    marks.note(media / "short.mp4", "a gull")
    before = told(store)
    exported = marks.export()
    store.remove([media])
    assert (told(store), marks.tags(), lines_with(store, ["beach"])) == ([], [], [])
    assert [{**row, "path": ""} for row in exported] == marks.export()
    assert verify(store) == []
    (media / "long.mp4").rename(tmp_path / "sea.mp4")
    add(store, [tmp_path / "sea.mp4", media], experts(), FakeFence())
    assert told(store) == before
    assert [one.text for one in marks.list(tmp_path / "sea.mp4")] == ["beach"]
    assert [row.text for row in lines_with(store, ["gull"])] == ["a gull"]
    assert verify(store) == []


def test_they_are_deleted_with_their_video_only_where_asked(marks, media, store):
    marks.tag(media / "long.mp4", "beach")
    store.remove([media / "long.mp4"], forget=True)
    add(store, [media], experts(), FakeFence())
    assert (told(store), marks.export()) == ([], [])


def test_export_and_import(marks, media, store, tmp_path):
    marks.tag(media / "long.mp4", "beach", 10, 20)
    marks.note(media / "short.mp4", "a gull", 1, 2)
    rows = marks.export()
    with LibraryStore.create_or_open(tmp_path / "other") as other:
        add(other, [media / "long.mp4"], experts(), FakeFence())
        assert AnnotationManager(other).import_(rows) == (1, 1)
        assert AnnotationManager(other).import_(rows) == (0, 1)
        assert told(other) == [("tag", "beach", 10.0, 20.0)]
        row = next(row for row in rows if "tag" in row)
        bad = [{**row, "start": 3, "end": 4}, {**row, "tag": ""}]
        for wrong in (bad, [row, {"content": row["content"]}], [{**row, "start": "x"}]):
            with pytest.raises(QueryError):
                AnnotationManager(other).import_(wrong)
        assert told(other) == [("tag", "beach", 10.0, 20.0)]  # all or nothing


def test_backups_hold_them(marks, media, store, tmp_path):
    marks.tag(media / "long.mp4", "beach", 10, 20)
    backup(store, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    with LibraryStore.open(tmp_path / "restored") as restored:
        assert told(restored) == told(store)
        assert digest_of(restored) == digest_of(store)


def test_they_can_be_written_while_another_process_adds(marks, media, store, tmp_path):
    with store.writing(), LibraryStore.open(store.path) as other:
        done = []
        thread = threading.Thread(
            target=lambda: done.append(AnnotationManager(other).tag(media / "short.mp4", "x").id)
        )
        thread.start()
        thread.join(60)
        assert done
    assert told(store) == [("tag", "x", 0.0, 12.0)]


def test_a_transaction_that_fails_leaves_nothing(marks, media, store):
    with pytest.raises(QueryError), store.catalogue.transaction():
        [marks.tag(media / "short.mp4", tag) for tag in ("x", "")]
    assert told(store) == []


def test_replicas_are_not_changed(marks, media, store):
    store.set_setting(REPLICA, "{}")
    with pytest.raises(LibraryReadOnly, match="replica"):
        marks.tag(media / "short.mp4", "x")


def test_a_damaged_index_of_notes_is_rebuilt(marks, media, store):
    marks.note(media / "short.mp4", "a gull")
    store.catalogue.run("INSERT INTO annotations_fts (annotations_fts) VALUES ('delete-all')")
    problems = verify(store)
    assert [problem.kind for problem in problems] == ["words"]
    assert repair(store, problems) == []
    assert [row.text for row in lines_with(store, ["gull"])] == ["a gull"]
