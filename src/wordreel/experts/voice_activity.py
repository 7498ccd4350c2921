"""Where somebody speaks: faster-whisper's voice-activity filter in a sixth of its memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCH = 1000  # windows, 32 seconds
LEAD = 64  # samples of the window before that the network sees as well


def find_speech(samples: NDArray[np.float32]) -> list[dict[str, int]]:
    """Stretches of speech, `{"start", "end"}` in samples."""
    from faster_whisper.vad import get_speech_timestamps, get_vad_model

    get_vad_model().__class__ = _batched_model()  # the one model that faster-whisper loads and shares
    found: list[dict[str, int]] = get_speech_timestamps(samples)
    return found


def speech_probabilities(session: Any, audio: NDArray[np.float32], window: int = 512) -> NDArray[np.float32]:
    """How likely each window is speech, like `SileroVADModel`, which copies all windows before the first.

    Five minutes of sound take 19 MB, its windows with what is before them 22, and the network on ten thousand
    of them 150 more.
    """
    windows = audio.reshape(-1, window)
    windows[-1, -LEAD:] = 0.0  # so does the original
    hidden = cell = np.zeros((1, 1, 128), np.float32)
    found: list[NDArray[np.float32]] = []
    for first in range(0, len(windows), BATCH):
        part = windows[first : first + BATCH]
        batch = np.zeros((len(part), LEAD + window), np.float32)
        batch[:, LEAD:] = part
        batch[1:, :LEAD] = part[:-1, -LEAD:]
        if first:
            batch[0, :LEAD] = windows[first - 1, -LEAD:]
        output, hidden, cell = session.run(None, {"input": batch, "h": hidden, "c": cell})
        found.append(output)
    return np.concatenate(found)


@cache
def _batched_model() -> type:
    from faster_whisper.vad import SileroVADModel

    class BatchedVad(SileroVADModel):  # type: ignore[misc]
        def __call__(
            self, audio: NDArray[np.float32], num_samples: int = 512, context_size_samples: int = LEAD
        ) -> NDArray[np.float32]:
            return speech_probabilities(self.session, audio, num_samples)

    return BatchedVad
