"""What QB-Norm (Bogolin et al., CVPR 2022, with its supplement) claims, and whether our figures agree.

Each claim is a function of the figures that gives a verdict and the numbers behind it. A change is sure
if the paired test over queries has p < 0.05; a change that is not sure leaves a claim "unclear", unless it is
below `SLACK` points, which counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

LEVEL = 0.05
SLACK = 0.2  # points of R@1
HOLDS, PARTLY, UNCLEAR, FAILS = "holds", "partly", "unclear", "does not hold"


@dataclass(frozen=True)
class Place:
    """The figures of one collection and direction."""

    rows: Sequence[Mapping[str, Any]]
    paired: Sequence[Mapping[str, Any]]

    @property
    def banks(self) -> list[str]:
        """In-domain first."""
        return list(dict.fromkeys(row["bank"] for row in self.rows if row["section"] == "all"))

    def curve(self, section: str, bank: str, method: str) -> dict[float, float]:
        """x → R@1, x growing."""
        found = {
            row["x"]: row["mean"]["r1"]
            for row in self.rows
            if (row["section"], row["bank"], row["method"]) == (section, bank, method)
        }
        return dict(sorted(found.items()))

    def row(self, section: str, bank: str = "", method: str = "none") -> Mapping[str, Any]:
        wanted = (section, bank, method)
        return next(r for r in self.rows if (r["section"], r["bank"], r["method"]) == wanted)

    @property
    def plain(self) -> float:
        return float(self.row("plain")["mean"]["r1"])

    def gain(self, bank: str, method: str) -> float:
        """Points of R@1 with the whole bank."""
        return float(self.row("all", bank, method)["mean"]["r1"]) - self.plain

    def p_value(self, bank: str, method: str) -> float:
        wanted = (bank, method)
        return float(next(t["p_value"] for t in self.paired if (t["bank"], t["method"]) == wanted))

    def sure(self, bank: str, method: str) -> bool:
        return self.p_value(bank, method) < LEVEL

    def said(self, bank: str, method: str) -> str:
        p = self.p_value(bank, method)
        return f"{bank} {self.gain(bank, method):+.1f} (p {'< 0.001' if p < 0.001 else f'= {p:.3f}'})"


Verdict = tuple[str, str]


def in_domain(view: Place) -> Verdict:
    bank = view.banks[0]
    said = f"R@1 {view.said(bank, 'dis')}"
    if view.gain(bank, "dis") <= SLACK:
        return FAILS, said
    return (HOLDS if view.sure(bank, "dis") else UNCLEAR), said


def far_helps_less(view: Place) -> Verdict:
    near, far = view.banks[0], view.banks[1:]
    less = [view.gain(bank, "dis") < view.gain(near, "dis") for bank in far]
    said = "; ".join(view.said(bank, "dis") for bank in far)
    return _all(less), f"in-domain {view.gain(near, 'dis'):+.1f}; {said}"


def far_is_safe(view: Place) -> Verdict:
    far = view.banks[1:]
    said = "; ".join(view.said(bank, "dis") for bank in far)
    worse = [bank for bank in far if view.gain(bank, "dis") < -SLACK]
    if not worse:
        return HOLDS, said
    return (FAILS if any(view.sure(bank, "dis") for bank in worse) else UNCLEAR), said


def far_is_harms(view: Place) -> Verdict:
    far = view.banks[1:]
    said = "; ".join(view.said(bank, "is") for bank in far)
    worse = [bank for bank in far if view.gain(bank, "is") < -SLACK]
    if not worse:
        return FAILS, said
    sure = [bank for bank in worse if view.sure(bank, "is")]
    return (HOLDS if sure == far else PARTLY if sure else UNCLEAR), said


def grows(view: Place) -> Verdict:
    curve = {0.0: view.plain, **view.curve("size", view.banks[0], "dis")}
    values = list(curve.values())
    steps = all(b > a - SLACK for a, b in pairwise(values))
    said = ", ".join(f"{x:,.0f}: {y:.1f}" for x, y in curve.items())
    if values[-1] <= values[min(1, len(values) - 2)]:  # than with the smallest bank
        return FAILS, said
    return (HOLDS if steps else PARTLY), said


def saturates(view: Place) -> Verdict:
    curve = {0.0: view.plain, **view.curve("size", view.banks[0], "dis")}
    values = list(curve.values())
    total, last = values[-1] - view.plain, values[-1] - values[-2]
    said = (
        f"the last step ({list(curve)[-2]:,.0f} to {list(curve)[-1]:,.0f}) adds {last:+.1f} of {total:+.1f}"
    )
    return (HOLDS if abs(last) <= max(SLACK, total / 4) else FAILS), said


def beta_robust(view: Place) -> Verdict:
    curve = view.curve("beta", view.banks[0], "dis")
    best = max(curve.values())
    near = [beta for beta, y in curve.items() if y >= view.plain + (best - view.plain) / 2]
    peak = max(curve, key=lambda beta: (curve[beta], -beta))
    said = (
        f"best {best:.1f} at β = {peak:g}; at 20 {curve[20.0]:.1f}; at least half of the gain for β from "
        f"{min(near):g} to {max(near):g}"
    )
    if best <= view.plain:
        return FAILS, f"no β helps; {said}"
    return (HOLDS if {10.0, 15.0, 20.0, 30.0} <= set(near) else PARTLY), said


def first_is_enough(view: Place) -> Verdict:
    curves = [view.curve("k", bank, "dis") for bank in view.banks]
    fine = [curve[1.0] >= max(curve.values()) - SLACK for curve in curves]
    said = "; ".join(
        f"{bank} {curve[1.0]:.1f} at 1, {curve[10.0]:.1f} at 10"
        for bank, curve in zip(view.banks, curves, strict=True)
    )
    return _all(fine), said


def skewness_falls(view: Place) -> Verdict:
    before, after = view.row("plain"), view.row("all", view.banks[0], "dis")
    said = (
        f"{before['skewness']:.2f} to {after['skewness']:.2f}; most retrieved item {before['largest']:.0f} "
        f"to {after['largest']:.0f} times"
    )
    return (HOLDS if after["skewness"] < before["skewness"] else FAILS), said


def centring_harms(view: Place) -> Verdict:
    found = {bank: view.row("method", bank, "cent")["mean"]["r1"] - view.plain for bank in view.banks}
    return (
        _all([change < 0 for change in found.values()]),
        "; ".join(f"{bank} {change:+.1f}" for bank, change in found.items()),
    )


CLAIMS: dict[str, Callable[[Place], Verdict]] = {
    "a bank of the same domain helps (DIS)": in_domain,
    "a bank of another domain helps less (DIS)": far_helps_less,
    "a bank of another domain does no harm (DIS)": far_is_safe,
    "a bank of another domain harms without the gate (IS)": far_is_harms,
    "more bank queries are better": grows,
    "the gain saturates": saturates,
    "β is not delicate, 20 is good": beta_robust,
    "k = 1 is as good as any": first_is_enough,
    "the k-occurrences become less skewed": skewness_falls,
    "centring harms": centring_harms,
}
TEXT_ONLY = {"centring harms"}


def _all(each: Sequence[bool]) -> str:
    return HOLDS if all(each) else PARTLY if any(each) else FAILS


def judge(figures: Mapping[str, Any], collection: str, direction: str) -> dict[str, Verdict]:
    """Every claim's verdict and numbers; nothing where the collection was not measured."""
    place = (collection, direction)
    view = Place(
        [row for row in figures["rows"] if (row["collection"], row["direction"]) == place],
        [t for t in figures["paired_with_first_weights"] if (t["collection"], t["direction"]) == place],
    )
    if not view.rows:
        return {}
    return {
        claim: check(view) for claim, check in CLAIMS.items() if direction == "t2v" or claim not in TEXT_ONLY
    }
