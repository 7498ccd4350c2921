"""`wordreel evaluate`."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from wordreel.cli.common import JsonOption, LibraryOption, print_json


def evaluate(
    captions: Annotated[
        str, typer.Argument(help='JSON: {"file name": ["caption", …], …}; FILE.json:key where it is inside.')
    ],
    library: LibraryOption,
    ids: Annotated[
        str | None, typer.Option(help="Only these ids: a file with one a line, or FILE.json:key.key.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write OUT.json and OUT.md beside printing.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a library: captions are the queries, the captioned videos the gallery.

    Example: wordreel evaluate captions.json --ids splits.json:official.test --out results/mine
    """
    from wordreel.api import Library
    from wordreel.evaluate import library as evaluation
    from wordreel.evaluate.captions import read_captions, read_ids

    texts = read_captions(captions)
    if ids:
        texts = {key: texts[key] for key in read_ids(ids) if key in texts}

    def moved(done: int, total: int) -> None:
        if sys.stderr.isatty():
            typer.echo(f"\r{done}/{total} captions", nl=done == total, err=True)

    found = evaluation.evaluate(Library(library, create=False).engine(), texts, moved)
    command = shlex.join(["wordreel", *(Path(a).name if "/" in a else a for a in sys.argv[1:])])
    facts = evaluation.report(found, captions, command)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        out.with_suffix(".md").write_text(evaluation.table(found), encoding="utf-8")
    if as_json:
        print_json(facts)
    else:
        typer.echo(evaluation.table(found), nl=False)
