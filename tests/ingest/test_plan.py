"""Which files are found, under which names, in which order."""

import os
from pathlib import Path

import pytest
from tests.digest import digest_of
from tests.fakes import Colour, FakeFence, write_media

from wordreel.ingest.add import add
from wordreel.ingest.plan import IgnoredFile, ScannedFile, UnreadableFile, resolves_within, scan


def found(*roots, skip: str = "") -> list[str]:
    return [item.path for item in scan(roots, skip) if isinstance(item, ScannedFile)]


def test_walk_is_sorted_and_skips_hidden_and_own_folder(tmp_path):
    for name in ("b.mp4", "a/z.mkv", "a/b/c.MP4", ".hidden.mp4", ".git/x.mp4", "lib/thumb.png", "note.txt"):
        write_media(tmp_path / name)
    assert [os.path.relpath(p, tmp_path) for p in found(tmp_path, skip=str(tmp_path / "lib"))] == [
        "a/b/c.MP4",
        "a/z.mkv",
        "b.mp4",
    ]
    assert found(tmp_path / ".hidden.mp4") == [str(tmp_path / ".hidden.mp4")]
    assert found(tmp_path / "b.mp4", tmp_path / "b.mp4", tmp_path / "a" / ".." / "b.mp4") == [
        str(tmp_path / "b.mp4")
    ]


def test_first_bytes_decide_for_unknown_names(tmp_path):
    (tmp_path / "film").write_bytes(b"\x1aE\xdf\xa3" + bytes(100))
    (tmp_path / "app.ts").write_text("export const a = 1;")
    (tmp_path / "stream.ts").write_bytes((b"\x47" + bytes(187)) * 20)
    (tmp_path / "empty").write_bytes(b"")
    items = {Path(i.path).name: i for i in scan([tmp_path])}
    assert isinstance(items["film"], ScannedFile)
    assert not items["film"].expected
    assert isinstance(items["stream.ts"], ScannedFile)
    assert isinstance(items["app.ts"], IgnoredFile)
    assert isinstance(items["empty"], IgnoredFile)


def test_links(tmp_path):
    inside, outside = tmp_path / "in", tmp_path / "out"
    target = write_media(outside / "real.mp4")
    write_media(inside / "own.mp4")
    (inside / "loop").symlink_to(inside)
    (inside / "other").symlink_to(outside)
    (inside / "link.mp4").symlink_to(target)
    (inside / "dead.mp4").symlink_to(tmp_path / "nowhere.mp4")
    items = list(scan([inside]))
    assert [Path(i.path).name for i in items if isinstance(i, ScannedFile)] == ["link.mp4", "own.mp4"]
    assert [(Path(i.path).name, i.reason) for i in items if isinstance(i, UnreadableFile)] == [
        ("dead.mp4", "no such file or folder")
    ]
    (tmp_path / "shortcut").symlink_to(inside)
    assert found(tmp_path / "shortcut") == found(inside), "a folder has one spelling"


def test_links_are_judged_by_where_they_lead(tmp_path):
    inside, outside, library = tmp_path / "in", tmp_path / "out", tmp_path / "in" / "lib"
    write_media(inside / "own.mp4")
    (inside / "same.mp4").symlink_to(inside / "own.mp4")
    (inside / "out.mp4").symlink_to(write_media(outside / "real.mp4"))
    (inside / "out.txt").symlink_to(outside / "real.mp4")
    (inside / "track.mp4").symlink_to(write_media(library / "tracks" / "x.mp4"))
    (tmp_path / "in2").mkdir()
    (tmp_path / "in2" / "a.mp4").symlink_to(inside / "own.mp4")
    items = {Path(i.path).name: i for i in scan([inside], skip=str(library), within=[inside])}
    assert {name for name, item in items.items() if isinstance(item, ScannedFile)} == {"own.mp4", "same.mp4"}
    assert isinstance(items["out.mp4"], UnreadableFile)
    assert "outside the allowed folders" in items["out.mp4"].reason
    assert isinstance(items["out.txt"], IgnoredFile)
    assert isinstance(items["track.mp4"], IgnoredFile), "the library's own files are not media to add"
    assert resolves_within(inside / "same.mp4", [inside])
    assert not resolves_within(inside / "out.mp4", [inside])
    assert not resolves_within(tmp_path / "in2", [inside]), "a folder whose name begins the same is another"
    assert resolves_within(tmp_path / "in2" / "a.mp4", [inside])


def test_files_outside_the_allowed_folders_fail_with_the_reason(store, media, tmp_path):
    (media / "secret.mp4").symlink_to(write_media(tmp_path / "out" / "secret.mp4", seed=3))
    write_media(media / "own.mp4")
    report = add(store, [media], [Colour()], FakeFence(), within=[media])
    assert [Path(path).name for path in report.added] == ["own.mp4"]
    assert [(Path(path).name, "outside" in reason) for path, reason in report.failed] == [
        ("secret.mp4", True)
    ]
    assert len(store.files()) == 1


@pytest.mark.parametrize(
    "name", [b"caf\xe9.mp4", b"two\nlines.mp4", "日本 – ünïcode.mp4".encode(), b"-rf '; x.mp4"]
)
def test_odd_names_survive(store, media, name):
    path = Path(os.fsdecode(os.fsencode(media) + b"/" + name))
    write_media(path)
    add(store, [media], [Colour()], FakeFence())
    assert [os.fsencode(f.path) for f in store.files()] == [os.fsencode(path)]
    assert Path(store.files()[0].path).exists()
    assert add(store, [media], [Colour()], FakeFence()).failed == []
    assert len(digest_of(store)) == 64
    assert store.remove([path]) == [str(path)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_folder_is_reported(store, media):
    closed = media / "closed"
    closed.mkdir(mode=0)
    try:
        report = add(store, [media], [Colour()], FakeFence())
    finally:
        closed.chmod(0o700)
    assert [p for p, _ in report.failed] == [str(closed)]
