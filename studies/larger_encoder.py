"""Would a larger sentence encoder see more in the classes that the experts recognise?

    python studies/larger_encoder.py --encoder all-mpnet-base-v2 --data DATA --msrvtt msrvtt.lib \\
        --weights "without MSR-VTT=a.safetensors" --weights "without MSR-VTT=b.safetensors"

The bridge asks a sentence encoder which classes the words of a query speak of. Here MiniLM, MPNet and the
mean of both answer; everything else stays as it is. Queries are captions of collections that a checkpoint
never saw (see `row_weights.py`). The gain of the last column is the most that a small encoder could bring
which had learned to answer as the large one does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import Facts, parse_weights, parser, progress
from engines import Encoded, Kept, vectors_of
from row_weights import Strangers, choosing, left_out, strangers

from wordreel.lab.reports.tables import markdown
from wordreel.models.bridge import WEIGHTS as BRIDGE
from wordreel.models.bridge import Bridge, ClassSpace, wordings_of
from wordreel.models.reel.model import WEIGHTS
from wordreel.models.reel.runtime import ROW
from wordreel.retrieval.metrics import retrieval_metrics
from wordreel.runtime.store import WeightStore
from wordreel.types import Float32

Encode = Callable[[Sequence[str]], Float32]
SMALL, LARGE, BOTH = "MiniLM", "MPNet", "the mean of both"
MIXTURES = {
    "appearance": {row: float(row == "appearance") for row in WEIGHTS},
    "motion": {row: float(row == "motion") for row in WEIGHTS},
    "bridge": {row: BRIDGE.get(row, 0.0) for row in WEIGHTS},
    "learned row alone": {row: float(row == ROW) for row in WEIGHTS},
    "default model": WEIGHTS,
}


class LargerBridge(Bridge):
    """The bridge with other answers to which classes a query speaks of."""

    def __init__(self, store: WeightStore, encode: Encode, share: float) -> None:
        """`share` of a class's chance is the larger encoder's."""
        super().__init__(store)
        self._larger, self._share = encode, share
        self._larger_spaces: dict[str, ClassSpace] = {}

    def _class_chances(self, texts: Sequence[str], sentences: Float32) -> dict[str, Float32]:
        large = self._larger(texts)
        return {
            expert: (1 - self._share) * space.chances(sentences)
            + self._share * self._larger_space(expert).chances(large)
            for expert, space in self._spaces.items()
        }

    def _larger_space(self, expert: str) -> ClassSpace:
        if expert not in self._larger_spaces:
            space = self._spaces[expert]
            wordings = wordings_of(expert, space.recogniser.names)
            self._larger_spaces[expert] = replace(space, phrases=tuple(map(self._larger, wordings)))
        return self._larger_spaces[expert]


class WithLarger(Encoded):
    """A checkpoint beside such a bridge."""

    def __init__(self, store: WeightStore, cache: Path, path: Path, bridge: LargerBridge, name: str) -> None:
        super().__init__(store, cache, path)
        self._known = Kept(
            cache / "captions" / f"bridge-{bridge.fingerprint}-{name}",
            lambda texts: vectors_of(bridge, texts),
        )


def rows_of(label: str, encoder: str, found: Sequence[Strangers]) -> list[dict[str, Any]]:
    """R@1, R@5 and R@10 of every mixture, the mean over the checkpoints of a label."""
    rows = []
    for mixture, weights in MIXTURES.items():
        if encoder != SMALL and mixture == "learned row alone":
            continue  # the bridge has no part in it
        metrics = [retrieval_metrics(each.ranks(weights)) for each in found]
        recall = np.mean([[one.r1, one.r5, one.r10] for one in metrics], axis=0).tolist()
        rows.append(
            {"label": label, "encoder": encoder, "mixture": mixture, "recall": recall, "sum": sum(recall)}
        )
    return rows


def text_of(rows: Sequence[dict[str, Any]]) -> str:
    """The report as Markdown."""
    parts = [
        "# A larger sentence encoder\n",
        "Made by `studies/larger_encoder.py`: which classes the words of a query speak of, by MiniLM (which "
        "ships), by MPNet (438 MB) and by both; captions of videos that no checkpoint was trained on.\n",
    ]
    for label in dict.fromkeys(row["label"] for row in rows):
        lines = [["what is compared", "encoder", "R@1", "R@5", "R@10", "sum"]]
        for mixture in MIXTURES:
            for row in rows:
                if (row["label"], row["mixture"]) == (label, mixture):
                    figures = [f"{value:.1f}" for value in [*row["recall"], row["sum"]]]
                    lines.append([mixture, row["encoder"], *figures])
        parts.append(f"## {label}\n\n{markdown(lines)}")
    return "\n".join(parts)


def main() -> None:
    made = parser(__doc__, "larger_encoder")
    made.add_argument(
        "--encoder",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="all-mpnet-base-v2 as sentence-transformers has it: model.safetensors and tokenizer.json",
    )
    arguments = made.parse_args()
    weights = [each for each in parse_weights(arguments.weights) if left_out(each.label)]
    facts = Facts("larger_encoder", arguments, weights)
    from mpnet import MPNet

    store, kept = WeightStore(), arguments.cache / "captions" / f"mpnet-{arguments.encoder.name}"
    encode = Kept(kept, MPNet(arguments.encoder).encode).rows
    bridges = {LARGE: LargerBridge(store, encode, 1.0), BOTH: LargerBridge(store, encode, 0.5)}
    found: dict[tuple[str, str], list[Strangers]] = {}
    for given in weights:
        name = left_out(given.label)
        if (library := getattr(arguments, name)) is None:
            continue
        told = choosing(arguments.data, name)
        for encoder in (SMALL, *bridges):
            progress(f"{given.label} ({given.path.name}): {encoder}")
            model = Encoded(store, arguments.cache, given.path)
            if encoder in bridges:
                model = WithLarger(store, arguments.cache, given.path, bridges[encoder], encoder)
            scored = strangers(model, library, told, arguments.cache, name)
            found.setdefault((given.label, encoder), []).append(scored)
    if not found:
        raise SystemExit('give --weights "without COLLECTION=FILE" and the library of that collection')
    rows = [row for (label, encoder), some in found.items() for row in rows_of(label, encoder, some)]
    facts.write({"rows": rows}, text_of(rows), {})


if __name__ == "__main__":
    main()
