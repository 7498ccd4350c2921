"""Experts that are one network: published checkpoints over frames or windows of frames, and backbones.

The published ones are the table `data/published.json`: card, preprocessing, and windows for motion. To add
one, append its weights to `runtime/data/weights.json` and an entry there. Experts with code of their own are
modules; see `registry`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordreel.backbones.backbone import Backbone
from wordreel.backbones.config import BackboneConfig
from wordreel.experts import preprocess as preprocessing
from wordreel.experts.base import Card, Expert, ExpertEntry, fingerprint, frame_track
from wordreel.experts.preprocess import Preprocess
from wordreel.media.types import FrameNeed, Frames, Need, Sound
from wordreel.runtime.sessions import Network
from wordreel.runtime.store import WeightStore
from wordreel.runtime.weight_table import PUBLISHED
from wordreel.types import Absent, Float32, Track

TABLE = Path(__file__).parent / "data" / "published.json"
BATCH = 8


@dataclass(frozen=True)
class FrameWindows:
    """Windows of `length` frames that start every `stride` frames."""

    length: int
    stride: int

    def indices(self, count: int) -> NDArray[np.int64]:
        """Return the frames of each window over `count` frames, `[windows, length]`.

        If frames at the end are in no window, a last window ends with them; fewer frames than a window are
        padded with the last one.

        >>> FrameWindows(4, 3).indices(8)[:, 0].tolist(), FrameWindows(4, 3).indices(2).tolist()
        ([0, 3, 4], [[0, 1, 1, 1]])
        """
        last = max(count - self.length, 0)
        starts = np.arange(0, last + 1, self.stride)
        if count - self.length > starts[-1] and count > starts[-1] + max(self.length, self.stride):
            starts = np.append(starts, last)
        indices: NDArray[np.int64] = np.minimum(starts[:, None] + np.arange(self.length), count - 1)
        return indices


class NetworkExpert:
    """A row per frame, or per window of frames.

    `raw_pixels` is for networks that take cropped bytes `[n, h, w, 3]` and scale them themselves.
    """

    def __init__(
        self,
        card: Card,
        preprocess: Preprocess,
        windows: FrameWindows | None,
        raw_pixels: bool,
        store: WeightStore,
    ) -> None:
        self.card = card
        (weights,) = card.weights
        folder = store.folder(weights)
        self.fingerprint = fingerprint(card, store.source_hash(weights))
        self._network = Network(folder / "network.onnx")
        self._preprocess, self._windows, self._raw_pixels = preprocess, windows, raw_pixels

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Return a row per frame, or per window from its first frame to the end of its last."""
        if self._windows is None:
            return frame_track(media, self._frame_rows, BATCH)
        return window_track(media, self._windows, self.card, self._window_row)

    def _frame_rows(self, images: NDArray[np.uint8]) -> Float32:
        return self._network(frames=self._preprocess(images))["features"]

    def _window_row(self, images: NDArray[np.uint8]) -> Float32:
        if self._raw_pixels:
            frames = np.ascontiguousarray(self._preprocess.crop(images))
            return self._network(frames=frames)["features"]
        clip = self._preprocess(images).transpose(1, 0, 2, 3)[None]
        return self._network(clips=np.ascontiguousarray(clip))["features"]


def window_track(
    media: Frames | Sound, windows: FrameWindows, card: Card, run: Callable[[NDArray[np.uint8]], Float32]
) -> Track | Absent:
    """Call `run` on the frames of each window; a remainder of less than half a window is absent."""
    if not isinstance(media, Frames) or len(media) == 0:
        return Absent("no frames")
    if len(media) == 1:
        return Absent("a still picture does not move")
    if len(media) < windows.length // 2 and media.times[0] >= card.span - media.period:
        return Absent("the end of the video is too short a piece")
    chosen = windows.indices(len(media))
    rows = [run(media.images[window]) for window in chosen]
    times = np.stack([media.times[chosen[:, 0]], media.times[chosen[:, -1]] + media.period], axis=1)
    return Track(np.concatenate(rows), times)


def published_card(
    name: str, modality: str, title: str, dim: int, need: Need, span: float, note: str
) -> Card:
    """Return the card of an expert whose weights are published under its name."""
    weights = PUBLISHED[name]
    how = weights.next_step().for_command_line()
    note = f"{note} To get it: {how}."
    return Card(
        name, modality, title, dim, need, weights.licence, (name,), span=span, default=False, note=note
    )


def _entry(facts: dict[str, Any]) -> ExpertEntry:
    need = FrameNeed(facts["rate"], facts["short_side"])
    about = {key: facts[key] for key in ("name", "modality", "title", "dim", "span", "note")}
    card = published_card(need=need, **about)
    load: Callable[[WeightStore], Expert] = partial(
        NetworkExpert,
        card,
        read_preprocess(facts["preprocess"]),
        FrameWindows(**facts["windows"]) if "windows" in facts else None,
        facts.get("raw_pixels", False),
    )
    return ExpertEntry(card, load)


def read_preprocess(facts: dict[str, Any]) -> Preprocess:
    """Return the preprocessing of a table's entry."""
    rest = {key: value for key, value in facts.items() if key not in ("size", "normalise")}
    mean, std = getattr(preprocessing, facts["normalise"])
    return Preprocess(facts["size"], mean, std, **rest)


EXPERTS = {facts["name"]: _entry(facts) for facts in json.loads(TABLE.read_text(encoding="utf-8"))}


def backbone_card(config: BackboneConfig, licence: str) -> Card:
    """Return the card of an installed backbone's image tower, which has the backbone's name."""
    size = config.transform.size
    rate = config.head.rate if config.head is not None else 1.0
    frames = f"Frames at {rate:g} a second and {size} × {size} pixels"
    return Card(
        config.name, "appearance", f"What frames show ({config.name})", config.dim, FrameNeed(rate, size),
        licence, weights=(), span=16.0, default=False,
        note=f"{frames}, in the space shared with text, not normalised.",
    )  # fmt: skip


class BackboneExpert:
    """The image tower of a backbone: one embedding per frame."""

    def __init__(self, card: Card, backbone: Backbone) -> None:
        self.card = card
        self.fingerprint = expert_fingerprint(card, backbone)
        self._backbone = backbone

    def extract(self, media: Frames | Sound) -> Track | Absent:
        """Return one row per frame, valid for `[t, t + period)`."""
        return frame_track(media, self._backbone.images)


def expert_fingerprint(card: Card, backbone: Backbone) -> str:
    """Identify the frames asked for and the backbone: its weights, precision and transform."""
    return fingerprint(card, backbone.fingerprint)
