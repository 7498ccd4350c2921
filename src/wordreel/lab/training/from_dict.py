"""Plain values to frozen dataclasses, checking every field: TOML in, settings out."""

from __future__ import annotations

import dataclasses
import math
import tomllib
import types
import typing
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from wordreel.errors import TrainingError

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Range:
    """The numbers that a field takes, for `Annotated`: at least (or above) `least`, at most `most`."""

    least: float
    most: float = math.inf
    above: bool = False

    def check(self, value: Any, where: str) -> None:
        """Raise unless the value lies within."""
        if not self.least <= value <= self.most or (self.above and value == self.least):
            least = f"above {self.least}" if self.above else f"at least {self.least}"
            most = "" if self.most == math.inf else f" and at most {self.most}"
            raise TrainingError(f"{where} must be {least}{most}, not {value}")


def parse_toml(data: bytes, what: str) -> dict[str, Any]:
    """Return the values of a TOML document; `what` names it in errors.

    >>> parse_toml(b"a = 1", "recipe x")
    {'a': 1}
    """
    try:
        return tomllib.loads(data.decode("utf-8"))
    except ValueError as error:
        raise TrainingError(f"{what}: {error}") from None
    except RecursionError:
        raise TrainingError(f"{what}: nested too deeply") from None


def from_dict(kind: type[T], values: Mapping[str, Any], where: str) -> T:
    """Build an instance of a dataclass; `where` names the section in errors.

    Raises:
        TrainingError: A key is unknown, or a value has the wrong type; the message names it.

    >>> from wordreel.lab.training.settings import ScheduleSettings
    >>> from_dict(ScheduleSettings, {"kind": "cosine", "warmup": 10}, "schedule").warmup
    10
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    names = [field.name for field in dataclasses.fields(kind) if field.init]  # type: ignore[arg-type]
    for key in values:
        if key not in names:
            raise TrainingError(f"there is no {where}.{key}; {did_you_mean(key, names)}")
    arguments = {key: _convert(value, hints[key], f"{where}.{key}") for key, value in values.items()}
    try:
        return kind(**arguments)
    except (TypeError, ValueError) as error:
        raise TrainingError(f"{where}: {error}") from None


def did_you_mean(key: str, names: list[str]) -> str:
    """Return the names that are spelled alike, or all of them, as a hint.

    >>> did_you_mean("margn", ["margin", "kind"])
    'did you mean margin?'
    """
    close = get_close_matches(key, names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(names)}"


def _convert(value: Any, hint: Any, where: str) -> Any:
    """Return the value as its type: integers may stand for floats, lists for tuples."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        value = _convert(value, inside[0], where)
        inside[1].check(value, where)
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in inside:
            return None
        return _convert(value, next(part for part in inside if part is not type(None)), where)
    if origin is typing.Literal:
        if value not in inside:
            raise TrainingError(f"{where} is one of {', '.join(map(str, inside))}, not {value!r}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple) or (inside[-1] is not ... and len(inside) != len(value)):
            raise TrainingError(f"{where} is a list, not {value!r}")
        return tuple(_convert(member, inside[0], where) for member in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise TrainingError(f"{where} must be a {hint.__name__}, not {value!r}")
    if isinstance(value, float) and not math.isfinite(value):
        raise TrainingError(f"{where} must be a finite number, not {value}")
    return value
