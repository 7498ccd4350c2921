"""How well do queries in other languages find what their English originals find?

    python studies/languages.py --data DATA --flickr8k flickr8k.lib --captions flickr8k_dev.tsv \\
        [--sentences FOLDER] [--weights FOLDER]

The captions are a table of a picture's file name and its caption in English and other languages, whose codes
`--languages` gives in order; every picture of the library with a name from the table competes. With
`--sentences`, a folder of `CODE.txt` files whose lines translate one another (`en.txt` the originals): the
share of sentences whose nearest English one is their own original. Nothing of either is trained on.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from common import Facts, parse_weights, parser, progress
from engines import Encoded, View, searcher_of

from wordreel.catalogue.store import LibraryStore
from wordreel.lab.reports.tables import markdown
from wordreel.retrieval.metrics import retrieval_metrics
from wordreel.retrieval.ranks import ranks_of
from wordreel.runtime.store import WeightStore
from wordreel.search.words.understanding import LANGUAGES
from wordreel.types import Float32

ENGLISH = "en"
COLUMNS = {"r1": "R@1", "r5": "R@5", "r10": "R@10"}


def read_captions(path: Path, languages: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return language → picture → caption of a table, plain or gzip."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return {
        language: {row[0]: row[column] for row in rows if row[column]}
        for column, language in enumerate(languages, 1)
    }


def find_pictures(model: Encoded, view: LibraryStore, captions: Mapping[str, str]) -> dict[str, float]:
    """Return recall and ranks of the pictures that captions describe, plain."""
    searcher = searcher_of(view, model)
    names = {Path(file.path).name: file.content for file in view.files()}
    contents = sorted({names[name] for name in captions if name in names})
    items = np.array([searcher.snapshot.rows(content)[0] for content in contents])
    vectors = np.asarray(searcher.snapshot.gallery.vectors[items])[:, 0]
    asked = [(text, contents.index(names[name])) for name, text in captions.items() if name in names]
    queries = model.sentences([text for text, _ in asked])
    ranks = ranks_of(queries @ vectors.T, np.array([right for _, right in asked]))
    return {**asdict(retrieval_metrics(np.asarray(ranks, np.float64))), "pictures": len(contents)}


def find_originals(sentences: Float32, originals: Float32) -> dict[str, float]:
    """Return recall and ranks of the originals of sentences `[n, dim]`."""
    ranks = ranks_of(sentences @ originals.T, np.arange(len(sentences)))
    return asdict(retrieval_metrics(np.asarray(ranks, np.float64)))


def text_of(figures: Mapping[str, Any]) -> str:
    """Return the README of the results."""
    english = figures["pictures"][ENGLISH]["r1"]
    rows = [["language", *COLUMNS.values(), "R@1 of English"]]
    for language, found in figures["pictures"].items():
        values = [f"{found[key]:.1f}" for key in COLUMNS]
        rows.append([LANGUAGES.get(language, language), *values, f"{found['r1'] / english:.0%}"])
    count = int(figures["pictures"][ENGLISH]["pictures"])
    parts = [
        "# Queries in other languages\n",
        f"Captions of {count:,} pictures, text → picture by the row `seen` alone, plain.\n",
        markdown(rows),
    ]
    if figures["sentences"]:
        rows = [["language", *COLUMNS.values()]]
        for language, found in figures["sentences"].items():
            values = [f"{found[key]:.1f}" for key in COLUMNS]
            rows.append([LANGUAGES.get(language, language), *values])
        parts += [
            f"\nThe English original among {figures['originals']:,} (translated captions):\n",
            markdown(rows),
        ]
    return "\n".join(parts)


def main() -> None:
    """Measure one model."""
    options = parser(__doc__, "languages")
    options.add_argument("--captions", type=Path, required=True)
    options.add_argument("--languages", nargs="+", default=[ENGLISH, "de", "fr", "cs"])
    options.add_argument("--sentences", type=Path)
    arguments = options.parse_args()
    (weights,) = parse_weights(arguments.weights)
    facts = Facts("languages", arguments, [weights])
    model = Encoded(WeightStore(), arguments.cache, weights.path)
    facts.used(weights.label, model)
    captions = read_captions(arguments.captions, arguments.languages)
    with View(arguments.flickr8k, arguments.cache) as view:
        pictures = {language: find_pictures(model, view, own) for language, own in captions.items()}
    sentences: dict[str, Any] = {}
    count = 0
    if arguments.sentences is not None:
        lines = {
            file.stem: file.read_text("utf-8").splitlines() for file in arguments.sentences.glob("*.txt")
        }
        originals = model.sentences(lines.pop(ENGLISH))
        count = len(originals)
        sentences = {
            language: find_originals(model.sentences(own), originals)
            for language, own in sorted(lines.items())
        }
        progress(f"{len(sentences)} languages of sentences")
    figures = {"pictures": pictures, "sentences": sentences, "originals": count}
    facts.write(figures, text_of(figures), {})


if __name__ == "__main__":
    main()
