"""No normalisation: the plain similarities, so that "none" can stand wherever a method can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wordreel.hubness.bank_statistics import Spec
from wordreel.hubness.method import Method
from wordreel.hubness.state import State
from wordreel.types import Float64


@dataclass(frozen=True)
class Plain(Method):
    """η(v) = s(q, v)."""

    name: ClassVar[str] = "none"

    def statistics(self, bank: str) -> Sequence[Spec]:
        return []

    def offset(self, state: State) -> Float64:
        return np.zeros(state.items)
