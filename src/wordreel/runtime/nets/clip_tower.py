"""The image tower of CLIP ViT-B/16 in 8 bits: a published graph whose products are exchanged.

A product of an activation a and a matrix W is computed as

    a W = (a / s) (s W),   a / s in 255 steps of a fixed range,   s W in 63 steps to each side for each output

where s, one number for each channel, moves what is hard to round from activations into weights (SmoothQuant,
Xiao et al. 2023). `tools/clip_ranges.py` measured s and the ranges on pictures and frames; they come with
wordreel. Ranges that are measured in each run, as the published graph has them, cost far more accuracy,
and let a picture's embedding depend on its batch. 63 steps, as the sum of two products of 8 bits overflows on
processors without VNNI. Rounding is chaotic: where sums differ in their last bit, as between two kinds of
processor, embeddings differ by as much as they differ from those of the float network (cosine .99).

The last product of each layer is computed in float, on weights of 8 bits: rounding what it reads costs more
accuracy than all others (63 pictures and frames: mean cosine .998, worst .994; rounded .992 and .984).

A published graph has its products in float (`MatMul`) or 8 bits (`MatMulInteger`), by the exporter's names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from wordreel.errors import NextStep, WeightsError
from wordreel.runtime.mapped_arrays import map_safetensors
from wordreel.types import Array, Float32

DATA = Path(__file__).parent / "data"
RANGES = DATA / "clip_ranges.safetensors"
INPUT, OUTPUT = "pixel_values", "image_embeds"
SIZE = 224
LEVELS = 63
FLOAT = ".fc2"  # the end of the roles of products that are computed in float
FLOAT_LEVELS = 127
LEAST_COSINE = 0.95  # of the golden pictures, to the embeddings of the same network in float
LAYER = re.compile(r"layers\.(\d+)/(?:self_attn|mlp)/(\w+)/")
INPUTS = {**dict.fromkeys(("q_proj", "k_proj", "v_proj"), "attention"), "out_proj": "out"}
"""What the products of a layer read, where that has another name; three of them read the same."""


@dataclass(frozen=True)
class Product:
    """A product in a graph: `result` = `source` · the matrix that `weight()` reads, `[in, out]`."""

    name: str
    source: str
    result: str
    weight: Callable[[], Float32]

    @property
    def role(self) -> str:
        """The activation that it reads: its layer, and what the layer does with it.

        >>> Product("/vision_model/encoder/layers.3/self_attn/k_proj/MatMul", "x", "y", np.ndarray).role
        '3.attention'
        """
        found = LAYER.search(self.name)
        return f"{found[1]}.{INPUTS.get(found[2], found[2])}" if found else "projection"


@dataclass(frozen=True)
class Range:
    """How an activation is rounded: `smooth [channels]` is s, `low` and `high` are the range of a / s."""

    smooth: Float32
    low: float
    high: float


def convert(files: Mapping[str, Path], out: Path) -> None:
    """Write `network.onnx`: `pixel_values [n, 3, 224, 224]` to `image_embeds [n, 512]`.

    Raises:
        WeightsError: The file is not the image tower of CLIP ViT-B/16.
    """
    import onnx

    (path,) = files.values()
    ranges, golden = read_ranges(RANGES)
    target = out / "network.onnx"
    try:
        model = onnx.load(str(path))
        found = products(model)
        if {product.role for product in found if not product.role.endswith(FLOAT)} != set(ranges):
            raise ValueError(f"it has {len(found)} other products")
        exchange(model, found, _Rounded(ranges))
        onnx.save(model, str(target))
        del model
        cosine = golden_cosine(target, golden)
    except Exception as error:  # whatever protobuf and onnxruntime raise
        raise _other_network(path, f"{type(error).__name__}: {error}"[:200]) from None
    if cosine < LEAST_COSINE:
        raise _other_network(path, f"its embedding of a known picture has a cosine of {cosine:.2f}")


def in_float(network: Path) -> bytes:
    """Return a converted network with its products in float, for accelerators, which have none in 8 bits."""
    import onnx

    model = onnx.load(str(network))
    exchange(model, products(model), float_product)
    return bytes(model.SerializeToString())


def read_ranges(path: Path) -> tuple[dict[str, Range], Float32]:
    """Return the range of each activation by role, and the embeddings of the golden pictures."""
    _, arrays = map_safetensors(path)
    roles = [name.removesuffix(".smooth") for name in arrays if name.endswith(".smooth")]
    ranges = {role: Range(arrays[f"{role}.smooth"], *arrays[f"{role}.range"].tolist()) for role in roles}
    return ranges, arrays["golden"].astype(np.float32)


def golden_pictures() -> Float32:
    """Return two pictures made by a formula `[2, 3, 224, 224]`, to recognise the network by."""
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE
    soft = np.stack([np.sin(7 * x + 2), np.cos(5 * y), np.sin(9 * x * y)])
    grid = np.where((x * 8 % 1 < 0.5) ^ (y * 8 % 1 < 0.5), 1.5, -1.5) + 0 * soft
    return np.stack([soft, grid]).astype(np.float32)


def golden_cosine(network: Path, golden: Float32) -> float:
    """Return the least cosine of the golden pictures' embeddings to those of the float network."""
    from wordreel.runtime.sessions import Network

    seen = Network(network)(**{INPUT: golden_pictures()})[OUTPUT]
    if seen.shape != golden.shape:
        return 0.0
    lengths = np.linalg.norm(seen, axis=1) * np.linalg.norm(golden, axis=1)
    return float(((seen * golden).sum(axis=1) / np.maximum(lengths, 1e-12)).min())


