"""Training losses over `similarities [n, n]` of captions (rows) and videos (columns), pairs on the diagonal.

`same [n, n]` marks captions and videos that belong together beyond the diagonal: two captions of one video in
a batch are then not each other's negatives. Without it they are, as published.
"""

from torch import nn

from wordreel.lab.training.losses.distillation import DistillationLoss
from wordreel.lab.training.losses.dual_softmax import DualSoftmaxLoss
from wordreel.lab.training.losses.info_nce import InfoNCELoss
from wordreel.lab.training.losses.max_margin import MaxMarginLoss
from wordreel.lab.training.settings import LossSettings, TeachSettings

__all__ = [
    "DistillationLoss",
    "DualSoftmaxLoss",
    "InfoNCELoss",
    "MaxMarginLoss",
    "build_distillation",
    "build_loss",
]


def build_loss(settings: LossSettings) -> nn.Module:
    """The loss that a recipe names."""
    if settings.kind == "max-margin":
        return MaxMarginLoss(settings.margin, settings.diagonal)
    if settings.kind == "info-nce":
        return InfoNCELoss(
            settings.temperature, settings.learn_temperature, settings.soft_targets, settings.soft_temperature
        )
    return DualSoftmaxLoss(settings.temperature, settings.prior_temperature)


def build_distillation(settings: TeachSettings) -> DistillationLoss:
    """The distillation loss that a recipe names."""
    return DistillationLoss(settings.kind, settings.delta, settings.temperature)
