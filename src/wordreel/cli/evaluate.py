"""`wordreel evaluate`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from wordreel.cli.common import JsonOption, LibraryOption, counter, print_json, printable
from wordreel.cli.evaluate_inputs import ARRAYS, About, Captioned, Norm, counts_of
from wordreel.cli.hubness import KeyOption

if TYPE_CHECKING:
    from wordreel.evaluate.report_build import Report


def evaluate(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE…",
            help="Similarities [captions, videos] (.npy, .npz, .safetensors, .h5, .pkl, .pt); or captions of "
            "a library's videos (.csv, .jsonl, .json, FILE.json:key); or a protocol's name, with --data. "
            "Several matrices, of several seeds, give mean ± standard deviation.",
        ),
    ],
    library: LibraryOption,
    data: Annotated[
        Path | None, typer.Option(help="The folder with the dataset's annotations, for a named protocol.")
    ] = None,
    split: Annotated[str | None, typer.Option(help="Which split of the captions.")] = None,
    ids: Annotated[
        str | None, typer.Option(help="Only these ids: a file with one a line, or FILE.json:key.key.")
    ] = None,
    captions_per_video: Annotated[
        int | None, typer.Option(help="Of a matrix: neighbouring rows that belong to one video.", min=1)
    ] = None,
    counts: Annotated[
        str | None, typer.Option(help="Of a matrix: a file with the number of captions of each video.")
    ] = None,
    mask: Annotated[
        Path | None, typer.Option(help="Of a matrix: [videos, captions], 1 for a caption, 0 for filling.")
    ] = None,
    key: KeyOption = None,
    direction: Annotated[
        Literal["t2v", "v2t", "both"], typer.Option(help="Who asks: texts (t2v), videos (v2t) or both.")
    ] = "both",
    v2t: Annotated[
        Literal["ce", "clip"] | None,
        typer.Option(
            help="How videos that ask are counted: by their best caption (ce) or group of captions (clip).",
            show_default="the protocol's, or ce",
        ),
    ] = None,
    bank: Annotated[
        str | None,
        typer.Option(
            help="Report a normalised ranking too, by this bank: a matrix or captions, as the source."
        ),
    ] = None,
    bank_ids: Annotated[str | None, typer.Option(help="Only these ids of a bank of captions.")] = None,
    method: Annotated[str, typer.Option(help="How the bank is used: dis, is, csls, gc, nnn, …")] = "dis",
    beta: Annotated[str | None, typer.Option(help="A number, or auto.", metavar="NUMBER|auto")] = None,
    title: Annotated[str | None, typer.Option(help="What the report is called.")] = None,
    seed: Annotated[
        list[int] | None, typer.Option(help="The seed that the model was trained with; kept with the result.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PREFIX", help="Write PREFIX.json, .md, .tex, .html and .ranks.npz."),
    ] = None,
    frames: Annotated[bool, typer.Option(help="Put pictures of videos into the page.")] = True,
    save: Annotated[
        Path | None, typer.Option(metavar="SIMS.npy", help="Keep a library's similarities.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure retrieval: of a similarity matrix, or of a library with captions of its videos.

    Plain numbers come first, and every number carries its post-processing label.

    Example: wordreel evaluate captions.json --ids splits.json:official.test --out results/mine
    Example: wordreel evaluate sims.npy --captions-per-video 20 --v2t clip
    """
    from wordreel.evaluate.report_build import of_seeds
    from wordreel.evaluate.report_files import write_tables
    from wordreel.evaluate.report_tables import plain_text, rows_of

    if save is not None and save.suffix != ".npy":
        raise typer.BadParameter("--save writes a NumPy file; give it a name that ends in .npy.")
    norm = Norm(bank, bank_ids, method, beta)
    ways: Any = ("t2v", "v2t") if direction == "both" else (direction,)
    about = About(title or Path(sources[0]).name, ways, v2t, tuple(seed or ()))
    written: list[Path] = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        if data is None and all(Path(each).suffix.lower() in ARRAYS for each in sources):
            if save or ids or split:
                raise typer.BadParameter("--save, --ids and --split are for captions, not for a matrix.")
            each = str(captions_per_video) if captions_per_video else counts
            reports = [_of_matrix(Path(path), key, each, mask, norm, about) for path in sources]
            facts = reports[0].facts if len(reports) == 1 else of_seeds(reports)
            if out and len(reports) > 1:
                written = write_tables(out, facts)
            elif out:
                written = reports[0].write(out)
        elif len(sources) > 1:
            raise typer.BadParameter("several sources must all be matrices, one per seed.")
        else:
            if captions_per_video or counts or mask:
                raise typer.BadParameter("--captions-per-video, --counts and --mask are for a matrix.")
            wanted = Captioned(sources[0], data, split, ids)
            facts, written = _of_library(wanted, library, norm, about, save, out, frames)
    measured = facts["measured"]
    notes = [*measured["deviations"], *(str(warning.message) for warning in heard)]
    if measured.get("missing"):
        notes.append(f"{measured['missing']} captioned videos are not in the library and were left out")
    for note in dict.fromkeys(notes):
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_json(facts)
        return
    typer.echo(plain_text(rows_of(facts["runs"])), nl=False)
    if written:
        typer.echo(f"wrote {', '.join(printable(path) for path in written)}", err=True)


