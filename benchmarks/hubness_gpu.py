"""Fit log-sum-exp, winners and nearest-neighbour means from embeddings on a GPU, against the plain product.

    python benchmarks/hubness_gpu.py [BANK ITEMS DIM] [--repeat 5] [--kinds float16 bfloat16 tf32 float32]

IS, DIS and CSLS (k = 10) are fitted together. First the fused pass is checked against float64 on small and
ragged sizes. Then, in one run and with inputs of the same precision on the device:

- `product`: `torch.mm` of the same matrices, in blocks of the gallery, results written and thrown away;
- `pass`: the fused pass, with its results brought to main memory; similarities are never written anywhere;
- `fit`: `fit_many_torch` by the clock, with the states built;
- `from_main_memory`: the same with both matrices in main memory at the start;
- `blocked`: the same statistics from blocks of a float32 product, on a fraction of the gallery.

Rates are floating-point operations of the product alone over the median time, so that the ratios to `product`
are what the statistics cost. `square` is the rate of an 8192³ product, the best a library reaches. JSON on
standard output.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from wordreel.hubness import make_method, torch_fit, triton_fit

BETA, K = 20.0, 10
METHODS = [make_method("is", beta=BETA), make_method("dis", beta=BETA), make_method("csls", k=K)]
KINDS = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "tf32": torch.float32,
    "float32": torch.float32,
}


def unit(rows: int, dim: int, kind: Any) -> Any:
    x = torch.randn(rows, dim, device="cuda")
    return (x / x.norm(dim=1, keepdim=True)).to(kind)


def errors(rows: int, items: int, dim: int, name: str) -> dict[str, float]:
    """Largest differences to float64 of b, of the mean of the k largest, and the share of other winners."""
    bank, gallery = unit(rows, dim, KINDS[name]), unit(items, dim, KINDS[name])
    wanted = {("logsum", BETA), ("winners", 1), ("best", K, K + 8)}
    parts, _ = torch_fit.fuse(torch, bank, gallery, wanted, "cuda", "tf32" if name == "tf32" else "full")
    scores = bank.double() @ gallery.double().T
    soft = ((scores * BETA).logsumexp(0) - np.log(rows)) / BETA
    near = scores.topk(min(K, rows), dim=0).values.mean(0)
    ids = torch.as_tensor(parts["winners", 1].ids).long().cuda()
    behind = scores.amax(1, keepdim=True) - scores.gather(1, ids)
    return {
        "log_mean_exp": float(np.abs(parts["logsum", BETA].soft_mean() - soft.cpu().numpy()).max()),
        "mean_of_largest": float(np.abs(parts["best", K, K + 8].mean() - near.cpu().numpy()).max()),
        "winner_behind_best": float(behind.max()),
    }


def median(run: Callable[[], Any], repeat: int) -> float:
    """Seconds on the device."""
    run()
    found = []
    for _ in range(repeat):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        run()
        last.record()
        torch.cuda.synchronize()
        found.append(first.elapsed_time(last) / 1e3)
    return statistics.median(found)


def clock(run: Callable[[], Any], repeat: int) -> float:
    run()
    found = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def product(bank: Any, gallery: Any) -> Callable[[], None]:
    step = 1 << 16  # an aligned width: the product loses most of its speed without
    out = torch.empty(len(bank), step, dtype=bank.dtype, device="cuda")
    last = torch.empty(len(bank), len(gallery) % step, dtype=bank.dtype, device="cuda")

    def run() -> None:
        for start in range(0, len(gallery), step):
            some = gallery[start : start + step]
            torch.mm(bank, some.T, out=out if len(some) == step else last)

    return run


def square(kind: Any) -> float:
    a, b = (torch.randn(8192, 8192, device="cuda").to(kind) for _ in range(2))
    return 2 * 8192**3 / median(lambda: a @ b, 10)


def measure(name: str, bank_size: int, items: int, dim: int, repeat: int, blocked: bool) -> dict[str, Any]:
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    precision: Any = "tf32" if name == "tf32" else "full"
    bank, gallery = unit(bank_size, dim, KINDS[name]), unit(items, dim, KINDS[name])
    work = 2.0 * bank_size * items * dim
    asked = triton_fit.FusedRequest(BETA, K + 8)
    rates = {
        "square": square(KINDS[name]),
        "product": work / median(product(bank, gallery), repeat),
        "pass": work
        / median(lambda: triton_fit.run_fused(torch, bank, gallery, "cuda", asked, precision), repeat),
        "fit": work
        / clock(
            lambda: torch_fit.fit_embeddings_on_device(METHODS, bank, gallery, precision=precision), repeat
        ),
    }
    if blocked:
        away = bank.cpu(), gallery.cpu()
        rates["from_main_memory"] = work / clock(
            lambda: torch_fit.fit_embeddings_on_device(METHODS, *away), 2
        )
        some = gallery[: items // 20]
        keys = [("logsum", BETA), ("winners", 1), ("best", K, K + 8)]
        rates["blocked"] = (
            work
            / 20
            / median(
                lambda: torch_fit.accumulate_blocks(
                    torch,
                    torch_fit.EmbeddingBank(bank, some).blocks(torch, "cuda"),
                    {key: torch_fit.builder_of(key) for key in keys},
                ),
                2,
            )
        )
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.cuda.empty_cache()
    return {
        "teraflops": {key: round(rate / 1e12, 1) for key, rate in rates.items()},
        "share_of_product": {key: round(rate / rates["product"], 3) for key, rate in rates.items()},
        "pass_share_of_square": round(rates["pass"] / rates["square"], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, metavar="BANK ITEMS DIM")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=["float16", "bfloat16", "tf32"])
    given = parser.parse_args()
    bank, items, dim = given.sizes or (100_000, 1_000_000, 512)
    torch.manual_seed(0)
    shapes = [(5000, 3000, 512), (777, 1301, 100), (9, 130, 512)]
    with torch.inference_mode():
        checked = {
            name: {"x".join(map(str, shape)): errors(*shape, name) for shape in shapes}
            for name in given.kinds
        }
        speed = {
            name: measure(name, bank, items, dim, given.repeat, name == "float16") for name in given.kinds
        }
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "bank": bank,
        "items": items,
        "dim": dim,
        "errors": checked,
        **speed,
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
