"""Hardware decoders: which there are, which are used and have failed, and decoding on them in a worker."""

from __future__ import annotations

import io
import os
import sys
import threading
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wordreel.errors import MediaError, NextStep, WordreelError
from wordreel.media.container import DecodeTask, video_stream
from wordreel.media.sandbox import confine_beside_device, keep_libraries, open_descriptors

VARIABLE = "WORDREEL_HWACCEL"
"""The environment variable: `auto`, `off`, or the name of a device."""

_MAX_FAILURES = 3
"""Files in a row on which a device fails, and software does not, before this process leaves it alone."""


@dataclass(frozen=True)
class HwDevice:
    """A kind of device by FFmpeg's name for it.

    Its driver opens `nodes` (patterns below `/`) again for each decoder, and reads `readable` then.
    """

    name: str
    title: str
    platform: str
    nodes: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()

    def present(self) -> bool:
        """Return whether the machine seems to have one; only its driver knows whether it works."""
        return sys.platform == self.platform and (not self.nodes or bool(self.paths()))

    def paths(self) -> list[str]:
        """Return the nodes of the device that are there."""
        found = [path for pattern in self.nodes for path in sorted(Path("/").glob(pattern))]
        return [str(path) for path in found if not path.is_dir()]


_LINUX = ("/proc/self/maps", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices", "/sys/bus", "/sys/dev")
DEVICES = {
    device.name: device
    for device in (
        HwDevice(
            "cuda", "NVDEC", "linux", ("dev/nvidia*", "dev/nvidia-caps/*", "dev/dxg"),
            ("/proc/driver/nvidia", "/proc/devices", "/proc/modules", *_LINUX), ("CUDA_VISIBLE_DEVICES",),
        ),
        HwDevice(
            "vaapi", "VAAPI", "linux", ("dev/dri/renderD*",), ("/sys/class/drm", *_LINUX),
            ("LIBVA_DRIVER_NAME", "LIBVA_DRIVERS_PATH"),
        ),
        HwDevice("videotoolbox", "VideoToolbox", "darwin"),
    )
}  # fmt: skip
"""All that are tried, the first choice first. Of the others that FFmpeg knows, QSV and AMF need decoders of
their own, and D3D11VA a system that has no fork."""


class HwDevices:
    """The devices that a fence may use; shared by all fences of a process, from any thread.

    Args:
        setting: `auto`, `off`, or the name of the one device to use, for small videos too.

    Raises:
        WordreelError: There is no such setting.

    >>> HwDevices("off").usable()
    []
    """

    def __init__(self, setting: str = "auto") -> None:
        if setting not in ("auto", "off", *DEVICES):
            raise WordreelError(
                f"{VARIABLE} is {setting!r}, which is no hardware decoder",
                NextStep(f"set it to auto, off, {', '.join(DEVICES)}, or not at all"),
            )
        self.setting = setting
        self.forced = setting in DEVICES
        self._lock = threading.Lock()
        self._failures: dict[str, int] = {}
        self._names = [setting] if self.forced else []
        if setting == "auto":
            self._names = [device.name for device in DEVICES.values() if device.present()]

    def usable(self) -> list[str]:
        """Return names of devices to try, the first choice first."""
        with self._lock:
            return [name for name in self._names if self._failures.get(name, 0) < _MAX_FAILURES]

    def record(self, name: str, worked: bool) -> None:
        """Count a file that a device has decoded, or failed on."""
        with self._lock:
            self._failures[name] = 0 if worked else self._failures.get(name, 0) + 1


def process_devices() -> HwDevices:
    """Return the devices that `WORDREEL_HWACCEL` allows, with the failures of this process so far."""
    return _with_setting(os.environ.get(VARIABLE) or "auto")


@cache
def _with_setting(setting: str) -> HwDevices:
    return HwDevices(setting)


EXACT = ("h264", "hevc", "vp8", "vp9")
"""Codecs whose standard defines every bit of the picture, so that any decoder returns the same."""
MIN_FRAME = 1280 * 720
"""Pixels of a frame below which the processor decodes about as fast as frames come back from a device."""
MIN_VIDEO = 1_000_000_000
"""Pixels of a video below which a device is not worth opening: that takes up to a second, in which one core
decodes half as many (16 seconds of 1080p at 30 frames a second have as many, or 4 of 4K)."""

_FILM = b64decode(
    "AAAAAWdNQBWmEQUGaEAAAAMAQAAADIPFi4RgAAAAAWjoQwRLIAAAAAFliIIF//6eu+BRqUQfFTodJwCZlshJPFbAWN0MvMMKoAAcaXav"
    "/nWMgXUwEEAAA7w77AP0wJBAdkEAAAABQZocY0Hwag+B6D4CIhf/8yAAEXAAAAABQZopPBBBBkMaD4NQfAQQfARIPgwBCv/kQAA2YQ=="
)
"""Three frames of H.264, 320 x 192, each of one colour."""
_COLOURS = ((38, 118, 198), (100, 119, 140), (157, 118, 77))


def choose_device(task: DecodeTask, devices: Sequence[str], forced: bool, start: float, stop: float) -> str:
    """Return the first of `devices` that has a decoder for a file and is worth opening, or "".

    A device that the user `forced` is worth it for every video.
    """
    if task.container.picture:
        return ""
    opened = task.open()
    stream = video_stream(opened)
    if stream is None or stream.codec_context.name not in EXACT:
        return ""
    context = stream.codec_context
    pixels = context.width * context.height
    seconds = min(stop, (opened.duration or 0) / 1e6) - start
    total = pixels * seconds * float(stream.average_rate or stream.base_rate or 0)
    if not forced and (pixels < MIN_FRAME or total < MIN_VIDEO):
        return ""
    able = {config.device_type.name for config in context.codec.hardware_configs if config.is_supported}
    return next((name for name in devices if name in able), "")


def hwaccel(device: str) -> Any:
    """Return PyAV's settings for a device.

    Its own fallback is off: the fence has one that also mends crashes.
    """
    from av.codec.hwaccel import HWAccel

    return HWAccel(device_type=device, allow_software_fallback=False)


def confine_with_device(memory_bytes: int, name: str) -> None:
    """Load a device's driver, then close the fence around it, and make sure that it decodes inside.

    The driver reads its libraries and settings before the fence closes and before there is a file.

    Raises:
        MediaError: It does not decode; the reason is in the message.
    """
    from av.codec.hwaccel import hwdevices_available

    if name not in hwdevices_available():
        raise MediaError(f"the installed PyAV was built without {DEVICES[name].title}")
    before = open_descriptors()
    with _rehearsal(name):
        during = open_descriptors()
        keep_libraries()
    device = DEVICES[name]
    confine_beside_device(memory_bytes, len(during - before), device.paths(), device.readable)
    with _rehearsal(name):
        pass


@contextmanager
def _rehearsal(name: str) -> Iterator[None]:
    """Decode a small film on a device and look at it, and enter with the device still open."""
    import av

    try:
        with av.open(io.BytesIO(_FILM), format="h264", hwaccel=hwaccel(name)) as film:
            frames = list(film.decode(video=0))
            colours = [frame.reformat(format="rgb24").to_ndarray().mean((0, 1)) for frame in frames]
            yield
    except (av.FFmpegError, RuntimeError, ValueError, NotImplementedError) as error:
        raise MediaError(f"its driver reports: {str(error)[:120].lower()}") from error
    if len(colours) != len(_COLOURS) or any(
        abs(seen - wanted).max() > 3 for seen, wanted in zip(colours, _COLOURS, strict=True)
    ):
        raise MediaError("it returned wrong pictures of a test film")
