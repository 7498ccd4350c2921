"""Which normalisation may be used without labels, and with which β?

    python studies/beta.py --data DATA --msvd msvd.lib --flickr8k flickr8k.lib --msrvtt msrvtt.lib \\
        --coco coco.lib [--weights FOLDER]

Every model (each of `--weights`) on every collection with every bank of `strangers.py` is
one case. Rules without a constant are measured as they are; rules with one (a fixed β, or β as a multiple
of 1/σ, see `hubness.beta`) get the constant with the highest mean R-sum on the *other* collections.
The β "by labels" is the best of the grid on the collection itself: what no rule without labels can beat by
its β.

Differences are of R-sum (R@1 + R@5 + R@10, text to video) to plain ranking. A case is won or lost if the
paired permutation test, captions of one video together, says p < 0.05.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from common import LIBRARIES, Facts, parse_weights, parser, progress
from engines import Encoded
from strangers import EVERYDAY, TITLES, Gallery, bank_texts, galleries, told_of

from wordreel.hubness import Method, make_method
from wordreel.hubness.beta import GRID, SPREADS
from wordreel.hubness.measures import k_occurrence, skewness
from wordreel.lab.reports.tables import markdown
from wordreel.retrieval.ranks import ranks_of
from wordreel.retrieval.significance import compare
from wordreel.runtime.store import WeightStore
from wordreel.types import Float32, Float64

MULTIPLES = (1.0, 1.5, 2.0, 2.5, 3.0)  # of 1/σ
SAMPLES = 1_000
LEVEL = 0.05
LEAST_SKEWED = "least skewed halves"
RULES = {
    "labels": "IS, β by labels of the collection itself",
    "fixed": "IS, one β",
    "fixed gated": "DIS, one β",
    "spread": "IS, β = c/σ",
    "spread gated": "DIS, β = c/σ",
    LEAST_SKEWED: "IS, β with the least skewed halves of the bank",
    "csls": "CSLS",
    "nnn": "NNN",
    "cent": "CENT",
}


@dataclass(frozen=True, eq=False)
class Case:
    """One model on one collection with one bank: the ranks of every candidate."""

    model: str
    collection: str
    library: str
    bank: str
    sigma: float
    plain: Float64
    right: Any
    ranks: dict[tuple[str, float], Float64]  # by method and β (or multiple of 1/σ, or 0)

    @property
    def domain(self) -> str:
        if self.bank == EVERYDAY:
            return "everyday queries"
        return "own domain" if self.bank == self.library else "another domain"

    def gain(self, key: tuple[str, float]) -> float:
        return rsum(self.ranks[key]) - rsum(self.plain)


def rsum(ranks: Float64) -> float:
    """R@1 + R@5 + R@10.

    >>> rsum(np.array([1.0, 6.0]))
    200.0
    """
    return float(sum(100 * (ranks <= k).mean() for k in (1, 5, 10)))


def case_of(model: str, gallery: Gallery, bank: str, items: Float32, rows: Float32) -> Case:
    """All candidates on `items [captions, items]` with the bank's `rows [bank, items]`."""

    def ranks(method: Method | None) -> Float64:
        scores = items
        if method is not None:
            state = method.fit(rows)
            bias = state.bias()
            held = state.activation[items.argmax(axis=1)] if method.gated else np.ones(len(items), bool)
            scores = items - np.where(held[:, None], bias, np.float32(0))
        return ranks_of(gallery.best(scores)[0], gallery.right)

    sigma = float(np.median(rows.std(axis=0, dtype=np.float64)))
    found = {(name, 0.0): ranks(make_method(name)) for name in ("csls", "nnn", "cent")}
    for name, rule in (("is", ""), ("dis", " gated")):
        found |= {(f"fixed{rule}", beta): ranks(make_method(name, beta=beta)) for beta in GRID}
        found |= {(f"spread{rule}", c): ranks(make_method(name, beta=c / sigma)) for c in MULTIPLES}
    found[LEAST_SKEWED, 0.0] = found["fixed", least_skewed(rows)]
    library = gallery.collection.library
    return Case(model, gallery.collection.name, library, bank, sigma, ranks(None), gallery.right, found)


def least_skewed(rows: Float32) -> float:
    """The largest β whose 10-occurrences on one half of the bank, corrected by the other, are within a
    standard error of the least skewed: for comparison."""
    halves = (rows[0::2], rows[1::2])
    found = {}
    for beta in GRID:
        method = make_method("is", beta=beta)
        pairs = (halves, halves[::-1])
        counts = [k_occurrence(method.apply(held, method.fit(seen)), 10) for seen, held in pairs]
        found[beta] = float(np.mean([skewness(each) for each in counts]))
    return max(b for b, skew in found.items() if skew <= min(found.values()) + math.sqrt(6 / rows.shape[1]))


