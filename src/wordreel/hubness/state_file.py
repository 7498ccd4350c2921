"""A state as one safetensors file: arrays, and a JSON header with the method and the sizes. No pickles.

Arrays are named `bank/statistic/field`; what a caller stores beside the state is `notes/of/name`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.method import Method
from wordreel.hubness.registry import make_method
from wordreel.hubness.state import BankState, State
from wordreel.types import Array
from wordreel.util.atomic import atomic_write
from wordreel.util.checksum import array_checksum

FORMAT = 2
EXTRA = "notes"


def save_state(state: State, path: Path, extra: Mapping[str, Array] | None = None) -> None:
    """Write the state atomically; `extra` are arrays of the caller's, for `read_extra`."""
    from safetensors.numpy import save as to_bytes

    arrays = {
        f"{name}/{key}/{field}": np.ascontiguousarray(array)
        for name, bank in state.banks.items()
        for key, statistic in bank.statistics.items()
        for field, array in statistic.arrays().items()
    }
    arrays |= {f"{EXTRA}/of/{name}": np.ascontiguousarray(array) for name, array in (extra or {}).items()}
    about = {
        "format": FORMAT,
        "method": state.method.name,
        "parameters": asdict(state.method),
        "items": state.items,
        "banks": {name: bank.size for name, bank in state.banks.items()},
        "crc32": array_checksum(arrays),
        "dtype": sorted({str(array.dtype) for array in arrays.values()}),
    }
    atomic_write(Path(path), to_bytes(arrays, metadata={"hubness": json.dumps(about, sort_keys=True)}))


def read_extra(path: Path) -> dict[str, Array]:
    """Read the arrays stored beside a state; empty if there are none or the file is unreadable."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            names = [name for name in file.keys() if name.startswith(f"{EXTRA}/of/")]  # noqa: SIM118
            return {name.rpartition("/")[2]: file.get_tensor(name) for name in names}
    except (SafetensorError, OSError):
        return {}


def load_state(path: Path) -> State:
    """Read a state and check that its arrays fit together."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="numpy") as file:
            about = json.loads((file.metadata() or {})["hubness"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        if about.get("crc32") not in (None, array_checksum(arrays)):  # files of before have none
            raise ValueError("its numbers are not those it was written with")
        if about["format"] != FORMAT:
            raise HubnessError(f"{path} has format {about['format']}, this program reads {FORMAT}; fit again")
        method = make_method(about["method"], **about["parameters"])
        items = int(about["items"])
        banks = {name: _bank(method, name, int(size), items, arrays) for name, size in about["banks"].items()}
    except FileNotFoundError:
        raise HubnessError(f"there is no hubness state at {path}; fit a bank first") from None
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise HubnessError(f"{path} is not a hubness state ({error}); fit the bank again") from None
    if not banks or items < 1:
        raise HubnessError(f"{path} is not a hubness state (it has no bank); fit the bank again")
    return State(method, items, banks)


def _bank(method: Method, bank: str, size: int, items: int, arrays: dict[str, Array]) -> BankState:
    found: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        owner, key, field = name.split("/")
        if owner == bank:
            found.setdefault(key, {})[field] = array
    specs = {spec.kind.key: spec for spec in method.statistics(bank)}
    if size < 1 or bank not in method.banks or found.keys() != specs.keys():
        raise ValueError(f"the statistics of bank {bank!r} do not belong to {method.name!r}")
    statistics = {key: spec.kind.load(spec.parameter, size, items, found[key]) for key, spec in specs.items()}
    return BankState(size, statistics)
