"""A state as one safetensors file: arrays, and a JSON header with the method and the sizes. No pickles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.atomic import atomic_write
from wordreel.errors import HubnessError
from wordreel.hubness.best import Best
from wordreel.hubness.blocks import Array
from wordreel.hubness.columns import Columns
from wordreel.hubness.logsum import LogSum
from wordreel.hubness.mean import Mean
from wordreel.hubness.method import Method
from wordreel.hubness.moments import ORDER, Moments
from wordreel.hubness.part import Part
from wordreel.hubness.registry import make
from wordreel.hubness.sinkhorn import Potentials
from wordreel.hubness.state import BankState, State
from wordreel.hubness.winners import Winners

FORMAT = 1
PART_OF = {
    "logsum": {"shift", "total", "peak"},
    "winners": {"ids", "scores"},
    "best": {"values", "floor"},
    "mean": {"total"},
    "columns": {"sorted"},
    "potentials": {"g", "f"},
    "moments": {"pivot", "sums", "peak"},
}
NOTES = "notes"
MAY_END = {"scores", "values", "floor"}  # lists that are filled up with -inf


def save(state: State, path: Path, notes: Mapping[str, Array] | None = None) -> None:
    """Write the state as a whole or not at all; `notes` are arrays of the caller's, for `read_notes`."""
    from safetensors.numpy import save as to_bytes

    arrays = {
        f"{name}/{key}/{field}": np.ascontiguousarray(array)
        for name, bank in state.banks.items()
        for key, part in bank.parts.items()
        for field, array in part.arrays().items()
    }
    arrays |= {f"{NOTES}/of/{name}": np.ascontiguousarray(array) for name, array in (notes or {}).items()}
    about = {
        "format": FORMAT,
        "method": state.method.name,
        "parameters": asdict(state.method),
        "items": state.items,
        "banks": {name: bank.size for name, bank in state.banks.items()},
        "exact": state.exact,
        "dtype": sorted({str(array.dtype) for array in arrays.values()}),
    }
    atomic_write(Path(path), to_bytes(arrays, metadata={"hubness": json.dumps(about, sort_keys=True)}))


def read_notes(path: Path) -> dict[str, Array]:
    """The arrays that the caller put beside a state; empty if there are none or the file cannot be read."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            mine = [name for name in file.keys() if name.startswith(f"{NOTES}/of/")]  # noqa: SIM118
            return {name.rpartition("/")[2]: file.get_tensor(name) for name in mine}
    except (SafetensorError, OSError):
        return {}


def load(path: Path) -> State:
    """Read a state and check that its arrays fit together."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            about = json.loads((file.metadata() or {})["hubness"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        if about["format"] != FORMAT:
            raise HubnessError(f"{path} has format {about['format']}, this program reads {FORMAT}; fit again")
        method = make(about["method"], **about["parameters"])
        items, exact = int(about["items"]), bool(about["exact"])
        banks = {
            name: _bank(method, name, int(size), items, exact, arrays)
            for name, size in about["banks"].items()
        }
    except FileNotFoundError:
        raise HubnessError(f"there is no hubness state at {path}; fit a bank first") from None
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise HubnessError(f"{path} is not a hubness state ({error}); fit the bank again") from None
    if not banks or items < 1:
        raise HubnessError(f"{path} is not a hubness state (it has no bank); fit the bank again")
    return State(method, items, banks)


def _bank(
    method: Method, bank: str, size: int, items: int, exact: bool, arrays: dict[str, Array]
) -> BankState:
    found: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        where, key, field = name.split("/")
        if where == bank:
            found.setdefault(key, {})[field] = array
    wanted = set(method.builders(bank)) if method.streaming else {"potentials"}
    if size < 1 or bank not in method.banks or set(found) != wanted:
        raise ValueError(f"the parts of bank {bank!r} do not belong to {method.name!r}")
    return BankState(size, {key: _part(method, bank, key, size, items, exact, a) for key, a in found.items()})


def _part(
    method: Method, bank: str, key: str, size: int, items: int, exact: bool, arrays: dict[str, Array]
) -> Part:
    if set(arrays) != PART_OF[key]:
        raise ValueError(f"{key} lacks arrays")
    for field, array in arrays.items():
        bad = ~np.isfinite(array)
        if field in MAY_END:
            bad &= ~np.isneginf(array)
        rows = size if field in ("ids", "scores", "f") else items
        if array.ndim == 0 or len(array) != rows or bad.any():
            raise ValueError(f"{key}/{field} of shape {array.shape} does not fit")
    parameters: Any = method
    if key == "logsum":
        if not (arrays["total"] > 0).all():
            raise ValueError("a sum of exponentials is not positive")
        return LogSum(method.inverse_temperature(bank), size, **arrays)
    if key == "winners":
        ids = arrays["ids"]
        if ids.shape != (size, parameters.k) or arrays["scores"].shape != ids.shape:
            raise ValueError("winners do not fit the bank")
        if ids.dtype != np.int32 or ids.min() < -1 or ids.max() >= items:
            raise ValueError("winners are not gallery items")
        return Winners(parameters.k, items, **arrays)
    if key == "best":
        return Best(parameters.k, size, **arrays)
    if key == "mean":
        return Mean(size, **arrays)
    if key == "moments":
        if arrays["sums"].shape != (items, ORDER) or any(a.dtype != np.float64 for a in arrays.values()):
            raise ValueError("moments are not six float64 sums per item")
        return Moments(size, **arrays)
    if key == "columns":
        return Columns(size, arrays["sorted"], parameters.levels)
    return Potentials(method.inverse_temperature(bank), arrays["g"], arrays["f"], exact)
