"""What the methods have in common: fit a bank in one pass, score rows by s(q, v) − offset[v]."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from wordreel.errors import HubnessError
from wordreel.hubness.bank_statistics import Spec
from wordreel.hubness.blocks import ArraySource, Similarities, SimilarityBlock, blocks_of, each_span, matrix
from wordreel.hubness.fit import fit_many, gather
from wordreel.hubness.scores import GatedScores
from wordreel.hubness.state import GALLERY, QUERIES, BankState, State
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
    streaming: ClassVar[bool] = True  # fitted in one pass; queries and items can be added
    gpu: ClassVar[bool] = True  # can be fitted on a GPU
    banks: ClassVar[tuple[str, ...]] = (QUERIES,)

    def statistics(self, bank: str) -> Sequence[Spec]:
        """Return what to gather of a bank."""
        raise NotImplementedError

    def offset(self, state: State) -> Float64:
        """Return what is subtracted from the similarities, `[items]`."""
        raise NotImplementedError

    def activation(self, state: State) -> Bool:
        """Return which items open the gate, `[items]`."""
        raise HubnessError(f"{self.name!r} has no activation set; only the dynamic methods gate queries")

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
        self.check_banks(gallery)
        return fit_many([self], blocks, gallery, threads=threads, device=device)[0]

    def check_banks(self, gallery: Similarities | None) -> None:
        """Raise a HubnessError unless the method is given the banks that it needs."""
        given = [QUERIES] if gallery is None else [QUERIES, GALLERY]
        if given != list(self.banks):
            raise HubnessError(f"{self.name!r} is fitted with {' and '.join(self.banks)}, not {given}")

    def fit_bank(self, rows: Similarities, bank: str, items: int | None) -> tuple[BankState, int]:
        """Return the statistics of one bank, and how many items it is compared with (`items` if given)."""
        gathered = gather(rows, self.statistics(bank), items)
        statistics = {spec.kind.key: one for spec, one in gathered.statistics.items()}
        return BankState(gathered.rows, statistics), gathered.items

    def label(self, source: str, size: int, transductive: bool = False) -> str:
        """Return the label of the post-processing, which every reported number carries.

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
        """Return what fills in a block's scores, in `kind`, and says which rows it corrected if not all."""
        offset = state.offset.astype(kind)

        def score(block: SimilarityBlock, out: Array) -> None:
            np.subtract(block.values, offset, out=out)

        return score

    def apply(self, rows: Array, state: State, *, threads: int | None = None) -> Array | GatedScores:
        """Return scores `[queries, items]` of query rows: float32; float64 for float64 rows, GC and DSL."""
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
        """Return the type of scores of rows of this type."""
        small = rows.kind == "f" and rows.itemsize <= 4 and not self.double
        return np.dtype(np.float32 if small else np.float64)

    def check_state(self, state: State) -> None:
        """Refuse a state that another method or other parameters fitted."""
        if state.method != self:
            raise HubnessError(f"the state was fitted by {state.method}, not by {self}; fit it again")


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_number(name: str, value: float, low: float, high: float) -> None:
    """Refuse a parameter outside `[low, high]`."""
    if not (isinstance(value, int | float) and math.isfinite(value) and low <= value <= high):
        raise HubnessError(f"{name} must be between {low:g} and {high:g}, not {value!r}")


def check_beta(value: float, name: str = "beta") -> None:
    """Refuse a β outside its range."""
    check_number(name, value, 1e-6, 1e6)


def check_count(name: str, value: int, low: int) -> None:
    """Refuse what is not a whole number of at least `low`."""
    if not isinstance(value, int) or value < low:
        raise HubnessError(f"{name} must be a whole number of at least {low}, not {value!r}")
