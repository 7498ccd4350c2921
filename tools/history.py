"""Say which model each table of results/ measured: the one that ships, an earlier one, or none.

    python -m tools.history          # another model ships: mark the tables of the old one as history
    python -m tools.history NAME…    # these tables were made again with the model that ships

`results/models.json` holds what is known; the marks in the pages of tables and the list in results/README.md
are made from it. A table is a folder of results/, or a result of `wordreel evaluate --out` by its name.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"
MODELS = "models.json"
MARK = "> History: measured with "
LIST = re.compile(r"(<!-- begin: models -->\n)(.*?)(<!-- end: models -->)", re.DOTALL)
HEADING = re.compile(r"\A(?:# [^\n]*\n+)?")


@dataclass
class Measured:
    """What the tables measured. Each table is in one of `current`, `history` and `without`."""

    fingerprint: str  # of the model of the current tables
    current: list[str]
    history: dict[str, str]  # table → the model, in words
    without: list[str]  # tables that measure no model of search

    @classmethod
    def read(cls, results: Path) -> Measured:
        return cls(**json.loads((results / MODELS).read_text("utf-8")))

    def write(self, results: Path) -> None:
        """Write what is known, the marks, and the list."""
        self.current, self.without = sorted(set(self.current)), sorted(set(self.without))
        self.history = dict(sorted(self.history.items()))
        (results / MODELS).write_text(json.dumps(vars(self), indent=1) + "\n", "utf-8")
        for page, text in self.pages(results).items():
            page.write_text(text, "utf-8")

    def pages(self, results: Path) -> dict[Path, str]:
        """Every page below `results` as it should be, with its mark or without."""
        pages = {}
        for page in sorted(results.glob("*/*.md")):
            pages[page] = with_mark(page.read_text("utf-8"), self.history.get(page.parent.name))
        readme = results / "README.md"
        listed = LIST.sub(lambda match: f"{match[1]}{self.listed()}{match[3]}", readme.read_text("utf-8"))
        return {**pages, readme: listed}

    def listed(self) -> str:
        """The tables and their models, for results/README.md."""
        rows = [f"| {', '.join(f'`{name}`' for name in self.current)} | `{self.fingerprint}`, which ships |"]
        rows += [f"| `{name}` | history: {words} |" for name, words in self.history.items()]
        rows += [
            f"| {', '.join(f'`{name}`' for name in self.without)} | none, or models made for the table |"
        ]
        return "\n".join(["| table | model that was measured |", "|---|---|", *rows]) + "\n"


def with_mark(text: str, history: str | None) -> str:
    """A page with the line that says it is history, or without it where `history` is None."""
    text = re.sub(rf"^{re.escape(MARK)}[^\n]*\n\n?", "", text, flags=re.MULTILINE)
    if history is None:
        return text
    end = HEADING.match(text).end()  # type: ignore[union-attr]
    return f"{text[:end]}{MARK}{history}, which does not ship.\n\n{text[end:]}"


def tables_of(results: Path) -> set[str]:
    """Every table: the folders, and the results beside them."""
    files = {path.stem for path in results.glob("*.json") if path.name != MODELS}
    return files | {path.name for path in results.iterdir() if path.is_dir()}


def shipped() -> str:
    """Return the fingerprint of the model that a new library uses."""
    from wordreel import Library

    with tempfile.TemporaryDirectory() as folder, Library(Path(folder) / "library") as library:
        return library.model.fingerprint


def update(measured: Measured, fingerprint: str, again: list[str]) -> None:
    """Make the tables of another model history, and those that were made again current."""
    if fingerprint != measured.fingerprint:
        words = f"the model with fingerprint `{measured.fingerprint}`"
        measured.history |= dict.fromkeys(measured.current, words)
        measured.fingerprint, measured.current = fingerprint, []
    for name in again:
        measured.history.pop(name, None)
        measured.without = [one for one in measured.without if one != name]
        measured.current.append(name)


def main() -> None:
    again = sys.argv[1:]
    if unknown := set(again) - tables_of(RESULTS):
        raise SystemExit(f"there is no table {', '.join(sorted(unknown))} in {RESULTS}")
    measured = Measured.read(RESULTS)
    update(measured, shipped(), again)
    measured.write(RESULTS)
    print(measured.listed(), end="")
    print("README.md shows figures of default_model: run python -m tools.readme")


if __name__ == "__main__":
    main()
