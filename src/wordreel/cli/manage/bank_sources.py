"""Where the queries of a bank come from: options of `bank build` and `bank add`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wordreel.cli.lab.evaluate_inputs import CaptionSource

if TYPE_CHECKING:
    from wordreel.banks.sources import BankQueries

DataOption = Annotated[
    Path | None, typer.Option("--data", help="The folder with the annotations of a dataset that is named.")
]
SplitOption = Annotated[str | None, typer.Option("--split", help="Which split of the captions.")]
IdsOption = Annotated[
    str | None, typer.Option("--ids", help="Only the captions of these ids: a file, or FILE.json:key.key.")
]


@dataclass(frozen=True)
class SourceOptions:
    """Captions, a query log or the built-in list, at most one of them."""

    captions: Annotated[
        str | None,
        typer.Option(
            "--captions", help="Captions: .csv, .jsonl, .json, FILE.json:key, or a dataset with --data."
        ),
    ] = None
    data: DataOption = None
    split: SplitOption = None
    ids: IdsOption = None
    log: Annotated[
        str | None, typer.Option("--log", help="A query log: a query or a JSON object a line; - is stdin.")
    ] = None
    builtin: Annotated[
        bool, typer.Option("--builtin", help="The everyday queries that come with wordreel.")
    ] = False
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most this many, evenly spaced over the source.")
    ] = None

    def gather(self, everyday: bool = False) -> BankQueries:
        """Queries from the one named source; the everyday ones if `everyday` and none is named."""
        from wordreel.banks import sources

        if sum((bool(self.captions), self.log is not None, self.builtin)) > 1:
            raise typer.BadParameter("name one source: --captions, --log or --builtin")
        if self.captions:
            split = CaptionSource(self.captions, self.data, self.split, self.ids).read()
            queries = sources.from_captions(split.captions, Path(self.captions).name, split.name)
        elif self.log is not None:
            queries = sources.from_log(self.log)
        elif self.builtin or everyday:
            queries = sources.builtin()
        else:
            raise typer.BadParameter("name a source: --captions FILE, --log FILE or --builtin")
        return sources.subsample(queries, self.limit)


NOWHERE = SourceOptions()
