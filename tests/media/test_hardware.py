"""Hardware decoding: PyAV's names, the choice of a device, its rehearsal, and the way back to software."""

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import av
import av.codec.hwaccel
import numpy as np
import pytest
from tests.media import make

from wordreel.errors import BrokenMedia, MediaError, WordreelError
from wordreel.media import AudioNeed, Fence, FrameNeed, hardware, worker_process
from wordreel.media.container import DecodeTask
from wordreel.media.formats import MP4, PNG
from wordreel.media.hardware import DEVICES, HwDevices, process_devices
from wordreel.media.packets import decode_frames
from wordreel.media.sandbox import landlock_version
from wordreel.media.types import Limits

ROOT = Path(__file__).parents[2]
NEEDS = [FrameNeed(5, 48), FrameNeed(3, 1000), AudioNeed(16000)]  # the second at the size of the film


def test_pyav_has_the_names_in_use():
    accel = av.codec.hwaccel.HWAccel(device_type="cuda", allow_software_fallback=False)
    assert accel.allow_software_fallback is False
    types = {kind.name for kind in av.codec.hwaccel.HWDeviceType}
    assert set(DEVICES) <= types
    assert set(av.codec.hwaccel.hwdevices_available()) <= types
    for config in av.Codec("h264", "r").hardware_configs:
        assert config.device_type.name in types
        assert isinstance(config.is_supported, bool)
    assert av.CodecContext.create("h264", "r").is_hwaccel is False
    assert av.VideoFrame(16, 16, "nv12").is_corrupt is False
    for name in hardware.EXACT:
        assert av.Codec(name, "r").name == name


def test_settings(monkeypatch):
    assert HwDevices("off").usable() == []
    assert HwDevices("vaapi").usable() == ["vaapi"]
    monkeypatch.setattr(hardware.HwDevice, "present", lambda device: device.name != "cuda")
    assert HwDevices().usable() == ["vaapi", "videotoolbox"]
    monkeypatch.setenv("WORDREEL_HWACCEL", "gpu")
    with pytest.raises(WordreelError, match="WORDREEL_HWACCEL is 'gpu'") as caught:
        Fence()
    assert "auto, off, cuda, vaapi" in caught.value.next_step.text
    monkeypatch.setenv("WORDREEL_HWACCEL", "off")
    assert process_devices() is process_devices()
    assert process_devices().setting == "off"


def test_a_device_that_fails_again_and_again_is_left_alone():
    devices = HwDevices("cuda")
    for worked in (False, False, True, False, False):
        devices.record("cuda", worked)
        assert devices.usable() == ["cuda"]
    devices.record("cuda", False)
    assert devices.usable() == []


@pytest.mark.parametrize(
    ("codec", "size", "seconds", "forced", "chosen"),
    [
        ("h264", (1920, 1080), 30.0, False, "cuda"),
        ("h264", (1920, 1080), 10.0, False, ""),  # too short
        ("h264", (640, 360), 3600.0, False, ""),  # too small
        ("h264", (640, 360), 5.0, True, "cuda"),
        ("mpeg4", (1920, 1080), 3600.0, True, ""),  # not defined to the bit
        ("hevc", (3840, 2160), 30.0, False, "cuda"),
    ],
)
def test_what_is_worth_a_device(monkeypatch, codec, size, seconds, forced, chosen):
    config = SimpleNamespace(device_type=SimpleNamespace(name="cuda"), is_supported=True)
    context = SimpleNamespace(
        name=codec, width=size[0], height=size[1], codec=SimpleNamespace(hardware_configs=[config])
    )
    stream = SimpleNamespace(codec_context=context, average_rate=Fraction(30), base_rate=None)
    monkeypatch.setattr(DecodeTask, "open", lambda task: SimpleNamespace(duration=int(seconds * 1e6)))
    monkeypatch.setattr(hardware, "video_stream", lambda opened: stream)
    task = DecodeTask(0, 0, MP4, Limits())
    assert hardware.choose_device(task, ["vaapi", "cuda"], forced, 0.0, float("inf")) == chosen
    assert hardware.choose_device(task, ["vaapi"], forced, 0.0, float("inf")) == ""
    if not forced:
        assert hardware.choose_device(task, ["cuda"], False, seconds - 1.0, float("inf")) == ""
    picture = DecodeTask(0, 0, PNG, Limits())
    assert hardware.choose_device(picture, ["cuda"], True, 0.0, float("inf")) == ""