def _of_matrix(
    path: Path, key: str | None, captions: str | None, mask: Path | None, norm: Norm, about: About
) -> Report:
    from wordreel.evaluate import matrices, report_build
    from wordreel.evaluate.report_files import input_of
    from wordreel.evaluate.retrieval import arrange

    held = matrices.read_arrays(path, key)
    sims = matrices.matrix_among(held, path, key)
    inputs = [input_of("similarities", path)]
    masks: Any = None
    if mask is not None:
        masks = matrices.read_mask(mask)
        inputs.append(input_of("mask", mask))
    elif inside := next((name for name in matrices.MASK_KEYS if name in held), None):
        masks = held[inside]
        typer.echo(f"note: using the mask {inside} that {printable(path.name)} holds", err=True)
    groups = arrange(sims.shape[1], sims.shape[0], counts_of(captions, sims.shape[1]), masks)
    way, bank, seen = norm.made(), None, False
    if norm.bank and way is not None and not way.transductive:
        bank = matrices.read_matrix(Path(norm.bank), key)
        seen = Path(norm.bank).samefile(path)
        inputs.append(input_of("bank", Path(norm.bank)))
    change = way and report_build.normalise(way, bank, norm.source, norm.beta == "auto", seen)
    return report_build.of_matrix(sims, groups, about.asked(inputs), change)


def _of_library(
    wanted: Captioned,
    library: Path,
    norm: Norm,
    about: About,
    save: Path | None,
    out: Path | None,
    frames: bool,
) -> tuple[dict[str, Any], list[Path]]:
    from wordreel.api import Library
    from wordreel.datasets import protocols
    from wordreel.evaluate import library as libraries
    from wordreel.evaluate import report_build
    from wordreel.evaluate.report_frames import Camera

    split = wanted.read()
    inputs = wanted.inputs("captions")
    named = wanted.data is not None and wanted.source in protocols.names()
    protocol = protocols.load(wanted.source) if named else None
    searcher = Library(library, create=False).searcher()  # a trained model would open its own searcher here
    scored = libraries.score(searcher, split.captions, save=save, on_progress=counter("captions"))
    way, bank, seen = norm.made(), None, False
    if norm.bank and way is not None and not way.transductive:
        source = Captioned(norm.bank, None, None, norm.ids)
        others = source.read().captions
        # A bank that holds captions of the videos that are asked for has seen the test.
        seen = any(texts == others.get(name) for name, texts in split.captions.items())
        texts = [text for group in others.values() for text in group]
        bank = libraries.similarities(searcher, texts, scored.contents, on_progress=counter("bank queries"))
        inputs += source.inputs("bank")
    change = way and report_build.normalise(way, bank, norm.source, norm.beta == "auto", seen)
    found = set(scored.videos)
    here = replace(split, items=tuple(item for item in split.items if item.id in found))
    notes = protocols.deviations(protocol, here) if protocol else ()
    asked = about.asked(inputs, protocol.v2t if protocol else None, notes)
    report = report_build.of_library(searcher, scored, asked, change)
    if out is None:
        return report.facts, []
    with Camera(searcher) as camera:

        def look(column: int, text: str | None) -> str | None:
            return camera.moment(scored.contents[column], text)

        return report.facts, report.write(out, look if frames else None)
