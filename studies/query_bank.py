"""Does query-bank normalisation do for our embeddings what QB-Norm (Bogolin et al., CVPR 2022) says it does?

    python studies/query_bank.py --data DATA --msvd msvd.lib --flickr8k flickr8k.lib \\
        --weights reel0.safetensors

On MSVD test and Flickr8k dev, in both directions: banks of growing size (several draws), of the same and of
other domains, β and k of the dynamic inverted softmax, other methods, skewness of the k-occurrences. Several
`--weights` are seeds: means and deviations are then over seeds and draws.

β of every row outside the β curve was chosen on the MSVD validation captions, by the in-domain bank, for each
method and direction, and is used for every collection and bank; k is 1 outside the k curve. Nothing is chosen
on what is reported. Verdicts on the papers' claims are computed from the figures (`query_bank_claims.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import (
    T2V,
    V2T,
    Facts,
    Figures,
    captions_of,
    measured,
    parse_weights,
    parser,
    plain,
    progress,
    ranks_with,
    sample,
    summary,
    texts_of,
    validated,
)
from engines import Encoded, View, ask, scores, searcher_of
from query_bank_text import plots_of, text_of

from wordreel.banks.sources import everyday_queries
from wordreel.hubness import Direction, Method, make_method
from wordreel.hubness.beta import GRID
from wordreel.retrieval.caption_ranks import Captions
from wordreel.retrieval.significance import compare
from wordreel.runtime.store import WeightStore
from wordreel.search.searcher import Searcher
from wordreel.types import Float32

SIZES = (100, 300, 1_000, 3_000, 10_000)
DRAWS = 3
SOME = 5_000  # bank queries of the β and k curves and of the comparison of methods, as published
KS = (1, 2, 3, 5, 10)
OTHERS = ("csls", "nnn", "gc", "cent")  # beside IS and DIS; GC takes long, so with one bank only
SAMPLES = 2_000  # of the paired tests
TITLES = {"msvd-test": "MSVD test", "flickr8k-dev": "Flickr8k dev"}

Key = tuple[str, str, str, str, str, float]  # collection, direction, section, bank, method, x


@dataclass(frozen=True)
class Case:
    """One collection in one direction: test rows, and banks of which the first is in-domain."""

    collection: str
    direction: Direction
    rows: Float32  # [queries, items]
    captions: Captions
    banks: dict[str, Float32]
    betas: Mapping[str, float]

    def method(self, name: str, **parameters: Any) -> Method:
        if name in self.betas and "beta" not in parameters:
            parameters["beta"] = self.betas[name]
        return make_method(name, **parameters)

    def figures(self, method: Method, bank: Float32, hubness: bool = False) -> Figures:
        return measured(method, bank, self.rows, self.captions, self.direction, hubness)


def study(case: Case, held: dict[Key, list[Figures]]) -> None:
    """Every section of the study for one case; figures are appended to those of other seeds."""

    def keep(section: str, bank: str, method: str, x: float, figures: Figures) -> None:
        key = (case.collection, case.direction.value, section, bank, method, float(x))
        held.setdefault(key, []).append(figures)

    before = plain(case.rows, case.captions, case.direction, hubness=True)
    keep("plain", "", "none", 0, before)
    for name, bank in case.banks.items():
        progress(f"{case.collection} {case.direction.value}: {name} ({len(bank)})")
        for method in ("dis", "is"):
            made = case.method(method)
            keep("all", name, method, len(bank), case.figures(made, bank, hubness=True))
            for size in (size for size in SIZES if size < len(bank)):
                for draw in range(DRAWS):
                    keep("size", name, method, size, case.figures(made, bank[sample(len(bank), size, draw)]))
            keep("size", name, method, len(bank), case.figures(made, bank))
        some = bank[sample(len(bank), SOME, 0)]
        for beta in GRID:
            for method in ("dis", "is"):
                keep("beta", name, method, beta, case.figures(case.method(method, beta=beta), some))
        for k in KS:
            keep("k", name, "dis", k, case.figures(case.method("dis", k=k), some))
        if case.direction is T2V:
            others = OTHERS if name == next(iter(case.banks)) else ("csls", "nnn", "cent")
            for method in ("dis", "is", *others):
                keep("method", name, method, len(some), case.figures(case.method(method), some, hubness=True))


def tests(case: Case) -> list[dict[str, Any]]:
    """Is a bank's change of R@1 more than luck? Paired over queries, captions of one video together."""
    found = []
    for bank, rows in case.banks.items():
        for name in ("dis", "is"):
            place = (case.rows, case.captions, case.direction)
            before = ranks_with(make_method("none"), rows[:1], *place)
            after = ranks_with(case.method(name), rows, *place)
            groups = case.captions.owner if case.direction is T2V else None
            made = compare(before, after, "R1", groups=groups, samples=SAMPLES)
            found.append(
                {
                    "collection": case.collection,
                    "direction": case.direction.value,
                    "bank": bank,
                    "method": name,
                    "difference": made.difference,
                    "low": made.low,
                    "high": made.high,
                    "p_value": made.p_value,
                }
            )
    return found


