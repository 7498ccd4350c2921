"""What does each change of the default model's recipe bring, one by one, over seeds?

    python studies/variants.py --pack everything=all.pack --pack "without MSVD=no-msvd.pack" \\
        --device cuda --jobs 7

A pack (`wordreel train default … --pack FILE`) is one setting: what trains, and its validation part, which
measures. One without a collection validates on that collection, so that it measures unfamiliar videos. Every
variant is trained on every pack by `wordreel train`, 26 epochs, and measured by the learned row alone, text
to video, plain. Runs are stored in RUNS and not trained again. Packs hold the inputs of the recipe that they
were packed with: variants with other inputs (`--only`) want packs of their own. What changes the data and
not the recipe is a pack as well: `--changed "class names as captions=everything:names.pack"` is a row of the
table, trained by the recipe as it is and shown in the column of the pack that it changes.

The spread of a row is that of its seeds. A change is worth keeping where it gains more than that, and on
unfamiliar videos too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.util.atomic import atomic_write

AS_IS = "the recipe as it is"
VARIANTS: dict[str, tuple[str, ...]] = {
    AS_IS: (),
    "probabilities of objects, actions and places as inputs": (
        'model.experts=["appearance", "motion", "faces", "ocr", "speech", "sound", '
        '"appearance-classes", "motion-classes", "sound-classes"]',
    ),
    "eight tokens of appearance and six of motion": (
        "model.expert.appearance.max_tokens=8",
        "model.expert.motion.max_tokens=6",
    ),
    "sound and speech alone in 15 % of the steps": (
        'run.alone=["sound", "speech"]',
        "run.alone_chance=0.15",
    ),
    "soft targets 0.4": ("loss.soft_targets=0.4",),
    "batches of 1,024": ("run.batch=1024",),
    "dropout on features 0.45": ("model.input_dropout=0.45",),
}
KS = ("r1", "r5", "r10")


@dataclass(frozen=True)
class Run:
    """One training."""

    variant: str
    pack: str
    seed: int

    def folder(self, runs: Path) -> Path:
        name = "-".join([self.variant, self.pack, str(self.seed)])
        return runs / "".join(c if c.isalnum() else "-" for c in name.lower())


Train = Callable[[Sequence[str]], None]
Files = Mapping[tuple[str, str], Path]  # by variant and pack


def train(arguments: Sequence[str]) -> None:
    """`wordreel train` in a process of its own; its output is shown where it fails."""
    command = [sys.executable, "-c", "from wordreel.cli import main; main()", "train", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-2000:] or f"`wordreel train` ended with {done.returncode}")


def figures_of(folder: Path) -> dict[str, Any]:
    """The figures in the last row of a run's log, or why there are none."""
    row: dict[str, Any] = json.loads((folder / "log.jsonl").read_text("utf-8").splitlines()[-1])
    figures = {key: value for key, value in row.items() if key.startswith("t2v")}
    return figures or {"error": "nothing was measured: the pack has no validation part"}


def run_one(run: Run, given: argparse.Namespace, files: Files, work: Train) -> dict[str, Any]:
    """Train a run unless it is finished: its figures, or why there are none."""
    folder = run.folder(given.runs)
    if (folder / "finished").exists():
        return figures_of(folder)
    changes = [f"run.epochs={given.epochs}", *given.set, *VARIANTS.get(run.variant, ())]
    more = ["--resume"] if folder.exists() else []
    try:
        work(
            [
                "default",
                "--packed",
                str(files[run.variant, run.pack]),
                "--out",
                str(folder),
                "--seed",
                str(run.seed),
            ]
            + ["--device", given.device, *more]
            + [word for change in changes for word in ("--set", change)]
        )
    except RuntimeError as error:
        return {"error": str(error).splitlines()[-1]}
    (folder / "finished").touch()
    return figures_of(folder)


