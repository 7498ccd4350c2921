"""`wordreel train default`: the model that comes with wordreel, made anew."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import typer

from wordreel.cli.common import long_time, print_json, printable
from wordreel.cli.evaluate_inputs import Captioned

NAME = "default"


def train_default(
    rows: Sequence[tuple[Any, ...]],
    validation: Captioned | None,
    seeds: Sequence[int],
    changes: Sequence[str],
    device: str,
    out: Path,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Train once per seed on the libraries of `rows` (library, captions, split, ids, share)."""
    from wordreel.models.reel import checkpoint
    from wordreel.training.fill import fill
    from wordreel.training.recipe import put
    from wordreel.training.reel import captions, material
    from wordreel.training.reel.fit import fit
    from wordreel.training.reel.settings import Settings
    from wordreel.weights.store import WeightStore

    values: dict[str, Any] = {}
    for change in changes:
        put(values, change)
    for key, option in {"repeat": "--share", "seed": "--seed"}.items():
        if key in values:
            raise typer.BadParameter(f"{key} is set by {option}.")
    wanted = fill(Settings, values, NAME)
    places = {
        seed: out / (f"seed-{seed}" if len(seeds) > 1 else "") / checkpoint.SHIPPED.name for seed in seeds
    }
    there = [place for place in places.values() if place.exists()]
    if there and not overwrite:
        raise typer.BadParameter(
            f"{printable(there[0])} is there already; name another --out, or --overwrite"
        )

    sources, repeat = [], {}
    for number, (library, told, split, ids, share) in enumerate(rows):
        said = {"train": Captioned(told, None, split, None if ids == "-" else ids).read().captions}
        if number == 0 and validation is not None:
            said["val"] = validation.read().captions
        name = f"{number}-{Path(library).name}"
        sources.append(material.Source(name, Path(library), said))
        repeat[name] = max(round(share or 1), 1)
    found = material.gather(sources)
    if not as_json:
        typer.echo(f"{len(found)} items with {len(found.texts)} captions", err=True)
    spoken = captions.encode(found.texts, WeightStore())
    results = {}
    for seed in seeds:
        settings = replace(wanted, seed=seed, repeat=repeat)
        made = fit(found, spoken, settings, device, None if as_json else _moved)
        made.checkpoint.card["validation"] = {name: asdict(r) for name, r in made.validation.items()}
        place = places[seed]
        place.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.save(place, made.checkpoint)
        results[str(place)] = made.checkpoint.card["validation"]
    if as_json:
        print_json(results)
        return
    for written, measured in results.items():
        typer.echo(f"wrote {printable(written)}")
        for name, r in measured.items():
            figures = f"R@1 {r['r1']:.1f}  R@5 {r['r5']:.1f}  R@10 {r['r10']:.1f}"
            typer.echo(f"  {name}: {figures}  ({r['queries']} captions)")


def _moved(now: dict[str, Any]) -> None:
    left = now["seconds"] / now["epoch"] * (now["epochs"] - now["epoch"])
    if sys.stderr.isatty() or now["epoch"] % 10 == 0 or now["epoch"] == now["epochs"]:
        where = f"{now['what']}: epoch {now['epoch']}/{now['epochs']}"
        typer.echo(f"{where}  loss {now['loss']:.3f}  {long_time(left)} left", err=True)