def products(model: Any) -> list[Product]:
    """Return the products by constant matrices of a graph, in order."""
    from onnx import numpy_helper

    constants = {one.name: one for one in model.graph.initializer}
    makers = {output: node for node in model.graph.node for output in node.output}
    users = {name: node for node in model.graph.node for name in node.input}

    def array(name: str) -> Array:
        return np.asarray(numpy_helper.to_array(constants[name]))

    def dequantised(matrix: str, zero: str, steps: str) -> Float32:
        return (array(matrix).astype(np.float32) - array(zero).astype(np.float32)) * array(steps)

    found = []
    for node in model.graph.node:
        if node.op_type == "MatMul" and node.input[1] in constants:
            weight = partial(array, node.input[1])
            found.append(Product(node.name, node.input[0], node.output[0], weight))
        elif node.op_type == "MatMulInteger":  # of a rounded activation; then a cast, and times both scales
            scaled = users[users[node.output[0]].output[0]]
            (both,) = (makers[name] for name in scaled.input if makers[name].op_type == "Mul")
            weight = partial(dequantised, node.input[1], node.input[3], both.input[1])
            found.append(Product(node.name, makers[node.input[0]].input[0], scaled.output[0], weight))
    return found


def exchange(model: Any, found: Sequence[Product], replace: Callable[[Product, Any], list[Any]]) -> None:
    """Put the nodes that `replace` makes, which may add constants to the graph, in place of products.

    The first output of the graph remains, with what it needs.
    """
    graph = model.graph
    by_result = {product.result: product for product in found}
    nodes: list[Any] = []
    for node in graph.node:
        product = by_result.get(node.output[0])
        nodes += [node] if product is None else replace(product, graph)
    needed, used = {graph.output[0].name}, []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed.update(node.input)
            used.append(node)
    constants = [one for one in graph.initializer if one.name in needed]
    for field, values in (
        (graph.node, used[::-1]),
        (graph.initializer, constants),
        (graph.output, [graph.output[0]]),
        (graph.value_info, []),  # the types of what is no longer there
    ):
        kept = list(values)
        del field[:]
        field.extend(kept)


class _Rounded:
    """Makes the nodes of a product in 8 bits; those that round an activation once for all that read it."""

    def __init__(self, ranges: Mapping[str, Range]) -> None:
        self._ranges = ranges
        self._rounded: set[str] = set()

    def __call__(self, product: Product, graph: Any) -> list[Any]:
        from onnx import helper

        from wordreel.runtime.nets.graph import quantised

        if product.role.endswith(FLOAT):
            return _float_on_eight_bits(product, graph)
        at, known = product.source, self._ranges[product.role]
        nodes = [] if at in self._rounded else self._round(at, known, graph)
        self._rounded.add(at)
        matrix = product.weight() * known.smooth[:, None]
        whole, steps = quantised(matrix.T, LEVELS)
        name = product.result
        _add(graph, f"{name}.whole", whole.T)
        _add(graph, f"{name}.zero", np.zeros(len(whole), np.int8))
        _add(graph, f"{name}.steps", steps[:, 0])
        given = [f"{at}.rounded", f"{name}.whole", f"{at}.zero", f"{name}.zero"]
        return [
            *nodes,
            helper.make_node("MatMulInteger", given, [f"{name}.sum"], product.name),
            helper.make_node("Cast", [f"{name}.sum"], [f"{name}.float"], to=1),
            helper.make_node("Mul", [f"{at}.step", f"{name}.steps"], [f"{name}.scale"]),
            helper.make_node("Mul", [f"{name}.float", f"{name}.scale"], [name]),
        ]

    def _round(self, at: str, known: Range, graph: Any) -> list[Any]:
        from onnx import helper

        step = np.float32((known.high - known.low) / 255)
        _add(graph, f"{at}.divide", (1 / known.smooth).astype(np.float32))
        _add(graph, f"{at}.step", np.asarray(step))
        _add(graph, f"{at}.zero", np.asarray(np.clip(np.rint(-known.low / step), 0, 255), np.uint8))
        return [
            helper.make_node("Mul", [at, f"{at}.divide"], [f"{at}.smooth"]),
            helper.make_node(
                "QuantizeLinear", [f"{at}.smooth", f"{at}.step", f"{at}.zero"], [f"{at}.rounded"]
            ),
        ]


def _float_on_eight_bits(product: Product, graph: Any) -> list[Any]:
    """Return the nodes of a product in float with a matrix in 8 bits, scaled once at loading."""
    from onnx import helper

    from wordreel.runtime.nets.graph import quantised

    name = product.result
    whole, steps = quantised(product.weight().T, FLOAT_LEVELS)
    _add(graph, f"{name}.whole", whole.T)
    _add(graph, f"{name}.steps", steps[:, 0])
    return [
        helper.make_node("Cast", [f"{name}.whole"], [f"{name}.cast"], to=1),
        helper.make_node("Mul", [f"{name}.cast", f"{name}.steps"], [f"{name}.matrix"]),
        helper.make_node("MatMul", [product.source, f"{name}.matrix"], [name], product.name),
    ]


def float_product(product: Product, graph: Any) -> list[Any]:
    """Return the nodes of a product in float."""
    from onnx import helper

    matrix = f"{product.result}.matrix"
    _add(graph, matrix, product.weight())
    return [helper.make_node("MatMul", [product.source, matrix], [product.result], product.name)]


def _add(graph: Any, name: str, array: Array) -> None:
    from onnx import numpy_helper

    graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))


def _other_network(path: Path, why: str) -> WeightsError:
    return WeightsError(
        f"{path.name} is not the image tower of CLIP ViT-B/16 ({why})", NextStep("please report this")
    )
