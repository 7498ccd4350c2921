"""Run a converted network: threads and devices are decided here."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wordreel.util.machine import cores

Precision = Literal["fp32", "fp16", "int8"]
"""How the weights of a network are stored."""

_M_ARENA_MAX = -8  # of glibc's malloc.h
_sharers: ContextVar[int] = ContextVar("sharers", default=1)


def threads() -> int:
    """Return the threads a network may use: `WORDREEL_THREADS`, or its share of the cores."""
    setting = os.environ.get("WORDREEL_THREADS")
    return max(1, int(setting)) if setting else max(1, cores() // _sharers.get())


@contextmanager
def shared_by(count: int) -> Iterator[None]:
    """Give networks loaded inside a share of the cores: they will run beside `count - 1` others.

    >>> with shared_by(10**6):
    ...     threads()
    1
    """
    token = _sharers.set(max(1, count))
    try:
        yield
    finally:
        _sharers.reset(token)


def providers(available: Sequence[str]) -> list[tuple[str, dict[str, str]]]:
    """Return which of onnxruntime's execution providers to use, the fastest first, with their options.

    Apple's neural engine would compute in half precision, so Core ML gets the processor and the GPU only.

    >>> [name for name, _ in providers(["CPUExecutionProvider", "CUDAExecutionProvider"])]
    ['CUDAExecutionProvider', 'CPUExecutionProvider']
    """
    wanted = {
        "CUDAExecutionProvider": {},
        "DmlExecutionProvider": {},
        "CoreMLExecutionProvider": {"MLComputeUnits": "CPUAndGPU"},
        "CPUExecutionProvider": {},
    }
    return [(name, options) for name, options in wanted.items() if name in available]


def accelerated() -> bool:
    """Return whether networks run on something faster than the processor."""
    import onnxruntime as ort

    return len(providers(ort.get_available_providers())) > 1


def picture_batch() -> int:
    """Return how many pictures a convolutional network takes at once.

    Many on a GPU, one on the processor.

    There a second picture makes nothing faster. It takes the first out of the caches (faces are embedded a
    quarter faster one by one), and 20 MB of memory.
    """
    return 16 if accelerated() else 1


def in_batches(run: Callable[[Any], NDArray[Any]], items: Any, batch: int) -> NDArray[Any]:
    """Return the rows that `run` gives for all items, of which it gets at most `batch` at once.

    >>> in_batches(lambda part: part * 2, np.arange(5), 2).tolist()
    [0, 2, 4, 6, 8]
    """
    return np.concatenate([run(items[start : start + batch]) for start in range(0, len(items), batch)])


class Network:
    """A loaded ONNX model, from its file or its bytes.

    Call it with arrays by input name, get arrays by output name. All networks of a process take their
    memory from one arena, so that together they hold what runs at once, not the sum of what each ever needed.
    """

    def __init__(self, model: Path | bytes) -> None:
        self._session = open_session(model)
        self._outputs = [output.name for output in self._session.get_outputs()]

    def __str__(self) -> str:
        """Where the network runs."""
        import onnxruntime as ort

        return describe_providers(ort.get_available_providers(), self._session.get_providers())

    def __call__(self, **inputs: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        """Run the network on arrays by the names of its inputs."""
        return dict(zip(self._outputs, self._session.run(None, inputs), strict=True))


def open_session(model: Path | bytes) -> Any:
    """Return the `InferenceSession` of a network, for libraries that want it themselves."""
    import onnxruntime as ort

    _share_arena()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads()
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # A pattern is one block for a whole run, up to 150 MB, which finds no room in an arena that others use.
    options.enable_mem_pattern = False
    # Spinning threads would starve the decoding workers that share these cores.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.use_env_allocators", "1")
    source = model if isinstance(model, bytes) else str(model)
    *fast, slow = providers(ort.get_available_providers())
    try:
        session = ort.InferenceSession(source, options, providers=[*fast, slow])
    except Exception:  # onnxruntime's errors share no class: a driver that does not fit, a full GPU
        if not fast:
            raise
        session = ort.InferenceSession(source, options, providers=[slow])
    release_memory()
    return session


def describe_providers(available: Sequence[str], used: Sequence[str]) -> str:
    """Return what runs the networks, of what onnxruntime offers and what a session of it uses, for people.

    >>> describe_providers(["CUDAExecutionProvider", "CPUExecutionProvider"], ["CPUExecutionProvider"])
    'on the processor; CUDA is installed and could not be used'
    """
    titles = {
        "CUDAExecutionProvider": "CUDA",
        "DmlExecutionProvider": "DirectML",
        "CoreMLExecutionProvider": "Core ML",
    }
    unused = [title for name, title in titles.items() if name in available and name not in used]
    device = next((f"with {title}" for name, title in titles.items() if name in used), "on the processor")
    return device + (f"; {unused[0]} is installed and could not be used" if unused else "")


@cache
def _share_arena() -> None:
    """Register the arena; it grows by what is requested, not to the next power of two.

    The heap is shared as well: with one for each thread, what one has freed is of no use to the others.
    """
    import onnxruntime as ort

    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, 1)
    info = ort.OrtMemoryInfo("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT)
    ort.create_and_register_allocator(info, ort.OrtArenaCfg(0, 1, -1, -1))


def release_memory() -> None:
    """Return freed memory to the system: after loading, as much as the weights themselves."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc only
    if trim is not None:
        trim(0)
