"""Hubness: some items turn up for too many queries. Query-bank normalisations hold them back.

Every method is a frozen dataclass with `fit(bank) -> State` and `apply(rows, state)`; a foldable one gives
one number per item, `state.bias()`, that an index subtracts. Rows are queries, columns are gallery items.
"""

from wordreel.errors import HubnessError as HubnessError
from wordreel.hubness.beta import choose_beta_unlabelled as choose_beta_unlabelled
from wordreel.hubness.fit import fit_many as fit_many
from wordreel.hubness.measures import Hubness as Hubness
from wordreel.hubness.measures import k_occurrence as k_occurrence
from wordreel.hubness.measures import measure_hubness as measure_hubness
from wordreel.hubness.method import Method as Method
from wordreel.hubness.registry import METHODS as METHODS
from wordreel.hubness.registry import make_method as make_method
from wordreel.hubness.scores import Direction as Direction
from wordreel.hubness.scores import GatedScores as GatedScores
from wordreel.hubness.scores import query_rows as query_rows
from wordreel.hubness.scores import ranking_scores as ranking_scores
from wordreel.hubness.similarity_sources import mixtures as mixtures
from wordreel.hubness.similarity_sources import product as product
from wordreel.hubness.state import State as State
