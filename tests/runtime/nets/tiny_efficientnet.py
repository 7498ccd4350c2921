"""A tiny EfficientNet-Lite, and the slow, obvious twin of its graph."""

import numpy as np

from wordreel.runtime.nets.graph import fold_batch_norm

EPSILON = 1e-3
NORMS = {
    "_conv_stem": "_bn0", "_expand_conv": "_bn0", "_depthwise_conv": "_bn1", "_project_conv": "_bn2",
    "_conv_head": "_bn1",
}  # fmt: skip
"""The batch norm after each convolution."""


def fold(weights):
    """Weight and bias of every convolution, with the batch norm after it folded in, in float64."""
    folded = {}
    for name in weights:
        conv = name.removesuffix(".weight")
        block, _, layer = conv.rpartition(".")
        if name == conv or layer not in NORMS:
            continue
        norm = f"{block}.{NORMS[layer]}" if block else NORMS[layer]
        parts = [weights[f"{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        folded[name], folded[f"{conv}.bias"] = fold_batch_norm(
            weights[name].astype(np.float64), None, *(part.astype(np.float64) for part in parts), EPSILON
        )
    return folded


def tiny_weights():
    """Stem 8; a block without expansion; one that halves; one with a shortcut; head 12; 3 classes."""
    rng = np.random.default_rng(1)
    weights = {}

    def conv(name, norm, out, inside, kernel):
        weights[f"{name}.weight"] = rng.standard_normal((out, inside, kernel, kernel)).astype(np.float32)
        weights[f"{norm}.weight"] = rng.uniform(0.5, 1.5, out).astype(np.float32)
        weights[f"{norm}.bias"] = rng.standard_normal(out).astype(np.float32)
        weights[f"{norm}.running_mean"] = rng.standard_normal(out).astype(np.float32)
        weights[f"{norm}.running_var"] = rng.uniform(0.5, 20, out).astype(np.float32)

    conv("_conv_stem", "_bn0", 8, 3, 3)
    conv("_blocks.0._depthwise_conv", "_blocks.0._bn1", 8, 1, 3)
    conv("_blocks.0._project_conv", "_blocks.0._bn2", 4, 8, 1)
    for number, kernel, out in ((1, 5, 6), (2, 3, 6)):
        inside = 4 if number == 1 else 6
        conv(f"_blocks.{number}._expand_conv", f"_blocks.{number}._bn0", 12, inside, 1)
        conv(f"_blocks.{number}._depthwise_conv", f"_blocks.{number}._bn1", 12, 1, kernel)
        conv(f"_blocks.{number}._project_conv", f"_blocks.{number}._bn2", out, 12, 1)
    conv("_conv_head", "_bn1", 12, 6, 1)
    weights["_fc.weight"] = rng.standard_normal((3, 12)).astype(np.float32)
    weights["_fc.bias"] = rng.standard_normal(3).astype(np.float32)
    return weights


def slow_network(images, w):
    """The same network one convolution, one batch norm and one shortcut at a time, in float64."""

    def conv(x, name, norm, stride=1, depthwise=False):
        kernel = w[f"{name}.weight"].astype(np.float64)
        size = kernel.shape[2]
        pads = []
        for length in x.shape[2:]:
            total = max((-(-length // stride) - 1) * stride + size - length, 0)
            pads.append((total // 2, total - total // 2))
        x = np.pad(x, ((0, 0), (0, 0), *pads))
        windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]
        rule = "nchwij,cij->nchw" if depthwise else "nchwij,ocij->nohw"
        y = np.einsum(rule, windows, kernel[:, 0] if depthwise else kernel)
        at = (slice(None), None, None)
        y = (y - w[f"{norm}.running_mean"][at]) / np.sqrt(w[f"{norm}.running_var"][at] + EPSILON)
        return y * w[f"{norm}.weight"][at] + w[f"{norm}.bias"][at]

    def relu6(x):
        return np.clip(x, 0, 6)

    x = (images.astype(np.float64).transpose(0, 3, 1, 2) - 127) / 128
    x = relu6(conv(x, "_conv_stem", "_bn0", 2))
    x = relu6(conv(x, "_blocks.0._depthwise_conv", "_blocks.0._bn1", depthwise=True))
    x = conv(x, "_blocks.0._project_conv", "_blocks.0._bn2")
    for number, stride in ((1, 2), (2, 1)):
        at = f"_blocks.{number}."
        y = relu6(conv(x, f"{at}_expand_conv", f"{at}_bn0"))
        y = relu6(conv(y, f"{at}_depthwise_conv", f"{at}_bn1", stride, depthwise=True))
        y = conv(y, f"{at}_project_conv", f"{at}_bn2")
        x = y + x if number == 2 else y
    return relu6(conv(x, "_conv_head", "_bn1")).mean((2, 3))
