"""How good is the default model? Text to video and video to text, plain and with a query bank, over seeds.

    python studies/default_model.py --data DATA --msvd msvd.lib --flickr8k flickr8k.lib --msrvtt msrvtt.lib \\
        --coco coco.lib --weights seed0 --weights seed1 --weights "without MSVD=other"

Checkpoints of one label are seeds of one model: their figures are averaged, ± the deviation of a sample.
Those "without" some videos are measured on these alone.
`--beside "PREFIX=FILE.json"` adds the rows of another result of this study, with the prefix before their
labels: of an earlier version of wordreel, or of checkpoints that need experts of their own.
`--plain` leaves the banks out, for many checkpoints; `--most` bounds them.
Beside them stand the published figures of `published.json`. A library that is not given is left out.
Libraries are only read; each needs the tracks of its files, no embeddings.

Banks are captions of training videos (video to text: training videos that the library has), never of the
videos that are asked for. β is chosen on the validation captions where there are some, and without labels
everywhere; never on what is reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import (
    LIBRARIES,
    T2V,
    V2T,
    Facts,
    Figures,
    Told,
    captions_of,
    measured,
    parse_weights,
    parser,
    plain,
    progress,
    summary,
    texts_of,
    validated,
)
from default_model_text import plots_of, text_of
from engines import Ask, Encoded, View, ask, scores, searcher_of

from wordreel.banks.sources import BankQueries, everyday_queries, subsample
from wordreel.hubness import Direction, make_method
from wordreel.lab.evaluate.normalised_rankings import with_automatic_beta
from wordreel.runtime.store import WeightStore
from wordreel.search.searcher import Searcher
from wordreel.types import Float32

PUBLISHED = Path(__file__).parent / "published.json"


@dataclass(frozen=True)
class Collection:
    """Captioned videos to be found, and where its banks come from: a library and a split of it."""

    name: str
    title: str
    library: str
    split: str
    bank: tuple[str, str]
    validation: str = ""  # a split of the same library
    most: int | None = None  # captions of the bank, evenly spaced


COLLECTIONS = (
    Collection("msvd-test", "MSVD test", "msvd", "test", ("msvd", "train"), "val"),
    Collection("flickr8k-dev", "Flickr8k dev", "flickr8k", "dev", ("flickr8k", "train")),
    Collection(
        "msrvtt-240",
        "240 MSR-VTT videos with sound",
        "msrvtt",
        "all",
        ("msvd", "train"),
        most=5_000,  # as the paper takes of another domain
    ),
    Collection("coco-test", "COCO, 1,000 pictures held out", "coco", "test", ("coco", "train"), most=5_000),
)


@dataclass(frozen=True)
class Row:
    """One ranking of a collection by one checkpoint."""

    direction: Direction
    postprocessing: str
    figures: Figures
    beta: float | None = None
    bank: int = 0  # queries


@dataclass(frozen=True, eq=False)
class Bank:
    """Rows `[bank queries, items]` for what is reported, and for the validation split where there is one."""

    name: str
    rows: Float32
    trial: Float32 | None = None


def rows_of(
    collection: Collection,
    searchers: Mapping[str, Searcher],
    told: Mapping[str, Mapping[str, Told]],
    *,
    banks: bool,
) -> Iterator[Row]:
    """Every ranking of one collection by one model: plain first, then with each bank."""
    searcher, said = searchers[collection.library], told[collection.library]
    library, split = collection.bank
    videos = told[library][split] if banks and library == collection.library else None
    test = ask(searcher, said[collection.split], videos)
    for direction, rows in test.rows.items():
        yield Row(direction, "none", plain(rows, test.captions, direction, hubness=True))
    if not banks:
        return
    val = ask(searcher, said[collection.validation], videos) if collection.validation else None
    for direction, bank in banks_of(collection, searchers, told, test, val):
        rows = test.rows[direction]
        betas = {"β without labels": with_automatic_beta(make_method("dis"), bank.rows).beta}  # type: ignore[attr-defined]
        if val is not None and bank.trial is not None:
            beta = validated("dis", bank.trial, val.rows[direction], val.captions, direction)
            betas = {"β by validation": beta, **betas}
        for how, beta in betas.items():
            figures = measured(
                make_method("dis", beta=beta), bank.rows, rows, test.captions, direction, hubness=True
            )
            yield Row(direction, f"DIS, {bank.name}, {how}", figures, beta, len(bank.rows))


def banks_of(
    collection: Collection,
    searchers: Mapping[str, Searcher],
    told: Mapping[str, Mapping[str, Told]],
    test: Ask,
    val: Ask | None,
) -> Iterator[tuple[Direction, Bank]]:
    """Training captions and everyday queries for captions that ask, training videos for videos that ask."""
    searcher, said = searchers[collection.library], told[collection.library]
    library, split = collection.bank
    groups = [said[name] for name in (collection.split, collection.validation) if name]
    if library in searchers:
        theirs = told[library][split]
        bank = subsample(BankQueries(tuple(texts_of(theirs)), library), collection.most).texts
        yield T2V, Bank(f"{library} {split} captions", *scores(searcher, bank, *groups))
        rows = test.bank
        if rows is None:  # videos of another library
            rows = np.ascontiguousarray(scores(searchers[library], test.texts, theirs)[0].T)
        if len(rows):
            yield V2T, Bank(f"{library} {split} videos", rows, None if val is None else val.bank)
    yield T2V, Bank("everyday queries", scores(searcher, everyday_queries(), groups[0])[0])


def asked_of(collection: Collection, label: str) -> bool:
    """Whether a model is measured on a collection: one "without" some videos on those alone.

    >>> [asked_of(collection, "without MSR-VTT") for collection in COLLECTIONS]
    [False, False, True, False]
    """
    plain = label.casefold().replace("-", "")
    return not plain.startswith("without") or collection.library in plain


def entry_of(
    collection: Collection, label: str, seeds: Sequence[Row], sizes: Mapping[str, int]
) -> dict[str, Any]:
    """One ranking, averaged over the seeds."""
    return {
        "collection": collection.name,
        **sizes,
        "label": label,
        "direction": seeds[0].direction.value,
        "postprocessing": seeds[0].postprocessing,
        "bank": seeds[0].bank,
        "beta": [row.beta for row in seeds],
        "note": "",
        **summary([row.figures for row in seeds]),
    }


def entries_of(
    collection: Collection, runs: Mapping[str, Sequence[Sequence[Row]]], captioned: int
) -> list[dict[str, Any]]:
    """`runs` are the rows of every seed, by label."""
    some = next(iter(runs.values()))[0]
    asked = {row.direction: row.figures.recall.queries for row in some}
    sizes = {"videos": asked[V2T], "captions": asked[T2V], "missing": captioned - asked[V2T]}
    return [
        entry_of(collection, label, rows, sizes)
        for label, seeds in runs.items()
        for rows in zip(*seeds, strict=True)
    ]


def entries_beside(given: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of other results of this study, each `PREFIX=FILE`, with the prefix before their labels.

    Where several have a label on a collection, the first counts.
    """
    entries: list[dict[str, Any]] = []
    for text in given:
        prefix, _, path = text.rpartition("=")
        known = {(row["collection"], row["label"]) for row in entries}
        for row in json.loads(Path(path).read_text("utf-8"))["rows"]:
            entry = {**row, "label": f"{prefix.strip()} {row['label']}".strip()}
            if (entry["collection"], entry["label"]) not in known:
                entries.append(entry)
    return entries


