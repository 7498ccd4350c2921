"""Measure a library, by captions of its videos."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from wordreel.cli.console.common import counter
from wordreel.cli.lab.evaluate_inputs import CaptionSource, Counting
from wordreel.cli.lab.evaluate_options import ExportOptions, LibraryReportOptions, MethodOptions
from wordreel.cli.lab.evaluate_scored import Evaluated, QueryBank, Scored, export, keep_scores

if TYPE_CHECKING:
    from wordreel.lab.evaluate.library import EncodeBlocks
    from wordreel.library import Library


def evaluate_library(
    source: CaptionSource,
    library: Path,
    bank: CaptionSource | None,
    methods: MethodOptions,
    counting: Counting,
    options: LibraryReportOptions,
    exports: ExportOptions,
    out: Path | None,
    on: str | None,
) -> Evaluated:
    from wordreel.hubness import Direction
    from wordreel.lab.datasets import protocols
    from wordreel.lab.evaluate import library as libraries
    from wordreel.lab.evaluate.folds import split_folds
    from wordreel.lab.reports.report import of_folds, of_library
    from wordreel.lab.reports.report_files import write_tables
    from wordreel.lab.reports.report_frames import FrameGrabber
    from wordreel.library import Library

    split = source.read()
    inputs = source.inputs("captions")
    named = source.data is not None and source.source in protocols.names()
    protocol = protocols.load(source.source) if named else None
    opened = Library(library, create=False)
    searcher = opened.searcher()
    banks = {}
    with _encoder(opened, on) as encode:
        matched = libraries.score(
            searcher, split.captions, save=options.save, on_progress=counter("captions"), encode=encode
        )
        if bank is not None:
            others = bank.read().captions
            # A bank that holds captions of the videos that are looked for has seen the test.
            seen = any(texts == others.get(name) for name, texts in split.captions.items())
            texts = [text for group in others.values() for text in group]
            rows = libraries.similarities(
                searcher, texts, matched.contents, on_progress=counter("bank queries"), encode=encode
            )
            banks[Direction.TEXT_TO_VIDEO] = QueryBank(rows, bank.label, seen)
            inputs += bank.inputs("bank")
    present = set(matched.videos)
    here = replace(split, items=tuple(item for item in split.items if item.id in present))
    notes = protocols.deviations(protocol, here) if protocol else ()
    request = counting.request(inputs, protocol, notes)
    scored = Scored(matched.similarities, matched.captions, banks)
    if protocol and protocol.folds:
        reports = [
            of_library(searcher, matched.part(fold), request, scored.part(fold).normalisations(methods))
            for fold in split_folds(matched.captions, protocol.folds)
        ]
        facts = of_folds(reports)
        return facts, write_tables(out, facts) if out else []
    hows = scored.normalisations(methods)
    with keep_scores(exports, counting, hows) as (hows, scores):
        report = of_library(searcher, matched, request, hows)
        export(exports, scores(matched.similarities), matched.captions, counting, matched)
    if out is None:
        return report.facts, []
    with FrameGrabber(searcher) as frames:

        def frame_of(column: int, text: str | None) -> str | None:
            return frames.moment(matched.contents[column], text)

        return report.facts, report.write(out, frame_of if options.frames else None)


@contextmanager
def _encoder(opened: Library, on: str | None) -> Iterator[EncodeBlocks | None]:
    """What encodes texts on the workers that `on` names; None to encode them in this process."""
    if on is None:
        yield None
        return
    from wordreel.banks.library_workers import LibraryWorkers
    from wordreel.workers.open_executor import open_executor

    with redirect_stdout(sys.stderr), open_executor(on) as executor:  # Ray prints
        yield LibraryWorkers.of(executor, opened.store, opened.weights, opened.model).encode
