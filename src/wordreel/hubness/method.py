"""What the methods have in common: fit a bank in one pass, score rows by s(q, v) − offset[v]."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.accumulate import accumulate, warn_if_logits
from wordreel.hubness.blocks import ArraySource, Similarities, SimilarityBlock, blocks_of, each_span, matrix
from wordreel.hubness.device import pick_gpu
from wordreel.hubness.gated import GatedScores
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State
from wordreel.hubness.statistic import StatisticBuilder
from wordreel.types import Array, Bool, Float64

Scorer = Callable[[SimilarityBlock, Array], Bool | None]


@dataclass(frozen=True)
class Method:
    """A normalisation with its parameters. Rows are queries, columns gallery items, larger is better."""

    name: ClassVar[str]
    foldable: ClassVar[bool] = True  # ranks by s(q, v) − offset[v] (behind a gate for the dynamic ones)
    transductive: ClassVar[bool] = False  # the bank is the test queries themselves
    gated: ClassVar[bool] = False  # corrects only the queries whose best item the bank retrieved
    double: ClassVar[bool] = False  # scores are always float64
    streaming: ClassVar[bool] = True  # queries and items can be added
    single_pass: ClassVar[bool] = True  # fitted in one pass over its banks, which other methods can share
    gpu: ClassVar[bool] = True  # can be fitted on a GPU
    banks: ClassVar[tuple[str, ...]] = (QUERIES,)

    def builders(self, bank: str) -> dict[str, StatisticBuilder]:
        """What to gather of a bank."""
        raise NotImplementedError

    def offset(self, state: State) -> Float64:
        """`[items]`, what is subtracted from the similarities."""
        raise NotImplementedError

    def activation(self, state: State) -> Bool:
        raise HubnessError(f"{self.name!r} has no activation set; only the dynamic methods gate queries")

    def inverse_temperature(self, bank: str) -> float:
        """β of a bank, 0 where the method has none."""
        return 0.0

    def fit(
        self,
        blocks: Similarities,
        gallery: Similarities | None = None,
        *,
        threads: int | None = None,
        device: str = "cpu",
    ) -> State:
        """Fit the bank: `[bank, items]` similarities, as an array, memory map, source or row blocks.

        Methods with a second bank take `gallery`, `[gallery bank, items]` similarities between items.
        `device` is `cpu`, `cuda`, or `auto` for a GPU where there is one.
        """
        given = {QUERIES: blocks} | ({} if gallery is None else {GALLERY: gallery})
        if set(given) != set(self.banks):
            raise HubnessError(f"{self.name!r} is fitted with {' and '.join(self.banks)}, not {list(given)}")
        gpu = pick_gpu(device, given.values(), [self])
        if gpu is not None:
            from wordreel.hubness.torch_fit import fit_on_device

            return fit_on_device([self], blocks, gallery, device=gpu)[0]
        return self._fit_on_cpu(given, threads)

    def _fit_on_cpu(self, given: Mapping[str, Similarities], threads: int | None) -> State:
        banks, items = {}, None
        for name, rows in given.items():
            result = accumulate(rows, partial(self.builders, name), items, threads)
            warn_if_logits(result.max_abs, self.inverse_temperature(name))
            items = result.items
            banks[name] = BankState(result.size, result.statistics)
        assert items is not None  # noqa: S101 - every method has a bank
        return State(self, items, banks)

    def label(self, source: str, size: int, transductive: bool = False) -> str:
        """The post-processing of scores, which every reported number carries.

        `none`, `querybank(train.npy, 987 queries, method=is, beta=20)`, or `transductive(uses all test
        queries, method=dsl, beta=100)`.

        Args:
            source: What the bank is called, or the file that it comes from.
            size: The number of bank queries.
            transductive: The bank holds test queries, which makes any method transductive.
        """
        if self.name == "none":
            return "none"
        values = {name: value for name, value in asdict(self).items() if value is not None}
        facts = [f"method={self.name}", *(f"{name}={_number(value)}" for name, value in values.items())]
        if self.transductive:
            return f"transductive({', '.join(['uses all test queries', *facts])})"
        if transductive:
            return f"transductive({', '.join(['the bank holds test queries', *facts])})"
        return f"querybank({', '.join([source, f'{size} queries', *facts])})"

    def scorer(self, state: State, kind: np.dtype[Any]) -> Scorer:
        """What fills in the scores of a block, in `kind`; it says which rows were corrected if not all."""
        offset = state.offset.astype(kind)

        def score(block: SimilarityBlock, out: Array) -> None:
            np.subtract(block.values, offset, out=out)

        return score

    def apply(self, rows: Array, state: State, *, threads: int | None = None) -> Array | GatedScores:
        """Scores `[queries, items]` of query rows: float32, or float64 for float64 rows, GC and DSL."""
        self.check_state(state)
        rows = matrix(rows, "the query rows", state.items)
        source = ArraySource(rows)
        kind = self.score_kind(rows.dtype)
        out, activated = np.empty(rows.shape, kind), np.zeros(len(rows), bool)
        score = self.scorer(state, kind)

        def work(start: int, stop: int) -> None:
            for at, block in blocks_of(source, start, stop):
                span = slice(at, at + len(block))
                opened = score(block, out[span])
                if opened is not None:
                    activated[span] = opened

        if len(rows):
            each_span(source.shape, work, threads)
        return GatedScores(out, activated) if self.gated else out

    def score_kind(self, rows: np.dtype[Any]) -> np.dtype[Any]:
        small = rows.kind == "f" and rows.itemsize <= 4 and not self.double
        return np.dtype(np.float32 if small else np.float64)

    def check_state(self, state: State) -> None:
        if state.method != self:
            raise HubnessError(f"the state was fitted by {state.method}, not by {self}; fit it again")


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_number(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside `[low, high]`."""
    if not (isinstance(value, int | float) and math.isfinite(value) and low <= value <= high):
        raise HubnessError(f"{name} must be between {low:g} and {high:g}, not {value!r}")


def check_beta(value: float, name: str = "beta") -> None:
    check_number(name, value, 1e-6, 1e6)


def check_count(name: str, value: int, low: int) -> None:
    if not isinstance(value, int) or value < low:
        raise HubnessError(f"{name} must be a whole number of at least {low}, not {value!r}")
