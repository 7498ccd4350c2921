"""Batch norm that can leave rows out of its statistics.

Published models let padding and missing experts into the batch statistics, so that a video's training signal
depends on how long its neighbours are. With a mask only real rows count; everything keeps a fixed shape.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm


class BatchNorm(nn.BatchNorm1d):
    """y = γ (x − μ) / √(σ² + ε) + β over the last dimension, as `nn.BatchNorm1d`, of any leading shape.

    In training μ and σ² come from the batch (σ² biased there, unbiased in the running statistics), in
    evaluation from the running statistics. State and parameters are `nn.BatchNorm1d`'s.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalise all rows of `x [..., d]`, counted or not.

        `mask [...]` bool says which rows count.
        """
        if not self.training or mask is None:
            flat: Tensor = super().forward(x.reshape(-1, x.shape[-1]))
            return flat.reshape(x.shape)
        return self._scaled(x, *self._moments(x.reshape(-1, x.shape[-1]), mask.reshape(-1, 1)))

    def each(self, x: Tensor) -> Tensor:
        """Return `x [b, k, d]` after k calls with `x[:, 0]`, `x[:, 1]`, … one after the other."""
        if self.training and x.shape[0] < 2:
            raise ValueError("batch norm needs at least two rows in training; leave a last batch of one out")
        return torch.stack([self(part) for part in x.unbind(dim=1)], dim=1)

    @property
    def _momentum(self) -> float:
        return 0.1 if self.momentum is None else self.momentum

    def _moments(self, x: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the real rows, over the first dimension; update the running ones."""
        rows, count = wide(x), real.sum(dim=0)
        some = count.clamp(min=1)
        mean = torch.where(real, rows, 0).sum(dim=0) / some
        variance = torch.where(real, rows - mean, 0).square().sum(dim=0) / some
        with torch.no_grad():
            fair = variance * count / (count - 1).clamp(min=1)
            share = torch.where(count > 1, self._momentum, 0.0).expand_as(mean)
            self._update_running(mean.flatten(), fair.flatten(), share.flatten())
        return mean, variance

    def _update_running(self, mean: Tensor, variance: Tensor, share: Tensor) -> None:
        old_mean, old_variance, seen = self.running_mean, self.running_var, self.num_batches_tracked
        if old_mean is None or old_variance is None or seen is None:
            return
        old_mean.add_(share * (mean - old_mean))
        old_variance.add_(share * (variance - old_variance))
        seen.add_(1)

    def _scaled(self, x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        y = (wide(x) - mean) * torch.rsqrt(variance + self.eps)
        weight, bias = self.weight.view(-1, x.shape[-1]), self.bias.view(-1, x.shape[-1])
        return (y * weight + bias).to(x.dtype)


class ExpertNorm(BatchNorm):
    """A batch norm of its own for each of m experts, `x [b, m, d]`, kept as one of m·d channels."""

    def __init__(self, many: int, dim: int) -> None:
        super().__init__(many * dim)
        self.many = many

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Normalise each expert; with `mask [b, m]`, by statistics of the videos that have it."""
        if not self.training or mask is None:
            return super().forward(x.flatten(1)).reshape(x.shape)
        return self._scaled(x, *self._moments(x, mask[:, :, None]))

    def one(self, number: int, x: Tensor) -> Tensor:
        """Expert `number` alone: `x [b, d]`."""
        at = slice(number * x.shape[1], (number + 1) * x.shape[1])
        means, variances = self.running_mean, self.running_var
        assert means is not None  # noqa: S101 - for the type checker
        assert variances is not None  # noqa: S101
        weight, bias = self.weight[at], self.bias[at]
        return batch_norm(x, means[at], variances[at], weight, bias, self.training, self._momentum, self.eps)


def wide(x: Tensor) -> Tensor:
    """Widen half precision, which is too coarse for variances."""
    return x if x.dtype == torch.float64 else x.float()
