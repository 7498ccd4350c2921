"""Read a published CE, MoEE or MMT checkpoint: its arrays, and the trainer's configuration if present.

Nothing is unpickled: both come through the restricted reader of `wordreel.runtime`, which runs no code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.torch_file import Placeholder, named_arrays, read_checkpoint

T = TypeVar("T")
CONFIG = "config.json"  # what the published trainers save beside a checkpoint


@dataclass(frozen=True)
class PublishedCheckpoint:
    """The arrays of a checkpoint by their published names, and the trainer's settings (empty if unknown)."""

    path: Path
    arrays: Mapping[str, NDArray[Any]]
    settings: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path, config: Path | None = None) -> PublishedCheckpoint:
        content = read_checkpoint(path, placeholders=True)
        arrays = {
            key.removeprefix("module."): value for key, value in named_arrays(content, path.name).items()
        }
        beside = path.with_name(CONFIG)
        settings = _inside(content)
        if config is not None or (not settings and beside.is_file()):
            settings = _read_json(config or beside)
        return cls(path, arrays, settings)

    def has(self, start: str) -> bool:
        return any(key.startswith(start) for key in self.arrays)

    def setting(self, *keys: str, default: Any = None) -> Any:
        """Return a value of the trainer's configuration by its path; `default` where it is not there."""
        value: Any = self.settings
        for key in keys:
            if not isinstance(value, Mapping) or key not in value:
                return default
            value = value[key]
        return value

    def argument(self, name: str, default: Any = None) -> Any:
        """Return an argument of the model in the trainer's configuration."""
        return self.setting("arch", "args", name, default=default)

    def choose(self, name: str, known: Mapping[Any, T], default: Any) -> T:
        """Return what an argument of the model means; one that is not known is an error."""
        value = self.argument(name, default)
        if value not in known:
            raise self.error(f"was trained with {name}={value!r}, which is not supported")
        return known[value]

    def shape(self, key: str) -> tuple[int, ...]:
        """Return the shape of a matrix."""
        if key not in self.arrays or self.arrays[key].ndim < 2:
            raise self.error(f"is not whole: it has no {key}")
        return tuple(self.arrays[key].shape)

    def between(self, start: str, end: str) -> set[str]:
        """Return the parts of names that stand between two others."""
        names = (key.removeprefix(start) for key in self.arrays if key.startswith(start))
        return {name.partition(end)[0] for name in names if end in name}

    def error(self, what: str) -> WeightsError:
        """Return an error that names the file."""
        return WeightsError(f"{self.path.name} {what}")

    def config_missing(self, why: str) -> WeightsError:
        """Return the error that the trainer's configuration is needed."""
        step = NextStep(f"give the {CONFIG} of the training run", f"use {self.path.name} --config {CONFIG}")
        return WeightsError(f"{self.path.name} needs its configuration: {why}", step)


def _inside(content: Any) -> Mapping[str, Any]:
    """Return the configuration that a checkpoint carries: a plain mapping, or an object that holds one."""
    config = content.get("config") if isinstance(content, dict) else None
    if isinstance(config, Placeholder):
        config = config.state.get("_config") if isinstance(config.state, dict) else None
    return config if isinstance(config, dict) else {}


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path} cannot be read as a configuration: {error}") from None
    if not isinstance(value, dict) or "inherit_from" in value:
        raise WeightsError(
            f"{path} is not a complete configuration; give the config.json of the training run"
        )
    return value
