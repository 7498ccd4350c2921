"""What a cut is asked for, and the packets that its parts yield."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TimedPacket = tuple[float, Any]  # seconds since the start of the clip, and a packet of the new file


@dataclass(frozen=True)
class CutRequest:
    """What to cut, in seconds, and into which container ("mp4" or "matroska").

    `playable` asks for codecs that every browser plays.
    """

    start: float
    end: float
    tolerance: float = 0.5
    container: str = "mp4"
    playable: bool = False


def timed(packet: Any) -> TimedPacket:
    """Return a packet with its decoding time in seconds."""
    return float(packet.dts * packet.time_base), packet
