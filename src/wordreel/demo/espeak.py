"""The espeak-ng library in a process of its own: `python -m wordreel.demo.espeak TEXT`.

Writes the sample rate as one line and then the samples, 16-bit, to standard output. The library keeps its
state in globals and now and then crashes; here only this process does.
"""

from __future__ import annotations

import ctypes
import sys
from importlib import import_module
from typing import Any

_SYNCHRONOUS, _UTF8 = 2, 1


def main(text: str) -> None:
    """Speak `text`, in English."""
    loader: Any = import_module("espeakng_loader")
    library = ctypes.CDLL(loader.get_library_path())
    rate = int(library.espeak_Initialize(_SYNCHRONOUS, 0, loader.get_data_path().encode(), 0))
    pieces: list[bytes] = []

    def collect(samples: Any, count: int, _events: Any) -> int:
        if samples and count > 0:
            pieces.append(ctypes.string_at(samples, 2 * count))
        return 0

    shape = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    callback = shape(collect)  # bound to a name: the library does not keep it alive
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(b"en")
    data = text.encode()
    library.espeak_Synth(data, ctypes.c_size_t(len(data) + 1), 0, 0, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    sys.stdout.buffer.write(f"{rate}\n".encode() + b"".join(pieces))


if __name__ == "__main__":
    main(sys.argv[1])
