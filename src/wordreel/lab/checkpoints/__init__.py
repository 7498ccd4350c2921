"""Published checkpoints into wordreel's modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from wordreel.lab.models.config import MMTConfig, ModelConfig

if TYPE_CHECKING:
    from wordreel.lab.models.batch import JointEmbedding


def module_from(
    arrays: Mapping[str, NDArray[Any]], config: ModelConfig, mixture_order: Sequence[str] | None = None
) -> JointEmbedding:
    """Return a module with the weights of a published CE, MoEE or MMT checkpoint, in evaluation mode.

    Args:
        arrays: The checkpoint's arrays by their keys.
        config: What the checkpoint is of; `infer_config` reads it from the checkpoint.
        mixture_order: The experts in the order of the published mixture weights; None: the order of `config`.

    Raises:
        WeightsError: The checkpoint is not of this configuration; the message names the keys.
    """
    if isinstance(config, MMTConfig):
        from wordreel.lab.checkpoints.mmt import load_mmt

        return load_mmt(arrays, config)
    from wordreel.lab.checkpoints.ce import load_ce

    return load_ce(arrays, config, mixture_order)
