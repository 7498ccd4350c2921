"""Hubness: some items turn up for too many queries. Query-bank normalisations hold them back.

Every method is a frozen dataclass with `fit(bank) -> State` and `apply(rows, state)`; a foldable one gives
one number per item, `state.bias()`, that an index subtracts. Rows are queries, columns are gallery items.
"""

from wordreel.errors import HubnessError
from wordreel.hubness.choose_beta import BetaChoice, choose_beta, choose_beta_unlabelled
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
