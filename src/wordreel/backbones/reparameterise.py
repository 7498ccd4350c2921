"""Structural reparameterisation: the parallel branches a network was trained with become one convolution.

A sum of convolutions of one input is a convolution; a batch norm without one before it, and the input itself,
are convolutions with an identity kernel (Ding et al. 2021, Vasu et al. 2023). Key names are timm's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from wordreel.errors import WeightsError
from wordreel.runtime.nets.checkpoint import Array
from wordreel.runtime.nets.graph import fold_batch_norm

EPSILON = 1e-5  # of every batch norm
BRANCH = re.compile(
    r"(?P<block>.+)\.(?P<branch>conv_kxk\.\d+|conv_scale|identity|large_conv|small_conv|pos_enc)"
    r"\.(?:conv|bn|weight|bias|running_mean|running_var)"
)

Convolution = tuple[Array, Array]
"""Weight and bias in double precision."""


def reparameterise(state: Mapping[str, Array]) -> dict[str, Array]:
    """The state with the branches of every block replaced by its `reparam_conv.weight` and `.bias`.

    A state saved after reparameterisation comes back as it is.
    """
    fused: dict[str, Array] = {}
    blocks: dict[str, list[str]] = {}
    for key in state:
        match = BRANCH.match(key)
        if match is None:
            fused[key] = state[key]
        elif match["branch"] not in (branches := blocks.setdefault(match["block"], [])):
            branches.append(match["branch"])
    for block, branches in blocks.items():
        mixer = block.removesuffix(".mixer")
        if block.endswith(".token_mixer.norm"):  # fused with its mixer
            continue
        try:
            weight, bias = _sum(state, block, branches)
            if mixer != block:
                weight, bias = _mixer(state, mixer, (weight, bias))
                fused.pop(f"{mixer}.layer_scale.gamma", None)
        except (KeyError, ValueError, IndexError) as error:
            raise WeightsError(f"the branches of {block} do not fit together: {error}") from None
        fused[f"{mixer}.reparam_conv.weight"] = weight.astype(np.float32)
        fused[f"{mixer}.reparam_conv.bias"] = bias.astype(np.float32)
    return fused


def _sum(state: Mapping[str, Array], block: str, branches: Sequence[str]) -> Convolution:
    """The convolution that equals the sum of a block's branches."""
    if "pos_enc" in branches:  # x + convolution(x)
        weight, bias = (
            np.asarray(state[f"{block}.pos_enc.{part}"], np.float64) for part in ("weight", "bias")
        )
        return weight + _identity(weight.shape), bias
    kernels = [state[key].shape for name in branches if (key := f"{block}.{name}.conv.weight") in state]
    shape = (*kernels[0][:2], *np.max(kernels, axis=0)[2:].tolist())
    parts = [_folded(state, f"{block}.{name}", shape) for name in branches]
    return sum(weight for weight, _ in parts), sum(bias for _, bias in parts)  # type: ignore[return-value]


def _mixer(state: Mapping[str, Array], key: str, mixer: Convolution) -> Convolution:
    """x + γ · (mixer(x) − norm(x)); γ is 1 where the network has no layer scale."""
    weight, bias = mixer
    norm_weight, norm_bias = _folded(state, f"{key}.norm.identity", weight.shape)
    scale = np.asarray(state.get(f"{key}.layer_scale.gamma", np.ones(len(bias))), np.float64).reshape(
        len(bias)
    )
    weight = _identity(weight.shape) + scale[:, None, None, None] * (weight - norm_weight)
    return weight, scale * (bias - norm_bias)


def _folded(state: Mapping[str, Array], branch: str, shape: Sequence[int]) -> Convolution:
    """A convolution and its batch norm, or a batch norm alone, as one convolution of `shape`."""
    key = f"{branch}.conv.weight"
    weight = _padded(state[key], shape) if key in state else _identity(shape)
    norm = f"{branch}.bn" if key in state else branch
    parts = [
        np.asarray(state[f"{norm}.{part}"], np.float64)
        for part in ("running_mean", "running_var", "weight", "bias")
    ]
    if any(part.shape != (shape[0],) for part in parts):
        raise ValueError(f"{norm} does not have {shape[0]} channels")
    mean, variance, scale, shift = parts
    return fold_batch_norm(weight, None, mean, variance, scale, shift, EPSILON)


def _padded(weight: Array, shape: Sequence[int]) -> Array:
    """The kernel in the middle of a larger one."""
    sides = [(large - small) // 2 for large, small in zip(shape[2:], weight.shape[2:], strict=True)]
    padded = np.pad(weight.astype(np.float64), [(0, 0), (0, 0), *((side, side) for side in sides)])
    if padded.shape != tuple(shape):
        raise ValueError(f"a kernel of {weight.shape[2:]} is not in the middle of one of {tuple(shape[2:])}")
    return padded


def _identity(shape: Sequence[int]) -> Array:
    """The kernel that changes nothing, `[channels, channels / groups, height, width]`."""
    kernel = np.zeros(shape)
    channel = np.arange(shape[0])
    kernel[channel, channel % shape[1], shape[2] // 2, shape[3] // 2] = 1.0
    return kernel
