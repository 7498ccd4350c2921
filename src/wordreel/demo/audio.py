"""Sound for the demo: the sea, synthesised from noise, and speech, where espeak-ng is installed."""

from __future__ import annotations

import ctypes
import io
import shutil
import subprocess
import sys
import wave
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SYNCHRONOUS, _UTF8 = 2, 1  # of espeak-ng
ATTEMPTS = 3  # the library crashes now and then
WAVE_SECONDS = 4.0  # from one wave to the next
QUIET = 0.15  # loudness between two waves, as a fraction of the loudest
SMOOTHING = 30.0  # samples


def speak(text: str) -> tuple[NDArray[np.float32], int] | None:
    """Speak `text`; returns (samples, rate), or None without a working synthesiser."""
    if find_spec("espeakng_loader"):
        command = [sys.executable, "-m", "wordreel.demo.audio", text]
    elif program := shutil.which("espeak-ng"):
        command = [program, "-v", "en", "--stdout", "--", text]
    else:
        return None
    for _ in range(ATTEMPTS):
        result = subprocess.run(command, capture_output=True, check=False)
        if result.returncode == 0 and len(result.stdout) > 1000:
            return _read(result.stdout)
    return None


def _read(data: bytes) -> tuple[NDArray[np.float32], int]:
    """Read samples from a WAV stream, or from a line with the rate and raw 16-bit samples."""
    if data.startswith(b"RIFF"):
        with wave.open(io.BytesIO(data)) as recording:
            rate, raw = recording.getframerate(), recording.readframes(len(data))
    else:
        line, _, raw = data.partition(b"\n")
        rate = int(line)
    samples = np.frombuffer(raw[: len(raw) // 2 * 2], np.int16)
    return samples.astype(np.float32) / np.float32(32768), rate


def sea_sound(seconds: float, rate: int = 22_050, seed: int = 0) -> NDArray[np.float32]:
    """Make the sound of the sea: swelling noise, `(quiet + max(0, sin)²) · noise`, at most 0.7."""
    t = np.arange(int(seconds * rate)) / rate
    kernel = np.exp(-np.arange(400) / SMOOTHING)
    noise = np.convolve(np.random.default_rng(seed).normal(size=len(t)), kernel / kernel.sum(), "same")
    waves = noise * (QUIET + np.clip(np.sin(2 * np.pi * t / WAVE_SECONDS), 0, 1) ** 2)
    return np.asarray(0.7 * waves / np.abs(waves).max(), np.float32)


def write_wav(path: Path, samples: NDArray[np.float32], rate: int = 22_050) -> None:
    """Write a mono WAV file of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * 32767).astype("<i2").tobytes())


def main(text: str) -> None:
    """Speak `text`, in English: write the sample rate as one line, then the samples, 16-bit.

    The library keeps its state in globals and now and then crashes; here only this process does.
    """
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
