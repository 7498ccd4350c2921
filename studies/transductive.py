"""What is it worth to see all test queries at once, and how much of it does a bank of training queries give?

The pattern of TS2-Net's supplementary table 1: a model plainly, with inverted softmax and with DSL over the
test queries (both transductive), and beside them dynamic inverted softmax with a bank of training queries,
which ranks every query by itself. Both directions, mean ± standard deviation over seeds.

    python studies/transductive.py runs/seed-*/*.npz

Each file `seed-N/MODEL.npz` holds the logits (or cosines) of one model and seed, as `small_clip.py` writes
them; rows are queries, and the captions of one video are neighbours:

    test, test_owner  [captions, videos], [captions]  what is reported, and which video a caption belongs to
    bank_test         [training captions, videos]
    video_bank_test   [training videos, captions]     optional: without it, no bank for video to text
    val, val_owner, bank_val, video_bank_val          the same of the validation videos, optional
    logit_scale       a number                        optional: the largest similarity

β of the test-time methods is the published one, 1 on logits (100 on cosines), and below it the one that is
best on the validation videos; β of the bank's methods is the latter. It is chosen once for all seeds of a
model, by mean R@1, then mean rank, then the smaller. Without validation videos the bank's β is chosen without
labels. Nothing is chosen on the test videos.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from common import T2V, V2T, measured

from wordreel.errors import EvaluationError
from wordreel.hubness import Direction, Method, make_method
from wordreel.hubness.beta import GRID
from wordreel.hubness.fit import LOGIT_SIZE
from wordreel.lab.evaluate.normalised_rankings import Normalisation, with_automatic_beta
from wordreel.lab.reports.report import ReportRequest, of_matrix, of_seeds
from wordreel.lab.reports.report_files import input_of, write_tables
from wordreel.lab.reports.tables import direction_title, markdown
from wordreel.retrieval.caption_ranks import Captions, Protocol
from wordreel.types import Array, Float32

SEED = re.compile(r"seed-(\d+)")
ROWS = {  # what the table calls a method; True where β is the published one
    ("test-is", True): "+ inverted softmax",
    ("dsl", True): "+ DSL",
    ("test-is", False): "+ inverted softmax, β on val",
    ("dsl", False): "+ DSL, β on val",
    ("dis", False): "+ DIS, training bank",
    ("is", False): "+ IS, training bank",
}
COLUMNS = {"R1": "R@1", "R5": "R@5", "R10": "R@10", "MdR": "MdR", "MnR": "MnR"}


@dataclass(frozen=True, eq=False)
class Part:
    """The similarities of one split, and the banks of both directions."""

    similarities: Float32
    captions: Captions
    banks: Mapping[Direction, Float32]

    def rows(self, direction: Direction) -> Float32:
        """Queries in the rows."""
        return self.similarities if direction is T2V else np.ascontiguousarray(self.similarities.T)


@dataclass(frozen=True, eq=False)
class Logits:
    """One model with one seed."""

    path: Path
    model: str
    seed: int
    scale: float
    test: Part
    val: Part | None


def read(path: Path) -> Logits:
    """Read and check one file."""
    with np.load(path, allow_pickle=False) as held:
        arrays = dict(held)
    for name in ("test", "test_owner", "bank_test"):
        if name not in arrays:
            raise EvaluationError(f"{path} holds {', '.join(arrays) or 'nothing'}, but no {name!r}")
    test = _part(arrays, "test")
    largest = float(np.abs(test.similarities).max())
    seed = SEED.fullmatch(path.resolve().parent.name)
    return Logits(
        path,
        path.stem,
        int(seed[1]) if seed else 0,
        float(arrays.get("logit_scale", largest if largest > LOGIT_SIZE else 1.0)),
        test,
        _part(arrays, "val") if "val" in arrays else None,
    )


def _part(arrays: Mapping[str, Array], split: str) -> Part:
    sims = np.asarray(arrays[split], np.float32)
    owner = np.asarray(arrays[f"{split}_owner"], np.int64)
    banks = {
        direction: np.asarray(arrays[f"{name}_{split}"], np.float32)
        for direction, name in ((T2V, "bank"), (V2T, "video_bank"))
        if f"{name}_{split}" in arrays
    }
    return Part(sims, Captions(sims.shape[1], owner, np.ones(len(owner), bool)), banks)


def published_beta(seeds: Sequence[Logits]) -> float:
    """1 on logits; on cosines as much as logits of scale 100 have."""
    return 1.0 if seeds[0].scale > LOGIT_SIZE else 100.0


def validated_beta(name: str, seeds: Sequence[Logits], direction: Direction) -> float | None:
    """The β with the best mean R@1 over the seeds' validation videos; None where something is missing."""
    parts = [one.val for one in seeds]
    scale = float(np.mean([one.scale for one in seeds]))
    transductive = make_method(name).transductive
    tried = []
    for beta in GRID:
        method = make_method(name, beta=beta / scale)
        found = []
        for part in parts:
            if part is None or not (transductive or direction in part.banks):
                return None
            rows = part.rows(direction)
            bank = rows if transductive else part.banks[direction]
            found.append(measured(method, bank, rows, part.captions, direction).recall)
        recall, rank = (float(np.mean([getattr(one, key) for one in found])) for key in ("r1", "mean_rank"))
        tried.append((-recall, rank, beta / scale))
    return min(tried)[2]


