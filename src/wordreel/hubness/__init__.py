"""Hubness: some items turn up for too many queries. Query-bank normalisations hold them back.

Every method is a frozen dataclass with `fit(bank) -> State` and `apply(rows, state)`; a foldable one gives
one number per item, `state.bias()`, that an index subtracts. Rows are queries, columns are gallery items.
"""

from typing import TYPE_CHECKING

from wordreel.errors import HubnessError
from wordreel.util.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wordreel.hubness.beta import BetaChoice, choose_beta, choose_beta_unlabelled
    from wordreel.hubness.direction import Direction, query_rows
    from wordreel.hubness.embeddings import fit_embeddings, fit_mixtures, mixtures, product
    from wordreel.hubness.gated import GatedScores, ranking_scores
    from wordreel.hubness.measures import Hubness, k_occurrence, measure_hubness
    from wordreel.hubness.method import Method
    from wordreel.hubness.multi_fit import fit_many
    from wordreel.hubness.ranks import corrected_ranks
    from wordreel.hubness.registry import METHODS, make_method
    from wordreel.hubness.state import State
    from wordreel.hubness.torch_fit import fit_embeddings_on_device

__getattr__ = lazy_exports(
    __name__,
    {
        "beta": ("BetaChoice", "choose_beta", "choose_beta_unlabelled"),
        "direction": ("Direction", "query_rows"),
        "embeddings": ("fit_embeddings", "fit_mixtures", "mixtures", "product"),
        "gated": ("GatedScores", "ranking_scores"),
        "measures": ("Hubness", "k_occurrence", "measure_hubness"),
        "method": ("Method",),
        "multi_fit": ("fit_many",),
        "ranks": ("corrected_ranks",),
        "registry": ("METHODS", "make_method"),
        "state": ("State",),
        "torch_fit": ("fit_embeddings_on_device",),
    },
)

__all__ = [
    "METHODS",
    "BetaChoice",
    "Direction",
    "GatedScores",
    "Hubness",
    "HubnessError",
    "Method",
    "State",
    "choose_beta",
    "choose_beta_unlabelled",
    "corrected_ranks",
    "fit_embeddings",
    "fit_embeddings_on_device",
    "fit_many",
    "fit_mixtures",
    "k_occurrence",
    "make_method",
    "measure_hubness",
    "mixtures",
    "product",
    "query_rows",
    "ranking_scores",
]
