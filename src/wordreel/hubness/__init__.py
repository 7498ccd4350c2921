"""Hubness: some items turn up for too many queries. Query-bank normalisations hold them back.

Every method is a frozen dataclass with `fit(bank) -> State` and `apply(rows, state)`; a foldable one gives
one number per item, `state.bias()`, that an index subtracts. Rows are queries, columns are gallery items.
"""

from typing import TYPE_CHECKING

from wordreel.errors import HubnessError
from wordreel.util.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wordreel.hubness.beta import choose_beta_unlabelled
    from wordreel.hubness.fit import fit_many
    from wordreel.hubness.measures import Hubness, k_occurrence, measure_hubness
    from wordreel.hubness.method import Method
    from wordreel.hubness.registry import METHODS, make_method
    from wordreel.hubness.scores import Direction, GatedScores, query_rows, ranking_scores
    from wordreel.hubness.similarity_sources import mixtures, product
    from wordreel.hubness.state import State

__getattr__ = lazy_exports(
    __name__,
    {
        "beta": ("choose_beta_unlabelled",),
        "fit": ("fit_many",),
        "measures": ("Hubness", "k_occurrence", "measure_hubness"),
        "method": ("Method",),
        "registry": ("METHODS", "make_method"),
        "scores": ("Direction", "GatedScores", "query_rows", "ranking_scores"),
        "similarity_sources": ("mixtures", "product"),
        "state": ("State",),
    },
)

__all__ = [
    "METHODS",
    "Direction",
    "GatedScores",
    "Hubness",
    "HubnessError",
    "Method",
    "State",
    "choose_beta_unlabelled",
    "fit_many",
    "k_occurrence",
    "make_method",
    "measure_hubness",
    "mixtures",
    "product",
    "query_rows",
    "ranking_scores",
]
