"""What CLIP2Video (arXiv 2106.11097) makes of a text beside its embedding: its tokens around shared centres.

With projected token states x_t behind the first token and up to the end token, centres E and weights W:

    a_tk = softmax_k(x_t · W_k),   v_k = Σ_t a_tk (x_t − E_k),   c' = unit(mean_k unit(v_k))

The text's vector is [√w c, √(1 − w) c'], as `clip2video_head` has it for clips.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from wordreel.backbones.clip2video_head import CENTRES, WEIGHTS
from wordreel.backbones.frame_head import HEAD
from wordreel.runtime.nets.net_builder import NetBuilder


@dataclass(frozen=True)
class TextAlignment:
    """`centres` and `share`, the w above."""

    centres: int
    share: float

    def __call__(self, net: NetBuilder, tokens: str, end: str, dim: int) -> str:
        """Projected states `[n, t, dim]` and the end tokens' positions `[n, 1]` to `[n, 2 dim]`."""
        weights = net.tensor(f"{HEAD}{WEIGHTS}", self.centres, dim)
        centres = net.constant(net.tensor(f"{HEAD}{CENTRES}", self.centres, dim))
        shares = net.op("Softmax", net.op("MatMul", tokens, net.constant(weights.T)), axis=-1)
        shares = net.op("Mul", shares, self._seen(net, tokens, end))
        total = net.op("ReduceSum", shares, net.constant(np.array([1])), keepdims=0)
        gathered = net.op("MatMul", net.op("Transpose", shares, perm=[0, 2, 1]), tokens)
        own = net.op("Mul", net.op("Unsqueeze", total, net.constant(np.array([2]))), centres)
        rows = _unit(net, net.op("Sub", gathered, own))
        aligned = _unit(net, net.mean(rows, 1))
        whole = _unit(net, net.op("GatherND", tokens, end, batch_dims=1))
        parts = ((whole, self.share), (aligned, 1 - self.share))
        scaled = [net.op("Mul", x, net.constant(np.float32(np.sqrt(share)))) for x, share in parts]
        return net.op("Concat", *scaled, axis=-1)

    def _seen(self, net: NetBuilder, tokens: str, end: str) -> str:
        """`[n, t, 1]`: 1 behind the first token and up to the end token."""
        zero, one = net.constant(np.int64(0)), net.constant(np.int64(1))
        count = net.op("Squeeze", net.op("Shape", tokens, start=1, end=2))
        places = net.op("Range", zero, count, one)
        upto = net.op("LessOrEqual", places, end)
        seen = net.op("And", upto, net.op("Greater", places, zero))
        return net.op("Unsqueeze", net.op("Cast", seen, to=TensorProto.FLOAT), net.constant(np.array([2])))


def _unit(net: NetBuilder, x: str) -> str:
    return net.op("LpNormalization", x, axis=-1, p=2)
