"""Convert YuNet and SFace from their package: remove the fixed input size they were saved with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

YUNET = "face_detection_yunet_2023mar.onnx"
SFACE = "face_recognition_sface_2021dec.onnx"


def convert(files: Mapping[str, Path], out: Path) -> None:
    """`yunet.onnx` takes any height and width in multiples of 32, `sface.onnx` any number of faces."""
    import onnx

    named = {PurePosixPath(member).name: path for member, path in files.items()}
    yunet, sface = (onnx.load(str(named[name])) for name in (YUNET, SFACE))
    onnx.save(reshaped(yunet, (1, 3, "height", "width"), free=1), str(out / "yunet.onnx"))
    onnx.save(reshaped(sface, ("n", 3, 112, 112), free=0), str(out / "sface.onnx"))


def reshaped(model: Any, shape: tuple[int | str, ...], free: int) -> Any:
    """The same network with another declared input shape, weights no longer listed as inputs.

    `free` is the dimension of the outputs that depends on the input's size.
    """
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    if len(inputs) != 1:
        raise ValueError(f"expected a network with one input, got {len(inputs)}")
    del graph.input[:]
    graph.input.extend(inputs)
    for dim, size in zip(graph.input[0].type.tensor_type.shape.dim, shape, strict=True):
        if isinstance(size, str):
            dim.dim_param = size
        else:
            dim.dim_value = size
    del graph.value_info[:]
    for output in graph.output:
        for axis, dim in enumerate(output.type.tensor_type.shape.dim):
            if axis == free:
                dim.dim_param = f"{output.name}_{axis}"
    return model
