"""Measure CUB and SOP: pictures that ask for others of their class."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from wordreel.cli.console.common import print_json
from wordreel.cli.lab.evaluate_inputs import CaptionSource
from wordreel.cli.lab.evaluate_options import MethodOptions

if TYPE_CHECKING:
    from wordreel.lab.evaluate.instance import InstanceMetrics


def evaluate_pictures(
    source: CaptionSource, path: Path, bank: Path | None, methods: MethodOptions, as_json: bool
) -> None:
    """Measure embeddings of a split, plainly first, then with each normalisation."""
    from wordreel.errors import EvaluationError
    from wordreel.lab.datasets import protocols
    from wordreel.lab.evaluate.instance import embedding_metrics
    from wordreel.lab.evaluate.matrices import read_matrix

    chosen = methods.chosen(bank is not None)
    if any(automatic for _, automatic in chosen):
        raise typer.BadParameter("--beta auto is for captions; give a number here.")
    protocol = protocols.load(source.source)
    split = source.read()
    embeddings = read_matrix(path)
    if len(embeddings) != len(split.items):
        raise EvaluationError(
            f"{path} holds {len(embeddings)} embeddings, but split {split.name!r} of "
            f"{split.dataset} has {len(split.items)} pictures"
        )
    labels = [item.label for item in split.items]
    rows = None if bank is None else read_matrix(bank)
    seen = bank is not None and bank.samefile(path)
    entries = [_entry("none", False, embedding_metrics(embeddings, labels, protocol.recall))]
    for method, _ in chosen:
        metrics = embedding_metrics(embeddings, labels, protocol.recall, method, rows)
        label = method.label(bank.name if bank else "", 0 if rows is None else len(rows), seen)
        entries.append(_entry(label, method.transductive or seen, metrics))
    for note in protocols.deviations(protocol, split):
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_json({"protocol": source.source, "split": split.name, "runs": entries})
    else:
        _table(entries)


def _entry(label: str, transductive: bool, metrics: InstanceMetrics) -> dict[str, Any]:
    return {"postprocessing": label, "transductive": transductive, **asdict(metrics)}


def _table(entries: list[dict[str, Any]]) -> None:
    from wordreel.lab.reports.tables import plain_text

    plain = entries[0]
    typer.echo(f"{plain['queries']} pictures ask for others of their class among {plain['items']}")
    rows = [["post-processing", *(f"R@{k}" for k in plain["recall"]), "mAP", "mAP@R"]]
    for entry in entries:
        figures = [*entry["recall"].values(), entry["mean_average_precision"], entry["map_at_r"]]
        rows.append([entry["postprocessing"], *(f"{value:.1f}" for value in figures)])
    typer.echo(plain_text(rows), nl=False)
