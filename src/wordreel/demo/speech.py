"""A voice for the demo, where a synthesiser is at hand: the espeak-ng library or program."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import wave
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

ATTEMPTS = 3  # the library crashes now and then


def speak(text: str) -> tuple[NDArray[np.float32], int] | None:
    """`text` as (samples, rate), or None on a machine without a synthesiser that works."""
    if find_spec("espeakng_loader"):
        command = [sys.executable, "-m", "wordreel.demo.voice", text]
    elif program := shutil.which("espeak-ng"):
        command = [program, "-v", "en", "--stdout", "--", text]
    else:
        return None
    for _ in range(ATTEMPTS):
        said = subprocess.run(command, capture_output=True, check=False)
        if said.returncode == 0 and len(said.stdout) > 1000:
            return _read(said.stdout)
    return None


def _read(data: bytes) -> tuple[NDArray[np.float32], int]:
    """Samples from a WAV stream, or from a line with the rate and raw 16-bit samples."""
    if data.startswith(b"RIFF"):
        with wave.open(io.BytesIO(data)) as said:
            rate, raw = said.getframerate(), said.readframes(len(data))
    else:
        line, _, raw = data.partition(b"\n")
        rate = int(line)
    samples = np.frombuffer(raw[: len(raw) // 2 * 2], np.int16)
    return samples.astype(np.float32) / np.float32(32768), rate
