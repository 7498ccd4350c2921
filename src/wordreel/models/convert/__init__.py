"""Published checkpoints into wordreel's modules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wordreel.errors import WeightsError
from wordreel.models.config import MMT, Config, ReelConfig

if TYPE_CHECKING:
    from wordreel.models.base_module import JointEmbedding


def load_published(path: Path, config: Config) -> JointEmbedding:
    """A module with the weights of a published CE, MoEE or MMT checkpoint, in evaluation mode."""
    if isinstance(config, MMT):
        from wordreel.models.convert.mmt import load_mmt

        return load_mmt(path, config)
    if isinstance(config, ReelConfig):
        raise WeightsError(
            "the default model has no published checkpoint to convert; `wordreel use reel` uses it"
        )
    from wordreel.models.convert.ce import load_ce

    return load_ce(path, config)
