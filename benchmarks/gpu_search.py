"""Exact search on a CUDA device against the bandwidth of its memory and the speed of a matrix product.

    python benchmarks/gpu_search.py [ITEMS DIM] [--batch 1000] [--k 10] [--repeat 7]

Unit vectors around centres are made on the device; queries lie around the same centres, pushed aside as text
is from video. First the results of a few queries are compared with a float64 scan. Then, in one run:

- `read`: reading the items once, by the fastest of a sum, a maximum and a copy (which moves twice the bytes);
- `product`: `torch.mm` of the batch and the items in float32, in blocks, results written and thrown away;
- `search`: the ten best by the clock, from queries on the device to results in main memory, plain and with
  one bias per item; batch 1 as a ratio to `read`, the large batch as a ratio to `product`.

Ratios are medians of rounds in which all take turns. Items are float32 on the device, and so are products
(no TF32); the ten best are exact: see `wordreel.index.cuda`. JSON on standard output.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from wordreel.index.cuda import DeviceItems

CENTRES = 20_000
CHUNK = 1 << 20
BLOCK = 1 << 16  # columns of a product


def unit(rows: Any) -> Any:
    return rows / rows.norm(dim=1, keepdim=True)


def world(items: int, queries: int, dim: int, device: str) -> tuple[Any, Any]:
    centres = torch.randn(CENTRES, dim, device=device)
    gap = torch.randn(dim, device=device)

    def around(count: int, spread: float, push: float) -> Any:
        chosen = torch.randint(CENTRES, (count,), device=device)
        return unit(centres[chosen] + spread * torch.randn(count, dim, device=device) + push * gap)

    gallery = torch.empty(items, dim, device=device)
    for start in range(0, items, CHUNK):
        gallery[start : start + CHUNK] = around(min(CHUNK, items - start), 0.8, 0.0)
    return gallery, around(queries, 1.2, 0.6)


def scan(gallery: Any, queries: Any, bias: Any, k: int) -> Any:
    """The best places by a float64 scan."""
    parts = [
        queries.double() @ gallery[start : start + CHUNK].double().T
        - (0.0 if bias is None else bias[start : start + CHUNK].double())
        for start in range(0, len(gallery), CHUNK)
    ]
    return torch.cat(parts, dim=1).topk(k, dim=1).indices


def wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def rounds(work: dict[str, Callable[[], object]], repeat: int, device: str) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in work}
    for number in range(repeat + 1):
        for name, run in work.items():
            wait(device)
            start = time.perf_counter()
            run()
            wait(device)
            if number:  # the first round compiles and allocates
                times[name].append(time.perf_counter() - start)
    return times


def ratio(times: dict[str, list[float]], name: str, bounds: list[str]) -> float:
    each = zip(times[name], *(times[bound] for bound in bounds), strict=True)
    return round(statistics.median(took / min(bound) for took, *bound in each), 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, metavar="ITEMS DIM")
    parser.add_argument("--batch", type=int, default=1_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--device", default="cuda")
    given = parser.parse_args()
    count, dim = given.sizes or (10_000_000, 512)
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    with torch.inference_mode():
        print(json.dumps(measure(count, dim, given.batch, given.k, given.repeat, given.device), indent=2))


def measure(count: int, dim: int, batch: int, k: int, repeat: int, device: str) -> dict[str, Any]:
    gallery, queries = world(count, batch, dim, device)
    bias = 0.1 * torch.rand(count, device=device)
    index = DeviceItems(torch, gallery)
    some = queries[:8]
    same = {}
    for name, extra in (("plain", None), ("corrected", bias)):
        true = scan(gallery, some, extra, k)
        singly = torch.cat([index.nearest(query[None], k, extra)[0] for query in some])
        same[name] = float((index.nearest(some, k, extra)[0] == true).float().mean())
        same[f"{name}_batch_1"] = float((singly == true).float().mean())
    half = gallery[: count // 2]
    target = torch.empty_like(half)

    def product() -> None:
        for start in range(0, count, BLOCK):
            torch.mm(queries, gallery[start : start + BLOCK].T)

    def search(asked: Any, extra: Any) -> Callable[[], object]:
        return lambda: [part.cpu() for part in index.nearest(asked, k, extra)]

    one = rounds(
        {
            "sum": gallery.sum,
            "maximum": gallery.amax,
            "copy": lambda: target.copy_(half),
            "product": lambda: gallery @ queries[0],
            "plain": search(queries[:1], None),
            "corrected": search(queries[:1], bias),
        },
        4 * repeat,
        device,
    )
    many = rounds(
        {"product": product, "plain": search(queries, None), "corrected": search(queries, bias)},
        repeat,
        device,
    )
    reads, size = ["sum", "maximum", "copy"], 4.0 * count * dim
    fastest = min(statistics.median(one[name]) for name in reads)
    return {
        "device": torch.cuda.get_device_name() if device != "cpu" else "cpu",
        "torch": torch.__version__,
        "items": count,
        "dim": dim,
        "k": k,
        "same_as_float64_scan": same,
        "batch_1": {
            "milliseconds": {name: round(1e3 * statistics.median(took), 3) for name, took in one.items()},
            "gigabytes_per_second_of_read": round(size / fastest / 1e9, 1),
            "ratio_to_read": {name: ratio(one, name, reads) for name in ("product", "plain", "corrected")},
        },
        f"batch_{batch}": {
            "milliseconds": {name: round(1e3 * statistics.median(took), 3) for name, took in many.items()},
            "teraflops_of_product": round(
                2e-12 * batch * count * dim / statistics.median(many["product"]), 2
            ),
            "ratio_to_product": {name: ratio(many, name, ["product"]) for name in ("plain", "corrected")},
        },
    }


if __name__ == "__main__":
    main()
