"""What there is on this machine: `wordreel doctor`, `experts` and `models`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import typer

from wordreel.cli.console.common import JsonOption, LibraryOption, print_json, print_result, printable

TITLES = {
    "built-in": "Built in: wordreel use NAME",
    "backbone": "CLIP-like models: wordreel use NAME, FOLDER or HUB_ID (asks before it downloads)",
    "model": "Published models: train one, or use a released checkpoint",
    "recipe": "Recipes: wordreel train features, library or videos NAME",
}


def doctor(library: LibraryOption, as_json: JsonOption = False) -> None:
    """Check the environment, the weights, the experts and the library, and say what to do about problems.

    Example: wordreel doctor
    """
    from wordreel.doctor import run_checks

    rows: list[dict[str, Any]] = []
    for finding in run_checks(library):
        step = finding.next_step.for_command_line() if finding.next_step else ""
        rows.append({"state": finding.state, "what": finding.what, "detail": finding.detail, "advice": step})
        if not as_json:
            typer.echo(f"{finding.state:<5}  {finding.what}: {printable(finding.detail)}")
            if step:
                typer.echo(f"       → {printable(step)}")
    if as_json:
        print_json(rows)
    if any(row["state"] == "error" for row in rows):
        raise typer.Exit(1)


def experts(as_json: JsonOption = False) -> None:
    """List all experts: what they process, whether their weights are installed, and how to get them.

    Example: wordreel experts --json
    """
    from wordreel.experts import registry
    from wordreel.media.types import FrameNeed
    from wordreel.runtime import weight_table as weights
    from wordreel.runtime.store import WeightStore

    store = WeightStore()
    rows = []
    for name, card in registry.cards(store).items():
        missing = [weight for weight in card.weights if not store.has(weight)]
        need = card.need
        rows.append(
            {
                "name": name,
                "modality": card.modality,
                "title": card.title,
                "dimension": card.dim,
                "sampling": f"{need.rate:g} frames/s" if isinstance(need, FrameNeed) else f"{need.rate} Hz",
                "licence": card.licence,
                "default": card.default,
                "installed": not missing,
                "how": "; ".join(weights.find(name).next_step().for_command_line() for name in missing),
                "note": card.note,
            }
        )
    lines = []
    for row in rows:
        state = "installed" if row["installed"] else "missing"
        used = "" if row["default"] else ", only on request (`wordreel add --experts`)"
        lines += [f"{row['name']} ({row['modality']}): {row['title']}"]
        lines += [f"    {state}{used}; {row['dimension']}-d, {row['sampling']}, {row['licence']}"]
        lines += [f"    → {row['how']}"] if row["how"] else []
    print_result(as_json, rows, lines)


@dataclass(frozen=True)
class ModelListing:
    """One line of the list; `get` are the commands that lead to the model."""

    kind: str  # a key of TITLES
    name: str
    title: str
    paper: str
    experts: list[str]
    parameters: int
    get: list[str]
    megabytes: float = 0.0  # of a backbone: to download, or on this disk; of the default model: as it ships
    speed: str = ""
    licence: str = ""
    installed: bool = True


def models(as_json: JsonOption = False) -> None:
    """List every model with its size, paper and how to get it; of backbones also speed and licence.

    Example: wordreel models --json
    """
    listings = [*_built_in(), *_backbones(), *_published(), *_video_text(), *_recipes()]
    width = max(len(listing.name) for listing in listings)
    lines = []
    for kind, title in TITLES.items():
        lines.append(title)
        for listing in (listing for listing in listings if listing.kind == kind):
            paper = f" ({listing.paper})" if listing.paper else ""
            facts = f"{listing.parameters:>13,}  {listing.title}{paper}"
            if kind == "backbone":
                state = ", installed" if listing.installed else ""
                facts = f"{listing.megabytes:>10,.0f} MB  {listing.speed:<6}  {listing.title}, "
                facts += f"licence: {listing.licence}{state}"
            elif kind == "built-in":
                facts = f"{listing.megabytes:>10,.0f} MB  {listing.title}"
            lines.append(f"  {listing.name:<{width}}  {facts}")
            if kind == "model":
                lines.append(f"  {'':<{width}}  {'':>13}    {' | '.join(listing.get)}")
    print_result(as_json, listings, lines)


def _built_in() -> list[ModelListing]:
    from wordreel.models.joint.model import NAME, Joint
    from wordreel.models.joint.text_tower import FOLDER

    title, get = "The default model: pictures and words in one space", [f"wordreel use {NAME}"]
    size = sum(file.stat().st_size for file in FOLDER.iterdir() if file.is_file()) / 1e6
    experts = list(Joint.track_experts)
    return [ModelListing("built-in", NAME, title, "", experts, 0, get, megabytes=round(size, 1))]


def _backbones() -> list[ModelListing]:
    """Those in the table, and others that are installed."""
    from wordreel.backbones.installed import NAMED, installed
    from wordreel.runtime.store import WeightStore

    here = installed(WeightStore())
    rows = []
    for name in (*NAMED, *(name for name in here if name not in NAMED)):
        named, known = NAMED.get(name), here.get(name)
        size = known.bytes / 1e6 if known else named.megabytes if named else 0.0
        rows.append(
            ModelListing(
                "backbone",
                name,
                named.title if named else f"from {known.source}" if known else "",
                "",
                [name],
                0,
                [f"wordreel use {name}"],
                megabytes=round(size, 1),
                speed=named.speed if named else "",
                licence=known.licence if known else named.licence if named else "",
                installed=known is not None,
            )
        )
    return rows


def _published() -> list[ModelListing]:
    from wordreel.lab.models.registry import MODELS, parameters

    rows = []
    for name, entry in MODELS.items():
        get = ["wordreel use CHECKPOINT.pth --text FILE_OR_FOLDER"] if entry.released else []
        get.append(f'wordreel train features RECIPE.toml with base = "{name}"')
        size, experts = parameters()["models"][name], list(entry.make().names)
        rows.append(ModelListing("model", name, entry.title, entry.paper, experts, size, get))
    return rows


def _video_text() -> list[ModelListing]:
    from wordreel.lab.models.clip.config import searchable
    from wordreel.lab.models.registry import VIDEO_TEXT_MODELS, parameters

    rows = []
    for name, entry in VIDEO_TEXT_MODELS.items():
        config = entry.make()
        use = "wordreel use CHECKPOINT.bin"
        if not searchable(config):
            use = "wordreel convert CHECKPOINT.bin --out FOLDER"
        get = [use, f'wordreel train videos RECIPE.toml with base = "{name}"']
        experts = [config.backbone.name]
        size = parameters()["models"][name]
        rows.append(ModelListing("model", name, entry.title, entry.paper, experts, size, get))
    return rows


def _recipes() -> list[ModelListing]:
    from wordreel.lab.models.clip.config import VideoTextConfig
    from wordreel.lab.models.registry import parameters
    from wordreel.lab.training import recipe as recipes

    rows = []
    loaded = [recipes.load(name) for name in recipes.names()]
    for recipe in sorted(loaded, key=lambda recipe: recipe.reads_frames):
        if isinstance(recipe.model, VideoTextConfig):
            experts, verb = [recipe.model.backbone.name], "videos"
        else:
            experts, verb = list(recipe.model.names), "features" if recipe.data.dataset else "library"
        get, size = [f"wordreel train {verb} {recipe.name}"], parameters()["recipes"][recipe.name]
        rows.append(ModelListing("recipe", recipe.name, recipe.title, recipe.paper, experts, size, get))
    return rows
