"""Workers die, hang, lie and are shared; the parent does not mind."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.hostile import _png
from tests.media import make

from wordreel.errors import BrokenMedia, OverLimit
from wordreel.media import AudioNeed, Fence, FrameNeed, Limits
from wordreel.media.types import StreamRequest
from wordreel.media.window_reader import read_windows
from wordreel.media.worker_process import WorkerProcess
from wordreel.util.child_process import ChildProcess, ProtocolError

NEEDS = [FrameNeed(2, 32), AudioNeed(16000)]


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    return make.video(tmp_path_factory.mktemp("film") / "a.mp4", seconds=20.0, size=(320, 240))


def only(fence):
    """The process of a fence's one waiting worker."""
    (worker,) = fence._idle
    return worker


def fork_of(process):
    """The process id of the fork in which a worker decodes its file."""
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(child)


def test_a_worker_is_used_again(film):
    with Fence() as fence:
        fence.probe(film)
        first = only(fence).pid
        list(fence.stream(film, NEEDS))
        assert only(fence).pid == first
        process = only(fence)
    assert process.exit_status(5.0) is not None


def test_threads_decode_side_by_side(film):
    with Fence() as fence, ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: list(fence.stream(film, NEEDS, 5.0)), range(8)))
        assert 1 <= len(fence._idle) <= 4
    for result in results[1:]:
        for a, b in zip(results[0], result, strict=True):
            np.testing.assert_array_equal(a.parts[0].images, b.parts[0].images)


def test_an_iterator_may_be_dropped(film):
    with Fence() as fence:
        windows = fence.stream(film, NEEDS, 1.0)
        next(windows)
        windows.close()
        assert fence._idle == []  # the worker was busy, and is gone
        unused = fence.stream(film, NEEDS)
        del unused
        assert fence.probe(film).kind == "video"


def test_a_crash_is_an_error_of_the_file(film):
    with Fence() as fence:
        fence.probe(film)
        process = only(fence)
        windows = fence.stream(film, [FrameNeed(50, 240)], 0.5)
        next(windows)
        os.kill(fork_of(process), signal.SIGSEGV)
        with pytest.raises(BrokenMedia, match="crashed on this file"):
            list(windows)
        assert fence.probe(film).kind == "video"
        os.kill(only(fence).pid, signal.SIGKILL)  # while waiting: the next file is not to blame
        only(fence).exit_status(30.0)
        assert fence.probe(film).kind == "video"


def test_rings_of_decoder_objects_do_not_crash_later_files(film):
    """PyAV crashes in the garbage collector some files later; forks never get there."""
    with Fence() as fence:
        for _ in range(40):
            fence.probe(film)
            list(fence.stream(film, NEEDS))
        assert len(fence._idle) == 1


def test_a_hang_is_cut_short(film):
    with Fence() as fence:
        fence.probe(film)
        process = only(fence)
        fence._idle[0]._limits = Limits(wall_floor=1.0, wall_per_second=0.0)  # whatever starting it took
        os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(OverLimit, match="longer than 1 seconds"):
            fence.probe(film)
        assert process.exit_status(5.0) is not None
        assert fence.probe(film).kind == "video"


