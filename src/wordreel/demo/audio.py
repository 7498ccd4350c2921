"""Sound for the demo: the sea, synthesised from noise, and speech, where espeak-ng is installed."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import wave
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ATTEMPTS = 3  # the library crashes now and then
WAVE_SECONDS = 4.0  # from one wave to the next
QUIET = 0.15  # loudness between two waves, as a fraction of the loudest
SMOOTHING = 30.0  # samples


def speak(text: str) -> tuple[NDArray[np.float32], int] | None:
    """Speak `text`; returns (samples, rate), or None without a working synthesiser."""
    if find_spec("espeakng_loader"):
        command = [sys.executable, "-m", "wordreel.demo.espeak", text]
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
