"""Running a converted network: one place that decides threads and devices."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def threads() -> int:
    """Cores a network may use: `WORDREEL_THREADS`, or what this process is allowed to run on."""
    asked = os.environ.get("WORDREEL_THREADS")
    return max(1, int(asked)) if asked else len(os.sched_getaffinity(0))


class Network:
    """A loaded ONNX file. Call it with arrays by input name, get arrays by output name."""

    def __init__(self, path: Path) -> None:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads()
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Spinning threads would starve the decoding workers that share these cores.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
        usable = [name for name in wanted if name in ort.get_available_providers()]
        self._session = ort.InferenceSession(str(path), options, providers=usable)
        self._outputs = [output.name for output in self._session.get_outputs()]

    def __call__(self, **inputs: NDArray[Any]) -> dict[str, NDArray[np.float32]]:
        return dict(zip(self._outputs, self._session.run(None, inputs), strict=True))
