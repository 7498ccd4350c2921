"""Encoded captions on disk, so that the next run does not encode them again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from wordreel.lab.models.config import TextConfig
from wordreel.lab.models.text.tokenizers import CaptionTokenizer
from wordreel.lab.training.data.packed import Packed
from wordreel.lab.training.data.pairs import Pairs
from wordreel.util.atomic import atomic_write, make_dir

VERSION = 1


def load_or_encode(
    folder: Path, pairs: Pairs, text: TextConfig, source: CaptionTokenizer, encode: Callable[[], Packed]
) -> Packed:
    """These captions as encoded by an earlier run, else encode them now and write them to `folder`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file, save

    key = hashlib.sha256(f"{VERSION} {source.fingerprint} {text}".encode())
    for one in pairs.texts:
        key.update(one.encode("utf-8", "replace") + b"\x1f")
    path = folder / f"{key.hexdigest()[:32]}.safetensors"
    if path.is_file():
        try:
            tensors = load_file(path)
            return Packed(tensors["values"], tensors["counts"])
        except (SafetensorError, KeyError, OSError):
            pass  # cut short or damaged: encoded again below
    fresh = encode()
    tensors = {"values": np.ascontiguousarray(fresh.values), "counts": fresh.counts}
    with suppress(OSError):  # a disk that is full or not ours: the next run encodes again
        make_dir(folder)
        atomic_write(path, bytes(save(tensors)))
    return fresh