def with_most(collection: Collection, most: int | None) -> Collection:
    """The collection with banks of at most so many captions.

    >>> [with_most(COLLECTIONS[0], most).most for most in (None, 100)], with_most(COLLECTIONS[2], 9_000).most
    ([None, 100], 5000)
    """
    sizes = [size for size in (collection.most, most) if size is not None]
    return replace(collection, most=min(sizes, default=None))


def main() -> None:
    made = parser(__doc__, "default_model")
    made.add_argument(
        "--beside", action="append", default=[], metavar="PREFIX=FILE", help="another result of this study"
    )
    made.add_argument("--plain", action="store_true", help="no banks: a fraction of the time")
    made.add_argument("--most", type=int, metavar="N", help="captions of a bank, evenly spaced (all)")
    arguments = made.parse_args()
    weights = parse_weights(arguments.weights)
    facts = Facts("default_model", arguments, weights)
    libraries = {name: path for name in LIBRARIES if (path := getattr(arguments, name)) is not None}
    told = {name: captions_of(arguments.data, name) for name in libraries}
    collections = [with_most(collection, arguments.most) for collection in COLLECTIONS]
    store = WeightStore()
    held: dict[str, dict[str, list[list[Row]]]] = {}
    for label, path in ((w.label, w.path) for w in weights):
        model = Encoded(store, arguments.cache, path)
        facts.used(label, model)
        searchers = {
            name: searcher_of(View(place, arguments.cache), model) for name, place in libraries.items()
        }
        for collection in collections:
            if collection.library in searchers and asked_of(collection, label):
                progress(f"{label} ({path.parent.name}): {collection.title}")
                runs = held.setdefault(collection.name, {}).setdefault(label, [])
                runs.append(list(rows_of(collection, searchers, told, banks=not arguments.plain)))
    entries = []
    for collection in collections:
        if collection.name in held:
            captioned = len(told[collection.library][collection.split])
            entries += entries_of(collection, held[collection.name], captioned)
    entries += entries_beside(arguments.beside)
    published = json.loads(PUBLISHED.read_text("utf-8"))
    titles = {collection.name: collection.title for collection in collections}
    facts.write(
        {"rows": entries, "published": published},
        text_of(entries, published, titles),
        plots_of(entries, published, titles),
    )


if __name__ == "__main__":
    main()
