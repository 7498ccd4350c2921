"""A decoding worker whose device is software in disguise: it returns NV12 or P010 and fails when told to.

`WordreelError`s, crashes and refusals are chosen by FAKE_DEVICE: `works`, `refuses`, `unable`, `error:N` and
`crash:N` (after N frames). The fence, the rehearsal and the decoding around it are the real ones.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import av

from wordreel.errors import MediaError
from wordreel.media import container, hardware, worker

open_container = container.open_container
FORMATS = {"yuv420p": "nv12", "yuv420p10le": "p010le"}


class Wrapped:
    """Passes on everything but what is given."""

    def __init__(self, real: Any, **changes: Any) -> None:
        self.__dict__.update(real=real, changes=changes)

    def __getattr__(self, name: str) -> Any:
        return self.changes[name] if name in self.changes else getattr(self.real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.real, name, value)


class FakeDevice:
    """Opens files in place of PyAV's `HWAccel`."""

    def __init__(self, behaviour: str) -> None:
        self.behaviour, _, count = behaviour.partition(":")
        self.left = int(count or 10**9)

    def open(self, *about: Any) -> Any:
        if self.behaviour == "unable":
            raise MediaError("no stream is compatible")
        real = open_container(*about)
        stream = real.streams.video[0]
        context = Wrapped(stream.codec_context, is_hwaccel=True)
        disguised = Wrapped(stream, codec_context=context)
        streams = Wrapped(real.streams, video=[disguised])

        def demux(_: Any) -> Any:
            return (Wrapped(p, decode=lambda p=p: self._decode(p)) for p in real.demux(stream))

        def seek(stamp: int, **options: Any) -> None:
            real.seek(stamp, **{**options, "stream": stream})

        return Wrapped(real, streams=streams, demux=demux, seek=seek)

    def _decode(self, packet: Any) -> list[Any]:
        frames = []
        for frame in packet.decode():
            self.left -= 1
            if self.left < 0 and self.behaviour == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            if self.left < 0:
                raise av.error.ExternalError(542398533, "Generic error in an external library")
            frames.append(frame.reformat(format=FORMATS[frame.format.name]))
        return frames


def main() -> None:
    device = FakeDevice(os.environ["FAKE_DEVICE"])
    hardware.hwaccel = lambda name: None  # type: ignore[assignment] # the rehearsal runs in software
    vars(worker).update(hwaccel=lambda name: device)

    def open_either(*about: Any) -> Any:
        return device.open(*about[:-1]) if about[-1] is device else open_container(*about)

    container.open_container = open_either  # type: ignore[assignment]
    if device.behaviour == "refuses":

        def refuse(*_: Any, **__: Any) -> None:
            raise MediaError("no driver")

        vars(worker).update(confine_with_device=refuse)
    worker.main()


if __name__ == "__main__":
    main()
