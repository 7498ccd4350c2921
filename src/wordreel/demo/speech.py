"""A voice for the demo, where a synthesiser is at hand: the espeak-ng library or program."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import wave
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SYNCHRONOUS, _UTF8 = 2, 1


def speak(text: str) -> tuple[NDArray[np.float32], int] | None:
    """`text` as (samples, rate), or None on a machine without a synthesiser."""
    if find_spec("espeakng_loader"):
        return _with_library(text)
    if shutil.which("espeak-ng"):
        return _with_program(text)
    return None


def _with_library(text: str) -> tuple[NDArray[np.float32], int]:
    from importlib import import_module

    loader: Any = import_module("espeakng_loader")
    library = ctypes.CDLL(loader.get_library_path())
    rate = int(library.espeak_Initialize(_SYNCHRONOUS, 0, loader.get_data_path().encode(), 0))
    pieces: list[NDArray[np.int16]] = []

    def keep(samples: Any, count: int, _events: Any) -> int:
        if samples and count > 0:
            pieces.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0

    shape = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)
    callback = shape(keep)  # kept in a name: the library only borrows it
    library.espeak_SetSynthCallback(callback)
    library.espeak_SetVoiceByName(b"en")
    said = text.encode()
    library.espeak_Synth(said, ctypes.c_size_t(len(said) + 1), 0, 0, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    return _floats(np.concatenate(pieces)), rate


def _with_program(text: str) -> tuple[NDArray[np.float32], int]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "said.wav"
        subprocess.run(
            ["espeak-ng", "-v", "en", "-w", str(path), "--", text], check=True, capture_output=True
        )
        with wave.open(str(path)) as said:
            samples = np.frombuffer(said.readframes(said.getnframes()), np.int16)
            return _floats(samples), said.getframerate()


def _floats(samples: NDArray[np.int16]) -> NDArray[np.float32]:
    return samples.astype(np.float32) / np.float32(32768)
