"""Tracks in an object store, and moving them there and back."""

import hashlib
import os
import socket
import subprocess
import sys
import time
import uuid

import numpy as np
import pytest
from tests.fakes import FakeFence, experts, write_media

from wordreel.catalogue.store import LibraryStore
from wordreel.catalogue.tracks import TrackFiles, encode, open_tracks
from wordreel.errors import LibraryError
from wordreel.ingest.add import add
from wordreel.maintain.backup import backup, restore
from wordreel.maintain.move_tracks import FOLDER, move_tracks
from wordreel.maintain.repair import repair
from wordreel.maintain.verify import verify
from wordreel.types import Track


def track(seed: int) -> Track:
    values = np.random.default_rng(seed).normal(size=(3, 4)).astype(np.float32)
    return Track(values, np.array([[n, n + 1] for n in range(3)], np.float64))


@pytest.fixture(params=["folder", "memory", "file"])
def tracks(request, tmp_path):
    if request.param == "folder":
        (tmp_path / "passing").mkdir()
        return TrackFiles(tmp_path)
    prefix = uuid.uuid4().hex if request.param == "memory" else str(tmp_path)
    return open_tracks(f"{request.param}://{prefix}/tracks")


@pytest.fixture
def bucket() -> str:
    return f"memory://{uuid.uuid4().hex}/tracks"


@pytest.fixture
def filled(store, media):
    for n in range(3):
        write_media(media / f"{n}.mp4", seconds=30.0 + n, seed=n)
    add(store, [media], experts(), FakeFence())
    return store


def test_every_store_does_the_same(tracks):
    assert (list(tracks.all()), tracks.strays(), tracks.bytes()) == ([], [], 0)
    staged = tracks.stage(track(1))
    tracks.commit(staged)
    more = tracks.stage_all([track(2), track(3), track(1)])
    tracks.commit_all(more)
    data = {hashlib.sha256(encode(track(n))).hexdigest(): encode(track(n)) for n in (1, 2, 3)}
    assert list(tracks.all()) == sorted(data)
    assert {digest: tracks.read(digest) for digest in data} == data
    assert tracks.bytes() == sum(map(len, data.values()))
    np.testing.assert_array_equal(tracks.load(staged.hash).values, track(1).values)
    tracks.remove_all([staged.hash])
    tracks.remove_all([staged.hash])  # again: nothing happens
    assert not tracks.exists(staged.hash)
    assert tracks.exists(more[0].hash)
    with pytest.raises(FileNotFoundError):
        tracks.read(staged.hash)
    with pytest.raises(LibraryError, match="is missing"):
        tracks.load(staged.hash)
    tracks.put(staged.hash, data[staged.hash])
    assert tracks.read(staged.hash) == data[staged.hash]
    tracks.clear_staging()
    assert open_tracks(tracks.address).read(staged.hash) == data[staged.hash]


def test_an_object_that_somebody_replaced_is_refused(bucket):
    tracks = open_tracks(bucket)
    staged = tracks.stage(track(1))
    tracks.put(staged.hash, encode(Track(track(2).values[:2], track(2).times[:2])))
    with pytest.raises(LibraryError, match="not those it is named after"):
        tracks.load(staged.hash)


@pytest.mark.parametrize("address", ["http://host/tracks", "s3://", "simplecache::s3://b/t", "shell://x/y"])
def test_other_addresses_are_refused(address, store):
    with pytest.raises(LibraryError, match="is not an"):
        move_tracks(store, address)


def test_a_library_moves_there_and_back(filled, bucket):
    before = {row.hash: filled.track_files.read(row.hash) for row in filled.tracks() if row.hash}
    seen = []
    assert move_tracks(filled, bucket, seen.append) == len(before)
    assert seen[-1].done == seen[-1].total == len(before)
    assert list((filled.path / "tracks").glob("??/*")) == []
    with LibraryStore.open(filled.path) as again:
        assert again.track_files.address == bucket
        assert {digest: again.track_files.read(digest) for digest in before} == before
        assert verify(again) == []
    assert move_tracks(filled, bucket) == len(before), "already there"
    assert move_tracks(filled, FOLDER) == len(before)
    assert list(open_tracks(bucket).all()) == []
    with LibraryStore.open(filled.path) as again:
        assert verify(again) == []


def test_adding_removing_and_sweeping_objects(filled, bucket, media):
    move_tracks(filled, bucket)
    write_media(media / "new.mp4", seed=9)
    (media / "0.mp4").unlink()
    assert len(add(filled, [media], experts(), FakeFence()).added) == 1
    filled.remove_missing()
    assert verify(filled) == []
    orphan = filled.track_files.stage(track(7)).hash  # written by a process that was then killed
    problems = verify(filled)
    assert [problem.kind for problem in problems] == ["orphan"]
    assert repair(filled, problems) == []
    assert not filled.track_files.exists(orphan)


def test_damaged_tracks_do_not_move(filled, bucket):
    digest = next(iter(filled.track_files.all()))
    filled.track_files.put(digest, b"damaged")
    with pytest.raises(LibraryError, match="damaged"):
        move_tracks(filled, bucket)
    assert filled.track_files.address == str(filled.path / "tracks")


def test_a_place_with_other_tracks_is_refused(filled, bucket):
    open_tracks(bucket).stage(track(5))
    with pytest.raises(LibraryError, match="something else"):
        move_tracks(filled, bucket)


def test_a_backup_has_its_tracks_beside_it(filled, bucket, tmp_path):
    move_tracks(filled, bucket)
    report = backup(filled, tmp_path / "backup")
    assert report.copied == report.tracks > 0
    restore(tmp_path / "backup", tmp_path / "restored")
    with LibraryStore.open(tmp_path / "restored") as restored:
        assert restored.track_files.address == str(tmp_path / "restored" / "tracks")
        assert verify(restored) == []
    assert filled.track_files.address == bucket


@pytest.mark.slow
def test_a_real_s3_server(filled, monkeypatch):
    pytest.importorskip("moto", reason="make test-ray installs it")
    s3fs = pytest.importorskip("s3fs")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)])
    try:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setitem(os.environ, name, value)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.2)
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("archive")
        before = {row.hash: filled.track_files.read(row.hash) for row in filled.tracks() if row.hash}
        move_tracks(filled, "s3://archive/films/tracks")
        with LibraryStore.open(filled.path) as again:
            assert list(again.track_files.all()) == sorted(before)
            assert verify(again) == []
            server.kill()
            server.wait()
            with pytest.raises(LibraryError, match=r"cannot be read|does not answer"):
                again.track_files.load(next(iter(before)))
    finally:
        server.kill()
        server.wait()