def test_too_much_memory_is_refused(tmp_path):
    """A picture within the pixel limit, in a worker too small for it."""
    path = tmp_path / "a.png"
    path.write_bytes(_png(7000, 8000, zlib.compress(bytes(8000 * (1 + 7000 // 8)))))
    with Fence(Limits(memory_bytes=340 * 2**20)) as fence:
        with pytest.raises(OverLimit, match="more memory than the limit"):
            list(fence.stream(path, [FrameNeed(1, 7000), FrameNeed(1, 6990)]))
        (window,) = fence.stream(path, [FrameNeed(1, 50)])
        assert window.parts[0].images.shape == (1, 57, 50, 3)


def test_workers_end_with_their_parent(film):
    program = (
        "import sys, time; from pathlib import Path; from wordreel.media import Fence, FrameNeed\n"
        "fence = Fence()\n"
        "windows = fence.stream(Path(sys.argv[1]), [FrameNeed(50, 240)], 0.5); next(windows)\n"
        "import gc; from wordreel.media.worker_process import WorkerProcess\n"
        "print([w.pid for w in gc.get_objects() if isinstance(w, WorkerProcess)][0], flush=True)\n"
        "time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, str(film)], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    (fork,) = map(int, Path(f"/proc/{worker}/task/{worker}/children").read_text().split())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (_runs(worker) or _runs(fork)):
        time.sleep(0.05)
    assert not _runs(worker)
    assert not _runs(fork)


def _runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_confined_worker_can_open_and_write_nothing():
    program = (
        "import os, socket\n"
        "from wordreel.media.sandbox import confine\n"
        "confine(2**30)\n"
        "held = os.open('/dev/null', os.O_RDONLY)\n"
        "for attempt in (lambda: os.open('/etc/hostname', os.O_RDONLY), lambda: socket.socket()):\n"
        "    try: attempt(); print('opened')\n"
        "    except OSError as error: print(error.errno)\n"
        "try: bytearray(2**31); print('reserved')\n"
        "except MemoryError: print('memory')\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["24", "24", "memory"]


def test_a_folder_cannot_slip_in_modules(film, tmp_path, monkeypatch):
    (tmp_path / "av.py").write_text("raise SystemExit('not me')")
    monkeypatch.chdir(tmp_path)
    with Fence() as fence:
        assert fence.probe(film).kind == "video"


def liar(*messages):
    """A worker whose other end says whatever it likes."""
    ours, theirs = socket.socketpair()
    worker = WorkerProcess.__new__(WorkerProcess)
    ChildProcess.__init__(worker, "wordreel.util")  # which ends at once
    worker.link.close()
    worker.link = ours
    worker._limits = Limits(wall_floor=5.0)
    worker._waited = worker._reached = 0.0

    def speak():
        for message in messages:
            theirs.sendall(message)
        theirs.close()

    threading.Thread(target=speak).start()
    return worker


def said(payload=b"", **fields):
    text = json.dumps({"bytes": len(payload), **fields}).encode()
    return len(text).to_bytes(4, "big") + text + payload


BEGIN = said(**{"is": "begin", "video": True, "audio": True, "orientation": 0})
FRAME = {"is": "frame", "need": 0, "first": 0, "count": 1, "width": 4, "height": 4, "stride": 12}


@pytest.mark.parametrize(
    "messages",
    [
        [b"\xff" * 100],
        [b"\x00\x00\x00\x05hello"],
        [b"\x00\x00\x00\x02[]"],
        [(30000).to_bytes(4, "big") + b"[" * 30000],
        [said(**{"is": "window"})],
        [BEGIN, said(**{"is": "dance"})],
        [BEGIN, said(bytes(48), **{**FRAME, "need": 7})],
        [BEGIN, said(bytes(48), **{**FRAME, "need": 1})],
        [BEGIN, said(bytes(48), **{**FRAME, "count": 10**9})],
        [BEGIN, said(bytes(48), **{**FRAME, "first": 3})],
        [BEGIN, said(bytes(48), **{**FRAME, "width": 10**6, "height": 10**6})],
        [BEGIN, said(bytes(48), **{**FRAME, "height": -4})],
        [BEGIN, said(bytes(48), **{**FRAME, "width": "4"})],
        [BEGIN, said(bytes(10), **FRAME)],
        [BEGIN, said(b"", **{"is": "sound", "need": 1, "first": 0, "bytes": 2**39})],
        [BEGIN, said(bytes(5), **{"is": "sound", "need": 1, "first": 0})],
        [BEGIN, said(**{"is": "window", "start": 0.0, "end": float("nan"), "last": True})],
        [BEGIN, said(**{"is": "window", "start": 0.0, "end": 1e300, "last": True})],
        [said(**{"is": "begin", "video": True, "audio": True, "orientation": 99})],
        [said(**{"is": "pulse", "reached": None})],
        [said(**{"is": "error", "class": "SystemExit", "reason": 5})],
    ],
)
def test_nonsense_is_refused(messages):
    worker = liar(*messages)
    with pytest.raises(ProtocolError):
        list(read_windows(worker, StreamRequest(tuple(NEEDS), 60.0), Limits()))
    worker.close()


def test_an_unknown_error_is_a_broken_file_on_one_line():
    worker = liar(said(**{"is": "error", "class": "SystemExit", "reason": "a\nb\x1b[2J" + "c" * 1000}))
    with pytest.raises(BrokenMedia) as caught:
        worker.answer()
    assert caught.value.message.startswith("a b [2Jccc")
    assert len(caught.value.message) <= 300
    worker.close()


def test_a_silent_end_is_a_broken_file():
    worker = liar(BEGIN)
    with pytest.raises(BrokenMedia, match="gave up"):
        list(read_windows(worker, StreamRequest(tuple(NEEDS), 60.0), Limits()))
    worker.close()


@pytest.mark.parametrize(
    "needs", [[], [FrameNeed(0, 24)], [FrameNeed(float("nan"), 24)], [FrameNeed(1, 0)], [AudioNeed(0)]]
)
def test_needs_that_make_no_sense(fence, film, needs):
    with pytest.raises(ValueError):
        fence.stream(film, needs)


@pytest.mark.parametrize("span", [(1.0, None), (0.0, 2.0)])
def test_sound_is_not_decoded_in_part(fence, film, span):
    with pytest.raises(ValueError, match="from beginning to end"):
        fence.run(film, StreamRequest((AudioNeed(16000),), 60.0, *span))


def test_a_closed_fence_says_so(film):
    with Fence() as fence:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        fence.probe(film)
