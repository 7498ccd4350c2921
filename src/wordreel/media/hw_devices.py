"""Which hardware decoders this machine has, which of them are used, and which have failed."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wordreel.errors import NextStep, WordreelError

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
        """Whether the machine seems to have one; only its driver knows whether it works."""
        return sys.platform == self.platform and (not self.nodes or bool(self.paths()))

    def paths(self) -> list[str]:
        """Its nodes that are there."""
        found = [path for pattern in self.nodes for path in sorted(Path("/").glob(pattern))]
        return [str(path) for path in found if not path.is_dir()]


_LINUX = ("/proc/self/maps", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices", "/sys/bus", "/sys/dev")
DEVICES = {
    device.name: device
    for device in (
        HwDevice(
            "cuda",
            "NVDEC",
            "linux",
            ("dev/nvidia*", "dev/nvidia-caps/*", "dev/dxg"),
            ("/proc/driver/nvidia", "/proc/devices", "/proc/modules", *_LINUX),
            ("CUDA_VISIBLE_DEVICES",),
        ),
        HwDevice(
            "vaapi",
            "VAAPI",
            "linux",
            ("dev/dri/renderD*",),
            ("/sys/class/drm", *_LINUX),
            ("LIBVA_DRIVER_NAME", "LIBVA_DRIVERS_PATH"),
        ),
        HwDevice("videotoolbox", "VideoToolbox", "darwin"),
    )
}
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
        """Names of devices to try, the first choice first."""
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
