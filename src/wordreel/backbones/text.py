"""Text towers of joint picture-text models: one transformer, read from its configuration.

CLIP's is causal and takes the end-of-text token (Radford et al. 2021); SigLIP's sees the whole text and takes
the last position (Zhai et al. 2023); MobileCLIP-S0 mixes neighbouring tokens by convolution before and
behind the blocks (Vasu et al. 2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from wordreel.backbones.config import TextTowerConfig
from wordreel.backbones.fastvit import mixer_block
from wordreel.backbones.text_alignment import TextAlignment
from wordreel.backbones.transformer import blocks
from wordreel.runtime.nets.net_builder import NetBuilder

AT = "text_model"
MIXER_KERNEL = (1, 11)


@dataclass(frozen=True)
class TextTransformer:
    """`ids [n, tokens]` int64 to `features [n, dim]`, not normalised.

    A causal tower that takes the end token gives the same features for ids cut off behind the last end token
    of the batch; any other tower needs `config.length` ids. With an `alignment`, the
    features are CLIP2Video's `[n, 2 dim]`.
    """

    config: TextTowerConfig
    dim: int
    alignment: TextAlignment | None = None

    def __call__(self, net: NetBuilder) -> Mapping[str, str]:
        config, width = self.config, self.config.width
        ids = net.input("ids", "n", "tokens", integer=True)
        table = net.tensor(f"{AT}.embeddings.token_embedding.weight", config.vocabulary, width)
        x = net.rows(table, ids)
        tokens = net.op("Shape", ids, start=1, end=2)
        positions = net.tensor(f"{AT}.embeddings.position_embedding.weight", config.length, width)
        x = net.op("Add", x, self._first(net, net.constant(positions), tokens, axes=1))
        if config.mixers:
            x = self._mix(net, x, f"{AT}.mixers.0")
        x = blocks(net, x, AT, config, mask=self._mask(net, tokens))
        if config.mixers:
            x = self._mix(net, x, f"{AT}.mixers.1")
        if self.alignment is None:
            return {"features": self._projected(net, self._pool(net, x, ids))}
        tokens = self._projected(net, x)
        return {"features": self.alignment(net, tokens, self._end(net, ids), self.dim)}

    def _projected(self, net: NetBuilder, x: str) -> str:
        """States `[…, width]` in the joint space `[…, dim]`."""
        config, width = self.config, self.config.width
        x = net.layer_norm(x, f"{AT}.final_layer_norm", width, config.epsilon)
        projection = f"{AT}.head" if config.projection_bias else "text_projection"
        return net.linear(x, projection, self.dim, width, bias=config.projection_bias)

    def _mix(self, net: NetBuilder, x: str, key: str) -> str:
        """`[n, tokens, width]` in and out; a map of the height 1 in between."""
        config = self.config
        x = net.op("Unsqueeze", net.op("Transpose", x, perm=[0, 2, 1]), net.constant(np.array([2])))
        x = mixer_block(net, x, key, config.width, config.mlp, MIXER_KERNEL, MIXER_KERNEL)
        return net.op("Transpose", net.op("Squeeze", x, net.constant(np.array([2]))), perm=[0, 2, 1])

    def _mask(self, net: NetBuilder, tokens: str) -> str:
        """`[tokens, tokens]`: −∞ where a token would see a later one."""
        if not self.config.causal:
            return ""
        length = self.config.length
        later = np.triu(np.full((length, length), -np.inf, np.float32), 1)
        return self._first(net, net.constant(later), tokens, axes=2)

    def _first(self, net: NetBuilder, x: str, tokens: str, *, axes: int) -> str:
        """The first `tokens` along each of the first axes."""
        for axis in range(axes):
            start, along = net.constant(np.array([0])), net.constant(np.array([axis]))
            x = net.op("Slice", x, start, tokens, along)
        return x

    def _pool(self, net: NetBuilder, x: str, ids: str) -> str:
        """`[n, tokens, width]` to `[n, width]`."""
        if self.config.pooling == "last":
            return net.op("Gather", x, net.constant(np.int64(-1)), axis=1)
        return net.op("GatherND", x, self._end(net, ids), batch_dims=1)

    def _end(self, net: NetBuilder, ids: str) -> str:
        """`[n, 1]`: the positions of the end tokens."""
        if self.config.end_token >= 0:
            ends = net.op("Equal", ids, net.constant(np.int64(self.config.end_token)))
            ids = net.op("Cast", ends, to=TensorProto.INT32)
        return net.op("ArgMax", ids, axis=1, keepdims=1)  # the first of the largest
