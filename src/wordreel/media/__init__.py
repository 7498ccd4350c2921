"""Probing and decoding of videos, sounds and pictures, fenced off from the rest of the program."""

from typing import TYPE_CHECKING

from wordreel.util.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wordreel.media.fence import Fence, audio, frames, probe
    from wordreel.media.shots import describe, find_shots, shot_boundaries
    from wordreel.media.types import AudioNeed, FrameNeed, Frames, Limits, MediaInfo, Need, Sound, Window

__getattr__ = lazy_exports(
    __name__,
    {
        "fence": ("Fence", "audio", "frames", "probe"),
        "shots": ("describe", "find_shots", "shot_boundaries"),
        "types": ("AudioNeed", "FrameNeed", "Frames", "Limits", "MediaInfo", "Need", "Sound", "Window"),
    },
)

__all__ = [
    "AudioNeed",
    "Fence",
    "FrameNeed",
    "Frames",
    "Limits",
    "MediaInfo",
    "Need",
    "Sound",
    "Window",
    "audio",
    "describe",
    "find_shots",
    "frames",
    "probe",
    "shot_boundaries",
]
