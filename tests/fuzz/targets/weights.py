"""Files of weights and states: pickles, PyTorch checkpoints, safetensors and what wordreel stores in them."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.fuzz.engine import Broken, Session, Target
from tests.fuzz.mutations import mutate_bytes, mutate_pickle, mutate_safetensors

from wordreel.catalogue.tracks import TrackFiles, encode
from wordreel.hubness import make_method
from wordreel.hubness.state import load_state, read_extra, save_state
from wordreel.models.joint.adapter import read_adapter, write_adapter
from wordreel.runtime import numpy_pickle
from wordreel.runtime.mapped_arrays import cached_arrays
from wordreel.runtime.torch_file import read_checkpoint
from wordreel.types import Track, Words

PLAIN = (
    dict,
    list,
    tuple,
    str,
    bytes,
    bytearray,
    int,
    float,
    complex,
    type(None),
    np.ndarray,
    np.generic,
    np.dtype,
)


# Pickles


def pickle_session(folder: Path) -> Session:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    held: Any = {"weight": array, "bias": np.zeros(3), "name": "x", "ids": [1, 2.5, None, (b"a", True)]}
    more: Any = OrderedDict(
        objects=np.array(["a", {"b": 1}], object), scalar=np.float64(2), text=np.array(["é"])
    )
    seeds = [pickle.dumps(value, protocol) for value in (held, more) for protocol in (0, 2, 4, 5)]
    file = folder / "objects.npy"
    np.save(file, np.array([held, more], object), allow_pickle=True)
    seeds.append(file.read_bytes())

    def run(data: bytes) -> None:
        if data.startswith(b"\x93NUMPY"):
            file.write_bytes(data)
            check_plain(numpy_pickle.read_numpy_pickle(file, encoding="latin1"))
        else:
            check_plain(numpy_pickle.loads(data, encoding="latin1"))

    return Session(seeds, run, mutate_pickle)


def check_plain(value: Any, depth: int = 0, seen: set[int] | None = None) -> None:
    """Only arrays and plain containers may come out of a pickle."""
    seen = set() if seen is None else seen
    if not isinstance(value, PLAIN):
        raise Broken(f"a {type(value).__module__}.{type(value).__name__} came out of a pickle")
    if id(value) in seen or depth > 50:
        return
    seen.add(id(value))
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, np.ndarray) and value.dtype.hasobject:
        value = value.ravel().tolist()
    if isinstance(value, list | tuple):
        for part in value:
            check_plain(part, depth + 1, seen)


# Archives


def zipped(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def mutate_zip(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
    """Change a member of an archive and pack it again with the right checksum; else the bytes."""
    if rng.random() < 0.3:
        return mutate_pickle(rng, data, corpus)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # damaged before
        return mutate_pickle(rng, data, corpus)
    if not members:
        return mutate_bytes(rng, data, corpus)
    name = rng.choice(list(members))
    if rng.random() < 0.1:
        members[rng.choice(("m/byteorder", "x", "../y", "m/data/1", "data.pkl"))] = members.pop(name)
    else:
        members[name] = mutate_pickle(rng, members[name], list(members.values()))
    return zipped(members)


# safetensors


def safetensors_session(folder: Path) -> Session:
    from safetensors.numpy import save

    arrays = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.zeros(0, np.int64),
        "c": np.ones((1, 2), np.float16),
        "d": np.array([True]),
    }
    entry = b'{"a":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}'
    brain = len(entry).to_bytes(8, "little") + entry + bytes(8)
    file = folder / "model.safetensors"

    def run(data: bytes) -> None:
        file.write_bytes(data)
        if data[4:9] == b"\0\0\0\0{":
            read_checkpoint(file)

    return Session([save(arrays), save(arrays, {"name": "x"}), brain], run, mutate_safetensors)


def model_session(folder: Path) -> Session:
    """The files of networks and states that wordreel writes, each read by the reader of its kind."""
    seeds, readers = [], dict[bytes, Callable[[Path], object]]()
    for mark, (data, read) in enumerate(_written(folder)):
        seeds.append(bytes([mark]) + data)
        readers[bytes([mark])] = read
    file = folder / "file.safetensors"

    def run(data: bytes) -> None:
        read = readers.get(data[:1])
        if read is not None:
            file.write_bytes(data[1:])
            read(file)

    def mutate(rng: Random, data: bytes, corpus: Sequence[bytes]) -> bytes:
        return data[:1] + mutate_safetensors(rng, data[1:], [other[1:] for other in corpus])

    return Session(seeds, run, mutate)


def _written(folder: Path) -> list[tuple[bytes, Callable[[Path], object]]]:
    from safetensors.numpy import save

    file = folder / "seed"
    write_adapter(file, np.eye(512, dtype=np.float32), np.zeros(512, np.float32), {"tuned": "x"})
    held: list[tuple[bytes, Callable[[Path], object]]] = [(file.read_bytes(), _adapter)]
    rng = np.random.default_rng(0)
    bank = rng.standard_normal((5, 6)).astype(np.float32)
    for name in ("is", "dis", "csls", "nnn", "gc", "sinkhorn", "standard"):
        with suppress(Exception):
            save_state(make_method(name).fit(bank), file, {"items": np.arange(6), "queries": np.arange(5)})
            held.append((file.read_bytes(), _state))
    track = Track(
        np.ones((2, 3), np.float32), np.array([[0, 1], [1, 2]], float), (Words("hi", 0.0, 1.0, 0.5),)
    )
    held.append((encode(track), _track))
    held.append((save({"x": np.ones(3, np.float32)}), _derived))
    return held


def _adapter(path: Path) -> None:
    read_adapter(path, path.parent)


def _state(path: Path) -> None:
    state = load_state(path)
    state.method.apply(np.zeros((2, state.items), np.float32), state)
    read_extra(path)


def _track(path: Path) -> None:
    class Folder(TrackFiles):
        def read(self, digest: str) -> bytes:
            return path.read_bytes()

    track = Folder(path.parent).load("0")
    if track.values.ndim != 2 or track.times.shape != (len(track.values), 2):
        raise Broken(f"a track of {track.values.shape} values and {track.times.shape} times")


def _derived(path: Path) -> None:
    """A damaged cache of arrays is computed again, never an error."""
    target = path.parent / "derived" / "x.safetensors"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(path.read_bytes())
    cached_arrays(path.parent, "x", lambda: {"x": np.ones(3, np.float32)})


TARGETS = (
    Target("pickle", "restricted unpickler, `.npy` files of objects", pickle_session),
    Target("safetensors", "safetensors files of weights", safetensors_session),
    Target("model-files", "exported models, hubness states, tracks, derived arrays", model_session),
)
