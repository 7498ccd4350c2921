"""Where a bank is fitted: by NumPy on the CPU, or by torch on a GPU.

`auto` takes the GPU where there is one, torch is installed and the bank is large enough to repay importing
it; torch is not imported to find out that there is no GPU.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol

from wordreel.errors import HubnessError, NextStep
from wordreel.hubness.blocks import Similarities, as_source
from wordreel.util.gpu import find_gpu

AUTO_FROM = 1 << 26  # similarities: fewer take NumPy less time than torch takes to start
USE_CPU = NextStep("fit on the CPU instead (--device cpu)")


class _Fitted(Protocol):
    name: ClassVar[str]
    gpu: ClassVar[bool]


def pick_gpu(device: str, banks: Iterable[Similarities], methods: Iterable[_Fitted] = ()) -> str | None:
    """The torch device to fit on; None for NumPy on the CPU.

    Args:
        device: `cpu`, `auto`, `cuda` or one of several GPUs, as `cuda:1`.
        banks: The similarities to fit, whose size decides for `auto`; a stream counts as large.
        methods: What is fitted. One without a GPU version takes `auto` to the CPU.

    Raises:
        HubnessError: The device is unknown, a GPU was requested that is not there, or a method has no GPU
            version.

    >>> import numpy as np
    >>> pick_gpu("cpu", [np.zeros((2, 3))]) is None, pick_gpu("auto", [np.zeros((2, 3))]) is None
    (True, True)
    """
    if device == "cpu":
        return None
    unable = [method.name for method in methods if not method.gpu]
    if device == "auto":
        return find_gpu() if not unable and _size(banks) >= AUTO_FROM else None
    name, _, number = device.partition(":")
    if name != "cuda" or not (number.isdecimal() or (not number and device == name)):
        raise HubnessError(f"there is no device {device!r}", NextStep("choose auto, cpu, cuda or cuda:1"))
    if unable:
        raise HubnessError(f"{unable[0]!r} has no GPU version", USE_CPU)
    gpu = find_gpu()
    if gpu is None:
        raise HubnessError("there is no CUDA GPU that torch can use", USE_CPU)
    return device if gpu == "cuda" else gpu


def _size(banks: Iterable[Similarities]) -> int:
    sources = [as_source(blocks) for blocks in banks]
    if None in sources:
        return AUTO_FROM
    return sum(source.shape[0] * source.shape[1] for source in sources if source and len(source.shape) == 2)
