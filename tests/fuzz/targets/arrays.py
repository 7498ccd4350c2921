"""Arrays that people measure: similarity matrices, masks, counts and feature files."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
from tests.fuzz.engine import Session, Target
from tests.fuzz.mutations import mutate_bytes, mutate_pickle, mutate_safetensors, mutate_text
from tests.fuzz.targets.weights import mutate_zip

from wordreel.lab.datasets.array_files import read_mapping, read_value
from wordreel.lab.evaluate.matrices import read_captioned, read_counts

SIMS = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
HDF5 = b"\x89HDF\r\n\x1a\n"


def matrix_session(folder: Path) -> Session:
    from safetensors.numpy import save

    seeds = [_npy(SIMS), _npy(SIMS.astype(np.float64), "F"), _npy(np.arange(4)[None] * 1.0)]
    file = io.BytesIO()
    np.savez(file, sims=SIMS, query_masks=np.ones((4, 1)))
    seeds.append(file.getvalue())
    seeds += [pickle.dumps({"sims": SIMS, "query_masks": np.ones(4)}, protocol) for protocol in (2, 4)]
    seeds += [save({"sims": SIMS}), b"1 2 3\n", b"[4, 5]"]
    path = folder / "sims"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        if data[:1].isdigit() or data[:1] in (b"[", b" ", b"\n"):
            read_counts(str(path))
        else:
            matrix, mask, _ = read_captioned(path)
            matrix.sum()
            if mask is not None:
                mask.any()

    return Session(seeds, run, mutate)


def feature_session(folder: Path) -> Session:
    held = {"video1": SIMS, "video2": SIMS[:1], b"video3": "words", 4: [1.0, None]}
    seeds = [pickle.dumps(held, protocol) for protocol in (0, 2, 4)]
    seeds += [_npy(np.array(held, object)), pickle.dumps({})]
    path = folder / "features.pickle"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        if not data.startswith(HDF5):
            read_mapping(path)

    return Session(seeds, run, mutate)


def hdf5_session(folder: Path) -> Session:
    import h5py

    seeds = []
    for number, options in enumerate(({}, {"chunks": (2, 5), "compression": "gzip"})):
        path = folder / f"{number}.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("sims", data=SIMS, **options)
            group = file.create_group("data_0")
            group.attrs["type"] = "dict"
            group.create_dataset("'video1'", data=SIMS)
        seeds.append(path.read_bytes())
    path = folder / "features.hickle"

    def run(data: bytes) -> None:
        path.write_bytes(data)
        read_captioned(path, "sims") if data[-1:] < b"\x80" else read_value(path)

    return Session(seeds, run)


def _npy(array: np.ndarray, order: Literal["C", "F"] = "C") -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array, order=order), allow_pickle=True)
    return file.getvalue()


def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """As the kind of file asks."""
    if data.startswith(b"\x93NUMPY") and rng.random() < 0.5:
        size = int.from_bytes(data[8:10], "little")
        header = mutate_text(rng, data[10 : 10 + size], ())
        return data[:8] + (len(header) % 65536).to_bytes(2, "little") + header + data[10 + size :]
    if data.startswith(b"PK"):
        return mutate_zip(rng, data, corpus)
    if data[4:9] == b"\0\0\0\0{":
        return mutate_safetensors(rng, data, corpus)
    if data.startswith(b"\x80"):
        return mutate_pickle(rng, data, corpus)
    return mutate_text(rng, data, corpus) if data[:1].isascii() else mutate_bytes(rng, data, corpus)


TARGETS = (
    Target("matrices", "similarity matrices, masks and counts", matrix_session),
    Target("features", "feature files of published trees", feature_session),
    Target("hdf5", "HDF5 matrices and hickle files", hdf5_session),
)
