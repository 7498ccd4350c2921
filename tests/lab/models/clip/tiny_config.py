"""A CLIP of a few numbers for tests."""

from __future__ import annotations

from dataclasses import replace

from wordreel.lab.models.clip.config import ClipConfig, small_clip

HEADS, DEPTH, END = 2, 2, 59


def tiny_clip(dim: int = 16) -> ClipConfig:
    clip = small_clip("tiny", size=8, patch=4, width=16, depth=DEPTH, dim=dim, vocabulary=END + 1, length=20)
    return replace(clip, vision=replace(clip.vision, heads=HEADS), text=replace(clip.text, heads=HEADS))