@pytest.fixture
def fake(monkeypatch):
    """Workers with a device of tests/media/fake_device.py."""

    def behave(behaviour):
        monkeypatch.setenv("FAKE_DEVICE", behaviour)
        return HwDevices("cuda")

    real = worker_process._command_line

    def command_line(limits, device):
        line = real(limits, device)
        return line if device is None else ["tests.media.fake_device", *line[1:]]

    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'src'}")
    monkeypatch.setattr(worker_process, "_command_line", command_line)
    monkeypatch.setitem(DEVICES, "cuda", replace(DEVICES["cuda"], environment=("FAKE_DEVICE",)))
    return behave


def film(path, **options):
    noise = np.random.default_rng(1)
    images = [noise.integers(0, 255, (8, 10, 3), np.uint8).repeat(9, 0).repeat(9, 1)[:70] for _ in range(60)]
    return make.video(path, images=images, size=(90, 70), seconds=6.0, **options)


def assert_equal(windows, wanted):
    assert len(windows) == len(wanted)
    for a, b in zip(windows, wanted, strict=True):
        assert (a.start, a.end) == (b.start, b.end)
        for one, two in zip(a.parts[:2], b.parts[:2], strict=True):
            np.testing.assert_array_equal(one.times, two.times)
            np.testing.assert_array_equal(one.images, two.images)
        np.testing.assert_array_equal(a.parts[2].samples, b.parts[2].samples)


@pytest.mark.parametrize(
    ("behaviour", "worked"),
    [("works", True), ("refuses", False), ("unable", False), ("error:7", False), ("error:37", False)],
)
def test_every_frame_comes_once_whatever_the_device_does(fake, fence, tmp_path, behaviour, worked):
    path = film(tmp_path / "a.mp4", rotation=90)
    wanted = list(fence.stream(path, NEEDS, 1.5))
    devices, seen = fake(behaviour), []
    devices.record = lambda name, worked: seen.append((name, worked))
    with Fence(devices=devices) as on_device:
        assert_equal(list(on_device.stream(path, NEEDS, 1.5)), wanted)
    assert seen == [("cuda", worked)]


def test_a_driver_may_crash(fake, fence, tmp_path):
    path = film(tmp_path / "a.mkv")
    with Fence(devices=fake("crash:30")) as on_device:
        windows = on_device.stream(path, NEEDS, 1.5)
        got = [next(windows)]
        got += windows
        assert_equal(got, list(fence.stream(path, NEEDS, 1.5)))


def test_ten_bits(fake, fence, tmp_path):
    path = tmp_path / "a.mkv"
    noise = np.random.default_rng(2)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx265", rate=10, options={"x265-params": "log-level=none"})
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p10le"
        for index in range(20):
            image = noise.integers(0, 255, (8, 12, 3), np.uint8).repeat(8, 0).repeat(8, 1)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format="yuv420p10le")
            frame.pts = index
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    devices = fake("works")
    with Fence(devices=devices) as on_device:
        for need in (FrameNeed(10, 32), FrameNeed(10, 64)):
            (a,), (b,) = on_device.stream(path, [need]), fence.stream(path, [need])
            np.testing.assert_array_equal(a.parts[0].images, b.parts[0].images)
    assert devices.usable() == ["cuda"]


