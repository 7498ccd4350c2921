"""From a configuration to a module with fresh weights."""

from __future__ import annotations

from wordreel.models import config as configs
from wordreel.models.ce import CE
from wordreel.models.joint_embedding import JointEmbedding
from wordreel.models.mmt import MMT
from wordreel.models.moee import Concat, MoEE
from wordreel.models.reel.module import ReelModule


def build(config: configs.ModelConfig) -> JointEmbedding:
    """Initialised as published: torch's defaults for CE and MoEE, N(0, 0.02²) for transformers."""
    if isinstance(config, configs.MoEEConfig):
        return MoEE(config)
    if isinstance(config, configs.ReelConfig):
        return ReelModule(config)
    if isinstance(config, configs.ConcatConfig):
        return Concat(config)
    return CE(config) if isinstance(config, configs.CEConfig) else MMT(config)
