"""Similarities on their way to a report: with their banks, in folds, and as files for other programs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wordreel.cli.lab.evaluate_inputs import Counting, caption_counts
from wordreel.cli.lab.evaluate_options import BankOptions, ExportOptions, GroupingOptions, MethodOptions

if TYPE_CHECKING:
    from wordreel.hubness import Direction
    from wordreel.lab.evaluate.folds import Fold
    from wordreel.lab.evaluate.normalised_rankings import Normalisation
    from wordreel.retrieval.caption_ranks import Captions
    from wordreel.types import Array

Evaluated = tuple[dict[str, Any], list[Path]]
"""The facts of a report, and the files that were written."""


@dataclass(frozen=True, eq=False)
class QueryBank:
    """A bank of one direction: `rows [bank queries, gallery]`, and whether it holds test queries."""

    rows: Array
    source: str
    seen: bool = False


@dataclass(frozen=True, eq=False)
class Scored:
    """Similarities `[captions, videos]` and the banks that normalise them."""

    similarities: Array
    captions: Captions
    banks: Mapping[Direction, QueryBank]

    def part(self, fold: Fold) -> Scored:
        """One fold; a bank's columns are the gallery's."""
        from wordreel.hubness import Direction

        spans = {Direction.TEXT_TO_VIDEO: fold.columns, Direction.VIDEO_TO_TEXT: fold.rows}
        return replace(
            self,
            similarities=self.similarities[fold.rows, fold.columns],
            captions=fold.captions,
            banks={way: replace(bank, rows=bank.rows[:, spans[way]]) for way, bank in self.banks.items()},
        )

    def normalisations(self, methods: MethodOptions) -> list[Normalisation]:
        """Each method in each direction that it has a bank for; transductive methods need none."""
        from wordreel.hubness import Direction
        from wordreel.lab.evaluate.normalised_rankings import Normalisation, with_automatic_beta

        made = []
        for method, automatic in methods.chosen(bool(self.banks)):
            for direction in Direction:
                own = None if method.transductive else self.banks.get(direction)
                if own is None and not method.transductive:
                    continue
                texts = direction is Direction.TEXT_TO_VIDEO
                fitted = method
                if automatic:
                    rows = own.rows if own else self.similarities if texts else self.similarities.T
                    fitted = with_automatic_beta(method, rows, None if texts else self.captions.valid)
                made.append(
                    Normalisation(fitted, direction=direction, device=methods.device)
                    if own is None
                    else Normalisation(fitted, own.rows, own.source, direction, own.seen, methods.device)
                )
        return made


def read_scored(path: Path, grouping: GroupingOptions, bank: BankOptions) -> tuple[Scored, str | None]:
    """A matrix and its banks from their files, and what the user should know of how it was read."""
    from wordreel.lab.evaluate.matrices import read_captioned, read_matrix
    from wordreel.retrieval.caption_ranks import arrange

    sims, masks, note = read_captioned(path, grouping.key, grouping.mask)
    counts = caption_counts(grouping.captions_per_video, grouping.counts, sims.shape[1])
    texts, videos = sims.shape
    if counts is None and masks is None and texts > videos and texts % videos == 0:
        note = (
            f"{texts} rows and {videos} columns are read as {texts // videos} captions of each video, those "
            "of one video next to each other; say otherwise with --captions-per-video or --counts"
        )
    captions = arrange(sims.shape[1], sims.shape[0], counts, masks)
    banks = {
        direction: QueryBank(read_matrix(file, grouping.key), file.name, file.samefile(path))
        for direction, file in bank.files.items()
    }
    return Scored(sims, captions, banks), note


@contextmanager
def keep_scores(
    options: ExportOptions, counting: Counting, hows: list[Normalisation]
) -> Iterator[tuple[list[Normalisation], Callable[[Array], Array]]]:
    """Have the normalised scores written where they are to be exported; afterwards, `scores` reads them."""
    import numpy as np

    from wordreel.hubness import Direction

    direction = counting.directions[0]
    exported = [how for how in hows if how.direction is direction]
    if options.export_trec is None or not exported:
        yield hows, lambda similarities: similarities
        return
    if len(exported) > 1:
        raise typer.BadParameter("--export-trec writes one ranking; name one --method.")
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "scores.npy"

        def scores(similarities: Array) -> Array:
            rows: Array = np.load(saved, mmap_mode="r")
            return rows if direction is Direction.TEXT_TO_VIDEO else rows.T

        yield [replace(how, save=saved) if how.direction is direction else how for how in hows], scores


def export(
    options: ExportOptions, scores: Array, captions: Captions, counting: Counting, scored: Any
) -> None:
    """Write the exchange files that were requested: of texts that look for videos, unless only videos ask."""
    from wordreel.lab.evaluate import exchange

    direction = counting.directions[0]
    ids = exchange.captioned_ids(captions, scored.videos if scored else ())
    if options.export_trec:
        exchange.export_run(options.export_trec, scores, captions, ids, direction)
    if options.export_qrels:
        exchange.export_qrels(options.export_qrels, captions, ids, direction)
    if options.export_beir:
        texts = scored.texts if scored else ()
        exchange.export_beir(options.export_beir, captions, ids, texts, direction)
