"""Fit the confidence of a model's hits, and judge it on collections that it was not fitted on.

    python studies/confidence.py --data DATA --msvd msvd.lib --flickr8k flickr8k.lib --msrvtt msrvtt.lib \\
        --coco coco.lib [--weights FOLDER]

For the model that ships, or each of `--weights`: the top hits of captions, whole galleries, halves and 100
videos, against the everyday bank. A calibration (`hubness.confidence`) is fitted on all but one of them and
judged on that one, in turn: calibration error over ten bins of equally many hits, area under ROC of the
top hit, and false alarms on 500 queries without an answer (`absent_queries.py`). A hit is right if it is
the caption's own video; a video that fits as well counts as wrong. Last, the calibration fitted on all of
them: what belongs into the model (`Joint.calibration`, which is also `CHECKED` in
`hubness/confidence.py`, for models without one).

Queries without an answer count a quarter of those with one in the fit. The weight of the crowd is bounded
(`confidence_fit.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from absent_queries import absent_queries, farthest
from common import LIBRARIES, Facts, parse_weights, parser, progress
from confidence_fit import Hits, confidences, fit_calibration
from confidence_text import plots_of, text_of
from engines import Encoded
from strangers import COLLECTIONS, EVERYDAY, Gallery, bank_texts, galleries, some_captions, told_of

from wordreel.banks.confidence_check import auroc, calibration_error
from wordreel.hubness.confidence import Confidence
from wordreel.runtime.store import WeightStore
from wordreel.types import Calibration, Float32, Int64

SIZES = (2, 0.5, 100)  # whole galleries, halves, and this many videos
BINS = 10
FOREIGN = 800  # captions of each other collection, of which the farthest are taken
ABSENT = 0.25  # of the weight of queries with an answer
ALARMS = (0.5, 0.3)
EXAMPLE = "quarterly tax report"


@dataclass(frozen=True, eq=False)
class Cell:
    """One gallery: captions whose video is in it, and three kinds of queries without an answer."""

    videos: int
    answered: Hits
    similarity: Float32  # of the answered captions' top hits
    made: Hits
    far: Hits
    removed: Hits | None  # captions whose video was taken out

    @property
    def absent(self) -> list[Hits]:
        return [hits for hits in (self.made, self.far, self.removed) if hits is not None]


def cells_of(gallery: Gallery, bank: list[str], far: list[str], seed: int = 0) -> list[Cell]:
    """The gallery whole, a half of it, and a few of its videos."""
    fitted = Confidence.fit(gallery.items(bank))
    asked, made, others = (gallery.best(gallery.items(t)) for t in (gallery.texts, absent_queries(), far))
    rng = np.random.default_rng(seed)
    cells = []
    for size in SIZES:
        count = int(min(gallery.videos, size * gallery.videos if size <= 2 else size))
        columns = np.sort(rng.permutation(gallery.videos)[:count])
        inside = np.isin(gallery.right, columns)
        hits, similarity = top_hits(fitted, asked, columns, gallery.right)
        cells.append(
            Cell(
                count,
                Hits(hits.features[inside], hits.right[inside]),
                similarity[inside],
                top_hits(fitted, made, columns)[0],
                top_hits(fitted, others, columns)[0],
                None if inside.all() else Hits(hits.features[~inside], hits.right[~inside]),
            )
        )
    return cells


def top_hits(
    fitted: Confidence, scored: tuple[Float32, Int64], columns: Int64, right: Int64 | None = None
) -> tuple[Hits, Float32]:
    """The features of each query's best video among `columns`, whether it is right, and its similarity."""
    scores, at = scored[0][:, columns], scored[1][:, columns]
    rivals = fitted.rivals(scores)
    top = scores.argmax(axis=1)[:, None]
    best, items = np.take_along_axis(scores, top, axis=1), np.take_along_axis(at, top, axis=1)
    features = fitted.features(best, items, rivals)[:, 0]
    hit = np.zeros(len(top), bool) if right is None else columns[top[:, 0]] == right
    return Hits(features, hit), best[:, 0]


def groups_of(cells: Sequence[Cell]) -> list[Hits]:
    """What a fit sees of a collection."""
    groups = []
    for cell in cells:
        groups.append(cell.answered)
        groups += [Hits(h.features, h.right, ABSENT / len(cell.absent)) for h in cell.absent]
    return groups


def judged(cell: Cell, calibration: Calibration) -> dict[str, Any]:
    """A gallery by a calibration that was not fitted on it."""
    sure, right = confidences(cell.answered, calibration), cell.answered.right
    made, far = confidences(cell.made, calibration), confidences(cell.far, calibration)
    absent = np.concatenate([made, far])
    order = np.array_split(np.argsort(sure, kind="stable"), BINS)
    return {
        "videos": cell.videos,
        "queries": len(right),
        "top_right": float(right.mean()),
        "mean_confidence": float(sure.mean()),
        "calibration_error": calibration_error(sure, right, BINS),
        "auroc": auroc(sure, right),
        "auroc_similarity": auroc(cell.similarity, right),
        "false_alarms": {str(cut): float((absent >= cut).mean()) for cut in ALARMS},
        "false_alarms_made": {str(cut): float((made >= cut).mean()) for cut in ALARMS},
        "false_alarms_far": {str(cut): float((far >= cut).mean()) for cut in ALARMS},
        "example": float(made[absent_queries().index(EXAMPLE)]),
        "reliability": [[float(sure[part].mean()), float(right[part].mean())] for part in order if len(part)],
    }


def far_captions(model: Encoded, gallery: Gallery, told: Any) -> list[str]:
    """Captions of the other libraries that say least of what this collection's captions say."""
    theirs: list[str] = []
    for other in COLLECTIONS:
        if other.library != gallery.collection.library:
            said = [t for group in some_captions(told[other.library][other.split]).values() for t in group]
            places = np.linspace(0, len(said) - 1, min(FOREIGN, len(said))).round().astype(int)
            theirs += [said[place].strip() for place in places]
    theirs = list(dict.fromkeys(theirs))
    rows = farthest(model.sentences(theirs), model.sentences(gallery.texts))
    return [theirs[row] for row in rows]


def main() -> None:
    arguments = parser(__doc__, "confidence").parse_args()
    weights = parse_weights(arguments.weights)
    facts = Facts("confidence", arguments, weights)
    libraries = {name: path for name in LIBRARIES if (path := getattr(arguments, name)) is not None}
    told = told_of(arguments.data)
    bank = bank_texts(told)[EVERYDAY]
    store = WeightStore()
    rows, constants = [], {}
    for label, path in ((given.label, given.path) for given in weights):
        model = Encoded(store, arguments.cache, path)
        facts.used(label, model)
        model.prepare([*bank, *absent_queries()])
        cells = {
            gallery.collection.name: cells_of(gallery, bank, far_captions(model, gallery, told))
            for gallery in galleries(model, libraries, arguments.cache, told)
        }
        groups = {name: groups_of(some) for name, some in cells.items()}
        for name, some in cells.items():
            others = [hits for other, theirs in groups.items() if other != name for hits in theirs]
            calibration = fit_calibration(others)
            facts_of = {"model": label, "collection": name}
            rows += [{**facts_of, "calibration": asdict(calibration), **judged(c, calibration)} for c in some]
            progress(f"  {label}, {name}: {calibration}")
        constants[label] = asdict(fit_calibration([hits for own in groups.values() for hits in own]))
    figures = {"rows": rows, "constants": constants}
    facts.write(figures, text_of(figures), plots_of(rows))


if __name__ == "__main__":
    main()
