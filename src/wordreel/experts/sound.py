"""What is heard: SoundNet's conv7, a row every 1.49 s, and the places it sounds like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from wordreel.experts.appearance import class_names
from wordreel.experts.base import Card, ExpertEntry, fingerprint
from wordreel.media.types import AudioNeed, Frames, Sound
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore
from wordreel.types import Absent, Float32, Float64, Labels, Track

WEIGHTS = "soundnet8"
RATE = 22_050
FIRST, STEP = -10001.5, 32768  # the middle of the first row and the distance of rows, in samples
SHORTEST = 20 * RATE  # the length the network was trained on
BEYOND = 4 * STEP  # sound after the end, so that no returned row sees the padding
SILENCE = 1e-3  # root mean square, -60 dB of full scale
CONTEXT = 8  # rows in the receptive field of conv8

CARD = Card(
    name="sound", modality="sound", title="What is heard (SoundNet, places)", dim=1024,
    need=AudioNeed(RATE), licence="MIT", weights=(WEIGHTS,), span=120.0,
    note="It hears scenes rather than single sounds: music, traffic, water, a studio.",
)  # fmt: skip


class SoundExpert:
    """The loaded expert."""

    def __init__(self, store: WeightStore) -> None:
        self.card = CARD
        self.fingerprint = fingerprint(CARD, store.source_hash(WEIGHTS))
        self._network = Network(store.file(WEIGHTS, "network.onnx"))

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Return one row per 1.49 s.

        The sound is repeated, to last 20 s and to continue after its end.
        """
        if not isinstance(media, Sound) or len(media.samples) == 0:
            return Absent("no sound")
        samples = np.clip(np.nan_to_num(media.samples), -1.0, 1.0)
        if np.sqrt(np.mean(np.square(samples, dtype=np.float64))) < SILENCE:
            return Absent("silent")
        heard, times = rows(len(samples))
        longer = np.resize(samples, max(SHORTEST, len(samples) + BEYOND))
        values = self._network(sound=longer)["features"][heard]
        return Track(values, media.start + times)


@dataclass(frozen=True)
class PlaceHead:
    """SoundNet's places: log p(place | sound) − log p(place on average).

    The network scores a few places high everywhere; relative to its own average over
    everyday videos, what is special about a sound comes out.
    """

    names: tuple[str, ...]
    file: Path
    usual: Float32  # log-probability of each place on average
    fingerprint: str

    @cached_property
    def weight(self) -> Float32:
        """`[401, 8 · 1024]`, read when first used: a search explains its hits without."""
        return np.ascontiguousarray(self._arrays["places.weight"].reshape(-1, len(self.names)).T)

    @cached_property
    def bias(self) -> Float32:
        """Return what is added to the class scores, `[401]`."""
        return self._arrays["places.bias"]

    @cached_property
    def _arrays(self) -> dict[str, Float32]:
        return map_safetensors(self.file)[1]

    def labels(self, track: Track) -> Labels:
        context = track.values[around(len(track))].reshape(len(track), -1)
        heard = log_softmax(context @ self.weight.T + self.bias)
        return Labels(self.names, heard - self.usual, track.times)


def rows(samples: int) -> tuple[slice, Float64]:
    """Find the rows of the network with their middle inside `samples` of sound.

    Also return the seconds that they stand for.

    >>> heard, times = rows(3 * RATE)
    >>> heard, times.round(2).tolist()
    (slice(1, 3, None), [[0.0, 1.78], [1.78, 3.0]])
    """
    first = int(np.ceil(-FIRST / STEP))
    count = max(1, int(np.ceil((samples - FIRST) / STEP)) - first)
    edges = (FIRST + STEP * (first + np.arange(count + 1) - 0.5)) / RATE
    edges[0], edges[-1] = 0.0, samples / RATE
    return slice(first, first + count), np.stack([edges[:-1], edges[1:]], axis=1)


def around(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Return the eight rows around each row, `[count, 8]`: the nearest at the ends.

    They are repeated if there are fewer.

    >>> around(3)[1].tolist(), around(10)[[0, 5, 9], 0].tolist()
    ([0, 1, 2, 0, 1, 2, 0, 1], [0, 1, 2])
    """
    first = np.clip(np.arange(count) - CONTEXT // 2, 0, max(0, count - CONTEXT))
    return (first[:, None] + np.arange(CONTEXT)) % count


def log_softmax(logits: Float32) -> Float32:
    """Compute `logits - log Σ exp(logits)` over the last dimension."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    result: Float32 = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def recogniser(store: WeightStore) -> PlaceHead:
    """Return the places of stored tracks, without the network."""
    return PlaceHead(
        class_names("soundnet_places401.txt"),
        store.file(WEIGHTS, "head.safetensors"),
        np.array(class_names("soundnet_places401_usual.txt"), np.float32),
        fingerprint(CARD, store.source_hash(WEIGHTS)),
    )


EXPERTS = {CARD.name: ExpertEntry(CARD, SoundExpert, recogniser=recogniser)}