def test_a_bad_file_is_still_a_bad_file(fake, tmp_path):
    path = film(tmp_path / "a.mp4")
    data = path.read_bytes()
    first, last = data.index(b"mdat") + 4, data.index(b"moov") - 4
    path.write_bytes(data[:first] + bytes(last - first) + data[last:])
    devices = fake("works")
    devices.record = None  # not called: the device is not to blame
    with Fence(devices=devices) as on_device, pytest.raises(BrokenMedia, match="no frame"):
        list(on_device.stream(path, [FrameNeed(5, 48)]))


def test_damaged_frames_of_a_device_are_errors():
    """Software passes over damage; on a device it is not known whose fault it is."""
    frame = SimpleNamespace(is_corrupt=True)
    packet = SimpleNamespace(pts=0, decode=lambda: [frame])
    opened = SimpleNamespace(demux=lambda stream: iter([packet]))
    with pytest.raises(BrokenMedia, match="damaged from the device"):
        list(decode_frames(opened, SimpleNamespace(codec_context=SimpleNamespace(is_hwaccel=True))))


def test_wrong_pictures_are_noticed(monkeypatch):
    monkeypatch.setattr(hardware, "hwaccel", lambda name: None)
    with hardware._rehearsal("cuda"):
        pass
    monkeypatch.setattr(hardware, "_COLOURS", ((38, 118, 198), (100, 119, 140), (157, 118, 97)))
    with pytest.raises(MediaError, match="wrong pictures"), hardware._rehearsal("cuda"):
        pass


def test_a_pyav_without_the_device_says_so(monkeypatch):
    monkeypatch.setattr(av.codec.hwaccel, "hwdevices_available", lambda: ["drm"])
    with pytest.raises(MediaError, match="built without VAAPI"):
        hardware.confine_with_device(2**30, "vaapi")


def test_beside_a_device_only_its_nodes_can_be_opened(tmp_path):
    (tmp_path / "driver.txt").write_text("settings")
    program = (
        "import mmap, os, socket, sys\n"
        "from wordreel.media.sandbox import confine_beside_device\n"
        "confine_beside_device(2**30, 2, ['/dev/null', '/dev/none'], [sys.argv[1]])\n"
        "def attempt(action):\n"
        "    try: return action()\n"
        "    except OSError as error: print(error.errno)\n"
        "held = [attempt(lambda: os.open('/dev/null', os.O_RDWR))]\n"
        "attempt(lambda: os.open('/etc/hostname', os.O_RDONLY))\n"
        "attempt(lambda: os.open(sys.argv[1] + '/new', os.O_WRONLY | os.O_CREAT))\n"
        "held += [attempt(lambda: os.open(sys.argv[1] + '/driver.txt', os.O_RDONLY)) for _ in range(2)]\n"
        "attempt(lambda: os.open('/dev/null', os.O_RDWR))\n"
        "attempt(lambda: socket.socket())\n"
        "print(held.count(None))\n"
        "mmap.mmap(-1, 2**38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON, prot=mmap.PROT_READ)\n"
        "try: bytearray(2**31); print('reserved')\n"
        "except MemoryError: print('memory')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    refused = ["13", "13"] if landlock_version() else []
    assert ran.stdout.split()[-4:] == ["24", "24", "0", "memory"]
    assert ran.stdout.split()[:-4] == refused


def test_libraries_stay_loaded():
    program = (
        "import _ctypes, ctypes, sys\n"
        "from pathlib import Path\n"
        "from wordreel.media.sandbox import keep_libraries\n"
        "def mapped(path): return path in Path('/proc/self/maps').read_text()\n"
        "for number, path in enumerate(sys.argv[1:]):\n"
        "    handle = ctypes.CDLL(path)._handle\n"
        "    if number: keep_libraries()\n"
        "    _ctypes.dlclose(handle)\n"
        "    print(mapped(path))\n"
    )
    folder = Path(av.__file__).parents[1] / "av.libs"
    unused = sorted(folder.glob("libxcb-s*"))[:2] or pytest.skip("PyAV brings no libraries of its own")
    paths = [str(path) for path in unused]
    ran = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["False", "True"]
