"""Taking a published checkpoint apart, with an account of every key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordreel.errors import WeightsError
from wordreel.lab.models.batch import JointEmbedding

NAMED = 6  # keys named in a message


class PublishedArrays:
    """A checkpoint's arrays; each key is taken once, and what is missing or left over is an error."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]], dropped: Sequence[str] = ()) -> None:
        self._arrays = {key.removeprefix("module."): value for key, value in arrays.items()}
        self._left = {
            key
            for key in self._arrays
            if not key.startswith(tuple(dropped))
            and not key.endswith((".num_batches_tracked", ".position_ids"))
        }
        self._missing: list[str] = []

    def has(self, start: str) -> bool:
        return any(key.startswith(start) for key in self._arrays)

    def take(self, *names: str) -> Tensor:
        """Return the array under the first of these names that exists."""
        for name in names:
            if name in self._arrays:
                self._left.discard(name)
                return torch.from_numpy(np.array(self._arrays[name]))  # a copy of its own, writable
        self._missing.append(names[0])
        return torch.zeros(0)

    def linear(self, here: str, there: str) -> dict[str, Tensor]:
        """Weight and bias."""
        return {f"{here}.{part}": self.take(f"{there}.{part}") for part in ("weight", "bias")}

    def norm(self, here: str, *there: str) -> dict[str, Tensor]:
        """Return a batch norm, or several end to end."""
        parts = ("weight", "bias", "running_mean", "running_var")
        state = {f"{here}.{part}": torch.cat([self.take(f"{at}.{part}") for at in there]) for part in parts}
        return {**state, f"{here}.num_batches_tracked": torch.tensor(0)}

    def stacked(self, names: Sequence[str]) -> Tensor:
        tensors = [self.take(name) for name in names]
        if len({part.shape for part in tensors}) > 1:
            raise WeightsError(f"{names[0]} and its like have different shapes: {self._account()}")
        return torch.stack(tensors)

    def vlad(self, here: str, there: str) -> dict[str, Tensor]:
        centres = self.take(f"{there}.clusters2")
        return {
            f"{here}.clusters": self.take(f"{there}.clusters"),
            f"{here}.centres": centres.squeeze(0) if centres.ndim == 3 else centres,
            **self.norm(f"{here}.norm", f"{there}.batch_norm"),
        }

    def unit(self, here: str, there: str) -> dict[str, Tensor]:
        """Return a gated embedding unit."""
        return {
            **self.linear(f"{here}.fc", f"{there}.fc"),
            **self.linear(f"{here}.gate.fc", f"{there}.cg.fc"),
            **self.norm(f"{here}.gate.norm", f"{there}.cg.batch_norm"),
        }

    def units(self, here: str, there: Sequence[str]) -> dict[str, Tensor]:
        """Join gated embedding units of one size into one."""
        return {
            f"{here}.fc.weight": torch.cat([self.take(f"{at}.fc.weight") for at in there]),
            f"{here}.fc.bias": torch.cat([self.take(f"{at}.fc.bias") for at in there]),
            **self.gates(f"{here}.gates", there, "batch_norm"),
        }

    def gates(self, here: str, there: Sequence[str], norm: str) -> dict[str, Tensor]:
        return {
            f"{here}.weight": self.stacked([f"{at}.cg.fc.weight" for at in there]),
            f"{here}.bias": self.stacked([f"{at}.cg.fc.bias" for at in there]),
            **self.norm(f"{here}.norms", *(f"{at}.cg.{norm}" for at in there)),
        }

    def fill(self, module: JointEmbedding, state: Mapping[str, Tensor]) -> None:
        """Put the converted arrays into the module, if every key of both is used."""
        if self._missing or self._left:
            raise WeightsError(f"the checkpoint is not of this configuration: {self._account()}")
        try:
            module.load_state_dict(dict(state))
        except RuntimeError as error:
            raise WeightsError(f"the checkpoint is not of this configuration: {error}") from None

    def _account(self) -> str:
        parts = []
        for word, keys in (("missing", self._missing), ("unexpected", sorted(self._left))):
            if keys:
                more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
                parts.append(f"{word} {', '.join(keys[:NAMED])}{more}")
        return "; ".join(parts) or "the shapes differ"
