"""`wordreel qbnorm`."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.console.common import JsonOption, print_json, printable
from wordreel.cli.console.option_groups import expand_options
from wordreel.cli.lab.evaluate_options import DeviceOption, GroupingOptions, make_with_beta
from wordreel.cli.lab.evaluate_sources import read_captions
from wordreel.cli.lab.hubness import PlotOption, check_plot, draw, formatted

if TYPE_CHECKING:
    from wordreel.hubness import Method
    from wordreel.lab.evaluate.normalised_rankings import NormalisedRankings

FORMATS = ".npy, .npz, .safetensors, .h5, .pkl or .pt"


@dataclass(frozen=True)
class BankMatrices:
    """The matrices beside the test matrix."""

    bank: Annotated[
        Path | None,
        typer.Option(
            "--bank",
            "--sims_train_test_path",
            metavar="FILE",
            help="Similarities [bank queries, gallery]; test-is and dsl need none.",
        ),
    ] = None
    gallery_bank: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The second bank of the dual methods: [bank items, gallery] similarities between items "
            "(for dual-sinkhorn [bank queries, bank items]).",
        ),
    ] = None


@dataclass(frozen=True)
class NormOptions:
    """The normalisation."""

    method: Annotated[
        str,
        typer.Option(
            help="none, gc, csls, is, dis, cent, nnn, sinkhorn, dual-is, dual-dis or dual-sinkhorn; test-is "
            "(inverted softmax) and dsl are transductive: they use all test queries, and no bank."
        ),
    ] = "dis"
    beta: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|auto",
            help="Inverse temperature: 20 suits cosines; divide it by the scale of logits. auto chooses one "
            "from the bank, without labels.",
            show_default="the method's: 20 for dis",
        ),
    ] = None
    k: Annotated[
        int | None,
        typer.Option(
            "--k", help="The number of nearest neighbours.", show_default="the method's: 1 for dis", min=1
        ),
    ] = None
    direction: Annotated[
        Literal["t2v", "v2t"], typer.Option(help="Direction: text to video (t2v) or video to text (v2t).")
    ] = "t2v"
    device: DeviceOption = "auto"

    def build(self, has_bank: bool, has_gallery_bank: bool) -> Method:
        """Return the method with its parameters, if the banks it needs are there."""
        method = make_with_beta(self.method, self.beta, self.k)
        if self.method.startswith("dual-") != has_gallery_bank:
            raise typer.BadParameter("--gallery-bank goes with the dual methods, and they need it.")
        if not has_bank and not (method.transductive or self.method == "none"):
            raise typer.BadParameter("--bank is needed, unless the method is transductive.")
        return method


@expand_options
def qbnorm(
    test: Annotated[
        Path,
        typer.Option(
            "--test", "--sims_test_path", metavar="FILE", help=f"Similarities [queries, gallery]: {FORMATS}."
        ),
    ],
    matrices: BankMatrices,
    grouping: GroupingOptions,
    norm: NormOptions,
    plot: PlotOption = None,
    as_json: JsonOption = False,
    save: Annotated[Path | None, typer.Option(metavar="OUT.npy", help="Write the normalised scores.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Let --save replace a file.")] = False,
) -> None:
    """Normalise similarities by a query bank, and compare before and after.

    Rows are queries, columns the gallery. For t2v the rows are captions, those of one video next to each
    other, and the columns videos. For v2t both matrices are the other way round: the bank is [bank videos,
    captions] and the test [videos, captions].

    Saved scores rank the gallery within a row. Those of dis are on two scales, corrected rows and plain ones,
    so never compare them between rows, and never transpose them.

    The flags of the published QB-Norm script work too.

    Example: wordreel qbnorm --bank train.npy --test test.npy --mask masks.npy
    """
    inputs = [test, matrices.bank, matrices.gallery_bank, grouping.mask]
    _check_save(save, [path for path in inputs if path], overwrite)
    check_plot(plot)
    method = norm.build(matrices.bank is not None, matrices.gallery_bank is not None)
    facts, result, notes = _normalise(test, matrices, grouping, norm, method, save)
    if plot:
        after = "after, transductive: uses all test queries" if facts["transductive"] else "after"
        counts = {"before": result.before.occurrences, after: result.after.occurrences}
        draw(plot, counts, result.before.k, "videos" if norm.direction == "t2v" else "captions")
    if save:
        facts["saved"] = str(save)
        scales = ""
        if result.corrected is not None:
            plain = result.queries - result.corrected
            scales = f": {result.corrected} rows are corrected, {plain} plain, on two scales"
        notes.append(f"{printable(save)}: compare scores within a row only{scales}")
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_json(facts)
    else:
        _print(facts)


def _normalise(
    test: Path,
    matrices: BankMatrices,
    grouping: GroupingOptions,
    norm: NormOptions,
    method: Method,
    save: Path | None,
) -> tuple[dict[str, Any], NormalisedRankings, list[str]]:
    """Read, fit, rank: the facts to print, the rankings, and notes on what was assumed."""
    from wordreel.hubness import Direction
    from wordreel.lab.evaluate.matrices import read_captioned, read_matrix
    from wordreel.lab.evaluate.normalised_rankings import check_shapes, rank_normalised, with_automatic_beta
    from wordreel.retrieval.metrics import DISPLAYED

    sims, mask, note = read_captioned(test, grouping.key, grouping.mask)
    notes = [note] if note else []
    bank = matrices.bank
    if bank is not None and method.transductive:
        notes.append(f"{method.name} uses the test queries themselves; the bank is not used")
    rows = sims if bank is None or method.transductive else read_matrix(bank, grouping.key)
    second = read_matrix(matrices.gallery_bank, grouping.key) if matrices.gallery_bank else None
    direction = Direction(norm.direction)
    texts, videos = sims.shape if direction is Direction.TEXT_TO_VIDEO else sims.shape[::-1]
    captions = read_captions(grouping, texts, videos, mask)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if norm.beta == "auto":
            check_shapes(rows, sims, captions, direction)
            columns = captions.valid if direction is Direction.VIDEO_TO_TEXT else None
            method = with_automatic_beta(method, rows, columns)
        result = rank_normalised(
            method, rows, sims, captions, direction, gallery_bank=second, save=save, device=norm.device
        )
    notes += dict.fromkeys(str(warning.message) for warning in caught)
    seen = bank is not None and bank.samefile(test)
    facts = {
        "postprocessing": method.label("" if bank is None else printable(bank.name), len(rows), seen),
        "transductive": seen or method.transductive,
        "method": method.name,
        "parameters": asdict(method),
        "direction": direction.value,
        "queries": result.queries,
        "gallery": result.items,
        "bank": 0 if method.transductive else len(rows),
        "corrected": result.corrected,
        "before": result.before.metrics.table(DISPLAYED),
        "after": result.after.metrics.table(DISPLAYED),
        "hubness": {"before": asdict(result.before.hubness), "after": asdict(result.after.hubness)},
    }
    return facts, result, notes


def _print(facts: dict[str, Any]) -> None:
    queries, items = ("captions", "videos") if facts["direction"] == "t2v" else ("videos", "captions")
    settings = ", ".join(f"{name} {value}" for name, value in facts["parameters"].items())
    typer.echo(f"{facts['queries']} {queries} ask for {facts['gallery']} {items}")
    corrected = "" if facts["corrected"] is None else f": {facts['corrected']} queries corrected"
    typer.echo(f"{facts['method']}{f' ({settings})' if settings else ''}{corrected}")
    width = max(len(facts["postprocessing"]), 4)
    typer.echo(" " * width + "".join(f"{name:>8}" for name in facts["before"]))
    for label, side in (("none", "before"), (facts["postprocessing"], "after")):
        typer.echo(f"{label:<{width}}" + "".join(f"{value:>8.1f}" for value in facts[side].values()))
    hubs = facts["hubness"]
    typer.echo(f"{'hubness':<20}{'before':>10}{'after':>10}")
    for name, value in hubs["before"].items():
        typer.echo(f"{name.replace('_', ' '):<20}{formatted(value):>10}{formatted(hubs['after'][name]):>10}")


def _check_save(save: Path | None, inputs: list[Path], overwrite: bool) -> None:
    if save is None:
        return
    if save.suffix != ".npy":
        raise typer.BadParameter("--save writes a NumPy file; give it a name that ends in .npy.")
    if save.exists() and any(path.exists() and save.samefile(path) for path in inputs):
        raise typer.BadParameter(f"--save would overwrite {printable(save)}, which is read.")
    if save.exists() and not overwrite:
        raise typer.BadParameter(f"{printable(save)} exists; --overwrite replaces it.")
