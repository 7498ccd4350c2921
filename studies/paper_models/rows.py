"""Which models are trained, with which settings: the rows of the tables, and the short grids before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from paper_models.material import EXPERTS


@dataclass(frozen=True)
class Row:
    """One model: a recipe with changes. `family` names the grid whose best setting it takes.

    `captions` limits the captions of a training video (0: all). With one expert there is nothing to gate, and
    CE is then CE without collaborative gating.
    """

    name: str
    title: str
    family: str
    changes: tuple[str, ...] = ()
    experts: tuple[str, ...] = EXPERTS
    captions: int = 0

    @property
    def recipe(self) -> str:
        return f"own-{self.family}"


def _alone(expert: str) -> Row:
    return Row(f"ce-{expert}", f"CE, {expert} only", "ce", ("model.gating=false",), (expert,))


def _with(expert: str) -> Row:
    return Row(f"ce-clip-{expert}", f"CE, clip + {expert}", "ce", (), ("clip", expert))


ROWS: tuple[Row, ...] = (
    Row("ce", "CE", "ce"),
    Row("moee", "MoEE", "moee"),
    Row("mmt", "MMT", "mmt"),
    Row("ce-without-gating", "CE − CG", "ce", ("model.gating=false",)),
    Row("ce-plain", "CE − MW, P, CG", "moee", ("model.learned_weights=false",)),
    Row("concat", "Concat", "moee", ("model.kind=concat",)),
    Row("ce-one-caption", "CE, one caption", "ce", captions=1),
    Row("mmt-one-caption", "MMT, one caption", "mmt", captions=1),
    *(_alone(expert) for expert in EXPERTS),
    Row(
        "ce-clip-one-caption",
        "CE, clip only, one caption",
        "ce",
        ("model.gating=false",),
        ("clip",),
        captions=1,
    ),
    *(_with(expert) for expert in EXPERTS[1:]),
    Row("mmt-none", "MMT's experts, no encoder (NONE)", "mmt", ("model.encoder=none",)),
    Row("mmt-coll", "MMT's experts, gated (COLL)", "mmt", ("model.encoder=coll",)),
    Row("mmt-pooled", "MMT, pooled input", "mmt", ("model.inputs=pooled",)),
    Row("mmt-shuffled", "MMT, shuffled input", "mmt", ("model.inputs=shuffled",)),
    Row("ce-released", "CE as in the released code", "ce", ("model.mode=released",)),
)

NCE = ("loss.kind=info-nce", "loss.temperature=0.05")
SMOOTH = ("schedule.kind=cosine",)
ONE_FAMILY: tuple[tuple[str, ...], ...] = (
    (),  # the recipe as it is
    ("optimiser.lr=1e-3", "run.epochs=60", *SMOOTH),
    ("optimiser.lr=3e-4", "run.epochs=100", "run.batch=128", "run.expert_dropout=0.2", *SMOOTH),
    (*NCE, "optimiser.lr=3e-4", "run.epochs=60", "run.batch=128", *SMOOTH),
    (*NCE, "optimiser.lr=3e-4", "run.epochs=60", "run.batch=128", "run.expert_dropout=0.3", *SMOOTH),
    (*NCE, "optimiser.lr=1e-4", "run.epochs=100", "run.batch=512", "run.expert_dropout=0.2", *SMOOTH),
    (*NCE, "optimiser.lr=2e-4", "run.epochs=5", "run.batch=256", "data.captions=all", *SMOOTH),
    ("optimiser.lr=2e-4", "run.epochs=5", "run.batch=128", "data.captions=all", *SMOOTH),
    # CE's published settings for this dataset, with fewer epochs
    (
        "optimiser.kind=ranger",
        "optimiser.lr=0.01",
        "optimiser.weight_decay=5e-5",
        "loss.margin=0.3076",
        "run.batch=16",
        "run.epochs=60",
    ),
)
WARM = ("schedule.warmup=100",)
GRIDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "ce": ONE_FAMILY,
    "moee": ONE_FAMILY,
    "mmt": (
        (),
        ("optimiser.lr=1e-4", "loss.margin=0.2", "run.batch=64", "run.epochs=60", *SMOOTH, *WARM),
        (*NCE, "optimiser.lr=1e-4", "run.batch=64", "run.epochs=60", *SMOOTH, *WARM),
        (
            *NCE,
            "optimiser.lr=2e-4",
            "optimiser.text_lr=3e-5",
            "run.batch=128",
            "run.epochs=80",
            "run.expert_dropout=0.2",
            *SMOOTH,
            *WARM,
        ),
        (
            *NCE,
            "optimiser.lr=1e-4",
            "optimiser.text_lr=3e-5",
            "run.batch=128",
            "run.epochs=4",
            "data.captions=all",
            *SMOOTH,
            *WARM,
        ),
        ("optimiser.lr=5e-5", "loss.margin=0.2", "run.epochs=3", "data.captions=all", *SMOOTH, *WARM),
    ),
}


def chosen(only: Sequence[str]) -> tuple[Row, ...]:
    """The rows of these names; a family's name stands for itself alone. All rows where none is named."""
    unknown = set(only) - {row.name for row in ROWS}
    if unknown:
        names = ", ".join(row.name for row in ROWS)
        raise SystemExit(f"there is no row {', '.join(sorted(unknown))}; there are {names}")
    return tuple(row for row in ROWS if not only or row.name in only)
