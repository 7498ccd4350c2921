"""`wordreel qbnorm`."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.common import JsonOption, beta_number, print_json, printable
from wordreel.cli.hubness import KeyOption, PlotOption, draw, shown

if TYPE_CHECKING:
    from wordreel.evaluate.querybank import Outcome
    from wordreel.evaluate.retrieval import Captions

FILES = ".npy, .npz, .safetensors, .h5, .pkl or .pt"


def qbnorm(
    test: Annotated[
        Path,
        typer.Option(
            "--test", "--sims_test_path", metavar="FILE", help=f"Similarities [queries, gallery]: {FILES}."
        ),
    ],
    bank: Annotated[
        Path | None,
        typer.Option(
            "--bank",
            "--sims_train_test_path",
            metavar="FILE",
            help="Similarities [bank queries, gallery]. Transductive methods need none.",
        ),
    ] = None,
    gallery_bank: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The second bank of the dual methods: [bank items, gallery] similarities between items "
            "(for dual-sinkhorn [bank queries, bank items]).",
        ),
    ] = None,
    mask: Annotated[
        Path | None,
        typer.Option(
            "--mask",
            "--test_query_masks_path",
            metavar="FILE",
            help="[videos, captions], 1 for a caption, 0 for filling.",
        ),
    ] = None,
    captions: Annotated[
        str | None,
        typer.Option(
            metavar="COUNTS",
            help="Captions per video, where that is not the same for all: a file with one number per video.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="none, gc, csls, is, dis, cent, nnn, sinkhorn, dsl, dual-is, dual-dis or dual-sinkhorn."
        ),
    ] = "dis",
    beta: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|auto",
            help="Inverse temperature: 20 suits cosines; divide it by the scale of logits. auto chooses one "
            "from the bank, without labels.",
            show_default="the method's: 20 for dis",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k", help="Neighbours the method looks at.", show_default="the method's: 1 for dis", min=1
        ),
    ] = None,
    direction: Annotated[
        Literal["t2v", "v2t"], typer.Option(help="Who asks: texts (t2v) or videos (v2t).")
    ] = "t2v",
    key: KeyOption = None,
    plot: PlotOption = None,
    as_json: JsonOption = False,
    save: Annotated[Path | None, typer.Option(metavar="OUT.npy", help="Write the normalised scores.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --save replace a file.")] = False,
) -> None:
    """Normalise similarities by a query bank, and compare before and after.

    Rows are queries, columns the gallery. For t2v the rows are captions, those of one video next to each
    other, and the columns videos. For v2t both matrices are the other way round: the bank is [bank videos,
    captions] and the test [videos, captions].

    Scores that are saved rank the gallery within a row. Those of dis are on two scales, corrected rows and
    plain ones, so never compare them between rows, and never transpose them.

    The flags of the published QB-Norm script are understood too.

    Example: wordreel qbnorm --bank train.npy --test test.npy --mask masks.npy
    """
    from wordreel.evaluate import matrices, querybank
    from wordreel.hubness import Direction, make_method

    _check_save(save, [path for path in (test, bank, gallery_bank, mask) if path], force)
    given = {"beta": beta_number(beta), "k": k}
    way: Any = make_method(method, **{name: value for name, value in given.items() if value is not None})
    if method.startswith("dual-") != (gallery_bank is not None):
        raise typer.BadParameter("--gallery-bank goes with the dual methods, and they need it.")
    if bank is None and not (way.transductive or method == "none"):
        raise typer.BadParameter("--bank is needed, unless the method is transductive.")

    notes: list[str] = []
    held = matrices.read_arrays(test, key)
    sims = matrices.matrix_among(held, test, key)
    if mask is None and (inside := next((name for name in matrices.MASK_KEYS if name in held), None)):
        notes.append(f"using the mask {inside} that {printable(test.name)} holds")
        masks: Any = held[inside]
    else:
        masks = None if mask is None else matrices.read_mask(mask)
    del held
    rows = sims if bank is None or way.transductive else matrices.read_matrix(bank, key)
    if bank is not None and way.transductive:
        notes.append(f"{method} looks at the test queries themselves; the bank is not used")
    groups = _groups(sims.shape, captions, masks, direction)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        if beta == "auto":
            querybank.check_shapes(rows, sims, groups, Direction(direction))
            way = querybank.with_automatic_beta(way, rows, groups.valid if direction == "v2t" else None)
        second = None if gallery_bank is None else matrices.read_matrix(gallery_bank, key)
        found = querybank.measure(way, rows, sims, groups, Direction(direction), second=second, save=save)
    notes += dict.fromkeys(str(warning.message) for warning in heard)
    seen = bank is not None and bank.samefile(test)
    source = "" if bank is None else printable(bank.name)
    facts = _facts(found, querybank.label(way, source, len(rows), seen), way, direction, len(rows))
    if plot:
        counts = {"before": found.occurrences_before, "after": found.occurrences_after}
        draw(plot, counts, found.hubness_before.k, "videos" if direction == "t2v" else "captions")
    if save:
        facts["saved"] = str(save)
        notes.append(f"{printable(save)}: compare scores within a row only" + _two_scales(found))
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_json(facts)
    else:
        _table(facts)


def _facts(found: Outcome, made_by: str, way: Any, direction: str, bank: int) -> dict[str, Any]:
    return {
        "postprocessing": made_by,
        "method": way.name,
        "parameters": asdict(way),
        "direction": direction,
        "queries": found.queries,
        "gallery": found.items,
        "bank": 0 if way.transductive else bank,
        "corrected": found.corrected,
        "before": asdict(found.before),
        "after": asdict(found.after),
        "hubness": {"before": asdict(found.hubness_before), "after": asdict(found.hubness_after)},
    }


def _table(facts: dict[str, Any]) -> None:
    asking, asked = ("captions", "videos") if facts["direction"] == "t2v" else ("videos", "captions")
    settings = ", ".join(f"{name} {value}" for name, value in facts["parameters"].items())
    typer.echo(f"{facts['queries']} {asking} ask for {facts['gallery']} {asked}")
    corrected = "" if facts["corrected"] is None else f": {facts['corrected']} queries corrected"
    typer.echo(f"{facts['method']}{f' ({settings})' if settings else ''}{corrected}")
    width = max(len(facts["postprocessing"]), 4)
    typer.echo(" " * width + "".join(f"{name:>8}" for name in facts["before"]))
    for made_by, side in (("none", "before"), (facts["postprocessing"], "after")):
        typer.echo(f"{made_by:<{width}}" + "".join(f"{value:>8.1f}" for value in facts[side].values()))
    hubs = facts["hubness"]
    typer.echo(f"{'hubness':<20}{'before':>10}{'after':>10}")
    for name, value in hubs["before"].items():
        typer.echo(f"{name.replace('_', ' '):<20}{shown(value):>10}{shown(hubs['after'][name]):>10}")


def _groups(shape: tuple[int, ...], captions: str | None, mask: Any, direction: str) -> Captions:
    from wordreel.evaluate import matrices, retrieval

    count, videos = shape if direction == "t2v" else shape[::-1]
    counts = None
    if captions is not None:
        import numpy as np

        each = captions.isdecimal()
        counts = np.full(videos, int(captions)) if each else matrices.read_counts(captions)
    return retrieval.arrange(videos, count, counts, mask)


def _check_save(save: Path | None, inputs: list[Path], force: bool) -> None:
    if save is None:
        return
    if save.suffix != ".npy":
        raise typer.BadParameter("--save writes a NumPy file; give it a name that ends in .npy.")
    if save.exists() and any(path.exists() and save.samefile(path) for path in inputs):
        raise typer.BadParameter(f"--save would overwrite {printable(save)}, which is read.")
    if save.exists() and not force:
        raise typer.BadParameter(f"{printable(save)} is there already; --force replaces it.")


def _two_scales(found: Outcome) -> str:
    if found.corrected is None:
        return ""
    return f": {found.corrected} rows are corrected, {found.queries - found.corrected} plain, on two scales"
