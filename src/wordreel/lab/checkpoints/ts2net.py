"""The names of published TS2-Net checkpoints where they are not ours.

The published program wraps the attention of the blocks that shift, and carries two parts that no computation
uses: an encoder of video prompts and a selection of text tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

UNUSED = ("visual_prompt_encoder.", "text_token_selector.")
WRAPPED = re.compile(r"^(clip\.visual\.transformer\.resblocks\.(\d+)\.attn\.)net\.")
ATTENTION = re.compile(r"^(clip\.visual\.transformer\.resblocks\.(\d+)\.attn\.)")

Value = TypeVar("Value")


def own_names(state: Mapping[str, Value]) -> dict[str, Value]:
    """Rename published weights to ours; the unused parts are left out.

    >>> list(own_names({"clip.visual.transformer.resblocks.11.attn.net.in_proj_bias": 0}))
    ['clip.visual.transformer.resblocks.11.attn.in_proj_bias']
    """
    return {WRAPPED.sub(r"\1", key): value for key, value in state.items() if not key.startswith(UNUSED)}


def unused_parts(state: Mapping[str, Value]) -> dict[str, Value]:
    """Return what the published program carries without using it."""
    return {key: value for key, value in state.items() if key.startswith(UNUSED)}


def shifted_blocks(names: Iterable[str]) -> set[int]:
    """Return the numbers of the image blocks whose attention is wrapped."""
    return {int(match[2]) for match in map(WRAPPED.match, names) if match}


def published_names(state: Mapping[str, Value], shifted: Iterable[int]) -> dict[str, Value]:
    """Our names to the published ones; `shifted` are the numbers of the blocks that shift."""
    blocks = set(shifted)
    return {_published(key, blocks): value for key, value in state.items()}


def _published(key: str, blocks: set[int]) -> str:
    match = ATTENTION.match(key)
    return f"{match[1]}net.{key[match.end() :]}" if match and int(match[2]) in blocks else key