def methods_of(seeds: Sequence[Logits], direction: Direction) -> Iterator[tuple[str, Method, str]]:
    """The rows of a model in one direction: their names, methods, and how β was chosen."""
    for (name, published), title in ROWS.items():
        method = make_method(name)
        if not method.transductive and direction not in seeds[0].test.banks:
            continue
        if published:
            yield title, replace_beta(method, published_beta(seeds)), "published"
            continue
        beta = validated_beta(name, seeds, direction)
        if beta is not None:
            yield title, replace_beta(method, beta), "validation videos"
        elif not method.transductive:
            chosen = with_automatic_beta(method, seeds[0].test.banks[direction])
            yield title, chosen, "bank, without labels"


def replace_beta(method: Any, beta: float) -> Method:
    changed: Method = replace(method, beta=beta)
    return changed


def measure_model(seeds: Sequence[Logits], protocol: Protocol, command: str) -> dict[str, Any]:
    """The facts of one model, as `wordreel evaluate` writes them, with a `row` beside each run."""
    rows = [(d, title, method, how) for d in (T2V, V2T) for title, method, how in methods_of(seeds, d)]
    reports = []
    for one in seeds:
        hows = [
            Normalisation(
                method,
                None if method.transductive else one.test.banks[direction],
                "training captions" if direction is T2V else "training videos",
                direction,
            )
            for direction, _, method, _ in rows
        ]
        request = ReportRequest(
            one.model,
            command,
            [input_of("logits", one.path, f"{one.path.stem}, seed {one.seed}")],
            protocol=protocol,
            seeds=[each.seed for each in seeds],
        )
        reports.append(of_matrix(one.test.similarities, one.test.captions, request, hows))
    facts = of_seeds(reports) if len(reports) > 1 else reports[0].facts
    titles = [("plain", None)] * 2 + [(title, how) for _, title, _, how in rows]
    facts["runs"] = [
        {"row": title, "beta_chosen_on": how, **run}
        for (title, how), run in zip(titles, facts["runs"], strict=True)
    ]
    return facts


def table(models: Mapping[str, dict[str, Any]], direction: Direction) -> str:
    """All models in one direction."""
    rows = [["model", "post-processing", "transductive", "β", "β chosen on", *COLUMNS.values()]]
    for name, facts in models.items():
        for run in facts["runs"]:
            if run["direction"] == direction:
                beta = re.search(r"beta=([\d.e+-]+)", run["postprocessing"])
                rows.append(
                    [
                        f"{name} ({len(facts['seeds'])} seeds)" if len(facts["seeds"]) > 1 else name,
                        run["row"],
                        "**yes, uses all test queries**" if run["transductive"] else "no",
                        beta[1] if beta else "–",
                        run["beta_chosen_on"] or "–",
                        *(_figure(run, key) for key in COLUMNS),
                    ]
                )
    return markdown(rows)


def _figure(run: Mapping[str, Any], key: str) -> str:
    apart = f" ± {run['deviation'][key]:.1f}" if "deviation" in run else ""
    return f"{run['figures'][key]:.1f}{apart}"


def text_of(models: Mapping[str, dict[str, Any]], command: str) -> str:
    parts = [
        "# What seeing all test queries is worth",
        "Inverted softmax and DSL over the test queries are transductive: the rank of a query depends on all "
        "other test queries, so no search can have these figures. DIS and IS with a bank of training queries "
        "rank every query by itself. Mean ± standard deviation over seeds.",
    ]
    for direction in (T2V, V2T):
        first = next(iter(models.values()))["runs"]
        run = next(run for run in first if run["direction"] == direction)
        title = direction_title(run).capitalize()
        count = f"{run['queries']:,} queries, {run['gallery']:,} items"
        parts.append(f"## {title}\n\n{count}.\n\n{table(models, direction)}")
    files = "\n".join(
        f"- {name}: " + ", ".join(f"{one['name']} `{one['sha256'][:12]}`" for one in facts["inputs"])
        for name, facts in models.items()
    )
    return "\n\n".join([*parts, f"Inputs (sha256):\n\n{files}", f"`{command}`"]) + "\n"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.npz")
    parser.add_argument("--v2t", choices=("ce", "clip"), default="clip", help="how video to text is counted")
    parser.add_argument("--out", type=Path, default=Path("results") / "transductive")
    given = parser.parse_args(words)
    models: dict[str, list[Logits]] = {}
    for path in given.files:
        one = read(path)
        models.setdefault(one.model, []).append(one)
    command = f"python studies/transductive.py runs/seed-*/*.npz --v2t {given.v2t}"
    with warnings.catch_warnings():  # β is on the scale of the logits
        warnings.simplefilter("ignore", UserWarning)
        facts = {name: measure_model(seeds, given.v2t, command) for name, seeds in models.items()}
    given.out.mkdir(parents=True, exist_ok=True)
    for name, each in facts.items():
        write_tables(given.out / name, each)
    text = text_of(facts, command)
    (given.out / "README.md").write_text(text, "utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
