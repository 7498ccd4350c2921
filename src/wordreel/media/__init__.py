"""Probing and decoding of videos, sounds and pictures, fenced off from the rest of the program."""

from typing import TYPE_CHECKING

from wordreel.util.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from wordreel.media.fence import Fence as Fence
    from wordreel.media.fence import audio as audio
    from wordreel.media.fence import frames as frames
    from wordreel.media.fence import probe as probe
    from wordreel.media.shot_detection import describe as describe
    from wordreel.media.shot_detection import find_shots as find_shots
    from wordreel.media.shot_detection import shot_boundaries as shot_boundaries
    from wordreel.media.types import AudioNeed as AudioNeed
    from wordreel.media.types import FrameNeed as FrameNeed
    from wordreel.media.types import Frames as Frames
    from wordreel.media.types import Limits as Limits
    from wordreel.media.types import MediaInfo as MediaInfo
    from wordreel.media.types import Need as Need
    from wordreel.media.types import Sound as Sound
    from wordreel.media.types import Window as Window

__getattr__ = lazy_exports(
    __name__,
    {
        "fence": ("Fence", "audio", "frames", "probe"),
        "shot_detection": ("describe", "find_shots", "shot_boundaries"),
        "types": ("AudioNeed", "FrameNeed", "Frames", "Limits", "MediaInfo", "Need", "Sound", "Window"),
    },
)
