"""The weights that training starts from: a published text network, a CLIP, or another model to fine-tune."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import torch
from torch import Tensor, nn

from wordreel.errors import NextStep, TrainingError, WeightsError, WeightsMissing
from wordreel.lab.models.batch import JointEmbedding
from wordreel.lab.models.clip.video_text import VideoTextModel
from wordreel.lab.models.config import TextConfig
from wordreel.lab.models.text.pretrained import load_pretrained
from wordreel.lab.training.settings import StartSettings
from wordreel.models.model_store import find_checkpoint

NUMBERED = re.compile(r"(project|scaling|video\.units|text\.units|pooling\.pools)\.(\d+)\.(.+)")
STACKED = re.compile(r"^(text|mixture)\.|\.gates\.|attention_norms")
TABLES = ("position_embeddings.weight", "token_type_embeddings.weight")
TOKENIZER = ("tokenizer.json", "vocab.txt", "merges.txt")
ALWAYS_TRAINED = re.compile(
    r"(ln_final|visual\.ln_post|visual\.conv2)\.|(text_projection|logit_scale|visual\.proj)$"
)
BLOCK = re.compile(r"(?:visual\.)?transformer\.resblocks\.(\d+)\.")


def init_weights(module: JointEmbedding, start: StartSettings) -> list[str]:
    """Fill in what the settings name; return the names of what stays fresh when a model is fine-tuned."""
    if start.model:
        return fine_tune(module, Path(start.model))
    if start.text:
        init_text(module, start.text)
    return []


def init_text(module: JointEmbedding, source: str) -> None:
    """Put a published network's weights under the captions: "minilm", or a folder with its files."""
    network = getattr(module.get_submodule("caption"), "words", None)
    if not isinstance(network, nn.Module) or module.config.text.words in ("table", "huggingface"):
        return  # words come as vectors, begin afresh, or bring their own weights
    try:
        load_pretrained(network, source)
    except WeightsMissing as error:
        raise TrainingError(
            error.message,
            NextStep(
                "name the folder of a published network, or none for random weights",
                "train features RECIPE --set start.text=FOLDER",
            ),
        ) from None
    except WeightsError as error:
        raise TrainingError(f"{error.message}; the recipe asks for another network") from None


def text_folder(text: TextConfig, start: StartSettings) -> Path | None:
    """Return where the captions' tokenizer or word vectors are looked for."""
    model = find_checkpoint(Path(start.model).expanduser()) if start.model else None
    subfolder = text.source.partition(":")[2]
    if model is not None and any((model / subfolder / name).is_file() for name in TOKENIZER):
        return model  # what is fine-tuned reads captions as it did
    if start.text and start.text != "minilm":
        return Path(start.text).expanduser()
    return model


def copy_tokenizer(text: TextConfig, folder: Path | None, out: Path) -> None:
    """Put the tokenizer's files beside a model, so that its folder is all it needs."""
    if folder is None or text.source.partition(":")[0] not in ("wordpiece", "tokenizer"):
        return
    subfolder = text.source.partition(":")[2]
    target = out / subfolder if not Path(subfolder).is_absolute() else None
    if target is None or ".." in Path(subfolder).parts:
        return
    for name in TOKENIZER:
        path = folder / subfolder / name
        if path.is_file() and path.resolve() != (target / name).resolve():
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)


def fine_tune(module: JointEmbedding, folder: Path) -> list[str]:
    """Start from another model's weights; return the names of parameters that it does not have.

    Experts are matched by name. A table of times or experts that is longer here is filled up with zeros, as
    published, and one that is shorter is cut.
    """
    from wordreel.lab.models.checkpoint import load_module

    other, _ = load_module(find_checkpoint(folder.expanduser()))
    if other.config.kind != module.config.kind:
        raise TrainingError(
            f"{folder} is a {other.config.kind} model; this recipe trains {module.config.kind}"
        )
    source_state = _by_expert(other.state_dict(), other.config.names, module.config.names)
    state, fresh = module.state_dict(), []
    for name, value in state.items():
        source = source_state.get(name)
        if source is not None and name.endswith(TABLES) and source.shape[1:] == value.shape[1:]:
            grown = torch.zeros_like(value)
            rows = min(len(source), len(value))
            grown[:rows] = source[:rows]
            source = grown
        if source is None or source.shape != value.shape:
            fresh.append(name)
        else:
            state[name] = source
    if len(fresh) == len(state):
        raise TrainingError(f"{folder} has nothing in common with this recipe's model")
    module.load_state_dict(state)
    return fresh


def _by_expert(
    source: dict[str, Tensor], source_names: tuple[str, ...], names: tuple[str, ...]
) -> dict[str, Tensor]:
    """Parameters that are numbered or stacked by expert, in the order of this model's experts."""
    if source_names == names:
        return source
    whole = set(names) <= set(source_names)
    positions = [source_names.index(name) if name in source_names else None for name in names]
    state = {}
    for name, value in source.items():
        if match := NUMBERED.fullmatch(name):
            for new, old in enumerate(positions):
                if old == int(match[2]):
                    state[f"{match[1]}.{new}.{match[3]}"] = value
        elif STACKED.search(name) and value.ndim:
            if whole:  # with new experts, what is stacked over all of them begins afresh
                parts = value.reshape(len(source_names), -1, *value.shape[1:])
                state[name] = torch.cat([parts[position] for position in positions if position is not None])
        else:
            state[name] = value
    return state


def init_video_text(module: VideoTextModel, start: StartSettings) -> None:
    """Fill in the weights that the settings name, freeze layers and switch on checkpointing."""
    if start.model:
        fine_tune_clip(module, Path(start.model))
    elif start.backbone:
        from wordreel.lab.checkpoints.clip import init_from_clip

        init_from_clip(module, Path(start.backbone).expanduser())
    elif not start.scratch:
        raise TrainingError(
            "this recipe fine-tunes a CLIP, and none is named",
            NextStep(
                "name a Hugging Face folder, a checkpoint file or a trained model",
                "train videos … --backbone PATH",
            ),
        )
    freeze(module, start.frozen_layers)
    module.clip.set_gradient_checkpointing(start.checkpointing)


def fine_tune_clip(module: VideoTextModel, path: Path) -> None:
    """Start from the towers of another model, and from its head where it is the same.

    `path` is a training's folder or a published checkpoint.
    """
    from wordreel.lab.checkpoints.video_text import load_published
    from wordreel.lab.models.checkpoint import load_video_text

    path = path.expanduser()
    other = load_published(path) if path.is_file() else load_video_text(find_checkpoint(path))[0]
    module.load_clip(other.clip.state_dict())
    if other.config.kind == module.config.kind:
        ours, theirs = module.state_dict(), other.state_dict()
        alike = {name: value for name, value in theirs.items() if name in ours}
        alike = {name: value for name, value in alike.items() if ours[name].shape == value.shape}
        module.load_state_dict({**ours, **alike})


def freeze(module: VideoTextModel, layers: int) -> None:
    """Freeze the first blocks of both towers and what is before them, as CLIP4Clip does; -1: nothing.

    CLIP4Clip's own code freezes nothing when the patch is 3-D, for a mistake in a condition; here a 3-D patch
    trains and the rest follows the rule (-1 does as that code).
    """
    if layers < 0:
        return
    for name, p in module.clip.named_parameters():
        block = BLOCK.match(name)
        trained = ALWAYS_TRAINED.match(name) or (block is not None and int(block[1]) >= layers)
        p.requires_grad_(bool(trained))
