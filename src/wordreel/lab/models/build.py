"""From a configuration to a module with fresh weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wordreel.lab.models.ce import CE
from wordreel.lab.models.config import CEConfig, ConcatConfig, MMTConfig, ModelConfig, MoEEConfig
from wordreel.lab.models.joint_embedding import JointEmbedding
from wordreel.lab.models.mmt import MMT
from wordreel.lab.models.moee import Concat, MoEE

MODULES: Mapping[type[ModelConfig], Callable[[Any], JointEmbedding]] = {
    MoEEConfig: MoEE,
    ConcatConfig: Concat,
    CEConfig: CE,
    MMTConfig: MMT,
}


def build(config: ModelConfig) -> JointEmbedding:
    """Initialised as published: torch's defaults for CE and MoEE, N(0, 0.02²) for transformers."""
    return MODULES[type(config)](config)
