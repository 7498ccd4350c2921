"""What does each expert bring to the default model? One alone, all but one, and one after the other.

    python studies/experts.py --data DATA --msvd msvd.lib --msrvtt msrvtt.lib --weights reel0.safetensors \\
        --weights "without MSR-VTT=other.safetensors"

An expert is left out when videos are embedded: its track, the row that belongs to it, the words
it read. The model was trained with experts hidden at random and is not trained again, unlike in MMT (Gabeur
et al., ECCV 2020, figure 4) and CE (Liu et al., BMVC 2019, table 5). Checkpoints of one label are averaged.

On MSVD test, which has no sound, the order of the cumulative rows is that of a greedy search on the
validation videos. On the MSR-VTT videos, which have sound and speech, it is the order of CE's table 5, behind
the motion expert, which every video has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    T2V,
    V2T,
    Facts,
    Figures,
    Told,
    captions_of,
    parse_weights,
    parser,
    plain,
    progress,
    summary,
)
from engines import Encoded, View, ask, searcher_of
from experts_text import plots_of, text_of

from wordreel.catalogue.store import LibraryStore
from wordreel.models.joint.model import Joint
from wordreel.runtime.store import WeightStore
from wordreel.types import Bool

CE_ORDER = ("motion", "speech", "sound", "appearance", "ocr", "faces")
Subset = tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """One row of the study: which experts look."""

    kind: str
    expert: str  # that is alone, left out or added; empty for all
    experts: Subset


def present(library: Path, told: Told) -> dict[str, float]:
    """The experts that have something to say, and for which share of the captioned videos."""
    with LibraryStore(library) as store:
        names = {
            file.content for file in store.files() if {Path(file.path).name, Path(file.path).stem} & set(told)
        }
        speaks: dict[str, set[str]] = {}
        for row in store.tracks():
            if row.present and row.content in names and row.expert in Joint.track_experts:
                speaks.setdefault(row.expert, set()).add(row.content)
    return {name: len(speaks[name]) / len(names) for name in Joint.track_experts if name in speaks}


def parts_of(experts: Sequence[str], order: Sequence[str]) -> list[Part]:
    """All, each alone, all but each, and the prefixes of `order`.

    >>> parts = parts_of(["a", "b"], ["b", "a"])
    >>> [(part.kind, part.expert, "".join(part.experts)) for part in parts][3:]
    [('without', 'a', 'b'), ('without', 'b', 'a'), ('cumulative', 'b', 'b'), ('cumulative', 'a', 'ab')]
    """
    whole = tuple(sorted(experts))
    parts = [Part("all", "", whole)]
    parts += [Part("alone", name, (name,)) for name in experts]
    parts += [Part("without", name, tuple(e for e in whole if e != name)) for name in experts]
    return parts + [
        Part("cumulative", name, tuple(sorted(order[: place + 1]))) for place, name in enumerate(order)
    ]


def greedy(experts: Iterable[str], value: Callable[[Subset], float]) -> list[str]:
    """Add the expert that raises `value` most, one after the other; the first of equals.

    >>> greedy("abc", lambda some: {"a": 1, "b": 3, "c": 2}[some[-1]] if len(some) == 1 else len(set(some)))
    ['b', 'a', 'c']
    """
    left = list(experts)
    order: list[str] = []
    while left:
        best = max(left, key=lambda name: value(tuple(sorted([*order, name]))))
        order.append(best)
        left.remove(best)
    return order


class Looks:
    """Figures of captioned videos when only some experts look; each subset is computed once per model."""

    def __init__(self, library: Path, told: Told, cache: Path) -> None:
        self._library, self._told, self._cache = library, told, cache
        self._known: dict[tuple[str, Subset], dict[str, Figures]] = {}

    def of(self, model: Encoded, experts: Subset) -> dict[str, Figures]:
        """By direction."""
        key = (model.fingerprint, experts)
        if key not in self._known:
            with View(self._library, self._cache, experts, tuple(self._told)) as view:
                searcher = searcher_of(view, model)
                check_left_out(model.experts, searcher.snapshot.gallery.available, experts)
                asked = ask(searcher, self._told)
            self._known[key] = {
                way.value: plain(rows, asked.captions, way) for way, rows in asked.rows.items()
            }
        return self._known[key]


def check_left_out(rows: Sequence[str], available: Bool, experts: Subset) -> None:
    """Refuse a part in which an expert that was left out still speaks; `available [items, rows]`."""
    heard = [row for place, row in enumerate(rows) if row in CE_ORDER and available[:, place].any()]
    if not set(heard) <= set(experts):
        raise RuntimeError(f"{', '.join(heard)} were heard where only {', '.join(experts)} should be")


def study(
    models: Sequence[Encoded], looks: Looks, parts: Sequence[Part], coverage: Mapping[str, float]
) -> list[dict[str, Any]]:
    """An entry per part and direction, averaged over the models."""
    entries = []
    for part in parts:
        progress(f"{models[0].name}: {part.kind} {part.expert}")
        found = [looks.of(model, part.experts) for model in models]
        entries += [
            {
                "kind": part.kind,
                "expert": part.expert,
                "experts": list(part.experts),
                "share_of_videos": coverage.get(part.expert),
                "direction": way.value,
                **summary([each[way.value] for each in found]),
            }
            for way in (T2V, V2T)
        ]
    return entries


def main() -> None:
    arguments = parser(__doc__, "experts").parse_args()
    weights = parse_weights(arguments.weights)
    facts = Facts("experts", arguments, weights)
    store = WeightStore()
    models: dict[str, list[Encoded]] = {}
    for given in weights:
        models.setdefault(given.label, []).append(Encoded(store, arguments.cache, given.path))
    for label, seeds in models.items():
        for model in seeds:
            facts.used(label, model)
    results = []
    if arguments.msvd is not None:
        told = captions_of(arguments.data, "msvd")
        coverage = present(arguments.msvd, told["test"])
        looks = Looks(arguments.msvd, told["test"], arguments.cache)
        trial = Looks(arguments.msvd, told["val"], arguments.cache)
        for label, seeds in models.items():

            def value(some: Subset, seeds: list[Encoded] = seeds) -> float:
                return float(np.mean([trial.of(model, some)["t2v"].recall.rsum for model in seeds]))

            order = greedy(coverage, value)
            rows = study(seeds, looks, parts_of(list(coverage), order), coverage)
            results.append(_result("msvd-test", "MSVD test", label, "", order, rows))
    if arguments.msrvtt is not None:
        said = captions_of(arguments.data, "msrvtt")["all"]
        coverage = present(arguments.msrvtt, said)
        looks = Looks(arguments.msrvtt, said, arguments.cache)
        order = [name for name in CE_ORDER if name in coverage]
        for label, seeds in models.items():
            rows = study(seeds, looks, parts_of(list(coverage), order), coverage)
            results.append(_result("msrvtt-240", "240 MSR-VTT videos with sound", label, "", order, rows))
    facts.write({"results": results}, text_of(results), plots_of(results))


def _result(
    collection: str, title: str, label: str, note: str, order: list[str], rows: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "collection": collection,
        "title": title,
        "label": label,
        "note": note,
        "order": order,
        "rows": rows,
    }


if __name__ == "__main__":
    main()
