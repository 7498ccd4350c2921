"""From a recipe's words to a loss."""

from __future__ import annotations

from torch import nn

from wordreel.training.losses.distil import Distil
from wordreel.training.losses.dual_softmax import DualSoftmax
from wordreel.training.losses.info_nce import InfoNCE
from wordreel.training.losses.max_margin import MaxMargin
from wordreel.training.settings import LossSettings, TeachSettings


def build_loss(settings: LossSettings) -> nn.Module:
    if settings.kind == "max-margin":
        return MaxMargin(settings.margin, settings.diagonal)
    if settings.kind == "info-nce":
        return InfoNCE(
            settings.temperature, settings.learn_temperature, settings.soft_targets, settings.soft_temperature
        )
    return DualSoftmax(settings.temperature, settings.prior_temperature)


def build_distillation(settings: TeachSettings) -> Distil:
    return Distil(settings.kind, settings.delta, settings.temperature)
