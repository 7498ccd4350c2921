"""What training makes small: a loss of `similarities [n, n]` of captions and videos, pairs on the diagonal.

`same [n, n]` says which captions tell of which videos beyond their own pair: two captions of one video in one
batch are no negatives of each other. Without it they are, as published.
"""

from wordreel.training.losses.build import build_distillation, build_loss

__all__ = ["build_distillation", "build_loss"]
