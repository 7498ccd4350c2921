"""How to convert a published checkpoint of CE, MoEE or MMT."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
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