def summary(results: Mapping[Run, Mapping[str, Any]], packs: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each variant: mean and deviation of R@1, R@5 and R@10 of each pack over the seeds."""
    rows = []
    for variant in dict.fromkeys(run.variant for run in results):
        row: dict[str, Any] = {"variant": variant, "changes": list(VARIANTS.get(variant, ())), "packs": {}}
        for pack in packs:
            found = [
                figures for run, figures in results.items() if (run.variant, run.pack) == (variant, pack)
            ]
            if not found:
                continue
            good = np.array([[one[f"t2v_{k}"] for k in KS] for one in found if "error" not in one])
            if not len(good):
                row["packs"][pack] = {"error": next(one["error"] for one in found)}
                continue
            row["packs"][pack] = {
                "seeds": len(good),
                **{k: float(value) for k, value in zip(KS, good.mean(axis=0), strict=True)},
                "sum": float(good.sum(axis=1).mean()),
                "deviation_of_sum": float(good.sum(axis=1).std(ddof=1)) if len(good) > 1 else None,
            }
        rows.append(row)
    return rows


def page(rows: Sequence[Mapping[str, Any]], packs: Sequence[str], epochs: int) -> str:
    """The table as Markdown."""
    head = ["change", *packs]
    lines = [
        "# Changes of the default model's recipe",
        "",
        f"Made by `studies/variants.py`: {epochs} epochs, the learned row alone, text to video, R@1/R@5/R@10",
        "on the validation part of each pack, in parentheses their sum with its deviation over the seeds.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for row in rows:
        cells = [str(row["variant"])]
        for pack in packs:
            one = row["packs"].get(pack)
            if one is None:
                cells.append("–")
                continue
            if "error" in one:
                cells.append(f"not trained: {one['error']}")
                continue
            spread = "" if one["deviation_of_sum"] is None else f" ± {one['deviation_of_sum']:.1f}"
            recalls = "/".join(f"{one[k]:.1f}" for k in KS)
            cells.append(f"{recalls} ({one['sum']:.1f}{spread}, {one['seeds']} seeds)")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pack", action="append", required=True, metavar="LABEL=FILE")
    parser.add_argument("--only", action="append", choices=VARIANTS, help="some of the variants")
    parser.add_argument("--changed", action="append", default=[], metavar="LABEL=PACK:FILE")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="in every variant")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=26)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side; 7 fit on one large GPU")
    parser.add_argument("--runs", type=Path, default=Path("runs/variants"))
    parser.add_argument("--out", type=Path, default=Path("results/variants"))
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None, work: Train = train) -> None:
    given = arguments(argv)
    packs = {label: Path(file) for label, _, file in (one.partition("=") for one in given.pack)}
    files = {(variant, pack): file for variant in given.only or VARIANTS for pack, file in packs.items()}
    for label, _, place in (one.partition("=") for one in given.changed):
        pack, _, file = place.partition(":")
        if pack not in packs:
            raise SystemExit(f"--changed {label}: no pack is called {pack!r}; give LABEL=PACK:FILE")
        files[label, pack] = Path(file)
    missing = [str(path) for path in files.values() if not path.is_file()]
    if missing:
        raise SystemExit(f"not there: {', '.join(dict.fromkeys(missing))}; give --pack LABEL=FILE")
    every = [Run(variant, pack, seed) for variant, pack in files for seed in range(given.seeds)]
    given.runs.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(given.jobs) as pool:
        results = dict(zip(every, pool.map(lambda run: run_one(run, given, files, work), every), strict=True))
    rows = summary(results, list(packs))
    given.out.mkdir(parents=True, exist_ok=True)
    facts = {"epochs": given.epochs, "seeds": given.seeds, "rows": rows}
    atomic_write(
        given.out / "variants.json", json.dumps(facts, indent=1, ensure_ascii=False).encode() + b"\n"
    )
    text = page(rows, list(packs), given.epochs)
    atomic_write(given.out / "README.md", text.encode())
    print(text)


if __name__ == "__main__":
    main()