def chosen(rule: str, cases: Sequence[Case], collection: str) -> float:
    """The constant of a rule by the mean gain on the other collections; 0 for rules that have none."""
    if rule not in ("fixed", "fixed gated", "spread", "spread gated"):
        return 0.0
    others = [case for case in cases if case.collection != collection]
    values = GRID if rule.startswith("fixed") else MULTIPLES
    return max(
        values, key=lambda value: (float(np.mean([case.gain((rule, value)) for case in others])), value)
    )


def judged(rule: str, cases: Sequence[Case]) -> list[dict[str, Any]]:
    """One rule on every case, with the constant that the other collections chose."""
    rows = []
    for case in cases:
        if rule == "labels":
            constant = max(GRID, key=lambda beta, case=case: case.gain(("fixed", beta)))  # type: ignore[misc]
            key = ("fixed", constant)
        else:
            constant = chosen(rule, cases, case.collection)
            key = (rule, constant)
        test = compare(case.plain, case.ranks[key], "Rsum", groups=case.right, samples=SAMPLES)
        rows.append(
            {
                "rule": rule,
                "model": case.model,
                "collection": case.collection,
                "bank": case.bank,
                "domain": case.domain,
                "sigma": case.sigma,
                "constant": constant,
                "plain": rsum(case.plain),
                "difference": test.difference,
                "p_value": test.p_value,
            }
        )
    return rows


def text_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """What each rule gains and loses, then every case of the everyday bank."""
    domains = ("everyday queries", "own domain", "another domain")
    header = ["rule", "constant chosen by the others", "cases", "mean", "worst", "won", "lost", *domains]
    table = [header]
    for rule, title in RULES.items():
        here = [row for row in rows if row["rule"] == rule]
        constants = sorted({row["constant"] for row in here})
        table.append(
            [
                title,
                ", ".join(f"{c:g}" for c in constants) if constants != [0.0] else "–",
                str(len(here)),
                f"{np.mean([row['difference'] for row in here]):+.2f}",
                f"{min(row['difference'] for row in here):+.1f}",
                str(sum(row["difference"] > 0 and row["p_value"] < LEVEL for row in here)),
                str(sum(row["difference"] < 0 and row["p_value"] < LEVEL for row in here)),
                *(
                    f"{np.mean(found):+.2f}"
                    if (found := [r["difference"] for r in here if r["domain"] == d])
                    else "–"
                    for d in domains
                ),
            ]
        )
    each = [["model", "collection", "bank", "plain", *RULES.values()]]
    places = dict.fromkeys((row["model"], row["collection"], row["bank"]) for row in rows)
    for place in places:
        by_rule = {r["rule"]: r for r in rows if (r["model"], r["collection"], r["bank"]) == place}
        cells = [
            f"{by_rule[rule]['difference']:+.1f}{'*' * (by_rule[rule]['p_value'] < LEVEL)}" for rule in RULES
        ]
        each.append([place[0], TITLES[place[1]], place[2], f"{by_rule['csls']['plain']:.1f}", *cells])
    auto = np.mean([r["difference"] for r in rows if r["rule"] == "csls"])
    labels = np.mean([r["difference"] for r in rows if r["rule"] == "labels"])
    spread = np.mean([r["difference"] for r in rows if r["rule"] == "spread"])
    return "\n".join(
        [
            "# Normalisation without labels\n",
            "Made by `studies/beta.py`; every number is in `beta.json`. R-sum (R@1 + R@5 + R@10, text to "
            "video) less that of plain ranking, over models, collections and banks. A constant is chosen on "
            "the other collections. *: p < 0.05, paired, captions of one video together. The default model "
            "was trained on the captions of the MSVD, Flickr8k and COCO banks.\n",
            markdown(table),
            f"What no labels cost: against the best β of the collection itself ({labels:+.2f}), "
            f"β = {SPREADS:g}/σ gains {spread:+.2f} and CSLS, which needs neither, {auto:+.2f}.\n",
            "## Every case\n",
            markdown(each),
        ]
    )


def main() -> None:
    arguments = parser(__doc__, "beta").parse_args()
    weights = parse_weights(arguments.weights)
    facts = Facts("beta", arguments, weights)
    libraries = {name: path for name in LIBRARIES if (path := getattr(arguments, name)) is not None}
    told = told_of(arguments.data)
    banks = bank_texts(told)
    store = WeightStore()
    cases = []
    for label, path in ((given.label, given.path) for given in weights):
        model = Encoded(store, arguments.cache, path)
        facts.used(label, model)
        model.prepare([text for texts in banks.values() for text in texts])
        for gallery in galleries(model, libraries, arguments.cache, told):
            items = gallery.items(gallery.texts)
            for bank, texts in banks.items():
                cases.append(case_of(label, gallery, bank, items, gallery.items(texts)))
                progress(f"  {bank}")
    rows = [row for rule in RULES for row in judged(rule, cases)]
    facts.write({"rows": rows}, text_of(rows), {})


if __name__ == "__main__":
    main()
