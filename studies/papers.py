"""Do the papers' models (CE, MoEE, MMT) behave on our own experts as their papers say?

    python studies/papers.py pack --library msvd.lib --captions captions.json --splits splits.json --out FILE
    python studies/papers.py train --data FILE --out DIR --device cuda --grid
    python studies/papers.py table --runs DIR --out results/papers

`pack` is only needed to train where the library is not; `train` takes --library, --captions and --splits too.
`train` writes DIR/runs.json after every run and goes on from it when it is called again. `table` makes
`papers.json`, `README.md` and a plot from it: the models beside the published figures, the ablations, and
which of the papers' findings hold.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper_models import material
from paper_models.rows import ROWS, chosen
from paper_models.work import Plan, run_all


@dataclass(frozen=True)
class Place:
    """Where the material is; called, it is read. Travels to other processes as it is."""

    data: Path | None = None
    library: Path | None = None
    captions: Path | None = None
    splits: Path | None = None
    most: int = 0

    def __call__(self) -> material.Study:
        if self.data is not None:
            return material.load(self.data)
        if self.library is None or self.captions is None or self.splits is None:
            raise ValueError("a library needs captions and splits")
        lists = _read(self.splits)
        return material.gather(
            self.library, _read(self.captions), lists.get("official", lists), most=self.most
        )


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def pack(given: argparse.Namespace) -> None:
    study = _place(given)()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    material.save(study, given.out)
    say(f"{given.out}: {given.out.stat().st_size / 2**20:.1f} MiB")
    say(json.dumps({**study.facts(), "lost": material.lost(study, material.load(given.out))}, indent=1))


def train(given: argparse.Namespace) -> None:
    cuda = given.device.startswith("cuda")
    plan = Plan(
        chosen([name for name in (given.only or "").split(",") if name]),
        given.seeds,
        given.grid,
        given.device,
        given.jobs or (8 if cuda else 1),
        cuda and not given.step_by_step,
        given.limit_seconds,
        given.epochs,
    )
    begun = time.monotonic()
    records = run_all(_place(given), plan, given.out, say)
    say(f"{len(records.runs)} runs in {records.path}, {time.monotonic() - begun:.0f} s")


def table(given: argparse.Namespace) -> None:
    from paper_models.table import plot, report

    found = _read(given.runs / "runs.json")
    facts, text = report(found)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "papers.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (given.out / "README.md").write_text(text, "utf-8")
    (given.out / "rows.svg").write_text(plot(facts["rows"]), "utf-8")
    say(f"wrote {given.out}: papers.json, README.md and rows.svg")


def _place(given: argparse.Namespace) -> Place:
    data = getattr(given, "data", None)
    wanted = [data] if data is not None else [given.library, given.captions, given.splits]
    missing = [path for path in wanted if path is None or not path.exists()]
    if missing:
        raise SystemExit(f"give --data FILE, or --library, --captions and --splits; not there: {missing}")
    return Place(data, given.library, given.captions, given.splits, given.videos)


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = made.add_subparsers(required=True)
    source = argparse.ArgumentParser(add_help=False)
    source.add_argument("--library", type=Path, help="library whose tracks are the features")
    source.add_argument("--captions", type=Path, help="captions.json: id to sentences")
    source.add_argument("--splits", type=Path, help="splits.json: train, val and test lists of ids")
    source.add_argument("--videos", type=int, default=0, help="at most so many videos of a split")
    one = verbs.add_parser("pack", parents=[source], help="put the material into one small file")
    one.add_argument("--out", type=Path, required=True, metavar="FILE")
    one.set_defaults(do=pack)
    two = verbs.add_parser("train", parents=[source], help="train and score every row")
    two.add_argument("--data", type=Path, metavar="FILE", help="what `pack` wrote")
    two.add_argument("--out", type=Path, required=True, metavar="DIR")
    two.add_argument("--device", default="cpu")
    two.add_argument("--only", help=f"some of {','.join(row.name for row in ROWS)}")
    two.add_argument("--seeds", type=int, default=3)
    two.add_argument("--grid", action="store_true", help="choose each family's setting on val first")
    two.add_argument("--jobs", type=int, default=0, help="runs side by side (default: 8 on a GPU, else 1)")
    two.add_argument("--limit-seconds", type=float, default=0.0, help="begin no run after so long")
    two.add_argument("--epochs", type=int, default=0, help="so many epochs in every run, to try things out")
    two.add_argument("--step-by-step", action="store_true", help="no CUDA graphs")
    two.set_defaults(do=train)
    three = verbs.add_parser("table", help="tables and findings from the runs")
    three.add_argument("--runs", type=Path, required=True, metavar="DIR")
    three.add_argument("--out", type=Path, default=Path("results/papers"), metavar="DIR")
    three.set_defaults(do=table)
    return made.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    given = arguments(argv)
    given.do(given)


if __name__ == "__main__":
    main()