def cases_of(
    searchers: Mapping[str, Searcher], told: Mapping[str, Any], betas: Mapping[Direction, Mapping[str, float]]
) -> list[Case]:
    """MSVD test and Flickr8k dev, text to video and video to text."""
    texts = {
        "MSVD training captions": texts_of(told["msvd"]["train"]),
        "Flickr8k training captions": texts_of(told["flickr8k"]["train"]),
        "MSR-VTT captions": texts_of(told["msrvtt"]["all"]),
        "everyday queries": everyday_queries(),
    }
    videos = {"MSVD training videos": ("msvd", "train"), "Flickr8k training pictures": ("flickr8k", "train")}
    made = []
    for collection, library, split, mine in (
        ("msvd-test", "msvd", "test", "MSVD"),
        ("flickr8k-dev", "flickr8k", "dev", "Flickr8k"),
    ):
        if library not in searchers:
            continue
        test = ask(searchers[library], told[library][split], told[library]["train"])
        gallery = told[library][split]
        first = sorted(texts, key=lambda name: not name.startswith(mine))
        banks = {name: scores(searchers[library], texts[name], gallery)[0] for name in first}
        made.append(Case(collection, T2V, test.rows[T2V], test.captions, banks, betas[T2V]))
        backwards = {
            name: test.bank
            if where == library and test.bank is not None
            else np.ascontiguousarray(scores(searchers[where], test.texts, told[where][part])[0].T)
            for name, (where, part) in sorted(videos.items(), key=lambda pair: not pair[0].startswith(mine))
            if where in searchers
        }
        made.append(Case(collection, V2T, test.rows[V2T], test.captions, backwards, betas[V2T]))
    return made


def betas_of(searcher: Searcher, told: Mapping[str, Any]) -> dict[Direction, dict[str, float]]:
    """β of IS and DIS in both directions, on the MSVD validation captions with the in-domain bank."""
    val = ask(searcher, told["val"], told["train"])
    if val.bank is None:
        raise SystemExit("the MSVD library has none of the training videos")
    banks = {T2V: scores(searcher, texts_of(told["train"]), told["val"])[0], V2T: val.bank}
    return {
        way: {name: validated(name, banks[way], val.rows[way], val.captions, way) for name in ("dis", "is")}
        for way in (T2V, V2T)
    }


def entries_of(held: Mapping[Key, Sequence[Figures]]) -> list[dict[str, Any]]:
    """One entry per place of every curve and table, averaged."""
    names = ("collection", "direction", "section", "bank", "method", "x")
    return [{**dict(zip(names, key, strict=True)), **summary(runs)} for key, runs in held.items()]


def main() -> None:
    arguments = parser(__doc__, "query_bank").parse_args()
    if arguments.msvd is None:
        raise SystemExit("--msvd is needed: β is chosen on the MSVD validation captions")
    weights = parse_weights(arguments.weights)
    facts = Facts("query_bank", arguments, weights)
    libraries = {"msvd": arguments.msvd, "flickr8k": arguments.flickr8k}
    libraries = {name: path for name, path in libraries.items() if path is not None}
    told = {name: captions_of(arguments.data, name) for name in ("msvd", "flickr8k", "msrvtt")}
    store = WeightStore()
    held: dict[Key, list[Figures]] = {}
    betas, paired = [], []
    for number, given in enumerate(weights):
        model = Encoded(store, arguments.cache, given.path)
        facts.used(given.label, model)
        searchers = {
            name: searcher_of(View(path, arguments.cache), model) for name, path in libraries.items()
        }
        chosen = betas_of(searchers["msvd"], told["msvd"])
        betas.append({way.value: named for way, named in chosen.items()})
        for case in cases_of(searchers, told, chosen):
            study(case, held)
            if number == 0:
                paired += tests(case)
    figures: dict[str, Any] = {
        "beta_by_validation": betas,
        "draws": DRAWS,
        "curves_with": SOME,
        "paired_with_first_weights": paired,
        "rows": [{**entry, "each": []} for entry in entries_of(held)],
    }
    facts.write(figures, text_of(figures, TITLES), plots_of(figures["rows"], TITLES))


if __name__ == "__main__":
    main()
