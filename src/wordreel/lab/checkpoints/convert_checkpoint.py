"""From a published checkpoint to a checkpoint folder that `wordreel use` takes.

A published checkpoint has the video side and the pooling of captions. What turns new text into word vectors
(CE, MoEE: word2vec or GPT) or into BERT's tokens (MMT) is not part of it and is copied into the folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from wordreel.errors import NextStep, WeightsError, WeightsMissing
from wordreel.lab.checkpoints.ce import load_ce
from wordreel.lab.checkpoints.checkpoint_file import PublishedCheckpoint
from wordreel.lab.checkpoints.infer_config import find_mixture_order, infer_config
from wordreel.lab.checkpoints.mmt import load_mmt
from wordreel.lab.models.batch import JointEmbedding
from wordreel.lab.models.build import build
from wordreel.lab.models.checkpoint import save
from wordreel.lab.models.config import MMTConfig, ModelConfig, TextConfig
from wordreel.lab.models.text.bert import Bert, Gpt
from wordreel.lab.models.text.pretrained import load_pretrained, read_network_size
from wordreel.lab.models.text.word_vectors import read_word_vectors
from wordreel.models.laboratory import ConversionOptions
from wordreel.util.atomic import make_dir

TOKENIZER = ("tokenizer.json", "vocab.txt")

NameExperts = Callable[[str, Mapping[str, int]], Mapping[str, str]]
"""(family, published expert → size of its features) → published expert → the library's name for it."""


def convert_checkpoint(
    path: Path, folder: Path, options: ConversionOptions, name_experts: NameExperts | None = None
) -> None:
    """Write a published checkpoint of CE, MoEE or MMT as a checkpoint folder.

    Args:
        path: The published file; nothing in it is run.
        folder: Where the checkpoint folder is written.
        options: Configuration, mode, name and text encoder.
        name_experts: Gives experts the names that their features have in a library; None keeps the names.

    Raises:
        WeightsError: The file is not such a checkpoint, or not of the configuration given.
        WeightsMissing: What encodes text is not given.
    """
    checkpoint = PublishedCheckpoint.read(path, options.config)
    config = infer_config(checkpoint, options.mode)
    if options.text is None:
        raise _text_missing(path, config.text)
    module = load_joint_embedding(
        checkpoint.arrays, config, find_mixture_order(checkpoint, config, options.moee_order)
    )
    if name_experts is not None:
        names = name_experts(config.kind, {expert.name: expert.dim for expert in config.experts})
        experts = tuple(replace(expert, name=names[expert.name]) for expert in config.experts)
        module = _rebuilt(module, replace(config, experts=experts))
    make_dir(folder)
    module = _with_text(module, options.text.expanduser(), folder)
    facts = {"converted_from": path.name, "mode": options.mode}
    save(folder, module, options.name or _name(checkpoint, config), facts)


def load_joint_embedding(
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
        return load_mmt(arrays, config)
    return load_ce(arrays, config, mixture_order)


def _with_text(module: JointEmbedding, source: Path, folder: Path) -> JointEmbedding:
    """Return the module with what encodes new text, whose files are copied into the folder."""
    text = module.config.text
    if text.words == "bert":
        _copy_vocabulary(text, source, folder)
        return module
    if source.is_file():
        dim = read_word_vectors(source, 1).dim
        if dim != text.dim:
            raise WeightsError(f"{source} has vectors of {dim} numbers; the checkpoint takes {text.dim}")
        shutil.copyfile(source, folder / source.name)
        return _rebuilt(module, replace(module.config, text=replace(text, source=f"word2vec:{source.name}")))
    words, size = read_network_size(source)
    if size.hidden != text.dim:
        raise WeightsError(f"{source} has states of {size.hidden} numbers; the checkpoint takes {text.dim}")
    network = Bert(size) if words == "bert" else Gpt(size, second=words == "gpt2")
    load_pretrained(network, str(source))
    _copy_tokenizer(source, folder)
    held = {f"caption.words.{name}": value for name, value in network.state_dict().items()}
    read = replace(text, words=words, network=size, frozen=True, source="tokenizer")
    return _rebuilt(module, replace(module.config, text=read), held)


def _rebuilt(
    module: JointEmbedding, config: ModelConfig, more: Mapping[str, torch.Tensor] | None = None
) -> JointEmbedding:
    """Return the same weights under another configuration; parameters are numbered, not named, by expert."""
    with torch.device("meta"):
        result = build(config)
    result.load_state_dict({**module.state_dict(), **(more or {})}, assign=True)
    return result.eval()


def _copy_vocabulary(text: TextConfig, source: Path, folder: Path) -> None:
    if source.is_file():
        shutil.copyfile(source, folder / ("tokenizer.json" if source.suffix == ".json" else "vocab.txt"))
    else:
        _copy_tokenizer(source, folder)
    vocabulary = folder / "vocab.txt"
    if text.network is not None and vocabulary.is_file():
        count = len(vocabulary.read_text(encoding="utf-8").splitlines())
        if count != text.network.vocabulary:
            raise WeightsError(
                f"{source} has {count} words; the checkpoint's BERT has {text.network.vocabulary} "
                "(MMT uses bert-base-cased)"
            )


def _copy_tokenizer(source: Path, folder: Path) -> None:
    copied = [name for name in TOKENIZER if (source / name).is_file()]
    if not copied:
        raise WeightsMissing(f"there is no tokenizer.json or vocab.txt in {source}")
    for name in copied:
        shutil.copyfile(source / name, folder / name)


def _text_missing(path: Path, text: TextConfig) -> WeightsMissing:
    if text.words == "bert":
        return WeightsMissing(
            f"{path.name} holds the weights of its BERT but not the vocabulary",
            NextStep("give the vocab.txt of bert-base-cased", f"use {path.name} --text vocab.txt"),
        )
    kind = text.source or "word"
    return WeightsMissing(
        f"{path.name} reads captions as {kind} vectors of {text.dim} numbers, which it cannot make itself",
        NextStep(
            "give the word vectors' file, or the folder of the GPT whose states they are",
            f"use {path.name} --text FILE_OR_FOLDER",
        ),
    )


def _name(checkpoint: PublishedCheckpoint, config: ModelConfig) -> str:
    dataset = checkpoint.setting("data_loader", "args", "dataset_name")
    named = checkpoint.setting("exp_name") or (f"{config.kind}-{str(dataset).lower()}" if dataset else "")
    return str(named or config.kind)
