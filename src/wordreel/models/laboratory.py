"""What a library asks of the laboratory, named here and loaded when it is needed.

The product imports nothing of `wordreel.lab`. A library may still hold a model that was trained there, or
take a published checkpoint: only then is the laboratory, and torch with it, loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordreel.errors import NextStep, WordreelError
from wordreel.util.lazy_exports import import_named

if TYPE_CHECKING:
    from wordreel.models.base import CheckpointModel
    from wordreel.runtime.store import WeightStore


from dataclasses import dataclass
from typing import Literal

Mode = Literal["paper", "released"]
MoEEOrder = Literal["ordered", "unordered"]


@dataclass(frozen=True)
class ConversionOptions:
    """How to convert a published checkpoint.

    Attributes:
        config: The trainer's `config.json`. None: the configuration in the checkpoint, or the `config.json`
            beside it.
        mode: "released" computes what the published code does; "paper" what the paper says, which gives other
            similarities with the same weights.
        name: What the model is called. None: the experiment's name, or the family and the dataset.
        text: What encodes new text: a file of word vectors (word2vec, GloVe), the folder of a GPT, GPT-2 or
            BERT network, or for MMT the `vocab.txt` of its BERT. Published checkpoints do not contain it.
        moee_order: For checkpoints of MoEE's own code: "ordered" if it was trained under Python 3.6 or later,
            where dictionaries keep their order and the mixture weights have another order than the units.
    """

    config: Path | None = None
    mode: Mode = "released"
    name: str | None = None
    text: Path | None = None
    moee_order: MoEEOrder = "ordered"


OPEN = "wordreel.lab.models.checkpoint:TrainedModel"
CONVERT = "wordreel.lab.checkpoints.convert_checkpoint:convert_checkpoint"
IS_CLIP = "wordreel.lab.checkpoints.export_backbone:is_clip"
EXPORT = "wordreel.lab.checkpoints.export_backbone:export_backbone"


def open_trained(folder: Path, weights: WeightStore) -> CheckpointModel:
    """Open a model that was trained in the laboratory."""
    model: CheckpointModel = _load_with_torch(OPEN, folder)(folder, weights)
    return model


def convert_published(
    path: Path,
    folder: Path,
    options: ConversionOptions,
    names: Callable[[str, Mapping[str, int]], Mapping[str, str]],
) -> None:
    """Write a published checkpoint as a checkpoint folder; `names` gives experts the library's names."""
    _load_with_torch(CONVERT, path)(path, folder, options, names)


def is_clip(path: Path) -> bool:
    """Return whether a file or folder holds a joint picture-text model, or a model on CLIP's towers."""
    return bool(_load_with_torch(IS_CLIP, path)(path))


def export_backbone(path: Path, folder: Path) -> None:
    """Write a model in a layout of PyTorch as ONNX files that search runs."""
    _load_with_torch(EXPORT, path)(path, folder)


def _load_with_torch(name: str, path: Path) -> Any:
    try:
        return import_named(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
    raise needs_torch(path)


def needs_torch(path: Path) -> WordreelError:
    """Return the error for a trained model on a machine without torch."""
    return WordreelError(
        f"{path} is a trained model, which needs torch", NextStep("run: pip install 'wordreel[train]'")
    )
